//! Nodes of the index: keys, entries and how they lie in 1,024 bytes of the memory.
//!
//! The index is not durable. Its nodes live in the same memory as everything else so that it costs no heap and that
//! several processes can share it; a recovery makes it anew.

use onode_media::Pmem;
use onode_object::{AttributeKey, AttributeKind, ObjectId};

/// Bytes of a node.
pub(crate) const NODE_BYTES: u64 = 1024;
const HEADER_WORDS: u64 = 3;
const KEY_WORDS: u64 = 3;
const WORDS: u64 = NODE_BYTES / 8;

/// What an entry of the index is about. Ordered by object, then class, then index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub object: u64,
    pub class: u64,
    pub index: u64,
}

impl Key {
    const ONODE: u64 = 0;
    const EXTENT: u64 = 1;
    const FIRST_ATTRIBUTE: u64 = 2;

    /// The first key of all.
    pub(crate) const FIRST: Self = Self { object: 0, class: 0, index: 0 };

    pub(crate) const fn onode(object: ObjectId) -> Self {
        Self { object: object.0, class: Self::ONODE, index: 0 }
    }

    pub(crate) const fn extent(object: ObjectId, offset: u64) -> Self {
        Self { object: object.0, class: Self::EXTENT, index: offset }
    }

    pub(crate) const fn attribute(object: ObjectId, key: AttributeKey) -> Self {
        Self { object: object.0, class: Self::FIRST_ATTRIBUTE + key.kind.0 as u64, index: key.index }
    }

    pub(crate) const fn is_onode(&self) -> bool {
        self.class == Self::ONODE
    }

    pub(crate) const fn is_extent(&self) -> bool {
        self.class == Self::EXTENT
    }

    /// The attribute that it is the key of.
    pub(crate) const fn as_attribute(&self) -> Option<AttributeKey> {
        match self.class.checked_sub(Self::FIRST_ATTRIBUTE) {
            Some(kind) => Some(AttributeKey::new(AttributeKind(kind as u8), self.index)),
            None => None,
        }
    }

    pub(crate) const fn object(&self) -> ObjectId {
        ObjectId(self.object)
    }
}

/// What an entry holds. Of an onode: the place of its item in the log and the bytes of its blocks. Of an extent: address
/// and length of the block. Of an attribute: the place of its item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value(pub u64, pub u64);

/// A node: a leaf with entries of key and value, or an inner node with entries of lowest key and child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub address: u64,
}

impl Node {
    pub(crate) const LEAF_ENTRIES: u64 = (WORDS - HEADER_WORDS) / (KEY_WORDS + 2);
    pub(crate) const INNER_ENTRIES: u64 = (WORDS - HEADER_WORDS) / (KEY_WORDS + 1);

    pub(crate) fn format<P: Pmem + ?Sized>(self, memory: &P, level: u64) {
        memory.store(self.address, 0);
        memory.store(self.address + 8, level);
    }

    pub(crate) fn count<P: Pmem + ?Sized>(self, memory: &P) -> u64 {
        memory.load(self.address)
    }

    /// 0 for leaves.
    pub(crate) fn level<P: Pmem + ?Sized>(self, memory: &P) -> u64 {
        memory.load(self.address + 8)
    }

    const fn entry_words(level: u64) -> u64 {
        if level == 0 { KEY_WORDS + 2 } else { KEY_WORDS + 1 }
    }

    pub(crate) const fn most_entries(level: u64) -> u64 {
        if level == 0 { Self::LEAF_ENTRIES } else { Self::INNER_ENTRIES }
    }

    const fn entry(self, level: u64, position: u64) -> u64 {
        self.address + (HEADER_WORDS + position * Self::entry_words(level)) * 8
    }

    pub(crate) fn key<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64) -> Key {
        let at = self.entry(level, position);
        Key { object: memory.load(at), class: memory.load(at + 8), index: memory.load(at + 16) }
    }

    pub(crate) fn value<P: Pmem + ?Sized>(self, memory: &P, position: u64) -> Value {
        let at = self.entry(0, position) + KEY_WORDS * 8;
        Value(memory.load(at), memory.load(at + 8))
    }

    pub(crate) fn child<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64) -> Self {
        Self { address: memory.load(self.entry(level, position) + KEY_WORDS * 8) }
    }

    pub(crate) fn set_value<P: Pmem + ?Sized>(self, memory: &P, position: u64, value: Value) {
        let at = self.entry(0, position) + KEY_WORDS * 8;
        memory.store(at, value.0);
        memory.store(at + 8, value.1);
    }

    fn set_key<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64, key: Key) {
        let at = self.entry(level, position);
        memory.store(at, key.object);
        memory.store(at + 8, key.class);
        memory.store(at + 16, key.index);
    }

    /// Whether the key at a position is below `key`; looks at no more of it than it must.
    #[inline]
    fn is_below<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64, key: &Key) -> bool {
        let at = self.entry(level, position);
        let object = memory.load(at);
        if object != key.object {
            return object < key.object;
        }
        let class = memory.load(at + 8);
        if class != key.class {
            return class < key.class;
        }
        memory.load(at + 16) < key.index
    }

    /// The first position whose key is not below `key`.
    pub(crate) fn lower_bound<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> u64 {
        let (mut low, mut high) = (0, self.count(memory));
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.is_below(memory, level, middle, &key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The position of the child that `key` belongs to.
    pub(crate) fn child_position<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> u64 {
        let at = self.lower_bound(memory, level, key);
        if at < self.count(memory) && self.key(memory, level, at) == key { at } else { at.saturating_sub(1) }
    }

    /// Moves the entries from `from` on to `to` on, within the node.
    fn shift<P: Pmem + ?Sized>(self, memory: &P, level: u64, from: u64, to: u64) {
        let mut entries = [0; NODE_BYTES as usize];
        let bytes = ((self.count(memory) - from) * Self::entry_words(level) * 8) as usize;
        let entries = &mut entries[..bytes];
        memory.read(self.entry(level, from), entries);
        memory.write(self.entry(level, to), entries);
    }

    pub(crate) fn insert_entry<P: Pmem + ?Sized>(self, memory: &P, position: u64, key: Key, value: Value) {
        self.shift(memory, 0, position, position + 1);
        self.set_key(memory, 0, position, key);
        self.set_value(memory, position, value);
        memory.store(self.address, self.count(memory) + 1);
    }

    pub(crate) fn insert_child<P: Pmem + ?Sized>(self, memory: &P, position: u64, key: Key, child: Self) {
        let level = self.level(memory);
        self.shift(memory, level, position, position + 1);
        self.set_key(memory, level, position, key);
        memory.store(self.entry(level, position) + KEY_WORDS * 8, child.address);
        memory.store(self.address, self.count(memory) + 1);
    }

    pub(crate) fn remove_entry<P: Pmem + ?Sized>(self, memory: &P, position: u64) {
        self.shift(memory, self.level(memory), position + 1, position);
        memory.store(self.address, self.count(memory) - 1);
    }

    /// Moves the entries from `from` on to the end of `to`, a node of the same level.
    pub(crate) fn move_entries<P: Pmem + ?Sized>(self, memory: &P, from: u64, to: Self) {
        let level = self.level(memory);
        let (count, there) = (self.count(memory), to.count(memory));
        let mut entries = [0; NODE_BYTES as usize];
        let entries = &mut entries[..((count - from) * Self::entry_words(level) * 8) as usize];
        memory.read(self.entry(level, from), entries);
        memory.write(to.entry(level, there), entries);
        memory.store(to.address, there + count - from);
        memory.store(self.address, from);
    }
}

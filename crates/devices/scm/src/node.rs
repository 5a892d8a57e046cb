//! Nodes of the index: keys, entries and how they lie in 1,024 bytes of the memory.
//!
//! The index is not durable. Its nodes live in the same memory as everything else so that it costs no heap and that
//! several processes can share it; a recovery makes it anew.

use core::sync::atomic::{AtomicU64, Ordering};
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    /// Puts sorted entries into an empty leaf, at once.
    pub(crate) fn fill<P: Pmem + ?Sized>(self, memory: &P, entries: &[(Key, Value)]) {
        let mut bytes = [0; NODE_BYTES as usize];
        let words = entries.iter().flat_map(|(key, value)| [key.object, key.class, key.index, value.0, value.1]);
        let mut count = 0;
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
            count += 8;
        }
        memory.write(self.entry(0, 0), &bytes[..count]);
        memory.store(self.address, entries.len() as u64);
    }

    /// All of its words, where the memory lets them be looked at.
    #[inline]
    fn words<P: Pmem + ?Sized>(self, memory: &P) -> Option<&[AtomicU64; WORDS as usize]> {
        memory.words(self.address, WORDS)?.try_into().ok()
    }

    /// The first position whose key is not below `key`.
    #[inline]
    pub(crate) fn lower_bound<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> u64 {
        match self.words(memory) {
            Some(words) => lower_bound(level, &key, |word| word_of(words, word)),
            None => lower_bound(level, &key, |word| memory.load(self.address + word * 8)),
        }
    }

    /// The position of `key` in a leaf with its value, or where it belongs.
    #[inline]
    pub(crate) fn find<P: Pmem + ?Sized>(self, memory: &P, key: Key) -> Result<(u64, Value), u64> {
        match self.words(memory) {
            Some(words) => find(&key, |word| word_of(words, word)),
            None => find(&key, |word| memory.load(self.address + word * 8)),
        }
    }

    /// The position of the child that `key` belongs to.
    pub(crate) fn child_position<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> u64 {
        let at = self.lower_bound(memory, level, key);
        if at < self.count(memory) && self.key(memory, level, at) == key { at } else { at.saturating_sub(1) }
    }

    /// Moves the entries from `from` on to `to` on, within the node.
    fn shift<P: Pmem + ?Sized>(self, memory: &P, level: u64, from: u64, to: u64) {
        if from >= self.count(memory) {
            return;
        }
        if let Some(words) = self.words(memory) {
            let first = |position: u64| (HEADER_WORDS + position * Self::entry_words(level)) as usize;
            let (from, to, end) = (first(from), first(to), first(self.count(memory)));
            let copy = |from: usize, to: usize| {
                if let (Some(from), Some(to)) = (words.get(from), words.get(to)) {
                    to.store(from.load(Ordering::Relaxed), Ordering::Release);
                }
            };
            if from < to {
                (from..end).rev().for_each(|word| copy(word, word + to - from));
            } else {
                (from..end).for_each(|word| copy(word, word + to - from));
            }
            return;
        }
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

/// A word of a node; there are [`WORDS`].
#[inline]
fn word_of(words: &[AtomicU64; WORDS as usize], word: u64) -> u64 {
    u64::from_le(words[(word % WORDS) as usize].load(Ordering::Acquire))
}

const fn first_word(level: u64, position: u64) -> u64 {
    HEADER_WORDS + position * Node::entry_words(level)
}

/// The first position whose key is not below `key`; looks at no more of a key than it must.
#[inline]
fn lower_bound(level: u64, key: &Key, load: impl Fn(u64) -> u64) -> u64 {
    let is_below = |position: u64| {
        let at = first_word(level, position);
        let object = load(at);
        if object != key.object {
            return object < key.object;
        }
        let class = load(at + 1);
        if class != key.class {
            return class < key.class;
        }
        load(at + 2) < key.index
    };
    let (mut low, mut high) = (0, load(0));
    while low < high {
        let middle = u64::midpoint(low, high);
        if is_below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[inline]
fn find(key: &Key, load: impl Fn(u64) -> u64) -> Result<(u64, Value), u64> {
    let position = lower_bound(0, key, &load);
    let at = first_word(0, position);
    let is_there =
        position < load(0) && load(at) == key.object && load(at + 1) == key.class && load(at + 2) == key.index;
    if is_there { Ok((position, Value(load(at + 3), load(at + 4)))) } else { Err(position) }
}

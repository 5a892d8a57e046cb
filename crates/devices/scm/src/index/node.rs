//! Nodes of the index: keys, entries and how they lie in 1,024 bytes of the memory.
//!
//! The index is not durable. Its nodes live in the same memory as everything else so that it costs
//! no heap and that several processes can share it; a recovery makes it anew.

use crate::log::place::Place;
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

    /// A key that no entry has, behind all others: there are no such classes.
    pub(crate) const LAST: Self = Self { object: u64::MAX, class: u64::MAX, index: u64::MAX };

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

/// What an entry holds. Of an onode: the place of its item in the log and the bytes of its blocks.
/// Of an extent: address and length of the block. Of an attribute: the place of its item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value(pub u64, pub u64);

/// What an extent counts as in the log.
const EXTENT_ITEM_BYTES: u64 = 16;

/// The bytes in the log that an entry of the index keeps alive.
pub(crate) const fn log_bytes(key: &Key, value: Value) -> u64 {
    if key.is_extent() { EXTENT_ITEM_BYTES } else { Place(value.0).bytes() }
}

/// The words of a node, one by one; a number beyond the last begins again with the first.
trait NodeWords: Copy {
    fn get(self, word: u64) -> u64;
    fn set(self, word: u64, value: u64);

    #[inline]
    fn key(self, word: u64) -> Key {
        Key { object: self.get(word), class: self.get(word.wrapping_add(1)), index: self.get(word.wrapping_add(2)) }
    }

    #[inline]
    fn set_key(self, word: u64, key: Key) {
        self.set(word, key.object);
        self.set(word.wrapping_add(1), key.class);
        self.set(word.wrapping_add(2), key.index);
    }

    #[inline]
    fn value(self, word: u64) -> Value {
        Value(self.get(word), self.get(word.wrapping_add(1)))
    }

    #[inline]
    fn set_value(self, word: u64, value: Value) {
        self.set(word, value.0);
        self.set(word.wrapping_add(1), value.1);
    }

    /// Moves words within the node.
    #[inline]
    fn shift(self, from: u64, to: u64, count: u64) {
        self.shift_each(from, to, count);
    }

    /// The same, word by word.
    fn shift_each(self, from: u64, to: u64, count: u64) {
        if from < to {
            for word in (0..count).rev() {
                self.set(to.wrapping_add(word), self.get(from.wrapping_add(word)));
            }
        } else {
            for word in 0..count {
                self.set(to.wrapping_add(word), self.get(from.wrapping_add(word)));
            }
        }
    }
}

/// Where the memory lets them be looked at.
impl NodeWords for &[AtomicU64; WORDS as usize] {
    #[inline]
    fn get(self, word: u64) -> u64 {
        u64::from_le(self[(word % WORDS) as usize].load(Ordering::Acquire))
    }

    #[inline]
    fn set(self, word: u64, value: u64) {
        self[(word % WORDS) as usize].store(value.to_le(), Ordering::Release);
    }

    #[inline]
    fn shift(self, from: u64, to: u64, count: u64) {
        let part = |start: u64| self.as_slice().get(start as usize..).and_then(|words| words.get(..count as usize));
        let (Some(source), Some(target)) = (part(from), part(to)) else {
            // Of a damaged node.
            return self.shift_each(from, to, count);
        };
        let pairs = source.iter().zip(target);
        let copy = |(source, target): (&AtomicU64, &AtomicU64)| {
            target.store(source.load(Ordering::Acquire), Ordering::Release);
        };
        if from < to { pairs.rev().for_each(copy) } else { pairs.for_each(copy) }
    }
}

/// Where it sees each access.
struct Seen<'a, P: ?Sized>(&'a P, u64);

impl<P: ?Sized> Clone for Seen<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: ?Sized> Copy for Seen<'_, P> {}

impl<P: Pmem + ?Sized> NodeWords for Seen<'_, P> {
    fn get(self, word: u64) -> u64 {
        self.0.load(self.1 + word % WORDS * 8)
    }

    fn set(self, word: u64, value: u64) {
        self.0.store(self.1 + word % WORDS * 8, value);
    }
}

/// Evaluates an expression with the [`NodeWords`] of a node, whichever they are.
macro_rules! with_words {
    ($node:expr, $memory:expr, $words:ident => $body:expr) => {
        match $node.words($memory) {
            Some($words) => $body,
            None => {
                let $words = Seen($memory, $node.address);
                $body
            }
        }
    };
}

const COUNT: u64 = 0;
const LEVEL: u64 = 1;

/// A node: a leaf with entries of key and value, or an inner node with entries of lowest key and
/// child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub address: u64,
}

impl Node {
    pub(crate) const LEAF_ENTRIES: u64 = (WORDS - HEADER_WORDS) / (KEY_WORDS + 2);
    pub(crate) const INNER_ENTRIES: u64 = (WORDS - HEADER_WORDS) / (KEY_WORDS + 1);

    /// All of its words, where the memory lets them be looked at.
    #[inline]
    fn words<P: Pmem + ?Sized>(self, memory: &P) -> Option<&[AtomicU64; WORDS as usize]> {
        memory.words(self.address, WORDS)?.try_into().ok()
    }

    pub(crate) fn format<P: Pmem + ?Sized>(self, memory: &P, level: u64) {
        with_words!(self, memory, words => {
            words.set(COUNT, 0);
            words.set(LEVEL, level);
        });
    }

    /// Nothing is found in it any more, by whoever knows it from before.
    pub(crate) fn retire<P: Pmem + ?Sized>(self, memory: &P) {
        memory.store(self.address + LEVEL * 8, u64::MAX);
    }

    pub(crate) fn count<P: Pmem + ?Sized>(self, memory: &P) -> u64 {
        memory.load(self.address + COUNT * 8)
    }

    /// 0 for leaves.
    pub(crate) fn level<P: Pmem + ?Sized>(self, memory: &P) -> u64 {
        memory.load(self.address + LEVEL * 8)
    }

    #[inline]
    const fn entry_words(level: u64) -> u64 {
        if level == 0 { KEY_WORDS + 2 } else { KEY_WORDS + 1 }
    }

    #[inline]
    pub(crate) const fn most_entries(level: u64) -> u64 {
        if level == 0 { Self::LEAF_ENTRIES } else { Self::INNER_ENTRIES }
    }

    /// Where an entry begins in the node; a damaged position is some place in the node, too.
    #[inline]
    const fn entry(level: u64, position: u64) -> u64 {
        HEADER_WORDS.wrapping_add(position.wrapping_mul(Self::entry_words(level)))
    }

    pub(crate) fn key<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64) -> Key {
        with_words!(self, memory, words => words.key(Self::entry(level, position)))
    }

    pub(crate) fn value<P: Pmem + ?Sized>(self, memory: &P, position: u64) -> Value {
        with_words!(self, memory, words => words.value(Self::entry(0, position) + KEY_WORDS))
    }

    pub(crate) fn child<P: Pmem + ?Sized>(self, memory: &P, level: u64, position: u64) -> Self {
        Self { address: with_words!(self, memory, words => words.get(Self::entry(level, position) + KEY_WORDS)) }
    }

    pub(crate) fn set_value<P: Pmem + ?Sized>(self, memory: &P, position: u64, value: Value) {
        with_words!(self, memory, words => words.set_value(Self::entry(0, position) + KEY_WORDS, value));
    }

    /// Puts sorted entries into an empty leaf, at once.
    pub(crate) fn fill<P: Pmem + ?Sized>(self, memory: &P, entries: &[(Key, Value)]) {
        with_words!(self, memory, words => {
            for (position, (key, value)) in (0..Self::LEAF_ENTRIES).zip(entries) {
                words.set_key(Self::entry(0, position), *key);
                words.set_value(Self::entry(0, position) + KEY_WORDS, *value);
            }
            words.set(COUNT, entries.len() as u64);
        });
    }

    /// The first position whose key is not below `key`.
    #[inline]
    pub(crate) fn lower_bound<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> u64 {
        with_words!(self, memory, words => lower_bound(words, level, &key))
    }

    /// The position of `key` in a leaf with its value, or where it belongs.
    #[inline]
    pub(crate) fn find<P: Pmem + ?Sized>(self, memory: &P, key: Key) -> Result<(u64, Value), u64> {
        with_words!(self, memory, words => find(words, &key))
    }

    /// Sets the value of `key` in a leaf and returns the value before; `None` if there is no room
    /// for another entry.
    #[inline]
    pub(crate) fn insert<P: Pmem + ?Sized>(self, memory: &P, key: Key, value: Value) -> Option<Option<Value>> {
        with_words!(self, memory, words => match find(words, &key) {
            Ok((at, before)) => {
                words.set_value(Self::entry(0, at) + KEY_WORDS, value);
                Some(Some(before))
            }
            Err(at) if words.get(COUNT) < Self::LEAF_ENTRIES => {
                insert(words, at, key, value);
                Some(None)
            }
            Err(_) => None,
        })
    }

    /// The position of the child that `key` belongs to, the child, the lowest key of its span
    /// unless it is the first, and the lowest one behind.
    #[inline]
    pub(crate) fn child_of<P: Pmem + ?Sized>(self, memory: &P, level: u64, key: Key) -> Child {
        with_words!(self, memory, words => {
            let at = lower_bound(words, level, &key);
            let count = words.get(COUNT);
            let position =
                if at < count && words.key(Self::entry(level, at)) == key { at } else { at.saturating_sub(1) };
            let entry = Self::entry(level, position);
            let next = position + 1;
            Child {
                position,
                node: Self { address: words.get(entry.wrapping_add(KEY_WORDS)) },
                low: if position > 0 { Some(words.key(entry)) } else { None },
                high: if next < count { Some(words.key(Self::entry(level, next))) } else { None },
            }
        })
    }

    pub(crate) fn insert_child<P: Pmem + ?Sized>(self, memory: &P, position: u64, key: Key, child: Self) {
        with_words!(self, memory, words => {
            let level = words.get(LEVEL);
            make_room(words, level, position);
            words.set_key(Self::entry(level, position), key);
            words.set(Self::entry(level, position) + KEY_WORDS, child.address);
        });
    }

    pub(crate) fn remove_entry<P: Pmem + ?Sized>(self, memory: &P, position: u64) {
        self.remove_entries(memory, position, 1);
    }

    /// Removes as many entries from a position on.
    pub(crate) fn remove_entries<P: Pmem + ?Sized>(self, memory: &P, position: u64, removed: u64) {
        with_words!(self, memory, words => {
            let (level, count) = (words.get(LEVEL), words.get(COUNT).min(Self::INNER_ENTRIES));
            let next = position.saturating_add(removed);
            let after = count.saturating_sub(next);
            words.shift(Self::entry(level, next), Self::entry(level, position), after * Self::entry_words(level));
            words.set(COUNT, count.saturating_sub(removed));
        });
    }

    /// Moves the entries from `from` on to the end of `to`, a node of the same level.
    pub(crate) fn move_entries<P: Pmem + ?Sized>(self, memory: &P, from: u64, to: Self) {
        let level = self.level(memory);
        let (count, there) = (self.count(memory), to.count(memory));
        let mut entries = [0; NODE_BYTES as usize];
        let entries = &mut entries[..((count - from) * Self::entry_words(level) * 8) as usize];
        memory.read(self.address + Self::entry(level, from) * 8, entries);
        memory.write(to.address + Self::entry(level, there) * 8, entries);
        memory.store(to.address, there + count - from);
        memory.store(self.address, from);
    }
}

/// A child of an inner node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub position: u64,
    pub node: Node,
    /// The lowest key of its span, unless it is the first child.
    pub low: Option<Key>,
    /// The lowest key behind its span, unless it is the last.
    pub high: Option<Key>,
}

/// Moves the entries from a position on one further and counts one more.
#[inline]
fn make_room(words: impl NodeWords, level: u64, position: u64) {
    let count = words.get(COUNT).min(Node::most_entries(level) - 1);
    let moved = count.saturating_sub(position).wrapping_mul(Node::entry_words(level));
    words.shift(Node::entry(level, position), Node::entry(level, position + 1), moved);
    words.set(COUNT, count + 1);
}

#[inline]
fn insert(words: impl NodeWords, position: u64, key: Key, value: Value) {
    make_room(words, 0, position);
    words.set_key(Node::entry(0, position), key);
    words.set_value(Node::entry(0, position) + KEY_WORDS, value);
}

/// The first position whose key is not below `key`; looks at no more of a key than it must.
#[inline]
fn lower_bound(words: impl NodeWords, level: u64, key: &Key) -> u64 {
    let is_below = |position: u64| {
        let at = Node::entry(level, position);
        let object = words.get(at);
        if object != key.object {
            return object < key.object;
        }
        let class = words.get(at.wrapping_add(1));
        if class != key.class {
            return class < key.class;
        }
        words.get(at.wrapping_add(2)) < key.index
    };
    let count = words.get(COUNT);
    // New objects come last.
    if count == 0 || is_below(count.wrapping_sub(1)) {
        return count;
    }
    // Of a directory whole nodes are names.
    let is_alike = |position: u64| {
        let at = Node::entry(level, position);
        words.get(at) == key.object && words.get(at.wrapping_add(1)) == key.class
    };
    if is_alike(0) && is_alike(count.wrapping_sub(1)) {
        return partition(count, |position| words.get(Node::entry(level, position).wrapping_add(2)) < key.index);
    }
    partition(count, is_below)
}

/// The first position below `count` that is not below something, else `count`.
#[inline]
fn partition(count: u64, is_below: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = u64::midpoint(low, high);
        if is_below(middle) {
            low = middle.wrapping_add(1);
        } else {
            high = middle;
        }
    }
    low
}

#[inline]
fn find(words: impl NodeWords, key: &Key) -> Result<(u64, Value), u64> {
    let position = lower_bound(words, 0, key);
    let at = Node::entry(0, position);
    let is_there = position < words.get(COUNT) && words.key(at) == *key;
    if is_there { Ok((position, words.value(at.wrapping_add(KEY_WORDS)))) } else { Err(position) }
}

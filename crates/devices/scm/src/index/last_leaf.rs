//! Search fingers: leaves of the index that were found last, with the keys that belong to them.
//!
//! What one transaction does lies in few leaves: the new object's, its directory's, the name's.
//! Asking here first spares the way down. Any change of the tree's shape makes them void; entries
//! come and go within a leaf without that.

use crate::index::node::{Key, Node};
use core::cell::Cell;

const LEAVES: usize = 4;

/// The keys that belong to a leaf: from `low` to before `high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub low: Key,
    pub high: Key,
}

impl Span {
    /// No entry has the last key.
    pub(crate) const ALL: Self = Self { low: Key::FIRST, high: Key::LAST };
}

/// A leaf with its span, word by word so that one look touches no more of it than it must.
#[derive(Debug)]
struct LastLeaf {
    low: [Cell<u64>; 3],
    high: [Cell<u64>; 3],
    leaf: Cell<u64>,
    /// Found since it was the next one to go.
    used: Cell<bool>,
}

impl Default for LastLeaf {
    fn default() -> Self {
        let (low, high) = Default::default();
        let leaf = Self { low, high, leaf: Cell::default(), used: Cell::default() };
        leaf.clear();
        leaf
    }
}

/// Whether the key of these words is above `key`.
#[inline]
fn is_above(words: &[Cell<u64>; 3], key: &Key) -> bool {
    let object = words[0].get();
    if object != key.object {
        return object > key.object;
    }
    let class = words[1].get();
    if class != key.class {
        return class > key.class;
    }
    words[2].get() > key.index
}

impl LastLeaf {
    #[inline]
    fn contains(&self, key: &Key) -> bool {
        is_above(&self.high, key) && !is_above(&self.low, key)
    }

    fn set(&self, Span { low, high }: Span, leaf: Node) {
        for (words, key) in [(&self.low, low), (&self.high, high)] {
            words[0].set(key.object);
            words[1].set(key.class);
            words[2].set(key.index);
        }
        self.leaf.set(leaf.address);
    }

    /// No key is in a span without an end.
    fn clear(&self) {
        self.high.iter().for_each(|word| word.set(0));
        self.used.set(false);
    }
}

/// Some leaves.
#[derive(Debug, Default)]
pub(crate) struct LastLeaves {
    kept: [LastLeaf; LEAVES],
    next: Cell<usize>,
}

impl LastLeaves {
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<Node> {
        let found = self.kept.iter().find(|leaf| leaf.contains(&key))?;
        found.used.set(true);
        Some(Node { address: found.leaf.get() })
    }

    /// Keeps a leaf in place of the one kept longest, but for those that were found again since the
    /// last round: names come and go all over a directory, while its inode and the newest objects
    /// are asked for each time.
    pub(crate) fn keep(&self, span: Span, leaf: Node) {
        let mut next = self.next.get() % LEAVES;
        while self.kept[next].used.take() {
            next = (next + 1) % LEAVES;
        }
        self.kept[next].set(span, leaf);
        self.next.set(next + 1);
    }

    pub(crate) fn clear(&self) {
        self.kept.iter().for_each(LastLeaf::clear);
    }
}

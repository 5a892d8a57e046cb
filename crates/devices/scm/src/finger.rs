//! Leaves of the index that were found last, with the keys that belong to them.
//!
//! What one transaction does lies in few leaves: the new object's, its directory's, the name's. Asking here first
//! spares the way down. Any change of the tree's shape makes them void; entries come and go within a leaf without that.

use crate::node::{Key, Node};
use core::cell::Cell;

const FINGERS: usize = 4;

/// The keys that belong to a leaf: from `low` to before `high`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub low: Key,
    pub high: Option<Key>,
}

impl Span {
    pub(crate) const ALL: Self = Self { low: Key::FIRST, high: None };

    fn contains(&self, key: &Key) -> bool {
        *key >= self.low && self.high.is_none_or(|high| *key < high)
    }
}

/// Some leaves.
#[derive(Debug, Default)]
pub(crate) struct Fingers {
    kept: [Cell<Option<(Span, Node)>>; FINGERS],
    next: Cell<usize>,
}

impl Fingers {
    #[inline]
    pub(crate) fn find(&self, key: Key) -> Option<Node> {
        self.kept.iter().find_map(|kept| kept.get().filter(|(span, _)| span.contains(&key)).map(|(_, leaf)| leaf))
    }

    /// Keeps a leaf in place of the one kept longest.
    pub(crate) fn keep(&self, span: Span, leaf: Node) {
        let next = self.next.get() % FINGERS;
        self.kept[next].set(Some((span, leaf)));
        self.next.set(next + 1);
    }

    pub(crate) fn clear(&self) {
        self.kept.iter().for_each(|kept| kept.set(None));
    }
}

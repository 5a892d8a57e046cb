//! Pinned blocks: somebody reads them without the lock of the state.
//!
//! What it keeps true: as long as a block is pinned it holds what it held, whatever becomes of the
//! object that it was of. It is not handed out again, and the disk is not told that nobody needs
//! it. A place is never written twice in between.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Runs of blocks, and how many readers each has.
#[derive(Debug, Default)]
pub struct Pins {
    runs: BTreeMap<(u64, u64), u32>,
}

impl Pins {
    /// Whether nobody reads.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// One more reader of a run.
    pub fn add(&mut self, first: u64, count: u64) {
        *self.runs.entry((first, count)).or_default() += 1;
    }

    /// One of its readers is done.
    pub fn remove(&mut self, first: u64, count: u64) {
        let readers = self.runs.get_mut(&(first, count));
        debug_assert!(readers.is_some(), "blocks from {first} on are not pinned");
        match readers {
            Some(readers) if *readers > 1 => *readers -= 1,
            _ => _ = self.runs.remove(&(first, count)),
        }
    }

    /// The parts of a run, each with its length and whether it is pinned.
    #[must_use]
    pub fn split(&self, first: u64, count: u64) -> Vec<(u64, u64, bool)> {
        let (mut at, end) = (first, first + count);
        let mut parts = Vec::new();
        let mut put = |from: u64, to: u64, is_pinned: bool| {
            if from < to {
                parts.push((from, to - from, is_pinned));
            }
        };
        // In the order of their first blocks; there are about as many as there are readers.
        for (from, blocks) in self.runs.keys() {
            let (from, to) = ((*from).clamp(at, end), (from + blocks).clamp(at, end));
            if from < to {
                put(at, from, false);
                put(from, to, true);
                at = to;
            }
        }
        put(at, end, false);
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_split_at_what_is_pinned() {
        let mut pins = Pins::default();
        assert_eq!(pins.split(5, 10), [(5, 10, false)]);
        for (first, count) in [(2, 5), (8, 2), (9, 3), (8, 2), (30, 4), (14, 90)] {
            pins.add(first, count);
        }
        let parts = [(5, 2, true), (7, 1, false), (8, 2, true), (10, 2, true), (12, 2, false), (14, 1, true)];
        assert_eq!(pins.split(5, 10), parts);
        assert_eq!(pins.split(0, 2), [(0, 2, false)]);
        pins.remove(8, 2);
        assert_eq!(pins.split(8, 1), [(8, 1, true)], "it has another reader");
        for (first, count) in [(2, 5), (8, 2), (9, 3), (30, 4), (14, 90)] {
            pins.remove(first, count);
        }
        assert!(pins.is_empty());
    }
}

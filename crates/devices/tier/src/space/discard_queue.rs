//! The discard queue: freed blocks whose discard was not issued yet.
//!
//! What it keeps true: a block is in it only as long as nobody may rely on what it holds. Runs that
//! meet become one, so that the disk is told of few and long ones, a few at a time; what is handed
//! out again meanwhile it is never told of.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Requests at a checkpoint.
pub const AT_ONCE: u32 = 32;
/// Requests at the end of a session.
pub const AT_CLOSE: u32 = 4096;
/// Runs that are kept in mind. The disk is not told of what is too much.
const MOST_RUNS: usize = 1 << 16;
/// Blocks that the disk is told of in one request.
const MOST_BLOCKS: u64 = 64 << 8;

/// The runs, and what the disk was told.
#[derive(Debug, Default)]
pub struct DiscardQueue {
    runs: BTreeMap<u64, u64>,
    /// Requests so far.
    requests: u64,
    /// Blocks in them.
    blocks: u64,
}

impl DiscardQueue {
    /// Nobody needs these blocks any more.
    pub fn add(&mut self, first: u64, count: u64) {
        let (mut first, mut end) = (first, first + count);
        if count == 0 || self.runs.len() >= MOST_RUNS {
            return;
        }
        if let Some((before, blocks)) = self.runs.range(..=first).next_back().map(|(first, count)| (*first, *count))
            && before + blocks >= first
        {
            self.runs.remove(&before);
            (first, end) = (before, end.max(before + blocks));
        }
        while let Some((next, blocks)) = self.runs.range(first..=end).next().map(|(first, count)| (*first, *count)) {
            self.runs.remove(&next);
            end = end.max(next + blocks);
        }
        self.runs.insert(first, end - first);
    }

    /// These blocks are handed out again.
    pub fn taken(&mut self, first: u64, count: u64) {
        if self.runs.is_empty() {
            return;
        }
        let end = first + count;
        let before = self.runs.range(..first).next_back().filter(|(from, count)| **from + **count > first);
        let touched = before.into_iter().chain(self.runs.range(first..end)).map(|(first, count)| (*first, *count));
        for (from, count) in touched.collect::<Vec<_>>() {
            self.runs.remove(&from);
            if from < first {
                self.runs.insert(from, first - from);
            }
            if from + count > end {
                self.runs.insert(end, from + count - end);
            }
        }
    }

    /// What the disk is to be told next.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        let (first, count) = self.runs.pop_first()?;
        let now = count.min(MOST_BLOCKS);
        if now < count {
            self.runs.insert(first + now, count - now);
        }
        self.requests += 1;
        self.blocks += now;
        Some((first, now))
    }

    /// Requests so far.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Blocks in them.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Whether there is more to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// There are no blocks any more from this one on.
    pub fn forget_from(&mut self, end: u64) {
        self.taken(end, u64::MAX - end);
    }

    /// The disk does not want to know.
    pub fn forget(&mut self) {
        self.runs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn runs_that_meet_are_told_as_one() {
        let mut queue = DiscardQueue::default();
        for (first, count) in [(10, 5), (20, 5), (15, 5), (40, 1), (30, 2)] {
            queue.add(first, count);
        }
        queue.taken(12, 2);
        let told: Vec<(u64, u64)> = core::iter::from_fn(|| queue.take()).collect();
        assert_eq!(told, [(10, 2), (14, 11), (30, 2), (40, 1)]);
        assert_eq!((queue.requests, queue.blocks), (4, 16));
    }

    #[test]
    fn what_is_told_is_what_was_given_up_and_not_handed_out() {
        let mut prng = Prng::new(7);
        for _ in 0..200 {
            let mut queue = DiscardQueue::default();
            let mut wanted = [false; 128];
            for _ in 0..40 {
                let first = prng.below(120);
                let count = prng.below(8) + 1;
                let is_given_up = prng.chance(1, 2);
                let range = first as usize..(first + count) as usize;
                wanted[range].fill(is_given_up);
                if is_given_up { queue.add(first, count) } else { queue.taken(first, count) }
            }
            let mut told = [false; 128];
            while let Some((first, count)) = queue.take() {
                for block in first..first + count {
                    assert!(!core::mem::replace(&mut told[block as usize], true), "block {block} is told twice");
                }
            }
            assert_eq!(told, wanted);
        }
    }
}

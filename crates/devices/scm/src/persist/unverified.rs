//! Unverified ranges: bytes whose checksum a recovery still verifies, so that nobody may change
//! them.
//!
//! A record tells the checksum of what was written for it, and says from which record on that may
//! not have been durable. Until a later record or the superblock says more, a recovery checks these
//! bytes, however long ago they became durable, and ends the log where they are others. So they may
//! change only after that was said: a block is not used again before, and who writes in place asks
//! first. The ranges stand in a ring that all processes see; it writes no superblock itself.

use crate::medium::shared_area::{UNVERIFIED, Window};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use std::collections::BTreeMap;

/// The most ranges that one record tells.
pub(crate) const MOST_OF_RECORD: usize = 256;

/// Ranges of the memory with the number of the record that tells their checksum. No two overlap.
///
/// They stand in a ring that all processes see, in the order of records, and here so that they are
/// found.
#[derive(Debug, Default)]
pub(crate) struct UnverifiedRanges {
    ranges: BTreeMap<u64, (u64, u64)>,
    /// The entries of the ring that count.
    window: Window,
}

impl UnverifiedRanges {
    /// A record of this number tells the checksum of a range.
    pub(crate) fn insert<P: Pmem + ?Sized>(&mut self, memory: &P, address: u64, length: u64, sequence: u64) {
        UNVERIFIED.store(memory, self.window.last, [address, address.saturating_add(length), sequence]);
        self.window.last += 1;
        self.note(address, address.saturating_add(length), sequence);
    }

    fn note(&mut self, address: u64, end: u64, sequence: u64) {
        let (other, sequence) =
            self.ranges.get(&address).map_or((0, sequence), |(end, other)| (*end, sequence.max(*other)));
        self.ranges.insert(address, (other.max(end), sequence));
    }

    /// The entries of the ring that count.
    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    /// A recovery verifies nothing any more: it has just been.
    pub(crate) fn clear(&mut self) {
        self.window.first = self.window.last;
        self.ranges.clear();
    }

    /// Whether the ring has room for another record's.
    pub(crate) const fn has_room(&self) -> bool {
        self.window.len() + MOST_OF_RECORD as u64 <= UNVERIFIED.entries()
    }

    /// Comes to know what other processes did to the ring.
    pub(crate) fn follow<P: Pmem + ?Sized>(&mut self, memory: &P, window: Window) {
        let Window { first, last } = window;
        for number in self.window.last.max(first)..last {
            let [address, end, sequence] = UNVERIFIED.load(memory, number);
            self.note(address, end, sequence);
        }
        self.window = window;
        if window.is_empty() {
            self.ranges.clear();
        } else {
            let [_, _, oldest] = UNVERIFIED.load(memory, first);
            self.ranges.retain(|_, (_, of)| *of >= oldest);
        }
    }

    /// Whether a byte of the range is in one.
    pub(crate) fn overlaps(&self, address: u64, length: u64) -> bool {
        let end = address.saturating_add(length);
        let is_planted = is_planted(Bug::ScmDoubtIgnored);
        !is_planted && self.ranges.range(..end).next_back().is_some_and(|(_, (stop, _))| length > 0 && *stop > address)
    }

    /// A recovery does not check what records below this number tell.
    pub(crate) fn forget_below<P: Pmem + ?Sized>(&mut self, memory: &P, sequence: u64) {
        if self.window.is_empty() {
            return;
        }
        while !self.window.is_empty() && UNVERIFIED.load(memory, self.window.first)[2] < sequence {
            self.window.first += 1;
        }
        self.ranges.retain(|_, (_, of)| *of >= sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::UnverifiedRanges;
    use crate::medium::format::AREA_START;
    use onode_media::sim::SimPmem;

    #[test]
    fn ranges_overlap_by_bytes_and_go_by_record() {
        let memory = &SimPmem::new(AREA_START, Default::default());
        let mut unverified = UnverifiedRanges::default();
        unverified.insert(memory, 100, 50, 6);
        unverified.insert(memory, 100, 20, 7);
        unverified.insert(memory, 200, 10, 8);
        let mut other = UnverifiedRanges::default();
        other.follow(memory, unverified.window());
        for unverified in [&mut unverified, &mut other] {
            for (address, length, expected) in [(0, 100, false), (0, 101, true), (149, 1, true), (150, 50, false)] {
                assert_eq!(unverified.overlaps(address, length), expected, "{address}+{length}");
            }
            assert!(unverified.overlaps(205, u64::MAX) && !unverified.overlaps(120, 0));
        }
        unverified.forget_below(memory, 8);
        other.follow(memory, unverified.window());
        for unverified in [&unverified, &other] {
            assert!(!unverified.overlaps(100, 50) && unverified.overlaps(209, 1));
        }
        unverified.forget_below(memory, 9);
        other.follow(memory, unverified.window());
        assert!(!other.overlaps(0, u64::MAX) && other.has_room());
    }
}

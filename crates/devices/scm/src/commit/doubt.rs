//! Content that a recovery would still check, and so nobody may change.
//!
//! A record tells the checksum of what was written for it, and says from which record on that may
//! not have been durable. Until a later record or the superblock says more, a recovery checks these
//! bytes, however long ago they became durable, and ends the log where they are others. So they may
//! change only after that was said: a block is not used again before, and who writes in place asks
//! first.

use crate::core::Core;
use crate::share::shared::{DOUBTED, RING_ENTRIES};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Result;
use std::collections::BTreeMap;

/// The most ranges that one record tells.
pub(crate) const MOST_OF_RECORD: usize = 256;

/// Ranges of the memory with the number of the record that tells their checksum. No two overlap.
///
/// They stand in a ring that all processes see, in the order of records, and here so that they are
/// found.
#[derive(Debug, Default)]
pub(crate) struct Doubted {
    ranges: BTreeMap<u64, (u64, u64)>,
    /// The oldest entry of the ring, and the one after the newest.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Doubted {
    /// A record of this number tells the checksum of a range.
    pub(crate) fn insert<P: Pmem + ?Sized>(&mut self, memory: &P, address: u64, length: u64, sequence: u64) {
        DOUBTED.store(memory, self.last, [address, address.saturating_add(length), sequence]);
        self.last += 1;
        self.find(address, address.saturating_add(length), sequence);
    }

    fn find(&mut self, address: u64, end: u64, sequence: u64) {
        let (other, sequence) =
            self.ranges.get(&address).map_or((0, sequence), |(end, other)| (*end, sequence.max(*other)));
        self.ranges.insert(address, (other.max(end), sequence));
    }

    /// Whether the ring has room for another record's.
    pub(crate) const fn has_room(&self) -> bool {
        self.last - self.first + MOST_OF_RECORD as u64 <= RING_ENTRIES
    }

    /// Comes to know what other processes did to the ring.
    pub(crate) fn follow<P: Pmem + ?Sized>(&mut self, memory: &P, first: u64, last: u64) {
        for number in self.last.max(first)..last {
            let [address, end, sequence] = DOUBTED.load(memory, number);
            self.find(address, end, sequence);
        }
        (self.first, self.last) = (first, last);
        if first == last {
            self.ranges.clear();
        } else {
            let [_, _, oldest] = DOUBTED.load(memory, first);
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
    pub(crate) fn settle_below<P: Pmem + ?Sized>(&mut self, memory: &P, sequence: u64) {
        if self.first == self.last {
            return;
        }
        while self.first < self.last && DOUBTED.load(memory, self.first)[2] < sequence {
            self.first += 1;
        }
        self.ranges.retain(|_, (_, of)| *of >= sequence);
    }
}

impl<P: Pmem> Core<P> {
    /// Has the superblock say that these bytes are not to be checked any more, if they would be:
    /// they are about to change.
    pub(crate) fn settle(&mut self, address: u64, length: u64) -> Result<()> {
        if self.doubted.overlaps(address, length) { self.settle_all() } else { Ok(()) }
    }

    /// Has it say so of everything.
    pub(crate) fn settle_all(&mut self) -> Result<()> {
        if self.log.fenced.min(self.log.applied) < self.log.sequence {
            self.fence()?;
        }
        self.write_superblock(false)
    }
}

#[cfg(test)]
mod tests {
    use super::Doubted;
    use crate::medium::format::AREA_START;
    use onode_media::sim::SimPmem;

    #[test]
    fn ranges_overlap_by_bytes_and_go_by_record() {
        let memory = &SimPmem::new(AREA_START, Default::default());
        let mut doubted = Doubted::default();
        doubted.insert(memory, 100, 50, 6);
        doubted.insert(memory, 100, 20, 7);
        doubted.insert(memory, 200, 10, 8);
        let mut other = Doubted::default();
        other.follow(memory, doubted.first, doubted.last);
        for doubted in [&mut doubted, &mut other] {
            for (address, length, expected) in [(0, 100, false), (0, 101, true), (149, 1, true), (150, 50, false)] {
                assert_eq!(doubted.overlaps(address, length), expected, "{address}+{length}");
            }
            assert!(doubted.overlaps(205, u64::MAX) && !doubted.overlaps(120, 0));
        }
        doubted.settle_below(memory, 8);
        other.follow(memory, doubted.first, doubted.last);
        for doubted in [&doubted, &other] {
            assert!(!doubted.overlaps(100, 50) && doubted.overlaps(209, 1));
        }
        doubted.settle_below(memory, 9);
        other.follow(memory, doubted.first, doubted.last);
        assert!(!other.overlaps(0, u64::MAX) && other.has_room());
    }
}

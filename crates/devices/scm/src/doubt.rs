//! Content that a recovery would still check, and so nobody may change.
//!
//! A record tells the checksum of what was written for it, and says from which record on that may not have been durable.
//! Until a later record or the superblock says more, a recovery checks these bytes, however long ago they became
//! durable, and ends the log where they are others. So they may change only after that was said: a block is not used
//! again before, and who writes in place asks first.

use crate::core::Core;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Result;
use std::collections::BTreeMap;

/// Ranges of the memory with the number of the record that tells their checksum. No two overlap.
#[derive(Debug, Default)]
pub(crate) struct Doubted(BTreeMap<u64, (u64, u64)>);

impl Doubted {
    /// A record of this number tells the checksum of a range.
    pub(crate) fn insert(&mut self, address: u64, length: u64, sequence: u64) {
        let (end, sequence) = self.0.get(&address).map_or((0, sequence), |(end, other)| (*end, sequence.max(*other)));
        self.0.insert(address, (end.max(address + length), sequence));
    }

    /// Whether a byte of the range is in one.
    pub(crate) fn overlaps(&self, address: u64, length: u64) -> bool {
        let end = address.saturating_add(length);
        let is_planted = is_planted(Bug::ScmDoubtIgnored);
        !is_planted && self.0.range(..end).next_back().is_some_and(|(_, (stop, _))| length > 0 && *stop > address)
    }

    /// A recovery does not check what records below this number tell.
    pub(crate) fn settle_below(&mut self, sequence: u64) {
        self.0.retain(|_, (_, of)| *of >= sequence);
    }
}

impl<P: Pmem> Core<P> {
    /// Has the superblock say that these bytes are not to be checked any more, if they would be: they are about to change.
    pub(crate) fn settle(&mut self, address: u64, length: u64) -> Result<()> {
        if !self.doubted.overlaps(address, length) {
            return Ok(());
        }
        if self.log.fenced.min(self.log.applied) < self.log.sequence {
            self.fence()?;
        }
        self.write_superblock(false)
    }
}

#[cfg(test)]
mod tests {
    use super::Doubted;

    #[test]
    fn ranges_overlap_by_bytes_and_go_by_record() {
        let mut doubted = Doubted::default();
        doubted.insert(100, 50, 7);
        doubted.insert(200, 10, 8);
        doubted.insert(100, 20, 6);
        for (address, length, expected) in [(0, 100, false), (0, 101, true), (149, 1, true), (150, 50, false)] {
            assert_eq!(doubted.overlaps(address, length), expected, "{address}+{length}");
        }
        assert!(doubted.overlaps(205, u64::MAX) && !doubted.overlaps(120, 0));
        doubted.settle_below(8);
        assert!(!doubted.overlaps(100, 50) && doubted.overlaps(209, 1));
    }
}

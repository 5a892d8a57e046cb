//! Counts of medium operations by tag: the currency of every performance claim.

use crate::tag::IoTag;

/// Operations counted for one tag or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Block erases.
    pub erases: u64,
}

/// Operations by tag, and the virtual time they took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    by_tag: [OperationCounts; IoTag::ALL.len()],
    /// Virtual time in nanoseconds.
    pub virtual_nanoseconds: u64,
    /// Bits corrected by the error-correcting code of the medium.
    pub corrected_bits: u64,
}

impl Counters {
    /// The counts of one tag.
    #[must_use]
    pub const fn of(&self, tag: IoTag) -> OperationCounts {
        self.by_tag[tag as usize]
    }

    /// The counts of one tag, to be increased.
    pub fn of_mut(&mut self, tag: IoTag) -> &mut OperationCounts {
        &mut self.by_tag[tag as usize]
    }

    /// The counts of all tags together.
    #[must_use]
    pub fn total(&self) -> OperationCounts {
        self.by_tag.iter().fold(OperationCounts::default(), |sum, one| OperationCounts {
            reads: sum.reads + one.reads,
            programs: sum.programs + one.programs,
            erases: sum.erases + one.erases,
        })
    }
}

//! The ways in which an operation can be damaged, and which of them fit which operation.

use super::{Later, MediaOperation, WeakBlock};

/// What a power cut made of the operation that was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// Any operation: it had not begun.
    Nothing,
    /// Any operation: it was done, but never acknowledged.
    Complete,
    /// Program: so many of the data bytes are there, the rest and the spare bytes are erased.
    PrefixBytes(Prefix),
    /// Program: about forty bits, in data and spare, are not programmed.
    RandomBits,
    /// Program: the data is there, the spare bytes are erased.
    SpareLost,
    /// Program: the page is good for some reads, and then it is not.
    Unstable {
        /// Reads that are good.
        good_reads: u32,
        /// What later reads find.
        later: Later,
    },
    /// Program: the code of the page fails. Erase: that of every page of the block.
    Uncorrectable,
    /// Erase: the first half of the pages is erased, the others are as before.
    ErasePrefix,
    /// Erase: some of the pages are erased, the others are as before.
    EraseRandom,
    /// Erase: all pages read as erased, but what is programmed before a new erase is lost.
    HalfErased(WeakBlock),
    /// Erase: the pages hold random bytes.
    EraseGarbage,
}

/// How much of a page was programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// One byte.
    One,
    /// A quarter.
    Quarter,
    /// A half.
    Half,
    /// All but one byte.
    AllButOne,
}

impl Prefix {
    pub(super) const fn of(self, bytes: usize) -> usize {
        match self {
            Self::One => 1,
            Self::Quarter => bytes / 4,
            Self::Half => bytes / 2,
            Self::AllButOne => bytes.saturating_sub(1),
        }
    }
}

const PROGRAM: [Damage; 10] = [
    Damage::Nothing,
    Damage::Complete,
    Damage::PrefixBytes(Prefix::One),
    Damage::PrefixBytes(Prefix::Quarter),
    Damage::PrefixBytes(Prefix::Half),
    Damage::PrefixBytes(Prefix::AllButOne),
    Damage::RandomBits,
    Damage::Unstable { good_reads: 1, later: Later::Uncorrectable },
    Damage::Unstable { good_reads: 1, later: Later::Different },
    Damage::Uncorrectable,
];

const PROGRAM_WITH_SPARE: [Damage; 11] = {
    let mut all = [Damage::SpareLost; 11];
    let mut i = 0;
    while i < PROGRAM.len() {
        all[i] = PROGRAM[i];
        i += 1;
    }
    all
};

const ERASE: [Damage; 8] = [
    Damage::Nothing,
    Damage::Complete,
    Damage::ErasePrefix,
    Damage::EraseRandom,
    Damage::HalfErased(WeakBlock::ProgramFails),
    Damage::HalfErased(WeakBlock::ContentLost),
    Damage::EraseGarbage,
    Damage::Uncorrectable,
];

const MARK_BAD: [Damage; 2] = [Damage::Nothing, Damage::Complete];

impl Damage {
    /// The damages worth trying on `operation`; the first is always `Nothing`.
    #[must_use]
    pub fn variants_for(operation: &MediaOperation) -> &'static [Self] {
        match operation {
            MediaOperation::Program { spare, .. } if spare.is_empty() => &PROGRAM,
            MediaOperation::Program { .. } => &PROGRAM_WITH_SPARE,
            MediaOperation::Erase { .. } => &ERASE,
            MediaOperation::MarkBad { .. } => &MARK_BAD,
        }
    }

    /// Whether `operation` can be damaged so.
    #[must_use]
    pub const fn fits(self, operation: &MediaOperation) -> bool {
        match self {
            Self::Nothing | Self::Complete => true,
            Self::PrefixBytes(_) | Self::RandomBits | Self::SpareLost | Self::Unstable { .. } => {
                matches!(operation, MediaOperation::Program { .. })
            }
            Self::Uncorrectable => {
                matches!(operation, MediaOperation::Program { .. } | MediaOperation::Erase { .. })
            }
            Self::ErasePrefix | Self::EraseRandom | Self::HalfErased(_) | Self::EraseGarbage => {
                matches!(operation, MediaOperation::Erase { .. })
            }
        }
    }
}

pub(super) const fn name_of(operation: &MediaOperation) -> &'static str {
    match operation {
        MediaOperation::Program { .. } => "a program",
        MediaOperation::Erase { .. } => "an erase",
        MediaOperation::MarkBad { .. } => "a mark of a bad block",
    }
}

//! What deferred changes take: in memory, and in the piece in which a checkpoint stores them.
//!
//! Changes that only cut something off count by what is stored of them. They are short, and one
//! transaction may have thousands; in memory they take many times as much, which would say that
//! they find no place on the medium.

use crate::log::record::{Change, Piece, encoded};
use onode_object::Mutation;

/// What changes take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Size {
    /// Memory, about.
    pub memory: usize,
    /// That of units which do more than to cut something off.
    pub others: usize,
    /// What is stored of those that only do that.
    pub cuts: usize,
}

impl Size {
    /// Of the changes of one unit.
    pub fn of(changes: &[Change]) -> Self {
        let memory = bytes_of(changes);
        if is_cut(changes) {
            Self { memory, others: 0, cuts: changes.iter().map(|change| encoded(change).len()).sum() }
        } else {
            Self { memory, others: memory, cuts: 0 }
        }
    }

    /// Both.
    pub const fn plus(self, other: Self) -> Self {
        Self { memory: self.memory + other.memory, others: self.others + other.others, cuts: self.cuts + other.cuts }
    }

    /// Without those.
    pub const fn minus(self, other: Self) -> Self {
        Self {
            memory: self.memory.saturating_sub(other.memory),
            others: self.others.saturating_sub(other.others),
            cuts: self.cuts.saturating_sub(other.cuts),
        }
    }

    /// Bytes that are stored, at most.
    pub const fn stored_bytes(self) -> usize {
        self.others + self.cuts
    }

    /// The same, about: in memory changes take more than stored.
    pub const fn likely_bytes(self) -> usize {
        self.others / 2 + self.cuts
    }
}

/// Whether a unit only cuts something off.
pub fn is_cut(changes: &[Change]) -> bool {
    let cuts = |one: &Mutation| {
        matches!(
            one,
            Mutation::Remove { .. }
                | Mutation::RemoveAttribute { .. }
                | Mutation::Truncate { .. }
                | Mutation::Punch { .. }
        )
    };
    changes.iter().all(|change| matches!(change, Change::Mutation(one) if cuts(one)))
}

/// Memory that changes take, about.
fn bytes_of(changes: &[Change]) -> usize {
    let more = |change: &Change| match change {
        Change::Place { pieces, .. } => pieces.capacity() * size_of::<Piece>(),
        Change::Patch { patch, .. } => patch.middle.capacity(),
        Change::Mutation(Mutation::SetAttribute { value, .. }) => value.capacity(),
        Change::Mutation(_) => 0,
    };
    // The key and the list's head in the map.
    48 + changes.iter().map(|change| size_of::<Change>() + more(change)).sum::<usize>()
}

//! Failures that are planned ahead: the n-th operation of a kind fails, once or from then on.
//!
//! The simulator and the [`Faulty`](crate::wrap::Faulty) wrapper share this. A plan only counts
//! and answers; what a failing operation leaves behind is theirs.

use crate::error::MediaErrorKind;
use alloc::vec::Vec;

/// The kinds of operation that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum OperationKind {
    /// Read of a page.
    Read = 0,
    /// Program of a page.
    Program = 1,
    /// Erase of a block.
    Erase = 2,
    /// Flush of the medium.
    Flush = 3,
}

impl OperationKind {
    /// The error that a chip itself reports when this fails.
    #[must_use]
    pub const fn usual_error(self) -> MediaErrorKind {
        match self {
            Self::Read => MediaErrorKind::Uncorrectable,
            Self::Program => MediaErrorKind::ProgramFailed,
            Self::Erase => MediaErrorKind::EraseFailed,
            Self::Flush => MediaErrorKind::Host,
        }
    }
}

/// How long a failure lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// The operation fails; the next of its kind works again.
    Once,
    /// It and every later one of its kind fail.
    Forever,
}

/// One planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Which kind of operation fails.
    pub operation: OperationKind,
    /// Which one of that kind, counted from 0 at the start of the medium or wrapper.
    pub nth: u64,
    /// Once or for ever.
    pub repeat: Repeat,
    /// The error reported.
    pub error: MediaErrorKind,
}

impl Fault {
    /// The `nth` operation of that kind fails once with its usual error.
    #[must_use]
    pub const fn once(operation: OperationKind, nth: u64) -> Self {
        Self { operation, nth, repeat: Repeat::Once, error: operation.usual_error() }
    }

    /// The `nth` operation of that kind and all later ones fail with their usual error.
    #[must_use]
    pub const fn forever(operation: OperationKind, nth: u64) -> Self {
        Self { operation, nth, repeat: Repeat::Forever, error: operation.usual_error() }
    }

    const fn hits(&self, operation: OperationKind, number: u64) -> bool {
        self.operation as u8 == operation as u8
            && match self.repeat {
                Repeat::Once => self.nth == number,
                Repeat::Forever => self.nth <= number,
            }
    }
}

/// Planned failures and how many operations went by.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    faults: Vec<Fault>,
    seen: [u64; 4],
}

impl FaultPlan {
    /// A plan of these failures.
    #[must_use]
    pub const fn new(faults: Vec<Fault>) -> Self {
        Self { faults, seen: [0; 4] }
    }

    /// Adds a failure.
    pub fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Forgets all failures; operations are counted on.
    pub fn clear(&mut self) {
        self.faults.clear();
    }

    /// Operations of that kind so far, failed ones included.
    #[must_use]
    pub const fn seen(&self, operation: OperationKind) -> u64 {
        self.seen[operation as usize]
    }

    /// Counts one operation and tells with which error it has to fail, if it has to.
    pub fn next(&mut self, operation: OperationKind) -> Option<MediaErrorKind> {
        let number = self.seen[operation as usize];
        self.seen[operation as usize] = number + 1;
        self.faults.iter().find(|fault| fault.hits(operation, number)).map(|fault| fault.error)
    }

    /// Counts `count` operations at once if none of them has to fail; otherwise counts none and
    /// returns false.
    pub fn pass(&mut self, operation: OperationKind, count: u64) -> bool {
        let start = self.seen[operation as usize];
        let end = start + count;
        let due = |fault: &Fault| {
            fault.operation == operation && fault.nth < end && (fault.repeat == Repeat::Forever || fault.nth >= start)
        };
        if self.faults.iter().any(due) {
            return false;
        }
        self.seen[operation as usize] = end;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn once_and_forever_hit_what_they_name() {
        let mut plan =
            FaultPlan::new(vec![Fault::once(OperationKind::Read, 1), Fault::forever(OperationKind::Erase, 2)]);
        let reads: Vec<bool> = (0..4).map(|_| plan.next(OperationKind::Read).is_some()).collect();
        let erases: Vec<bool> = (0..5).map(|_| plan.next(OperationKind::Erase).is_some()).collect();
        assert_eq!(reads, [false, true, false, false]);
        assert_eq!(erases, [false, false, true, true, true]);
        assert_eq!((plan.seen(OperationKind::Read), plan.seen(OperationKind::Program)), (4, 0));
    }

    #[test]
    fn a_run_passes_only_around_a_failure() {
        let mut plan = FaultPlan::new(vec![Fault::once(OperationKind::Program, 4)]);
        assert!(plan.pass(OperationKind::Program, 4));
        assert!(!plan.pass(OperationKind::Program, 1));
        assert_eq!(plan.seen(OperationKind::Program), 4);
        assert_eq!(plan.next(OperationKind::Program), Some(MediaErrorKind::ProgramFailed));
        assert!(plan.pass(OperationKind::Program, 100));
    }
}

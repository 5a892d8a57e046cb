//! The rule by which a thread may wait for a lock with what it holds.

use super::rank::Rank;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::panic::Location;

/// A lock, and where in the source somebody takes it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    name: &'static str,
    order: Option<u16>,
    /// Which of several that are taken together.
    number: Option<usize>,
    /// Which lock it is.
    address: usize,
    place: &'static Location<'static>,
}

impl Wanted {
    /// The lock of rank `R` that is `lock`, for who called.
    #[track_caller]
    pub fn new<R: Rank, L>(lock: &L, number: Option<usize>) -> Self {
        let address = core::ptr::from_ref(lock).addr();
        Self { name: R::NAME, order: R::ORDER, number, address, place: Location::caller() }
    }

    /// The same lock, taken where this was called.
    #[track_caller]
    pub const fn here(self) -> Self {
        Self { place: Location::caller(), ..self }
    }

    /// Whether both are the same lock.
    pub const fn is_same(&self, other: &Self) -> bool {
        self.address == other.address
    }

    /// Whether who has `self` may wait for `later`.
    fn comes_before(&self, later: &Self) -> bool {
        match (self.order, later.order) {
            (Some(mine), Some(theirs)) if mine == theirs => {
                matches!((self.number, later.number), (Some(mine), Some(theirs)) if mine < theirs)
            }
            (Some(mine), Some(theirs)) => mine < theirs,
            _ => true,
        }
    }

    /// What is wrong with waiting for `self`, for who has `held`.
    pub fn broken_by(&self, held: &Self) -> Option<String> {
        if self.is_same(held) {
            return Some(format!("the lock {self} is taken by the thread that has it: {held}"));
        }
        let rule = "sync::rank has the order of locks";
        (!held.comes_before(self)).then(|| format!("the lock {self} is taken by a thread that has {held}: {rule}"))
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.name)?;
        if let Some(number) = self.number {
            write!(formatter, " {number}")?;
        }
        write!(formatter, " ({:#x}) at {}", self.address, self.place)
    }
}

//! Replacement: which content leaves the fast disk first.
//!
//! Policies are pure: they know keys and sizes, no disk, and no clock but a counter of requests
//! that is handed in. The owner asks for victims until there is room; a policy never refuses to
//! name one while it holds anything.
//!
//! What it does not do: offer a choice. There is one policy that people get, [`usual`]; the lab has
//! those that it was measured against, that of paper 4 among them.

pub mod lists;
pub(crate) mod queue;
mod tiny_lfu;

use alloc::boxed::Box;

/// What is kept and in which order it goes.
pub trait Policy: Send {
    /// Whether `key` is kept.
    fn contains(&self, key: u64) -> bool;

    /// The sizes of everything kept together.
    fn used(&self) -> u64;

    /// `key` was asked for and is kept; does nothing if it is not.
    fn hit(&mut self, key: u64, now: u64);

    /// `key` was asked for and is not kept: is it worth keeping, if room must be made for it?
    fn missed(&mut self, key: u64, size: u64, now: u64) -> bool {
        let _ = (key, size, now);
        true
    }

    /// Keeps `key`, in place of what it was kept as before.
    fn insert(&mut self, key: u64, size: u64, now: u64);

    /// Gives up what should go first, and says what that was. `None` only if nothing is kept.
    fn victim(&mut self, now: u64) -> Option<u64>;

    /// `key` is gone for other reasons than want of room; nothing is remembered of it.
    fn remove(&mut self, key: u64);

    /// Whether `key` is among what would be kept the longest.
    fn is_hot(&self, key: u64) -> bool;

    /// How often `key` was asked for of late, as far as that is known.
    fn heat(&self, key: u64) -> u8 {
        let _ = key;
        0
    }

    /// The [`heat`](Self::heat) of what would go first.
    fn least_heat(&self) -> u8 {
        0
    }

    /// `key` has at least so much heat: it is a part of what was asked for so often.
    fn warm(&mut self, key: u64, heat: u8) {
        let _ = (key, heat);
    }

    /// Keeps `key`, which was kept before a mount and had so much heat.
    fn insert_warm(&mut self, key: u64, size: u64, heat: u8) {
        self.warm(key, heat);
        self.insert(key, size, 0);
    }
}

/// Makes an empty policy for content of so many blocks in all.
pub type Build = fn(capacity: u64) -> Box<dyn Policy>;

/// The policy of a fast disk, unless somebody hands in another: the best of those that the lab
/// measured.
#[must_use]
pub fn usual(capacity: u64) -> Box<dyn Policy> {
    Box::new(tiny_lfu::TinyLfu::new(capacity))
}

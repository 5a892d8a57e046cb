//! Time as a value that is handed in, so that a whole volume replays from one seed.

use crate::sync::{Mutex, rank};

/// A moment since 1970-01-01 UTC. Seconds may be negative; nanoseconds are always 0..1e9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// The moment `nanoseconds` after 1970-01-01 UTC.
    #[must_use]
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Self { seconds: (nanoseconds / 1_000_000_000) as i64, nanoseconds: (nanoseconds % 1_000_000_000) as u32 }
    }

    /// Nanoseconds since 1970-01-01 UTC, 0 for earlier moments, saturating for very late ones.
    #[must_use]
    pub fn as_nanoseconds(self) -> u64 {
        u64::try_from(self.seconds)
            .unwrap_or(0)
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::from(self.nanoseconds))
    }
}

/// Where the time comes from. Only the access floor implements it with the system's clock.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A clock that moves only when told to; the clock of tests, of the crash explorer and of the lab.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<u64, rank::Clock>);

impl ManualClock {
    /// A clock that stands at `nanoseconds` since 1970.
    #[must_use]
    pub const fn at(nanoseconds: u64) -> Self {
        Self(Mutex::new(nanoseconds))
    }

    /// Moves the clock forward.
    pub fn advance(&self, nanoseconds: u64) {
        *self.0.lock() += nanoseconds;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanoseconds(*self.0.lock())
    }
}

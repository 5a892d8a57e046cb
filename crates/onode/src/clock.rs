//! The clock of the computer, for programs that mount a volume for real.

use onode_base::{Clock, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The system's clock, UTC, as the last tick of the kernel left it: what the kernel's own file systems take for the times of
/// files, at most some milliseconds old and several times cheaper than the moment itself. Everything below the facade gets
/// the time handed in; this is the one implementation that reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Timestamp { seconds: now.tv_sec, nanoseconds: u32::try_from(now.tv_nsec).unwrap_or(0) }
    }
}

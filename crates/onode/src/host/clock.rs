//! The clock of the computer, for programs that mount a volume for real.

use onode_base::{Clock, Timestamp};
use onode_object::ObjectDevice;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::Arc;

/// The system's clock, UTC, as the last tick of the kernel left it: what the kernel's own file
/// systems take for the times of files, at most some milliseconds old and several times cheaper
/// than the moment itself. Everything below the facade gets the time handed in; this is the one
/// implementation that reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The system's clock as it is now. For memory that several processes change: two of their changes
/// within one tick of the kernel have different times.
#[derive(Clone, Copy, Debug, Default)]
pub struct FineClock;

/// A clock that stands: all that is done has the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedClock(pub(crate) Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The clock for the files of a device.
#[must_use]
pub fn clock_for(device: &dyn ObjectDevice) -> Arc<dyn Clock> {
    if device.share().is_some() { Arc::new(FineClock) } else { Arc::new(SystemClock) }
}

impl Clock for FineClock {
    fn now(&self) -> Timestamp {
        timestamp(clock_gettime(ClockId::Realtime))
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        timestamp(clock_gettime(ClockId::RealtimeCoarse))
    }
}

fn timestamp(time: Timespec) -> Timestamp {
    Timestamp { seconds: time.tv_sec, nanoseconds: u32::try_from(time.tv_nsec).unwrap_or(0) }
}

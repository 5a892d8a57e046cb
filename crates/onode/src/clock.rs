//! The clock of the computer, for programs that mount a volume for real.

use onode_base::{Clock, Timestamp};
use std::time::SystemTime;

/// The system's clock, UTC. Everything below the facade gets the time handed in; this is the one
/// implementation that reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that is handed to everything else")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanoseconds: since.subsec_nanos() }
    }
}

//! Processor time of this process, of all its threads.

use std::time::Duration;

/// Processor time so far.
pub fn time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

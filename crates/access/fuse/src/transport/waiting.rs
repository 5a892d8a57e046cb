//! Waiting for the next request without falling asleep, while requests keep coming.
//!
//! A program that makes one call after another leaves the server idle for a few microseconds
//! between two of them; a server that sleeps meanwhile is woken by another processor, which takes
//! several times as long as the request. So the thread that answered looks at the device for a
//! moment before it goes to sleep in the read of it.
//!
//! Keeps true: one thread looks at a time; none looks if the request before came later than looking
//! lasts; whoever else wants the processor gets it between two looks, and then nobody looks for a
//! while: a thread that looks waits behind all others, one that sleeps is woken before them. Off on
//! one processor and on battery.

use crate::transport::late::LateDevice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A request that comes so many times later than looking lasts still counts as close behind the one
/// before: it had to wake the server.
const WAKING: u64 = 2;

/// How long nobody looks after the processor was wanted by others.
const REST: u64 = 300_000_000;

/// How the threads of a mount wait.
pub(crate) struct Waiting {
    device: LateDevice,
    /// How long to look; zero for not at all.
    nanoseconds: u64,
    since: Instant,
    /// When the last request was answered, in nanoseconds after `since`.
    answered: AtomicU64,
    /// The last request came soon after the one before.
    is_busy: AtomicBool,
    /// Some thread looks.
    is_looked_at: AtomicBool,
    /// Nobody looks before that, in nanoseconds after `since`.
    rests_until: AtomicU64,
    /// The last request that comes in pieces.
    in_pieces: AtomicU64,
}

impl Waiting {
    #[expect(
        clippy::disallowed_methods,
        reason = "it measures how long nothing comes; nothing of a volume depends on it"
    )]
    pub(crate) fn new(look: Duration, device: LateDevice) -> Self {
        let nanoseconds = if look.is_zero() || !may_look() { 0 } else { look.as_nanos() as u64 };
        Self {
            device,
            nanoseconds,
            since: Instant::now(),
            answered: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            is_looked_at: AtomicBool::new(false),
            rests_until: AtomicU64::new(0),
            in_pieces: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }

    /// A request has come.
    pub(crate) fn begin(&self) {
        if self.nanoseconds > 0 {
            let now = self.now();
            let idle = now.saturating_sub(self.answered.load(Ordering::Relaxed));
            let rests = now < self.rests_until.load(Ordering::Relaxed);
            self.is_busy.store(!rests && idle <= self.nanoseconds * WAKING, Ordering::Relaxed);
        }
    }

    /// Whether this is the first piece of a request that comes in pieces, which are served one
    /// after another.
    pub(crate) fn is_new(&self, request: u64) -> bool {
        self.in_pieces.swap(request, Ordering::Relaxed) != request
    }

    /// The request was answered: waits actively until there is another, or until none is expected
    /// any more.
    pub(crate) fn wait(&self) {
        if self.nanoseconds == 0 {
            return;
        }
        let begin = self.now();
        self.answered.store(begin, Ordering::Relaxed);
        let Some(device) = self.device.get().filter(|_| self.is_busy.load(Ordering::Relaxed)) else { return };
        if self.is_looked_at.swap(true, Ordering::Acquire) {
            return;
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut looked = [PollFd::new(device, PollFlags::IN)];
        let mut looked_at = begin;
        // An error is the end of the mount; the read tells.
        while poll(&mut looked, Some(&at_once)) == Ok(0) && looked_at - begin < self.nanoseconds {
            std::thread::yield_now();
            let before = std::mem::replace(&mut looked_at, self.now());
            if looked_at - before > self.nanoseconds {
                self.rests_until.store(looked_at + REST, Ordering::Relaxed);
                break;
            }
        }
        self.is_looked_at.store(false, Ordering::Release);
    }
}

/// Whether there is a processor to spare and power to spend.
fn may_look() -> bool {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors > 1 && !is_on_battery(Path::new("/sys/class/power_supply"))
}

/// Whether something in `supplies`, a folder for each supply of power, is a battery that is being
/// emptied.
fn is_on_battery(supplies: &Path) -> bool {
    let Ok(supplies) = std::fs::read_dir(supplies) else { return false };
    let says = |path: &Path| std::fs::read_to_string(path.join("status")).unwrap_or_default();
    supplies.flatten().any(|supply| says(&supply.path()).trim() == "Discharging")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::sync::{Arc, OnceLock};

    #[test]
    fn looking_begins_when_requests_come_close_together() {
        let waiting = Waiting::new(Duration::from_micros(50), LateDevice::default());
        if waiting.nanoseconds == 0 {
            return;
        }
        let is_busy = || waiting.is_busy.load(Ordering::Relaxed);
        waiting.answered.store(waiting.now(), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
        waiting.begin();
        assert!(!is_busy());
        waiting.answered.store(waiting.now() + 1_000_000, Ordering::Relaxed);
        waiting.begin();
        assert!(is_busy());
        waiting.rests_until.store(u64::MAX, Ordering::Relaxed);
        waiting.begin();
        assert!(!is_busy());
        assert!(waiting.is_new(7) && !waiting.is_new(7) && waiting.is_new(8));
    }

    #[test]
    fn looking_ends_by_itself_and_one_looks_at_a_time() {
        let (nobody, _other) = std::io::pipe().unwrap();
        let waiting = Waiting::new(Duration::from_micros(500), Arc::new(OnceLock::from(OwnedFd::from(nobody))));
        waiting.is_busy.store(true, Ordering::Relaxed);
        waiting.wait();
        assert!(!waiting.is_looked_at.load(Ordering::Relaxed));
        waiting.is_looked_at.store(true, Ordering::Relaxed);
        waiting.wait();
        assert!(waiting.is_looked_at.load(Ordering::Relaxed));
    }

    #[test]
    fn a_battery_that_is_emptied_is_seen() {
        let place = std::env::temp_dir().join(format!("onode-supplies-{}", std::process::id()));
        for (status, empties) in [("Charging", false), ("Discharging", true)] {
            let supply = place.join("BAT0");
            std::fs::create_dir_all(&supply).unwrap();
            std::fs::write(supply.join("status"), format!("{status}\n")).unwrap();
            assert_eq!(is_on_battery(&place), empties);
        }
        std::fs::remove_dir_all(&place).unwrap();
        assert!(!is_on_battery(&place));
    }
}

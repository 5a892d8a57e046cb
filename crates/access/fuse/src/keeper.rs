//! The keeper: the one thread that gives a mounted volume its sense of time.
//!
//! Nothing below has a thread of its own; about once a second this one does the volume's upkeep:
//! it writes out what has been in the cache for long enough, aborts transactions that nobody uses
//! any more, and cleans ahead of need.
//! Errors are not lost: the device remembers that a write failed, and the next call of a user
//! tells; that background work fails is a condition of the volume, which its health tells.

use onode::{Class, Error, Result, Upkeep, Volume};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two ticks.
const PERIOD: Duration = Duration::from_secs(1);
/// Between two steps of background work while there is more of it: leaves the device to the users.
const BREATH: Duration = Duration::from_millis(20);
/// How much background work is done in one step; a step is short compared with a user's patience.
const STEP: u32 = 4;
/// Most steps between two ticks.
const STEPS_MAX: u32 = 32;

/// A running keeper; ends when dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(crate) fn start(volume: &Volume) -> Result<Self> {
        let (stop, stopped) = channel();
        let upkeep = volume.upkeep();
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || keep(&upkeep, &stopped))
            .map_err(|error| Error::new(Class::General, "cannot start a thread", error.to_string()))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

fn keep(upkeep: &Upkeep, stopped: &Receiver<()>) {
    while still_running(stopped, PERIOD) {
        upkeep.tick();
        for _ in 0..STEPS_MAX {
            let more = upkeep.work(STEP).unwrap_or(false);
            if !more || !still_running(stopped, BREATH) {
                break;
            }
        }
    }
}

fn still_running(stopped: &Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

//! The scrubber: the thread that verifies a mounted volume in the background, if the mount asks for
//! it.
//!
//! About once a second it lets the file system verify what is due so that a pass takes the period
//! that was asked for; the file system gives programs the precedence. It is a thread of its own
//! because a step waits for the medium, and what the keeper writes out must not wait for that.

use onode::{Class, Error, Result};
use onode_fs::FileSystem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two turns.
const TURN: Duration = Duration::from_secs(1);
/// Until the next try of a pass that cannot go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running scrubber; ends when dropped.
#[derive(Debug)]
pub(crate) struct Scrubber {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scrubber {
    /// Scrubs once in each `period`.
    pub(crate) fn start(files: Arc<FileSystem>, period: Duration) -> Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("scrubber".to_owned())
            .spawn(move || scrub(&files, period, &stopped))
            .map_err(|error| Error::new(Class::General, "cannot start a thread", error.to_string()))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

fn scrub(files: &FileSystem, period: Duration, stopped: &Receiver<()>) {
    let mut wait = TURN;
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        // The device remembers and tells why it cannot be read at all.
        wait = if files.scrub_in_background(period.as_secs()).is_ok() { TURN } else { PATIENCE };
        // Health tells of damage at once, by number; with the name a person can do something.
        files.name_damage(&|| stopped.try_recv() == Err(TryRecvError::Empty));
    }
}

//! What a panic of one server thread means for the others: nothing more is served.
//!
//! What memory holds after a panic is not to be trusted, and what the medium holds is. The threads
//! share that memory, so each of the others ends at its next request; those that wait for one are
//! given one. The session then ends, which takes the mount away, and nothing is written back.

use onode_ring::Mailbox;
use rustix::fs::statfs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether a server thread of a mount has panicked.
pub(crate) struct Breakdown {
    has_come: AtomicBool,
    threads: usize,
    /// Where the mount is; there once it is asked for anything.
    directory: OnceLock<PathBuf>,
    /// What ends the threads that are served by io_uring, if it is.
    rings: OnceLock<Vec<Arc<Mailbox>>>,
}

impl Breakdown {
    pub(crate) const fn new(threads: usize) -> Self {
        Self { has_come: AtomicBool::new(false), threads, directory: OnceLock::new(), rings: OnceLock::new() }
    }

    pub(crate) fn is_mounted_at(&self, directory: PathBuf) {
        let _ = self.directory.set(directory);
    }

    /// Where the mount is, once that is known.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.get().map(PathBuf::as_path)
    }

    /// Requests come by io_uring.
    pub(crate) fn has_rings(&self, rings: Vec<Arc<Mailbox>>) {
        let _ = self.rings.set(rings);
    }

    /// Ends this thread without another message if a thread has panicked. What is asked gets an
    /// input/output error.
    pub(crate) fn stop_here(&self) {
        if self.has_come.load(Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("another thread panicked"));
        }
    }

    /// This thread panics: ends all others.
    pub(crate) fn come(&self) {
        if self.has_come.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(rings) = self.rings.get() {
            // A thread that waits at the device is given nothing before the mount has ended, which
            // `session` sees to.
            return rings.iter().for_each(|ring| ring.stop());
        }
        let Some(directory) = self.directory.get().cloned() else { return };
        let threads = self.threads;
        let task = move || {
            for _ in 1..threads {
                // What it answers is that there is no answer.
                let _ = statfs(&directory);
            }
        };
        // Without a thread they end with the next requests of programs.
        let _ = std::thread::Builder::new().name("breakdown".to_owned()).spawn(task);
    }
}

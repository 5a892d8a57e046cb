//! What the session gives to the adaptor it serves. The adaptor is there first, so it comes late.

use crate::transport::breakdown::Breakdown;
use fuser::{Filesystem, Notifier, Session};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The way to tell the kernel something it did not ask for.
pub(crate) type LateNotifier = Arc<OnceLock<Notifier>>;
/// A descriptor of the device that requests are read from.
pub(crate) type LateDevice = Arc<OnceLock<OwnedFd>>;

/// Both of them, and what ends all server threads; nothing is in them until the session is.
#[derive(Clone)]
pub(crate) struct Late {
    pub(crate) notifier: LateNotifier,
    pub(crate) device: LateDevice,
    pub(crate) breakdown: Arc<Breakdown>,
}

impl Late {
    pub(crate) fn new(threads: usize) -> Self {
        let breakdown = Arc::new(Breakdown::new(threads));
        Self { notifier: LateNotifier::default(), device: LateDevice::default(), breakdown }
    }

    /// The session is there, mounted at `directory`.
    pub(crate) fn come<F: Filesystem>(&self, session: &Session<F>, directory: &Path) {
        self.breakdown.is_mounted_at(directory.to_owned());
        // The first and only ones: nobody else sets them.
        let _ = self.notifier.set(session.notifier());
        // Without a descriptor more nothing waits actively.
        if let Ok(device) = session.as_fd().try_clone_to_owned() {
            let _ = self.device.set(device);
        }
    }
}

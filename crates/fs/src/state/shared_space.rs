//! The space of a device on which there are several file systems: a volume and its clones.
//!
//! Each sets aside what its files wait for, and none takes what another one has set aside. What is
//! refused for that is tried once more when the others have written: what they needed is known
//! then, and removals get the space that is kept for them.

use crate::error::Result;
use crate::file_system::FileSystem;
use onode_base::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What file systems on one device share.
#[derive(Clone)]
pub struct SharedSpace {
    /// What all of them have set aside; it may be what [`FileSystem::set_aside`] of one returns.
    pub ledger: Arc<AtomicU64>,
    /// Has all of them write what waits. It is called without a lock of any of them.
    pub write_all: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for SharedSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSpace").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl FileSystem {
    /// Other file systems use the device's space, too. `None`: there are no others any more, or
    /// this one goes.
    pub fn share_space(&self, shared: Option<&SharedSpace>) {
        self.lock().share_space(shared.cloned());
    }

    /// Makes a change; one that is refused while others have set space aside is tried once more
    /// when they have written.
    pub(crate) fn beside_others<T>(&self, change: impl Fn() -> Result<T>) -> Result<T> {
        let refused = match change() {
            Err(error) if error.kind == ErrorKind::NoSpace => error,
            done => return done,
        };
        let write_all = {
            let state = self.lock();
            state.shared_space().filter(|_| state.set_aside_by_others() > 0).map(|shared| Arc::clone(&shared.write_all))
        };
        match write_all {
            Some(write_all) => {
                write_all();
                change()
            }
            None => Err(refused),
        }
    }
}

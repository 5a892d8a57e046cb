//! What is done when the memory itself is gone, a file that was cut short or a bad page: the device
//! says so and touches it no more. What is gone reads as zeros, so nothing that was read since can
//! be believed, the index and the words that processes share least of all.

use crate::device::ScmDevice;
use crate::device::guard::DeviceGuard;
use crate::medium::slot::outer_error;
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::{Condition, Error, Result, Severity};

/// The error of everything that is asked of a memory that failed.
fn gone(failure: &onode_media::Error) -> Error {
    Error::new(ErrorKind::Media, failure.detail.clone())
}

impl<P: Pmem> ScmDevice<P> {
    /// That nothing of the memory is gone.
    #[inline]
    pub(super) fn check_memory(&self) -> Result<()> {
        match self.memory.failure() {
            None => Ok(()),
            Some(failure) => Err(gone(&failure)),
        }
    }

    /// What was found, if nothing of the memory was gone when it was looked for.
    #[inline]
    pub(super) fn believe<T>(&self, found: Result<T>) -> Result<T> {
        self.check_memory().and(found.map_err(outer_error))
    }

    /// Takes the locks, unless the memory is gone.
    #[inline]
    pub(super) fn lock_sound(&self) -> Result<DeviceGuard<'_, P>> {
        self.check_memory()?;
        let core = self.lock();
        // To wait for the lock is to touch the memory.
        self.check_memory()?;
        Ok(core)
    }

    /// What is to be told of the memory.
    pub(super) fn condition_of_memory(&self) -> Option<Condition> {
        let failure = self.memory.failure()?;
        let text = format!("{}; the volume can neither be read nor written", failure.detail);
        Some(
            Condition::new("memory-lost", Severity::Failed, text)
                .remedy("unmount it, restore the file or replace the device, and check the volume (`onode check`)"),
        )
    }
}

//! Devices that one process at a time uses and whose objects nobody maps: nothing changes but by a
//! transaction that this process hears of, so services that keep what changes can stand on them.

use crate::device::ScmDevice;
use crate::persist::mode::Mode;
use onode_media::Pmem;
use onode_object::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

impl<P: Pmem> ScmDevice<P> {
    /// Whether one process at a time uses the device and maps none of its objects.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive.load(Ordering::Relaxed)
    }

    /// Says whether one process at a time uses the device and maps none of its objects, durable on
    /// return; to be called before it is used for anything else.
    ///
    /// # Errors
    /// `Busy` if it was [joined](Self::join); `NotSupported` in another mode than
    /// [`Mode::Atomic`]; `ReadOnly`; `Media`.
    pub fn set_exclusive(&self, is_exclusive: bool) -> Result<()> {
        if self.lock.members().member() != 0 {
            return Err(Error::new(ErrorKind::Busy, "other processes may use the memory"));
        }
        check_mode(is_exclusive, self.mode)?;
        let mut core = self.lock_sound()?;
        core.store().latch().check()?;
        core.store_mut().set_exclusive(is_exclusive)?;
        self.exclusive.store(is_exclusive, Ordering::Relaxed);
        Ok(())
    }
}

/// What a service keeps of content before it is overwritten must be durable before the overwriting
/// is.
pub(super) fn check_mode(is_exclusive: bool, mode: Mode) -> Result<()> {
    if !is_exclusive || mode == Mode::Atomic {
        return Ok(());
    }
    let detail = format!("a memory that one process at a time uses has mode `atomic`, not `{}`", mode.name());
    Err(Error::new(ErrorKind::NotSupported, detail))
}

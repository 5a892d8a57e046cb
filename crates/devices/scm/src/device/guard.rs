//! The parts of a device, for whoever has its locks.
//!
//! The lock of processes is taken first, then that of this process. What was changed is left for
//! others when the guard goes; whoever unwinds leaves a change half-done, and the next one makes
//! everything anew.

use crate::core::Core;
use crate::device::ScmDevice;
use onode_base::sync::MutexGuard;
use onode_media::Pmem;
use std::ops::{Deref, DerefMut};

/// The locks, held.
pub(crate) struct DeviceGuard<'a, P: Pmem> {
    core: MutexGuard<'a, Core<P>>,
    device: &'a ScmDevice<P>,
    /// The lock of processes is given back with this.
    ends: bool,
    is_changed: bool,
}

impl<P: Pmem> ScmDevice<P> {
    /// Takes the locks; that of processes unless this thread has it already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn lock(&self) -> DeviceGuard<'_, P> {
        if self.lock.is_mine() {
            return DeviceGuard { core: self.core.lock(), device: self, ends: false, is_changed: false };
        }
        let broken = self.lock.lock();
        let mut core = self.core.lock();
        if self.memory.failure().is_none() {
            self.arrive(&mut core, broken);
        }
        DeviceGuard { core, device: self, ends: true, is_changed: false }
    }

    /// What to do first with both locks, the lock of processes from a holder that is `broken` or
    /// gave it back.
    #[inline]
    pub(super) fn arrive(&self, core: &mut Core<P>, broken: bool) {
        if broken {
            self.begin_change();
        }
        core.arrive(broken);
    }

    /// A change begins: no read goes on beside it.
    #[inline]
    fn begin_change(&self) {
        self.readers.begin_change(&*self.memory, std::thread::yield_now);
    }
}

impl<P: Pmem> DeviceGuard<'_, P> {
    /// The parts for a change of what only this process knows and no read looks at: nothing is left
    /// for others.
    #[inline]
    pub(super) fn unshared(&mut self) -> &mut Core<P> {
        &mut self.core
    }

    /// The same for a change of content.
    #[inline]
    pub(super) fn unshared_content(&mut self) -> &mut Core<P> {
        self.device.begin_change();
        &mut self.core
    }

    /// Whether the lock of processes is given back with this.
    #[inline]
    pub(super) const fn ends(&self) -> bool {
        self.ends
    }
}

impl<P: Pmem> Deref for DeviceGuard<'_, P> {
    type Target = Core<P>;

    #[inline]
    fn deref(&self) -> &Core<P> {
        &self.core
    }
}

impl<P: Pmem> DerefMut for DeviceGuard<'_, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core<P> {
        if !std::mem::replace(&mut self.is_changed, true) {
            self.device.begin_change();
        }
        &mut self.core
    }
}

impl<P: Pmem> Drop for DeviceGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.is_changed && !std::thread::panicking() {
            self.core.leave_words();
            self.device.lock.note(self.core.changes(), self.core.others_commits());
        }
        if self.ends {
            self.device.lock.unlock();
        }
    }
}

//! The parts of a device, for whoever has its locks.
//!
//! The lock of processes is taken first, then that of this process. What was changed is left for
//! others when the guard goes; whoever unwinds leaves a change half-done, and the next one makes
//! everything anew.

use crate::core::Core;
use crate::device::ScmDevice;
use crate::share::process_lock::ProcessLock;
use onode_base::sync::MutexGuard;
use onode_media::Pmem;
use std::ops::{Deref, DerefMut};

/// The locks, held.
pub(crate) struct Guard<'a, P: Pmem> {
    core: MutexGuard<'a, Core<P>>,
    lock: &'a ProcessLock<P>,
    /// The lock of processes is given back with this.
    ends: bool,
    is_changed: bool,
}

impl<P: Pmem> ScmDevice<P> {
    /// Takes the locks; that of processes unless this thread has it already.
    #[inline]
    pub(super) fn lock(&self) -> Guard<'_, P> {
        if self.lock.is_mine() {
            return Guard { core: self.core.lock(), lock: &self.lock, ends: false, is_changed: false };
        }
        let broken = self.lock.lock();
        let mut core = self.core.lock();
        if self.memory.failure().is_none() {
            core.arrive(broken);
        }
        Guard { core, lock: &self.lock, ends: true, is_changed: false }
    }
}

impl<P: Pmem> Guard<'_, P> {
    /// The parts for a change of what only this process knows: nothing is left for others.
    #[inline]
    pub(super) fn unshared(&mut self) -> &mut Core<P> {
        &mut self.core
    }
}

impl<P: Pmem> Deref for Guard<'_, P> {
    type Target = Core<P>;

    #[inline]
    fn deref(&self) -> &Core<P> {
        &self.core
    }
}

impl<P: Pmem> DerefMut for Guard<'_, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core<P> {
        self.is_changed = true;
        &mut self.core
    }
}

impl<P: Pmem> Drop for Guard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.is_changed && !std::thread::panicking() {
            self.core.leave_words();
            self.lock.note(self.core.changes(), self.core.others_commits());
        }
        if self.ends {
            self.lock.unlock();
        }
    }
}

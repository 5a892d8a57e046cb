//! A device that several processes use: one call of a host may be several calls of the device.

use crate::device::ScmDevice;
use onode_media::Pmem;
use onode_object::powers::Share;

impl<P: Pmem> Share for ScmDevice<P> {
    fn has_others(&self) -> bool {
        self.lock.members().has_others()
    }

    #[inline]
    fn begin(&self) -> u64 {
        let broken = self.lock.lock();
        if self.memory.failure().is_some() {
            // Nothing that is shared can be believed any more, and every call says so.
            return u64::MAX;
        }
        if let Some(known) = self.lock.unchanged().filter(|_| !broken) {
            return known;
        }
        let mut core = self.core.lock();
        self.arrive(&mut core, broken);
        self.lock.note(core.changes(), core.others_commits());
        core.others_commits()
    }

    #[inline]
    fn end(&self) {
        self.lock.unlock();
    }

    #[inline]
    fn has_turn(&self) -> bool {
        self.lock.is_mine()
    }
}

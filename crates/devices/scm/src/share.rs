//! Several hosts on one device: their turns.

pub mod lost;
pub mod shared;
pub mod turn;

use crate::device::ScmDevice;
use onode_media::Pmem;
use onode_object::powers::Share;

impl<P: Pmem> Share for ScmDevice<P> {
    fn has_others(&self) -> bool {
        self.turn.members.has_others()
    }

    #[inline]
    fn begin(&self) -> u64 {
        let broken = self.turn.take();
        if self.memory.failure().is_some() {
            // Nothing that is shared can be believed any more, and every call says so.
            return u64::MAX;
        }
        if let Some(known) = self.turn.unchanged().filter(|_| !broken) {
            return known;
        }
        let mut core = self.core.lock();
        core.arrive(broken);
        self.turn.note(&core);
        core.others_commits
    }

    #[inline]
    fn end(&self) {
        self.turn.give_back();
    }
}

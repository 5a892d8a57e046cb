//! Set-id bits and capabilities of files: when a change takes them away. The kernel leaves that to
//! the file system (`HANDLE_KILLPRIV_V2`), and whether the bits may stay depends on all groups of
//! whoever asks.

use crate::request::credentials::{Who, caller, caller_with_groups};
use crate::request::place::Place;
use crate::transport::late::LateNotifier;
use fuser::INodeNo;
use onode_base::sync::{Mutex, rank};
use onode_fs::Caller;
use std::collections::VecDeque;

const SET_ID_BITS: u16 = 0o6000;
/// So many threads may be between the two requests by which the kernel takes the capabilities of a
/// file away.
const DISARMED_MAX: usize = 64;

pub(crate) struct SetId {
    notifier: LateNotifier,
    /// The last files from which the kernel took the capabilities, and for whom, before it says
    /// that nothing else of them changes.
    disarmed: Mutex<VecDeque<(INodeNo, u32)>, rank::MountDisarmed>,
}

impl SetId {
    pub(crate) fn new(notifier: LateNotifier) -> Self {
        Self { notifier, disarmed: Mutex::default() }
    }

    fn has_bits(number: INodeNo, place: &Place<'_>) -> bool {
        place.attributes(place.inode(number)).is_ok_and(|found| found.permissions & SET_ID_BITS != 0)
    }

    /// Who asks for a change that takes the set-id bits away, with groups if there are such bits.
    pub(crate) fn caller(who: Who, number: INodeNo, place: &Place<'_>) -> Caller {
        if Self::has_bits(number, place) { caller_with_groups(who) } else { caller(who, 0) }
    }

    /// Does `change`, which takes the set-id bits away unless whoever asks may leave them. The
    /// kernel left that to us, so it must be told when the mode it remembers is not true any more.
    pub(crate) fn taking_bits<T>(
        &self,
        who: Who,
        number: INodeNo,
        place: &Place<'_>,
        change: impl FnOnce(&Caller) -> T,
    ) -> T {
        if !Self::has_bits(number, place) {
            return change(&caller(who, 0));
        }
        let done = change(&caller_with_groups(who));
        if let Some(notifier) = self.notifier.get() {
            // A negative offset concerns attributes only. A kernel that knows nothing of the file
            // any more has nothing to forget.
            let _ = notifier.inval_inode(number, -1, 0);
        }
        done
    }

    /// Takes note that the kernel takes the capabilities of a file away. Before a write it does so
    /// for everybody and then asks for a change of nothing, which is how it asks for a change of
    /// the owner to the present one, too.
    pub(crate) fn disarm(&self, number: INodeNo, who: Who) {
        let mut disarmed = self.disarmed.lock();
        if disarmed.len() == DISARMED_MAX {
            disarmed.pop_front();
        }
        disarmed.push_back((number, who.pid));
    }

    /// Whether a change of nothing is the end of that.
    pub(crate) fn was_disarmed(&self, number: INodeNo, who: Who) -> bool {
        let mut disarmed = self.disarmed.lock();
        let found = disarmed.iter().position(|one| *one == (number, who.pid));
        found.is_some_and(|index| disarmed.remove(index).is_some())
    }
}

//! The turn at a device that other hosts use, too.
//!
//! It is taken before any lock of this crate: a host may have it when it calls, and who waits for
//! it holds none of those.

use onode_object::ObjectDevice;
use onode_object::powers::Share;

/// The turn of this thread, for as long as the value lives; nothing if nobody shares the device, or
/// if the thread has it already.
pub(crate) struct Turn<'a>(Option<&'a dyn Share>);

impl<'a> Turn<'a> {
    /// Waits for the turn.
    pub(crate) fn take<D: ObjectDevice + ?Sized>(device: &'a D) -> Self {
        let share = device.share().filter(|share| !share.has_turn());
        if let Some(share) = share {
            share.begin();
        }
        Self(share)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(share) = self.0 {
            share.end();
        }
    }
}

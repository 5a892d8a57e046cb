//! The health of a device on memory.

use crate::core::Core;
use crate::device::ScmDevice;
use onode_media::Pmem;
use onode_object::{Condition, Health, ObjectId, Severity};

/// What was found when the device was opened.
impl<P: Pmem> ScmDevice<P> {
    /// Whether it was closed in order, of a device that is opened read-only.
    pub fn was_closed(&self) -> bool {
        self.lock().superblock.closed
    }

    /// What was promised and is lost, one sentence each.
    pub fn losses(&self) -> Vec<String> {
        self.lock().losses.sentences()
    }

    /// Objects that what is lost is known to concern.
    pub fn objects_of_losses(&self) -> Vec<ObjectId> {
        self.lock().losses.objects().collect()
    }

    /// What was damaged and made good without a loss, one sentence each.
    pub fn mended(&self) -> Vec<String> {
        self.lock().losses.mended().to_vec()
    }
}

impl<P: Pmem> Core<P> {
    /// What is wrong, and what was found wrong when it was opened.
    pub(crate) fn health(&self) -> Health {
        let mut conditions = Vec::new();
        if let Some(why) = self.read_only.as_ref().filter(|_| self.failures > 0) {
            let condition = Condition::new("read-only", Severity::Failed, format!("it accepts no changes: {why}"));
            conditions.push(condition.remedy("unmount it, run `onode check`, mount it again"));
        }
        if self.losses.is_loss() {
            let text = format!("opened although something is lost: {}", self.losses.summary());
            let condition = Condition::new("loss-accepted", Severity::Notice, text);
            conditions.push(condition.remedy("restore the files concerned from a backup; `onode repair` mends names"));
        }
        let mended = self.losses.mended().iter();
        conditions.extend(mended.map(|what| Condition::new("damage-mended", Severity::Notice, what.clone())));
        Health { conditions }
    }
}

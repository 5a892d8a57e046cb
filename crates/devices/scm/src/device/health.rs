//! The health of a device on memory: what was found when it was opened, and what failed since.

use crate::core::Core;
use crate::device::ScmDevice;
use crate::medium::slot::outer_id;
use onode_media::Pmem;
use onode_object::{Condition, Health, ObjectId, Severity};

/// What was found when the device was opened.
impl<P: Pmem> ScmDevice<P> {
    /// Whether it was closed in order, of a device that is opened read-only.
    pub fn was_closed(&self) -> bool {
        self.lock().store().superblock().closed
    }

    /// What was promised and is lost, one sentence each.
    pub fn losses(&self) -> Vec<String> {
        self.lock().losses().sentences()
    }

    /// Objects that what is lost is known to concern.
    pub fn objects_of_losses(&self) -> Vec<ObjectId> {
        self.lock().losses().objects().map(outer_id).collect()
    }

    /// What was damaged and made good without a loss, one sentence each.
    pub fn mended(&self) -> Vec<String> {
        self.lock().losses().mended().to_vec()
    }
}

/// What is wrong, and what was found wrong when it was opened.
pub(super) fn health<P: Pmem>(core: &Core<P>) -> Health {
    let mut conditions = Vec::new();
    if let Some(why) = core.store().latch().failure() {
        let condition = Condition::new("read-only", Severity::Failed, format!("it accepts no changes: {why}"));
        conditions.push(condition.remedy("unmount it, run `onode check`, mount it again"));
    }
    let losses = core.losses();
    if losses.is_loss() {
        let text = format!("opened although something is lost: {}", losses.summary());
        let condition = Condition::new("loss-accepted", Severity::Notice, text);
        conditions.push(condition.remedy("restore the files concerned from a backup; `onode repair` mends names"));
    }
    let mended = losses.mended().iter();
    conditions.extend(mended.map(|what| Condition::new("damage-mended", Severity::Notice, what.clone())));
    Health::new(conditions)
}

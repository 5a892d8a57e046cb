//! What is wrong with a volume now, and what happened to it since it was mounted.

use crate::device::TierDevice;
use crate::recover::salvaged::Salvaged;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::{Condition, Health, Severity};

impl TierDevice {
    /// What people should know: dropped records, disks that lost what they had said was durable,
    /// why the fast disk is away, blocks that are damaged.
    #[must_use]
    pub fn reports(&self) -> Vec<String> {
        let mut all: Vec<String> = self.conditions().conditions.into_iter().map(|condition| condition.text).collect();
        all.dedup();
        all
    }

    /// What was dropped because it is damaged, if the mount was asked to.
    #[must_use]
    pub fn salvaged(&self) -> Salvaged {
        self.volume.core.lock().recovery().salvaged().clone()
    }

    pub(crate) fn conditions(&self) -> Health {
        let core = self.volume.core.lock();
        let mut conditions = core.recovery().reports().to_vec();
        let slot = core.disks().fast.lock();
        if let Some(why) = &slot.lost {
            let text = format!("the fast disk is away: {why}");
            let remedy = "see to it and mount again; fast=new makes another one the fast disk";
            conditions.push(Condition::new("fast-disk-away", Severity::Degraded, text).remedy(remedy));
        } else if !slot.is_there() && core.superblock().fast.is_known {
            let text = "the volume is used without its fast disk";
            conditions.push(Condition::new("fast-disk-away", Severity::Degraded, text));
        }
        let mismatches = slot.mismatches;
        drop(slot);
        if mismatches > 0 {
            let text = format!(
                "{mismatches} blocks of copies on the fast disk were damaged; the big disk has them, and they are copied anew when they are read"
            );
            conditions.push(Condition::new("copies-damaged", Severity::Notice, text));
        }
        if let Some(why) = core.latch().failure() {
            let remedy = "mount the volume again when the disk is well";
            conditions.push(Condition::new("read-only", Severity::Failed, why).remedy(remedy));
        }
        let figures = core.buffers().figures();
        let damaged = figures.damaged_blocks.saturating_sub(figures.repaired_blocks);
        if damaged > 0 {
            let text =
                format!("{damaged} blocks of content on the big disk did not have their checksums when they were read");
            let remedy = "`onode check` tells which files they are of; restore those from a backup";
            conditions.push(Condition::new("blocks-damaged", Severity::Failed, text).remedy(remedy));
        }
        let count = figures.repaired_blocks + core.index().repaired_nodes();
        if count > 0 {
            let text = format!("{count} damaged blocks of the big disk were written again from their copies");
            conditions.push(Condition::new("blocks-repaired", Severity::Notice, text));
        }
        Health::new(conditions)
    }
}

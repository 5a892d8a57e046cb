//! What is wrong with the volume now, and what happened to it at its mount.

use crate::cleaner::Cleaner;
use crate::core::Core;
use crate::medium::layout::End;
use crate::space::segments::SegmentState;
use alloc::format;
use onode_object::{Condition, Health, Severity};

/// One segment in so many may be bad from the start or wear out before anybody is told.
const BAD_SHARE: u32 = 50;

/// All of it, the worst kinds last.
pub fn health(core: &Core) -> Health {
    let mut conditions = core.events().to_vec();
    if let Some(why) = core.checkpoints().memory_lost() {
        let text = format!("the memory beside the flash is not used any more: {why}; the flash has everything");
        let remedy = "`onode attach` the mount, which fills it anew; give it a larger one if it was full";
        conditions.push(Condition::new("memory-given-up", Severity::Degraded, text).remedy(remedy));
    }
    let table = core.log().table();
    let (bad, failing) = (table.in_state(SegmentState::Bad), table.in_state(SegmentState::Failing));
    let segments = core.log().layout().segments;
    if failing > 0 || bad > segments / BAD_SHARE {
        let text = format!("{} of {segments} segments are retired or about to be", bad + failing);
        let remedy = "copy the data to another medium before it wears out";
        conditions.push(Condition::new("bad-blocks", Severity::Degraded, text).remedy(remedy));
    }
    let known = End::ALL.into_iter().any(|end| core.checkpoints().ring().is_at(end));
    if known
        && core.log().layout().superblocks.at_both_ends()
        && let Some(end) = End::ALL.into_iter().find(|end| !core.checkpoints().ring().is_at(*end))
    {
        let place = if end == End::Start { "start" } else { "end" };
        let text = format!("the superblock at the {place} of the medium is not there: only the other one is left");
        let remedy = "a mount that may write writes it at the next change; if that does not help its blocks are bad";
        conditions.push(Condition::new("superblock-missing", Severity::Degraded, text).remedy(remedy));
    }
    let restored = core.log().store().restored().count();
    if restored > 0 {
        let text = format!("{restored} pages of the index are damaged and were read from their copies");
        let remedy = "the next change writes what lies there anew; so does `onode repair`";
        conditions.push(Condition::new("page-restored", Severity::Degraded, text).remedy(remedy));
    }
    let rebuilt = core.log().store().pages().rebuilt_pages();
    if rebuilt > 0 {
        let left = core.log().store().pages().to_move().len();
        let text =
            format!("{rebuilt} pages could not be read and were found again from parity, {left} are still to be moved");
        let remedy = "they are moved in the background; if there are more every day, replace the medium";
        conditions.push(Condition::new("page-rebuilt", Severity::Degraded, text).remedy(remedy));
    }
    let may_empty = Cleaner::may_empty(core.log(), &core.room());
    let flipping = core.cleaner().refresh().stuck(may_empty);
    if flipping > 0 {
        let text = format!(
            "bits flip in {flipping} segments, near the limit of correction, and what is there cannot be moved"
        );
        let remedy = "mount it for writing with some space free: then it is moved in the background";
        conditions.push(Condition::new("bits-flip", Severity::Degraded, text).remedy(remedy));
    }
    if core.checkpoints().parity_pending() && !may_empty {
        let text = "files may have less parity than they wish: what they have cannot be moved";
        let remedy = "mount it for writing with some space free: then it is moved in the background";
        conditions.push(Condition::new("parity-waits", Severity::Degraded, text).remedy(remedy));
    }
    let damaged = core.log().store().pages().damaged_reads();
    if damaged > 0 || core.log().table().stuck() > 0 {
        let text = format!(
            "pages that were read are damaged: {damaged} reads failed, {} segments cannot be cleaned",
            core.log().table().stuck()
        );
        let remedy = "`onode check` names the files; restore them from a backup, or `onode repair --drop-damaged`";
        conditions.push(Condition::new("blocks-damaged", Severity::Failed, text).remedy(remedy));
    }
    if let Some((reads, last)) = core.log().store().pages().refused_reads() {
        let text = format!("{reads} reads of the medium failed, and what is there may be gone; the last one: {last}");
        let remedy = "see that image or device are there with all their length; then unmount it, and `onode check`";
        conditions.push(Condition::new("reads-failed", Severity::Failed, text).remedy(remedy));
    }
    if let Some(why) = core.log().store().latch().why().filter(|_| !core.options().read_only) {
        let remedy = "unmount it, then `onode check` and `onode repair`";
        let condition = Condition::new("read-only", Severity::Failed, format!("no changes are accepted: {why}"));
        conditions.push(condition.remedy(remedy));
    }
    Health::new(conditions)
}

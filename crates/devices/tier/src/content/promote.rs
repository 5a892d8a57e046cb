//! Objects are copied to the fast disk because somebody asked for it.
//!
//! What it keeps true: what is copied is read from the big disk and verified, without the lock of
//! the state. Its blocks are pinned until they are copied, so that no copy is left of what was
//! given up meanwhile.

use crate::commit::Volume;
use crate::content::plan::{ReadPlan, Source};
use crate::core::Core;
use crate::fast::{Offered, Piece, Refusal};
use crate::medium::layout::BLOCK;
use crate::space::extent::Extent;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Blocks that are looked at in one go.
const WINDOW: u64 = 4096;

/// What one step of a promotion did.
pub struct Step {
    /// Blocks copied.
    pub blocks: u64,
    /// Why it ended.
    pub refused: Option<Refusal>,
    /// Where it goes on.
    pub next: Option<u64>,
}

impl Volume {
    /// Copies the content of an object from block `at` on, a window of it.
    /// `forced`: somebody waits for it, so that the day's budget does not hold.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub fn promote_some(&self, object: ObjectId, at: u64, forced: bool) -> Result<Step> {
        let (first, last, disks) = self.look(|core, _| {
            let last = core.index_mut().known(object)?.size.div_ceil(BLOCK);
            let first = core.index_mut().next_extent(object, at, last)?.map(|(first, _)| first);
            Ok((first, last, Arc::clone(core.disks())))
        })?;
        let mut step = Step { blocks: 0, refused: None, next: None };
        let Some(mut from) = first else { return Ok(step) };
        let end = (from + WINDOW).min(last);
        while let Some((mut plan, piece)) = self.look(|core, _| plan_copy(core, object, from, end))? {
            from = piece.index + u64::from(piece.blocks);
            let copy = |content: &[u8]| {
                let taken = disks.fast.lock().with(|fast| fast.promote(&piece, content, forced));
                taken.unwrap_or(Offered::Refused(Refusal::Away))
            };
            let found = disks.fetch(&mut plan.wanted, Source::Big);
            let found = found.ok().filter(|found| found.unsound.is_empty());
            let mut taken = found.is_some().then(|| copy(plan.wanted.first().map_or(&[], |it| &it.bytes[..])));
            let mut core = self.core.lock();
            core.unpin(&plan);
            if let Some(found) = &found {
                core.count_read(found);
            } else if let Some(content) = read_again(&mut core, object, &plan)? {
                taken = Some(copy(&content));
            }
            match taken {
                Some(Offered::Taken) => step.blocks += u64::from(piece.blocks),
                // What was not sound is not the object's any more.
                None | Some(Offered::Refused(Refusal::Held)) => {}
                Some(Offered::Refused(refusal)) => {
                    step.refused = Some(refusal);
                    return Ok(step);
                }
            }
        }
        step.next = Some(end).filter(|end| *end < last);
        Ok(step)
    }
}

/// The next extent of an object in `from..end` that has no copy, pinned.
fn plan_copy(core: &mut Core, object: ObjectId, mut from: u64, end: u64) -> Result<Option<(ReadPlan, Piece)>> {
    let onode = core.index_mut().known(object)?;
    while let Some((index, extent)) = core.index_mut().next_extent(object, from, end)? {
        from = index + extent.blocks();
        let class = onode.hints.placement_class;
        let (block, born, blocks) = (extent.block, extent.born, extent.blocks() as u32);
        let piece = Piece { block, born, blocks, object: object.0, index, class };
        let copied = core.disks().fast.lock().get().map_or(0, |fast| fast.copied(&piece));
        if copied == extent.blocks() {
            continue;
        }
        let plan = ReadPlan::of_run(object, class, index, extent);
        core.pin(&plan);
        return Ok(Some((plan, piece)));
    }
    Ok(None)
}

/// The content of a planned extent, read under the lock; `None` if it is not the object's any more.
fn read_again(core: &mut Core, object: ObjectId, plan: &ReadPlan) -> Result<Option<Vec<u8>>> {
    let Some((index, extent)) = plan.wanted.first().map(|it| (it.at, it.extent.clone())) else { return Ok(None) };
    let now: Vec<(u64, Extent)> = core.index_mut().extents(object, index, index + extent.blocks())?;
    if now.first() != Some(&(index, extent.clone())) {
        return Ok(None);
    }
    core.reader().read_stored(object, index, &extent, Source::Big).map(Some)
}

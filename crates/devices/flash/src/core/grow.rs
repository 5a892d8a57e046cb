//! A volume that grows into a medium that became larger.
//!
//! Everything stays where it is: segments are numbered from the start of the medium, so those that
//! come follow those that were. What moves are the superblocks at the far end. Order:
//!
//! 1. a checkpoint with everything in its place, which counts whatever comes of the rest;
//! 2. the medium takes up its new blocks, and the new far end is erased;
//! 3. a checkpoint whose segment table has the new segments; its superblock, at the start first,
//!    tells the new size. Until it is there nothing was done to what the one before refers to:
//!    segments with the far superblocks of before are held until then.

use super::Core;
use super::mount::{bad_segments, limits};
use crate::medium::errors::from_media;
use crate::medium::format::BlobReference;
use crate::medium::layout::{End, Layout};
use crate::medium::ring;
use crate::space::segments::{SegmentState, SegmentTable};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::MediaErrorKind;
use onode_object::{Condition, Error, Result, Severity};

/// Why a volume with a memory that nobody finds again keeps its size.
pub(super) const WITHOUT_FINDER: &str = "a memory is beside the flash: detach it first, and attach it again";

impl Core {
    /// How many erase blocks the medium has room for now.
    pub fn most_blocks(&mut self) -> Result<u32> {
        let most = self.log.medium().nand().most_blocks();
        most.map_err(|error| from_media("measure the medium", &error))
    }

    /// Bytes of an erase block.
    pub const fn block_bytes(&self) -> u64 {
        let shape = &self.log.layout().geometry;
        shape.page_bytes as u64 * shape.pages_per_block as u64
    }

    /// Grows to `blocks` erase blocks of the medium, which is made larger for that if it can be. A
    /// memory beside the flash knows where everything lies: it is given up first, and filled anew.
    pub fn grow(&mut self, blocks: u32) -> Result<()> {
        self.log.store().latch().check()?;
        let before = *self.log.layout();
        let grown = self.check_growth(&before, blocks)?;
        self.stop_shrinking();
        self.without_memory("the volume grew", |core| core.grow_alone(&before, &grown))
    }

    /// Does what changes where things lie. A memory beside the flash is given up for that, because
    /// of `why`, and filled anew.
    pub(super) fn without_memory(&mut self, why: &str, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.index.entries().memory().is_none() {
            return change(self);
        }
        let Some(finder) = self.finder() else {
            return Err(Error::new(ErrorKind::Invalid, WITHOUT_FINDER));
        };
        self.give_memory_up(why)?;
        let outcome = change(self);
        let found = finder.find();
        if let Err(error) = found.and_then(|(memory, options)| self.attach_memory(memory, &options, &mut |_| {})) {
            let text = format!("the memory beside the flash was not attached again when {why}: {error}");
            self.events.push(Condition::new("memory-not-attached", Severity::Notice, text));
        }
        outcome
    }

    /// Writes a checkpoint with everything in its place, before the far end changes. Its superblock
    /// has to stand at the start: should the power fail before the new far end has one, nothing
    /// else tells where the old one is, or was.
    pub(super) fn checkpoint_at_start(&mut self) -> Result<()> {
        self.checkpoint(true)?;
        if self.checkpoints.ring().is_at(End::Start) {
            return Ok(());
        }
        let why = "no superblock can be written at the start of the medium; copy the files to another one";
        Err(Error::new(ErrorKind::Media, why))
    }

    /// Has this layout from now on, in memory; `divide` gives the segment table its segments, and
    /// the places of the pieces of before back.
    pub(super) fn have_layout(
        &mut self,
        layout: &Layout,
        divide: impl FnOnce(&mut SegmentTable) -> Vec<BlobReference>,
    ) {
        self.log.medium().set_layout(*layout);
        for piece in divide(self.log.table_mut()) {
            self.log.release(piece.location.get(), u64::from(piece.length.get()));
        }
        self.log.set_segments(layout.segments);
        let options = self.options;
        self.index.entries_mut().nodes_mut().set_limits(limits(layout, &options));
        self.checkpoints.resize(&options, layout.geometry.pages(), layout.superblocks.features(&layout.geometry));
    }

    /// Grows a volume without a memory beside it.
    fn grow_alone(&mut self, before: &Layout, grown: &Layout) -> Result<()> {
        let blocks = grown.geometry.blocks;
        self.prepare_writing()?;
        self.checkpoint_at_start()?;
        let store = self.log.medium();
        if store.nand().geometry().blocks < blocks {
            // Nothing was written yet: a medium that refuses leaves the volume as it is.
            store.resize_medium(|nand| nand.grow(blocks)).map_err(|error| match error.kind {
                MediaErrorKind::OutOfRange | MediaErrorKind::Invalid => Error::new(ErrorKind::Invalid, error.detail),
                _ => from_media("grow", &error),
            })?;
        }
        for block in grown.superblocks.at(End::Far) {
            self.log.medium().write("clear superblocks", |nand| ring::clear_block(nand, block))?;
        }
        self.take_up(before, grown)?;
        if is_planted(Bug::GrownTooEarly) {
            self.checkpoints.write_superblock(&mut self.index, &mut self.log, false)?;
        }
        if is_planted(Bug::GrownUnrecorded) {
            return Ok(());
        }
        self.checkpoint(true)?;
        for block in before.superblocks.at(End::Far).filter(|block| grown.superblocks.end_of(*block) != End::Far) {
            self.log.medium().write("clear superblocks", |nand| ring::clear_block(nand, block))?;
        }
        self.checkpoints.write_last_superblock(&mut self.index, &mut self.log)
    }

    /// The division of the medium when the volume has `blocks` of it.
    fn check_growth(&self, before: &Layout, blocks: u32) -> Result<Layout> {
        let invalid = |detail| Err(Error::new(ErrorKind::Invalid, detail));
        if blocks < before.geometry.blocks {
            return invalid(format!("{blocks} erase blocks are fewer than the {} there are", before.geometry.blocks));
        }
        let grown = before.grown(blocks)?;
        if !SegmentTable::can_describe(&grown) {
            let most = u64::from(SegmentTable::most_segments(before)) * u64::from(before.blocks_per_segment);
            let detail = format!(
                "a volume with segments as short as these, of {} KiB, has at most {} MiB; make a new one for more",
                before.segment_bytes() / 1024,
                (most * self.block_bytes()) >> 20
            );
            return invalid(detail);
        }
        Ok(grown)
    }

    /// Has the segments of `grown` from now on, in memory.
    fn take_up(&mut self, before: &Layout, grown: &Layout) -> Result<()> {
        let bad = bad_segments(self.log.medium().nand(), grown, before.segments)?;
        let far = before.superblocks.at(End::Far);
        let held: BTreeSet<u32> = grown.segments_with(before.segments, far).collect();
        let state = |segment: u32| match (bad.contains(&segment), held.contains(&segment)) {
            (true, _) => SegmentState::Bad,
            (false, true) => SegmentState::Held,
            (false, false) => SegmentState::Free,
        };
        self.have_layout(grown, |table| table.grow(grown, state));
        Ok(())
    }
}

//! Content that changes its object: from an object to a version of it, or back.
//!
//! What it keeps true: whole blocks keep their places, their births and so their copies on the fast
//! disk, and nothing of them is read or written. Parts of blocks at the ends of a range are copied.

use super::Applier;
use crate::medium::errors::{within, within_mut};
use crate::medium::layout::BLOCK;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::planted::{Bug, is_planted};
use onode_object::{ObjectId, Result};

/// Who gives content, and who gets it.
#[derive(Clone, Copy)]
pub(super) struct Handover {
    /// Who has it now.
    pub from: ObjectId,
    /// Who gets it.
    pub to: ObjectId,
}

impl Applier<'_> {
    /// Gives the bytes in `range`, as far as there are so many.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub(super) fn move_content(&mut self, handover: Handover, range: Range<u64>) -> Result<()> {
        let (source, target) = (self.reader.index.known(handover.from)?, self.reader.index.known(handover.to)?);
        self.commits.note_class(target.hints.placement_class);
        let (start, end) = (range.start, range.end.min(source.size));
        if start >= end {
            return Ok(());
        }
        if !source.has_blocks {
            return self.move_inline(handover, start..end);
        }
        // The last block goes whole if nothing of the other object lies behind its content.
        let takes_last = end == source.size && target.size <= end;
        let last = if takes_last { end.div_ceil(BLOCK) } else { end / BLOCK };
        let first = start.div_ceil(BLOCK);
        if first >= last {
            let middle = end.min(first * BLOCK);
            self.move_part(handover, start..middle)?;
            return self.move_part(handover, middle..end);
        }
        self.move_part(handover, start..first * BLOCK)?;
        self.move_blocks(handover, first..last, end.min(last * BLOCK))?;
        self.move_part(handover, last * BLOCK..end)
    }

    /// Gives bytes of an object that lie in the tree.
    fn move_inline(&mut self, handover: Handover, range: Range<u64>) -> Result<()> {
        let mut inline = self.reader.index.inline(handover.from)?;
        let written = range.end.min(inline.len() as u64).max(range.start);
        if range.start < written {
            let part = range.start as usize..written as usize;
            let bytes = within(&inline, part.clone())?.to_vec();
            let target = self.reader.index.known(handover.to)?;
            self.write(handover.to, target, range.start, &bytes)?;
            if written == inline.len() as u64 {
                inline.truncate(part.start);
            } else {
                within_mut(&mut inline, part)?.fill(0);
            }
            self.reader.index.put_inline(handover.from, inline)?;
        }
        self.make_hole(handover.to, written..range.end)
    }

    /// Gives bytes that lie in one block.
    fn move_part(&mut self, handover: Handover, range: Range<u64>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let block = range.start / BLOCK;
        let has_content = self.reader.buffers.pending().get(handover.from.0, block).is_some()
            || !self.reader.index.extents(handover.from, block, block + 1)?.is_empty();
        if !has_content {
            return self.make_hole(handover.to, range);
        }
        let bytes = self.block(handover.from, block)?;
        let part = (range.start - block * BLOCK) as usize..(range.end - block * BLOCK) as usize;
        let target = self.reader.index.known(handover.to)?;
        self.write(handover.to, target, range.start, within(&bytes, part)?)?;
        let mut source = self.reader.index.known(handover.from)?;
        self.clear(handover.from, &mut source, range.start, range.end)?;
        self.reader.index.put_onode(handover.from, &source)
    }

    /// Makes bytes of an object a hole, to which it grows if it is smaller.
    fn make_hole(&mut self, object: ObjectId, range: Range<u64>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let onode = self.reader.index.known(object)?;
        let size = onode.size;
        if range.start < size {
            self.punch(object, onode, range.start, range.end - range.start)?;
        }
        if range.end <= size {
            return Ok(());
        }
        let onode = self.reader.index.known(object)?;
        self.truncate(object, onode, range.end)
    }

    /// Gives whole blocks; the other object has at least `size` bytes then.
    fn move_blocks(&mut self, handover: Handover, blocks: Range<u64>, size: u64) -> Result<()> {
        let Handover { from, to } = handover;
        let Range { start: first, end: last } = blocks;
        let mut target = self.reader.index.known(to)?;
        self.use_blocks(to, &mut target)?;
        self.drop_blocks(to, &mut target, first, last)?;
        // Somebody uses these places all the time: they are not given up.
        let mut stored = Vec::new();
        self.reader.index.drop_extents(from, first, last, &mut stored)?;
        if is_planted(Bug::TierMovedGivenUp) {
            self.give_up_all(&stored);
        }
        let stays = is_planted(Bug::TierMovedPendingStays);
        let mut moved = if stays { 0 } else { self.reader.buffers.move_to(from, to, first..last) };
        if moved > 0 {
            self.reader.index.mark_extents(to, first, last)?;
        }
        for (at, extent) in stored {
            moved += extent.blocks();
            self.reader.index.put_extent(to, at, &extent)?;
        }
        target.blocks += moved;
        target.size = target.size.max(size);
        self.reader.index.put_onode(to, &target)?;
        let mut source = self.reader.index.known(from)?;
        source.blocks = source.blocks.saturating_sub(moved);
        self.reader.index.put_onode(from, &source)
    }
}

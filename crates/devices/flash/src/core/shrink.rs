//! A volume that becomes smaller than its medium, or together with it.
//!
//! Segments keep their numbers, so what lies behind the new end moves in front of it, as the
//! cleaner moves things, a little at a time while the volume is in use. Order:
//!
//! 1. what lies in front of the new end is cleaned until enough is free there; then segments behind
//!    it are not opened any more, and those being filled there are closed;
//! 2. everything there moves; a power cut forgets that the volume was about to shrink, no more;
//! 3. a checkpoint with everything in front of the new end, whose superblock stands at the start;
//! 4. the blocks for superblocks at the new far end are erased, then those at the old one: nothing
//!    may be found there later, by whoever looks where the medium ends;
//! 5. a checkpoint whose segment table ends where the new volume does; its superblock, at the start
//!    first, tells the new size;
//! 6. the medium gives back what is behind, if it can.

use super::Core;
use super::grow::WITHOUT_FINDER;
use super::mount::limits;
use crate::commit::checkpoint::checkpoint_pages;
use crate::medium::errors::from_media;
use crate::medium::layout::{End, Layout};
use crate::medium::ring;
use crate::space::segments::{Segment, SegmentState};
use alloc::format;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::Gap;
use onode_object::{Error, Result};

/// What is under way.
#[derive(Debug)]
pub(super) struct Shrinking {
    /// The volume that it is becoming.
    layout: Layout,
    /// Steps in which room is yet made in front of the new end. They are bounded: steps that gain
    /// nothing, because as much is written meanwhile, would only wear the medium out.
    gathering: u32,
}

/// So often segments that are being filled behind the new end are closed: a journal goes on in the
/// segment that was reserved for it.
const CLOSINGS: usize = 3;

impl Core {
    /// About the fewest erase blocks with which there is room for all that is in the volume; those
    /// that it has if it cannot shrink.
    pub fn fewest_blocks(&self) -> u32 {
        let now = *self.log.layout();
        let has_room = |blocks: u32| now.shrunk(blocks).is_ok_and(|shrunk| self.is_enough(&shrunk));
        let (mut enough, mut too_few) = (now.most_shrunk(), 0);
        if !has_room(enough) {
            return now.geometry.blocks;
        }
        while enough - too_few > 1 {
            let blocks = too_few + (enough - too_few) / 2;
            if has_room(blocks) { enough = blocks } else { too_few = blocks }
        }
        enough
    }

    /// Applies what a mount after a crash has deferred: until then what it frees counts as used.
    fn settle(&mut self) -> Result<()> {
        if self.index.has_deferred() { self.volume().apply_deferred_in_steps() } else { Ok(()) }
    }

    /// Whether everything has room in a volume of this layout.
    fn is_enough(&self, shrunk: &Layout) -> bool {
        let dirty_limit = limits(shrunk, &self.options).dirty_bytes;
        let pages = checkpoint_pages(&self.options, shrunk.geometry.pages());
        self.room().resized(shrunk.segments, dirty_limit, pages).is_enough()
    }

    /// Bytes that have yet to move before it is smaller.
    pub fn moving_bytes(&self) -> u64 {
        self.log.table().bytes_behind_end()
    }

    /// Begins to shrink to `blocks` erase blocks, whatever was under way: moves nothing yet.
    pub fn begin_shrinking(&mut self, blocks: u32) -> Result<()> {
        self.log.store().latch().check()?;
        self.stop_shrinking();
        self.settle()?;
        let shrunk = self.log.layout().shrunk(blocks)?;
        if !self.is_enough(&shrunk) {
            let (fewest, unit) = (self.fewest_blocks(), self.block_bytes());
            let detail = format!(
                "what is in the volume has no room in {} bytes; about {} are needed",
                u64::from(blocks) * unit,
                u64::from(fewest) * unit
            );
            return Err(Error::new(ErrorKind::NoSpace, detail));
        }
        if self.index.entries().memory().is_some() && self.finder().is_none() {
            return Err(Error::new(ErrorKind::Invalid, WITHOUT_FINDER));
        }
        self.log.table_mut().plan_end(shrunk.segments);
        self.index.entries_mut().nodes_mut().set_limits(limits(&shrunk, &self.options));
        let gathering = 2 * self.log.layout().segments;
        self.shrinking = Some(Shrinking { layout: shrunk, gathering });
        Ok(())
    }

    /// The volume stays as large as it is.
    pub fn stop_shrinking(&mut self) {
        if self.shrinking.take().is_some() {
            let layout = *self.log.layout();
            self.log.table_mut().end_at(layout.segments);
            self.index.entries_mut().nodes_mut().set_limits(limits(&layout, &self.options));
        }
    }

    /// Shrinks a little further; true when it is done. After a refusal the volume stays as large as
    /// it is.
    pub fn shrink_some(&mut self) -> Result<bool> {
        let Some(shrinking) = &mut self.shrinking else { return Ok(true) };
        let shrunk = shrinking.layout;
        shrinking.gathering = shrinking.gathering.saturating_sub(1);
        let may_gather = shrinking.gathering > 0;
        let outcome = self.shrink_towards(&shrunk, may_gather);
        if outcome.is_err() {
            self.stop_shrinking();
        }
        outcome
    }

    fn shrink_towards(&mut self, shrunk: &Layout, may_gather: bool) -> Result<bool> {
        self.log.store().latch().check()?;
        self.prepare_writing()?;
        let (cleaner, mut volume) = self.parts();
        if !volume.log.table().has_ended() {
            if !cleaner.gather_within(&mut volume)? {
                let why = "no room comes to be in front of the new end: as much is written meanwhile";
                return if may_gather { Ok(false) } else { Err(Error::new(ErrorKind::NoSpace, why)) };
            }
            volume.log.table_mut().end_at(shrunk.segments);
            self.close_behind_end()?;
            return Ok(false);
        }
        if !is_planted(Bug::ShrunkUnmoved) && !cleaner.empty_some_behind_end(&mut volume)? {
            return Ok(false);
        }
        self.without_memory("the volume shrank", |core| core.end_at(shrunk))?;
        Ok(true)
    }

    /// Closes the segments behind the end that are being filled. There is room for that.
    fn close_behind_end(&mut self) -> Result<()> {
        for _ in 0..CLOSINGS {
            if self.is_open_behind_end() {
                self.log.reserve_journal_within();
                self.close_segments()?;
            }
        }
        if self.is_open_behind_end() {
            return Err(Error::new(ErrorKind::NoSpace, "no free segment is left in front of the new end"));
        }
        Ok(())
    }

    fn is_open_behind_end(&self) -> bool {
        self.log.table().behind_end().any(|(_, one)| one.state == SegmentState::Open)
    }

    /// Ends where `shrunk` does: nothing lies behind that.
    fn end_at(&mut self, shrunk: &Layout) -> Result<()> {
        let before = *self.log.layout();
        self.checkpoint_at_start()?;
        let journal_sequence = self.checkpoints.state().journal_sequence;
        let is_needed = |(_, one): (u32, &Segment)| one.is_needed(journal_sequence);
        if self.log.table().behind_end().any(is_needed) && !is_planted(Bug::ShrunkUnmoved) {
            return Err(Error::new(ErrorKind::NoSpace, "something came to lie behind the new end; try again"));
        }
        for block in shrunk.superblocks.at(End::Far).chain(before.superblocks.at(End::Far)) {
            self.log.medium().write("clear superblocks", |nand| ring::clear_block(nand, block))?;
        }
        let store = self.log.store();
        let tell = || store.shared().iter().for_each(|shared| shared.tell(Gap::Waits));
        self.log.table().wait_for_readers_behind_end(tell);
        self.shrinking = None;
        self.have_layout(shrunk, |table| table.shrink(shrunk));
        self.log.forget_from(shrunk.segments);
        self.cleaner.keep_within(shrunk.segments);
        if is_planted(Bug::ShrunkTooEarly) {
            self.checkpoints.write_superblock(&mut self.index, &mut self.log, false)?;
        }
        self.checkpoint(true)?;
        self.checkpoints.write_last_superblock(&mut self.index, &mut self.log)?;
        self.give_back(shrunk)
    }

    /// The medium has no more blocks than the volume, if it can.
    fn give_back(&mut self, shrunk: &Layout) -> Result<()> {
        let blocks = shrunk.geometry.blocks;
        let shrunk = self.log.medium().resize_medium(|nand| nand.shrink(blocks));
        shrunk.map_err(|error| from_media("shrink", &error))
    }
}

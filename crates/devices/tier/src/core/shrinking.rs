//! A volume that becomes smaller: what of its state changes for that.
//!
//! What it keeps true: content that moves is what it was, with the same checksums, and nothing of
//! that is logged: until the next checkpoint is durable, the place of before holds it.

use crate::commit::room::{Cost, EXTENT_BYTES};
use crate::content::plan::Source;
use crate::core::Core;
use crate::disks::read_plan::PlannedRun;
use crate::index::moving::{Behind, FarExtent};
use crate::medium::layout::{BLOCK, Layout};
use alloc::format;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_engine::Key;
use onode_object::{Error, ErrorKind, Result};

/// Blocks that move in a step, at least, if so many have to: 2 MiB.
const STEP_BLOCKS: u64 = 512;
/// Walks through the whole tree that find nothing to move although something is there.
const MOST_VAIN_WALKS: u32 = 3;

/// What is under way.
#[derive(Debug)]
pub struct Shrinking {
    /// The volume that it is becoming.
    layout: Layout,
    /// Where the walk through the tree goes on.
    next: Key,
    /// This walk has found something.
    has_found: bool,
    /// Walks in a row that have not.
    vain_walks: u32,
    /// There was no room before the last checkpoint.
    is_short: bool,
}

/// What moves in a step. Its places are pinned.
#[derive(Default)]
pub struct Moves {
    /// Where it was found.
    behind: Behind,
    /// The content, to be read without the lock; in the same order.
    pub wanted: Vec<PlannedRun>,
}

/// What comes next.
pub enum NextStep {
    /// Nothing is under way.
    Idle,
    /// Something has to move: this, with what [`Core::find_moves`] adds.
    Move(Moves),
    /// Nothing is in use behind the end.
    End,
}

impl Core {
    /// About the fewest blocks that have room for all that is in the volume; those that it has if
    /// it cannot shrink.
    #[must_use]
    pub fn fewest_blocks(&self) -> u64 {
        let now = self.index.layout();
        let has_room = |blocks: u64| {
            let smaller = now.shrunk((blocks + 1) * BLOCK);
            smaller.is_ok_and(|smaller| self.headroom().is_enough(&smaller))
        };
        let (mut too_few, mut enough) = (0, now.blocks);
        while enough - too_few > 1 {
            let blocks = too_few + (enough - too_few) / 2;
            if has_room(blocks) { enough = blocks } else { too_few = blocks }
        }
        enough
    }

    /// Begins to shrink to so many bytes, whatever was under way: moves nothing yet.
    ///
    /// # Errors
    /// `Invalid`, `NoSpace`, `ReadOnly`; nothing was changed.
    pub fn begin_shrinking(&mut self, bytes: u64) -> Result<()> {
        self.latch.check()?;
        self.stop_shrinking();
        let layout = self.index.layout().shrunk(bytes)?;
        if !self.headroom().is_enough(&layout) {
            let needed = (self.fewest_blocks() + 1) * BLOCK;
            let detail = format!("what is in the volume has no room in {bytes} bytes; about {needed} are needed");
            return Err(Error::new(ErrorKind::NoSpace, detail));
        }
        self.space.plan_end(&layout);
        self.shrinking = Some(Shrinking { layout, next: Key::MIN, has_found: false, vain_walks: 0, is_short: false });
        Ok(())
    }

    /// The volume stays as large as it is.
    pub fn stop_shrinking(&mut self) {
        if self.shrinking.take().is_some() {
            self.space.forget_plan();
        }
    }

    /// Whether it is becoming smaller.
    #[must_use]
    pub const fn is_shrinking(&self) -> bool {
        self.shrinking.is_some()
    }

    /// Bytes that have yet to move before it is smaller.
    #[must_use]
    pub fn moving_bytes(&self) -> u64 {
        self.space.behind() * BLOCK
    }

    /// What comes next.
    #[must_use]
    pub fn next_step(&self) -> NextStep {
        let Some(shrinking) = &self.shrinking else { return NextStep::Idle };
        if self.space.behind() == 0 || is_planted(Bug::TierShrunkUnmoved) {
            return NextStep::End;
        }
        let behind = Behind { next: Some(shrinking.next), ..Behind::default() };
        NextStep::Move(Moves { behind, ..Moves::default() })
    }

    /// Adds what moves, too; true if there is enough for a step, or no more. Nothing is changed
    /// before everything was read that there is to be looked at, so that it can be begun anew.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn find_moves(&mut self, moves: &mut Moves) -> Result<bool> {
        let (end, missing) = (self.space.target().blocks, STEP_BLOCKS.saturating_sub(moves.behind.blocks));
        let Some(from) = moves.behind.next.filter(|_| missing > 0) else { return Ok(true) };
        let more = self.index.behind(end, from, missing)?;
        for far in &more.extents {
            self.space.pin(far.extent.block, far.extent.blocks());
            moves.wanted.push(PlannedRun::new(far.at, far.extent.clone()));
        }
        moves.behind.extend(more);
        Ok(moves.behind.next.is_none() || moves.behind.blocks >= STEP_BLOCKS)
    }

    /// It was read; what became free meanwhile is.
    pub fn unpin_moves(&mut self, moves: &Moves) {
        moves.wanted.iter().for_each(|run| self.space.unpin(run.extent.block, run.extent.blocks()));
        self.free_unpinned();
    }

    /// Gives all of it other places, unless it was changed meanwhile: what is to be written waits
    /// for the big disk, and the next checkpoint has it. No checkpoint may be under way. False if
    /// there was no room, as there may be behind a checkpoint.
    ///
    /// # Errors
    /// `NoSpace` if there was none at the last time either, or if something stays behind the end
    /// for ever; `Corrupt`, `Media`.
    pub fn move_all(&mut self, moves: Moves) -> Result<bool> {
        self.latch.check()?;
        let Moves { behind, wanted } = moves;
        let cost = self.cost_of_moving(&behind)?;
        let has_room = self.headroom().fits(&cost, self.space.target().reserve_blocks() / 2);
        let Some(shrinking) = &mut self.shrinking else { return Ok(true) };
        if !has_room {
            if core::mem::replace(&mut shrinking.is_short, true) {
                let why = "what has to move has no room in front of the new end: too much was written meanwhile";
                return Err(Error::new(ErrorKind::NoSpace, why));
            }
            return Ok(false);
        }
        shrinking.is_short = false;
        shrinking.has_found |= behind.blocks > 0;
        shrinking.next = behind.next.unwrap_or(Key::MIN);
        if behind.next.is_none() {
            let is_vain = !core::mem::take(&mut shrinking.has_found) && !self.space.holds_behind();
            shrinking.vain_walks = if is_vain { shrinking.vain_walks + 1 } else { 0 };
            if shrinking.vain_walks >= MOST_VAIN_WALKS {
                let blocks = self.space.behind();
                let why = format!(
                    "{blocks} blocks behind the new end count as in use, and nothing uses them; \
                     `onode repair` counts them anew"
                );
                return Err(Error::new(ErrorKind::Corrupt, why));
            }
        }
        if behind.blocks == 0 {
            return Ok(true);
        }
        let moved = self.relocate_all(&behind, &wanted);
        // Even if that failed: what has moved has.
        self.space.give_up_nodes(self.index.take_freed());
        self.commits.mark_dirty();
        moved.map(|()| true)
    }

    fn relocate_all(&mut self, behind: &Behind, wanted: &[PlannedRun]) -> Result<()> {
        for (far, run) in behind.extents.iter().zip(wanted) {
            if self.index.is_still_at(far)? {
                self.relocate(far, run)?;
            }
        }
        behind.ways.iter().try_for_each(|key| self.index.mark(key))
    }

    fn cost_of_moving(&mut self, behind: &Behind) -> Result<Cost> {
        let mut cost = Cost::default();
        for far in &behind.extents {
            self.index.way(&Key::extent(far.object, far.at), false, &mut cost.ways)?;
            // It may come to lie in as many places as it has blocks.
            cost.puts += far.extent.blocks();
            cost.bytes += far.extent.blocks() * EXTENT_BYTES;
        }
        for key in &behind.ways {
            self.index.way(key, false, &mut cost.ways)?;
        }
        Ok(cost)
    }

    /// Gives content another place.
    fn relocate(&mut self, far: &FarExtent, run: &PlannedRun) -> Result<()> {
        let reread = if run.is_there.contains(&false) {
            Some(self.reader().read_stored(far.object, far.at, &far.extent, Source::Any)?)
        } else {
            None
        };
        self.placing().0.relocate(far, reread.as_ref().unwrap_or(&run.bytes))
    }

    /// Nothing lies behind the end that was planned: the volume, which has `blocks` then, has it
    /// from the next checkpoint on. `None` if something does, for a while yet.
    pub fn end_shrinking(&mut self) -> Option<u64> {
        let shrinking = self.shrinking.take()?;
        if self.space.behind() > 0 && !is_planted(Bug::TierShrunkUnmoved) {
            self.shrinking = Some(shrinking);
            return None;
        }
        self.index.set_layout(shrinking.layout);
        self.space.shrink();
        self.commits.mark_dirty();
        Some(shrinking.layout.blocks)
    }
}

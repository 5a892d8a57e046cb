//! The cleaner: moves what is still needed off a segment, so that a checkpoint can set it free.
//!
//! How things move is told in [`moving`].

mod ahead;
mod family;
pub mod gain;
mod latency;
pub mod levelling;
mod moves;
pub mod moving;
pub mod pace;
pub mod patrol;
pub mod refresh;
pub mod reprotect;
mod shrinking;
mod steps;

use crate::cleaner::ahead::Ahead;
use crate::cleaner::latency::LatencyHistogram;
use crate::cleaner::levelling::Levelling;
use crate::cleaner::moving::items_on;
use crate::cleaner::patrol::Patrol;
use crate::cleaner::refresh::Refresh;
use crate::cleaner::reprotect::Reprotect;
use crate::log::Log;
use crate::medium::format::FEATURE_VERSIONS;
use crate::policy::{Chooser, Stream};
use crate::space::items::{Item, Owner};
use crate::space::room::Room;
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

/// A segment that is being cleaned, and how far.
struct Cleaning {
    segment: u32,
    sequence: u32,
    items: Vec<Item>,
    next: usize,
    /// Bytes of the next item that are done.
    within: u32,
    /// Table pieces lie there; they leave only with the next checkpoint.
    holds_table: bool,
    /// It is emptied for the sake of wear: what is on it goes to rest on a worn segment.
    levels: bool,
    /// The second pass: content is looked for among the versions of the objects that it was
    /// written to.
    is_second: bool,
}

/// Pages of content that are moved in one go: a run for the medium, and no more than a short wait.
const MOVED_PAGES: u32 = 8;

/// Free segments beyond the reserve that it takes to empty one whatever it gives back.
const ROOM_SEGMENTS: u32 = 2;

impl Cleaning {
    const fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
    }

    /// Whether it is for the sake of wear.
    const fn levels(&self) -> bool {
        self.levels
    }

    /// Begins the second pass, unless it has begun: over items of content only.
    fn begin_second(&mut self) -> bool {
        if self.is_second || is_planted(Bug::CleanerForgetsVersions) {
            return false;
        }
        self.items.retain(|item| matches!(item.owner, Owner::Content { .. }));
        (self.next, self.within, self.is_second) = (0, 0, true);
        true
    }

    /// The next item or, of a long run of content, the next part.
    fn take(&mut self, payload_bytes: u32) -> Option<Item> {
        let item = *self.items.get(self.next)?;
        let Owner::Content { object, offset } = item.owner else {
            self.next += 1;
            return Some(item);
        };
        let (start, left) = (item.start + self.within, item.length - self.within);
        // Parts end where pages do, so that no page is read twice, and less than a page is no part
        // of its own.
        let whole = left < (MOVED_PAGES + 1) * payload_bytes;
        let length = if whole { left } else { MOVED_PAGES * payload_bytes - start % payload_bytes };
        let owner = Owner::Content { object, offset: offset + u64::from(self.within) };
        if length == left {
            self.next += 1;
            self.within = 0;
        } else {
            self.within += length;
        }
        Some(Item { start, length, owner })
    }

    /// Up to `limit` items that are taken next, of about `bytes` in all.
    fn next_items(&mut self, payload_bytes: u32, limit: usize, bytes: u64) -> Vec<Item> {
        let before = (self.next, self.within);
        let mut items = Vec::new();
        let mut left = bytes;
        while items.len() < limit && left > 0 {
            let Some(item) = self.take(payload_bytes) else { break };
            left = left.saturating_sub(u64::from(item.length));
            items.push(item);
        }
        (self.next, self.within) = before;
        items
    }
}

/// What the cleaner did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cleaned {
    /// Segments cleaned.
    pub segments: u64,
    /// Those whose content was moved for the sake of wear; they count as cleaned, too.
    pub levelled: u64,
    /// The bytes of those.
    pub bytes_levelled: u64,
}

/// Chooses what is moved, moves it bit by bit, and keeps the pace of commits.
pub struct Cleaner {
    /// What it takes.
    victim: Chooser,
    /// Segments beyond the point where commits wait at which cleaning begins, at least.
    ahead: u32,
    /// The segment that is being cleaned.
    cleaning: Option<Cleaning>,
    /// Bytes that commits have yet to move.
    owed: u64,
    /// Static wear levelling.
    levelling: Levelling,
    /// What has to move because its bits flip.
    refresh: Refresh,
    /// What finds that of what nobody reads.
    patrol: Patrol,
    /// What has to move for another parity.
    reprotect: Reprotect,
    /// The stale bytes after a round of background cleaning that gained nothing, if the last did.
    fruitless: Option<u64>,
    /// How long commits waited for the cleaner.
    stalls: LatencyHistogram,
    cleaned: Cleaned,
}

impl Cleaner {
    /// One that takes what `victim` says, and begins when `ahead` segments are left or earlier.
    pub fn new(victim: Chooser, ahead: u32) -> Self {
        Self {
            victim,
            ahead,
            cleaning: None,
            owed: 0,
            levelling: Levelling::default(),
            refresh: Refresh::default(),
            patrol: Patrol::default(),
            reprotect: Reprotect::default(),
            fruitless: None,
            stalls: LatencyHistogram::default(),
            cleaned: Cleaned::default(),
        }
    }

    /// What it did.
    pub const fn cleaned(&self) -> &Cleaned {
        &self.cleaned
    }

    /// How long commits waited for it.
    pub const fn stalls(&self) -> &LatencyHistogram {
        &self.stalls
    }

    /// Memory it holds.
    pub fn memory_bytes(&self) -> usize {
        self.cleaning.as_ref().map_or(0, Cleaning::memory_bytes)
    }

    /// Cleans the segment that the victim policy names or, if `greedy`, the one that gives back
    /// most at once, if there is one with at most `budget_bytes` to be moved. False if there is
    /// none.
    pub fn clean_one(&mut self, volume: &mut Volume<'_>, greedy: bool, budget_bytes: u64) -> Result<bool> {
        if greedy {
            self.cleaning = None;
        }
        self.stop_levelling();
        if !self.begin_cleaning(volume, greedy, budget_bytes)? {
            return Ok(false);
        }
        while !self.clean_step(volume, u64::MAX)? {}
        Ok(true)
    }

    /// Makes sure that a segment is being cleaned which has at most `budget_bytes` left to be
    /// moved. False if there is none.
    pub fn begin_cleaning(&mut self, volume: &mut Volume<'_>, greedy: bool, budget_bytes: u64) -> Result<bool> {
        if self.being_cleaned(volume).is_some_and(|left| left <= budget_bytes) {
            return Ok(true);
        }
        self.cleaning = None;
        let journal_sequence = volume.replay_sequence();
        let candidates = volume.log.table().candidates(journal_sequence);
        let victim = if greedy {
            volume.room().cheapest(candidates, budget_bytes)
        } else {
            let candidates = candidates.filter(|one| u64::from(one.live_bytes) <= budget_bytes);
            self.victim.choose(candidates)
        };
        let Some(victim) = victim else { return Ok(false) };
        volume.prepare_writing()?;
        self.begin_with(volume, victim.segment, false)?;
        Ok(true)
    }

    /// Bytes that are left to be moved off the segment being cleaned, if one is.
    pub fn being_cleaned(&self, volume: &Volume<'_>) -> Option<u64> {
        let cleaning = self.cleaning.as_ref()?;
        let one = volume.log.table().get(cleaning.segment);
        // It may have been set free and filled anew since the last step.
        let same = one.sequence == cleaning.sequence && one.state != SegmentState::Open && one.live_bytes > 0;
        same.then_some(u64::from(one.live_bytes))
    }

    /// Moves everything off `segment`.
    pub fn clean_segment(&mut self, volume: &mut Volume<'_>, segment: u32) -> Result<()> {
        self.begin_with(volume, segment, false)?;
        while !self.clean_step(volume, u64::MAX)? {}
        Ok(())
    }

    /// Begins with `segment`, for the sake of wear if `levels`.
    pub fn begin_with(&mut self, volume: &mut Volume<'_>, segment: u32, levels: bool) -> Result<()> {
        if is_planted(Bug::CleanerMovesNothing) {
            let live_bytes = volume.log.table().get(segment).live_bytes;
            volume.log.table_mut().release(segment, u64::from(live_bytes));
        }
        let items = items_on(volume.index, volume.log, segment, IoTag::Cleaning)?;
        if !levels {
            volume.log.learn_from(segment);
        }
        let holds_table = items.iter().any(|item| matches!(item.owner, Owner::TablePiece { .. }));
        let sequence = volume.log.table().get(segment).sequence;
        self.cleaning =
            Some(Cleaning { segment, sequence, items, next: 0, within: 0, holds_table, levels, is_second: false });
        Ok(())
    }

    /// Moves about `bytes` of content off the segment being cleaned, or less if a checkpoint comes
    /// to be due; true once nothing is left to be moved, or there is no room to move more.
    pub fn clean_step(&mut self, volume: &mut Volume<'_>, bytes: u64) -> Result<bool> {
        let Some(mut cleaning) = self.cleaning.take() else { return Ok(true) };
        let segment = cleaning.segment;
        let base = volume.log.start_of(segment);
        let moved = volume.log.moved_content();
        let mut ahead = Ahead::default();
        loop {
            let before = volume.log.moved_content();
            if ahead.is_over() && !cleaning.is_second {
                let most = Ahead::most_bytes(volume.log).min(bytes.saturating_sub(before - moved));
                let items = cleaning.next_items(volume.log.layout().payload_bytes, Ahead::ITEMS_MAX, most);
                ahead = Ahead::read(volume.index, volume.log, segment, &items);
            }
            let Some(item) = Self::next_item(volume, &mut cleaning) else { break };
            ahead.pass();
            let mover = volume.checkpoints.mover(volume.index, volume.log).with_ahead(&ahead);
            let (mut mover, location) = (mover.levelling(cleaning.levels), base + u64::from(item.start));
            let result = if cleaning.is_second {
                mover.move_item_of_relatives(&item, location)
            } else {
                mover.move_item(&item, location)
            };
            if cleaning.levels {
                self.cleaned.bytes_levelled += volume.log.moved_content() - before;
            }
            match result {
                Ok(()) => {}
                // What is damaged stays where it is and readable as far as it is.
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    volume.log.table_mut().note_stuck(segment);
                }
                Err(error) => return Err(error),
            }
            let limit = volume.room().emptying_dirty_limit();
            let is_due = volume.index.dirty_bytes() > limit;
            if is_due && (bytes == u64::MAX || limit < volume.dirty_limit()) {
                volume.checkpoint()?;
                ahead = Ahead::default();
            }
            if self.reserve_ends(volume, segment) {
                // Only a checkpoint gets further from here, if anything does.
                self.cleaning = Some(cleaning);
                return Ok(true);
            }
            let pauses = (is_due && bytes < u64::MAX) || volume.log.moved_content() - moved >= bytes;
            if pauses {
                // What is left of the items may all be stale.
                if volume.log.table().get(segment).live_bytes == 0 {
                    break;
                }
                self.cleaning = Some(cleaning);
                return Ok(false);
            }
        }
        if is_planted(Bug::CleanerForgetsVersions) && volume.checkpoints.has_feature(FEATURE_VERSIONS) {
            let left = volume.log.table().get(segment).live_bytes;
            volume.log.table_mut().release(segment, u64::from(left));
        }
        if volume.log.table().get(segment).live_bytes > 0 {
            if cleaning.holds_table {
                volume.log.table_mut().note_emptied(segment);
            } else {
                volume.log.table_mut().note_stuck(segment);
            }
        }
        self.cleaned.segments += 1;
        self.cleaned.levelled += u64::from(cleaning.levels);
        Ok(true)
    }

    /// What of `cleaning` is to be moved next. If anything is left when all items were moved by the
    /// owners that they name, it may belong to versions of these now.
    fn next_item(volume: &Volume<'_>, cleaning: &mut Cleaning) -> Option<Item> {
        let payload_bytes = volume.log.layout().payload_bytes;
        let is_left = volume.log.table().get(cleaning.segment).live_bytes > 0;
        if cleaning.is_second && !is_left {
            return None;
        }
        if let Some(item) = cleaning.take(payload_bytes) {
            return Some(item);
        }
        let may_move = volume.checkpoints.has_feature(FEATURE_VERSIONS) && is_left;
        if may_move && cleaning.begin_second() { cleaning.take(payload_bytes) } else { None }
    }

    /// Whether moving on with `segment` could take the segments that the next checkpoint needs.
    fn reserve_ends(&self, volume: &Volume<'_>, segment: u32) -> bool {
        let step = u64::from(MOVED_PAGES * volume.log.layout().payload_bytes);
        let opens = volume.log.table().get(segment).stream != Stream::Index && volume.log.moving_room() < step;
        // Content of an unusual parity may be what goes on, each in a segment of its own.
        let unusual = volume.log.layout().unusual_parities();
        !volume.room().can_write_nodes(0, u32::from(opens) + unusual)
    }

    /// Whether writing is allowed, and there is room for what is on a segment.
    pub fn may_empty(log: &Log, room: &Room<'_>) -> bool {
        log.store().latch().why().is_none() && room.has_room(ROOM_SEGMENTS)
    }

    /// Moves everything off a segment for another reason than its space, behind a checkpoint. False
    /// if something is left that is not damaged: there was too little room.
    fn empty_segment(&mut self, volume: &mut Volume<'_>, segment: u32) -> Result<bool> {
        volume.prepare_writing()?;
        self.clean_segment(volume, segment)?;
        volume.checkpoint()?;
        Ok(volume.log.table().get(segment).live_bytes == 0 || volume.log.table().is_stuck(segment))
    }

    /// Empties a segment on which pages were found again from parity, or have none, if there is one
    /// and room for what is on it. Whole, because what else lies there may fail next, and because
    /// only an erase gives its rows their parity back. False if there was nothing to do.
    pub fn move_doubtful(&mut self, volume: &mut Volume<'_>) -> Result<bool> {
        let may_empty = Self::may_empty(volume.log, &volume.room());
        let Some(segment) = volume.log.doubtful_segment().filter(|_| may_empty) else { return Ok(false) };
        // What cannot be moved for lack of room is left for later.
        let is_done = !is_planted(Bug::RebuiltNotMoved) && self.empty_segment(volume, segment)?;
        if is_done {
            volume.log.store().pages().forget_to_move(segment);
        }
        Ok(is_done)
    }

    /// Empties the segments in which programs failed, if there is room for what is on them, and
    /// retires them.
    pub fn move_failing(&mut self, volume: &mut Volume<'_>) -> Result<()> {
        if volume.log.table().in_state(SegmentState::Failing) == 0 {
            return Ok(());
        }
        let journal_sequence = volume.replay_sequence();
        let table = volume.log.table();
        let wanted = table.failing(journal_sequence, true).find(|segment| !table.is_stuck(*segment));
        let Some(segment) = wanted.filter(|_| volume.room().has_room(ROOM_SEGMENTS)) else { return Ok(()) };
        if !self.empty_segment(volume, segment)? {
            volume.log.table_mut().note_stuck(segment);
        }
        Ok(())
    }
}

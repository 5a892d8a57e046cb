//! The pace of the cleaner: each commit pays for a share of the cleaning that makes room for the
//! next ones, so that none has to wait for all of it.
//!
//! Cleaning begins when only a few segments are left before commits would have to wait. What a
//! commit pays is proportional to what it writes: by the time those segments are filled, the victim
//! is clean. Near a full volume even that does not suffice, and [`make_room`](Cleaner::make_room)
//! cleans until there is room.

use crate::cleaner::Cleaner;
use crate::cleaner::moves::make_room_for_moves;
use crate::log::Log;
use crate::volume::Volume;
use onode_object::{Result, Transaction};

/// Segments that are kept free beyond what a commit needs: so much lies between the beginning of
/// cleaning and the point where commits wait.
pub const AHEAD_SEGMENTS: u32 = 4;

/// Pages moved in a step in the background.
const STEP_PAGES: u32 = 16;

/// In the background a segment is cleaned if it is at most one part in so many full: what is
/// emptied before anybody waits for it may have emptied itself.
const CHEAP_PART: u64 = 4;

/// Bytes that are filled for one that a commit writes: journal, index and what is moved take some
/// too.
const FILLED: u64 = 3;

/// The most bytes that are moved for one that is written.
const SHARE_MAX: u64 = 8;

/// Background cleaning: a few segments, then the checkpoint that sets them free.
pub struct Round {
    /// Free bytes at its beginning.
    before: u64,
    cleaned: u32,
}

/// What a step of background cleaning came to.
pub enum Step {
    /// The round goes on.
    Moved,
    /// The round is over and gave back space.
    Gained,
    /// There is nothing more to be gained.
    Nothing,
}

impl Cleaner {
    /// Makes room for `transaction`, and moves what is its share of content.
    ///
    /// # Errors
    /// `NoSpace`; nothing has changed that anyone can see.
    pub fn pay_and_make_room(
        &mut self,
        volume: &mut Volume<'_>,
        transaction: &Transaction,
        freeing: bool,
    ) -> Result<()> {
        let begin = self.virtual_nanoseconds(volume);
        self.move_failing(volume)?;
        make_room_for_moves(volume, transaction)?;
        self.pay(volume, volume.room().transaction_bytes(transaction))?;
        let made = self.make_room(volume, transaction, freeing);
        self.stalls.count(self.virtual_nanoseconds(volume) - begin);
        made
    }

    fn virtual_nanoseconds(&self, volume: &Volume<'_>) -> u64 {
        volume.log.store().virtual_nanoseconds()
    }

    /// Segments beyond the point where commits wait at which cleaning begins: no more than a
    /// quarter of all, whatever was chosen.
    pub fn ahead_segments(&self, log: &Log) -> u32 {
        let segments = log.layout().segments;
        let usual = (segments / 64).clamp(AHEAD_SEGMENTS, 2 * AHEAD_SEGMENTS);
        usual.max(self.ahead.min(segments / 4))
    }

    /// Cleans for a commit of `bytes`.
    fn pay(&mut self, volume: &mut Volume<'_>, bytes: u64) -> Result<()> {
        if volume.log.store().latch().why().is_some() {
            return Ok(());
        }
        // The reserve, what a checkpoint takes, and what is moved may have to open one.
        let least = volume.room().reserve_segments() + volume.room().checkpoint_cost() + 1;
        let reclaimable = |volume: &Volume<'_>| volume.log.reclaimable();
        let free = volume.log.table().allocatable() + reclaimable(volume);
        if self.level(volume, bytes, free.saturating_sub(least))? || free >= least + self.ahead_segments(volume.log) {
            return Ok(());
        }
        // A checkpoint in time takes what the one before set free; one that comes late takes of the
        // reserve.
        if !volume.room().has_room(volume.room().checkpoint_cost() + 1) && reclaimable(volume) > 0 {
            return volume.set_free().map(|_| ());
        }
        // So is one that the next commits would write anyway.
        if volume.index.dirty_bytes() > volume.dirty_limit() / 8 * 7 {
            return volume.set_free().map(|_| ());
        }
        let segment_bytes = volume.log.layout().segment_bytes();
        let most = (SHARE_MAX * bytes).min(segment_bytes);
        // What would give back next to nothing is left for when nothing else helps.
        let budget = volume.room().comfortable_budget().min(segment_bytes - segment_bytes / 16);
        let may_move = volume.room().has_room(1) || volume.log.moving_room() > 2 * most;
        if may_move && self.begin_cleaning(volume, false, budget)? {
            let left = self.being_cleaned(volume).unwrap_or(0);
            let ahead = u64::from((free + AHEAD_SEGMENTS).saturating_sub(least + self.ahead_segments(volume.log)))
                * segment_bytes;
            let share = (FILLED * bytes * left).checked_div(ahead).unwrap_or(most);
            self.pay_share(volume, share.clamp(1, most))?;
        }
        Ok(())
    }

    /// Moves `share` bytes, or owes them until enough is owed for the medium to read it together.
    fn pay_share(&mut self, volume: &mut Volume<'_>, share: u64) -> Result<()> {
        let layout = volume.log.layout();
        let together = u64::from(STEP_PAGES * layout.payload_bytes).min(layout.segment_bytes() / 16);
        self.owed += share;
        if self.owed < together && volume.log.store().reads_together() {
            return Ok(());
        }
        let owed = core::mem::take(&mut self.owed);
        self.clean_step(volume, owed)?;
        Ok(())
    }

    /// Whether background cleaning may be of use: segments are few, and since a round that gained
    /// nothing so much went stale that another may gain something. Without that a full volume that
    /// nobody changes would wear itself out.
    pub fn wants_round(&self, volume: &Volume<'_>) -> bool {
        let room = volume.room();
        let more = volume.log.layout().segment_bytes();
        room.wants_cleaning() && self.fruitless.is_none_or(|stale| room.stale_bytes() >= stale + more)
    }

    /// Does a little of a round of background cleaning: whoever waits for the device waits for no
    /// more.
    pub fn background_step(&mut self, volume: &mut Volume<'_>, round: &mut Option<Round>) -> Result<Step> {
        volume.log.store().latch().check()?;
        let Round { before, cleaned } = round.get_or_insert(Round { before: volume.room().free_bytes(), cleaned: 0 });
        let reclaimable = volume.log.reclaimable();
        let budget = volume.room().comfortable_budget().min(volume.log.layout().segment_bytes() / CHEAP_PART);
        if *cleaned < AHEAD_SEGMENTS && reclaimable < AHEAD_SEGMENTS && self.begin_cleaning(volume, false, budget)? {
            if self.clean_step(volume, u64::from(STEP_PAGES * volume.log.layout().payload_bytes))? {
                *cleaned += 1;
            }
            if volume.checkpoint_is_due() {
                volume.checkpoint()?;
            }
            return Ok(Step::Moved);
        }
        let (before, cleaned) = (*before, *cleaned);
        *round = None;
        let gained = (volume.set_free()? || cleaned > 0) && volume.room().free_bytes() > before;
        self.fruitless = if gained { None } else { Some(volume.room().stale_bytes()) };
        Ok(if gained { Step::Gained } else { Step::Nothing })
    }
}

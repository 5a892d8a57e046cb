//! Static wear levelling: content that never changes keeps its segment from being erased, so it is
//! moved into a worn segment, which rests under it, and its own segment takes part again.
//!
//! A move is cleaning of a segment that is full, and is paid for like cleaning: each commit moves a
//! share. It gives back no space, so it happens only while there is enough, ends when commits come
//! near the point where they have to wait, and comes at most once in [`EVERY_SEGMENTS`] segments
//! opened: that bounds what levelling costs, whatever the load. A crash forgets a move like any
//! other.

use crate::cleaner::{Cleaner, Cleaning};
use crate::policy::{Wear, WearPolicy};
use crate::volume::Volume;
use onode_object::Result;

/// Segments opened between two moves, at least: what a move writes is one segment.
const EVERY_SEGMENTS: u32 = 24;

/// Bytes that are moved for one that is written.
const SHARE: u64 = 2;

/// When to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levelling {
    /// The next sequence number of a segment at which it is time.
    time: u32,
}

impl Cleaner {
    /// Moves a share of cold content for a commit of `bytes`, if a segment has run ahead of the
    /// others. `ahead` segments may be filled until commits have to wait. False if there is nothing
    /// to be done.
    pub fn level(&mut self, volume: &mut Volume<'_>, bytes: u64, ahead: u32) -> Result<bool> {
        if volume.log.table().wear_policy() != WearPolicy::Static {
            return Ok(false);
        }
        if ahead == 0 {
            self.stop_levelling();
            return Ok(false);
        }
        let under_way = self.being_cleaned(volume).is_some();
        let levels = self.cleaning.as_ref().is_some_and(Cleaning::levels);
        if under_way && !levels || !under_way && !self.begin_levelling(volume)? {
            return Ok(false);
        }
        let most = volume.log.layout().segment_bytes();
        self.clean_step(volume, (SHARE * bytes).clamp(1, most))?;
        Ok(true)
    }

    /// Gives up moving for the sake of wear: space is wanted.
    pub fn stop_levelling(&mut self) {
        if self.cleaning.as_ref().is_some_and(Cleaning::levels) {
            self.cleaning = None;
        }
    }

    /// Begins to move the coldest content if a free segment should rest under it.
    fn begin_levelling(&mut self, volume: &mut Volume<'_>) -> Result<bool> {
        let next_sequence = volume.log.table().next_sequence();
        if next_sequence < self.levelling.time {
            return Ok(false);
        }
        // Nothing changes until the next segment is opened.
        self.levelling.time = next_sequence.saturating_add(1);
        let wear = volume.log.table().wear();
        let due = |erases: u32| volume.log.table().wear_policy().is_due(erases, wear);
        if !volume.log.table().most_worn_free().is_some_and(due) {
            return Ok(false);
        }
        let Some(segment) = self.coldest(volume, wear) else { return Ok(false) };
        self.levelling.time = next_sequence.saturating_add(EVERY_SEGMENTS);
        volume.prepare_writing()?;
        self.begin_with(volume, segment, true)?;
        Ok(true)
    }

    /// The segment with the coldest content on the least worn ground.
    fn coldest(&self, volume: &Volume<'_>, wear: Wear) -> Option<u32> {
        let journal_sequence = volume.replay_sequence();
        let candidates = volume.log.table().candidates(journal_sequence);
        candidates
            .filter_map(|one| wear.rank_cold(one.erases, one.age).map(|rank| (rank, one.segment)))
            .max_by_key(|&(rank, segment)| (rank, core::cmp::Reverse(segment)))
            .map(|(_, segment)| segment)
    }
}

//! Room that is kept: what accepting a change promises is the log's before the change is accepted.
//!
//! What frees space must never find the log full (N7), in a memory whose free bytes may all lie in
//! pieces that are too small for a segment. So the log owns its segments, as many as hold all that
//! it has to say when nothing else is in them, and some more. Whatever makes it say more has it own
//! more first; whatever frees space makes it say less, and may use the rest up to the last segment.
//! The cleaner gets it back, however the log looks: it reads a segment, says again what counts and
//! has a segment more. Nothing is cleaned here.

use crate::log::Log;
use crate::log::batch::Batch;
use crate::medium::errors::no_space;
use crate::medium::format::{FIRST_RECORD, RECORD_HEADER};
use crate::space::Blocks;
use crate::space::free_list::FreeList;
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;
use onode_object::Result;

/// Segments in store that only what frees space may use.
pub(crate) const KEPT_SEGMENTS: usize = 4;
/// What a segment may lose at its end, because the next item is longer: half of the longest item,
/// more or less.
const LOST_BYTES: u64 = 300;
/// Content that is overwritten where it lies goes through the log: this share of the memory is kept
/// for that.
const OVERWRITE_SHARE: u64 = 128;
const OVERWRITE_BYTES_MAX: u64 = 256 << 10;
/// The log may be twice what it has to say, and this many segments more, or this share of the
/// device if that is more: a long log costs a mount little (it reads gigabytes a second), and each
/// cleaning repeats what still counts.
const SLACK_SEGMENTS: u64 = 8;
const SLACK_SHARE: u64 = 16;
const SLACK_BYTES_MAX: u64 = 32 << 20;

/// What a batch needs of the log before it may be appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Bytes of items that say something afterwards.
    pub live_bytes: u64,
    /// The device holds more afterwards.
    pub grows: bool,
    /// What frees space may use the segments that are kept.
    pub must_fit: bool,
}

impl Log {
    /// Segments in use, the one to come unless that is the oldest one, and those in store.
    pub(crate) const fn owned(&self) -> u64 {
        let others = if self.is_oldest_lent() { 0 } else { 1 };
        self.state.segments.len() as u64 + self.state.spare.len() as u64 + others
    }

    /// Bytes of all segments.
    pub(crate) const fn bytes(&self) -> u64 {
        self.owned() * self.shape.segment_bytes
    }

    /// Segments in store.
    pub(crate) const fn spare(&self) -> usize {
        self.state.spare.len()
    }

    /// Segments that the log has to have if items of `live` bytes count: so many hold them, written
    /// one after another, and there are some to clean with and for what frees space.
    fn segments_to_own(&self, live: u64) -> u64 {
        let usable = self.shape.segment_bytes - FIRST_RECORD - RECORD_HEADER - LINE_BYTES - LOST_BYTES;
        // An eighth more, so that a segment to be cleaned never holds but a little more than it
        // frees.
        (live + live / 8).div_ceil(usable) + 2 + KEPT_SEGMENTS as u64
    }

    /// Segments that it has besides for content that is overwritten.
    pub(crate) const fn segments_to_overwrite(&self) -> u64 {
        let bytes = self.shape.device_bytes / OVERWRITE_SHARE;
        let bytes = if bytes > OVERWRITE_BYTES_MAX { OVERWRITE_BYTES_MAX } else { bytes };
        1 + bytes / self.shape.segment_bytes
    }

    /// How many it should have if items of `live` bytes count.
    fn wanted(&self, live: u64, grows: bool) -> u64 {
        self.segments_to_own(live) + if grows { self.segments_to_overwrite() } else { 0 }
    }

    /// Segments that the log will not need once it was cleaned; if nothing `grows`, also those for
    /// content that is overwritten.
    pub(crate) fn surplus(&self, grows: bool) -> u64 {
        self.owned().saturating_sub(self.wanted(self.live_bytes, grows))
    }

    /// Bytes of segments that the log will not need once it was cleaned.
    pub(crate) fn surplus_bytes(&self) -> u64 {
        self.surplus(true) * self.shape.segment_bytes
    }

    /// Bytes of segments that the log has to get before anything may grow.
    pub(crate) fn shortage_bytes(&self) -> u64 {
        self.wanted(self.live_bytes, true).saturating_sub(self.owned()) * self.shape.segment_bytes
    }

    /// Whether it is so long that cleaning pays.
    pub(crate) fn is_long(&self) -> bool {
        let segment = self.shape.segment_bytes;
        let share = (self.shape.device_bytes / SLACK_SHARE).min(SLACK_BYTES_MAX) / segment;
        let slack = SLACK_SEGMENTS.max(share);
        self.state.segments.len() as u64 * segment > self.live_bytes * 2 + slack * segment
    }

    /// Puts a segment that holds nothing any more in store, or gives it back to `blocks`; one that
    /// is to come already stays where it is.
    pub(crate) fn store_or_release<P: Pmem>(&mut self, blocks: &Blocks<P>, segment: u64) {
        if segment == self.state.next {
            return;
        }
        let has_enough = self.spare() >= KEPT_SEGMENTS && self.owned() >= self.wanted(self.live_bytes, true);
        if has_enough {
            blocks.release(segment, self.shape.segment_bytes);
        } else {
            self.state.spare.push(&**blocks.pmem(), segment);
        }
    }

    /// Gives back what the log has in store and does not need.
    pub(crate) fn trim<P: Pmem>(&mut self, blocks: &Blocks<P>) {
        let wanted = self.wanted(self.live_bytes, true);
        while self.spare() > KEPT_SEGMENTS && self.owned() > wanted {
            let Some(segment) = self.state.spare.pop(&**blocks.pmem()) else { break };
            blocks.release(segment, self.shape.segment_bytes);
        }
    }

    /// Segments in store up to their usual number, if there is room.
    pub(crate) fn refill<P: Pmem>(&mut self, blocks: &Blocks<P>) {
        fill(&mut self.state.spare, blocks, self.shape.segment_bytes, KEPT_SEGMENTS);
    }

    /// Has enough segments in store for a batch, and the log have as many as it needs to say all
    /// items again.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn reserve<P: Pmem>(&mut self, blocks: &Blocks<P>, batch: &Batch, need: &Need) -> Result<()> {
        let segments = self.segments_for(batch);
        let wanted = if need.grows { self.wanted(need.live_bytes, true) } else { 0 };
        let kept = if need.must_fit { 0 } else { KEPT_SEGMENTS };
        while segments > 0 && self.spare() < segments + kept || self.owned() < wanted {
            match blocks.allocate(self.shape.segment_bytes) {
                Some(address) => self.state.spare.push(&**blocks.pmem(), address),
                None if self.spare() >= segments && need.must_fit => break,
                None => return Err(no_space("no room for the log")),
            }
        }
        Ok(())
    }
}

fn fill<P: Pmem>(spare: &mut FreeList, blocks: &Blocks<P>, segment_bytes: u64, wanted: usize) {
    while spare.len() < wanted {
        let Some(address) = blocks.allocate(segment_bytes) else { break };
        spare.push(&**blocks.pmem(), address);
    }
}

/// Segments for a log to come, at most `wanted`, as many as there is room for.
pub(crate) fn spare_segments<P: Pmem>(blocks: &Blocks<P>, segment_bytes: u64, wanted: usize) -> FreeList {
    let mut spare = FreeList::EMPTY;
    fill(&mut spare, blocks, segment_bytes, wanted);
    spare
}

//! Room that is kept: what accepting a change promises is the log's before the change is accepted.
//!
//! What frees space must never find the log full (N7), in a memory whose free bytes may all lie in
//! pieces that are too small for a segment. So the log owns its segments, as many as hold all that
//! it has to say when nothing else is in them, and some more. Whatever makes it say more has it own
//! more first; whatever frees space makes it say less, and may use the rest up to the last segment.
//! The cleaner gets it back, however the log looks: it reads a segment, says again what counts and
//! has a segment more.

use crate::core::{Core, KEPT_SEGMENTS};
use crate::medium::errors::no_space;
use crate::medium::format::{FIRST_RECORD, RECORD_HEADER};
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;
use onode_object::{Mutation, Result, Transaction};

/// What a segment may lose at its end, because the next item is longer: half of the longest item,
/// more or less.
const LOST_BYTES: u64 = 300;
/// Content that is overwritten where it lies goes through the log: this share of the memory is kept
/// for that.
const OVERWRITE_SHARE: u64 = 128;
const OVERWRITE_BYTES_MAX: u64 = 256 << 10;

impl<P: Pmem> Core<P> {
    /// Segments that the log has: those in use, the one to come, and those in store.
    pub(crate) const fn owned_segments(&self) -> u64 {
        self.log.owned()
    }

    /// Segments that the log has to have if items of `live` bytes count: so many hold them, written
    /// one after another, and there are some to clean with and for what frees space.
    fn segments_to_own(&self, live: u64) -> u64 {
        let usable = self.chunk_bytes() - FIRST_RECORD - RECORD_HEADER - LINE_BYTES - LOST_BYTES;
        // An eighth more, so that a segment to be cleaned never holds but a little more than it
        // frees.
        (live + live / 8).div_ceil(usable) + 2 + KEPT_SEGMENTS as u64
    }

    /// Segments that it has besides for content that is overwritten.
    pub(crate) const fn segments_to_overwrite(&self) -> u64 {
        let bytes = self.superblock.length / OVERWRITE_SHARE;
        let bytes = if bytes > OVERWRITE_BYTES_MAX { OVERWRITE_BYTES_MAX } else { bytes };
        1 + bytes / self.chunk_bytes()
    }

    /// How many it should have; for a transaction after which items of `live` bytes count.
    pub(crate) fn segments_wanted(&self, live: u64, grows: bool) -> u64 {
        self.segments_to_own(live) + if grows { self.segments_to_overwrite() } else { 0 }
    }

    /// Bytes of segments that the log will not need once it was cleaned.
    pub(crate) fn log_surplus_bytes(&self) -> u64 {
        self.owned_segments().saturating_sub(self.segments_wanted(self.live_log_bytes, true)) * self.chunk_bytes()
    }

    /// Bytes of segments that the log has to get before anything may grow.
    pub(crate) fn log_shortage_bytes(&self) -> u64 {
        self.segments_wanted(self.live_log_bytes, true).saturating_sub(self.owned_segments()) * self.chunk_bytes()
    }

    /// Puts a segment that holds nothing any more in store, or gives it back.
    pub(crate) fn store_or_release(&mut self, segment: u64) {
        let has_enough = self.log.spare.len() >= KEPT_SEGMENTS
            && self.owned_segments() >= self.segments_wanted(self.live_log_bytes, true);
        if has_enough {
            self.blocks.release(segment, self.chunk_bytes());
        } else {
            self.log.spare.push(&*self.memory, segment);
        }
    }

    /// Gives back what the log has in store and does not need.
    fn trim_store(&mut self) {
        let wanted = self.segments_wanted(self.live_log_bytes, true);
        while self.log.spare.len() > KEPT_SEGMENTS && self.owned_segments() > wanted {
            let Some(segment) = self.log.spare.pop(&*self.memory) else { break };
            self.blocks.release(segment, self.chunk_bytes());
        }
    }

    /// Cleans until `is_enough`; reads no segment twice.
    fn clean_until(&mut self, is_enough: impl Fn(&Self) -> bool) -> Result<()> {
        for _ in 0..self.log.segments.len() {
            if is_enough(self) || !self.clean_segment()? {
                break;
            }
        }
        Ok(())
    }

    /// Cleans until the usual number of segments is in store, for what may not be refused.
    pub(crate) fn clean_for_store(&mut self) -> Result<()> {
        self.clean_until(|core| core.log.spare.len() >= KEPT_SEGMENTS)
    }

    /// Has the log get its usual room in a memory that was full when it was opened.
    pub(crate) fn make_log_room(&mut self) -> Result<()> {
        if self.log.next == self.log.segments.first && !self.clean_segment()? {
            return Err(no_space("no room is left for the log"));
        }
        self.clean_for_store()
    }

    /// Says again all that counts of a log in which something was lost, with consent: it has no
    /// damage afterwards.
    pub(crate) fn say_all_again(&mut self) -> Result<()> {
        if !self.losses.is_loss() {
            return Ok(());
        }
        self.salvages = true;
        for _ in 1..self.log.segments.len() {
            if !self.clean_segment()? {
                return Err(no_space("no room is left to say again what the damaged log says"));
            }
        }
        self.salvages = false;
        Ok(())
    }

    /// Space that a fence or the cleaner of the log can give back now for a transaction; whether
    /// there was any.
    pub(crate) fn gain_space(&mut self, transaction: &Transaction) -> Result<bool> {
        let (free, spare) = (self.blocks.free_bytes(), self.log.spare.len());
        self.release_all_held()?;
        self.trim_store();
        let surplus = |grows| self.owned_segments().saturating_sub(self.segments_wanted(self.live_log_bytes, grows));
        let (for_all, for_log) = (surplus(true), surplus(false));
        let bytes: usize = transaction.mutations.iter().map(content_bytes).sum();
        let segments = 2 + bytes as u64 / self.chunk_bytes();
        if for_all > 0 {
            let enough = self.blocks.free_bytes() + segments.min(for_all) * self.chunk_bytes();
            self.clean_until(|core| core.blocks.free_bytes() >= enough)?;
        } else if for_log > 0 {
            let enough = KEPT_SEGMENTS + segments.min(for_log) as usize;
            self.clean_until(|core| core.log.spare.len() >= enough)?;
        }
        self.release_all_held()?;
        self.refill_store();
        Ok(self.blocks.free_bytes() > free || self.log.spare.len() > spare)
    }

    /// Segments in store up to their usual number, if there is room.
    pub(crate) fn refill_store(&mut self) {
        while self.log.spare.len() < KEPT_SEGMENTS {
            let Some(address) = self.blocks.allocate(self.chunk_bytes()) else { break };
            self.log.spare.push(&*self.memory, address);
        }
    }
}

/// Bytes that a mutation brings.
fn content_bytes(mutation: &Mutation) -> usize {
    match mutation {
        Mutation::Write { data, .. } => data.len(),
        Mutation::SetAttribute { value, .. } => value.len(),
        _ => 0,
    }
}

//! Emptying the segments behind the new end of a volume that shrinks, a little at a time.

use super::{Cleaner, ROOM_SEGMENTS};
use crate::volume::Volume;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::{Error, Result};

/// Bytes that are moved at most before who waits for the device has a turn.
const STEP_BYTES: u64 = 256 << 10;

/// Free segments in front of the planned end, beyond the reserve and what a checkpoint takes, with
/// which those behind it can be closed and emptied.
const AHEAD_SEGMENTS: u32 = ROOM_SEGMENTS + 3;

impl Cleaner {
    /// Cleans some of what lies in front of the planned end. True if enough is free there.
    ///
    /// # Errors
    /// `NoSpace` if that cannot be.
    pub fn gather_within(&mut self, volume: &mut Volume<'_>) -> Result<bool> {
        let needed = volume.room().reserve_segments() + volume.room().checkpoint_cost() + AHEAD_SEGMENTS;
        let (free, freed) = volume.log.table().free_within(volume.replay_sequence());
        if free >= needed {
            return Ok(true);
        }
        if free + freed >= needed || freed >= AHEAD_SEGMENTS {
            return volume.set_free().map(|_| false);
        }
        // What goes behind the end has to come back.
        if !self.gain_segments(volume, ROOM_SEGMENTS, true)? {
            return Err(no_room());
        }
        let most = volume.room().filled_bytes() / 16 * 15;
        let emptiest = volume.log.table().emptiest_within(volume.replay_sequence());
        match emptiest.filter(|one| u64::from(one.live_bytes) < most) {
            Some(one) => self.clean_segment(volume, one.segment)?,
            None if freed > 0 => {}
            None => return Err(no_room()),
        }
        volume.set_free().map(|_| false)
    }

    /// Moves some of what lies behind the end of the segments that may be opened. True if nothing
    /// is left there.
    ///
    /// # Errors
    /// `NoSpace` if there is too little room in front of it, `Corrupt` if something there is
    /// damaged: that stays where it is.
    pub fn empty_some_behind_end(&mut self, volume: &mut Volume<'_>) -> Result<bool> {
        let before = volume.log.table().bytes_behind_end();
        if before == 0 {
            return Ok(true);
        }
        if let Some(segment) = volume.log.table().stuck_behind_end() {
            let why = format!("something on segment {segment} is damaged and cannot be moved");
            return Err(Error::new(ErrorKind::Corrupt, why));
        }
        let Some(segment) = volume.log.table().next_behind_end() else {
            // Pieces of the segment table are left, which a checkpoint moves.
            return volume.checkpoint().map(|()| false);
        };
        if !self.gain_segments(volume, ROOM_SEGMENTS, true)? {
            return Err(no_room());
        }
        if self.cleaning.as_ref().is_none_or(|one| one.segment != segment) || self.being_cleaned(volume).is_none() {
            self.begin_with(volume, segment, false)?;
        }
        let is_over = self.clean_step(volume, STEP_BYTES)?;
        if volume.checkpoint_is_due() {
            volume.checkpoint()?;
        }
        let stays = volume.log.table().bytes_behind_end() >= before;
        let is_next = volume.log.table().next_behind_end() == Some(segment);
        if is_over && stays && is_next && !volume.log.table().is_stuck(segment) {
            // The reserve ended the step: only a checkpoint gets further, if anything does.
            volume.set_free()?;
            if volume.log.table().bytes_behind_end() >= before {
                return Err(no_room());
            }
        }
        Ok(false)
    }

    /// There are so many segments from now on.
    pub fn keep_within(&mut self, segments: u32) {
        self.cleaning = self.cleaning.take().filter(|one| one.segment < segments);
        self.refresh.keep_within(segments);
        self.patrol.keep_within(segments);
        self.fruitless = None;
    }
}

fn no_room() -> Error {
    Error::new(ErrorKind::NoSpace, "there is too little room in front of the new end for what lies behind it")
}

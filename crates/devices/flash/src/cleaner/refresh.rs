//! Refreshing: what lies on a block whose reads need more and more correction moves while it can
//! still be read.
//!
//! Bits of NAND flip with time and with the reads of their neighbours. The chip's code corrects
//! them up to a limit and says when a read comes near it, at the bitflip threshold. Such a segment
//! is emptied like one that is cleaned, and its next erase makes it as good as new. One that is
//! still being filled is closed first. Blocks of superblocks get a new superblock.
//!
//! Nothing is noted on the medium: after a crash, or a mount, the next read tells again.

use crate::cleaner::Cleaner;
use crate::space::segments::{SegmentState, SegmentTable};
use crate::volume::Volume;
use alloc::collections::BTreeMap;
use onode_object::Result;

/// What one step of refreshing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// There is nothing to be done, or no room for it.
    Nothing,
    /// Something.
    Done,
    /// Nothing: all that is left to be refreshed is still being filled.
    IsOpen,
}

/// A segment with reads at the bitflip threshold.
#[derive(Debug)]
struct Flipping {
    /// Its sequence number then.
    sequence: u32,
    /// Not all of it could be moved: it waits until it is read so again.
    waits: bool,
}

/// What is to be refreshed.
#[derive(Debug, Default)]
pub struct Refresh {
    /// Segments by their number.
    noted: BTreeMap<u32, Flipping>,
    /// The medium tells of bitflips.
    is_told: bool,
    /// A block of superblocks had some.
    superblocks: bool,
    /// Segments that were refreshed since the mount.
    refreshed: u64,
}

impl Refresh {
    /// Segments that are to be refreshed and cannot be: any if not even one segment can be emptied.
    pub fn stuck(&self, may_empty: bool) -> usize {
        self.noted.values().filter(|one| one.waits || !may_empty).count()
    }

    /// Whether the medium tells of bitflips, as far as it was asked.
    pub const fn is_told(&self) -> bool {
        self.is_told
    }

    /// Segments that were refreshed since the mount.
    pub const fn refreshed(&self) -> u64 {
        self.refreshed
    }

    /// Asks the medium, and forgets segments that hold nothing any more of what was read.
    fn note(&mut self, volume: &mut Volume<'_>) {
        let layout = *volume.log.layout();
        let told = volume.log.medium().nand().take_bitflips();
        self.is_told |= told.is_some();
        for block in told.unwrap_or_default() {
            match layout.segment_of_block(block) {
                Some(segment) => {
                    let sequence = volume.log.table().get(segment).sequence;
                    self.noted.insert(segment, Flipping { sequence, waits: false });
                }
                None => self.superblocks |= layout.superblocks.all().any(|one| one == block.0),
            }
        }
        let journal_sequence = volume.replay_sequence();
        let table = volume.log.table();
        self.noted.retain(|segment, noted| {
            let one = table.get(*segment);
            one.is_needed(journal_sequence) && one.sequence == noted.sequence && !table.is_stuck(*segment)
        });
    }

    /// Forgets what is still being filled.
    pub fn forget_open(&mut self, table: &SegmentTable) {
        self.noted.retain(|segment, _| table.get(*segment).state != SegmentState::Open);
    }

    /// There are so many segments from now on.
    pub(super) fn keep_within(&mut self, segments: u32) {
        self.noted.retain(|segment, _| *segment < segments);
    }

    /// One of the segments: those being filled come last, they may soon be full.
    fn next(&self, table: &SegmentTable) -> Option<u32> {
        let is_open = |segment: &u32| table.get(*segment).state == SegmentState::Open;
        let ready = self.noted.iter().filter(|(_, one)| !one.waits).map(|(segment, _)| *segment);
        ready.min_by_key(|segment| (is_open(segment), *segment))
    }
}

impl Cleaner {
    /// What is to be refreshed.
    pub const fn refresh(&self) -> &Refresh {
        &self.refresh
    }

    /// The same, to be told more.
    pub const fn refresh_mut(&mut self) -> &mut Refresh {
        &mut self.refresh
    }

    /// Asks the medium what is to be refreshed.
    pub fn note_bitflips(&mut self, volume: &mut Volume<'_>) {
        self.refresh.note(volume);
    }

    /// Refreshes a segment, if one is to be and there is room for what is on it.
    pub fn refresh_one(&mut self, volume: &mut Volume<'_>) -> Result<Refreshed> {
        self.note_bitflips(volume);
        if !Self::may_empty(volume.log, &volume.room()) {
            return Ok(Refreshed::Nothing);
        }
        let Some(segment) = self.refresh.next(volume.log.table()) else {
            if !core::mem::take(&mut self.refresh.superblocks) {
                return Ok(Refreshed::Nothing);
            }
            volume.set_free()?;
            return Ok(Refreshed::Done);
        };
        if volume.log.table().get(segment).state == SegmentState::Open {
            return Ok(Refreshed::IsOpen);
        }
        if !self.empty_segment(volume, segment)? {
            // There was too little room. It is not tried again each second: that costs programs.
            self.refresh.noted.entry(segment).and_modify(|one| one.waits = true);
            return Ok(Refreshed::Nothing);
        }
        self.refresh.noted.remove(&segment);
        self.refresh.refreshed += 1;
        Ok(Refreshed::Done)
    }
}

//! What a replay leaves to be done: content that may be readable now and not the next time moves,
//! and a checkpoint makes the replayed state durable.
//!
//! It keeps true: it can be cut at any point and begins anew with the next mount.

use super::{Pending, Placed, Recovery};
use crate::log::Log;
use crate::log::record::Piece;
use crate::policy::Stream;
use crate::space::segments::SegmentState;
use crate::volume::Volume;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Hints, Result};

/// Nothing is appended to what was open at the crash.
pub fn finish_segments(log: &mut Log) {
    for segment in 0..log.layout().segments {
        let is_needed = segment == log.next_journal().0 || log.access().is_filled(segment);
        if log.table().get(segment).state == SegmentState::Open && !is_needed {
            log.table_mut().update(segment, |entry| entry.state = SegmentState::Full);
        }
    }
}

impl Recovery {
    /// Makes the replayed state durable.
    pub fn finish(&mut self, volume: &mut Volume<'_>) -> Result<()> {
        let Pending { last, traces } = core::mem::take(&mut self.pending);
        // Segments opened since the checkpoint took numbers that only their pages know, and so may
        // those that this recovery opens if it is cut.
        volume.prepare_writing()?;
        // The journal goes on in a segment that no superblock names yet.
        let (abandoned, sequence) = volume.log.next_journal();
        let state = volume.log.table().get(abandoned).state;
        if !matches!(state, SegmentState::Full | SegmentState::Bad | SegmentState::Failing) {
            // Reserved, perhaps erased or begun, but never sealed by a record: it is nobody's.
            // Nothing else may go there before the next checkpoint, or a second replay would take
            // it for a later journal.
            volume.log.table_mut().update(abandoned, |entry| {
                entry.state = SegmentState::Full;
                entry.stream = Stream::Journal;
                entry.sequence = sequence;
            });
        }
        volume.log.reserve_journal()?;
        if let Some((at, page)) = last.filter(|_| !is_planted(Bug::SuspectStays)) {
            let first = volume.log.layout().location(at, 0);
            for (object, offset, piece) in &traces.last {
                // A piece may have begun in the page before, which was complete when this one was
                // programmed.
                let from = if is_planted(Bug::SuspectRunStays) { piece.location } else { piece.location.max(first) };
                let end = piece.location + u64::from(piece.length);
                let within = from.wrapping_sub(first) as usize..end.saturating_sub(first) as usize;
                if let Some(bytes) = page.payload.get(within).filter(|bytes| !bytes.is_empty()) {
                    let suspect = Piece { location: from, length: (end - from) as u32 };
                    Self::move_suspect(volume, (*object, *offset + (from - piece.location), suspect), bytes)?;
                }
            }
        }
        Self::move_waiting(volume, &traces.ends)?;
        volume.checkpoint()?;
        volume.log.waiting_pages_mut().clear();
        if volume.log.access().is_long() {
            volume.merge_access_times()?;
            volume.checkpoint()?;
        }
        Ok(())
    }

    /// Moves the content of pages that waited to be filled.
    fn move_waiting(volume: &mut Volume<'_>, ends: &[Placed]) -> Result<()> {
        let layout = *volume.log.layout();
        for (object, offset, piece) in ends {
            let end = piece.location + u64::from(piece.length);
            let (at, _) = layout.page_of(end.saturating_sub(1));
            let from = piece.location.max(layout.location(at, 0));
            let within = from - layout.location(at, 0);
            let Some(bytes) = volume.log.waiting_pages().bytes(at, within as usize, (end - from) as usize) else {
                continue;
            };
            let bytes = bytes.to_vec();
            let suspect = Piece { location: from, length: (end - from) as u32 };
            Self::move_suspect(volume, (*object, *offset + (from - piece.location), suspect), &bytes)?;
        }
        Ok(())
    }

    /// Moves what the object still has of a piece, or a version of it that was given the content
    /// since. `bytes` are what the piece holds: read once and never again, because the next read
    /// may fail.
    fn move_suspect(volume: &mut Volume<'_>, placed: Placed, bytes: &[u8]) -> Result<()> {
        let (object, offset, piece) = placed;
        let relatives = volume.checkpoints.mover(volume.index, volume.log).relatives(object)?;
        for owner in core::iter::once(object).chain(relatives) {
            if let Some(onode) = volume.index.onode(volume.log, owner)? {
                Self::move_suspect_of(volume, &onode.hints, (owner, offset, piece), bytes)?;
            }
        }
        Ok(())
    }

    /// Moves what `placed` names as far as it is the content of that very object, with `hints`.
    fn move_suspect_of(volume: &mut Volume<'_>, hints: &Hints, placed: Placed, bytes: &[u8]) -> Result<()> {
        let (object, offset, piece) = placed;
        let range = offset..offset + u64::from(piece.length);
        for extent in volume.index.extents(volume.log, object, range, usize::MAX)? {
            let start = extent.offset.max(offset);
            let end = extent.end().min(offset + u64::from(piece.length));
            let at = extent.piece.location + (start - extent.offset);
            if at == piece.location + (start - offset) {
                let range = (start - offset) as usize..(end - offset) as usize;
                let segment = volume.log.layout().segment_of(at);
                let stream = volume.log.stream_for_moved(segment, hints);
                let mut mover = volume.checkpoints.mover(volume.index, volume.log);
                mover.relocate(stream, object, start, &bytes[range])?;
            }
        }
        Ok(())
    }
}

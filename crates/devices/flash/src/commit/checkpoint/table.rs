//! Writing the segment table, which changes as it is written.

use crate::log::Log;
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NOWHERE};
use crate::space::items::Owner;
use crate::space::segments::{SegmentState, SegmentTable};
use alloc::vec::Vec;
use onode_object::Result;

/// Writes the changed pieces of the segment table.
///
/// Writing a piece changes the table: the segment it goes to gains live bytes, the one it was
/// in loses them. So the set of pieces is completed first, until it no longer grows. The table of a
/// volume that has grown may be longer than a segment. Then no piece counts any more where it was,
/// and as many as fit into a segment are written at a time: what that changes are the pieces that
/// describe these few segments, and the last set is complete with them.
pub fn write_table(log: &mut Log) -> Result<()> {
    let fit = SegmentTable::pieces_that_fit(log.layout());
    let is_long = changed(log).count() > fit && log.table().pieces().len() > fit && fit > 0;
    if is_long {
        for piece in log.table_mut().give_changed_up() {
            log.release(piece.location.get(), u64::from(piece.length.get()));
        }
    }
    let most = if is_long { fit } else { usize::MAX };
    while !write_pieces(log, most)? {}
    Ok(())
}

/// The pieces that differ from what is on the medium.
fn changed(log: &Log) -> impl Iterator<Item = usize> {
    (0..log.table().pieces().len()).filter(|&piece| log.table().is_dirty(piece))
}

/// Writes `most` of the changed pieces; whether no other is left.
fn write_pieces(log: &mut Log, most: usize) -> Result<bool> {
    let mut wanted = Vec::new();
    let mut is_complete;
    let segment = loop {
        let mut dirty: Vec<usize> = changed(log).collect();
        is_complete = dirty.len() <= most;
        dirty.truncate(most);
        let segment = log.reserve_index(dirty.len() * log.table().piece_bytes())?;
        log.table_mut().touch(segment);
        for &piece in &dirty {
            let old = log.table().pieces()[piece].location.get();
            if old != NOWHERE {
                let segment = log.layout().segment_of(old);
                log.table_mut().touch(segment);
            }
        }
        if dirty == wanted || !is_complete {
            wanted = dirty;
            break segment;
        }
        wanted = dirty;
    };
    let mut lengths = Vec::with_capacity(wanted.len());
    for &piece in &wanted {
        let old = log.table().pieces()[piece];
        if old.location.get() != NOWHERE {
            log.release(old.location.get(), u64::from(old.length.get()));
        }
        let length = log.table().encode_piece(piece).len();
        log.table_mut().retain(segment, length as u64);
        lengths.push(length);
    }
    for (index, &piece) in wanted.iter().enumerate() {
        let mut bytes = log.table().encode_piece(piece);
        bytes.resize(lengths[index], 0);
        let owner = Owner::TablePiece { piece: piece as u32 };
        let location = log.append_index(&bytes, owner)?;
        if log.layout().segment_of(location) != segment {
            if log.table().get(segment).state != SegmentState::Failing {
                return Err(damaged("the segment table did not go where room was made for it"));
            }
            // A program failed: the pieces that are left, this one too, stay where they were.
            for (&piece, &length) in wanted.iter().zip(&lengths).skip(index) {
                return_piece(log, piece, segment, length);
            }
            return Ok(false);
        }
        let reference = BlobReference {
            location: location.into(),
            length: (bytes.len() as u32).into(),
            checksum: onode_base::checksum::crc32c(&bytes).into(),
        };
        log.table_mut().set_piece(piece, reference);
    }
    Ok(is_complete)
}

/// Takes back what was noted down for the move of a piece to `segment`, where it was to take
/// `length` bytes.
fn return_piece(log: &mut Log, piece: usize, segment: u32, length: usize) {
    let old = log.table().pieces()[piece];
    log.table_mut().release(segment, length as u64);
    if old.location.get() != NOWHERE {
        let length = u64::from(old.length.get());
        log.retain(old.location.get(), length);
    }
}

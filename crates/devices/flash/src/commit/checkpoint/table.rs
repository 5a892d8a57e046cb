//! Writing the segment table, which changes as it is written.

use crate::log::Log;
use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NOWHERE};
use crate::space::items::Owner;
use crate::space::segments::SegmentState;
use alloc::vec::Vec;
use onode_object::Result;

/// Writes the changed pieces of the segment table.
///
/// Writing a piece changes the table: the segment it goes to gains live bytes, the one it was
/// in loses them. So the set of pieces is completed first, until it no longer grows. The table of a
/// volume that has grown may be longer than a segment. Then no changed piece counts any more where
/// it was, and as many as fit into a segment are written at a time. What that changes again are the
/// pieces that describe these segments, which are fewer: they are written in the next round, until
/// they fit into one.
pub fn write_table(log: &mut Log) -> Result<()> {
    let most = if log.table().is_long() { log.table().pieces_at_once() } else { usize::MAX };
    loop {
        if write_complete_set(log, most)? {
            return Ok(());
        }
        let dirty: Vec<usize> = changed(log).collect();
        if dirty.len() <= most {
            // A program failed.
            continue;
        }
        for piece in log.table_mut().give_changed_up() {
            log.release(piece.location.get(), u64::from(piece.length.get()));
        }
        for pieces in dirty.chunks(most) {
            let segment = log.reserve_index(pieces.len() * log.table().piece_bytes())?;
            if !write_pieces(log, pieces, segment)? {
                break;
            }
        }
    }
}

/// The pieces that differ from what is on the medium.
fn changed(log: &Log) -> impl Iterator<Item = usize> {
    (0..log.table().pieces().len()).filter(|&piece| log.table().is_dirty(piece))
}

/// Writes the changed pieces and those that this changes, if they are at most so many; whether they
/// are all on the medium.
fn write_complete_set(log: &mut Log, most: usize) -> Result<bool> {
    let mut wanted = Vec::new();
    let segment = loop {
        let dirty: Vec<usize> = changed(log).collect();
        if dirty.len() > most {
            return Ok(false);
        }
        let segment = log.reserve_index(dirty.len() * log.table().piece_bytes())?;
        log.table_mut().touch(segment);
        for &piece in &dirty {
            let old = log.table().pieces()[piece].location.get();
            if old != NOWHERE {
                let segment = log.layout().segment_of(old);
                log.table_mut().touch(segment);
            }
        }
        if dirty == wanted {
            break segment;
        }
        wanted = dirty;
    };
    write_pieces(log, &wanted, segment)
}

/// Writes pieces to the open segment, which has room for them; false if a program failed.
fn write_pieces(log: &mut Log, wanted: &[usize], segment: u32) -> Result<bool> {
    let mut lengths = Vec::with_capacity(wanted.len());
    for &piece in wanted {
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
    Ok(true)
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

//! Mending an object that no member has whole: each piece of its content comes from whoever has it,
//! and what nobody has can be given up.
//!
//! It keeps true: a piece becomes a hole only if no member that has the object can give it, and
//! then on all of them, so that they stay alike.

use crate::pool::Pool;
use crate::pool::read::{PIECE_BYTES, is_damage};
use onode_object::{Durability, ObjectDevice, ObjectId, Result, Transaction};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes that are read at once.
const READ_BYTES: u64 = 256 << 10;

/// What became of pieces that a member could not give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Bytes that another member had, and that all have again.
    pub written_bytes: u64,
    /// What is a hole now, neighbours as one.
    pub dropped: Vec<Range<u64>>,
}

impl<D: ObjectDevice> Pool<D> {
    /// Writes anew what a member of an object cannot give and another one can; with `may_drop` what
    /// nobody can give becomes a hole. Nobody else may use the pool meanwhile.
    ///
    /// # Errors
    /// `NotFound`; those of changes; else only if it cannot go on. What cannot be read is no error.
    pub fn mend(&self, object: ObjectId, may_drop: bool) -> Result<Mended> {
        let size = self.stat(object)?.size;
        let mut mended = Mended::default();
        for start in self.damaged_pieces(object)? {
            let piece = start..size.min(start + PIECE_BYTES);
            if piece.is_empty() {
                continue;
            }
            let length = piece.end - piece.start;
            let mut bytes = vec![0; length as usize];
            let mut transaction = Transaction::new();
            match self.read(object, start, &mut bytes) {
                Ok(count) => {
                    bytes.truncate(count);
                    mended.written_bytes += count as u64;
                    transaction.write(object, start, bytes);
                }
                Err(error) if is_damage(error.kind) && !may_drop => continue,
                Err(error) if is_damage(error.kind) => {
                    transaction.punch(object, start, length);
                    match mended.dropped.last_mut() {
                        Some(last) if last.end == start => last.end = piece.end,
                        _ => mended.dropped.push(piece),
                    }
                }
                Err(error) => return Err(error),
            }
            self.commit(transaction, Durability::Buffered)?;
        }
        Ok(mended)
    }

    /// Where the pieces begin that some member cannot give.
    fn damaged_pieces(&self, object: ObjectId) -> Result<BTreeSet<u64>> {
        let mut damaged = BTreeSet::new();
        let mut buffer = vec![0; READ_BYTES as usize];
        for index in self.holders(object) {
            let device = &self.members[index].device;
            let mut at = 0;
            loop {
                let extents = match device.extents(object, at, 1) {
                    // What it has of it cannot be told, so it has nothing to be mended by itself.
                    Err(error) if is_damage(error.kind) => break,
                    extents => extents?,
                };
                let Some((start, length)) = extents.first().copied() else { break };
                let end = start.saturating_add(length);
                at = at.max(start / PIECE_BYTES * PIECE_BYTES);
                while at < end {
                    let wanted = (end - at).min(READ_BYTES);
                    let is_sound = |at: u64, bytes: &mut [u8]| match device.read(object, at, bytes) {
                        Err(error) if is_damage(error.kind) => Ok(false),
                        read => read.map(|_| true),
                    };
                    if !is_sound(at, buffer.get_mut(..wanted as usize).unwrap_or_default())? {
                        for piece in (at..at + wanted).step_by(PIECE_BYTES as usize) {
                            let length = PIECE_BYTES.min(end - piece);
                            if !is_sound(piece, buffer.get_mut(..length as usize).unwrap_or_default())? {
                                damaged.insert(piece);
                            }
                        }
                    }
                    at += wanted;
                }
            }
        }
        Ok(damaged)
    }
}

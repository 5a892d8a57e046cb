//! Content stored anew, as is wished now: what was written before a file was to be compressed, or
//! no longer.
//!
//! Nothing else of the file changes: bytes, holes, size and times stay. Each step is a transaction
//! under the lock of the file system, so writers come between steps and lose nothing. Programs
//! reach it through [`REWRITE`], a range at a time: so they can show how far they are, and stop.

use crate::content::cluster::blocks_of;
use crate::error::{Error, Result};
use crate::file_system::{BLOCK_BYTES, FileSystem};
use crate::state::State;
use crate::types::InodeNumber;
use onode_base::ErrorKind;
use onode_object::{Demand, Mutation, ObjectId, ObjectKind, Transaction};
use std::ops::Range;

/// The attribute whose setting to `OFFSET LENGTH` stores that range of a file anew.
pub const REWRITE: &str = "onode.rewrite";

/// A step begins and ends at multiples of it, or at those of the range: what is compressed as one
/// is read and written as one.
const ALIGNMENT: u64 = 64 << 10;
const EXTENTS_AT_ONCE: usize = 64;

impl FileSystem {
    /// Stores the content of a file from `offset` on anew, as the mount and the file's own choice
    /// have it now. What lies behind the end of the file is nothing. Content that programs use as
    /// memory stays as it is.
    ///
    /// # Errors
    /// `NotSupported` if the device compresses nothing; `NoSpace`, `Corrupt`: what came before is
    /// stored anew, the rest is as it was; `ReadOnly`, `Stale`, `IsDirectory`; the device's errors.
    pub fn rewrite(&self, number: InodeNumber, offset: u64, length: u64) -> Result<()> {
        self.check_writable()?;
        self.check_compresses()?;
        let end = offset.saturating_add(length);
        let step = (self.transaction_bytes as u64 / ALIGNMENT).max(1) * ALIGNMENT;
        let mut at = offset;
        while at < end {
            let next = (at / step + 1).saturating_mul(step).min(end);
            if !self.rewrite_step(number, at..next)? {
                break;
            }
            at = next;
        }
        Ok(())
    }

    /// Stores a range anew; false if the file has nothing there or behind.
    fn rewrite_step(&self, number: InodeNumber, range: Range<u64>) -> Result<bool> {
        let state = &mut *self.lock();
        self.check_regular(state, number)?;
        self.write_back_file(state, number)?;
        let node = self.node(state, number)?;
        let (size, object) = (node.size, number.object());
        if node.removed {
            return Err(Error::of(ErrorKind::Stale, number, "the file is gone"));
        }
        if range.start >= size || self.device.stat(object)?.hints.kind == ObjectKind::Memory {
            return Ok(false);
        }
        let most = (self.transaction_bytes / BLOCK_BYTES as usize).max(1);
        let mut transaction = Transaction::new();
        let mut from = range.start;
        while from < range.end {
            let found = self.device.extents(object, from, EXTENTS_AT_ONCE)?;
            let Some(behind) = found.last().map(|(start, length)| start + length) else { break };
            for (start, length) in found {
                let piece = start.max(range.start)..(start + length).min(range.end);
                if piece.is_empty() {
                    continue;
                }
                transaction.write(object, piece.start, self.content_of(object, &piece)?);
                if transaction.mutations.len() >= most {
                    self.store_anew(state, size, std::mem::take(&mut transaction))?;
                }
            }
            from = behind.max(from + 1);
        }
        self.store_anew(state, size, transaction)?;
        state.statistics.changes += 1;
        Ok(true)
    }

    fn content_of(&self, object: ObjectId, piece: &Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (piece.end - piece.start) as usize];
        let count = self.device.read(object, piece.start, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Writes what a file of `size` bytes has already, in what is not set aside for others.
    fn store_anew(&self, state: &mut State, size: u64, transaction: Transaction) -> Result<()> {
        let mut demand = Demand { object_bytes: size, ..Demand::default() };
        for mutation in &transaction.mutations {
            let Mutation::Write { offset, data, .. } = mutation else { continue };
            demand.ranges += 1;
            demand.bytes += data.len() as u64;
            demand.blocks += blocks_of(*offset, data.len());
        }
        self.leave_room(state, &demand)?;
        self.commit_promised(state, transaction)
    }

    /// Does what the setting of the attribute asks for.
    pub(crate) fn set_rewrite_xattr(&self, number: InodeNumber, value: &[u8]) -> Result<()> {
        let words = str::from_utf8(value).ok().and_then(|text| text.trim().split_once(' '));
        let range = words.and_then(|(offset, length)| Some((offset.parse().ok()?, length.parse().ok()?)));
        let why = "it is not OFFSET LENGTH, both in bytes";
        let (offset, length) = range.ok_or_else(|| Error::of(ErrorKind::Invalid, number, why))?;
        self.rewrite(number, offset, length)
    }
}

//! Content that changes its object: its extents do, and the bytes stay where they lie.
//!
//! It keeps true: a segment never counts less than what is referred to on it, also half-way: what
//! is moved is entered for the one object before it is taken from the other.

use super::Applied;
use crate::log::Log;
use crate::log::record::Piece;
use core::ops::Range;
use onode_object::{ObjectId, Result};

/// Extents that are moved at a time.
const EXTENTS_AT_ONCE: usize = 64;

/// Which bytes move where.
pub(super) struct ContentMove {
    /// What moves, as far as the object has it.
    pub(super) range: Range<u64>,
    /// The object that gets it.
    pub(super) to: ObjectId,
}

impl Applied {
    /// Gives content of `object` to another one, at the same offsets.
    pub(super) fn move_content(&mut self, log: &mut Log, object: ObjectId, content: &ContentMove) -> Result<()> {
        let (mut giver, mut taker) = (self.require(log, object)?, self.require(log, content.to)?);
        let range = content.range.start..content.range.end.min(giver.size);
        if range.is_empty() || object == content.to {
            return Ok(());
        }
        if taker.allocated > 0 && range.start < taker.size {
            let freed = self.unplace(log, content.to, range.clone())?;
            taker.allocated = taker.allocated.saturating_sub(freed);
        }
        let mut at = range.start;
        while giver.allocated > 0 && at < range.end {
            let extents = self.extents(log, object, at..range.end, EXTENTS_AT_ONCE)?;
            let Some(last) = extents.last() else { break };
            let until = last.end().min(range.end);
            let mut bytes = 0;
            for extent in &extents {
                let (start, end) = (extent.offset.max(at), extent.end().min(range.end));
                let piece =
                    Piece { location: extent.piece.location + (start - extent.offset), length: (end - start) as u32 };
                self.link(log, content.to, start, &[piece], taker.allocated + bytes > 0)?;
                bytes += end - start;
            }
            self.unplace(log, object, at..until)?;
            taker.allocated += bytes;
            giver.allocated = giver.allocated.saturating_sub(bytes);
            at = until;
        }
        taker.size = taker.size.max(range.end);
        self.set_onode(log, object, &giver)?;
        self.set_onode(log, content.to, &taker)
    }
}

//! Joining: where everything goes to one log, what the cleaner moves takes short neighbours along.
//!
//! Moves divide runs: at the end of a segment, and where a commit comes in between. Among content
//! of other objects and nodes the parts never meet again by themselves, so that each pass of the
//! cleaner made more extents, until they took the space that was left. The larger part fetches the
//! smaller one: nothing is moved that is longer than what had to be moved anyway.

use crate::core::Core;
use crate::index::apply::Extent;
use crate::log::record::Piece;
use alloc::vec::Vec;
use onode_object::{ObjectId, Result};

/// Pages up to which parts are joined.
const JOINED_PAGES: u32 = 16;

impl Core {
    /// The runs to be moved with `piece`, which holds the bytes of `object` from `offset` on,
    /// `piece` among them; and where in the object the first of them begins.
    pub fn with_neighbours(&mut self, object: ObjectId, offset: u64, piece: Piece) -> Result<(u64, Vec<Piece>)> {
        let limit = u64::from(JOINED_PAGES * self.log.store.layout.payload_bytes);
        let enough_room = self.comfortable_budget() >= self.log.store.layout.segment_bytes() / 2;
        if !self.is_combined() || !self.options.extents || !enough_room || u64::from(piece.length) >= limit {
            return Ok((offset, Vec::from([piece])));
        }
        let end = offset + u64::from(piece.length);
        let joins = |core: &Self, one: &Extent| {
            let segment = core.log.store.layout.segment_of(one.piece.location);
            // What a replay would place again is young, and may soon be replaced.
            let old = !core.log.table.get(segment).in_replay(core.checkpoint_state.journal_sequence);
            old && !core.stuck.contains(&segment) && one.piece.length <= piece.length
        };
        let before = if offset > 0 { self.extents(object, offset - 1, offset, 1)?.pop() } else { None };
        let after = self.extents(object, end, end + 1, 1)?.pop();
        let before = before.filter(|one| one.end() == offset && joins(self, one));
        let after = after.filter(|one| one.offset == end && joins(self, one));
        let start = before.map_or(offset, |one| one.offset);
        Ok((start, before.map(|one| one.piece).into_iter().chain([piece]).chain(after.map(|one| one.piece)).collect()))
    }
}

//! The cleaner: moves what is still needed off a segment, so that a checkpoint can set it free.
//!
//! Content goes to the cold stream and its extents follow; tree nodes and table pieces are only
//! marked as changed, the next checkpoint writes them elsewhere. Nothing of this is logged: until
//! that checkpoint the old places stay intact, and a crash simply forgets the move.

pub mod joining;
pub mod levelling;
pub mod pace;

use crate::core::Core;
use crate::index::tree::Key;
use crate::log::Writer;
use crate::log::record::Piece;
use crate::policy::Stream;
use crate::space::items::{Item, Owner};
use crate::space::segments::SegmentState;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

/// A segment that is being cleaned, and how far.
pub struct Cleaning {
    segment: u32,
    sequence: u32,
    items: Vec<Item>,
    next: usize,
    /// Bytes of the next item that are done.
    within: u32,
    /// Table pieces lie there; they leave only with the next checkpoint.
    holds_table: bool,
    /// It is emptied for the sake of wear: what is on it goes to rest on a worn segment.
    levels: bool,
}

/// Pages of content that are moved in one go: a run for the medium, and no more than a short wait.
const MOVED_PAGES: u32 = 8;

impl Cleaning {
    /// Memory it holds.
    pub const fn memory_bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>()
    }

    /// Whether it is for the sake of wear.
    pub const fn levels(&self) -> bool {
        self.levels
    }

    /// The next item or, of a long run of content, the next part.
    fn take(&mut self, payload_bytes: u32) -> Option<Item> {
        let item = *self.items.get(self.next)?;
        let Owner::Content { object, offset } = item.owner else {
            self.next += 1;
            return Some(item);
        };
        let (start, left) = (item.start + self.within, item.length - self.within);
        // Parts end where pages do, so that no page is read twice, and less than a page is no part
        // of its own.
        let whole = left < (MOVED_PAGES + 1) * payload_bytes;
        let length = if whole { left } else { MOVED_PAGES * payload_bytes - start % payload_bytes };
        let owner = Owner::Content { object, offset: offset + u64::from(self.within) };
        if length == left {
            self.next += 1;
            self.within = 0;
        } else {
            self.within += length;
        }
        Some(Item { start, length, owner })
    }
}

impl Core {
    /// Cleans the segment that the victim policy names or, if `greedy`, the one that gives back
    /// most at once, if there is one with at most `budget_bytes` to be moved. False if there is
    /// none.
    pub fn clean_one(&mut self, greedy: bool, budget_bytes: u64) -> Result<bool> {
        if greedy {
            self.cleaning = None;
        }
        self.stop_levelling();
        if !self.begin_cleaning(greedy, budget_bytes)? {
            return Ok(false);
        }
        while !self.clean_step(u64::MAX)? {}
        Ok(true)
    }

    /// Makes sure that a segment is being cleaned which has at most `budget_bytes` left to be
    /// moved. False if there is none.
    pub fn begin_cleaning(&mut self, greedy: bool, budget_bytes: u64) -> Result<bool> {
        if self.being_cleaned().is_some_and(|left| left <= budget_bytes) {
            return Ok(true);
        }
        self.cleaning = None;
        let journal_sequence = self.log.journal_position().1.min(self.checkpoint_state.journal_sequence);
        let (stuck, emptied) = (&self.stuck, &self.emptied);
        let candidates = self
            .log
            .table
            .candidates(journal_sequence)
            .filter(|one| !stuck.contains(&one.segment) && !emptied.contains(&one.segment));
        let victim = if greedy {
            self.cheapest(candidates, budget_bytes)
        } else {
            let candidates = candidates.filter(|one| u64::from(one.live_bytes) <= budget_bytes);
            self.victim.choose(candidates)
        };
        let Some(victim) = victim else { return Ok(false) };
        self.prepare_writing()?;
        self.begin_with(victim.segment, false)?;
        Ok(true)
    }

    /// Bytes that are left to be moved off the segment being cleaned, if one is.
    pub fn being_cleaned(&self) -> Option<u64> {
        let cleaning = self.cleaning.as_ref()?;
        let one = self.log.table.get(cleaning.segment);
        // It may have been set free and filled anew since the last step.
        let same = one.sequence == cleaning.sequence && one.state != SegmentState::Open && one.live_bytes > 0;
        same.then_some(u64::from(one.live_bytes))
    }

    /// Moves everything off `segment`.
    pub fn clean_segment(&mut self, segment: u32) -> Result<()> {
        self.begin_with(segment, false)?;
        while !self.clean_step(u64::MAX)? {}
        Ok(())
    }

    /// Begins with `segment`, for the sake of wear if `levels`.
    pub fn begin_with(&mut self, segment: u32, levels: bool) -> Result<()> {
        if is_planted(Bug::CleanerMovesNothing) {
            let live_bytes = self.log.table.get(segment).live_bytes;
            self.log.table.release(segment, u64::from(live_bytes));
        }
        let items = self.items_on(segment, IoTag::Cleaning)?;
        if !levels {
            self.learn_from(segment);
        }
        let holds_table = items.iter().any(|item| matches!(item.owner, Owner::TablePiece { .. }));
        let sequence = self.log.table.get(segment).sequence;
        self.cleaning = Some(Cleaning { segment, sequence, items, next: 0, within: 0, holds_table, levels });
        Ok(())
    }

    /// Moves about `bytes` of content off the segment being cleaned, or less if a checkpoint comes
    /// to be due; true once nothing is left to be moved, or there is no room to move more.
    pub fn clean_step(&mut self, bytes: u64) -> Result<bool> {
        let Some(mut cleaning) = self.cleaning.take() else { return Ok(true) };
        let segment = cleaning.segment;
        let base = u64::from(segment) * self.log.store.layout.segment_bytes();
        let moved = self.statistics.bytes_moved;
        while let Some(item) = cleaning.take(self.log.store.layout.payload_bytes) {
            match self.move_item(&item, base + u64::from(item.start), cleaning.levels) {
                Ok(()) => {}
                // What is damaged stays where it is and readable as far as it is.
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    self.stuck.insert(segment);
                }
                Err(error) => return Err(error),
            }
            let limit = self.emptying_dirty_limit();
            let is_due = self.dirty_bytes() > limit;
            if is_due && (bytes == u64::MAX || limit < self.dirty_limit) {
                self.checkpoint(false)?;
            }
            if self.reserve_ends(segment) {
                // Only a checkpoint gets further from here, if anything does.
                self.cleaning = Some(cleaning);
                return Ok(true);
            }
            let pauses = (is_due && bytes < u64::MAX) || self.statistics.bytes_moved - moved >= bytes;
            if pauses {
                // What is left of the items may all be stale.
                if self.log.table.get(segment).live_bytes == 0 {
                    break;
                }
                self.cleaning = Some(cleaning);
                return Ok(false);
            }
        }
        if self.log.table.get(segment).live_bytes > 0 {
            let kept = if cleaning.holds_table { &mut self.emptied } else { &mut self.stuck };
            kept.insert(segment);
        }
        self.statistics.segments_cleaned += 1;
        self.statistics.segments_levelled += u64::from(cleaning.levels);
        Ok(true)
    }

    /// Whether moving on with `segment` could take the segments that the next checkpoint needs.
    fn reserve_ends(&self, segment: u32) -> bool {
        let step = u64::from(MOVED_PAGES * self.log.store.layout.payload_bytes);
        let opens = self.log.table.get(segment).stream != Stream::Index && self.moving_room() < step;
        !self.can_write_nodes(0, u32::from(opens))
    }

    /// Moves what is still needed of `item`, which lies at `location`, to rest on a worn segment if
    /// `levels`.
    pub fn move_item(&mut self, item: &Item, location: u64, levels: bool) -> Result<()> {
        match item.owner {
            Owner::Content { object, offset } => {
                let segment = self.log.store.layout.segment_of(location);
                let stream = if levels { self.stream_for_resting() } else { self.stream_for_moved(segment) };
                let moved = self.statistics.bytes_moved;
                self.move_content(ObjectId(object), offset, item.length, location, stream)?;
                self.statistics.bytes_levelled += if levels { self.statistics.bytes_moved - moved } else { 0 };
                Ok(())
            }
            Owner::Node { key, level } => {
                let (tree, mut source) = self.index();
                source.tag = IoTag::Cleaning;
                if tree.touch(&mut source, &key, level, location)? {
                    self.statistics.node_bytes_moved += u64::from(item.length);
                }
                Ok(())
            }
            Owner::TablePiece { piece } => {
                let piece = piece as usize;
                let pieces = self.log.table.pieces();
                if pieces.get(piece).is_some_and(|reference| reference.location.get() == location) {
                    self.log.table.touch_piece(piece);
                }
                Ok(())
            }
        }
    }

    /// Moves to `stream` what `object` still refers to in `length` bytes at `location`, written for
    /// `offset`.
    fn move_content(
        &mut self,
        object: ObjectId,
        offset: u64,
        length: u32,
        location: u64,
        stream: Stream,
    ) -> Result<()> {
        let until = offset + u64::from(length);
        let mut from = offset;
        // An extent may go on behind `until`; it would be found again and again.
        while from < until {
            let Some(extent) = self.extents(object, from, until, 1)?.first().copied() else { break };
            let start = extent.offset.max(from);
            let end = extent.end().min(until);
            from = end;
            let at = extent.piece.location + (start - extent.offset);
            // Only if these very bytes are the ones in the segment; else they were overwritten
            // since.
            if at != location + (start - offset) {
                continue;
            }
            self.move_bytes(object, start, Piece { location: at, length: (end - start) as u32 }, stream)?;
        }
        Ok(())
    }

    /// Copies `piece`, which holds the bytes of `object` from `offset` on, to `stream`, with what
    /// it takes along.
    fn move_bytes(&mut self, object: ObjectId, offset: u64, piece: Piece, stream: Stream) -> Result<()> {
        let (start, pieces) = self.with_neighbours(object, offset, piece)?;
        if pieces.len() > 1 {
            match self.move_run(object, start, &pieces, stream) {
                // A neighbour that is damaged is no reason to leave this one where it is.
                Err(error) if error.kind == ErrorKind::Corrupt => {}
                moved => return moved,
            }
        }
        self.move_run(object, offset, &[piece], stream)
    }

    /// Copies `pieces`, which hold the bytes of `object` from `offset` on, to `stream`.
    fn move_run(&mut self, object: ObjectId, offset: u64, pieces: &[Piece], stream: Stream) -> Result<()> {
        let mut bytes = vec![0; pieces.iter().map(|piece| piece.length as usize).sum()];
        let mut rest = bytes.as_mut_slice();
        for piece in pieces {
            let (one, others) = rest.split_at_mut(piece.length as usize);
            self.log.read(piece.location, one, IoTag::Cleaning)?;
            rest = others;
        }
        self.relocate(stream, object, offset, &bytes)
    }

    /// Writes `bytes`, which `object` holds from `offset` on, to `stream` instead.
    pub fn relocate(&mut self, stream: Stream, object: ObjectId, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut pieces = Vec::new();
        self.append_content((stream, Writer::Cleaner), object, offset, bytes, &mut pieces)?;
        self.unplace(object, offset, offset + bytes.len() as u64)?;
        self.link(object, offset, &pieces, true)?;
        self.statistics.bytes_moved += bytes.len() as u64;
        Ok(())
    }

    /// What was written to `segment`, whether it is still needed or not.
    pub fn items_on(&mut self, segment: u32, tag: IoTag) -> Result<Vec<Item>> {
        match self.log.items_of(segment, tag) {
            Some(items) => Ok(items),
            // A segment that was open at a crash has no summary: the index tells what lies there.
            None => self.items_from_index(segment),
        }
    }

    /// The items of a segment without a summary, from a walk over the whole index.
    fn items_from_index(&mut self, segment: u32) -> Result<Vec<Item>> {
        self.settle_all()?;
        let layout = self.log.store.layout;
        let start_of = |location: u64| (location % layout.segment_bytes()) as u32;
        let mut items = Vec::new();
        for (piece, reference) in self.log.table.pieces().iter().enumerate() {
            let location = reference.location.get();
            if layout.contains(location, 0) && layout.segment_of(location) == segment {
                let owner = Owner::TablePiece { piece: piece as u32 };
                items.push(Item { start: start_of(location), length: reference.length.get(), owner });
            }
        }
        let (tree, mut source) = self.index();
        source.tag = IoTag::Cleaning;
        tree.walk(&mut source, &mut |place, node| {
            if let Some(place) = place
                && layout.segment_of(place.location.get()) == segment
            {
                let key = node.first_key().unwrap_or(Key::MIN);
                let owner = Owner::Node { key, level: node.level };
                items.push(Item { start: start_of(place.location.get()), length: place.length.get(), owner });
            }
            if node.level == 0 {
                for index in 0..node.len() {
                    let key = node.key(index);
                    let extent = if key.kind == Key::EXTENT {
                        crate::index::apply::Extent::decode(&key, node.value(index))
                    } else {
                        None
                    };
                    if let Some(extent) = extent.filter(|one| layout.segment_of(one.piece.location) == segment) {
                        let owner = Owner::Content { object: key.object, offset: extent.offset };
                        let start = start_of(extent.piece.location);
                        items.push(Item { start, length: extent.piece.length, owner });
                    }
                }
            }
            Ok(())
        })?;
        Ok(items)
    }
}

//! The cleaner: moves what is still needed off a segment, so that a checkpoint can set it free.
//!
//! Content goes to the cold stream and its extents follow; tree nodes and table pieces are only marked
//! as changed, the next checkpoint writes them elsewhere. Nothing of this is logged: until that
//! checkpoint the old places stay intact, and a crash simply forgets the move.

use crate::core::Core;
use crate::items::{Item, Owner};
use crate::log::Writer;
use crate::policy::Stream;
use crate::record::Piece;
use crate::tree::Key;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

impl Core {
    /// Cleans the segment that the victim policy names, if one has at most `budget_bytes` to be moved.
    /// False if there is none.
    pub fn clean_one(&mut self, budget_bytes: u64) -> Result<bool> {
        let journal_sequence = self.log.journal_position().1.min(self.checkpoint_state.journal_sequence);
        let stuck = &self.stuck;
        let candidates = self
            .log
            .table
            .candidates(journal_sequence)
            .filter(|one| u64::from(one.live_bytes) <= budget_bytes && !stuck.contains(&one.segment));
        let Some(victim) = self.victim.choose(candidates) else { return Ok(false) };
        self.prepare_writing()?;
        self.clean_segment(victim.segment)?;
        Ok(true)
    }

    /// Moves everything off `segment`.
    pub fn clean_segment(&mut self, segment: u32) -> Result<()> {
        if is_planted(Bug::CleanerMovesNothing) {
            let live_bytes = self.log.table.get(segment).live_bytes;
            self.log.table.release(segment, u64::from(live_bytes));
        }
        let items = match self.log.items_of(segment, IoTag::Cleaning) {
            Some(items) => items,
            // A segment that was open at a crash has no summary: the index tells what lies there.
            None => self.items_from_index(segment)?,
        };
        self.learn_from(segment);
        // Table pieces leave only with the next checkpoint.
        let holds_table = items.iter().any(|item| matches!(item.owner, Owner::TablePiece { .. }));
        let base = u64::from(segment) * self.log.store.layout.segment_bytes();
        for item in items {
            match self.move_item(&item, base + u64::from(item.start)) {
                Ok(()) => {}
                // What is damaged stays where it is and readable as far as it is.
                Err(error) if error.kind == ErrorKind::Corrupt => {
                    self.stuck.insert(segment);
                }
                Err(error) => return Err(error),
            }
            if self.dirty_bytes() > self.cleaning_dirty_limit() {
                self.checkpoint(false)?;
            }
        }
        if self.log.table.get(segment).live_bytes > 0 && !holds_table {
            self.stuck.insert(segment);
        }
        self.statistics.segments_cleaned += 1;
        Ok(())
    }

    /// Moves what is still needed of `item`, which lies at `location`.
    pub fn move_item(&mut self, item: &Item, location: u64) -> Result<()> {
        match item.owner {
            Owner::Content { object, offset } => self.move_content(ObjectId(object), offset, item.length, location),
            Owner::Node { key, level } => {
                let (tree, mut source) = self.index();
                source.tag = IoTag::Cleaning;
                tree.touch(&mut source, &key, level, location).map(|_| ())
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

    /// Moves what `object` still refers to in `length` bytes at `location`, written for `offset`.
    fn move_content(&mut self, object: ObjectId, offset: u64, length: u32, location: u64) -> Result<()> {
        let until = offset + u64::from(length);
        let mut from = offset;
        // An extent may go on behind `until`; it would be found again and again.
        while from < until {
            let Some(extent) = self.extents(object, from, until, 1)?.first().copied() else { break };
            let start = extent.offset.max(from);
            let end = extent.end().min(until);
            from = end;
            let at = extent.piece.location + (start - extent.offset);
            // Only if these very bytes are the ones in the segment; else they were overwritten since.
            if at != location + (start - offset) {
                continue;
            }
            self.move_bytes(object, start, Piece { location: at, length: (end - start) as u32 })?;
        }
        Ok(())
    }

    /// Copies `piece`, which holds the bytes of `object` from `offset` on, to where what survives goes.
    fn move_bytes(&mut self, object: ObjectId, offset: u64, piece: Piece) -> Result<()> {
        let mut bytes = vec![0; piece.length as usize];
        self.log.read(piece.location, &mut bytes, IoTag::Cleaning)?;
        let segment = self.log.store.layout.segment_of(piece.location);
        self.relocate(self.stream_for_moved(segment), object, offset, &bytes)
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

    /// The items of a segment without a summary, from a walk over the whole index.
    fn items_from_index(&mut self, segment: u32) -> Result<Vec<Item>> {
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
                        crate::apply::Extent::decode(&key, node.value(index))
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

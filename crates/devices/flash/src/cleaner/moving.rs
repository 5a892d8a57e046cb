//! Moving: what is still needed of a segment goes elsewhere.
//!
//! Content goes to the streams of moved content and its extents follow; tree nodes and table pieces
//! are only marked as changed, the next checkpoint writes them elsewhere. Nothing of this is
//! logged: until that checkpoint the old places stay intact, and a crash simply forgets the move.
//!
//! Where everything goes to one log, short neighbours come along. Moves divide runs: at the end of
//! a segment, and where a commit comes in between. Among content of other objects and nodes the
//! parts never meet again by themselves, so that each pass of the cleaner made more extents, until
//! they took the space that was left. The larger part fetches the smaller one: nothing is moved
//! that is longer than what had to be moved anyway.
//!
//! It does not choose what is moved.

use crate::cleaner::ahead::Ahead;
use crate::cleaner::family;
use crate::index::Index;
use crate::index::apply::Extent;
use crate::log::record::Piece;
use crate::log::{Log, Writer};
use crate::policy::Stream;
use crate::space::items::{Item, Owner};
use crate::space::room::{Room, Settings};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::{Hints, ObjectId, Result};

/// Pages up to which parts are joined.
const JOINED_PAGES: u32 = 16;

/// Moves content and nodes.
pub struct Mover<'a> {
    index: &'a mut Index,
    log: &'a mut Log,
    settings: Settings,
    /// A replay would place again what the journal has from this segment on.
    journal_sequence: u32,
    /// Content goes to rest on a worn segment.
    levels: bool,
    /// Content gets more parity if its object wishes that.
    protects: bool,
    /// Content may have moved to another object since it was written.
    has_versions: bool,
    /// Content that was read before.
    ahead: Option<&'a Ahead>,
}

impl<'a> Mover<'a> {
    /// One for a volume whose replay begins at `journal_sequence`.
    pub const fn new(index: &'a mut Index, log: &'a mut Log, settings: Settings, journal_sequence: u32) -> Self {
        let (levels, protects, has_versions) = (false, false, false);
        Self { index, log, settings, journal_sequence, levels, protects, has_versions, ahead: None }
    }

    /// The same, for the sake of wear if `levels`.
    pub const fn levelling(self, levels: bool) -> Self {
        Self { levels, ..self }
    }

    /// The same, for the sake of parity.
    pub const fn protecting(self) -> Self {
        Self { protects: true, ..self }
    }

    /// The same, with content that was read before.
    pub const fn with_ahead(self, ahead: &'a Ahead) -> Self {
        Self { ahead: Some(ahead), ..self }
    }

    /// The same, on a volume where objects may have versions if `has_versions`.
    pub const fn among_versions(self, has_versions: bool) -> Self {
        Self { has_versions, ..self }
    }

    /// Moves what is still needed of `item`, which lies at `location`, whoever has it now.
    pub fn move_item_of_any(&mut self, item: &Item, location: u64) -> Result<()> {
        self.move_item(item, location)?;
        self.move_item_of_relatives(item, location)
    }

    /// Moves what relatives of the object that `item` names, which lies at `location`, have of it
    /// now: their content was written to that object.
    pub fn move_item_of_relatives(&mut self, item: &Item, location: u64) -> Result<()> {
        let Owner::Content { object, offset } = item.owner else { return Ok(()) };
        for relative in self.relatives(ObjectId(object))? {
            self.move_content(relative, offset, item.length, location)?;
        }
        Ok(())
    }

    /// The objects beside it that may have content that was written to `object`; none on a volume
    /// without versions, of which nothing is asked.
    pub fn relatives(&mut self, object: ObjectId) -> Result<Vec<ObjectId>> {
        if self.has_versions { family::relatives(self.index, self.log, object) } else { Ok(Vec::new()) }
    }

    /// Where content of `object` that lies at `location` goes.
    fn stream_for(&mut self, object: ObjectId, location: u64) -> Result<Stream> {
        let layout = *self.log.layout();
        let segment = layout.segment_of(location);
        // Only who may choose the parity is asked what they wish.
        let onode = if layout.chosen_parity.is_some() { self.index.onode(self.log, object)? } else { None };
        let mut hints = onode.map_or_else(Hints::default, |onode| onode.hints);
        let has = layout.parity_at(location);
        if !self.protects && layout.parity_for(hints.parity_pages) > has {
            // More parity takes more room, which may be somebody's by now.
            hints.parity_pages = if has == 0 { Hints::NO_PARITY } else { has };
        }
        Ok(if self.levels { self.log.stream_for_resting(&hints) } else { self.log.stream_for_moved(segment, &hints) })
    }

    /// Moves what is still needed of `item`, which lies at `location`, by the owner that it names.
    pub fn move_item(&mut self, item: &Item, location: u64) -> Result<()> {
        match item.owner {
            Owner::Content { object, offset } => self.move_content(ObjectId(object), offset, item.length, location),
            Owner::Node { key, level } => {
                if self.index.entries_mut().nodes_mut().touch(self.log, &key, level, location)? {
                    self.log.count_moved_nodes(u64::from(item.length));
                }
                Ok(())
            }
            Owner::TablePiece { piece } => {
                let piece = piece as usize;
                let pieces = self.log.table().pieces();
                if pieces.get(piece).is_some_and(|reference| reference.location.get() == location) {
                    self.log.table_mut().touch_piece(piece);
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
            let Some(extent) = self.index.extents(self.log, object, from..until, 1)?.first().copied() else {
                break;
            };
            let start = extent.offset.max(from);
            let end = extent.end().min(until);
            from = end;
            let at = extent.piece.location + (start - extent.offset);
            // Only if these very bytes are the ones in the segment; else they were overwritten
            // since.
            if at != location + (start - offset) {
                continue;
            }
            let stream = self.stream_for(object, at)?;
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
            match self.ahead.and_then(|ahead| ahead.bytes_of(*piece)) {
                Some(bytes) => one.copy_from_slice(bytes),
                None => self.log.read(piece.location, one, IoTag::Cleaning)?,
            }
            rest = others;
        }
        self.relocate(stream, object, offset, &bytes)
    }

    /// The runs to be moved with `piece`, which holds the bytes of `object` from `offset` on,
    /// `piece` among them; and where in the object the first of them begins.
    fn with_neighbours(&mut self, object: ObjectId, offset: u64, piece: Piece) -> Result<(u64, Vec<Piece>)> {
        let limit = u64::from(JOINED_PAGES * self.log.layout().payload_bytes);
        let enough_room = Room::new(self.log, self.index, self.settings).comfortable_budget()
            >= self.log.layout().segment_bytes() / 2;
        if !self.log.is_combined() || !self.settings.has_runs || !enough_room || u64::from(piece.length) >= limit {
            return Ok((offset, Vec::from([piece])));
        }
        let end = offset + u64::from(piece.length);
        let joins = |mover: &Self, one: &Extent| {
            let segment = mover.log.layout().segment_of(one.piece.location);
            // What a replay would place again is young, and may soon be replaced.
            let old = !mover.log.table().get(segment).in_replay(mover.journal_sequence);
            old && !mover.log.table().is_stuck(segment) && one.piece.length <= piece.length
        };
        let before = if offset > 0 { self.index.extents(self.log, object, offset - 1..offset, 1)?.pop() } else { None };
        let after = self.index.extents(self.log, object, end..end + 1, 1)?.pop();
        let before = before.filter(|one| one.end() == offset && joins(self, one));
        let after = after.filter(|one| one.offset == end && joins(self, one));
        let start = before.map_or(offset, |one| one.offset);
        Ok((start, before.map(|one| one.piece).into_iter().chain([piece]).chain(after.map(|one| one.piece)).collect()))
    }

    /// Writes `bytes`, which `object` holds from `offset` on, to `stream` instead.
    pub fn relocate(&mut self, stream: Stream, object: ObjectId, offset: u64, bytes: &[u8]) -> Result<()> {
        let pieces = self.log.append_content(stream, Writer::Cleaner, object, offset, bytes)?;
        self.index.replace(self.log, object, offset, &pieces)?;
        self.log.count_moved_content(bytes.len() as u64);
        Ok(())
    }
}

/// What was written to `segment`, whether it is still needed or not.
pub fn items_on(index: &mut Index, log: &mut Log, segment: u32, tag: IoTag) -> Result<Vec<Item>> {
    match log.items_of(segment, tag) {
        Some(items) => Ok(items),
        // A segment that was open at a crash has no summary: the index tells what lies there.
        None => items_from_index(index, log, segment),
    }
}

/// The items of a segment without a summary, from a walk over the whole index.
fn items_from_index(index: &mut Index, log: &mut Log, segment: u32) -> Result<Vec<Item>> {
    // What is cut off only after this lies there as well as not.
    index.apply_deferred_places(log)?;
    let layout = *log.layout();
    let start_of = |location: u64| layout.within(location);
    let mut items = Vec::new();
    for (piece, reference) in log.table().pieces().iter().enumerate() {
        let location = reference.location.get();
        if layout.contains(location, 0) && layout.segment_of(location) == segment {
            let owner = Owner::TablePiece { piece: piece as u32 };
            items.push(Item { start: start_of(location), length: reference.length.get(), owner });
        }
    }
    index.entries_mut().nodes_mut().walk(log, &mut |place, node| {
        if let Some(place) = place
            && layout.segment_of(place.location.get()) == segment
        {
            let key = node.first_key().unwrap_or(Key::MIN);
            let owner = Owner::Node { key, level: node.level() };
            items.push(Item { start: start_of(place.location.get()), length: place.length.get(), owner });
        }
        if node.level() == 0 {
            for index in 0..node.len() {
                let key = node.key(index);
                let extent = if key.kind == Key::EXTENT { Extent::decode(&key, node.value(index)) } else { None };
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

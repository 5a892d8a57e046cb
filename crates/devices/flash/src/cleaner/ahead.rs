//! Reading ahead of the cleaner: what the next items need of the index and of the medium is asked
//! for together, so that all chips of a NAND or the whole queue of a disk work for one step.
//!
//! It keeps true: it changes nothing and decides nothing. What it read stands for a place until a
//! checkpoint sets segments free; then it is forgotten, because the place may be written anew.

use crate::index::Index;
use crate::index::tree::Sought;
use crate::log::Log;
use crate::log::record::Piece;
use crate::space::items::{Item, Owner};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::ObjectId;

/// Bytes of content that are read together at most.
const BYTES_TOGETHER: u64 = 256 << 10;
/// So many extents of one item are read ahead.
const EXTENTS_OF_ITEM: usize = 16;

/// What was read ahead.
#[derive(Default)]
pub struct Ahead {
    bytes: Vec<u8>,
    /// Where the bytes of a place begin and end, by location.
    places: BTreeMap<u64, Range<usize>>,
    /// Items that it was read for, as far as they have not been moved.
    items: usize,
}

impl Ahead {
    /// Items that are looked at together at most.
    pub const ITEMS_MAX: usize = 64;

    /// Bytes of content that are read together at most: no more than are kept of pages that were
    /// read.
    pub fn most_bytes(log: &Log) -> u64 {
        BYTES_TOGETHER.min(log.store().pages().budget_bytes() as u64)
    }

    /// What it takes to move `items`, the next ones of `segment`, as far as it can be read.
    pub fn read(index: &mut Index, log: &mut Log, segment: u32, items: &[Item]) -> Self {
        let mut ahead = Self { items: items.len(), ..Self::default() };
        if items.len() < 2 || !log.store().reads_together() {
            return ahead;
        }
        let mut sought: Vec<Sought> = items.iter().filter_map(sought_by).collect();
        sought.sort_unstable();
        index.entries_mut().load_ahead(log, &sought, IoTag::Cleaning);
        let base = log.start_of(segment);
        let needed: Vec<Piece> = items.iter().flat_map(|item| needed(index, log, item, base)).collect();
        if let Some(bytes) = log.read_ahead(&needed, IoTag::Cleaning) {
            ahead.bytes = bytes;
            let mut from = 0;
            for piece in needed {
                let until = from + piece.length as usize;
                ahead.places.insert(piece.location, from..until);
                from = until;
            }
        }
        ahead
    }

    /// Whether all items were moved that it was read for.
    pub const fn is_over(&self) -> bool {
        self.items == 0
    }

    /// The next item is moved.
    pub const fn pass(&mut self) {
        self.items = self.items.saturating_sub(1);
    }

    /// The bytes of `piece`, if they were read.
    pub fn bytes_of(&self, piece: Piece) -> Option<&[u8]> {
        let (location, range) = self.places.range(..=piece.location).next_back()?;
        let skipped = usize::try_from(piece.location - location).ok()?;
        let bytes = self.bytes.get(range.clone())?;
        bytes.get(skipped..)?.get(..piece.length as usize)
    }
}

/// The node of the index that says whether `item` is still needed.
fn sought_by(item: &Item) -> Option<Sought> {
    match item.owner {
        Owner::Content { object, offset } => Some(Sought { key: Key::extent(ObjectId(object), offset), level: 0 }),
        Owner::Node { key, level } => Some(Sought { key, level: level + 1 }),
        Owner::TablePiece { .. } => None,
    }
}

/// What is still needed of the content that `item` of the segment at `base` names. What is deferred
/// is not looked at: it is applied when the item is moved.
fn needed(index: &mut Index, log: &mut Log, item: &Item, base: u64) -> Vec<Piece> {
    let Owner::Content { object, offset } = item.owner else { return Vec::new() };
    let location = base + u64::from(item.start);
    let end = offset + u64::from(item.length);
    let extents = index.applied_extents(log, ObjectId(object), offset..end, EXTENTS_OF_ITEM);
    let pieces = extents.unwrap_or_default().into_iter().filter_map(|extent| {
        let (start, until) = (extent.offset.max(offset), extent.end().min(end));
        let at = extent.piece.location + (start - extent.offset);
        let is_there = start < until && at == location + (start - offset);
        is_there.then(|| Piece { location: at, length: (until - start) as u32 })
    });
    pieces.collect()
}

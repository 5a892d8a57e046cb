//! More segments, when a volume grows.
//!
//! It keeps true: what the table was on the medium counts as long as the superblock that names it
//! does. So all of it is written anew, in pieces of another size, and the places of the pieces of
//! before are given up with them.

use super::{Segment, SegmentState, SegmentTable, piece};
use crate::medium::format::{BlobReference, NOWHERE};
use crate::medium::layout::Layout;
use alloc::vec;
use alloc::vec::Vec;
use onode_media::Geometry;

/// The fewest pieces that fit into a segment, if not all of them do: those that describe the few
/// segments to which others were written have room in one.
const LEAST_FIT: usize = 6;

impl SegmentTable {
    /// How many pieces fit into a segment of their own.
    pub(super) fn pieces_that_fit(layout: &Layout) -> usize {
        let pages = (layout.segment_pages - layout.segment_pages / 32).saturating_sub(4);
        pages as usize * layout.payload_bytes as usize / piece::bytes_max(Self::piece_entries(layout))
    }

    /// How many pieces are written at a time, one at least.
    pub const fn pieces_at_once(&self) -> usize {
        if self.pieces_fit == 0 { 1 } else { self.pieces_fit }
    }

    /// Whether not all pieces of the table fit into a segment.
    pub const fn is_long(&self) -> bool {
        self.pieces.len() > self.pieces_at_once()
    }

    /// Whether the table of a medium of this layout can be written.
    pub fn can_describe(layout: &Layout) -> bool {
        let (pieces, fit) = (Self::piece_count(layout), Self::pieces_that_fit(layout));
        pieces <= fit || fit >= LEAST_FIT
    }

    /// The most segments that such a volume can have.
    pub fn most_segments(layout: &Layout) -> u32 {
        // More segments never need fewer pieces, nor shorter ones.
        let (mut can, mut cannot) = (layout.segments, Geometry::MOST_BLOCKS);
        while cannot - can > 1 {
            let segments = can + (cannot - can) / 2;
            if Self::can_describe(&Layout { segments, ..*layout }) { can = segments } else { cannot = segments }
        }
        can
    }

    /// The places of the changed pieces are given up: gives them back to be released.
    pub fn give_changed_up(&mut self) -> Vec<BlobReference> {
        let mut given_up = Vec::new();
        for (piece, _) in self.pieces.iter_mut().zip(&self.dirty).filter(|(_, dirty)| **dirty) {
            given_up.push(core::mem::replace(piece, nowhere()));
        }
        given_up.retain(|piece| piece.location.get() != NOWHERE);
        given_up
    }

    /// Takes up the segments that `layout` has beyond those there are: `state` says what each is.
    /// Gives the places of the pieces of before back, which nothing refers to any more.
    pub fn grow(&mut self, layout: &Layout, state: impl Fn(u32) -> SegmentState) -> Vec<BlobReference> {
        let before = self.entries.len() as u32;
        for segment in before..layout.segments {
            let entry = Segment { state: state(segment), ..Segment::NEW };
            self.entries.push(entry);
        }
        self.end_at(layout.segments);
        self.divide_anew(layout)
    }

    /// Divides the table into pieces as that of a volume of this layout. Gives the places of the
    /// pieces of before back, which nothing refers to any more.
    pub(super) fn divide_anew(&mut self, layout: &Layout) -> Vec<BlobReference> {
        self.piece_entries = Self::piece_entries(layout);
        self.pieces_fit = Self::pieces_that_fit(layout);
        let pieces = self.entries.len().div_ceil(self.piece_entries);
        let mut given_up = core::mem::replace(&mut self.pieces, vec![nowhere(); pieces]);
        self.dirty = vec![true; pieces];
        given_up.retain(|piece| piece.location.get() != NOWHERE);
        given_up
    }
}

fn nowhere() -> BlobReference {
    BlobReference { location: NOWHERE.into(), ..BlobReference::default() }
}

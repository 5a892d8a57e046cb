//! The segment table on the medium: pieces of some entries each, of which a checkpoint writes those
//! that changed.
//!
//! It keeps true: a piece of which an entry changed is dirty until it is written.

use super::{Segment, SegmentTable, packed, piece};
use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use crate::medium::layout::Layout;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use onode_object::Result;

impl SegmentTable {
    /// Entries of one piece: about a page of them, and so many that the references fit the
    /// superblock page.
    pub fn piece_entries(layout: &Layout) -> usize {
        let payload = layout.payload_bytes as usize;
        let fit = (payload - size_of::<crate::medium::format::Superblock>()) / size_of::<BlobReference>();
        (layout.segments as usize).div_ceil(fit.min(64)).max(payload / piece::ENTRY_BYTES_USUAL)
    }

    /// Number of pieces of a table for `layout`.
    pub fn piece_count(layout: &Layout) -> usize {
        (layout.segments as usize).div_ceil(Self::piece_entries(layout))
    }

    /// Bytes of the largest piece.
    pub const fn piece_bytes(&self) -> usize {
        piece::bytes_max(self.piece_entries)
    }

    /// References to the pieces on the medium.
    pub fn pieces(&self) -> &[BlobReference] {
        &self.pieces
    }

    /// Whether a piece differs from what is on the medium.
    pub fn is_dirty(&self, piece: usize) -> bool {
        self.dirty[piece]
    }

    /// Marks the piece that describes `segment` as changed.
    pub fn touch(&mut self, segment: u32) {
        self.dirty[segment as usize / self.piece_entries] = true;
    }

    /// Marks a piece as changed.
    pub fn touch_piece(&mut self, piece: usize) {
        self.dirty[piece] = true;
    }

    /// Bytes of a piece as it is now.
    pub fn encode_piece(&self, piece: usize) -> Vec<u8> {
        piece::encode(&self.entries[self.range(piece)], self.next_sequence)
    }

    /// The same for the memory beside the flash, where every byte counts.
    pub fn pack_piece(&self, piece: usize, layout: &Layout) -> Vec<u8> {
        packed::encode(&self.entries[self.range(piece)], layout)
    }

    fn range(&self, piece: usize) -> Range<usize> {
        let start = piece * self.piece_entries;
        start..(start + self.piece_entries).min(self.entries.len())
    }

    /// A piece was written.
    pub fn set_piece(&mut self, piece: usize, reference: BlobReference) {
        self.pieces[piece] = reference;
        self.dirty[piece] = false;
    }

    /// All pieces are loaded: memory and medium agree.
    pub fn finish_loading(&mut self) {
        self.dirty.fill(false);
    }

    /// Takes a piece read from the medium.
    ///
    /// # Errors
    /// `Corrupt` if it does not describe this medium's segments.
    pub fn load_piece(&mut self, piece: usize, reference: BlobReference, bytes: &[u8], layout: &Layout) -> Result<()> {
        let entries = piece::decode(bytes, self.range(piece).len(), layout)
            .map_err(|what| damaged(format!("segment table piece {piece}: {what}")))?;
        self.load(piece, reference, entries)
    }

    /// Takes a piece from the memory beside the flash.
    ///
    /// # Errors
    /// As [`load_piece`](Self::load_piece).
    pub fn load_packed(&mut self, piece: usize, reference: BlobReference, bytes: &[u8], layout: &Layout) -> Result<()> {
        let entries = packed::decode(bytes, self.range(piece).len(), layout)
            .ok_or_else(|| damaged(format!("the memory has no sense in piece {piece} of the segment table")))?;
        self.load(piece, reference, entries)
    }

    fn load(&mut self, piece: usize, reference: BlobReference, entries: Vec<Segment>) -> Result<()> {
        let range = self.range(piece);
        if range.is_empty() {
            return Err(damaged(format!("there is no piece {piece} of the segment table")));
        }
        for (number, loaded) in range.zip(entries) {
            self.live_bytes += u64::from(loaded.live_bytes);
            self.update(number as u32, |entry| *entry = loaded);
        }
        self.set_piece(piece, reference);
        Ok(())
    }
}

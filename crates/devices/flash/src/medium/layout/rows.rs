//! Rows of pages with parity: how the pages of a segment are divided among its erase blocks where a
//! volume keeps parity (paper 1, section III.C).
//!
//! A row is one page of each erase block of the segment: first pages of content, then one to three
//! of parity. So parity never lies in the erase block of its data, a row outlives as many lost
//! pages as it has pages of parity, and a segment as many lost blocks. Blocks take turns from row
//! to row, so that every chip has its share of either.
//!
//! Only this file knows where the pages of parity lie: everything above counts the pages of content
//! alone. A page of parity has a number behind all of these.

use super::{Layout, SegmentPage};
use crate::medium::format::PageTrailer;
use crate::policy::Stream;
use alloc::format;
use onode_base::ErrorKind;
use onode_object::{Error, Hints, ParityChoice, Result};

/// The most pages of parity in a row.
pub const PARITY_PAGES_MAX: u32 = onode_codec::parity::PARITY_PAGES_MAX as u32;

/// The most pages of content in a row: with more, parity is thin and finding a page again slow.
const ROW_PAGES_MAX: u32 = 255;

/// Bytes at the end of a page, or behind the records in its spare area, beside its trailer: the
/// signature of a page of content, the parity of the trailers in one of parity.
pub const AREA_BYTES: u32 = 16;

/// Bytes of a page that are not its own if parity is kept, without records: trailer and area.
const TAKEN_BYTES: u32 = size_of::<PageTrailer>() as u32 + AREA_BYTES;

/// A row of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The segment.
    pub segment: u32,
    /// The row, counted in writing order: also the page of each block.
    pub row: u32,
    /// How many of its pages are parity.
    pub parity: u8,
}

impl Row {
    /// Row `number` of the segment of `at`.
    #[must_use]
    pub const fn beside(at: SegmentPage, number: u32) -> Self {
        Self { segment: at.segment, row: number, parity: at.parity }
    }
}

/// What content takes where objects choose their parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenParity {
    /// What they choose from.
    pub choice: ParityChoice,
    /// Pages of a row.
    blocks: u32,
}

impl ChosenParity {
    const fn columns(self, parity: u8) -> u64 {
        (self.blocks - parity as u32) as u64
    }

    /// So many bytes of content with the usual parity are as much as `bytes` with the most.
    #[must_use]
    pub const fn bytes_of_usual(self, bytes: u64) -> u64 {
        bytes / self.columns(self.choice.most) * self.columns(self.choice.usual)
    }

    /// So many bytes must be left for content with the usual parity where `bytes` with any are to
    /// have room.
    #[must_use]
    pub const fn bytes_for_any(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.columns(self.choice.most)).saturating_mul(self.columns(self.choice.usual))
    }
}

impl Layout {
    /// The same with `parity_pages` in each row.
    ///
    /// # Errors
    /// `Invalid` if segments have too few blocks or pages have no room for it.
    pub fn with_parity(mut self, parity_pages: u8) -> Result<Self> {
        let parity_pages = u32::from(parity_pages);
        if parity_pages == 0 {
            return Ok(self);
        }
        let invalid = |detail| Err(Error::new(ErrorKind::Invalid, detail));
        if parity_pages > PARITY_PAGES_MAX {
            return invalid(format!("{parity_pages} pages of parity in a row; at most {PARITY_PAGES_MAX} can be kept"));
        }
        if self.blocks_per_segment < parity_pages + 2 {
            let blocks = self.blocks_per_segment;
            return invalid(format!(
                "a segment of {blocks} erase blocks is too narrow for {parity_pages} of parity: it needs {} at least",
                parity_pages + 2
            ));
        }
        if self.blocks_per_segment - parity_pages > ROW_PAGES_MAX {
            return invalid(format!(
                "segments of {} erase blocks are too wide for parity: a row may have {ROW_PAGES_MAX} pages of content",
                self.blocks_per_segment
            ));
        }
        let spare_bytes = self.geometry.spare_bytes;
        if Self::trailer_in_spare(&self.geometry) {
            if spare_bytes < TAKEN_BYTES {
                return invalid(format!(
                    "parity needs {TAKEN_BYTES} bytes of spare area a page, or none at all; there are {spare_bytes}"
                ));
            }
            // Records are covered in symbols of two bytes.
            let left = (spare_bytes - TAKEN_BYTES) / 2 * 2;
            self.spare_record_bytes = self.spare_record_bytes.min(left);
        } else {
            self.payload_bytes -= AREA_BYTES;
        }
        self.parity_pages = parity_pages;
        self.segment_pages = self.pages_with(parity_pages as u8);
        self.validate()?;
        Ok(self)
    }

    /// The same where objects choose how many pages of parity the rows with their content have, up
    /// to what there is now: `usual` for those that wish nothing.
    ///
    /// # Errors
    /// `Invalid` if that is more than there can be, or segments are too wide.
    pub fn with_choice(mut self, usual: u8) -> Result<Self> {
        if u32::from(usual) > self.parity_pages || self.parity_pages == 0 {
            let detail = format!("content with {usual} pages of parity, on a volume with {}", self.parity_pages);
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        if self.blocks_per_segment > ROW_PAGES_MAX {
            let detail = format!("segments of {} erase blocks are too wide for parity", self.blocks_per_segment);
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        self.chosen_parity = Some(usual);
        self.validate()?;
        Ok(self)
    }

    /// Whether pages lie in rows, which are covered by parity or may be.
    #[must_use]
    pub const fn has_parity(&self) -> bool {
        self.parity_pages > 0
    }

    /// Pages of parity in each row of the segments that `stream` fills.
    #[must_use]
    pub const fn parity_of(&self, stream: Stream) -> u8 {
        match (self.chosen_parity, stream.wished_parity()) {
            (Some(_), Some(wished)) => wished,
            (Some(usual), None) if stream.is_content() => usual,
            _ => self.parity_pages as u8,
        }
    }

    /// Whether segments of the volume may belong to `stream`.
    #[must_use]
    pub const fn has_stream(&self, stream: Stream) -> bool {
        match (self.chosen_parity, stream.wished_parity()) {
            (_, None) => true,
            (Some(_), Some(wished)) => wished as u32 <= self.parity_pages,
            (None, Some(_)) => false,
        }
    }

    /// The pages of parity that content gets where `wished` are: none are `u8::MAX`, nothing was
    /// said if 0.
    #[must_use]
    pub const fn parity_for(&self, wished: u8) -> u8 {
        let most = self.parity_pages as u8;
        match (self.chosen_parity, wished) {
            (None, _) => most,
            (Some(usual), 0) => usual,
            (Some(_), Hints::NO_PARITY) => 0,
            (Some(_), wished) if wished < most => wished,
            _ => most,
        }
    }

    /// How objects choose, if they do.
    #[must_use]
    pub fn chosen(&self) -> Option<ChosenParity> {
        let usual = self.chosen_parity?;
        let choice = ParityChoice { most: self.parity_pages as u8, usual };
        Some(ChosenParity { choice, blocks: self.blocks_per_segment })
    }

    /// How many numbers of pages of parity content can have beside the usual one: each has a stream
    /// of its own.
    #[must_use]
    pub const fn unusual_parities(&self) -> u32 {
        if self.chosen_parity.is_some() { self.parity_pages } else { 0 }
    }

    /// Pages of content in a row with `parity` pages of it.
    #[must_use]
    pub const fn row_pages(&self, parity: u8) -> u32 {
        self.blocks_per_segment - parity as u32
    }

    /// Pages of a segment with those of parity.
    #[must_use]
    pub const fn all_pages(&self) -> u32 {
        self.blocks_per_segment * self.geometry.pages_per_block
    }

    /// The row of a page, and which page of content of that row it is; nothing for one of parity.
    #[must_use]
    pub const fn row_of(&self, at: SegmentPage) -> (Row, Option<u32>) {
        let Some(behind) = at.page.checked_sub(self.pages_with(at.parity)) else {
            let columns = self.row_pages(at.parity);
            return (Row::beside(at, at.page / columns), Some(at.page % columns));
        };
        // Nothing lies behind the pages of content of a segment without parity.
        let pages = if at.parity > 0 { at.parity as u32 } else { 1 };
        (Row::beside(at, behind / pages), None)
    }

    /// Page `column` of content of `row`.
    #[must_use]
    pub const fn content_page(&self, row: Row, column: u32) -> SegmentPage {
        let page = row.row * self.row_pages(row.parity) + column;
        SegmentPage { segment: row.segment, page, parity: row.parity }
    }

    /// All pages of content of `row`.
    pub fn content_pages(&self, row: Row) -> impl Iterator<Item = SegmentPage> + use<> {
        let layout = *self;
        (0..self.row_pages(row.parity)).map(move |column| layout.content_page(row, column))
    }

    /// All rows of `segment`, which `stream` fills.
    pub fn rows_of(&self, stream: Stream, segment: u32) -> impl Iterator<Item = Row> + use<> {
        let parity = self.parity_of(stream);
        (0..self.geometry.pages_per_block).map(move |row| Row { segment, row, parity })
    }

    /// Page `number` of parity of `row`.
    #[must_use]
    pub const fn parity_page(&self, row: Row, number: u32) -> SegmentPage {
        let page = self.pages_with(row.parity) + row.row * row.parity as u32 + number;
        SegmentPage { segment: row.segment, page, parity: row.parity }
    }

    /// The block of its segment, and the page of that block, behind a page of a segment with rows.
    pub(super) const fn place_in_row(&self, at: SegmentPage) -> (u32, u32) {
        let columns = self.row_pages(at.parity);
        let (row, column) = match at.page.checked_sub(self.pages_with(at.parity)) {
            Some(behind) if at.parity > 0 => {
                let parity = at.parity as u32;
                (behind / parity, columns + behind % parity)
            }
            _ => (at.page / columns, at.page % columns),
        };
        ((column + row) % self.blocks_per_segment, row)
    }

    /// Bytes of a page that parity covers: payload, trailer and records in the spare area.
    #[must_use]
    pub const fn covered_bytes(&self) -> usize {
        self.payload_bytes as usize + size_of::<PageTrailer>() + self.spare_record_bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use onode_media::Geometry;

    fn layout(chips: u32, spare_bytes: u32, parity_pages: u8) -> Layout {
        let shape = Geometry { page_bytes: 2048, spare_bytes, pages_per_block: 8, blocks: 200, chips };
        Layout::new(shape, 8).unwrap().with_records_in_spare().with_parity(parity_pages).unwrap()
    }

    #[test]
    fn every_row_has_a_page_of_each_block_and_blocks_are_filled_in_order() {
        for (chips, parity_pages) in [(1, 1), (4, 1), (1, 3), (8, 2)] {
            let layout = layout(chips, 64, parity_pages);
            assert_eq!(layout.segment_pages, (8 - u32::from(parity_pages)) * 8);
            for segment in [0, 3] {
                let mut next = BTreeMap::new();
                let mut seen = BTreeSet::new();
                for row in layout.rows_of(Stream::Data, segment) {
                    let content = layout.content_pages(row);
                    let parity = (0..layout.parity_pages).map(|number| layout.parity_page(row, number));
                    let mut blocks = BTreeSet::new();
                    for at in content.chain(parity) {
                        assert_eq!(layout.row_of(at).0, row);
                        let address = layout.address(at);
                        assert!(seen.insert(address));
                        let block = layout.geometry.block_of(address);
                        assert!(blocks.insert(block), "two pages of a row in one block");
                        assert!(layout.blocks(segment).any(|one| one == block));
                        let expected = next.entry(block).or_insert(layout.geometry.first_page(block));
                        assert_eq!(*expected, address);
                        expected.0 += 1;
                    }
                }
                assert_eq!(seen.len() as u32, layout.all_pages());
            }
        }
    }

    #[test]
    fn room_is_taken_for_the_parity_of_trailers() {
        let in_spare = layout(1, 64, 1);
        assert_eq!((in_spare.payload_bytes, in_spare.spare_record_bytes), (2048, 32));
        assert_eq!(layout(1, 224, 1).spare_record_bytes, 112);
        let in_page = layout(1, 0, 1);
        assert_eq!((in_page.payload_bytes, in_page.spare_record_bytes), (2048 - 32, 0));
        assert_eq!(in_page.covered_bytes(), 2048 - 16);
        assert_eq!(layout(1, 0, 0).payload_bytes, 2048 - 16);
    }

    #[test]
    fn impossible_parity_is_refused() {
        let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 8, blocks: 200, chips: 1 };
        let with = |shape, blocks, parity| Layout::new(shape, blocks).unwrap().with_parity(parity);
        assert!(with(shape, 8, 4).is_err());
        assert!(with(shape, 2, 1).is_err());
        assert!(with(Geometry { blocks: 1 << 13, ..shape }, 300, 1).is_err());
        assert!(with(shape, 3, 1).is_ok());
        assert!(with(Geometry { spare_bytes: 16, ..shape }, 8, 1).is_err());
        assert!(with(Geometry { spare_bytes: 32, ..shape }, 8, 1).is_ok());
    }
}

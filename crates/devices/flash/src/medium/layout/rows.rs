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
use alloc::format;
use onode_base::ErrorKind;
use onode_object::{Error, Result};

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
        let row_pages = self.blocks_per_segment - parity_pages;
        if row_pages > ROW_PAGES_MAX {
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
        self.segment_pages = self.row_pages() * self.geometry.pages_per_block;
        self.validate()?;
        Ok(self)
    }

    /// Whether pages are covered by parity.
    #[must_use]
    pub const fn has_parity(&self) -> bool {
        self.parity_pages > 0
    }

    /// Pages of content in a row.
    #[must_use]
    pub const fn row_pages(&self) -> u32 {
        self.blocks_per_segment - self.parity_pages
    }

    /// Pages of a segment with those of parity.
    #[must_use]
    pub const fn all_pages(&self) -> u32 {
        self.blocks_per_segment * self.geometry.pages_per_block
    }

    /// The row of a page, and which page of content of that row it is; nothing for one of parity.
    #[must_use]
    pub const fn row_of(&self, at: SegmentPage) -> (Row, Option<u32>) {
        let Some(behind) = at.page.checked_sub(self.segment_pages) else {
            let row = Row { segment: at.segment, row: at.page / self.row_pages() };
            return (row, Some(at.page % self.row_pages()));
        };
        (Row { segment: at.segment, row: behind / self.parity_pages }, None)
    }

    /// Page `column` of content of `row`.
    #[must_use]
    pub const fn content_page(&self, row: Row, column: u32) -> SegmentPage {
        SegmentPage { segment: row.segment, page: row.row * self.row_pages() + column }
    }

    /// All pages of content of `row`.
    pub fn content_pages(&self, row: Row) -> impl Iterator<Item = SegmentPage> + use<> {
        let layout = *self;
        (0..self.row_pages()).map(move |column| layout.content_page(row, column))
    }

    /// All rows of `segment`.
    pub fn rows_of(&self, segment: u32) -> impl Iterator<Item = Row> + use<> {
        (0..self.geometry.pages_per_block).map(move |row| Row { segment, row })
    }

    /// Page `number` of parity of `row`.
    #[must_use]
    pub const fn parity_page(&self, row: Row, number: u32) -> SegmentPage {
        SegmentPage { segment: row.segment, page: self.segment_pages + row.row * self.parity_pages + number }
    }

    /// The block of its segment, and the page of that block, behind page `page` of a segment with
    /// rows.
    pub(super) const fn place_in_row(&self, page: u32) -> (u32, u32) {
        let (row, column) = match page.checked_sub(self.segment_pages) {
            None => (page / self.row_pages(), page % self.row_pages()),
            Some(behind) => (behind / self.parity_pages, self.row_pages() + behind % self.parity_pages),
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
                for row in layout.rows_of(segment) {
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

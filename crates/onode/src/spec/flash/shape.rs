//! The shape of a NAND: its pages, blocks and segments, and what suits a size of which nothing else
//! was said.

use super::Parity;
use crate::error::{Class, Error, Result};
use crate::spec::DEFAULT_SIZE;
use onode_base::size::exact_size;
use onode_media::Geometry;

/// The shape of a NAND, as far as it was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Data bytes in all.
    pub size: Option<u64>,
    /// Data bytes of a page.
    pub page: Option<u32>,
    /// Spare bytes of a page.
    pub spare: Option<u32>,
    /// Pages of an erase block.
    pub pages_per_block: Option<u32>,
    /// Erase blocks of a segment.
    pub blocks_per_segment: Option<u32>,
    /// Chips that work at the same time.
    pub chips: Option<u32>,
    /// Pages of parity in each row of pages.
    pub parity: Option<Parity>,
}

impl Shape {
    /// Size of a new image, in bytes.
    pub const DEFAULT_SIZE: u64 = DEFAULT_SIZE;
    /// The smallest size, in segments, that leaves room to work in.
    pub const MIN_SEGMENTS: u64 = 16;

    /// Bytes from which on a new volume has larger pages, if nothing else was said.
    const LARGE_SIZE: u64 = 1 << 40;
    /// Erase blocks that a new volume has at most, if nothing else was said.
    const USUAL_BLOCKS: u64 = 1 << 20;
    /// Bytes below which a new volume has smaller pages, if nothing else was said.
    const TINY_SIZE: u64 = 4 << 20;
    /// Erase blocks that a small volume has at least, if nothing else was said: log, cleaner and
    /// superblocks each need some. Its blocks have fewer pages instead.
    const LEAST_BLOCKS: u64 = 64;
    /// The same for a volume with parity, whose segments have 16 and more blocks.
    const LEAST_BLOCKS_WITH_PARITY: u64 = 4096;

    /// Erase blocks of a segment: what was said, or what suits the size.
    #[must_use]
    pub fn segment_blocks(&self) -> u32 {
        self.blocks_per_segment.unwrap_or_else(|| {
            let block_bytes = u64::from(self.page_bytes()) * u64::from(self.pages_per_block());
            let blocks = self.bytes().checked_div(block_bytes).unwrap_or(0);
            let shape = Geometry {
                page_bytes: self.page_bytes(),
                spare_bytes: 0,
                pages_per_block: self.pages_per_block(),
                blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
                chips: self.chips.unwrap_or(1),
            };
            let options = onode_flash::FormatOptions { parity_pages: self.parity_pages(), ..Default::default() };
            u32::from(options.blocks_per_segment(&shape))
        })
    }

    /// The most pages of parity in a row.
    fn parity_pages(&self) -> u8 {
        self.parity.map_or(0, |parity| parity.most)
    }

    fn bytes(&self) -> u64 {
        self.size.unwrap_or(Self::DEFAULT_SIZE)
    }

    /// Says what was not said of pages and blocks, as it suits a medium of `bytes` if no size was
    /// said, whose pages have at least `page_bytes`.
    pub(crate) fn suit(&mut self, bytes: u64, page_bytes: u32) {
        let mut sized = Self { size: self.size.or(Some(bytes)), ..*self };
        sized.page = Some(self.page.unwrap_or(sized.page_bytes().max(page_bytes)));
        self.page = sized.page;
        self.pages_per_block = Some(sized.pages_per_block());
    }

    /// Pages of a large volume are larger, so that its segments are and their table stays small;
    /// those of a tiny one smaller, so that its segments are.
    fn page_bytes(&self) -> u32 {
        self.page.unwrap_or_else(|| match self.bytes() {
            ..Self::TINY_SIZE => 1024,
            Self::TINY_SIZE..=Self::LARGE_SIZE => 4096,
            _ => 16 << 10,
        })
    }

    /// What an erase block is given bounds how many there are: a medium keeps the state of each in
    /// memory.
    fn pages_per_block(&self) -> u32 {
        self.pages_per_block.unwrap_or_else(|| {
            let pages = self.bytes() / u64::from(self.page_bytes().max(1));
            let wanted = pages.div_ceil(Self::USUAL_BLOCKS).checked_next_power_of_two().unwrap_or(u64::MAX);
            // A small volume has few blocks of the usual size, and so many of smaller ones.
            let blocks = if self.parity_pages() > 0 { Self::LEAST_BLOCKS_WITH_PARITY } else { Self::LEAST_BLOCKS };
            let least = 1 << (pages / blocks).clamp(16, 64).ilog2();
            u32::try_from(wanted.clamp(least, 16 << 10)).unwrap_or(64)
        })
    }

    /// The geometry of a new NAND of this shape; the size is rounded down to whole segments.
    ///
    /// # Errors
    /// `BadSize` with the figure that cannot be.
    pub fn geometry(&self) -> Result<Geometry> {
        let bad = |why: String| Error::new(Class::BadSize, "cannot make a flash volume", why);
        let (size, page_bytes, pages_per_block) = (self.bytes(), self.page_bytes(), self.pages_per_block());
        let segment_blocks = self.segment_blocks();
        if segment_blocks == 0 || segment_blocks > 1024 {
            return Err(bad(format!("blocks-per-segment={segment_blocks} is not between 1 and 1024")));
        }
        let block_bytes = u64::from(page_bytes) * u64::from(pages_per_block);
        let segment_bytes = block_bytes.saturating_mul(u64::from(segment_blocks));
        let segments = size.checked_div(segment_bytes).unwrap_or(0);
        let blocks = u32::try_from(segments * u64::from(segment_blocks)).ok().filter(|blocks| *blocks <= 1 << 24);
        let Some(blocks) = blocks else {
            let most = block_bytes.saturating_mul(1 << 24);
            return Err(bad(format!("size {} is too large", exact_size(size)))
                .hint(format!("the most with these blocks is {}; larger pages allow more", exact_size(most))));
        };
        let geometry = Geometry {
            page_bytes,
            // Parity takes as much beside the trailer, and records of the journal some.
            spare_bytes: self.spare.unwrap_or(if self.parity_pages() > 0 { 64 } else { 32 }),
            pages_per_block,
            blocks: blocks.max(8),
            chips: self.chips.unwrap_or(1),
        };
        geometry.validate().map_err(|error| bad(error.detail))?;
        if segments < Self::MIN_SEGMENTS {
            let least = segment_bytes.saturating_mul(Self::MIN_SEGMENTS);
            return Err(bad(format!("size {} is too small", exact_size(size)))
                .hint(format!("the least with these segments is {}", exact_size(least))));
        }
        Ok(geometry)
    }

    /// Every figure that was said, with its key; parity apart.
    pub(super) fn said(&self) -> [(&'static str, Option<u64>); 6] {
        [
            ("size", self.size),
            ("page", self.page.map(u64::from)),
            ("spare", self.spare.map(u64::from)),
            ("pages-per-block", self.pages_per_block.map(u64::from)),
            ("blocks-per-segment", self.blocks_per_segment.map(u64::from)),
            ("chips", self.chips.map(u64::from)),
        ]
    }
}

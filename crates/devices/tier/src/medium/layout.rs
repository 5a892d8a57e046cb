//! Where things lie on the big disk: superblocks, log ring, bitmap, then the blocks of nodes and
//! content. What came when the volume grew begins with the pages of the bitmap for it.

use crate::medium::bitmap_areas::BitmapAreas;
use crate::medium::errors::{bug, invalid};
use alloc::format;
use onode_object::Result;

/// The unit of everything.
pub const BLOCK_BYTES: usize = onode_media::blockdev::SECTOR_BYTES;
/// [`BLOCK_BYTES`] for offsets.
pub const BLOCK: u64 = BLOCK_BYTES as u64;
/// Blocks whose state one page of the bitmap holds.
pub const BITS_PER_PAGE: u64 = (BLOCK - 32) * 8;
/// Blocks of a block group: 128 MiB.
pub const GROUP_BLOCKS: u64 = 32_768;
/// The smallest disk.
pub const LEAST_BLOCKS: u64 = 96;
/// The fewest blocks that a volume grows by.
pub const LEAST_GROWTH: u64 = 64;
/// The most blocks of a volume.
pub const MOST_BLOCKS: u64 = 1 << 44;

/// Superblocks at the start; one more is at the end.
pub const SUPERBLOCKS: u64 = 2;
const LEAST_RING: u64 = 8;
/// The paper's log.
const USUAL_RING: u64 = (4 << 20) / BLOCK;
/// The log of a large disk.
const LARGE_RING: u64 = (64 << 20) / BLOCK;
/// A ring of so many blocks has room to leave some out.
const SPARSE_RING: u64 = (16 << 20) / BLOCK;
/// While a host waits for a record and makes the next one, about a fiftieth of a turn, this much of
/// a track passes.
const GAP: u64 = (32 << 10) / BLOCK;

/// The division of a disk of `blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Blocks of the volume.
    pub blocks: u64,
    /// Blocks of the log ring.
    pub ring_blocks: u64,
    /// Blocks left out behind a record that somebody waited for. The block right behind it has just
    /// gone by under the heads of a hard disk, and a record there would wait for a whole turn.
    pub ring_gap: u64,
    /// Pages of the bitmap right behind the ring: those that the volume was made with.
    pub first_pages: u64,
    /// Where the others are.
    pub areas: BitmapAreas,
}

impl Layout {
    /// Divides a disk of `bytes`.
    ///
    /// # Errors
    /// `Invalid` if the disk is too small for it.
    pub fn new(bytes: u64, log_bytes: Option<u64>, log_gap_bytes: Option<u64>) -> Result<Self> {
        // The last one is for a superblock far from the others.
        let blocks = (bytes / BLOCK).saturating_sub(1);
        let usual = USUAL_RING.min(blocks / 16).max(LARGE_RING.min(blocks / 64)).max(LEAST_RING);
        let ring_blocks = log_bytes.map_or(usual, |bytes| (bytes / BLOCK).max(LEAST_RING));
        let usual = if ring_blocks >= SPARSE_RING { GAP } else { 0 };
        let ring_gap = log_gap_bytes.map_or(usual, |bytes| bytes.div_ceil(BLOCK).min(ring_blocks / 4));
        let first_pages = blocks.div_ceil(BITS_PER_PAGE);
        let layout = Self { blocks, ring_blocks, ring_gap, first_pages, areas: BitmapAreas::default() };
        if blocks < LEAST_BLOCKS || ring_blocks > blocks / 2 || layout.first_free() + LEAST_BLOCKS / 2 > blocks {
            // At most half of a disk is log.
            let least = LEAST_BLOCKS.max(2 * ring_blocks + 1) * BLOCK;
            return Err(invalid(format!(
                "{bytes} bytes are too few for a log of {ring_blocks} blocks (least: {least})"
            )));
        }
        Ok(layout)
    }

    /// The division when the volume has `bytes` of its disk, more than now.
    ///
    /// # Errors
    /// `Invalid` if it cannot be so large, or not so little larger.
    pub fn grown(&self, bytes: u64) -> Result<Self> {
        let blocks = (bytes / BLOCK).saturating_sub(1);
        let more = blocks.saturating_sub(self.blocks);
        if more < LEAST_GROWTH {
            let least = (self.blocks + 1 + LEAST_GROWTH) * BLOCK;
            return Err(invalid(format!("{bytes} bytes are no more than there are (the next size: {least})")));
        }
        let pages = self.first_pages + self.areas.pages();
        let wanted = blocks.div_ceil(BITS_PER_PAGE);
        let too_often = || {
            let places = self.areas.all().len();
            invalid(format!("it has grown too often: its bitmap lies in {places} more places, and cannot have another"))
        };
        let areas = self.areas.grown(self.blocks, pages, wanted, more).ok_or_else(too_often)?;
        let layout = Self { blocks, areas, ..*self };
        if layout.is_sound() {
            Ok(layout)
        } else {
            Err(invalid(format!("{bytes} bytes are more than a volume can have")))
        }
    }

    /// The division when the volume has `bytes` of its disk, fewer than now. It may end a little
    /// sooner, in front of pages of the bitmap.
    ///
    /// # Errors
    /// `Invalid` if no volume can be so small, or if that is not smaller.
    pub fn shrunk(&self, bytes: u64) -> Result<Self> {
        let blocks = (bytes / BLOCK).saturating_sub(1);
        if blocks >= self.blocks {
            let now = (self.blocks + 1) * BLOCK;
            return Err(invalid(format!("{bytes} bytes are no less than there are ({now})")));
        }
        let (areas, blocks) = self.areas.shrunk(blocks);
        let layout = Self { blocks, areas, ..*self };
        if blocks >= layout.fewest_blocks() && layout.is_sound() {
            return Ok(layout);
        }
        let least = (layout.fewest_blocks() + 1) * BLOCK;
        Err(invalid(format!("{bytes} bytes are too few for its log and bitmap (least: {least})")))
    }

    /// Fewer blocks have no room for what stands before nodes and content, and for some of these.
    const fn fewest_blocks(&self) -> u64 {
        let (twice, with_room) = (2 * self.ring_blocks, self.first_free() + LEAST_BLOCKS / 2);
        let fewest = if twice > with_room { twice } else { with_room };
        if fewest > LEAST_BLOCKS { fewest } else { LEAST_BLOCKS }
    }

    /// Whether pages of the bitmap lie elsewhere than in a volume that is made so large.
    #[must_use]
    pub const fn has_grown(&self) -> bool {
        !self.areas.is_empty()
    }

    /// Whether there are more pages of the bitmap right behind the ring than it needs.
    #[must_use]
    pub const fn has_shrunk(&self) -> bool {
        self.first_pages > self.bitmap_pages()
    }

    /// Whether such a division can be.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.blocks >= LEAST_BLOCKS
            && self.blocks <= MOST_BLOCKS
            && self.ring_blocks >= LEAST_RING
            && self.ring_blocks <= self.blocks / 2
            && self.ring_gap <= self.ring_blocks / 4
            && self.first_pages > 0
            && self.first_pages <= self.blocks
            && self.first_free() < self.blocks
            && self.areas.are_sound(self.first_free(), self.blocks)
            && self.first_pages + self.areas.pages() >= self.bitmap_pages()
    }

    /// The first block of the log ring.
    #[must_use]
    pub const fn ring_first(&self) -> u64 {
        SUPERBLOCKS
    }

    /// Pages of the bitmap; each has two slots.
    #[must_use]
    pub const fn bitmap_pages(&self) -> u64 {
        self.blocks.div_ceil(BITS_PER_PAGE)
    }

    /// The block of a slot of a page of the bitmap.
    ///
    /// # Errors
    /// `Bug` if there is no such page.
    pub fn bitmap_block(&self, page: u64, slot: u8) -> Result<u64> {
        let first = match page.checked_sub(self.first_pages) {
            None => Some(SUPERBLOCKS + self.ring_blocks + 2 * page),
            Some(page) => self.areas.block_of(page),
        };
        let first = first.ok_or_else(|| bug(format!("page {page} of the bitmap has no place")))?;
        Ok(first + u64::from(slot))
    }

    /// Pages of the bitmap that lie in a row from this one on.
    #[must_use]
    pub fn bitmap_row(&self, page: u64) -> u64 {
        let row = match page.checked_sub(self.first_pages) {
            None => self.first_pages - page,
            Some(page) => self.areas.pages_from(page),
        };
        row.min(self.bitmap_pages().saturating_sub(page))
    }

    /// The first block for nodes and content.
    #[must_use]
    pub const fn first_free(&self) -> u64 {
        SUPERBLOCKS + self.ring_blocks + 2 * self.first_pages
    }

    /// Blocks for nodes and content.
    #[must_use]
    pub fn usable_blocks(&self) -> u64 {
        self.blocks - self.first_free() - 2 * self.areas.pages()
    }

    /// Blocks kept back so that removal always works (N7).
    #[must_use]
    pub fn reserve_blocks(&self) -> u64 {
        let share = 40 + self.usable_blocks() / 128;
        if share > 16_384 { 16_384 } else { share }
    }

    /// Blocks kept back so that a change that fits finds room for the nodes on its way, whose old
    /// blocks stay until a checkpoint.
    #[must_use]
    pub fn working_blocks(&self) -> u64 {
        let share = 24 + self.usable_blocks() / 256;
        if share > 4096 { 4096 } else { share }
    }

    /// Where the copy of the superblock lies that is far from the others: at the end of a disk of
    /// `bytes`, if the volume leaves that free.
    #[must_use]
    pub const fn far_copy(&self, bytes: u64) -> Option<u64> {
        let blocks = bytes / BLOCK;
        if blocks > self.blocks { Some(blocks - 1) } else { None }
    }

    /// Whether `count` blocks from `first` on can hold nodes or content.
    #[must_use]
    pub fn holds(&self, first: u64, count: u64) -> bool {
        let end = first.checked_add(count).filter(|end| *end <= self.blocks);
        first >= self.first_free() && end.is_some_and(|end| self.areas.leave_free(first, end))
    }
}

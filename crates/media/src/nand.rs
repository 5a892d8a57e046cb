//! Raw NAND flash: pages are programmed once and in order, blocks are erased whole.

use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

mod boxed;
mod check;
mod runs;
mod shared;

pub use runs::{PageRun, read_in_turn};
pub use shared::{Flushes, SharedNand};

/// One erase block, counted from the start of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress(pub u32);

/// One page, counted from the start of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddress(pub u64);

/// Shape of a NAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Spare (out-of-band) bytes of a page that users may fill; 0 if there are none.
    pub spare_bytes: u32,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Erase blocks in all.
    pub blocks: u32,
    /// Chips; block `b` lies on chip `b % chips`, and operations on different chips overlap.
    pub chips: u32,
}

/// What a medium knows of what was durable once, see [`Nand::set_watermark`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// The number that was noted last of those that can be read; 0 if there is none.
    pub number: u64,
    /// A note cannot be read any more, and it may have been a later one.
    pub is_damaged: bool,
}

impl Geometry {
    /// Pages in all.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.blocks as u64 * self.pages_per_block as u64
    }

    /// Data bytes in all.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pages() * self.page_bytes as u64
    }

    /// The block that holds `page`.
    #[must_use]
    pub const fn block_of(&self, page: PageAddress) -> BlockAddress {
        BlockAddress((page.0 / self.pages_per_block as u64) as u32)
    }

    /// The first page of `block`.
    #[must_use]
    pub const fn first_page(&self, block: BlockAddress) -> PageAddress {
        PageAddress(block.0 as u64 * self.pages_per_block as u64)
    }

    /// The most pages that a block may have: enough for the zones of zoned devices.
    pub const MOST_PAGES_PER_BLOCK: u32 = 32768;

    /// The most erase blocks in all.
    pub const MOST_BLOCKS: u32 = 1 << 24;

    /// Checks that the shape is one that can exist: pages 512 B to 64 KiB (power of two), 4 to
    /// 32,768 pages a block, at least 8 blocks, 1 to 64 chips, spare at most half a page.
    ///
    /// # Errors
    /// `OutOfRange` with the field that is wrong.
    pub fn validate(&self) -> Result<()> {
        let wrong = |field: &str, value: u32| {
            Err(Error::new(MediaErrorKind::OutOfRange, format!("geometry: {field} = {value}")))
        };
        if !self.page_bytes.is_power_of_two() || self.page_bytes < 512 || self.page_bytes > 65536 {
            return wrong("page_bytes", self.page_bytes);
        }
        if self.spare_bytes > self.page_bytes / 2 {
            return wrong("spare_bytes", self.spare_bytes);
        }
        if self.pages_per_block < 4 || self.pages_per_block > Self::MOST_PAGES_PER_BLOCK {
            return wrong("pages_per_block", self.pages_per_block);
        }
        if self.blocks < 8 || self.blocks > Self::MOST_BLOCKS {
            return wrong("blocks", self.blocks);
        }
        if self.chips == 0 || self.chips > 64 {
            return wrong("chips", self.chips);
        }
        Ok(())
    }
}

/// A raw NAND medium.
///
/// **Power cuts.** A cut inside [`program`](Nand::program) leaves that page with any content: none,
/// all, part of it, or bits that read differently each time. A cut inside
/// [`erase`](Nand::erase) leaves any page of that block with any content; a block that looks erased
/// may then refuse to be programmed until it is erased again. Everything else stays as it was.
/// A page that cannot be read back is [`Uncorrectable`](MediaErrorKind::Uncorrectable).
pub trait Nand: Send {
    /// The shape, which nothing changes but [`grow`](Nand::grow) and [`shrink`](Nand::shrink).
    fn geometry(&self) -> Geometry;

    /// How many erase blocks there is room for now: a device may have become larger since it was
    /// divided into blocks.
    ///
    /// # Errors
    /// `Host`.
    fn most_blocks(&mut self) -> Result<u32> {
        Ok(self.geometry().blocks)
    }

    /// Has `blocks` erase blocks from now on, as many as before or more; an image in a file is made
    /// longer. What those that come hold is undefined until they are erased. All that was
    /// programmed stays as it is, and so do pages for who reads beside the owner; for the blocks
    /// that came [`shared`](Nand::shared) is to be asked again. After a power cut the medium has
    /// one of both numbers of blocks.
    ///
    /// # Errors
    /// `OutOfRange` (there is no room for so many, or there were more), `HostFull`, `Host`,
    /// `ReadOnly`.
    fn grow(&mut self, blocks: u32) -> Result<()> {
        let (before, most) = (self.geometry().blocks, self.most_blocks()?);
        if blocks == before {
            return Ok(());
        }
        Err(Error::new(MediaErrorKind::OutOfRange, format!("{blocks} blocks; it has {before} and room for {most}")))
    }

    /// The first `blocks` erase blocks are all that is needed from now on: a medium that can be
    /// made shorter, as an image in a file can, has no others any more, and what they held is gone.
    /// Any other stays as it is. The pages of the blocks that stay are as they were, also for who
    /// reads beside the owner. After a power cut the medium has one of both numbers of blocks.
    ///
    /// # Errors
    /// `OutOfRange` (too few for any medium, or more than there are), `Host`, `ReadOnly`.
    fn shrink(&mut self, blocks: u32) -> Result<()> {
        let shape = self.geometry();
        shape.shrunk(blocks, "the medium").map(|_| ())
    }

    /// Reads a page and its spare bytes (either buffer may be empty to skip it). An erased page
    /// reads as 0xff.
    ///
    /// # Errors
    /// `Uncorrectable`, `OutOfRange`, `Host`.
    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()>;

    /// Programs an erased page; pages of a block are programmed in ascending order, each once. An
    /// empty `spare` leaves the spare bytes erased.
    ///
    /// # Errors
    /// `ProgramFailed` (the page is lost, the block should be retired once its content is moved),
    /// `ProgramOrder`, `BadBlock`, `OutOfRange`, `HostFull`, `Host`, `ReadOnly`.
    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()>;

    /// Erases a block.
    ///
    /// # Errors
    /// `EraseFailed` (retire the block), `BadBlock`, `OutOfRange`, `Host`, `ReadOnly`.
    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()>;

    /// Whether the block is marked bad.
    ///
    /// # Errors
    /// `OutOfRange`, `Host`.
    fn is_bad(&mut self, block: BlockAddress) -> Result<bool>;

    /// Marks the block bad, for ever.
    ///
    /// # Errors
    /// `OutOfRange`, `Host`, `ReadOnly`.
    fn mark_bad(&mut self, block: BlockAddress) -> Result<()>;

    /// Waits until completed programs and erases survive a failure of the *host* as well. A bare
    /// chip has nothing to do here; an image in a file has. Without it, a failure of the host may
    /// undo recent operations in any order: who moved content flushes before erasing its old place.
    ///
    /// # Errors
    /// `Host`, `HostFull`.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// What other threads may use at the same time; `None` if all requests have to go through the
    /// owner, one after another.
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        None
    }

    /// Does the part of a flush that needs the owner; [`SharedNand::finish_flush`] waits for the
    /// rest of it. A medium without a shared part knows only [`flush`](Nand::flush).
    ///
    /// # Errors
    /// As [`flush`](Nand::flush).
    fn begin_flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Reads consecutive pages of one block; `data` and `spare` hold them one after another, and
    /// either may be empty to skip it.
    ///
    /// # Errors
    /// As [`read`](Nand::read), for the first page that fails.
    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let shape = self.geometry();
        let pages = shape.check_run(first, data.len(), spare.len())?;
        let mut all_data = data.chunks_exact_mut(shape.page_bytes as usize);
        let mut all_spare = spare.chunks_exact_mut(shape.spare_bytes.max(1) as usize);
        for i in 0..u64::from(pages) {
            let data = all_data.next().unwrap_or_default();
            self.read(PageAddress(first.0 + i), data, all_spare.next().unwrap_or_default(), tag)?;
        }
        Ok(())
    }

    /// Reads several runs that do not wait for one another, each as [`read_run`](Nand::read_run)
    /// does, and leaves in each how it ended.
    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        read_in_turn(runs, |first, data, spare| self.read_run(first, data, spare, tag));
    }

    /// Programs consecutive pages of one block; `data` and `spare` hold them one after another, and
    /// `spare` may be empty.
    ///
    /// # Errors
    /// As [`program`](Nand::program), for the first page that fails; the pages before it are
    /// programmed.
    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let shape = self.geometry();
        shape.check_program_run(first, data.len(), spare.len())?;
        let mut all_spare = spare.chunks_exact(shape.spare_bytes.max(1) as usize);
        for (i, page) in data.chunks_exact(shape.page_bytes as usize).enumerate() {
            self.program(PageAddress(first.0 + i as u64), page, all_spare.next().unwrap_or_default(), tag)?;
        }
        Ok(())
    }

    /// Says that no page of `block` will be programmed before its next erase. Advice: most media
    /// have nothing to do; devices that hold resources for blocks half written let them go.
    ///
    /// # Errors
    /// `ProgramFailed`, `OutOfRange`, `Host`, `ReadOnly`.
    fn finish(&mut self, block: BlockAddress) -> Result<()> {
        self.geometry().check_block(block)
    }

    /// Whether completed programs and erases outlive any failure in the order they were made. A
    /// chip keeps order; an image in a file may, when its *host* fails, lose any of those since the
    /// last [`flush`](Nand::flush) and keep others.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Notes that all up to `number` is durable, where a medium has room for that beside its pages:
    /// what is found below it later was lost since. The medium gives the number no meaning. It
    /// costs no flush, so a failure of the host may leave the number of before.
    ///
    /// # Errors
    /// `Host`, `HostFull`.
    fn set_watermark(&mut self, _number: u64) -> Result<()> {
        Ok(())
    }

    /// What was noted last, as far as it can be read.
    ///
    /// # Errors
    /// `Host`.
    fn watermark(&mut self) -> Result<Watermark> {
        Ok(Watermark::default())
    }

    /// Blocks of which a page was read since the last call with so many corrected bits that what
    /// they hold should soon be moved: at or above the *bitflip threshold* of the chip's code. Such
    /// a read succeeds; a later one may not. `None` from media that do not tell.
    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        None
    }

    /// Counts of operations since the medium was opened, if it keeps them.
    fn counters(&self) -> Option<Counters> {
        None
    }

    /// Virtual time that the operations took, if the medium counts it; else zero.
    fn virtual_nanoseconds(&self) -> u64 {
        self.counters().map_or(0, |counters| counters.virtual_nanoseconds)
    }
}

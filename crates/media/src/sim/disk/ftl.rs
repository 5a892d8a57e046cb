//! Flash translation layers: what a page of the host costs in pages and blocks of flash.
//!
//! Two that bound what there is: [`log_block::LogBlock`] maps blocks and collects updates in few
//! log blocks, as the disks did that paper 4 has in mind (section 2.1); [`page_map::PageMap`] maps
//! pages, as the disks of today do. They move no bytes: the content of a simulated disk is kept
//! elsewhere, and these say what keeping it would have cost.

pub mod log_block;
pub mod page_map;

pub use log_block::LogBlock;
pub use page_map::PageMap;

use core::ops::AddAssign;

/// What a write made the flash do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Pages programmed, the host's own among them.
    pub programs: u64,
    /// Pages of `programs` that the host had asked for: 1 a write.
    pub asked: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl Work {
    /// Pages moved from one place to another.
    #[must_use]
    pub const fn copies(self) -> u64 {
        self.programs - self.asked
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.programs += more.programs;
        self.asked += more.asked;
        self.erases += more.erases;
    }
}

/// A layer that makes flash look like a disk.
pub trait Translation: Send {
    /// The host writes a page.
    fn write(&mut self, page: u64) -> Work;

    /// The host gives a page up.
    fn discard(&mut self, page: u64);
}

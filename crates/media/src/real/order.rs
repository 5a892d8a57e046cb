//! Which pages of each block are programmed, as far as this session knows.
//!
//! The devices themselves do not tell, so a block that was not erased since the medium was opened
//! is taken as it comes. Readers look while the owner of the medium programs.

use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::{BlockAddress, Geometry, PageAddress};
use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, Ordering};

const UNKNOWN: u16 = u16::MAX;

/// The first erased page of each block, if it is known.
pub(super) struct Order {
    next: Vec<AtomicU16>,
}

impl Order {
    /// Nothing is known.
    pub(super) fn unknown(geometry: &Geometry) -> Self {
        Self::of(geometry, UNKNOWN)
    }

    /// Every block is erased.
    pub(super) fn erased(geometry: &Geometry) -> Self {
        Self::of(geometry, 0)
    }

    fn of(geometry: &Geometry, next: u16) -> Self {
        Self { next: (0..geometry.blocks).map(|_| AtomicU16::new(next)).collect() }
    }

    /// The same for a medium that has another shape now; nothing is known of blocks that came.
    pub(super) fn of_shape(&self, geometry: &Geometry) -> Self {
        let known = self.next.iter().map(|next| next.load(Ordering::Acquire));
        let all = known.chain(core::iter::repeat(UNKNOWN)).take(geometry.blocks as usize);
        Self { next: all.map(AtomicU16::new).collect() }
    }

    /// The first erased page of `block`, counted within it.
    pub(super) fn next(&self, block: BlockAddress) -> Option<u32> {
        let next = self.next.get(block.0 as usize)?.load(Ordering::Acquire);
        (next != UNKNOWN).then_some(u32::from(next))
    }

    /// All pages of `block` before `next` are programmed or skipped.
    pub(super) fn set(&self, block: BlockAddress, next: u32) {
        if let Some(slot) = self.next.get(block.0 as usize) {
            slot.store(next as u16, Ordering::Release);
        }
    }

    /// Pages that a program of `first` skips.
    ///
    /// # Errors
    /// `ProgramOrder` if the page is programmed already.
    pub(super) fn skipped(&self, geometry: &Geometry, first: PageAddress) -> Result<u32> {
        let (block, index) = (geometry.block_of(first), geometry.index_in_block(first));
        let next = self.next(block).unwrap_or(index);
        index.checked_sub(next).ok_or_else(|| {
            let detail = format!("page {} is number {index} of block {}, {next} is next", first.0, block.0);
            Error::new(MediaErrorKind::ProgramOrder, detail)
        })
    }
}

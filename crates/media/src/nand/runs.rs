//! Several runs of pages that are asked for together, so that a medium can work on all of them at
//! the same time: on all chips of a NAND, or with the whole queue of a disk.

use super::PageAddress;
use crate::error::Result;

/// Consecutive pages of one block that somebody wants to have, and what became of it.
#[derive(Debug)]
pub struct PageRun<'a> {
    /// The first page.
    pub first: PageAddress,
    /// Data of the pages, one after another; empty to skip it.
    pub data: &'a mut [u8],
    /// Spare bytes of the pages, one after another; empty to skip them.
    pub spare: &'a mut [u8],
    /// Whether it was read. The others of a batch are read all the same.
    pub result: Result<()>,
}

impl<'a> PageRun<'a> {
    /// A run that is yet to be read.
    #[must_use]
    pub const fn new(first: PageAddress, data: &'a mut [u8], spare: &'a mut [u8]) -> Self {
        Self { first, data, spare, result: Ok(()) }
    }
}

/// Reads runs one after another, for media that work on one at a time.
pub fn read_in_turn(runs: &mut [PageRun<'_>], mut read: impl FnMut(PageAddress, &mut [u8], &mut [u8]) -> Result<()>) {
    for run in runs {
        run.result = read(run.first, run.data, run.spare);
    }
}

//! Counts operations by tag for a medium that does not count itself, or since a point in time.
//!
//! Attempts are counted, failed ones too. Virtual time and corrected bits are the inner medium's
//! business and stay 0 here.

use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, PageRun, Watermark};
use crate::tag::IoTag;
use alloc::vec::Vec;

/// A medium whose operations are counted.
#[derive(Clone, Debug)]
pub struct Counting<N> {
    inner: N,
    counters: Counters,
}

impl<N: Nand> Counting<N> {
    /// Counts the operations on `inner` from now on.
    #[must_use]
    pub fn new(inner: N) -> Self {
        Self { inner, counters: Counters::default() }
    }

    /// The medium itself.
    #[must_use]
    pub const fn inner(&self) -> &N {
        &self.inner
    }

    /// Gives the medium back.
    #[must_use]
    pub fn into_inner(self) -> N {
        self.inner
    }

    /// Begins to count from zero.
    pub fn reset(&mut self) {
        self.counters = Counters::default();
    }
}

impl<N: Nand> Nand for Counting<N> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn most_blocks(&mut self) -> Result<u32> {
        self.inner.most_blocks()
    }

    fn grow(&mut self, blocks: u32) -> Result<()> {
        self.inner.grow(blocks)
    }

    fn shrink(&mut self, blocks: u32) -> Result<()> {
        self.inner.shrink(blocks)
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.counters.of_mut(tag).reads += 1;
        self.inner.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.counters.of_mut(tag).programs += 1;
        self.inner.program(page, data, spare, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.counters.of_mut(tag).erases += 1;
        self.inner.erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.inner.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.inner.mark_bad(block)
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry().check_run(first, data.len(), spare.len())?;
        self.counters.of_mut(tag).reads += u64::from(pages);
        self.inner.read_run(first, data, spare, tag)
    }

    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        let shape = self.geometry();
        // What makes no sense is refused and was no operation.
        let pages = |run: &PageRun<'_>| shape.check_run(run.first, run.data.len(), run.spare.len()).unwrap_or(0);
        self.counters.of_mut(tag).reads += runs.iter().map(|run| u64::from(pages(run))).sum::<u64>();
        self.inner.read_runs(runs, tag);
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry().check_program_run(first, data.len(), spare.len())?;
        self.counters.of_mut(tag).programs += u64::from(pages);
        self.inner.program_run(first, data, spare, tag)
    }

    fn finish(&mut self, block: BlockAddress) -> Result<()> {
        self.inner.finish(block)
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }

    fn set_watermark(&mut self, number: u64) -> Result<()> {
        self.inner.set_watermark(number)
    }

    fn watermark(&mut self) -> Result<Watermark> {
        self.inner.watermark()
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.inner.take_bitflips()
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.clone())
    }
}

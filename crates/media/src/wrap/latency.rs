//! Adds virtual time to a medium that keeps none, such as an image in a file.
//!
//! The time follows [`ChipClock`]. Counters are this wrapper's own: operations since it was made,
//! with the virtual time they took.

use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, PageRun, Watermark};
use crate::sim::timing::{ChipClock, LatencyTable};
use crate::tag::IoTag;
use crate::wrap::Counting;
use alloc::vec::Vec;

/// A medium with virtual time.
#[derive(Clone, Debug)]
pub struct Latency<N> {
    inner: Counting<N>,
    clock: ChipClock,
    counters: Counters,
}

impl<N: Nand> Latency<N> {
    /// Gives `inner` the times of `table`; all chips begin idle at time 0.
    #[must_use]
    pub fn new(inner: N, table: LatencyTable) -> Self {
        Self { inner: Counting::new(inner), clock: ChipClock::new(table), counters: Counters::default() }
    }

    /// The medium itself.
    #[must_use]
    pub const fn inner(&self) -> &N {
        self.inner.inner()
    }

    /// Gives the medium back.
    #[must_use]
    pub fn into_inner(self) -> N {
        self.inner.into_inner()
    }

    /// The time at which the caller is: posted programs and erases may still run.
    #[must_use]
    pub const fn now_nanoseconds(&self) -> u64 {
        self.clock.now()
    }

    /// Spends time on `pages` operations on the chip of `first`, then shows it in the counters.
    fn spend(&mut self, first: PageAddress, pages: u32, step: fn(&mut ChipClock, u32)) {
        let shape = self.inner.geometry();
        let chip = shape.chip_of(shape.block_of(first));
        for _ in 0..pages {
            step(&mut self.clock, chip);
        }
    }

    fn finish<T>(&mut self, result: T) -> T {
        if let Some(counted) = self.inner.counters() {
            self.counters = counted;
        }
        self.counters.virtual_nanoseconds = self.clock.end();
        result
    }
}

impl<N: Nand> Nand for Latency<N> {
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
        self.spend(page, 1, ChipClock::read);
        let result = self.inner.read(page, data, spare, tag);
        self.finish(result)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.spend(page, 1, ChipClock::program);
        let result = self.inner.program(page, data, spare, tag);
        self.finish(result)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        let chip = self.geometry().chip_of(block);
        self.clock.erase(chip);
        let result = self.inner.erase(block, tag);
        self.finish(result)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.inner.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.inner.mark_bad(block)
    }

    /// Waits, in virtual time too, until every chip is idle.
    fn flush(&mut self) -> Result<()> {
        self.clock.wait();
        self.inner.flush()
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry().check_run(first, data.len(), spare.len())?;
        self.spend(first, pages, ChipClock::read);
        let result = self.inner.read_run(first, data, spare, tag);
        self.finish(result)
    }

    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        self.clock.read_together();
        let shape = self.geometry();
        for run in runs.iter() {
            let pages = shape.check_run(run.first, run.data.len(), run.spare.len()).unwrap_or(0);
            self.spend(run.first, pages, ChipClock::read);
        }
        self.clock.wait_for_reads();
        self.inner.read_runs(runs, tag);
        self.finish(());
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let pages = self.geometry().check_program_run(first, data.len(), spare.len())?;
        self.spend(first, pages, ChipClock::program);
        let result = self.inner.program_run(first, data, spare, tag);
        self.finish(result)
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

    fn virtual_nanoseconds(&self) -> u64 {
        self.counters.virtual_nanoseconds
    }
}

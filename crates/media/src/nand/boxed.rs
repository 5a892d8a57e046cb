//! A boxed NAND is a NAND, so that a device can be built over a medium chosen at run time.

use super::{BlockAddress, Geometry, Nand, PageAddress, PageRun, SharedNand, Watermark};
use crate::counters::Counters;
use crate::error::Result;
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

impl<N: Nand + ?Sized> Nand for Box<N> {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn most_blocks(&mut self) -> Result<u32> {
        (**self).most_blocks()
    }

    fn grow(&mut self, blocks: u32) -> Result<()> {
        (**self).grow(blocks)
    }

    fn shrink(&mut self, blocks: u32) -> Result<()> {
        (**self).shrink(blocks)
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        (**self).read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        (**self).program(page, data, spare, tag)
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        (**self).erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        (**self).is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        (**self).mark_bad(block)
    }

    fn flush(&mut self) -> Result<()> {
        (**self).flush()
    }

    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        (**self).shared()
    }

    fn begin_flush(&mut self) -> Result<()> {
        (**self).begin_flush()
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        (**self).read_run(first, data, spare, tag)
    }

    fn read_runs(&mut self, runs: &mut [PageRun<'_>], tag: IoTag) {
        (**self).read_runs(runs, tag);
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        (**self).program_run(first, data, spare, tag)
    }

    fn finish(&mut self, block: BlockAddress) -> Result<()> {
        (**self).finish(block)
    }

    fn keeps_order(&self) -> bool {
        (**self).keeps_order()
    }

    fn set_watermark(&mut self, number: u64) -> Result<()> {
        (**self).set_watermark(number)
    }

    fn watermark(&mut self) -> Result<Watermark> {
        (**self).watermark()
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        (**self).take_bitflips()
    }

    fn counters(&self) -> Option<Counters> {
        (**self).counters()
    }

    fn virtual_nanoseconds(&self) -> u64 {
        (**self).virtual_nanoseconds()
    }
}

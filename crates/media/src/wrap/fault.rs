//! Makes operations of any medium fail on demand, with any error.
//!
//! A failing read, erase or flush does not reach the medium. A program that fails with
//! `ProgramFailed` leaves a torn page, as a chip does: the page is spent. Programs that fail with
//! another error (the host is full, say) do nothing.

use crate::counters::Counters;
use crate::error::{Error, MediaErrorKind, Result};
use crate::fault::{Fault, FaultPlan, OperationKind};
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, Watermark};
use crate::tag::IoTag;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};

/// The plan of a [`Faulty`] medium, which may be owned by a device by now; clones are the same
/// plan.
#[derive(Clone, Default)]
pub struct FaultHandle(Arc<Mutex<FaultPlan, rank::MediumNotes>>);

impl FaultHandle {
    /// Adds a failure. Operations are numbered from 0 when the wrapper was made.
    pub fn inject(&self, fault: Fault) {
        self.0.lock().add(fault);
    }

    /// From now on nothing fails.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Operations of that kind so far: the number that the next one has.
    #[must_use]
    pub fn seen(&self, operation: OperationKind) -> u64 {
        self.0.lock().seen(operation)
    }

    fn next(&self, operation: OperationKind) -> Option<MediaErrorKind> {
        self.0.lock().next(operation)
    }

    fn pass(&self, operation: OperationKind, count: u32) -> bool {
        self.0.lock().pass(operation, u64::from(count))
    }
}

/// A medium that fails on demand.
pub struct Faulty<N> {
    inner: N,
    plan: FaultHandle,
}

impl<N: Nand> Faulty<N> {
    /// Lets nothing fail until [`handle`](Self::handle) is told to.
    #[must_use]
    pub fn new(inner: N) -> Self {
        Self { inner, plan: FaultHandle::default() }
    }

    /// The plan of failures.
    #[must_use]
    pub fn handle(&self) -> FaultHandle {
        self.plan.clone()
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

    fn check(&self, operation: OperationKind, place: impl FnOnce() -> alloc::string::String) -> Result<()> {
        match self.plan.next(operation) {
            Some(kind) => Err(Error::new(kind, place())),
            None => Ok(()),
        }
    }
}

impl<N: Nand> Nand for Faulty<N> {
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
        self.check(OperationKind::Read, || format!("page {}, on demand", page.0))?;
        self.inner.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let failure = self.check(OperationKind::Program, || format!("page {}, on demand", page.0));
        match failure {
            Err(error) if error.kind == MediaErrorKind::ProgramFailed => {
                let mut torn = data.to_vec();
                let half = torn.len() / 2;
                torn.iter_mut().skip(half).for_each(|byte| *byte = 0xff);
                self.inner.program(page, &torn, &[], tag)?;
                Err(error)
            }
            Err(error) => Err(error),
            Ok(()) => self.inner.program(page, data, spare, tag),
        }
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.check(OperationKind::Erase, || format!("block {}, on demand", block.0))?;
        self.inner.erase(block, tag)
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.inner.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.inner.mark_bad(block)
    }

    fn flush(&mut self) -> Result<()> {
        self.check(OperationKind::Flush, || "flush, on demand".into())?;
        self.inner.flush()
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let shape = self.geometry();
        let pages = shape.check_run(first, data.len(), spare.len())?;
        if self.plan.pass(OperationKind::Read, pages) {
            return self.inner.read_run(first, data, spare, tag);
        }
        let mut all_data = data.chunks_exact_mut(shape.page_bytes as usize);
        let mut all_spare = spare.chunks_exact_mut(shape.spare_bytes.max(1) as usize);
        for i in 0..u64::from(pages) {
            let data = all_data.next().unwrap_or_default();
            self.read(PageAddress(first.0 + i), data, all_spare.next().unwrap_or_default(), tag)?;
        }
        Ok(())
    }

    fn program_run(&mut self, first: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        let shape = self.geometry();
        let pages = shape.check_program_run(first, data.len(), spare.len())?;
        if self.plan.pass(OperationKind::Program, pages) {
            return self.inner.program_run(first, data, spare, tag);
        }
        let mut all_spare = spare.chunks_exact(shape.spare_bytes.max(1) as usize);
        for (i, page) in data.chunks_exact(shape.page_bytes as usize).enumerate() {
            self.program(PageAddress(first.0 + i as u64), page, all_spare.next().unwrap_or_default(), tag)?;
        }
        Ok(())
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
        self.inner.counters()
    }

    fn virtual_nanoseconds(&self) -> u64 {
        self.inner.virtual_nanoseconds()
    }
}

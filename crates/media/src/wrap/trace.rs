//! Records every change of a medium, so that a run can be replayed up to any operation.
//!
//! Only operations that succeeded are recorded: a replay onto a perfect simulator has to succeed as
//! well. Reads and flushes change nothing and are not recorded. The log is shared, so it can be
//! read while a device owns the medium.

use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, SharedNand, Watermark};
use crate::sim::MediaOperation;
use crate::tag::IoTag;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};

/// The operations recorded so far; clones are the same log.
#[derive(Clone, Default)]
pub struct TraceLog(Arc<Mutex<Vec<MediaOperation>, rank::MediumNotes>>);

impl TraceLog {
    /// The number of operations recorded: what happens next has this index. A caller that notes it
    /// around its own operations knows later which changes belong to which.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.0.lock().len()
    }

    /// A copy of the operations from index `from` on; their content is shared.
    #[must_use]
    pub fn since(&self, from: usize) -> Vec<MediaOperation> {
        self.0.lock().get(from..).unwrap_or_default().to_vec()
    }

    /// All operations, leaving the log empty.
    #[must_use]
    pub fn take(&self) -> Vec<MediaOperation> {
        core::mem::take(&mut *self.0.lock())
    }

    fn push(&self, operation: MediaOperation) {
        self.0.lock().push(operation);
    }
}

/// A medium whose changes are recorded.
#[derive(Clone)]
pub struct Trace<N> {
    inner: N,
    log: TraceLog,
}

impl<N: Nand> Trace<N> {
    /// Records the changes of `inner` in a new log.
    #[must_use]
    pub fn new(inner: N) -> Self {
        Self { inner, log: TraceLog::default() }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> TraceLog {
        self.log.clone()
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
}

impl<N: Nand> Nand for Trace<N> {
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
        self.inner.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.inner.program(page, data, spare, tag)?;
        self.log.push(MediaOperation::Program { page, data: Arc::from(data), spare: Arc::from(spare), tag });
        Ok(())
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.inner.erase(block, tag)?;
        self.log.push(MediaOperation::Erase { block, tag });
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.inner.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.inner.mark_bad(block)?;
        self.log.push(MediaOperation::MarkBad { block });
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.flush()
    }

    // Reads and flushes are not recorded, whoever makes them.
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        self.inner.shared()
    }

    fn begin_flush(&mut self) -> Result<()> {
        self.inner.begin_flush()
    }

    fn read_run(&mut self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.inner.read_run(first, data, spare, tag)
    }

    // `program_run` keeps its default, page by page: when a page of a run fails, only so is it
    // known which pages before it have to be in the log.

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

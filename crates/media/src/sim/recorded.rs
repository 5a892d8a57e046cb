//! A simulated NAND that a device owns while a test keeps a hand on it.
//!
//! While recording is on, the medium keeps what `recording` needs to have it again as it was
//! before any operation that changed it. So a cut can be placed at any operation of a run, of a
//! recovery, or of what follows, with unstable pages in exactly the state that earlier reads left
//! them in. What a cut leaves is made by [`SimNand::apply_cut`].

mod recording;

use super::cut::MediaOperation;
use super::nand::SimNand;
use crate::between::{Gap, Seam};
use crate::counters::Counters;
use crate::error::Result;
use crate::nand::{BlockAddress, Geometry, Nand, PageAddress, SharedNand};
use crate::tag::IoTag;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::sync::{Mutex, rank};
pub use recording::NandRecording;

struct RecordedInner {
    nand: SimNand,
    recording: Option<NandRecording>,
    position: usize,
}

impl RecordedInner {
    fn note_change(&mut self) {
        if let Some(recording) = &mut self.recording {
            recording.note_change();
        }
    }

    /// Reads change unstable pages.
    fn note_read(&mut self, first: PageAddress, data: &[u8], spare: &[u8]) {
        if self.recording.is_none() {
            return;
        }
        let Geometry { page_bytes, spare_bytes, .. } = self.nand.geometry();
        let count = |bytes: &[u8], of_page: u32| bytes.len().checked_div(of_page as usize).unwrap_or(0);
        let pages = count(data, page_bytes).max(count(spare, spare_bytes)).max(1) as u64;
        if (first.0..first.0 + pages).any(|page| self.nand.is_unstable(PageAddress(page))) {
            self.note_change();
        }
    }
}

/// A shared handle of a NAND; clones are the same medium.
#[derive(Clone)]
pub struct RecordedNand {
    inner: Arc<Mutex<RecordedInner, rank::MediumContent>>,
    seam: Seam,
}

impl RecordedNand {
    /// The medium that is `nand` now, recording if asked.
    #[must_use]
    pub fn new(nand: SimNand, is_recording: bool) -> Self {
        let recording = is_recording.then(NandRecording::default);
        let inner = Arc::new(Mutex::new(RecordedInner { nand, recording, position: 0 }));
        Self { inner, seam: Seam::default() }
    }

    /// Where somebody may be told that the medium works beside its owner.
    #[must_use]
    pub const fn seam(&self) -> &Seam {
        &self.seam
    }

    /// The medium as it is now.
    #[must_use]
    pub fn image(&self) -> SimNand {
        self.inner.lock().nand.clone()
    }

    /// Operations so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.inner.lock().position
    }

    /// What was recorded; recording goes on with an empty one.
    #[must_use]
    pub fn take_recording(&self) -> NandRecording {
        self.inner.lock().recording.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn change(&self, operation: MediaOperation) -> Result<()> {
        let inner = &mut *self.inner.lock();
        let wants_medium = inner.recording.as_ref().is_some_and(NandRecording::wants_medium);
        let before = wants_medium.then(|| inner.nand.clone());
        // One that fails leaves something, too, but is no place for a cut.
        inner.nand.apply(&operation).inspect_err(|_| inner.note_change())?;
        inner.position += 1;
        if let Some(recording) = &mut inner.recording {
            recording.add(operation, before);
        }
        Ok(())
    }
}

impl Nand for RecordedNand {
    fn geometry(&self) -> Geometry {
        self.inner.lock().nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let inner = &mut *self.inner.lock();
        inner.note_read(page, data, spare);
        inner.nand.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Program { page, data: Arc::from(data), spare: Arc::from(spare), tag })
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Erase { block, tag })
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.inner.lock().nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.change(MediaOperation::MarkBad { block })
    }

    fn flush(&mut self) -> Result<()> {
        self.inner.lock().nand.flush()
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.inner.lock().nand.take_bitflips()
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    // So what is explored reads and flushes as on media that many threads use.
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
}

impl SharedNand for RecordedNand {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.seam.at(Gap::Works);
        let read = {
            let inner = &mut *self.inner.lock();
            inner.note_read(first, data, spare);
            inner.nand.read_run(first, data, spare, tag)
        };
        self.seam.at(Gap::Works);
        read
    }

    fn finish_flush(&self) -> Result<()> {
        self.seam.at(Gap::Works);
        let flushed = self.inner.lock().nand.flush();
        self.seam.at(Gap::Works);
        flushed
    }

    fn tell(&self, gap: Gap) {
        self.seam.at(gap);
    }
}

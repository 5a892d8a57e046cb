//! A simulated NAND that a device owns while the explorer keeps a hand on it.
//!
//! While recording is on, the medium keeps, for every operation that changes it, the operation and
//! the medium as it was right before. So a cut can be placed at any operation of a run, of a
//! recovery, or of what follows, with unstable pages in exactly the state that earlier reads left
//! them in. Media share their content, so a kept medium costs a few pointers per block.

use onode_base::sync::Mutex;
use onode_media::{BlockAddress, Counters, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SimNand};
use std::sync::Arc;

/// A place where the power can go: one operation and the medium before it.
#[derive(Clone)]
pub struct Cut {
    /// The medium before the operation.
    pub before: SimNand,
    /// The operation.
    pub operation: MediaOperation,
}

struct Inner {
    nand: SimNand,
    cuts: Option<Vec<Cut>>,
    position: usize,
}

/// A shared handle; clones are the same medium.
#[derive(Clone)]
pub struct Medium(Arc<Mutex<Inner>>);

impl Medium {
    /// A medium that starts as `nand`, recording if asked.
    #[must_use]
    pub fn new(nand: SimNand, recording: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner { nand, cuts: recording.then(Vec::new), position: 0 })))
    }

    /// The medium as it is now.
    #[must_use]
    pub fn image(&self) -> SimNand {
        self.0.lock().nand.clone()
    }

    /// Operations so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.0.lock().position
    }

    /// What was recorded; recording goes on with an empty list.
    #[must_use]
    pub fn take_cuts(&self) -> Vec<Cut> {
        self.0.lock().cuts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn change(&self, operation: MediaOperation) -> Result<()> {
        let inner = &mut *self.0.lock();
        let before = inner.cuts.is_some().then(|| inner.nand.clone());
        inner.nand.apply(&operation)?;
        inner.position += 1;
        if let (Some(cuts), Some(before)) = (&mut inner.cuts, before) {
            cuts.push(Cut { before, operation });
        }
        Ok(())
    }
}

impl Nand for Medium {
    fn geometry(&self) -> Geometry {
        self.0.lock().nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().nand.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Program { page, data: Arc::from(data), spare: Arc::from(spare), tag })
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.change(MediaOperation::Erase { block, tag })
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.0.lock().nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.change(MediaOperation::MarkBad { block })
    }

    fn flush(&mut self) -> Result<()> {
        self.0.lock().nand.flush()
    }

    fn counters(&self) -> Option<&Counters> {
        None
    }
}

/// What happened to a medium, in words.
#[must_use]
pub fn describe(operation: &MediaOperation, geometry: &Geometry) -> String {
    match operation {
        MediaOperation::Program { page, tag, .. } => {
            let block = geometry.block_of(*page).0;
            format!("program page {} (block {block}, {})", page.0, tag.name())
        }
        MediaOperation::Erase { block, tag } => format!("erase block {} ({})", block.0, tag.name()),
        MediaOperation::MarkBad { block } => format!("mark block {} bad", block.0),
    }
}

//! A simulated NAND that a device owns while the explorer keeps a hand on it.
//!
//! While recording is on, the medium keeps, for every operation that changes it, the operation and
//! the medium as it was right before. So a cut can be placed at any operation of a run, of a
//! recovery, or of what follows, with unstable pages in exactly the state that earlier reads left
//! them in. Media share their content, so a kept medium costs a few pointers per block.

use crate::medium::{Budget, Medium, Trace, Walk};
use onode_base::Prng;
use onode_base::sync::Mutex;
use onode_media::{
    BlockAddress, Counters, Damage, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SharedNand, SimNand,
};
use std::sync::Arc;

/// A place where the power can go: one operation and the medium before it.
#[derive(Clone)]
pub struct Cut {
    /// The medium before the operation.
    pub before: SimNand,
    /// The operation.
    pub operation: MediaOperation,
}

struct NandInner {
    nand: SimNand,
    cuts: Option<Vec<Cut>>,
    position: usize,
}

/// A shared handle; clones are the same medium.
#[derive(Clone)]
pub struct NandMedium(Arc<Mutex<NandInner>>);

impl Medium for NandMedium {
    type Image = SimNand;
    type Trace = NandTrace;

    fn new(nand: SimNand, recording: bool) -> Self {
        Self(Arc::new(Mutex::new(NandInner { nand, cuts: recording.then(Vec::new), position: 0 })))
    }

    fn image(&self) -> SimNand {
        self.0.lock().nand.clone()
    }

    fn position(&self) -> usize {
        self.0.lock().position
    }

    fn take_trace(&self) -> NandTrace {
        NandTrace(self.0.lock().cuts.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

impl NandMedium {
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

impl Nand for NandMedium {
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

    fn counters(&self) -> Option<Counters> {
        None
    }

    // So what is explored reads and flushes as on media that many threads use.
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        Some(Arc::new(self.clone()))
    }
}

impl SharedNand for NandMedium {
    fn read_run(&self, first: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.0.lock().nand.read_run(first, data, spare, tag)
    }

    fn finish_flush(&self) -> Result<()> {
        self.0.lock().nand.flush()
    }
}

/// Every operation of a run.
#[derive(Clone, Default)]
pub struct NandTrace(Vec<Cut>);

impl NandTrace {
    /// The medium before an operation.
    pub(super) fn before(&self, position: usize) -> Option<SimNand> {
        self.0.get(position).map(|cut| cut.before.clone())
    }
}

impl Trace for NandTrace {
    type Image = SimNand;
    type Walk<'a> = NandWalk<'a>;

    fn operations(&self) -> usize {
        self.0.len()
    }

    fn wraps(&self) -> u64 {
        let pages = self.0.first().map_or(1, |cut| cut.before.geometry().pages());
        self.0.len() as u64 * 100 / pages.max(1)
    }

    fn places(&self, _budget: &Budget) -> Vec<usize> {
        (0..self.0.len()).collect()
    }

    fn walk(&self) -> NandWalk<'_> {
        NandWalk(&self.0)
    }

    // A program that has returned is durable: the states say everything.
    fn check_commits(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    fn describe(&self, position: usize) -> String {
        self.0.get(position).map_or_else(String::new, |cut| describe(&cut.operation, &cut.before.geometry()))
    }

    fn describe_variant(&self, position: usize, variant: usize) -> String {
        let damage = self.0.get(position).and_then(|cut| Damage::variants_for(&cut.operation).get(variant));
        damage.map_or_else(String::new, |damage| format!("{damage:?}"))
    }
}

/// Media share their content, so going to a position is nothing.
pub struct NandWalk<'a>(&'a [Cut]);

impl Walk for NandWalk<'_> {
    type Image = SimNand;

    /// A complete operation is the state before the next, so it is tried only as the last.
    fn variants(&mut self, position: usize, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize> {
        let Some(cut) = self.0.get(position) else { return Vec::new() };
        let variants = Damage::variants_for(&cut.operation);
        let mut all: Vec<usize> =
            (0..variants.len()).filter(|&index| is_last || variants[index] != Damage::Complete).collect();
        if most > 0 {
            while all.len() > most {
                let index = prng.below(all.len() as u64) as usize;
                all.remove(index);
            }
        }
        all
    }

    fn image(&mut self, position: usize, variant: usize, seed: u64) -> Option<SimNand> {
        let cut = self.0.get(position)?;
        let mut image = cut.before.clone();
        let damage = Damage::variants_for(&cut.operation).get(variant).copied().unwrap_or(Damage::Nothing);
        // The operation succeeded in the run, so it can be cut; if not, the medium is as before it.
        let _ = image.apply_cut(&cut.operation, damage, seed);
        Some(image)
    }
}

fn describe(operation: &MediaOperation, geometry: &Geometry) -> String {
    match operation {
        MediaOperation::Program { page, tag, .. } => {
            let block = geometry.block_of(*page).0;
            format!("program page {} (block {block}, {})", page.0, tag.name())
        }
        MediaOperation::Erase { block, tag } => format!("erase block {} ({})", block.0, tag.name()),
        MediaOperation::MarkBad { block } => format!("mark block {} bad", block.0),
    }
}

//! A simulated NAND that a device owns while the explorer keeps a hand on it.
//!
//! While recording is on, the medium keeps what `recording` needs to have it again as it was
//! before any operation that changed it. So a cut can be placed at any operation of a run, of a
//! recovery, or of what follows, with unstable pages in exactly the state that earlier reads left
//! them in.

mod recording;

use crate::medium::nand::recording::NandRecording;
use crate::medium::{Budget, Medium, Trace, Walk};
use onode_base::Prng;
use onode_base::sync::Mutex;
use onode_media::{
    BlockAddress, Counters, Damage, Geometry, IoTag, MediaOperation, Nand, PageAddress, Result, SharedNand, SimNand,
};
use std::sync::Arc;

struct NandInner {
    nand: SimNand,
    recording: Option<NandRecording>,
    position: usize,
}

impl NandInner {
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

/// A shared handle; clones are the same medium.
#[derive(Clone)]
pub struct NandMedium(Arc<Mutex<NandInner>>);

impl Medium for NandMedium {
    type Image = SimNand;
    type Trace = NandTrace;

    fn new(nand: SimNand, recording: bool) -> Self {
        Self(Arc::new(Mutex::new(NandInner { nand, recording: recording.then(NandRecording::default), position: 0 })))
    }

    fn image(&self) -> SimNand {
        self.0.lock().nand.clone()
    }

    fn position(&self) -> usize {
        self.0.lock().position
    }

    fn take_trace(&self) -> NandTrace {
        NandTrace(self.0.lock().recording.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

impl NandMedium {
    fn change(&self, operation: MediaOperation) -> Result<()> {
        let inner = &mut *self.0.lock();
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

impl Nand for NandMedium {
    fn geometry(&self) -> Geometry {
        self.0.lock().nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        let inner = &mut *self.0.lock();
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
        let inner = &mut *self.0.lock();
        inner.note_read(first, data, spare);
        inner.nand.read_run(first, data, spare, tag)
    }

    fn finish_flush(&self) -> Result<()> {
        self.0.lock().nand.flush()
    }
}

/// Variants of the damage of most operations, about.
const VARIANTS: u64 = 10;

/// Every operation of a run.
#[derive(Clone)]
pub struct NandTrace(NandRecording);

impl NandTrace {
    /// The medium before an operation, if that is kept.
    pub(super) fn before(&self, position: usize) -> Option<SimNand> {
        self.0.before(position)
    }

    /// For each operation whether it is kept; the end always is.
    pub(super) fn kept(&self) -> Vec<bool> {
        let mut kept = vec![false; self.0.operations()];
        self.0.kept().for_each(|position| kept[position] = true);
        kept.push(true);
        kept
    }
}

impl Trace for NandTrace {
    type Image = SimNand;
    type Walk<'a> = NandWalk<'a>;

    fn operations(&self) -> usize {
        self.0.operations()
    }

    fn wraps(&self) -> u64 {
        let pages = self.0.geometry().map_or(1, |geometry| geometry.pages());
        self.0.operations() as u64 * 100 / pages.max(1)
    }

    /// All, or some of them spread over the run: a volume is full only towards the end of one.
    fn places(&self, budget: &Budget) -> Vec<usize> {
        let each = if budget.variants == 0 { VARIANTS } else { budget.variants as u64 };
        // Second cuts are about a third of all.
        let expected = self.0.kept().count() as u64 * each * 3 / 2;
        let mut prng = Prng::new(budget.seed ^ 0x4a4d);
        let wanted = |_: &usize| expected <= budget.states || prng.chance(budget.states.max(1), expected);
        self.0.kept().filter(wanted).collect()
    }

    fn walk(&self) -> NandWalk<'_> {
        NandWalk(self)
    }

    // A program that has returned is durable: the states say everything.
    fn check_commits(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    fn describe(&self, position: usize) -> String {
        match (self.0.operation(position), self.0.geometry()) {
            (Some(operation), Some(geometry)) => describe(operation, &geometry),
            _ if position < self.0.operations() => "not kept: the run is long".into(),
            _ => String::new(),
        }
    }

    fn describe_variant(&self, position: usize, variant: usize) -> String {
        let variants = self.0.operation(position).map(Damage::variants_for);
        let damage = variants.and_then(|variants| variants.get(variant));
        damage.map_or_else(String::new, |damage| format!("{damage:?}"))
    }
}

/// The medium is kept so often that going to a position is next to nothing.
pub struct NandWalk<'a>(&'a NandTrace);

impl Walk for NandWalk<'_> {
    type Image = SimNand;

    /// A complete operation is the state before the next, so it is tried only as the last.
    fn variants(&mut self, position: usize, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize> {
        let Some(operation) = self.0.0.operation(position) else { return Vec::new() };
        let variants = Damage::variants_for(operation);
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
        let operation = self.0.0.operation(position)?;
        let mut image = self.0.before(position)?;
        let damage = Damage::variants_for(operation).get(variant).copied().unwrap_or(Damage::Nothing);
        // The operation succeeded in the run, so it can be cut; if not, the medium is as before it.
        let _ = image.apply_cut(operation, damage, seed);
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

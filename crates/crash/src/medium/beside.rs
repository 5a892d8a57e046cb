//! Flash and the memory beside it, cut together: every operation of either is a place, and what the
//! memory keeps of what was not fenced is multiplied with what the cut leaves of the flash.

use crate::medium::memory::walk::{MemoryWalk, SETTLED};
use crate::medium::memory::{Memory, MemoryImage, MemoryTrace};
use crate::medium::nand::NandTrace;
use crate::medium::{Budget, Medium, Trace, Walk};
use onode_base::Prng;
use onode_base::sync::{Mutex, rank};
use onode_media::sim::RecordedNand;
use onode_media::{BlockAddress, Counters, Geometry, IoTag, Nand, PageAddress, Result, Seam, SharedNand, SimNand};
use std::sync::Arc;

/// Both at rest.
#[derive(Clone)]
pub struct BesideImage {
    /// The flash.
    pub nand: SimNand,
    /// The memory.
    pub memory: MemoryImage,
}

/// A shared handle to both.
#[derive(Clone)]
pub struct BesideMedium {
    /// The memory.
    pub memory: Memory,
    nand: RecordedNand,
    /// Of each operation of the flash, how many of the memory were before it.
    order: Arc<Mutex<Vec<usize>, rank::MediumNotes>>,
}

impl Medium for BesideMedium {
    type Image = BesideImage;
    type Trace = BesideTrace;

    fn new(image: BesideImage, recording: bool) -> Self {
        Self {
            memory: Memory::new(image.memory, recording),
            nand: RecordedNand::new(image.nand, recording),
            order: Arc::default(),
        }
    }

    fn image(&self) -> BesideImage {
        BesideImage { nand: self.nand.image(), memory: self.memory.image() }
    }

    fn position(&self) -> usize {
        self.nand.position() + self.memory.position()
    }

    fn take_trace(&self) -> BesideTrace {
        let (nand, memory) = (self.nand.take_trace(), self.memory.take_trace());
        let order = std::mem::take(&mut *self.order.lock());
        let first = self.memory.position() - memory.operations();
        let mut steps = Vec::with_capacity(nand.operations() + memory.operations());
        let mut of_memory = 0;
        for (of_nand, before) in order.iter().enumerate().take(nand.operations()) {
            while of_memory < before.saturating_sub(first) {
                steps.push(BesideStep { of_nand, of_memory, is_nand: false });
                of_memory += 1;
            }
            steps.push(BesideStep { of_nand, of_memory, is_nand: true });
        }
        for of_memory in of_memory..memory.operations() {
            steps.push(BesideStep { of_nand: nand.operations(), of_memory, is_nand: false });
        }
        BesideTrace { nand, memory, end: self.nand.image(), steps }
    }

    // The memory is used under the device's lock.
    fn seam(&self) -> Option<Seam> {
        Some(self.nand.seam().clone())
    }
}

impl Nand for BesideMedium {
    fn geometry(&self) -> Geometry {
        self.nand.geometry()
    }

    fn read(&mut self, page: PageAddress, data: &mut [u8], spare: &mut [u8], tag: IoTag) -> Result<()> {
        self.nand.read(page, data, spare, tag)
    }

    fn program(&mut self, page: PageAddress, data: &[u8], spare: &[u8], tag: IoTag) -> Result<()> {
        self.ordered(|nand| nand.program(page, data, spare, tag))
    }

    fn erase(&mut self, block: BlockAddress, tag: IoTag) -> Result<()> {
        self.ordered(|nand| nand.erase(block, tag))
    }

    fn is_bad(&mut self, block: BlockAddress) -> Result<bool> {
        self.nand.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.ordered(|nand| nand.mark_bad(block))
    }

    fn flush(&mut self) -> Result<()> {
        self.nand.flush()
    }

    fn take_bitflips(&mut self) -> Option<Vec<BlockAddress>> {
        self.nand.take_bitflips()
    }

    fn counters(&self) -> Option<Counters> {
        None
    }

    // Reads and flushes are no operations of their own.
    fn shared(&self) -> Option<Arc<dyn SharedNand>> {
        self.nand.shared()
    }
}

impl BesideMedium {
    /// Does an operation of the flash and notes its place among those of the memory, if it took
    /// place.
    fn ordered(&mut self, operation: impl FnOnce(&mut RecordedNand) -> Result<()>) -> Result<()> {
        let (before, done) = (self.memory.position(), self.nand.position());
        let result = operation(&mut self.nand);
        if self.nand.position() > done {
            self.order.lock().push(before);
        }
        result
    }
}

/// One operation of either.
#[derive(Clone, Copy, Debug)]
struct BesideStep {
    /// Operations of the flash before it.
    of_nand: usize,
    /// Operations of the memory before it.
    of_memory: usize,
    is_nand: bool,
}

/// Every operation of a run on either.
#[derive(Clone)]
pub struct BesideTrace {
    nand: NandTrace,
    memory: MemoryTrace,
    end: SimNand,
    steps: Vec<BesideStep>,
}

/// A variant is what is left of the flash's operation in the high half, none for one of the memory,
/// and that of the memory in the low half.
const HALF: usize = 1 << 12;

impl Trace for BesideTrace {
    type Image = BesideImage;
    type Walk<'a> = BesideWalk<'a>;

    fn operations(&self) -> usize {
        self.steps.len()
    }

    fn wraps(&self) -> u64 {
        self.nand.wraps()
    }

    fn places(&self, budget: &Budget) -> Vec<usize> {
        let of_memory = self.memory.places(&Budget { states: budget.states / 2, ..*budget });
        let mut is_wanted = vec![false; self.memory.operations() + 1];
        of_memory.into_iter().for_each(|place| is_wanted[place] = true);
        // Of an operation of the flash about so many variants, times those of the memory.
        let expected = self.nand.operations() as u64 * if budget.variants == 0 { 12 } else { budget.variants as u64 };
        let kept = self.nand.kept();
        let mut prng = Prng::new(budget.seed ^ 0xbe51de);
        let half = (budget.states / 2).max(1);
        let mut all = Vec::new();
        for (place, step) in self.steps.iter().enumerate() {
            let wanted =
                if step.is_nand { expected <= half || prng.chance(half, expected) } else { is_wanted[step.of_memory] };
            if wanted && kept[step.of_nand] {
                all.push(place);
            }
        }
        all
    }

    fn walk(&self) -> BesideWalk<'_> {
        BesideWalk { trace: self, memory: self.memory.walk() }
    }

    fn check_commits(&self) -> std::result::Result<(), String> {
        self.memory.check_commits()
    }

    fn describe(&self, position: usize) -> String {
        match self.steps.get(position) {
            Some(step) if step.is_nand => self.nand.describe(step.of_nand),
            Some(step) => format!("memory: {}", self.memory.describe(step.of_memory)),
            None => "the end".into(),
        }
    }

    fn describe_variant(&self, position: usize, variant: usize) -> String {
        let Some(step) = self.steps.get(position) else { return String::new() };
        let of_memory = self.memory.describe_variant(step.of_memory, variant % HALF);
        match (variant / HALF).checked_sub(1) {
            Some(of_nand) => format!("{}; memory: {of_memory}", self.nand.describe_variant(step.of_nand, of_nand)),
            None => of_memory,
        }
    }
}

/// Goes through both together.
pub struct BesideWalk<'a> {
    trace: &'a BesideTrace,
    memory: MemoryWalk<'a>,
}

impl Walk for BesideWalk<'_> {
    type Image = BesideImage;

    fn variants(&mut self, position: usize, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize> {
        let Some(step) = self.trace.steps.get(position) else { return Vec::new() };
        let of_memory = self.memory.variants(step.of_memory, most, is_last, prng);
        if !step.is_nand {
            return of_memory;
        }
        // What the memory keeps is multiplied in, by its extremes and one mix.
        let of_memory = if of_memory.len() > 1 { SETTLED.to_vec() } else { of_memory };
        let of_nand = self.trace.nand.walk().variants(step.of_nand, most, is_last, prng);
        let both = |nand: usize| of_memory.iter().map(move |memory| (nand + 1) * HALF + memory);
        let mut all: Vec<usize> = of_nand.into_iter().flat_map(both).collect();
        while most > 0 && all.len() > most {
            all.swap_remove(prng.below(all.len() as u64) as usize);
        }
        all
    }

    fn image(&mut self, position: usize, variant: usize, seed: u64) -> Option<BesideImage> {
        let step = *self.trace.steps.get(position)?;
        let memory = self.memory.image(step.of_memory, variant % HALF, seed)?;
        let nand = match (variant / HALF).checked_sub(1) {
            Some(of_nand) => self.trace.nand.walk().image(step.of_nand, of_nand, seed)?,
            None if step.of_nand == self.trace.nand.operations() => self.trace.end.clone(),
            None => self.trace.nand.before(step.of_nand)?,
        };
        Some(BesideImage { nand, memory })
    }
}

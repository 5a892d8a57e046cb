//! NAND for the explorer: the recorded medium, and where a run on it is cut in which way.

use crate::medium::{Budget, Medium, Trace, Walk};
use onode_base::Prng;
use onode_media::sim::{NandRecording, RecordedNand};
use onode_media::{Damage, Geometry, MediaOperation, Seam, SimNand};

impl Medium for RecordedNand {
    type Image = SimNand;
    type Trace = NandTrace;

    fn new(nand: SimNand, recording: bool) -> Self {
        Self::new(nand, recording)
    }

    fn image(&self) -> SimNand {
        self.image()
    }

    fn position(&self) -> usize {
        self.position()
    }

    fn take_trace(&self) -> NandTrace {
        NandTrace(self.take_recording())
    }

    fn seam(&self) -> Option<Seam> {
        Some(Self::seam(self).clone())
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

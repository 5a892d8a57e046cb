//! What the explorer asks of a kind of medium: to record a run, and to be what a cut leaves.
//!
//! A run is recorded once. Its *trace* knows every operation that changed the medium, by
//! *position*: how many were before it. A cut at position k leaves the operations before k, and k
//! itself done in part or not at all; what else it may leave is a matter of the kind. The ways in
//! which one cut can leave the medium are its *variants*, by number, so that position, variant and
//! seed name a state.

pub mod beside;
pub mod disks;
pub mod memory;
pub mod nand;

use onode_base::Prng;
use onode_media::Seam;

/// A shared handle to a medium that a device owns while the explorer keeps a hand on it; clones are
/// the same medium.
pub trait Medium: Clone + Send + Sync + 'static {
    /// The medium at rest.
    type Image: Clone + Send + Sync;
    /// What happened to it.
    type Trace: Trace<Image = Self::Image>;

    /// A medium that starts as `image`, recording if asked.
    fn new(image: Self::Image, recording: bool) -> Self;

    /// The medium as it is now.
    fn image(&self) -> Self::Image;

    /// Operations so far.
    fn position(&self) -> usize;

    /// What was recorded; recording goes on with an empty trace.
    fn take_trace(&self) -> Self::Trace;

    /// Where somebody may be told that it works for a call that has let go of its locks.
    fn seam(&self) -> Option<Seam> {
        None
    }
}

/// A recorded run of a medium.
pub trait Trace {
    /// The medium at rest.
    type Image;
    /// Goes through the trace.
    type Walk<'a>: Walk<Image = Self::Image>
    where
        Self: 'a;

    /// Operations.
    fn operations(&self) -> usize;

    /// How often the run filled its medium, in hundredths.
    fn wraps(&self) -> u64;

    /// Positions at which a cut may find something new, in order; fewer of them if cutting each by
    /// `plan` would make more states than it has.
    fn places(&self, budget: &Budget) -> Vec<usize>;

    /// Begins to go through it.
    fn walk(&self) -> Self::Walk<'_>;

    /// Whether everything that should be durable at the end of each call was on its way there.
    ///
    /// # Errors
    /// What was not, in words.
    fn check_commits(&self) -> Result<(), String>;

    /// The operation at a position in words.
    fn describe(&self, position: usize) -> String;

    /// What a variant leaves of it in words.
    fn describe_variant(&self, position: usize, variant: usize) -> String;
}

/// How many states an exploration may make.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Variants tried at each place; 0 for all.
    pub variants: usize,
    /// In all.
    pub states: u64,
    /// From which it follows what is left out.
    pub seed: u64,
}

/// Goes through a trace, best forwards.
pub trait Walk {
    /// The medium at rest.
    type Image;

    /// The variants to try for a cut at `position`: all, or `most` of them if that is not 0.
    fn variants(&mut self, position: usize, most: usize, is_last: bool, prng: &mut Prng) -> Vec<usize>;

    /// The medium after that cut; `None` if the trace has no such position.
    fn image(&mut self, position: usize, variant: usize, seed: u64) -> Option<Self::Image>;
}

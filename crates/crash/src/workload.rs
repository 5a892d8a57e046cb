//! What the explorer asks of a kind of system: how it is mounted, used, looked at and closed.

pub mod content;
pub mod history;

use crate::medium::Medium;
use crate::violation::Violation;
use crate::workload::history::{History, Promise, Run};

/// Figures of a device, by name.
pub type Figures = Vec<(String, u64)>;

/// The run of a workload.
pub type RunOf<W> = Run<<W as Workload>::State, <W as Workload>::Medium>;
/// The medium of a workload at rest.
pub type ImageOf<W> = <<W as Workload>::Medium as Medium>::Image;
/// What was recorded of the medium of a workload.
pub type TraceOf<W> = <<W as Workload>::Medium as Medium>::Trace;

/// A kind of system with one way of using it, all of which follows from a seed.
pub trait Workload: Sync {
    /// The mounted system.
    type System;
    /// What the oracle knows.
    type State: Clone;
    /// What it stands on.
    type Medium: Medium;

    /// A formatted medium, and what is on it.
    ///
    /// # Errors
    /// If it cannot be made.
    fn prepare(&self) -> Result<(ImageOf<Self>, Self::State), Violation>;

    /// Calls of the first run.
    fn steps(&self) -> u32;

    /// Mounts what is on the medium.
    ///
    /// # Errors
    /// N7 if that is refused.
    fn mount(&self, medium: &Self::Medium, read_only: bool) -> Result<Self::System, Violation>;

    /// Makes one or a few calls, chosen by the run.
    ///
    /// # Errors
    /// What should not have happened.
    fn step(&self, system: &mut Self::System, run: &mut RunOf<Self>) -> Result<(), Violation>;

    /// Makes a few calls as a user would after a crash: the last of them is covered.
    ///
    /// # Errors
    /// What should not have happened.
    fn go_on(&self, system: &mut Self::System, run: &mut RunOf<Self>) -> Result<(), Violation>;

    /// Finds out which of the states that a cut may leave the system shows.
    ///
    /// # Errors
    /// It shows none of them.
    fn recognise(
        &self,
        system: &Self::System,
        history: &History<Self::State>,
        promise: Promise,
    ) -> Result<Self::State, Violation>;

    /// Looks at everything and compares it with `state`.
    ///
    /// # Errors
    /// The first difference.
    fn compare(&self, system: &Self::System, state: &Self::State) -> Result<(), Violation>;

    /// Lets the system verify itself.
    ///
    /// # Errors
    /// What it found.
    fn verify(&self, system: &Self::System, state: &Self::State) -> Result<(), Violation>;

    /// Closes cleanly.
    ///
    /// # Errors
    /// If that fails.
    fn close(&self, system: &Self::System) -> Result<(), Violation>;

    /// Tells a recording medium what the system knows of it.
    ///
    /// # Errors
    /// If the system does not know it any more.
    fn note(&self, system: &Self::System, medium: &Self::Medium) -> Result<(), Violation>;

    /// The names of the snapshots of the device; durable, as are deletions.
    fn snapshots(&self, _system: &Self::System) -> Vec<String> {
        Vec::new()
    }

    /// Figures of the device.
    fn figures(&self, system: &Self::System) -> Figures;
}

//! What memory blocks and files cost on storage-class memory, beside what they cost elsewhere on
//! the same machine.
//!
//! Times are of this machine and this run; only their ratios mean something elsewhere. So each
//! ratio is taken within one run, in rounds that visit all subjects in turn, and of several rounds
//! the best counts for each: what else the machine does slows some rounds down and speeds none up.

mod allocators;
mod checkpoint;
mod durable;
mod files;
mod fill;
mod host;
mod own;
mod pairs;
mod peers;
mod postmark;
mod process;
mod recovery;
mod tables;

pub use peers::{Subject, measure_subject};

use crate::figures::FigureReport;
use crate::groups::{self, Group};
use std::path::PathBuf;

/// A run of all groups under way.
type Measuring<'a> = groups::Measuring<'a, Options>;

/// The groups in the order of the report.
const GROUPS: [Group<Options>; 8] = [
    ("blocks", allocators::measure),
    ("durable", durable::measure),
    ("fill", fill::measure),
    ("files", files::measure),
    ("checkpoint", checkpoint::measure),
    ("postmark", postmark::measure),
    ("recovery", recovery::measure),
    ("tables", tables::measure),
];

/// The names of all groups of figures.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    groups::names(&GROUPS)
}

/// What to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// This program, which is run once for each allocator of others; without it only the own one is
    /// measured.
    pub program: Option<PathBuf>,
    /// Only this group of figures.
    pub only: Option<String>,
    /// Few repetitions, to see that everything works. Rows are then not judged.
    pub quick: bool,
}

/// Measures everything; `progress` hears what is being done. What cannot be measured is named in
/// the report.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str)) -> FigureReport {
    let measuring = Measuring::new(options, options.quick, progress);
    measuring.run_all(&GROUPS, options.only.as_deref(), "memory of this machine")
}

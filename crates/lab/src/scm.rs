//! What memory blocks and files cost on storage-class memory, beside what they cost elsewhere on the same machine.
//!
//! Times are of this machine and this run; only their ratios mean something elsewhere. So each ratio is taken within
//! one run, in rounds that visit all subjects in turn, and of several rounds the best counts for each: what else the
//! machine does slows some rounds down and speeds none up.

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

use crate::figures::{FigureReport, Row, Value};
use onode::Result;
use std::path::PathBuf;

/// What measures one group.
type Group = fn(&mut Measuring<'_>) -> Result<()>;

/// The groups in the order of the report.
const GROUPS: [(&str, Group); 8] = [
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
    GROUPS.iter().map(|(name, _)| *name).collect()
}

/// What to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// This program, which is run once for each allocator of others; without it only the own one is measured.
    pub program: Option<PathBuf>,
    /// Only this group of figures.
    pub only: Option<String>,
    /// Few repetitions, to see that everything works. Rows are then not judged.
    pub quick: bool,
}

/// Measures everything; `progress` hears what is being done. What cannot be measured is named in the report.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str)) -> FigureReport {
    let mut measuring = Measuring { options, rows: Vec::new(), failures: Vec::new(), notes: Vec::new(), progress };
    for (name, group) in GROUPS {
        if options.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        if let Err(error) = group(&mut measuring) {
            measuring.failures.push(error.to_string());
        }
    }
    let Measuring { rows, failures, notes, .. } = measuring;
    FigureReport { device: "memory of this machine".to_owned(), quick: options.quick, rows, failures, notes }
}

/// A run of all groups under way.
struct Measuring<'a> {
    options: &'a Options,
    rows: Vec<Row>,
    failures: Vec<String>,
    notes: Vec<String>,
    progress: &'a mut dyn FnMut(&str),
}

impl Measuring<'_> {
    fn say(&mut self, what: &str) {
        (self.progress)(what);
    }

    fn at_most(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.push(Row::at_most(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    fn at_least(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.push(Row::at_least(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    fn shown(&mut self, name: String, value: f64, unit: &'static str) {
        self.push(Row::shown(name, Value::Ratio(value), unit));
    }

    fn push(&mut self, row: Row) {
        self.rows.push(if self.options.quick { row.unjudged() } else { row });
    }
}

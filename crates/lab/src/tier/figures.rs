//! Every figure, in one go, set beside the figure to reach.
//!
//! Groups of figures live in files of their own, one line in `GROUPS` each.

mod hot;
mod large;
mod policies;
mod small;
mod space;

use super::devices::Ours;
use super::model::{Disk, Phase, replay};
use super::recording::Recording;
use super::recording_name;
use super::workload::named;
use crate::figures::{FigureReport, Row, Value};
use onode::Result;
use std::path::PathBuf;

/// What measures one group.
type Group = fn(&mut Measuring<'_>) -> Result<()>;

/// The groups in the order of the report.
const GROUPS: [(&str, Group); 8] = [
    ("postmark", small::postmark),
    ("together", small::together),
    ("natural", small::natural),
    ("sequential", large::sequential),
    ("random", large::random),
    ("hot", hot::measure),
    ("space", space::measure),
    ("policies", policies::measure),
];

/// The names of all groups of figures.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    GROUPS.iter().map(|(name, _)| *name).collect()
}

/// What to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder of the recordings; peers that have none there are not compared with, and the report says so.
    pub recordings: PathBuf,
    /// Only this group of figures.
    pub only: Option<String>,
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
    FigureReport { device: "models of the disks of paper 4".to_owned(), quick: false, rows, failures, notes }
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

    /// The recorded workload of a peer.
    fn recorded(&mut self, peer: &str, workload: &str) -> Result<Option<Recording>> {
        let name = recording_name(peer, workload);
        let found = Recording::find(&self.options.recordings, &name)?;
        if found.is_none() {
            self.notes.push(format!("there is no recording {name} in {}", self.options.recordings.display()));
        }
        Ok(found)
    }

    /// What the phases of a peer's workload take on each of `disks`; nothing without a recording.
    fn played(&mut self, peer: &str, workload: &str, disks: &[Disk]) -> Result<Vec<(Disk, Vec<Phase>)>> {
        self.say(&format!("{workload}, {peer}"));
        let Some(recording) = self.recorded(peer, workload)? else { return Ok(Vec::new()) };
        Ok(disks.iter().map(|disk| (*disk, replay(&recording, *disk))).collect())
    }

    /// What the phases of a workload take on ours; nothing if that fails, which the report says.
    fn run(&mut self, ours: Ours, workload: &str) -> Vec<Phase> {
        self.say(&format!("{workload}, {}", ours.name()));
        let Some(known) = named(workload) else { return Vec::new() };
        ours.run(known).unwrap_or_else(|error| {
            self.failures.push(format!("{workload}, {}: {error}", ours.name()));
            Vec::new()
        })
    }

    fn at_least(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.rows.push(Row::at_least(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    fn at_most(&mut self, name: String, value: f64, unit: &'static str, reach: f64) {
        self.rows.push(Row::at_most(name, Value::Ratio(value), unit, Value::Ratio(reach)));
    }

    fn shown(&mut self, name: String, value: f64, unit: &'static str) {
        self.rows.push(Row::shown(name, Value::Ratio(value), unit));
    }
}

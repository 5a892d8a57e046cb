//! Every figure, in one go, set beside the figure to reach.
//!
//! Groups of figures live in files of their own, one line in `GROUPS` each.

mod hot;
mod large;
mod policies;
mod shapes;
mod small;
mod space;

use super::devices::Ours;
use super::model::{Disk, Phase, replay};
use super::recording::Recording;
use super::recording_name;
use super::recordings::Recordings;
use super::workload::named;
use crate::figures::FigureReport;
use crate::groups::{self, Group};
use onode::Result;

/// A run of all groups under way.
type Measuring<'a> = groups::Measuring<'a, Options>;

/// The groups in the order of the report.
const GROUPS: [Group<Options>; 9] = [
    ("postmark", small::postmark),
    ("together", small::together),
    ("natural", small::natural),
    ("sequential", large::sequential),
    ("random", large::random),
    ("hot", hot::measure),
    ("space", space::measure),
    ("policies", policies::measure),
    ("shapes", shapes::measure),
];

/// The names of all groups of figures.
#[must_use]
pub fn groups() -> Vec<&'static str> {
    groups::names(&GROUPS)
}

/// What to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where the recordings are; peers that have none there are not compared with, and the report
    /// says so.
    pub recordings: Recordings,
    /// Only this group of figures.
    pub only: Option<String>,
}

/// Measures everything; `progress` hears what is being done. What cannot be measured is named in
/// the report.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str)) -> FigureReport {
    let measuring = Measuring::new(options, false, progress);
    measuring.run_all(&GROUPS, options.only.as_deref(), "models of the disks of paper 4")
}

impl Measuring<'_> {
    /// The recorded workload of a peer.
    fn recorded(&mut self, peer: &str, workload: &str) -> Result<Option<Recording>> {
        let name = recording_name(peer, workload);
        let found = self.options.recordings.find(&name)?;
        if found.is_none() {
            self.notes.push(format!("there is no recording {name} in {}", self.options.recordings));
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
}

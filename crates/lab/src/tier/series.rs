//! The figures of paper 4 as numbers: one line a point on the abscissa, one column a curve.
//!
//! The paper's own numbers are lost with its drawings; what it says of them in words is the shape
//! to compare with.

use super::devices::Ours;
use super::model::{Disk, Phase, replay};
use super::recordings::Recordings;
use super::workload::{FILES, SIZES, named};
use super::{PEERS, recording_name};
use onode::{Class, Error, Result};
use serde::Serialize;
use std::fmt;

/// A figure of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its number.
    pub figure: u32,
    /// What it shows.
    pub title: String,
    /// Of what the numbers are.
    pub unit: &'static str,
    /// The names of the curves.
    pub curves: Vec<String>,
    /// The points: what is varied, and a number for each curve.
    pub points: Vec<(String, Vec<Option<f64>>)>,
}

/// What a figure shows.
struct Plan {
    title: &'static str,
    /// The recorded workload, and the beginning of the names of its phases.
    workload: &'static str,
    phase: &'static str,
}

const fn plan_of(figure: u32) -> Option<Plan> {
    let (title, workload, phase) = match figure {
        7 => ("IOzone write", "iozone", "write"),
        8 => ("IOzone rewrite", "iozone", "rewrite"),
        9 => ("IOzone read", "iozone", "read"),
        10 => ("random write", "template", "write"),
        11 => ("random rewrite", "template", "rewrite"),
        12 => ("random read", "template", "read"),
        13 => ("IOzone write by size of extents", "iozone", "write"),
        14 => ("IOzone rewrite by size of extents", "iozone", "rewrite"),
        15 => ("IOzone read by size of extents", "iozone", "read"),
        16 => ("random write by size of extents", "template", "write"),
        17 => ("random rewrite by size of extents", "template", "rewrite"),
        18 => ("random read by size of extents", "template", "read"),
        19 => ("transaction rates with PostMark", "postmark", "transactions"),
        20 => ("Bonnie++ I/O bandwidth", "bonnie", ""),
        _ => return None,
    };
    Some(Plan { title, workload, phase })
}

/// Draws a figure in numbers with the recordings in `recordings`.
///
/// # Errors
/// `Usage` for a figure that there is not; damaged recordings.
pub fn series(figure: u32, recordings: &Recordings) -> Result<Series> {
    let Some(plan) = plan_of(figure) else {
        let why = format!("there is no series for figure {figure}");
        return Err(Error::new(Class::Usage, "cannot draw the figure", why).hint("Figures 7 to 20 are there"));
    };
    let labels: Vec<String> = match figure {
        19 => FILES.iter().map(|files| format!("{files}")).collect(),
        20 => ["write", "rewrite", "read"].map(str::to_owned).to_vec(),
        _ => SIZES.iter().map(|size| format!("{}K", size >> 10)).collect(),
    };
    let points = labels.iter().map(|label| (label.clone(), Vec::new())).collect();
    let unit = if figure == 19 { "changes a second" } else { "MB/s" };
    let mut drawn = Series { figure, title: plan.title.to_owned(), unit, curves: Vec::new(), points };
    if !(13..=18).contains(&figure) {
        for peer in PEERS {
            for disk in [Disk::Hdd, Disk::PageMapped, Disk::LogBlock] {
                drawn.curve(format!("{peer} on {}", disk.name()), &plan, |workload| {
                    let found = recordings.find(&recording_name(peer, workload))?;
                    Ok(found.map(|recording| replay(&recording, disk)).unwrap_or_default())
                })?;
            }
        }
    }
    for (extent, ours) in Ours::of_extents() {
        drawn.curve(format!("{}, extents of {} KB", ours.name(), extent >> 10), &plan, |workload| {
            named(workload).map_or_else(|| Ok(Vec::new()), |known| ours.run(known))
        })?;
    }
    Ok(drawn)
}

impl Series {
    /// Adds a curve; `phases_of` runs a workload.
    fn curve(&mut self, name: String, plan: &Plan, phases_of: impl Fn(&str) -> Result<Vec<Phase>>) -> Result<()> {
        let figure = self.figure;
        let all = if figure == 19 { Vec::new() } else { phases_of(plan.workload)? };
        for (label, values) in &mut self.points {
            let phase_name = match figure {
                19 => plan.phase.to_owned(),
                20 => label.clone(),
                _ => format!("{} {label}", plan.phase),
            };
            let own = if figure == 19 { phases_of(&format!("{}-{label}", plan.workload))? } else { Vec::new() };
            let phase = all.iter().chain(&own).find(|phase| phase.name == phase_name);
            values.push(phase.map(|phase| value(figure, phase)));
        }
        self.curves.push(name);
        Ok(())
    }
}

fn value(figure: u32, phase: &Phase) -> f64 {
    if figure == 19 { phase.rate() } else { phase.megabytes_a_second() }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Figure {}: {}, {}", self.figure, self.title, self.unit)?;
        let width = self.curves.iter().map(String::len).max().unwrap_or(0);
        write!(f, "{:<width$}", "")?;
        for (label, _) in &self.points {
            write!(f, " {label:>10}")?;
        }
        for (at, curve) in self.curves.iter().enumerate() {
            write!(f, "\n{curve:<width$}")?;
            for (_, values) in &self.points {
                let value = values.get(at).copied().flatten();
                write!(f, " {:>10}", value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}")))?;
            }
        }
        Ok(())
    }
}

//! What runs tell: one row each, as JSON or as a table.

use crate::WearSpread;
use serde::Serialize;
use std::fmt;

/// The outcome of one run. All counts are of the second half of the stream, erases excepted: those
/// are since the device was new, which is what wears it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyRow {
    /// Which pages were written.
    pub stream: &'static str,
    /// Where they went.
    pub placement: &'static str,
    /// How many hints of a hundred were right; none were given if `null`.
    pub hints_right: Option<u32>,
    /// What the cleaner took.
    pub victim: &'static str,
    /// How wear was spread.
    pub wear_policy: &'static str,
    /// Segments of the device.
    pub segments: u32,
    /// Pages of a segment.
    pub segment_pages: u32,
    /// Percent of the pages that users cannot fill.
    pub spare: u32,
    /// Where randomness came from.
    pub seed: u64,
    /// Pages that users wrote.
    pub pages_written: u64,
    /// Pages that the cleaner moved.
    pub pages_moved: u64,
    /// Pages moved for the sake of wear.
    pub pages_levelled: u64,
    /// Segments the cleaner emptied.
    pub segments_cleaned: u64,
    /// Pages programmed for each page written.
    pub write_amplification: f64,
    /// Erases of segments.
    pub wear: WearSpread,
    /// The most erased against the mean.
    pub wear_max_by_mean: f64,
    /// Processor time of the simulation, the first fill included.
    pub cpu_s: f64,
    /// Pages programmed in that time, by users and cleaner; this and `cpu_s` differ between equal
    /// runs.
    pub page_writes_per_cpu_s: f64,
}

/// The outcome of several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PolicyReport {
    /// One row for each.
    pub rows: Vec<PolicyRow>,
}

impl fmt::Display for PolicyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<13} {:<18} {:<8} {:<11} {:>7} {:>9} {:>9} {:>8}",
            "placement", "victim", "wear", "stream", "writes", "wear max", "segments", "M pages"
        )?;
        writeln!(f, "{:<53} {:>7} {:>9} {:>9} {:>8}", "", "by user", "by mean", "cleaned", "by CPU s")?;
        for row in &self.rows {
            let placement = match row.hints_right {
                Some(right) if right < 100 => format!("{} {right} %", row.placement),
                _ => row.placement.to_owned(),
            };
            writeln!(
                f,
                "{placement:<13} {:<18} {:<8} {:<11} {:>7.3} {:>9.2} {:>9} {:>8.1}",
                row.victim,
                row.wear_policy,
                row.stream,
                row.write_amplification,
                row.wear_max_by_mean,
                row.segments_cleaned,
                row.page_writes_per_cpu_s / 1e6
            )?;
        }
        Ok(())
    }
}

/// A closed form and what the simulator says, under uniform writes and one log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CheckRow {
    /// The victim policy.
    pub victim: &'static str,
    /// Write amplification by theory.
    pub expected: f64,
    /// Write amplification counted.
    pub found: f64,
    /// How far they lie apart, as a share of what is expected.
    pub error: f64,
}

/// The simulator against theory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SelfCheck {
    /// One for each closed form.
    pub rows: Vec<CheckRow>,
}

impl fmt::Display for SelfCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<8} {:>9} {:>9} {:>7}", "victim", "by theory", "counted", "apart")?;
        for CheckRow { victim, expected, found, error } in &self.rows {
            writeln!(f, "{victim:<8} {expected:>9.4} {found:>9.4} {:>6.2}%", error * 100.0)?;
        }
        Ok(())
    }
}

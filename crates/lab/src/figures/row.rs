//! A figure, the figure to reach, and whether it was.

use serde::Serialize;
use std::fmt;

/// A count or a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Something that is counted.
    Count(u64),
    /// Something that is divided.
    Ratio(f64),
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it is; no two rows have the same.
    pub name: String,
    /// The figure.
    pub value: Value,
    /// Of what.
    pub unit: &'static str,
    /// What it is to reach; `None` if the figure is only published.
    pub reach: Option<Value>,
    /// Which way that binds: `at most` or `at least`.
    pub bound: Option<&'static str>,
    /// Whether the figure keeps the bound.
    pub met: Option<bool>,
}

/// All figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureReport {
    /// The device of all rows that name no other.
    pub device: String,
    /// Small media and short streams: nothing is judged.
    pub quick: bool,
    /// The figures.
    pub rows: Vec<Row>,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
    /// What there was nothing to compare with, and why.
    pub notes: Vec<String>,
}

impl Value {
    const fn number(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Ratio(ratio) => ratio,
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(ratio: f64) -> Self {
        Self::Ratio(ratio)
    }
}

impl Row {
    pub(crate) fn shown(name: String, value: Value, unit: &'static str) -> Self {
        Self { name, value, unit, reach: None, bound: None, met: None }
    }

    pub(crate) fn at_most(name: String, value: Value, unit: &'static str, reach: Value) -> Self {
        let met = value.number() <= reach.number();
        Self { reach: Some(reach), bound: Some("at most"), met: Some(met), ..Self::shown(name, value, unit) }
    }

    pub(crate) fn at_least(name: String, value: Value, unit: &'static str, reach: Value) -> Self {
        let met = value.number() >= reach.number();
        Self { reach: Some(reach), bound: Some("at least"), met: Some(met), ..Self::shown(name, value, unit) }
    }

    pub(crate) fn unjudged(self) -> Self {
        Self { reach: None, bound: None, met: None, ..self }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Ratio(ratio) => write!(f, "{ratio:.2}"),
        }
    }
}

impl fmt::Display for FigureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "on {}", self.device)?;
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        writeln!(f, "{:<width$} {:>12} {:<12} {:>12}  met", "figure", "value", "unit", "to reach")?;
        for row in &self.rows {
            let met = row.met.map_or("", |met| if met { "yes" } else { "NO" });
            let sign = if row.bound == Some("at least") { ">=" } else { "<=" };
            let reach = row.reach.map_or_else(|| "-".to_owned(), |reach| format!("{sign} {reach}"));
            let value = row.value.to_string();
            let line = format!("{:<width$} {value:>12} {:<12} {reach:>12}  {met}", row.name, row.unit);
            writeln!(f, "{}", line.trim_end())?;
        }
        let judged = self.rows.iter().filter(|row| row.met.is_some()).count();
        let met = self.rows.iter().filter(|row| row.met == Some(true)).count();
        for failure in &self.failures {
            writeln!(f, "FAILED: {failure}")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        write!(f, "{met} of {judged} figures reached")
    }
}

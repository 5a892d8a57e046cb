//! Figures in groups, measured in one go or one group at a time: what every report of that kind
//! does.

use crate::figures::row::{FigureReport, Row, Value};
use onode::Result;

/// A group by its name, and what measures it with options of the kind `O`.
pub(crate) type Group<O> = (&'static str, fn(&mut Measuring<'_, O>) -> Result<()>);

/// The names of `groups`.
pub(crate) fn names<O>(groups: &[Group<O>]) -> Vec<&'static str> {
    groups.iter().map(|(name, _)| *name).collect()
}

/// A run of groups under way.
pub(crate) struct Measuring<'a, O> {
    /// What to measure with.
    pub options: &'a O,
    /// What could not be measured, and why.
    pub failures: Vec<String>,
    /// What people should know beside the rows.
    pub notes: Vec<String>,
    rows: Vec<Row>,
    /// Rows are not judged.
    is_quick: bool,
    progress: &'a mut dyn FnMut(&str),
}

impl<'a, O> Measuring<'a, O> {
    /// A run that has measured nothing yet.
    pub(crate) fn new(options: &'a O, is_quick: bool, progress: &'a mut dyn FnMut(&str)) -> Self {
        Self { options, failures: Vec::new(), notes: Vec::new(), rows: Vec::new(), is_quick, progress }
    }

    /// Measures the groups, or the one called `only`; what cannot be measured is named in the
    /// report.
    pub(crate) fn run_all(mut self, groups: &[Group<O>], only: Option<&str>, device: &str) -> FigureReport {
        for (name, group) in groups {
            if only.is_some_and(|only| only != *name) {
                continue;
            }
            if let Err(error) = group(&mut self) {
                self.failures.push(error.to_string());
            }
        }
        let Self { rows, failures, notes, is_quick, .. } = self;
        FigureReport { device: device.to_owned(), quick: is_quick, rows, failures, notes }
    }

    /// Tells what is being done.
    pub(crate) fn say(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// A figure that is to be `reach` at most.
    pub(crate) fn at_most(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
        unit: &'static str,
        reach: impl Into<Value>,
    ) {
        self.push(Row::at_most(name.into(), value.into(), unit, reach.into()));
    }

    /// A figure that is to be `reach` at least.
    pub(crate) fn at_least(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
        unit: &'static str,
        reach: impl Into<Value>,
    ) {
        self.push(Row::at_least(name.into(), value.into(), unit, reach.into()));
    }

    /// A figure that is only shown.
    pub(crate) fn shown(&mut self, name: impl Into<String>, value: impl Into<Value>, unit: &'static str) {
        self.push(Row::shown(name.into(), value.into(), unit));
    }

    fn push(&mut self, row: Row) {
        self.rows.push(if self.is_quick { row.unjudged() } else { row });
    }
}

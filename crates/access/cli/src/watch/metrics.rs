//! The figures of a mount as a text file for Prometheus, as the textfile collector of its node
//! exporter reads them.
//!
//! The file is always whole: it is written beside its place and put there when it is complete.

use crate::figures::Figures;
use crate::whole::unfinished;
use onode::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// The file of a mount.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    mount: String,
}

/// Whether the volume is mounted, and if not, whether everything was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is.
    Mounted,
    /// It was unmounted; whether everything was saved.
    Unmounted(bool),
}

impl Metrics {
    /// The file at `path` for the mount at `mount`.
    pub const fn new(path: PathBuf, mount: String) -> Self {
        Self { path, mount }
    }

    /// Writes them.
    ///
    /// # Errors
    /// Those of the host.
    pub fn write(&self, figures: &Figures, state: State) -> Result<()> {
        let unfinished = unfinished(&self.path);
        let failed = |error: &std::io::Error| {
            Error::host_file("write the metrics", &self.path, error).hint("name a file in a directory that is there")
        };
        fs::write(&unfinished, text(figures, &self.mount, state)).map_err(|error| failed(&error))?;
        fs::rename(&unfinished, &self.path).map_err(|error| failed(&error))
    }
}

fn text(figures: &Figures, mount: &str, state: State) -> String {
    let labels = format!("mount=\"{}\",volume=\"{}\"", escaped(mount), escaped(&figures.spec));
    let mut out = String::new();
    let mut gauge = |name: &str, help: &str, value: u64| {
        // Writing to a string cannot fail.
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{{labels}}} {value}\n");
    };
    gauge("onode_mounted", "Whether the volume is mounted.", u64::from(state == State::Mounted));
    let is_saved = state != State::Unmounted(false);
    gauge("onode_saved", "Whether the last unmount saved everything; 1 while mounted.", u64::from(is_saved));
    gauge("onode_health", "0 healthy, 1 notice, 2 degraded, 3 failed.", figures.health.rank());
    gauge("onode_read_only", "Whether nothing can be changed.", u64::from(figures.read_only.is_some()));
    gauge("onode_space_bytes", "Bytes of the volume.", figures.total_bytes);
    gauge("onode_space_available_bytes", "Bytes that can still be written.", figures.available_bytes);
    gauge("onode_objects", "Objects of the volume.", figures.objects);
    let _ = writeln!(out, "# HELP onode_condition What is wrong, by code.\n# TYPE onode_condition gauge");
    for one in &figures.health.conditions {
        let (code, severity) = (escaped(&one.code), escaped(&one.severity));
        let _ = writeln!(out, "onode_condition{{{labels},code=\"{code}\",severity=\"{severity}\"}} 1");
    }
    // Two counters whose names differ in a dot only would be one, which no reader accepts.
    let mut counters = BTreeMap::new();
    for (group, of_group) in [("fs", &figures.files), ("device", &figures.device), ("ram", &figures.ram)] {
        counters.extend(of_group.iter().map(|(name, value)| (format!("onode_{group}_{}", name_of(name)), *value)));
    }
    for (name, value) in counters {
        let _ = writeln!(out, "# TYPE {name} untyped\n{name}{{{labels}}} {value}");
    }
    out
}

/// Names have letters, digits and underlines only.
fn name_of(counter: &str) -> String {
    counter.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_names_are_valid() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(name_of("memory.folds-2"), "memory_folds_2");
    }
}

//! The log of a mount: to the journal or to syslog if the mount is in the background, and to a file
//! if one is named.
//!
//! A log that cannot be reached is no reason to stop: only a file that was asked for must be there.

use super::syslog::Syslog;
use onode::{Class, Error, Result};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

/// How important a line is at least that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// What was lost or is out of order.
    Error,
    /// What somebody should look at, too.
    Warn,
    /// Beginning, end and recovery, too.
    #[default]
    Info,
    /// Everything.
    Debug,
}

impl Level {
    const ALL: [(Self, &'static str, LevelFilter); 4] = [
        (Self::Error, "error", LevelFilter::ERROR),
        (Self::Warn, "warn", LevelFilter::WARN),
        (Self::Info, "info", LevelFilter::INFO),
        (Self::Debug, "debug", LevelFilter::DEBUG),
    ];

    /// The level of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.1 == name).map(|one| one.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn filter(self) -> LevelFilter {
        Self::ALL[self as usize].2
    }
}

type Sink = Box<dyn Layer<Registry> + Send + Sync>;

/// Has the lines of this process logged.
///
/// # Errors
/// If the file cannot be written.
pub fn start(file: Option<&Path>, level: Level, is_in_background: bool) -> Result<()> {
    let mut sinks: Vec<Sink> = Vec::new();
    if let Some(path) = file {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let opened = opened.map_err(|error| {
            Error::host_file("write the log", path, &error).hint("name a file in a directory that is there")
        })?;
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false);
        sinks.push(lines.with_writer(Mutex::new(opened)).boxed());
    }
    if is_in_background {
        sinks.extend(of_system());
    }
    if sinks.is_empty() {
        return Ok(());
    }
    let subscriber = tracing_subscriber::registry().with(sinks.with_filter(level.filter()));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| Error::new(Class::Bug, "cannot start the log", error.to_string()))
}

/// The log of the system: the journal, else syslog; nothing where there is neither.
fn of_system() -> Option<Sink> {
    if let Ok(journal) = tracing_journald::layer() {
        return Some(journal.with_syslog_identifier("onode".to_owned()).boxed());
    }
    let syslog = Syslog::connect().ok()?;
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false).with_level(false).without_time();
    Some(lines.with_writer(syslog).boxed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for (level, name, _) in Level::ALL {
            assert_eq!((level.name(), Level::by_name(name)), (name, Some(level)));
        }
        assert_eq!(Level::by_name("loud"), None);
    }
}

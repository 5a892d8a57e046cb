//! Who is told of a mount, and where: settings as flags and as `-o` options.
//!
//! The file server knows nothing of them, so they are taken out of a list of options before it sees
//! the rest.

use super::log::Level;
use crate::keys::KeyArguments;
use onode::{Class, Error, Result};
use onode_fuse::Options;
use std::path::PathBuf;

/// Where a mount tells what happens to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// A file that the log is appended to.
    pub log: Option<PathBuf>,
    /// The least important lines that are logged.
    pub level: Level,
    /// A file that is written anew with the figures of the mount.
    pub metrics: Option<PathBuf>,
    /// A program that is run when something is wrong.
    pub hook: Option<PathBuf>,
}

/// The flags of commands that mount.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TellingArguments {
    /// Append the log to this file, too, as -o log=FILE. Background mounts log to the journal or to
    /// syslog anyway.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// What is logged at least, as -o log-level=LEVEL: error, warn, info, debug. Default: info.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// Write health, space and counters to this file every 10 seconds as text for Prometheus, as -o
    /// metrics=FILE.
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Run this program when the volume is degraded or failed, as -o hook=PROGRAM; `onode health
    /// --help` tells how.
    #[arg(long, value_name = "PROGRAM")]
    hook: Option<PathBuf>,
    /// Open the volume although acknowledged data is missing, as -o accept-loss. Copy the image
    /// first.
    #[arg(long)]
    pub accept_loss: bool,
}

/// All settings of a mount.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Those of the file server.
    pub options: Options,
    /// What was said of those, in the order in which it was.
    pub said: Vec<String>,
    /// Who is told.
    pub telling: Telling,
    /// Where the keys of an encrypted volume are.
    pub keys: KeyArguments,
}

impl Settings {
    /// What lists of `-o` and flags say; flags win.
    ///
    /// # Errors
    /// `Usage`.
    pub fn of(lists: &[String], wear: Option<&String>, flags: &TellingArguments) -> Result<Self> {
        let mut settings = Self::default();
        lists.iter().try_for_each(|list| settings.apply(list))?;
        if let Some(wear) = wear {
            settings.apply(&format!("wear={wear}"))?;
        }
        settings.options.accept_loss |= flags.accept_loss;
        let Telling { log, level, metrics, hook } = &mut settings.telling;
        for (flag, setting) in [(&flags.log, log), (&flags.metrics, metrics), (&flags.hook, hook)] {
            if let Some(path) = flag {
                *setting = Some(absolute(path.clone())?);
            }
        }
        if let Some(name) = &flags.log_level {
            *level = level_of(name)?;
        }
        Ok(settings)
    }

    /// Takes in a comma-separated list as `-o` has it; later ones win.
    ///
    /// # Errors
    /// `Usage`, quoting what is not understood.
    pub fn apply(&mut self, list: &str) -> Result<()> {
        for option in list.split(',') {
            match option.split_once('=') {
                Some(("log", path)) => self.telling.log = Some(absolute(path.into())?),
                Some(("log-level", name)) => self.telling.level = level_of(name)?,
                Some(("metrics", path)) => self.telling.metrics = Some(absolute(path.into())?),
                Some(("hook", path)) => self.telling.hook = Some(absolute(path.into())?),
                Some((name, value)) if self.keys.apply(name, value)? => {}
                _ => {
                    self.options.apply(option)?;
                    self.said.push(option.to_owned());
                }
            }
        }
        Ok(())
    }
}

impl Telling {
    /// The same as flags for the process in the background, which works in another directory.
    pub fn as_flags(&self) -> Vec<std::ffi::OsString> {
        let mut flags = vec!["--log-level".into(), self.level.name().into()];
        for (flag, path) in [("--log", &self.log), ("--metrics", &self.metrics), ("--hook", &self.hook)] {
            if let Some(path) = path {
                flags.extend([flag.into(), path.clone().into_os_string()]);
            }
        }
        flags
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).map_err(|error| {
        let what = "cannot mount";
        Error::new(Class::Usage, what, format!("`{}` names no file: {error}", path.display()))
    })
}

fn level_of(name: &str) -> Result<Level> {
    Level::by_name(name).ok_or_else(|| {
        Error::new(Class::Usage, "cannot mount", format!("`{name}` is no level of a log"))
            .hint("the levels are error, warn, info and debug")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_flags_say_the_same() {
        let lists = ["ro,log=/a/log,log-level=warn".to_owned(), "hook=/h,metrics=/m,log=/b".to_owned()];
        let settings = Settings::of(&lists, None, &TellingArguments::default()).expect("valid");
        assert!(settings.options.read_only && !settings.options.accept_loss);
        let expected =
            Telling { log: Some("/b".into()), level: Level::Warn, metrics: Some("/m".into()), hook: Some("/h".into()) };
        assert_eq!(settings.telling, expected);
        let flags = TellingArguments { log: Some("/c".into()), accept_loss: true, ..TellingArguments::default() };
        let settings = Settings::of(&lists, None, &flags).expect("valid");
        assert!(settings.telling.log == Some("/c".into()) && settings.options.accept_loss);
    }

    #[test]
    fn what_is_unknown_is_an_error() {
        for list in ["log-level=loud", "colour", "log="] {
            let error = Settings::default().apply(list).expect_err(list);
            assert_eq!(error.class, Class::Usage, "{list}");
        }
    }
}

//! A tree that is copied, as far as it is wanted.

use super::manner::{CopyManner, Voice};
use super::report::Copied;
use super::{Entry, Kind, Side};
use onode::{Class, Error, Result};
use onode_console::Output;
use std::io::IsTerminal;
use std::path::Path;

/// A tree on one side of a copy.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The side.
    pub side: &'a dyn Side,
    /// Patterns of what is left out mean paths below it.
    pub top: &'a Path,
    /// How it is copied.
    pub manner: &'a CopyManner,
}

impl Wanted<'_> {
    /// Whether no pattern leaves a file out.
    pub fn admits(&self, path: &Path, entry: &Entry) -> bool {
        let below = path.strip_prefix(self.top).unwrap_or(path);
        self.manner.excludes.admit(path.file_name(), below, entry.kind == Kind::Directory)
    }

    /// Bytes of all files at and below a path.
    ///
    /// # Errors
    /// Those of the side; `General` if somebody asks for an end.
    pub fn total_bytes(&self, path: &Path, entry: &Entry) -> Result<u64> {
        self.check(path, &Copied::default())?;
        match entry.kind {
            _ if !self.admits(path, entry) => Ok(0),
            Kind::File => Ok(entry.size),
            Kind::Link(_) | Kind::Special(_) => Ok(0),
            Kind::Directory => {
                let mut total = 0u64;
                for name in self.side.names(path)? {
                    let inner = path.join(name);
                    if let Some(entry) = self.side.entry(&inner)? {
                        total = total.saturating_add(self.total_bytes(&inner, &entry)?);
                    }
                }
                Ok(total)
            }
        }
    }

    /// Ends the copy if somebody asked for it; so much was copied before.
    ///
    /// # Errors
    /// `General` if so.
    pub fn check(&self, path: &Path, copied: &Copied) -> Result<()> {
        let Some(why) = self.manner.stop.asked() else { return Ok(()) };
        let what = format!("cannot copy {} to the end", self.side.name(path));
        if self.manner.is_whole {
            return Err(Error::new(Class::General, what, why).hint("run it again"));
        }
        let hint = if self.side.goes_on() { "the same command with --resume goes on" } else { "run it again" };
        Err(Error::new(Class::General, what, format!("{why}; {copied} before it")).hint(hint))
    }

    /// What is there at the top.
    ///
    /// # Errors
    /// `NotFound`; `Usage` for a directory that is not to be copied with all it holds.
    pub fn entry(&self) -> Result<Entry> {
        let what = || format!("cannot copy {}", self.side.name(self.top));
        match self.side.entry(self.top)? {
            None => Err(Error::new(Class::NotFound, what(), "there is no such file")),
            Some(entry) if entry.kind == Kind::Directory && !self.manner.recursive => {
                Err(Error::new(Class::Usage, what(), "it is a directory").hint("add -r to copy it with all it holds"))
            }
            Some(entry) => Ok(entry),
        }
    }
}

/// Whether people see how far a copy is.
pub fn shows_progress(manner: &CopyManner, output: &Output) -> bool {
    manner.voice != Voice::Quiet && !manner.is_dry && !output.json() && std::io::stderr().is_terminal()
}

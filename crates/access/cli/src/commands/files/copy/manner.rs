//! How files are copied: the options that `get`, `put` and `cp` share, and what follows from them.

use super::exclude::Excludes;
use crate::signals::Stop;
use onode::{Class, Error, Result};
use std::ffi::OsString;

/// The options of `get`, `put` and `cp`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CopyArguments {
    /// Copy directories with all they hold.
    #[arg(short, long)]
    pub recursive: bool,
    /// As -r, and keep all there is of files: hard links, extended attributes with ACLs, devices,
    /// FIFOs and sockets.
    #[arg(short, long)]
    pub archive: bool,
    /// Leave what is there as it is; it counts as skipped.
    #[arg(short, long, conflicts_with = "resume")]
    no_clobber: bool,
    /// Skip a file that is there with the same size and modification time, without comparing its
    /// content. Go on where a shorter one ends, if the last 64 KiB of it are the same as in the
    /// source; what is before them is not compared. Copy any other from its start.
    #[arg(long)]
    resume: bool,
    /// Tell what would be copied, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Tell of each file, on standard error.
    #[arg(short, long)]
    verbose: bool,
    /// Tell nothing but errors: no progress, and no report at the end.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Leave out what matches: a name ('*.tmp'), or with a slash a path from the top of what is
    /// copied ('/var/cache'). With a slash at the end only directories. May be given several
    /// times; a directory that matches is not entered.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<OsString>,
}

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It gets the new content.
    #[default]
    Replace,
    /// It stays as it is.
    Keep,
    /// It is completed.
    Resume,
}

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Voice {
    /// Errors.
    Quiet,
    /// Progress, and a report.
    #[default]
    Usual,
    /// A line for each file, too.
    Each,
}

/// Whose files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// How files are copied.
#[derive(Clone, Debug, Default)]
pub struct CopyManner {
    /// Directories, too.
    pub recursive: bool,
    /// Hard links, extended attributes and special files are kept.
    pub keeps_all: bool,
    /// What happens to a file that is there.
    pub existing: Existing,
    /// Nothing is changed.
    pub is_dry: bool,
    /// How much is told.
    pub voice: Voice,
    /// What is left out.
    pub excludes: Excludes,
    /// Whose all copies are; `None` for the owner of each source.
    pub owner: Option<Owner>,
    /// Whether somebody asked for an end.
    pub stop: Stop,
    /// Nothing stays of a copy that does not come to its end.
    pub is_whole: bool,
}

impl CopyManner {
    /// Whether what is there of a file is completed.
    pub fn resumes(&self) -> bool {
        self.existing == Existing::Resume
    }
}

impl CopyArguments {
    /// What the options mean.
    ///
    /// # Errors
    /// `Usage` for a pattern that cannot be meant.
    pub fn manner(&self) -> Result<CopyManner> {
        Ok(CopyManner {
            recursive: self.is_recursive(),
            keeps_all: self.archive,
            existing: match (self.no_clobber, self.resume) {
                (true, _) => Existing::Keep,
                (_, true) => Existing::Resume,
                _ => Existing::Replace,
            },
            is_dry: self.dry_run,
            voice: match (self.quiet, self.verbose || self.dry_run) {
                (true, _) => Voice::Quiet,
                (_, true) => Voice::Each,
                _ => Voice::Usual,
            },
            excludes: Excludes::new(&self.exclude)?,
            owner: None,
            stop: Stop::default(),
            is_whole: false,
        })
    }

    /// Whether directories are copied.
    pub const fn is_recursive(&self) -> bool {
        self.recursive || self.archive
    }

    /// Whether nothing is to be changed.
    pub const fn is_dry(&self) -> bool {
        self.dry_run
    }

    /// Refuses what a stream cannot do.
    ///
    /// # Errors
    /// `Usage` for `--resume`.
    pub fn check_stream(&self) -> Result<()> {
        self.refuse_resume("from or to `-`", "a stream begins at its start", "name a file in the place of -")
    }

    /// What the options mean for an archive, which has all there is of files.
    ///
    /// # Errors
    /// As [`manner`](Self::manner); `Usage` for `--resume`.
    pub fn archive_manner(&self) -> Result<CopyManner> {
        self.refuse_resume("of an archive", "it is read from its start", "use --no-clobber to leave what is there")?;
        Ok(CopyManner { recursive: true, keeps_all: true, ..self.manner()? })
    }

    fn refuse_resume(&self, of: &str, why: &str, instead: &str) -> Result<()> {
        if self.resume {
            return Err(Error::new(Class::Usage, format!("cannot resume a copy {of}"), why)
                .hint(format!("leave --resume out, or {instead}")));
        }
        Ok(())
    }
}

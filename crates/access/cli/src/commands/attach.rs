//! `onode attach` and `onode detach`: the fast disk of a mounted volume comes and goes.
//!
//! Nothing that was accepted is lost either way: a disk goes when the big one has everything, and
//! what comes is the disk where the spec of the mount says it is, with copies that are compared
//! with their checksums, or an empty one.

use crate::commands::tiers::{Files, Target};
use crate::output::Output;
use onode::{Class, Error, Result};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "The disk is the one that the mount was given: tier:FAST,BIG.\n\n\
    Examples:\n  onode attach /mnt           the disk that was detached or failed\n  \
    onode attach --empty /mnt   another disk in its place\n  onode health /mnt           whether it takes part")]
pub struct AttachArguments {
    /// The directory on which the volume is mounted.
    directory: PathBuf,
    /// Begin with an empty fast disk: what is on it is gone. A disk with anything else than a fast
    /// disk of Onode on it is refused.
    #[arg(long)]
    empty: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "The disk can be taken away then, and comes back with `onode attach`.\n\n\
    Examples:\n  onode detach /mnt\n  onode health /mnt   whether it takes part")]
pub struct DetachArguments {
    /// The directory on which the volume is mounted.
    directory: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    directory: String,
    /// Whether the fast disk takes part now.
    attached: bool,
}

pub fn attach(arguments: &AttachArguments, output: &Output) -> Result<u8> {
    let how = if arguments.empty { "attach-empty" } else { "attach" };
    let why = "what is in its place is not the fast disk of this volume, or cannot be used";
    let hint = "`onode attach --empty` takes an empty disk, or gives up what is on this one";
    change(&arguments.directory, how, "there is a fast disk already", (why, hint), output)
}

pub fn detach(arguments: &DetachArguments, output: &Output) -> Result<u8> {
    let why = "it cannot be done now";
    let hint = "`onode health` tells what is wrong with the volume";
    change(&arguments.directory, "detach", "there is no fast disk", (why, hint), output)
}

/// Does `how`; `done` tells that there is nothing to do, and the last two why it was refused and
/// what to do now.
fn change(directory: &Path, how: &str, done: &str, (why, hint): (&str, &str), output: &Output) -> Result<u8> {
    let what = || format!("cannot {} the fast disk of {}", how.trim_end_matches("-empty"), directory.display());
    let target = Target::new(directory.to_path_buf().into(), None);
    let report = target.with(false, |files| {
        // Asked first, so that what is not the top of a volume on two disks says so.
        let was_there = has_fast(files)?;
        if was_there == (how != "detach") {
            return Err(Error::new(Class::Usage, what(), done));
        }
        files.change_fast(how).map_err(|error| match error.class {
            Class::Usage => Error::new(Class::Usage, what(), why).hint(hint),
            _ => Error { what: what(), ..error },
        })?;
        Ok(Report { directory: directory.display().to_string(), attached: has_fast(files)? })
    })?;
    output.report(&report)?;
    Ok(0)
}

/// Whether the fast disk takes part: without it there are no sections.
fn has_fast(files: &Files) -> Result<bool> {
    Ok(!files.division()?.is_empty())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, attached } = self;
        match attached {
            true => write!(f, "{directory}: the fast disk takes part"),
            false => write!(f, "{directory}: the big disk has everything, and the fast one can be taken away"),
        }
    }
}

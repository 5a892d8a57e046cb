//! `onode attach` and `onode detach`: the fast disk of a mounted volume, or the memory beside its
//! flash, comes and goes.
//!
//! Nothing that was accepted is lost either way: a part goes when the rest has everything, and what
//! comes is what the spec of the mount names: a disk with copies that are compared with their
//! checksums, a memory that is filled anew.

use crate::commands::tiers::target::Target;
use onode::{Class, Error, Result};
use onode_console::Output;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "The part is the one that the mount was given: FAST of tier:FAST,BIG or MEMORY of \
    flash+scm:FLASH,MEMORY.\n\n\
    Examples:\n  onode attach /mnt           the disk or memory that was detached or failed\n  \
    onode attach --empty /mnt   another one in its place\n  onode health /mnt           whether it takes part")]
pub struct AttachArguments {
    /// The directory on which the volume is mounted.
    directory: PathBuf,
    /// Begin with an empty disk or memory: what is on it is gone. One with anything else than a
    /// fast disk or a memory of Onode on it is refused.
    #[arg(long)]
    empty: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "The disk or memory can be taken away then, and comes back with `onode attach`.\n\n\
    Examples:\n  onode detach /mnt\n  onode health /mnt   whether it takes part")]
pub struct DetachArguments {
    /// The directory on which the volume is mounted.
    directory: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    directory: String,
    /// What comes and goes.
    part: String,
    /// Whether it takes part now.
    attached: bool,
}

pub fn attach(arguments: &AttachArguments, output: &Output) -> Result<u8> {
    change(&arguments.directory, if arguments.empty { "attach-empty" } else { "attach" }, output)
}

pub fn detach(arguments: &DetachArguments, output: &Output) -> Result<u8> {
    change(&arguments.directory, "detach", output)
}

fn change(directory: &Path, how: &str, output: &Output) -> Result<u8> {
    let target = Target::new(directory.to_path_buf().into(), None);
    let report = target.with(false, |files| {
        // Asked first, so that what is not the top of a volume with such a part says so.
        let (part, was_there) = files.part().map_err(|error| {
            let what = format!("cannot {} anything of {}", how.trim_end_matches("-empty"), directory.display());
            match error.class {
                Class::Usage => error.what(what).hint(
                    "volumes on two disks (tier:FAST,BIG) and on flash with \
                    a memory beside it (flash+scm:FLASH,MEMORY) have such a part; name the directory of the mount",
                ),
                _ => error.what(what),
            }
        })?;
        let what = || format!("cannot {} {part} of {}", how.trim_end_matches("-empty"), directory.display());
        if was_there == (how != "detach") {
            let why = if was_there { "it takes part already" } else { "it does not take part" };
            return Err(Error::new(Class::Usage, what(), why));
        }
        files.change_part(how).map_err(|error| match error.class {
            Class::Usage if how == "detach" => Error::new(Class::Usage, what(), "it cannot be done now")
                .hint("`onode health` tells what is wrong with the volume"),
            Class::Usage => {
                let why = format!("what is in its place is not {part} of this volume, or cannot be used");
                let hint = "`onode attach --empty` takes an empty one, or gives up what is on this one";
                Error::new(Class::Usage, what(), why).hint(hint)
            }
            _ => error.what(what()),
        })?;
        let (part, attached) = files.part()?;
        Ok(Report { directory: directory.display().to_string(), part, attached })
    })?;
    output.report(&report)?;
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, part, attached } = self;
        match attached {
            true => write!(f, "{directory}: {part} takes part"),
            false => write!(f, "{directory}: {part} does not take part any more and can be taken away"),
        }
    }
}

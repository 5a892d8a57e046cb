//! `onode place`: maps files and directories to a section of the fast disk, or past it.

use crate::commands::tiers::target::{Target, tell_changed};
use onode::Result;
use onode_console::Output;
use onode_fs::Hint;
use serde::Serialize;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is copied: what is there stays where it is until it is written anew, promoted or demoted.\n\n\
    Examples:\n  onode place /mnt/mail                          show the placement\n  \
    onode place /mnt/mail --section small          everything in it, now and later\n  \
    onode place /mnt/snapshots --bypass            only on the big disk\n  \
    onode place /mnt/db --pin --acknowledge safe   stays on the fast disk\n  \
    onode place tier:ssd.img,hdd.img /mail --section small"
)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Keep content in this section of the fast disk; `default` lets it go where it suits and
    /// where there is room.
    #[arg(long, value_name = "NAME", conflicts_with = "bypass")]
    section: Option<String>,
    /// Keep content only on the big disk.
    #[arg(long)]
    bypass: bool,
    /// What is on the fast disk stays there.
    #[arg(long, conflicts_with = "unpin")]
    pin: bool,
    /// What is on the fast disk gives way to what is used more.
    #[arg(long)]
    unpin: bool,
    /// When a change that must be durable is: on both disks, on either, or on the big one.
    #[arg(long, value_name = "RULE", value_parser = ["safe", "either", "big", "volume"])]
    acknowledge: Option<String>,
    /// Only the directory itself, and with it what is made there from now on.
    #[arg(long)]
    only_new: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    placement: String,
    /// Files and directories that were changed.
    changed: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let words = arguments.words();
    let report = arguments.target.with(words.is_empty(), |files| {
        let changed = match words.is_empty() {
            true => 0,
            false => files.change(!arguments.only_new, |path| files.set_hint(path, Hint::Placement, &words))?,
        };
        let placement = files.hint(files.path(), Hint::Placement)?;
        Ok(Report { path: files.path().display().to_string(), placement, changed })
    })?;
    output.report(&report)?;
    Ok(0)
}

impl Arguments {
    /// What was said, as the attribute has it; empty if nothing was.
    fn words(&self) -> String {
        let target = if self.bypass { Some("bypass") } else { self.section.as_deref() };
        let pin = if self.pin { Some("pin") } else { self.unpin.then_some("unpin") };
        [target, self.acknowledge.as_deref(), pin].into_iter().flatten().collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.placement)?;
        tell_changed(f, self.changed, "copied")
    }
}

//! `onode promote` and `onode demote`: copies content to the fast disk, or gives the copy up.

use crate::commands::state::why::Why;
use crate::commands::tiers::target::{NO_ROOM, Target};
use onode::{Class, Error, Result};
use onode_console::Output;
use serde::Serialize;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode promote /mnt/projects/now          in the background\n  \
    onode promote --wait /mnt/projects/now   returns when it is there\n  onode promote --wait tier:ssd.img,hdd.img /mail")]
pub struct PromoteArguments {
    #[command(flatten)]
    target: Target,
    /// Return only when everything is on the fast disk. Disks that are not mounted are always
    /// waited for.
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode demote /mnt/projects/2019\n  onode demote tier:ssd.img,hdd.img /old")]
pub struct DemoteArguments {
    #[command(flatten)]
    target: Target,
}

/// What lies where afterwards.
#[derive(Debug, Default, Serialize)]
struct Report {
    path: String,
    files: u64,
    fast_bytes: u64,
    big_bytes: u64,
    waits: bool,
    /// What another program removed meanwhile.
    gone: u64,
    /// What the fast disk has no room for; the rest was moved all the same.
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Refused {
    path: String,
    why: String,
}

impl Report {
    /// Counts a file whose content was moved.
    fn add(&mut self, why: Why) {
        let lies = why.whereabouts.unwrap_or_default();
        self.files += 1;
        self.fast_bytes += lies.fast_bytes;
        self.big_bytes += lies.big_bytes + lies.log_bytes;
    }
}

pub fn promote(arguments: &PromoteArguments, output: &Output) -> Result<u8> {
    let waits = arguments.wait || !arguments.target.is_mounted();
    report(&arguments.target, if waits { "promote" } else { "promote-later" }, output)
}

pub fn demote(arguments: &DemoteArguments, output: &Output) -> Result<u8> {
    report(&arguments.target, "demote", output)
}

fn report(target: &Target, how: &str, output: &Output) -> Result<u8> {
    let report = target.with(false, |files| {
        let path = files.path().display().to_string();
        let mut report = Report { path, waits: how != "promote-later", ..Report::default() };
        for path in files.all(true)? {
            match files.move_content(&path, how).and_then(|()| files.why(&path)) {
                Ok(why) => report.add(why),
                Err(error) if error.class == Class::VolumeFull => {
                    report.refused.push(Refused { path: path.display().to_string(), why: error.why });
                }
                Err(error) if files.is_gone(&path, &error) => report.gone += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    })?;
    output.report(&report)?;
    match report.refused.first() {
        None => Ok(0),
        Some(Refused { path, why }) => {
            let what =
                format!("cannot {how} {} of {}", report.refused.len(), report.refused.len() as u64 + report.files);
            Err(Error::new(Class::VolumeFull, what, format!("{path}: {why}")).hint(NO_ROOM))
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, files, fast_bytes, big_bytes, waits, gone, refused: _ } = self;
        let things = if *files == 1 { "file or directory" } else { "files and directories" };
        let later = if *waits { "" } else { "; the rest follows in the background" };
        write!(f, "{path}: {files} {things}, {fast_bytes} of {big_bytes} bytes on the fast disk{later}")?;
        match gone {
            0 => Ok(()),
            gone => write!(f, "; {gone} were removed meanwhile"),
        }
    }
}

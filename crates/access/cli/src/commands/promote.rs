//! `onode promote` and `onode demote`: copies content to the fast disk, or gives the copy up.

use crate::commands::tiers::Target;
use crate::output::Output;
use onode::Result;
use serde::Serialize;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode promote /mnt/projects/now          in the background\n  \
    onode promote --wait /mnt/projects/now   returns when it is there\n  onode promote --wait tier:ssd.img,hdd.img /mail")]
pub struct PromoteArguments {
    #[command(flatten)]
    target: Target,
    /// Return only when everything is on the fast disk. Disks that are not mounted are always waited for.
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
            files.move_content(&path, how)?;
            let why = files.why(&path)?;
            report.files += 1;
            report.fast_bytes += why.fast_bytes;
            report.big_bytes += why.big_bytes + why.log_bytes;
        }
        Ok(report)
    })?;
    output.report(&report)?;
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, files, fast_bytes, big_bytes, waits } = self;
        let things = if *files == 1 { "file or directory" } else { "files and directories" };
        let later = if *waits { "" } else { "; the rest follows in the background" };
        write!(f, "{path}: {files} {things}, {fast_bytes} of {big_bytes} bytes on the fast disk{later}")
    }
}

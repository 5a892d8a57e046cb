//! `onode compress`: how content of files is compressed that is written from now on.

use crate::commands::tiers::target::{Target, tell_changed};
use onode::{Compression, Result};
use onode_console::Output;
use serde::Serialize;
use std::fmt;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is stored anew: what is there stays as it is until it is written again. A volume heeds\n\
    this once it was mounted with `-o compress=fast`, small or auto.\n\n\
    Examples:\n  onode compress /mnt/logs                    show how it is compressed\n  \
    onode compress /mnt/logs --with small       all files in it, now and later, in few bytes\n  \
    onode compress /mnt/photos --with none      they do not shrink: spare the time\n  \
    onode compress /mnt/a.db --with auto        as the mount says, again\n  \
    onode compress disk.img /logs --with small"
)]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// none, fast (LZ4), small (Zstandard), or auto: as each mount says.
    #[arg(long, value_name = "HOW", value_parser = Compression::ALL.map(Compression::name))]
    with: Option<String>,
    /// Only the directory itself, and with it what is made there from now on.
    #[arg(long)]
    only_new: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    compression: String,
    /// Files and directories that were changed.
    changed: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let report = arguments.target.with(arguments.with.is_none(), |files| {
        let changed = match &arguments.with {
            Some(word) => files.change(!arguments.only_new, |path| files.compress(path, word))?,
            None => 0,
        };
        let compression = files.compression(files.path())?;
        Ok(Report { path: files.path().display().to_string(), compression, changed })
    })?;
    output.report(&report)?;
    Ok(0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.compression)?;
        if self.compression == Compression::Auto.name() {
            write!(f, " (as the mount says)")?;
        }
        tell_changed(f, self.changed, "stored anew")
    }
}

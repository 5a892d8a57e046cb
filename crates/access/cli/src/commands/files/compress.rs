//! `onode compress`: how content of files is compressed that is written from now on, and what was
//! written before if that is asked for.

use crate::commands::files::copy::progress;
use crate::commands::tiers::target::{Files, Target, tell_changed};
use onode::{Compression, Result, human_size};
use onode_console::Output;
use onode_fs::Hint;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is there stays as it is until it is written again, or until --rewrite stores it anew: that\n\
    writes all of it once, while the files can be used. A volume heeds this once it was mounted with\n\
    `-o compress=fast`, small or auto.\n\n\
    Examples:\n  onode compress /mnt/logs                    show how it is compressed\n  \
    onode compress /mnt/logs --with small       all files in it, now and later, in few bytes\n  \
    onode compress /mnt/logs --with small --rewrite   and what was written before, too\n  \
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
    /// Store what was written before anew, as is wished now. Can be interrupted and repeated.
    #[arg(long, conflicts_with = "only_new")]
    rewrite: bool,
}

/// Bytes that one call stores anew: so much is waited for at an interrupt.
const STEP_BYTES: u64 = 4 << 20;

#[derive(Debug, Serialize)]
struct Report {
    path: String,
    compression: String,
    /// Files and directories that were changed.
    changed: u64,
    /// What was stored anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    rewritten: Option<Rewritten>,
}

/// What was stored anew, and in how many bytes.
#[derive(Debug, Default, Serialize)]
struct Rewritten {
    files: u64,
    bytes: u64,
    stored_before: u64,
    stored_after: u64,
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let only_shows = arguments.with.is_none() && !arguments.rewrite;
    let report = arguments.target.with(only_shows, |files| {
        let changed = match &arguments.with {
            Some(word) => files.change(!arguments.only_new, |path| files.set_hint(path, Hint::Compress, word))?,
            None => 0,
        };
        let compression = files.hint(files.path(), Hint::Compress)?;
        let rewritten = if arguments.rewrite { Some(rewrite(files, output)?) } else { None };
        Ok(Report { path: files.path().display().to_string(), compression, changed, rewritten })
    })?;
    output.report(&report)?;
    Ok(0)
}

/// Stores everything anew, and shows how far it is.
fn rewrite(files: &Files, output: &Output) -> Result<Rewritten> {
    let mut all: Vec<(PathBuf, u64)> = Vec::new();
    let mut rewritten = Rewritten::default();
    for path in files.all(true)? {
        let Some((size, stored)) = files.sizes(&path)? else { continue };
        (rewritten.files, rewritten.bytes) = (rewritten.files + 1, rewritten.bytes + size);
        rewritten.stored_before += stored;
        all.push((path, size));
    }
    let bar = progress(rewritten.bytes, output);
    for (path, size) in &all {
        for offset in (0..*size).step_by(STEP_BYTES as usize) {
            let length = STEP_BYTES.min(size - offset);
            files.rewrite(path, offset, length).inspect_err(|_| bar.finish_and_clear())?;
            bar.inc(length);
        }
        rewritten.stored_after += files.sizes(path)?.map_or(0, |(_, stored)| stored);
    }
    bar.finish_and_clear();
    Ok(rewritten)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.compression)?;
        if self.compression == Compression::Auto.name() {
            write!(f, " (as the mount says)")?;
        }
        let Some(Rewritten { files, bytes, stored_before, stored_after }) = &self.rewritten else {
            return tell_changed(f, self.changed, "stored anew");
        };
        let things = if *files == 1 { "file" } else { "files" };
        let [bytes, before, after] = [bytes, stored_before, stored_after].map(|bytes| human_size(*bytes));
        write!(f, " ({files} {things} of {bytes} stored anew: {before} before, {after} now)")
    }
}

//! `onode du`: what directories of an image take on the medium, and how much their files hold.

use super::PathReport;
use crate::location::expand::expand;
use crate::location::walk::{Next, Seen, Skipped, Tour, Visitor};
use crate::location::{self, Consent};
use onode::{Result, human_size};
use onode_console::Output;
use onode_fs::{FileType, InodeNumber};
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// The unit in which attributes count what lies on the medium.
const UNIT_BYTES: u64 = 512;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Stored bytes are those on the medium, compressed and without holes; logical bytes are those that\n\
    programs read. A file with several names counts once. What is damaged is told and left out, and\n\
    the exit code is 11.\n\n\
    Examples:\n  onode du disk.img\n  onode du -s disk.img /photos /logs\n  \
    onode du -a disk.img '/logs/*.log'\n  onode du --json disk.img /"
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// Directories or files. Wildcards are meant in the image.
    #[arg(default_value = "/")]
    paths: Vec<PathBuf>,
    /// Only the sum of each path that was named.
    #[arg(short, long)]
    summarize: bool,
    /// Show files too, not only directories.
    #[arg(short, long, conflicts_with = "summarize")]
    all: bool,
    /// Show exact numbers of bytes.
    #[arg(short, long)]
    bytes: bool,
    #[command(flatten)]
    consent: Consent,
}

/// What files take and hold.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Usage {
    stored_bytes: u64,
    logical_bytes: u64,
    /// Files of every kind but directories.
    files: u64,
}

#[derive(Debug, Serialize)]
struct UsageOf {
    #[serde(flatten)]
    path: PathReport,
    #[serde(flatten)]
    usage: Usage,
    #[serde(skip)]
    is_exact: bool,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(Vec<UsageOf>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let mut skipped = Skipped::new(output);
    let mut counter = Counter { arguments, open: Vec::new(), linked: HashSet::new(), report: Report(Vec::new()) };
    for path in expand(volume.files(), &arguments.paths)? {
        Tour { files: volume.files(), skipped: &mut skipped }.go(&path, &mut counter)?;
    }
    if !counter.report.0.is_empty() || output.json() {
        output.report(&counter.report)?;
    }
    Ok(skipped.exit_code())
}

struct Counter<'a> {
    arguments: &'a Arguments,
    /// What is known so far of the directories on the way.
    open: Vec<Usage>,
    /// Files with several names that were counted.
    linked: HashSet<InodeNumber>,
    report: Report,
}

impl Usage {
    fn of(seen: &Seen<'_>) -> Self {
        let found = seen.attributes;
        let logical_bytes = match found.file_type {
            FileType::Regular | FileType::SymbolicLink => found.size,
            // The size of a directory counts its names.
            FileType::Directory
            | FileType::Fifo
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Socket => 0,
        };
        Self { stored_bytes: found.blocks * UNIT_BYTES, logical_bytes, files: u64::from(!seen.is_directory()) }
    }

    const fn add(&mut self, other: Self) {
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        self.logical_bytes = self.logical_bytes.saturating_add(other.logical_bytes);
        self.files += other.files;
    }
}

impl Visitor for Counter<'_> {
    fn enter(&mut self, seen: &Seen<'_>) -> Result<Next> {
        let has_names = seen.attributes.links > 1 && !seen.is_directory();
        let is_counted = has_names && !self.linked.insert(seen.attributes.inode);
        self.open.push(if is_counted { Usage::default() } else { Usage::of(seen) });
        Ok(Next::Into)
    }

    fn leave(&mut self, seen: &Seen<'_>) -> Result<()> {
        let usage = self.open.pop().unwrap_or_default();
        if let Some(above) = self.open.last_mut() {
            above.add(usage);
        }
        let is_shown = seen.depth == 0 || !self.arguments.summarize && (self.arguments.all || seen.is_directory());
        if is_shown {
            let is_exact = self.arguments.bytes;
            self.report.0.push(UsageOf { path: PathReport::of(seen.path), usage, is_exact });
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12} {:>12} {:>8}  path", "stored", "logical", "files")?;
        for UsageOf { path, usage, is_exact } in &self.0 {
            let size = |bytes: u64| if *is_exact { bytes.to_string() } else { human_size(bytes) };
            let (stored, logical) = (size(usage.stored_bytes), size(usage.logical_bytes));
            writeln!(f, "{stored:>12} {logical:>12} {:>8}  {}", usage.files, path.shown())?;
        }
        Ok(())
    }
}

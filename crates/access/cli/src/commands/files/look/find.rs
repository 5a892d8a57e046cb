//! `onode find`: the paths of files in an image that have what was asked for.

use super::PathReport;
use super::filter::{SizeBound, moment};
use crate::commands::files::ls::InodeReport;
use crate::location::expand::expand;
use crate::location::pattern::Pattern;
use crate::location::walk::{Next, Seen, Skipped, Tour, Visitor};
use crate::location::{self, Consent, resolve};
use onode::{Result, Volume};
use onode_base::Timestamp;
use onode_console::Output;
use onode_fs::FileType;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of paths that are written at once.
const PIECE_BYTES: usize = 16 << 10;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "All conditions must hold. A name with control characters, or with bytes that are no text, is shown\n\
    in quotes that a shell understands; with -0 names are as they are. What is damaged is told and\n\
    left out, and the exit code is 11.\n\n\
    Examples:\n  onode find disk.img --name '*.jpg'\n  onode find disk.img /logs --type f --size +10M\n  \
    onode find disk.img --newer 2026-11-21\n  onode find disk.img / --newer /backup/stamp -0 | xargs -0 ..."
)]
pub struct Arguments {
    /// The image or device spec.
    image: OsString,
    /// Where to look. Wildcards are meant in the image.
    #[arg(default_value = "/")]
    paths: Vec<PathBuf>,
    /// Names that this pattern matches: *, ?, [a-z], [!x].
    #[arg(long, value_name = "PATTERN")]
    name: Option<OsString>,
    /// f for files, d for directories, l for symbolic links.
    #[arg(long = "type", value_name = "TYPE", value_parser = ["f", "d", "l"])]
    file_type: Option<String>,
    /// Files of more (+10M), of fewer (-4K) or of exactly so many bytes.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = SizeBound::parse)]
    size: Option<SizeBound>,
    /// Content changed later than that of this file of the image, or than this date: 2026-11-21 or
    /// '2026-11-21 03:27:37', UTC.
    #[arg(long, value_name = "FILE|DATE")]
    newer: Option<PathBuf>,
    /// End each path with a zero byte and show it as it is.
    #[arg(short = '0', long)]
    null: bool,
    #[command(flatten)]
    consent: Consent,
}

/// A file that was found.
#[derive(Debug, Serialize)]
struct Hit {
    #[serde(flatten)]
    path: PathReport,
    #[serde(flatten)]
    inode: InodeReport,
    modified_seconds: i64,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Report(Vec<Hit>);

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    let volume = location::open(&arguments.image, true, arguments.consent)?;
    let mut skipped = Skipped::new(output);
    let mut search = Search {
        arguments,
        name: arguments.name.as_ref().map(|name| Pattern::new(name.as_bytes())),
        newer: arguments.newer.as_ref().map(|text| newer(&volume, text)).transpose()?,
        output: *output,
        text: Vec::new(),
        report: Report(Vec::new()),
    };
    for path in expand(volume.files(), &arguments.paths)? {
        if !(Tour { files: volume.files(), skipped: &mut skipped }.go(&path, &mut search)?) {
            return Ok(skipped.exit_code());
        }
    }
    if output.json() {
        output.report(&search.report)?;
    } else {
        output.bytes(&search.text)?;
    }
    Ok(skipped.exit_code())
}

fn newer(volume: &Volume, text: &Path) -> Result<Timestamp> {
    match text.to_str().and_then(moment) {
        Some(moment) => Ok(moment),
        None => Ok(resolve(volume.files(), text)?.attributes().modified),
    }
}

struct Search<'a> {
    arguments: &'a Arguments,
    name: Option<Pattern>,
    newer: Option<Timestamp>,
    output: Output,
    /// Paths that are not yet written.
    text: Vec<u8>,
    report: Report,
}

impl Search<'_> {
    fn is_wanted(&self, seen: &Seen<'_>) -> bool {
        let found = seen.attributes;
        let is_type = self.arguments.file_type.as_deref().is_none_or(|letter| match found.file_type {
            FileType::Regular => letter == "f",
            FileType::Directory => letter == "d",
            FileType::SymbolicLink => letter == "l",
            FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice | FileType::Socket => false,
        });
        let is_size = |bound: SizeBound| found.file_type == FileType::Regular && bound.admits(found.size);
        let later =
            |than: &Timestamp| (found.modified.seconds, found.modified.nanoseconds) > (than.seconds, than.nanoseconds);
        is_type
            && self.name.as_ref().is_none_or(|pattern| pattern.matches(seen.name()))
            && self.arguments.size.is_none_or(is_size)
            && self.newer.as_ref().is_none_or(later)
    }
}

impl Visitor for Search<'_> {
    fn enter(&mut self, seen: &Seen<'_>) -> Result<Next> {
        if !self.is_wanted(seen) {
            return Ok(Next::Into);
        }
        if self.output.json() {
            let modified_seconds = seen.attributes.modified.seconds;
            let inode = InodeReport::of(seen.attributes);
            self.report.0.push(Hit { path: PathReport::of(seen.path), inode, modified_seconds });
        } else if self.arguments.null {
            self.text.extend(seen.path.as_os_str().as_bytes());
            self.text.push(0);
        } else {
            self.text.extend(PathReport::of(seen.path).shown().into_bytes());
            self.text.push(b'\n');
        }
        if self.text.len() < PIECE_BYTES {
            return Ok(Next::Into);
        }
        let is_read = self.output.offer(&std::mem::take(&mut self.text))?;
        Ok(if is_read { Next::Into } else { Next::Stop })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|hit| writeln!(f, "{}", hit.path.shown()))
    }
}

//! `onode stat`: space, counters and segments of a volume, mounted or not, or the details of one
//! file.

use crate::commands::files::ls::{InodeReport, date};
use crate::commands::state::ask;
use crate::commands::tiers::target::Target;
use crate::location::expand::{Meaning, meaning};
use crate::location::{self, Consent, failed, resolve};
use onode::{Class, Error, Result, Volume};
use onode_console::Output;
use onode_object::ObjectStat;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  onode stat disk.img\n  onode stat /mnt                a mounted volume\n  \
    onode stat disk.img /notes.txt\n  onode stat disk.img '/logs/*.log'\n  onode stat --why /mnt/notes.txt   how and where it is kept, and why\n  onode stat --json /mnt")]
pub struct Arguments {
    /// The image or device spec, or the directory where it is mounted.
    image: OsString,
    /// A file in an image that is not mounted. Wildcards are meant in the image.
    path: Option<PathBuf>,
    /// The hints of a file, who gave them, and what was decided and why: how it is compressed, to
    /// which log or section it goes, which disk has it. Of a mounted volume the file is all it
    /// takes.
    #[arg(long)]
    why: bool,
    /// Show counters that are 0, too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    consent: Consent,
}

/// The details of one file.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    #[serde(flatten)]
    inode: InodeReport,
    allocated_bytes: u64,
    extents: Vec<(u64, u64)>,
    accessed: String,
    modified: String,
    changed: String,
    created: String,
}

/// The details of several files.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct FileReports(Vec<FileReport>);

impl fmt::Display for FileReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, report) in self.0.iter().enumerate() {
            let between = if number > 0 { "\n" } else { "" };
            write!(f, "{between}{report}")?;
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, output: &Output) -> Result<u8> {
    if arguments.why {
        let target = Target::new(arguments.image.clone(), arguments.path.clone());
        output.report(&target.with(true, |files| files.why(files.path()))?)?;
        return Ok(0);
    }
    match &arguments.path {
        Some(path) if Path::new(&arguments.image).is_dir() => {
            let what = format!("cannot show {}", path.display());
            return Err(Error::new(Class::Usage, what, "a path can only be given for an image")
                .hint("use stat(1) for a file of a mounted volume"));
        }
        Some(path) => {
            let volume = location::open(&arguments.image, true, arguments.consent)?;
            match meaning(volume.files(), path)? {
                Meaning::This(path) => output.report(&of_file(&volume, &path)?)?,
                Meaning::Matches(paths) => {
                    let reports = paths.iter().map(|path| of_file(&volume, path)).collect::<Result<_>>()?;
                    output.report(&FileReports(reports))?;
                }
            }
        }
        None => {
            let mut found = ask::of(&arguments.image, arguments.consent)?;
            found.all = arguments.all;
            output.report(&found)?;
        }
    }
    Ok(0)
}

fn of_file(volume: &Volume, path: &Path) -> Result<FileReport> {
    let node = resolve(volume.files(), path)?;
    let found = node.attributes();
    let object = found.inode.object();
    let device_failed = |error: &onode_object::Error| failed("inspect", path, &error.clone().into());
    let ObjectStat { allocated, .. } = volume.device().stat(object).map_err(|error| device_failed(&error))?;
    let mut extents = Vec::new();
    let mut offset = 0;
    loop {
        let more = volume.device().extents(object, offset, 256).map_err(|error| device_failed(&error))?;
        let Some((start, length)) = more.last() else { break };
        offset = start.saturating_add(*length);
        extents.extend(more);
    }
    Ok(FileReport {
        path: path.display().to_string(),
        inode: InodeReport::of(found),
        allocated_bytes: allocated,
        extents,
        accessed: date(found.accessed),
        modified: date(found.modified),
        changed: date(found.changed),
        created: date(found.created),
    })
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InodeReport { number, file_type, mode, links, uid, gid, size } = &self.inode;
        writeln!(f, "file       {} ({file_type}, inode {number})", self.path)?;
        writeln!(f, "mode       {mode} links {links} uid {uid} gid {gid}")?;
        writeln!(f, "size       {size} bytes, {} bytes on the medium", self.allocated_bytes)?;
        writeln!(f, "accessed   {} UTC", self.accessed)?;
        writeln!(f, "modified   {} UTC", self.modified)?;
        writeln!(f, "changed    {} UTC", self.changed)?;
        writeln!(f, "created    {} UTC", self.created)?;
        writeln!(f, "extents    {}", self.extents.len())?;
        for (start, length) in &self.extents {
            writeln!(f, "  {start} + {length}")?;
        }
        Ok(())
    }
}

//! Copying trees between the host and volumes: one engine for `get`, `put` and `cp`.
//!
//! Kept are content with its holes, permissions, modification times, symbolic links and, for root,
//! the owner. Device nodes, FIFOs and sockets are left out with a warning. A copy that fails leaves
//! what was copied so far.

mod host;
mod stream;
mod volume;

use indicatif::{ProgressBar, ProgressStyle};
use onode::{Class, Error, Result};
use onode_base::Timestamp;
use onode_console::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

pub use host::Host;
pub use stream::Stream;
pub use volume::InVolume;

/// Bytes copied at once.
const CHUNK_BYTES: usize = 1 << 20;

/// What a file is, as far as a copy keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with bytes.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and where it leads.
    Link(OsString),
    /// Anything else.
    Special,
}

/// What a copy keeps of a file beside its content.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub permissions: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the content.
    pub modified: Timestamp,
}

/// One side of a copy.
pub trait Side {
    /// What is at `path`; `None` if nothing.
    fn entry(&self, path: &Path) -> Result<Option<Entry>>;
    /// Whether a copy to `path` goes into it, because it is a directory or, where links are
    /// followed, leads to one.
    fn is_directory(&self, path: &Path) -> Result<bool> {
        Ok(self.entry(path)?.is_some_and(|entry| entry.kind == Kind::Directory))
    }
    /// The names in a directory.
    fn names(&self, path: &Path) -> Result<Vec<OsString>>;
    /// Reads bytes of a file; 0 at its end.
    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize>;
    /// Makes a directory.
    fn make_directory(&self, path: &Path) -> Result<()>;
    /// Makes a symbolic link, in place of one that is there.
    fn make_link(&self, path: &Path, target: &std::ffi::OsStr) -> Result<()>;
    /// Makes an empty file, or empties the one that is there.
    fn make_file(&self, path: &Path) -> Result<()>;
    /// Writes bytes of a file.
    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()>;
    /// Gives a file its size, permissions, owner and time.
    fn finish(&self, path: &Path, entry: &Entry) -> Result<()>;
    /// How people know the path.
    fn name(&self, path: &Path) -> String;
}

/// What was copied.
#[derive(Debug, Default, Serialize)]
pub struct Copied {
    files: u64,
    directories: u64,
    links: u64,
    bytes: u64,
    skipped: u64,
}

impl Copied {
    /// Counts what another copy did, too.
    pub const fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.links += other.links;
        self.bytes += other.bytes;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copied {} files, {}", self.files, onode::human_size(self.bytes))?;
        if self.directories > 0 {
            write!(f, ", {} directories", self.directories)?;
        }
        if self.links > 0 {
            write!(f, ", {} links", self.links)?;
        }
        Ok(())
    }
}

/// One end of a copy.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// The side.
    pub side: &'a dyn Side,
    /// Where on that side.
    pub path: &'a Path,
}

/// Copies `from` to `to`; into `to` if that is a directory.
pub fn copy(from: End<'_>, to: End<'_>, recursive: bool, output: &Output) -> Result<Copied> {
    let what = || format!("cannot copy {}", from.side.name(from.path));
    let Some(entry) = from.side.entry(from.path)? else {
        return Err(Error::new(Class::NotFound, what(), "there is no such file"));
    };
    if entry.kind == Kind::Directory && !recursive {
        return Err(Error::new(Class::Usage, what(), "it is a directory").hint("add -r to copy it with all it holds"));
    }
    let mut target = to.path.to_owned();
    if let (true, Some(name)) = (to.side.is_directory(&target)?, from.path.file_name()) {
        target.push(name);
    }
    let mut task = Task {
        from: from.side,
        to: to.side,
        copied: Copied::default(),
        bar: progress(total_bytes(from.side, from.path, &entry)?, output),
        buffer: vec![0; CHUNK_BYTES],
        output: *output,
    };
    let outcome = task.tree(from.path, &target, &entry);
    task.bar.finish_and_clear();
    outcome.map(|()| task.copied)
}

fn total_bytes(side: &dyn Side, path: &Path, entry: &Entry) -> Result<u64> {
    match entry.kind {
        Kind::File => Ok(entry.size),
        Kind::Link(_) | Kind::Special => Ok(0),
        Kind::Directory => {
            let mut total = 0u64;
            for name in side.names(path)? {
                let inner = path.join(name);
                if let Some(entry) = side.entry(&inner)? {
                    total = total.saturating_add(total_bytes(side, &inner, &entry)?);
                }
            }
            Ok(total)
        }
    }
}

/// A bar on standard error, if that is a terminal.
pub fn progress(bytes: u64, output: &Output) -> ProgressBar {
    if output.json() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}") {
        bar.set_style(style);
    }
    bar
}

struct Task<'a> {
    from: &'a dyn Side,
    to: &'a dyn Side,
    copied: Copied,
    bar: ProgressBar,
    buffer: Vec<u8>,
    output: Output,
}

impl Task<'_> {
    fn tree(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        match &entry.kind {
            Kind::File => self.file(from, to, entry),
            Kind::Directory => self.directory(from, to, entry),
            Kind::Link(target) => {
                self.to.make_link(to, target)?;
                self.copied.links += 1;
                Ok(())
            }
            Kind::Special => {
                self.copied.skipped += 1;
                self.output.warning(&format!("left out {}: it is a device, FIFO or socket", self.from.name(from)));
                Ok(())
            }
        }
    }

    fn directory(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        match self.to.entry(to)?.map(|there| there.kind) {
            None => self.to.make_directory(to)?,
            Some(Kind::Directory) => {}
            Some(_) => {
                let what = format!("cannot copy a directory to {}", self.to.name(to));
                return Err(Error::new(Class::Exists, what, "a file is there already"));
            }
        }
        for name in self.from.names(from)? {
            let (inner, target): (PathBuf, PathBuf) = (from.join(&name), to.join(&name));
            if let Some(entry) = self.from.entry(&inner)? {
                self.tree(&inner, &target, &entry)?;
            }
        }
        self.copied.directories += 1;
        self.to.finish(to, entry)
    }

    fn file(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        self.bar.set_message(from.file_name().unwrap_or_default().to_string_lossy().into_owned());
        self.to.make_file(to)?;
        let mut offset = 0;
        loop {
            let length = self.from.read(from, offset, &mut self.buffer)?;
            let data = self.buffer.get(..length).unwrap_or_default();
            if data.is_empty() {
                break;
            }
            // What is all zeros stays a hole; the size is set at the end.
            if data.iter().any(|byte| *byte != 0) {
                self.to.write(to, offset, data)?;
            }
            offset += length as u64;
            self.bar.inc(length as u64);
        }
        self.copied.files += 1;
        self.copied.bytes += offset;
        // The file may have grown since its entry was read.
        self.to.finish(to, &Entry { size: offset, ..entry.clone() })
    }
}

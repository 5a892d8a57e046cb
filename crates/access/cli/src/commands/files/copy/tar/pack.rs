//! Packing a tree into an archive.

use super::sparse::whole_blocks;
use super::writer::Writer;
use super::{Member, MemberKind};
use crate::commands::files::copy::manner::{CopyManner, Voice};
use crate::commands::files::copy::report::Copied;
use crate::commands::files::copy::runs::CHUNK_BYTES;
use crate::commands::files::copy::wanted::{Wanted, shows_progress};
use crate::commands::files::copy::{Entry, Identity, Kind, Side, progress};
use indicatif::ProgressBar;
use onode::{Class, Error, Result};
use onode_console::Output;
use onode_fs::FileType;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is packed.
#[derive(Clone, Copy)]
pub struct Top<'a> {
    /// Where it is.
    pub side: &'a dyn Side,
    /// Where on that side.
    pub path: &'a Path,
    /// What it is called in the archive; an empty name stands for a directory whose content has no
    /// other name before its own.
    pub name: &'a [u8],
}

/// An archive that is being made.
pub struct Packing<'a> {
    manner: &'a CopyManner,
    output: &'a Output,
    writer: Writer<'a>,
    copied: Copied,
    /// The names of files that have several.
    shared: HashMap<Identity, Vec<u8>>,
    bar: ProgressBar,
    buffer: Vec<u8>,
}

impl<'a> Packing<'a> {
    /// One whose bytes `put` takes, and tells whether anybody still reads them.
    pub fn new(manner: &'a CopyManner, output: &'a Output, put: impl FnMut(&[u8]) -> Result<bool> + 'a) -> Self {
        Self {
            manner,
            output,
            writer: Writer::new(put),
            copied: Copied { dry_run: manner.is_dry, ..Copied::default() },
            shared: HashMap::new(),
            bar: ProgressBar::hidden(),
            buffer: vec![0; CHUNK_BYTES],
        }
    }

    /// Adds a file, or a directory with all it holds.
    ///
    /// # Errors
    /// Those of the side, and of who takes the archive.
    pub fn add(&mut self, top: Top<'_>) -> Result<()> {
        self.manner.stop.listen()?;
        let wanted = Wanted { side: top.side, top: top.path, manner: self.manner };
        let entry = wanted.entry()?;
        if shows_progress(self.manner, self.output) {
            self.bar = progress(wanted.total_bytes(top.path, &entry)?, self.output);
        }
        let packed = self.tree(wanted, top.path, top.name, &entry);
        self.bar.finish_and_clear();
        packed
    }

    /// Writes the end; what was packed.
    ///
    /// # Errors
    /// Those of who takes the archive.
    pub fn finish(mut self) -> Result<Copied> {
        if !self.manner.is_dry {
            self.writer.finish()?;
        }
        Ok(self.copied)
    }

    fn tell(&self, verb: &str, name: &str) {
        if self.manner.voice == Voice::Each {
            self.bar.suspend(|| self.output.detail(&format!("{verb} {name}")));
        }
    }

    fn tree(&mut self, wanted: Wanted<'_>, path: &Path, name: &[u8], entry: &Entry) -> Result<()> {
        let side = wanted.side;
        wanted.check(path, &self.copied)?;
        if !self.writer.is_read() {
            return Ok(());
        }
        if !wanted.admits(path, entry) {
            self.copied.excluded += 1;
            self.tell("left out", &side.name(path));
            return Ok(());
        }
        if let Kind::Special(special) = &entry.kind
            && special.file_type == FileType::Socket
        {
            self.copied.left_out += 1;
            let text = format!("left out {}: an archive holds no sockets", side.name(path));
            self.bar.suspend(|| self.output.warning(&text));
            return Ok(());
        }
        if entry.kind != Kind::Directory {
            self.tell(if self.manner.is_dry { "would pack" } else { "packing" }, &side.name(path));
        }
        self.member(wanted, path, name, entry)?;
        if entry.kind != Kind::Directory {
            return Ok(());
        }
        for inner in side.names(path)? {
            let below = path.join(&inner);
            let name =
                if name.is_empty() { inner.as_bytes().to_vec() } else { [name, b"/", inner.as_bytes()].concat() };
            if let Some(entry) = side.entry(&below)? {
                self.tree(wanted, &below, &name, &entry)?;
            }
        }
        Ok(())
    }

    fn member(&mut self, wanted: Wanted<'_>, path: &Path, name: &[u8], entry: &Entry) -> Result<()> {
        let side = wanted.side;
        let first = entry.shared.and_then(|shared| self.shared.get(&shared)).cloned();
        let mut map = Vec::new();
        let kind = match (first, &entry.kind) {
            (Some(first), _) => {
                self.copied.hard_links += 1;
                MemberKind::Name(first)
            }
            (None, Kind::File) => {
                map = ranges(side, path, entry.size)?;
                self.copied.files += 1;
                self.copied.bytes += entry.size;
                MemberKind::File
            }
            (None, Kind::Directory) => {
                self.copied.directories += 1;
                MemberKind::Directory
            }
            (None, Kind::Link(target)) => {
                self.copied.links += 1;
                MemberKind::Link(target.clone())
            }
            (None, Kind::Special(special)) => {
                self.copied.special += 1;
                MemberKind::Special(*special)
            }
        };
        let is_file = kind == MemberKind::File;
        if let Some(shared) = entry.shared {
            self.shared.entry(shared).or_insert_with(|| name.to_vec());
        }
        if self.manner.is_dry {
            return Ok(());
        }
        let name = match (&kind, name) {
            (MemberKind::Directory, b"") => b"./".to_vec(),
            (MemberKind::Directory, name) => [name, b"/"].concat(),
            (_, name) => name.to_vec(),
        };
        let xattrs = if matches!(kind, MemberKind::Name(_)) { Vec::new() } else { side.xattrs(path)? };
        self.writer.member(&Member {
            name,
            kind,
            size: if is_file { entry.size } else { 0 },
            map: map.clone(),
            permissions: entry.permissions,
            uid: entry.uid,
            gid: entry.gid,
            modified: entry.modified,
            xattrs,
            has_worded_acl: false,
        })?;
        if is_file { self.content(wanted, path, &map) } else { Ok(()) }
    }

    fn content(&mut self, wanted: Wanted<'_>, path: &Path, map: &[Range<u64>]) -> Result<()> {
        self.bar.set_message(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let mut before = 0;
        for range in map {
            self.bar.inc(range.start - before);
            let mut offset = range.start;
            while offset < range.end && self.writer.is_read() {
                let length = (range.end - offset).min(CHUNK_BYTES as u64) as usize;
                let buffer = self.buffer.get_mut(..length).unwrap_or_default();
                let length = wanted.side.read(path, offset, buffer)?;
                wanted.check(path, &self.copied)?;
                if length == 0 {
                    let what = format!("cannot pack {}", wanted.side.name(path));
                    return Err(Error::new(Class::General, what, "it became shorter meanwhile").hint("run it again"));
                }
                self.writer.content(self.buffer.get(..length).unwrap_or_default())?;
                offset += length as u64;
                self.bar.inc(length as u64);
            }
            before = range.end;
        }
        self.writer.pad()
    }
}

/// The blocks of a file that are no holes, in as few ranges as there can be.
fn ranges(side: &dyn Side, path: &Path, size: u64) -> Result<Vec<Range<u64>>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut offset = 0;
    while let Some(range) = side.data(path, offset)? {
        let range = range.start..range.end.min(size);
        if range.is_empty() {
            break;
        }
        offset = range.end;
        match found.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => found.push(range),
        }
    }
    Ok(whole_blocks(&found, size))
}

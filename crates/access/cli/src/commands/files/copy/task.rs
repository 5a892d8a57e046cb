//! The copy itself: a tree from one side to the other.

use super::attributes::Attributes;
use super::manner::{CopyManner, Existing, Voice};
use super::report::Copied;
use super::runs::{CHUNK_BYTES, fill, runs};
use super::wanted::{Wanted, shows_progress};
use super::{Entry, Identity, Kind, Side, progress};
use indicatif::ProgressBar;
use onode::{Class, Error, Result};
use onode_console::Output;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Bytes at the end of a part of a file that are compared before it is completed.
const COMPARED_BYTES: u64 = 64 << 10;

/// One end of a copy.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// The side.
    pub side: &'a dyn Side,
    /// Where on that side.
    pub path: &'a Path,
}

/// A copy of one or several trees.
pub struct Copying<'a> {
    manner: &'a CopyManner,
    output: &'a Output,
    copied: Copied,
    /// Where files with several names were copied to.
    shared: HashMap<Identity, PathBuf>,
    attributes: Attributes,
    bar: ProgressBar,
    buffer: Vec<u8>,
}

/// Where a copy of a file begins.
enum Beginning {
    /// Nothing is to be done.
    Done,
    /// At the end of what is there.
    Behind(u64),
    /// At its start.
    Anew,
}

impl<'a> Copying<'a> {
    /// One that has copied nothing yet.
    pub fn new(manner: &'a CopyManner, output: &'a Output) -> Self {
        Self {
            manner,
            output,
            copied: Copied { dry_run: manner.is_dry, ..Copied::default() },
            shared: HashMap::new(),
            attributes: Attributes::default(),
            bar: ProgressBar::hidden(),
            buffer: vec![0; CHUNK_BYTES],
        }
    }

    /// Copies `from` to `to`; into `to` if that is a directory.
    ///
    /// # Errors
    /// Those of both sides; `Usage` for a directory that is not to be copied with all it holds.
    pub fn copy(&mut self, from: End<'_>, to: End<'_>) -> Result<()> {
        let mut target = to.path.to_owned();
        if let (true, Some(name)) = (to.side.is_directory(&target)?, from.path.file_name()) {
            target.push(name);
        }
        self.exactly(from, End { side: to.side, path: &target })
    }

    /// Copies `from` to the path of `to`: a directory that is there has then what `from` holds.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn exactly(&mut self, from: End<'_>, to: End<'_>) -> Result<()> {
        self.manner.stop.listen()?;
        let wanted = Wanted { side: from.side, top: from.path, manner: self.manner };
        let entry = wanted.entry()?;
        if shows_progress(self.manner, self.output) {
            self.bar = progress(wanted.total_bytes(from.path, &entry)?, self.output);
        }
        let mut task = Task { from: from.side, to: to.side, wanted, run: self };
        let outcome = task.tree(from.path, to.path, &entry);
        self.bar.finish_and_clear();
        outcome
    }

    /// What was copied so far.
    pub fn copied(&self) -> Copied {
        self.copied.clone()
    }

    /// Only that was copied: what came after it was taken back.
    pub fn take_back(&mut self, to: Copied) {
        self.copied = to;
    }

    /// Tells what was copied, unless nobody wants to hear it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn report(&self) -> Result<()> {
        self.copied.report(self.manner.voice, self.output)
    }

    /// Tells of one file.
    fn tell(&self, line: &str) {
        if self.manner.voice == Voice::Each {
            self.bar.suspend(|| self.output.detail(line));
        }
    }
}

/// A tree that is being copied.
struct Task<'r, 'a, 's> {
    from: &'s dyn Side,
    to: &'s dyn Side,
    wanted: Wanted<'s>,
    run: &'r mut Copying<'a>,
}

impl Task<'_, '_, '_> {
    fn tree(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        self.wanted.check(from, &self.run.copied)?;
        if !self.wanted.admits(from, entry) {
            self.run.copied.excluded += 1;
            self.tell("left out", from, None);
            return Ok(());
        }
        let owned = match self.run.manner.owner {
            Some(owner) => Entry { uid: owner.uid, gid: owner.gid, ..entry.clone() },
            None => entry.clone(),
        };
        match &owned.kind {
            Kind::Directory => self.directory(from, to, &owned),
            Kind::Special(_) if !self.run.manner.keeps_all => {
                self.run.copied.left_out += 1;
                let name = self.from.name(from);
                let text = format!("left out {name}: it is a device, FIFO or socket; -a copies such files, too");
                self.run.bar.suspend(|| self.run.output.warning(&text));
                Ok(())
            }
            Kind::File | Kind::Link(_) | Kind::Special(_) => self.leaf(from, to, &owned),
        }
    }

    /// `copied A to B`, or what would be done.
    fn tell(&self, verb: &str, from: &Path, to: Option<&Path>) {
        let target = to.map_or_else(String::new, |to| format!(" to {}", self.to.name(to)));
        self.run.tell(&format!("{verb} {}{target}", self.from.name(from)));
    }

    fn directory(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        let there = self.to.entry(to)?.map(|there| there.kind);
        let is_new = there.is_none();
        match there {
            None if self.run.manner.is_dry => {}
            None => self.to.make_directory(to)?,
            Some(Kind::Directory) => {}
            // On the host a link to a directory is as good as one.
            Some(Kind::Link(_)) if self.to.is_directory(to)? => {}
            Some(_) => {
                let what = format!("cannot copy a directory to {}", self.to.name(to));
                return Err(Error::new(Class::Exists, what, "a file is there already")
                    .hint("choose another target, or remove the file"));
            }
        }
        for name in self.from.names(from)? {
            let (inner, target): (PathBuf, PathBuf) = (from.join(&name), to.join(&name));
            if let Some(entry) = self.from.entry(&inner)? {
                self.tree(&inner, &target, &entry)?;
            }
        }
        self.run.copied.directories += 1;
        // A directory that stays as it is keeps its permissions and times, too.
        if is_new || self.run.manner.existing != Existing::Keep {
            self.complete(from, to, entry)?;
        }
        Ok(())
    }

    /// Anything but a directory.
    fn leaf(&mut self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        let there = self.to.entry(to)?;
        let beginning = self.beginning(from, to, entry, there.as_ref())?;
        if matches!(beginning, Beginning::Done) {
            self.run.copied.skipped += 1;
            self.run.bar.inc(entry.size);
            self.tell("skipped", from, None);
            self.remember(entry, to);
            return Ok(());
        }
        if let Some(first) = entry.shared.and_then(|shared| self.run.shared.get(&shared)).cloned() {
            return self.further_name(from, to, &first, there.is_some());
        }
        self.tell(if self.run.manner.is_dry { "would copy" } else { "copying" }, from, Some(to));
        match &entry.kind {
            Kind::File => self.file(from, to, entry, &beginning)?,
            Kind::Link(target) => {
                if !self.run.manner.is_dry {
                    self.to.make_link(to, target)?;
                    self.complete(from, to, entry)?;
                }
                self.run.copied.links += 1;
            }
            Kind::Special(special) => {
                if !self.run.manner.is_dry {
                    if there.is_some() {
                        self.to.remove(to)?;
                    }
                    self.to.make_special(to, *special)?;
                    self.complete(from, to, entry)?;
                }
                self.run.copied.special += 1;
            }
            Kind::Directory => {}
        }
        self.remember(entry, to);
        Ok(())
    }

    /// Where the first name of a file that has several went.
    fn remember(&mut self, entry: &Entry, to: &Path) {
        if let Some(shared) = entry.shared.filter(|_| self.run.manner.keeps_all) {
            self.run.shared.insert(shared, to.to_owned());
        }
    }

    fn further_name(&mut self, from: &Path, to: &Path, first: &Path, is_there: bool) -> Result<()> {
        self.tell(if self.run.manner.is_dry { "would link" } else { "linking" }, from, Some(to));
        if !self.run.manner.is_dry && first != to {
            if is_there {
                self.to.remove(to)?;
            }
            self.to.make_name(to, first)?;
        }
        self.run.copied.hard_links += 1;
        Ok(())
    }

    /// Where the copy of something that may be there already begins.
    fn beginning(&mut self, from: &Path, to: &Path, entry: &Entry, there: Option<&Entry>) -> Result<Beginning> {
        let Some(there) = there else { return Ok(Beginning::Anew) };
        match self.run.manner.existing {
            Existing::Replace => Ok(Beginning::Anew),
            Existing::Keep => Ok(Beginning::Done),
            Existing::Resume if there.kind != entry.kind => Ok(Beginning::Anew),
            Existing::Resume if entry.kind != Kind::File => Ok(Beginning::Done),
            Existing::Resume if there.size == entry.size && there.modified == entry.modified => Ok(Beginning::Done),
            Existing::Resume if there.size == 0 || there.size >= entry.size => Ok(Beginning::Anew),
            Existing::Resume => {
                let compared = there.size.min(COMPARED_BYTES) as usize;
                let at = there.size - compared as u64;
                let [mut ours, mut theirs] = [vec![0; compared], vec![0; compared]];
                let is_same = fill(self.from, from, at, &mut ours)? == compared
                    && fill(self.to, to, at, &mut theirs)? == compared
                    && ours == theirs;
                Ok(if is_same { Beginning::Behind(there.size) } else { Beginning::Anew })
            }
        }
    }

    fn file(&mut self, from: &Path, to: &Path, entry: &Entry, beginning: &Beginning) -> Result<()> {
        self.run.bar.set_message(from.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let start = if let Beginning::Behind(bytes) = beginning { *bytes } else { 0 };
        self.run.bar.inc(start);
        if self.run.manner.is_dry {
            self.run.copied.files += 1;
            self.run.copied.bytes += entry.size.saturating_sub(start);
            return Ok(());
        }
        if start == 0 {
            self.to.make_file(to)?;
        }
        let end = self.content(from, to, entry, start)?;
        self.run.copied.files += 1;
        self.run.copied.bytes += end.saturating_sub(start);
        // The file may have grown since its entry was read.
        self.complete(from, to, &Entry { size: end, ..entry.clone() })
    }

    /// Copies bytes from `start` on; returns where the file ends.
    fn content(&mut self, from: &Path, to: &Path, entry: &Entry, start: u64) -> Result<u64> {
        let chunk = CHUNK_BYTES as u64;
        let mut offset = start;
        while let Some(range) = self.from.data(from, offset)? {
            let first = offset.max(range.start / chunk * chunk);
            self.run.bar.inc(first - offset);
            offset = first;
            while offset < range.end {
                let wanted = (chunk - offset % chunk) as usize;
                let buffer = self.run.buffer.get_mut(..wanted).unwrap_or_default();
                let length = fill(self.from, from, offset, buffer)?;
                // Before the end is believed in: a stream ends when who writes it was interrupted.
                self.wanted.check(from, &self.run.copied)?;
                let data = self.run.buffer.get(..length).unwrap_or_default();
                // What is all zeros stays a hole; the size is set at the end.
                for run in runs(data) {
                    let at = offset + run.start as u64;
                    self.to.write(to, at, data.get(run).unwrap_or_default())?;
                }
                offset += length as u64;
                self.run.bar.inc(length as u64);
                if length < wanted {
                    return Ok(offset);
                }
            }
        }
        Ok(offset.max(entry.size))
    }

    /// What a copy gets when its content is there.
    fn complete(&self, from: &Path, to: &Path, entry: &Entry) -> Result<()> {
        if self.run.manner.is_dry {
            return Ok(());
        }
        // The owner comes first: a change of it takes capabilities away.
        self.to.finish(to, entry)?;
        if !self.run.manner.keeps_all {
            return Ok(());
        }
        let xattrs = self.from.xattrs(from)?;
        self.run.attributes.set(self.to, to, &xattrs, self.run.output)?;
        // An access list that was inherited and replaced may have changed the permissions.
        if xattrs.is_empty() { Ok(()) } else { self.to.finish(to, entry) }
    }
}

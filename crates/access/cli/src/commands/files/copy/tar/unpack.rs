//! Unpacking an archive into a directory of a volume.

use super::reader::Reader;
use super::{Member, MemberKind};
use crate::commands::files::copy::attributes::Attributes;
use crate::commands::files::copy::manner::{CopyManner, Existing, Voice};
use crate::commands::files::copy::report::Copied;
use crate::commands::files::copy::runs::{CHUNK_BYTES, runs};
use crate::commands::files::copy::{Entry, Kind, Side, Xattr};
use indicatif::ProgressBar;
use onode::{Class, Error, Result};
use onode_console::Output;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An archive that is being unpacked.
pub struct Unpacking<'a> {
    /// Into what.
    pub side: &'a dyn Side,
    /// The directory there; nothing outside of it is touched.
    pub directory: &'a Path,
    /// How.
    pub manner: &'a CopyManner,
    /// Where it is told.
    pub output: &'a Output,
    /// How far it is.
    pub bar: ProgressBar,
    /// What was told of extended attributes.
    pub attributes: Attributes,
}

/// What was done so far.
#[derive(Default)]
struct Unpacked {
    copied: Copied,
    /// Directories that are there.
    directories: HashSet<PathBuf>,
    /// Directories that get their times when all else is done.
    unfinished: Vec<Unfinished>,
}

/// A directory whose content is not yet there.
struct Unfinished {
    path: PathBuf,
    entry: Entry,
    xattrs: Vec<Xattr>,
}

impl Unpacking<'_> {
    /// Unpacks all of it; what was unpacked.
    ///
    /// # Errors
    /// Those of the archive and of the side, with what was unpacked before.
    pub fn run(&self, mut reader: Reader<'_>) -> Result<Copied> {
        self.manner.stop.listen()?;
        let mut done = Unpacked::default();
        done.copied.dry_run = self.manner.is_dry;
        let outcome = self.all(&mut reader, &mut done);
        // What is there gets its times whatever came then; the inner ones first.
        let finished =
            done.unfinished.iter().rev().try_for_each(|one| self.complete(&one.path, &one.entry, &one.xattrs));
        self.bar.finish_and_clear();
        outcome.and(finished).map_err(|error| self.told(error, &done.copied))?;
        Ok(done.copied)
    }

    /// An error with what was unpacked before it.
    fn told(&self, error: Error, copied: &Copied) -> Error {
        let before = |why: &str| match self.manner.is_whole {
            true => why.to_owned(),
            false => format!("{why}; {copied} before it, which stays"),
        };
        match (self.manner.stop.asked(), error.hint) {
            // Input ends early when somebody asks for an end.
            (Some(why), _) => {
                Error::new(Class::General, "cannot unpack the archive to the end", before(why)).hint("run it again")
            }
            (None, Some(hint)) => Error::new(error.class, error.what, before(&error.why)).hint(hint),
            (None, None) => Error::new(error.class, error.what, before(&error.why)),
        }
    }

    fn all(&self, reader: &mut Reader<'_>, done: &mut Unpacked) -> Result<()> {
        self.make_directories(self.directory, done)?;
        while let Some(member) = reader.next()? {
            if let Some(why) = self.manner.stop.asked() {
                return Err(Error::new(Class::General, "cannot unpack the archive to the end", why));
            }
            self.bar.set_position(reader.offset());
            self.member(reader, &member, done)?;
        }
        Ok(())
    }

    fn tell(&self, verb: &str, path: &Path) {
        if self.manner.voice == Voice::Each {
            self.bar.suspend(|| self.output.detail(&format!("{verb} {}", self.side.name(path))));
        }
    }

    /// A member that is refused.
    fn refused(member: &Member, why: String) -> Error {
        let name = OsStr::from_bytes(&member.name);
        let hint = "if you trust the archive, leave the file out with --exclude, or pack it anew";
        Error::new(Class::General, format!("cannot unpack `{}`", name.display()), why).hint(hint)
    }

    /// The path below the directory that a name in the archive means.
    fn below(member: &Member, name: &[u8]) -> Result<PathBuf> {
        let shown = OsStr::from_bytes(name).display();
        if name.starts_with(b"/") {
            return Err(Self::refused(member, format!("`{shown}` is absolute: it would be outside of the directory")));
        }
        let parts = name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        let mut path = PathBuf::new();
        for part in parts {
            if part == b".." {
                let why = format!("`{shown}` has a `..` in it: it could be outside of the directory");
                return Err(Self::refused(member, why));
            }
            path.push(OsStr::from_bytes(part));
        }
        Ok(path)
    }

    fn member(&self, reader: &mut Reader<'_>, member: &Member, done: &mut Unpacked) -> Result<()> {
        let below = Self::below(member, &member.name)?;
        let is_directory = member.kind == MemberKind::Directory;
        let ancestors = below.ancestors().filter(|path| !path.as_os_str().is_empty());
        let is_left_out = ancestors
            .map(|path| self.manner.excludes.admit(path.file_name(), path, is_directory || path != below))
            .any(|is_admitted| !is_admitted);
        let path = self.directory.join(&below);
        if is_left_out {
            done.copied.excluded += 1;
            self.tell("left out", &path);
            return Ok(());
        }
        if let MemberKind::Unknown(letter) = member.kind {
            done.copied.left_out += 1;
            let letter = char::from(letter).escape_default();
            let name = OsStr::from_bytes(&member.name).display();
            self.output.warning(&format!("left out `{name}`: no volume holds what type `{letter}` is"));
            return Ok(());
        }
        if member.has_worded_acl {
            let text = format!("left out the access control list of {}: it is in words", self.side.name(&path));
            self.output.warning(&format!("{text}; pack with `tar --xattrs --xattrs-include='*'` in place of --acls"));
        }
        if is_directory {
            return self.directory(member, &path, done);
        }
        if below.as_os_str().is_empty() {
            return Err(Self::refused(member, "it is no directory and would take the place of the target".into()));
        }
        if let Some(parent) = path.parent() {
            self.make_directories(parent, done)?;
        }
        match self.side.entry(&path)?.map(|there| there.kind) {
            None => {}
            Some(_) if self.manner.existing == Existing::Keep => {
                done.copied.skipped += 1;
                self.tell("skipped", &path);
                return Ok(());
            }
            Some(Kind::Directory) => {
                return Err(Self::refused(member, format!("{} is a directory", self.side.name(&path))));
            }
            // Not written over: it may have other names, also outside of the directory.
            Some(_) if !self.manner.is_dry && !self.is_itself(member, &path) => self.side.remove(&path)?,
            Some(_) => {}
        }
        self.tell(if self.manner.is_dry { "would unpack" } else { "unpacking" }, &path);
        self.leaf(reader, member, &path, done)
    }

    /// Whether a member is a second name for itself.
    fn is_itself(&self, member: &Member, path: &Path) -> bool {
        let MemberKind::Name(of) = &member.kind else { return false };
        Self::below(member, of).is_ok_and(|of| self.directory.join(of) == path)
    }

    /// Anything but a directory, where nothing is.
    fn leaf(&self, reader: &mut Reader<'_>, member: &Member, path: &Path, done: &mut Unpacked) -> Result<()> {
        let changes = !self.manner.is_dry;
        match &member.kind {
            MemberKind::File => {
                if changes {
                    self.side.make_file(path)?;
                    self.content(reader, member, path)?;
                }
                done.copied.files += 1;
                done.copied.bytes += member.size;
            }
            MemberKind::Link(target) => {
                if changes {
                    self.side.make_link(path, target)?;
                }
                done.copied.links += 1;
            }
            MemberKind::Special(special) => {
                if changes {
                    self.side.make_special(path, *special)?;
                }
                done.copied.special += 1;
            }
            MemberKind::Name(of) => {
                let first = self.directory.join(Self::below(member, of)?);
                done.copied.hard_links += 1;
                return if changes && first != path { self.name(member, path, &first) } else { Ok(()) };
            }
            MemberKind::Directory | MemberKind::Unknown(_) => {}
        }
        self.complete(path, &entry_of(member, self.manner), &member.xattrs)
    }

    fn name(&self, member: &Member, path: &Path, first: &Path) -> Result<()> {
        match self.side.entry(first) {
            Ok(Some(there)) if there.kind != Kind::Directory => self.side.make_name(path, first),
            _ => {
                let why = format!("it is a hard link to {}, which is no file that is there", self.side.name(first));
                Err(Self::refused(member, why))
            }
        }
    }

    fn directory(&self, member: &Member, path: &Path, done: &mut Unpacked) -> Result<()> {
        if let Some(parent) = path.parent() {
            self.make_directories(parent, done)?;
        }
        let is_new = !done.directories.contains(path) && self.side.entry(path)?.is_none();
        self.make_directories(path, done)?;
        done.copied.directories += 1;
        if is_new || self.manner.existing != Existing::Keep {
            let entry = entry_of(member, self.manner);
            done.unfinished.push(Unfinished { path: path.to_owned(), entry, xattrs: member.xattrs.clone() });
        }
        Ok(())
    }

    /// Makes a directory and those above it, as far as they are missing. What is no directory is
    /// never passed through.
    fn make_directories(&self, path: &Path, done: &mut Unpacked) -> Result<()> {
        if done.directories.contains(path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.make_directories(parent, done)?;
        }
        match self.side.entry(path)?.map(|there| there.kind) {
            None if self.manner.is_dry => {}
            None => self.side.make_directory(path)?,
            Some(Kind::Directory) => {}
            Some(kind) => {
                let what = if matches!(kind, Kind::Link(_)) { "a symbolic link" } else { "a file" };
                let why = format!("{} is {what}, and nothing is unpacked through it", self.side.name(path));
                let hint = "choose another directory, or remove it first";
                return Err(Error::new(Class::Exists, "cannot unpack the archive to the end", why).hint(hint));
            }
        }
        done.directories.insert(path.to_owned());
        Ok(())
    }

    fn content(&self, reader: &mut Reader<'_>, member: &Member, path: &Path) -> Result<()> {
        self.bar.set_message(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(member.size).unwrap_or(usize::MAX))];
        for range in &member.map {
            let mut offset = range.start;
            while offset < range.end {
                let wanted = buffer.len().min(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
                let length = reader.read(buffer.get_mut(..wanted).unwrap_or_default())?;
                let data = buffer.get(..length).unwrap_or_default();
                if data.is_empty() {
                    return Err(reader.fault("it is damaged: a file has less content than it is said"));
                }
                // What is all zeros stays a hole; the size is set at the end.
                for run in runs(data) {
                    let at = offset + run.start as u64;
                    self.side.write(path, at, data.get(run).unwrap_or_default())?;
                }
                offset += length as u64;
                self.bar.set_position(reader.offset());
            }
            reader.end_range(range.end - range.start)?;
        }
        Ok(())
    }

    fn complete(&self, path: &Path, entry: &Entry, xattrs: &[Xattr]) -> Result<()> {
        if self.manner.is_dry {
            return Ok(());
        }
        self.side.finish(path, entry)?;
        self.attributes.set(self.side, path, xattrs, self.output)?;
        // An access list changes the permissions, and so does one that was inherited.
        if xattrs.is_empty() { Ok(()) } else { self.side.finish(path, entry) }
    }
}

fn entry_of(member: &Member, manner: &CopyManner) -> Entry {
    let (uid, gid) = manner.owner.map_or((member.uid, member.gid), |owner| (owner.uid, owner.gid));
    let kind = match &member.kind {
        MemberKind::Directory => Kind::Directory,
        MemberKind::Link(target) => Kind::Link(target.clone()),
        MemberKind::Special(special) => Kind::Special(*special),
        MemberKind::File | MemberKind::Name(_) | MemberKind::Unknown(_) => Kind::File,
    };
    let (permissions, modified) = (member.permissions, member.modified);
    Entry { kind, size: member.size, permissions, uid, gid, modified, shared: None }
}

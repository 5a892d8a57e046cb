//! Files of a volume, mounted or not: reaching the attributes by which hints are given and content
//! is moved, and everything below a directory.
//!
//! Both ways go through the same attributes, so a command means the same on a mount and on disks
//! that are not mounted.

use crate::commands::state::why::Why;
use crate::location::expand::expand;
use crate::location::{self, Consent, entries, find, resolve};
use onode::{Class, Error, Result, Volume};
use onode_fs::attachment::ATTACHED;
use onode_fs::placement::{MOVE, SECTIONS};
use onode_fs::{Caller, DirectoryEntry, ErrorKind, FileType, Hint, InodeNumber, XattrFlags};
use onode_fs::{REWRITE, WHY};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VALUE_BYTES_MAX: usize = 64 << 10;
const NAME_BOTH: &str = "name files of mounted volumes, or an image and then paths in it: disk.img /docs";
const ASK: &str = "`onode place` without options shows the placement; `onode stat` the sections";

/// What to do when the fast disk has no room.
pub const NO_ROOM: &str = "`onode divide MOUNT` shows the sections and their sizes; `onode demote` gives copies up";

/// What a command is about: one argument names a file of a mount, two the disks and a path in the
/// volume.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// A file or directory of a mounted volume; or the device spec of one that is not mounted.
    target: OsString,
    /// The file or directory in the volume, if a device spec is given.
    path: Option<PathBuf>,
}

/// A target that was found.
pub struct Files {
    /// The volume, unless it is mounted: then the host knows the files.
    volume: Option<Volume>,
    path: PathBuf,
}

impl Target {
    /// The target of these arguments.
    pub const fn new(target: OsString, path: Option<PathBuf>) -> Self {
        Self { target, path }
    }

    /// Whether it is a file of a mounted volume.
    pub const fn is_mounted(&self) -> bool {
        self.path.is_none()
    }

    /// Opens the volume if it is not mounted, lets `work` have it and closes it.
    pub fn with<T>(&self, read_only: bool, work: impl FnOnce(&Files) -> Result<T>) -> Result<T> {
        let Some(path) = &self.path else {
            let path = PathBuf::from(&self.target);
            if let Err(error) = fs::symlink_metadata(&path) {
                let hint = "name a file of a mounted volume, or a device spec and a path: tier:FAST,BIG /docs";
                return Err(Error::host_file("find", &path, &error).hint(hint));
            }
            return work(&Files { volume: None, path });
        };
        let files =
            Files { volume: Some(location::open(&self.target, read_only, Consent::default())?), path: path.clone() };
        let outcome = work(&files);
        if let Some(volume) = files.volume.filter(|_| !read_only) {
            volume.close()?;
        }
        outcome
    }
}

/// Lets `work` have each of several files, one after the other: paths of mounted volumes, or an
/// image and paths in it, where wildcards are meant in the image. All of them are looked for before
/// `work` has the first.
pub fn with_each(arguments: &[OsString], read_only: bool, mut work: impl FnMut(&Files) -> Result<()>) -> Result<()> {
    let Some((first, paths)) = arguments.split_first() else { return Ok(()) };
    let on_host: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let is_host = paths.is_empty() || Path::new(first).is_dir() || is_on_mount(Path::new(first));
    if is_host {
        for path in &on_host {
            if let Err(error) = fs::symlink_metadata(path) {
                return Err(Error::host_file("find", path, &error).hint(NAME_BOTH));
            }
        }
        return on_host.into_iter().try_for_each(|path| work(&Files { volume: None, path }));
    }
    let volume = location::open(first, read_only, Consent::default())?;
    let paths = expand(volume.files(), on_host.get(1..).unwrap_or_default())?;
    let found = paths.iter().try_for_each(|path| resolve(volume.files(), path).map(drop));
    let mut files = Files { volume: Some(volume), path: PathBuf::new() };
    let outcome = found.and_then(|()| {
        paths.into_iter().try_for_each(|path| {
            files.path = path;
            work(&files)
        })
    });
    if let Some(volume) = files.volume.filter(|_| !read_only) {
        volume.close()?;
    }
    outcome
}

/// Whether a path lies on a mounted volume of ours: there every file has hints.
fn is_on_mount(path: &Path) -> bool {
    rustix::fs::lgetxattr(path, attribute(Hint::Lifetime), &mut [0; 64][..]).is_ok()
}

/// The attribute of a hint. That with `user.` before it other file systems would keep, too.
fn attribute(hint: Hint) -> &'static str {
    hint.attribute().trim_start_matches("user.")
}

/// Says how many files and directories were changed, and what was not done to their content.
/// If none were changed it says nothing.
pub fn tell_changed(f: &mut fmt::Formatter<'_>, changed: u64, not_done: &str) -> fmt::Result {
    match changed {
        0 => Ok(()),
        1 => write!(f, " (1 file or directory changed, nothing {not_done})"),
        _ => write!(f, " ({changed} files and directories changed, nothing {not_done})"),
    }
}

impl Files {
    /// The path that was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files and directories at and below the path; without `recursive` only itself. Symbolic links
    /// are not followed.
    pub fn all(&self, recursive: bool) -> Result<Vec<PathBuf>> {
        let mut found = vec![self.path.clone()];
        if recursive {
            match &self.volume {
                None => below_on_host(&self.path, &mut found)?,
                Some(volume) => {
                    let top = resolve(volume.files(), &self.path)?;
                    if top.attributes().file_type == FileType::Directory {
                        below(volume, top.inode(), &self.path, &mut found)?;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Whether there was this error because another program removed one of [`all`](Self::all). The
    /// path itself has to be there.
    pub fn is_gone(&self, path: &Path, error: &Error) -> bool {
        let is_there = || fs::symlink_metadata(path).is_ok();
        self.volume.is_none() && path != self.path && (error.class == Class::NotFound || !is_there())
    }

    /// Changes each of [`all`](Self::all); returns how many.
    pub fn change(&self, recursive: bool, change: impl Fn(&Path) -> Result<()>) -> Result<u64> {
        let all = self.all(recursive)?;
        all.iter().try_for_each(|path| change(path))?;
        Ok(all.len() as u64)
    }

    fn get(&self, path: &Path, name: &str) -> Result<String> {
        let what = || match asked(name) {
            Some(Hint::Compress) => format!("cannot tell how {} is compressed", path.display()),
            Some(Hint::Lifetime | Hint::Temperature | Hint::Size | Hint::Parity | Hint::Key) => {
                format!("cannot tell the hints of {}", path.display())
            }
            None if name == WHY => format!("cannot explain {}", path.display()),
            Some(Hint::Placement) | None => format!("cannot tell where {} lies", path.display()),
        };
        let value = match &self.volume {
            None => {
                let mut value = vec![0; VALUE_BYTES_MAX];
                let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice());
                let length = length.map_err(|errno| of_host(what(), path, name, errno))?;
                value.truncate(length);
                value
            }
            Some(volume) => {
                let node = resolve(volume.files(), path)?;
                let value = volume.files().get_xattr(node.inode(), name.as_bytes());
                value.map_err(|error| of_volume(what(), name, &error))?
            }
        };
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    fn set(&self, path: &Path, name: &str, value: &str) -> Result<()> {
        let what = || match asked(name) {
            Some(hint) => format!("cannot set {}={value} for {}", hint.name(), path.display()),
            None => format!("cannot set `{value}` for {}", path.display()),
        };
        match &self.volume {
            None => {
                let flags = rustix::fs::XattrFlags::empty();
                let set = rustix::fs::lsetxattr(path, name, value.as_bytes(), flags);
                set.map_err(|errno| of_host(what(), path, name, errno))
            }
            Some(volume) => {
                let node = resolve(volume.files(), path)?;
                let (key, value) = (name.as_bytes(), value.as_bytes());
                let set = volume.files().set_xattr(&Caller::root(), node.inode(), key, value, XattrFlags::Any);
                set.map_err(|error| of_volume(what(), name, &error))
            }
        }
    }

    /// A hint of a file in words.
    pub fn hint(&self, path: &Path, hint: Hint) -> Result<String> {
        self.get(path, attribute(hint))
    }

    /// Changes a hint of a file.
    pub fn set_hint(&self, path: &Path, hint: Hint, words: &str) -> Result<()> {
        self.set(path, attribute(hint), words)
    }

    /// The hints of a file in the order of [`Hint::ALL`]; none that the volume has no use for.
    pub fn hints(&self, path: &Path) -> Result<Vec<(Hint, String)>> {
        let heeded = Hint::ALL.into_iter().filter(|hint| self.heeds(path, *hint));
        heeded.map(|hint| Ok((hint, self.hint(path, hint)?))).collect()
    }

    /// Whether the volume has a use for a hint.
    fn heeds(&self, path: &Path, hint: Hint) -> bool {
        let Some(volume) = &self.volume else {
            let found = rustix::fs::lgetxattr(path, attribute(hint), &mut [0; 64][..]);
            return !matches!(
                (hint, found),
                (Hint::Compress | Hint::Parity | Hint::Placement | Hint::Key, Err(rustix::io::Errno::OPNOTSUPP))
            );
        };
        match hint {
            Hint::Compress => volume.device().compression().is_some(),
            Hint::Parity => volume.device().parity().is_some(),
            Hint::Placement => volume.device().place().is_some(),
            Hint::Key => volume.device().has_directory_keys(),
            Hint::Lifetime | Hint::Temperature | Hint::Size => true,
        }
    }

    /// Stores a range of a file's content anew.
    pub fn rewrite(&self, path: &Path, offset: u64, length: u64) -> Result<()> {
        let stored = self.set(path, REWRITE, &format!("{offset} {length}"));
        stored.map_err(|mut error| {
            error.what = format!("cannot store {} anew", path.display());
            error
        })
    }

    /// Bytes of a file, and those that it takes on the medium; nothing of what is no file.
    pub fn sizes(&self, path: &Path) -> Result<Option<(u64, u64)>> {
        match &self.volume {
            None => {
                let found = fs::symlink_metadata(path).map_err(|error| Error::host_file("look at", path, &error))?;
                Ok(found.is_file().then(|| (found.len(), found.blocks() * 512)))
            }
            Some(volume) => {
                let node = resolve(volume.files(), path)?;
                let found = node.attributes();
                Ok((found.file_type == FileType::Regular).then(|| (found.size, found.blocks * 512)))
            }
        }
    }

    /// Moves the content of a file.
    pub fn move_content(&self, path: &Path, how: &str) -> Result<()> {
        self.set(path, MOVE, how)
    }

    /// The sections, as the attribute has them.
    pub fn division(&self) -> Result<String> {
        self.get(&self.path, SECTIONS)
    }

    /// Divides the fast disk anew.
    pub fn divide(&self, words: &str) -> Result<()> {
        self.set(&self.path, SECTIONS, words)
    }

    /// The part that comes and goes, in words, and whether it takes part.
    pub fn part(&self) -> Result<(String, bool)> {
        let told = self.get(&self.path, ATTACHED)?;
        let (state, part) = told.split_once(' ').unwrap_or((&told, "a part"));
        Ok((part.to_owned(), state == "attached"))
    }

    /// Lets the part go or come.
    pub fn change_part(&self, how: &str) -> Result<()> {
        self.set(&self.path, ATTACHED, how)
    }

    /// What was said of a file, and what comes of it.
    pub fn why(&self, path: &Path) -> Result<Why> {
        Ok(Why::parse(path, &self.get(path, WHY)?))
    }
}

/// The hint that an attribute is for.
fn asked(name: &str) -> Option<Hint> {
    Hint::ALL.into_iter().find(|hint| attribute(*hint) == name)
}

fn of_host(what: String, path: &Path, attribute: &str, errno: rustix::io::Errno) -> Error {
    match errno {
        rustix::io::Errno::OPNOTSUPP if !is_on_mount(path) => {
            Error::new(Class::Usage, what, "it does not lie on a mounted Onode volume").hint(NAME_BOTH)
        }
        rustix::io::Errno::OPNOTSUPP => unheeded(what, attribute),
        rustix::io::Errno::NODATA => {
            Error::new(Class::Usage, what, "it is not the directory on which a volume is mounted")
                .hint("name that directory, or the disks of a volume that is not mounted: tier:FAST,BIG")
        }
        rustix::io::Errno::INVAL if attribute == WHY => {
            Error::new(Class::Usage, what, "only files and directories have hints").hint("name a file or a directory")
        }
        // What the file system would say in words comes as a number through the mount.
        rustix::io::Errno::INVAL if attribute != REWRITE => {
            Error::new(Class::Usage, what, "no such section, or it cannot be moved").hint(ASK)
        }
        rustix::io::Errno::NOSPC if attribute == REWRITE => {
            let why = "there is no room to store it twice for a moment; what came before it is stored anew";
            Error::new(Class::VolumeFull, what, why).hint("remove something and say the same again")
        }
        rustix::io::Errno::NOSPC => {
            Error::new(Class::VolumeFull, what, "its section of the fast disk has no room for it").hint(NO_ROOM)
        }
        errno => Error::host(what, &io::Error::from(errno)),
    }
}

fn of_volume(what: String, attribute: &str, error: &onode_fs::Error) -> Error {
    match error.kind {
        ErrorKind::NotSupported => unheeded(what, attribute),
        ErrorKind::Invalid if attribute == WHY => {
            Error::new(Class::Usage, what, error.detail.clone()).hint("name a file or a directory")
        }
        ErrorKind::Invalid => Error::new(Class::Usage, what, error.detail.clone()).hint(ASK),
        _ => Volume::error(what, error),
    }
}

/// Why nothing is compressed, and what to do.
const NOTHING_COMPRESSED: (&str, &str) =
    ("nothing on this volume is compressed", "mount it once with `-o compress=fast` (or small, or auto)");

/// The volume does not do what an attribute is for.
fn unheeded(what: String, attribute: &str) -> Error {
    let (why, hint) = match asked(attribute) {
        _ if attribute == REWRITE => NOTHING_COMPRESSED,
        Some(Hint::Compress) => NOTHING_COMPRESSED,
        Some(Hint::Parity) => (
            "files of this volume have no parity of their own",
            "they choose it on flash that was made so: `onode mkfs --parity 0-2`",
        ),
        Some(Hint::Key) => {
            ("directories of this volume have no keys", "they can on an encrypted one: `onode key new DIRECTORY`")
        }
        _ => ("the volume lies on one device", "sections are for volumes on two disks: tier:FAST,BIG"),
    };
    Error::new(Class::Usage, what, why).hint(hint)
}

fn below_on_host(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let top = fs::symlink_metadata(path).map_err(|error| Error::host_file("list", path, &error))?;
    if top.is_dir() { below_directory(path, found) } else { Ok(()) }
}

/// Adds what is below a directory. What another program removes meanwhile is not there.
fn below_directory(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let failed = |error: &io::Error| Error::host_file("list", path, error);
    let entries = match fs::read_dir(path) {
        Err(error) if is_gone(&error) => return Ok(()),
        entries => entries.map_err(|error| failed(&error))?,
    };
    for entry in entries {
        let entry = match entry {
            Err(error) if is_gone(&error) => return Ok(()),
            entry => entry.map_err(|error| failed(&error))?,
        };
        let kind = match entry.file_type() {
            Err(error) if is_gone(&error) => continue,
            kind => kind.map_err(|error| failed(&error))?,
        };
        if kind.is_dir() || kind.is_file() {
            found.push(entry.path());
        }
        if kind.is_dir() {
            below_directory(&entry.path(), found)?;
        }
    }
    Ok(())
}

fn below(volume: &Volume, directory: InodeNumber, path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for DirectoryEntry { name, inode, file_type, .. } in entries(volume.files(), directory, path)? {
        if !matches!(file_type, FileType::Directory | FileType::Regular) {
            continue;
        }
        let inner = path.join(OsStr::from_bytes(&name));
        found.push(inner.clone());
        if file_type == FileType::Directory {
            // It is looked up so that it stays known while its entries are listed.
            let _node = find(volume.files(), &inner)?;
            below(volume, inode, &inner, found)?;
        }
    }
    Ok(())
}

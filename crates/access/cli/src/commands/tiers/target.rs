//! Files of a volume, mounted or not: reaching the attributes by which they are placed and
//! compressed, and everything below a directory.
//!
//! Both ways go through the same attributes, so a command means the same on a mount and on disks
//! that are not mounted.

use crate::location::{self, Consent, entries, find, resolve};
use onode::{Class, Error, Result, Volume};
use onode_fs::attachment::ATTACHED;
use onode_fs::placement::{MOVE, PLACEMENT, SECTIONS, WHEREABOUTS};
use onode_fs::{COMPRESS, REWRITE};
use onode_fs::{Caller, DirectoryEntry, ErrorKind, FileType, InodeNumber, XattrFlags};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const VALUE_BYTES_MAX: usize = 64 << 10;
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

    /// Changes each of [`all`](Self::all); returns how many.
    pub fn change(&self, recursive: bool, change: impl Fn(&Path) -> Result<()>) -> Result<u64> {
        let all = self.all(recursive)?;
        all.iter().try_for_each(|path| change(path))?;
        Ok(all.len() as u64)
    }

    fn get(&self, path: &Path, name: &str) -> Result<String> {
        let what = || match name {
            COMPRESS => format!("cannot tell how {} is compressed", path.display()),
            _ => format!("cannot tell where {} lies", path.display()),
        };
        let value = match &self.volume {
            None => {
                let mut value = vec![0; VALUE_BYTES_MAX];
                let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice());
                let length = length.map_err(|errno| of_host(what(), name, errno))?;
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
        let what = || format!("cannot set `{value}` for {}", path.display());
        match &self.volume {
            None => {
                let flags = rustix::fs::XattrFlags::empty();
                let set = rustix::fs::lsetxattr(path, name, value.as_bytes(), flags);
                set.map_err(|errno| of_host(what(), name, errno))
            }
            Some(volume) => {
                let node = resolve(volume.files(), path)?;
                let (key, value) = (name.as_bytes(), value.as_bytes());
                let set = volume.files().set_xattr(&Caller::root(), node.inode(), key, value, XattrFlags::Any);
                set.map_err(|error| of_volume(what(), name, &error))
            }
        }
    }

    /// The placement of a file in words.
    pub fn placement(&self, path: &Path) -> Result<String> {
        self.get(path, PLACEMENT)
    }

    /// Changes the placement of a file.
    pub fn place(&self, path: &Path, words: &str) -> Result<()> {
        self.set(path, PLACEMENT, words)
    }

    /// How a file is compressed, in a word.
    pub fn compression(&self, path: &Path) -> Result<String> {
        self.get(path, COMPRESS)
    }

    /// Changes how a file is compressed.
    pub fn compress(&self, path: &Path, word: &str) -> Result<()> {
        self.set(path, COMPRESS, word)
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

    /// Where the content of a file is, and why.
    pub fn why(&self, path: &Path) -> Result<Why> {
        let placement = self.placement(path)?;
        let text = self.get(path, WHEREABOUTS)?;
        let mut why = Why { path: path.display().to_string(), placement, ..Why::default() };
        for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
            let bytes = || value.parse().unwrap_or(0);
            match key {
                "big" => why.big_bytes = bytes(),
                "fast" => why.fast_bytes = bytes(),
                "log" => why.log_bytes = bytes(),
                "section" => why.section = Some(value.to_owned()).filter(|name| !name.is_empty()),
                "reason" => why.reasons.push(value.to_owned()),
                _ => {}
            }
        }
        Ok(why)
    }
}

/// Where the content of a file is, and why.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Why {
    pub path: String,
    pub placement: String,
    pub section: Option<String>,
    pub fast_bytes: u64,
    pub big_bytes: u64,
    pub log_bytes: u64,
    pub reasons: Vec<String>,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "file       {}", self.path)?;
        writeln!(f, "placement  {}", self.placement)?;
        writeln!(f, "section    {}", self.section.as_deref().unwrap_or("none: it bypasses the fast device"))?;
        writeln!(f, "fast       {} bytes", self.fast_bytes)?;
        writeln!(f, "big        {} bytes", self.big_bytes)?;
        writeln!(f, "log        {} bytes", self.log_bytes)?;
        self.reasons.iter().try_for_each(|reason| writeln!(f, "because    {reason}"))
    }
}

fn of_host(what: String, attribute: &str, errno: rustix::io::Errno) -> Error {
    match errno {
        rustix::io::Errno::OPNOTSUPP => unheeded(what, attribute),
        rustix::io::Errno::NODATA => {
            Error::new(Class::Usage, what, "it is not the directory on which a volume is mounted")
                .hint("name that directory, or the disks of a volume that is not mounted: tier:FAST,BIG")
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
        ErrorKind::Invalid => Error::new(Class::Usage, what, error.detail.clone()).hint(ASK),
        _ => Volume::error(what, error),
    }
}

/// The volume does not do what an attribute is for.
fn unheeded(what: String, attribute: &str) -> Error {
    if [COMPRESS, REWRITE].contains(&attribute) {
        return Error::new(Class::Usage, what, "nothing on this volume is compressed")
            .hint("mount it once with `-o compress=fast` (or small, or auto)");
    }
    Error::new(Class::Usage, what, "the volume lies on one device")
        .hint("sections are for volumes on two disks: tier:FAST,BIG")
}

fn below_on_host(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let host = |error: &io::Error| Error::host_file("list", path, error);
    if !fs::symlink_metadata(path).map_err(|error| host(&error))?.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|error| host(&error))? {
        let entry = entry.map_err(|error| host(&error))?;
        let kind = entry.file_type().map_err(|error| host(&error))?;
        if kind.is_dir() || kind.is_file() {
            found.push(entry.path());
            below_on_host(&entry.path(), found)?;
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

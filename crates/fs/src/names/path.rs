//! Paths: a volume used by a program without a mount.
//!
//! Paths begin at the root directory, with or without a leading slash. These calls stand on the
//! public ones and promise the same; none of them leaves a use counted.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Attributes, Caller, DirectoryEntry, FileType, InodeNumber, SetAttributes};
use onode_base::ErrorKind;

/// Most symbolic links on the way to one file.
const LINKS_FOLLOWED_MAX: u32 = 40;
const READ_BYTES: usize = 1 << 20;
/// Directories on the way to another one, at most.
const DEPTH_MAX: usize = 1 << 16;
const NAMES_AT_ONCE: usize = 256;

/// Whether to follow a symbolic link at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The file it leads to.
    Yes,
    /// The link itself.
    No,
}

fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

impl FileSystem {
    /// The file at `path`.
    ///
    /// # Errors
    /// `NotFound`, `NotDirectory`; `Invalid` after 40 symbolic links; the device's errors.
    pub fn resolve(&self, path: &[u8], follow: Follow) -> Result<InodeNumber> {
        self.resolve_from(InodeNumber::ROOT, path, follow)
    }

    fn resolve_from(&self, start: InodeNumber, path: &[u8], follow: Follow) -> Result<InodeNumber> {
        // Names still to go, the next one last.
        let mut rest: Vec<Vec<u8>> = components(path).rev().map(<[u8]>::to_vec).collect();
        let mut at = start;
        let mut followed = 0;
        while let Some(name) = rest.pop() {
            let number = self.resolve_name(&mut self.lock(), at, &name)?;
            let is_link = self.attributes(number)?.file_type == FileType::SymbolicLink;
            if !is_link || (rest.is_empty() && follow == Follow::No) {
                at = number;
                continue;
            }
            followed += 1;
            if followed > LINKS_FOLLOWED_MAX {
                return Err(Error::of(ErrorKind::Invalid, number, "too many levels of symbolic links"));
            }
            let target = self.read_link(number)?;
            if target.starts_with(b"/") {
                at = InodeNumber::ROOT;
            }
            rest.extend(components(&target).rev().map(<[u8]>::to_vec));
        }
        Ok(at)
    }

    /// The directory a path's last name is in, and that name.
    ///
    /// # Errors
    /// `Invalid` for the root itself; as [`resolve`](Self::resolve).
    pub fn resolve_parent<'a>(&self, path: &'a [u8]) -> Result<(InodeNumber, &'a [u8])> {
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let path = &path[..end];
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (before, name) = path.split_at(start);
        if name.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the root directory has no name"));
        }
        Ok((self.resolve(before, Follow::Yes)?, name))
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve) and [`read`](Self::read).
    pub fn read_file(&self, path: &[u8]) -> Result<Vec<u8>> {
        let number = self.resolve(path, Follow::Yes)?;
        let mut content = Vec::new();
        loop {
            let start = content.len();
            content.resize(start + READ_BYTES, 0);
            let got = self.read(number, start as u64, &mut content[start..])?;
            content.truncate(start + got);
            if got == 0 {
                return Ok(content);
            }
        }
    }

    /// Makes a file or replaces its content.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve) and [`write`](Self::write).
    pub fn write_file(&self, caller: &Caller, path: &[u8], data: &[u8], permissions: u16) -> Result<InodeNumber> {
        let number = match self.resolve(path, Follow::Yes) {
            Ok(number) => {
                let nothing = SetAttributes { size: Some(0), ..SetAttributes::default() };
                self.set_attributes(caller, number, &nothing)?;
                number
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                let (parent, name) = self.resolve_parent(path)?;
                let made = self.create(caller, parent, name, permissions)?;
                self.forget(made.inode, 1);
                made.inode
            }
            Err(error) => return Err(error),
        };
        let mut done = 0;
        while done < data.len() {
            done += self.write(caller, number, done as u64, &data[done..])?;
        }
        Ok(number)
    }

    /// Makes a directory and those on the way to it, as far as they are not there.
    ///
    /// # Errors
    /// `NotDirectory` if a file is in the way; as [`make_directory`](Self::make_directory).
    pub fn make_directories(&self, caller: &Caller, path: &[u8], permissions: u16) -> Result<InodeNumber> {
        let mut at = InodeNumber::ROOT;
        for name in components(path) {
            at = match self.resolve_from(at, name, Follow::Yes) {
                Ok(number) => number,
                Err(error) if error.kind == ErrorKind::NotFound => {
                    let made = self.make_directory(caller, at, name, permissions)?;
                    self.forget(made.inode, 1);
                    made.inode
                }
                Err(error) => return Err(error),
            };
        }
        if self.attributes(at)?.file_type != FileType::Directory {
            return Err(Error::of(ErrorKind::NotDirectory, at, ""));
        }
        Ok(at)
    }

    /// Removes a file, or a directory with all that is in it; returns how many names went.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve) and [`unlink`](Self::unlink).
    pub fn remove_all(&self, path: &[u8]) -> Result<u64> {
        let (parent, name) = self.resolve_parent(path)?;
        let number = self.resolve_from(parent, name, Follow::No)?;
        if self.attributes(number)?.file_type != FileType::Directory {
            self.unlink(parent, name)?;
            return Ok(1);
        }
        let mut removed = 0;
        // Directories on the way down, with the name each has in the one before.
        let mut way = vec![(parent, number, name.to_vec())];
        while let Some((above, directory, own_name)) = way.last().cloned() {
            let mut below = None;
            for entry in self.some_names(directory, 2)? {
                if entry.file_type == FileType::Directory {
                    below = Some((directory, entry.inode, entry.name));
                    break;
                }
                self.unlink(directory, &entry.name)?;
                removed += 1;
            }
            match below {
                Some(next) => way.push(next),
                None if self.some_names(directory, 2)?.is_empty() => {
                    self.remove_directory(above, &own_name)?;
                    removed += 1;
                    way.pop();
                }
                None => {}
            }
        }
        Ok(removed)
    }

    /// The path of a directory, by the names that it and those above it have.
    ///
    /// # Errors
    /// `NotDirectory`; `Corrupt` if a name is missing; the device's errors.
    pub fn path_of_directory(&self, number: InodeNumber) -> Result<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = number;
        while at != InodeNumber::ROOT {
            let above = InodeNumber(self.directory(&mut self.lock(), at)?.parent);
            let mut name = None;
            self.read_directory(above, 2, &mut |entry| {
                name = (entry.inode == at).then(|| entry.name.clone());
                name.is_none()
            })?;
            // More on the way than there can be: a damaged volume may have a circle.
            let name = name.filter(|_| names.len() < DEPTH_MAX);
            names.push(name.ok_or_else(|| Error::of(ErrorKind::Corrupt, at, "a directory has no name; run fsck"))?);
            at = above;
        }
        names.reverse();
        Ok([&b"/"[..], &names.join(&b'/')].concat())
    }

    fn some_names(&self, directory: InodeNumber, cursor: u64) -> Result<Vec<DirectoryEntry>> {
        let mut names = Vec::new();
        self.read_directory(directory, cursor, &mut |entry| {
            names.push(entry.clone());
            names.len() < NAMES_AT_ONCE
        })?;
        Ok(names)
    }

    /// The names in a directory, without `.` and `..`, in no particular order.
    ///
    /// # Errors
    /// As [`read_directory`](Self::read_directory).
    pub fn list(&self, directory: InodeNumber) -> Result<Vec<DirectoryEntry>> {
        let mut names = Vec::new();
        self.read_directory(directory, 2, &mut |entry| {
            names.push(entry.clone());
            true
        })?;
        Ok(names)
    }

    /// Calls `visit` for the file at `path` and, if it is a directory, for everything below it,
    /// each directory before what is in it. `visit` tells whether to go into a directory. Memory is
    /// used for the directories on the way, not for the tree. What is in a directory whose key is
    /// locked is left out.
    ///
    /// # Errors
    /// Those of `visit`; as [`resolve`](Self::resolve).
    pub fn walk(&self, path: &[u8], visit: &mut dyn FnMut(&[u8], &Attributes) -> Result<bool>) -> Result<()> {
        let start = self.resolve(path, Follow::No)?;
        let names: Vec<&[u8]> = components(path).collect();
        let shown = [&b"/"[..], &names.join(&b'/')].concat();
        let attributes = self.attributes(start)?;
        let mut way = Vec::new();
        if visit(&shown, &attributes)? && attributes.file_type == FileType::Directory {
            way.push((start, shown, 2));
        }
        while let Some((directory, shown, cursor)) = way.pop() {
            let mut next = None;
            match self.read_directory(directory, cursor, &mut |entry| {
                next = Some(entry.clone());
                false
            }) {
                Err(error) if error.kind == ErrorKind::KeyNeeded => continue,
                read => read?,
            };
            let Some(entry) = next else { continue };
            let slash: &[u8] = if shown.ends_with(b"/") { b"" } else { b"/" };
            let below = [&shown, slash, &entry.name].concat();
            way.push((directory, shown, entry.cursor));
            let attributes = self.attributes(entry.inode)?;
            if visit(&below, &attributes)? && attributes.file_type == FileType::Directory {
                way.push((entry.inode, below, 2));
            }
        }
        Ok(())
    }
}

//! The side of a copy that is a volume.

use super::{Entry, Kind, Side};
use crate::location::{Node, entries, failed, find, parent, resolve};
use onode::{Class, Error, Result, Volume};
use onode_fs::{Caller, FileSystem, FileType, SetAttributes, SetTime};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A volume.
#[derive(Clone, Copy, Debug)]
pub struct InVolume<'a>(pub &'a Volume);

impl InVolume<'_> {
    fn files(&self) -> &FileSystem {
        self.0.files()
    }
}

impl Side for InVolume<'_> {
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let Some(node) = find(self.files(), path)? else { return Ok(None) };
        let found = node.attributes();
        let kind = match found.file_type {
            FileType::Regular => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::SymbolicLink => {
                let target = self.files().read_link(node.inode()).map_err(|error| failed("read", path, &error))?;
                Kind::Link(OsString::from_vec(target))
            }
            FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice | FileType::Socket => Kind::Special,
        };
        Ok(Some(Entry {
            kind,
            size: found.size,
            permissions: found.permissions,
            uid: found.uid,
            gid: found.gid,
            modified: found.modified,
        }))
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        let node = resolve(self.files(), path)?;
        let entries = entries(self.files(), node.inode(), path)?;
        Ok(entries.into_iter().map(|entry| OsString::from_vec(entry.name)).collect())
    }

    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let node = resolve(self.files(), path)?;
        self.files().read(node.inode(), offset, buffer).map_err(|error| failed("read", path, &error))
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        let (directory, name) = parent(self.files(), path)?;
        let made = self.files().make_directory(&Caller::root(), directory.inode(), name, 0o755);
        drop(Node::counted(self.files(), made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()> {
        let (directory, name) = parent(self.files(), path)?;
        if find(self.files(), path)?.is_some_and(|there| there.attributes().file_type == FileType::SymbolicLink) {
            self.files().unlink(directory.inode(), name).map_err(|error| failed("replace", path, &error))?;
        }
        let made = self.files().make_symbolic_link(&Caller::root(), directory.inode(), name, target.as_bytes());
        drop(Node::counted(self.files(), made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_file(&self, path: &Path) -> Result<()> {
        match find(self.files(), path)? {
            Some(node) => {
                let empty = SetAttributes { size: Some(0), ..SetAttributes::default() };
                let emptied = self.files().set_attributes(&Caller::root(), node.inode(), &empty);
                emptied.map(drop).map_err(|error| failed("empty", path, &error))
            }
            None => {
                let (directory, name) = parent(self.files(), path)?;
                let made = self.files().create(&Caller::root(), directory.inode(), name, 0o600);
                drop(Node::counted(self.files(), made.map_err(|error| failed("make", path, &error))?));
                Ok(())
            }
        }
    }

    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let node = resolve(self.files(), path)?;
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let wrote = self.files().write(&Caller::root(), node.inode(), offset + done as u64, rest);
            match wrote.map_err(|error| failed("write", path, &error))? {
                0 => {
                    return Err(Error::new(
                        Class::VolumeFull,
                        format!("cannot write {}", path.display()),
                        "it is full",
                    ));
                }
                more => done += more,
            }
        }
        Ok(())
    }

    fn finish(&self, path: &Path, entry: &Entry) -> Result<()> {
        let node = resolve(self.files(), path)?;
        let change = SetAttributes {
            permissions: Some(entry.permissions),
            uid: Some(entry.uid),
            gid: Some(entry.gid),
            size: (entry.kind == Kind::File).then_some(entry.size),
            modified: Some(SetTime::At(entry.modified)),
            ..SetAttributes::default()
        };
        let changed = self.files().set_attributes(&Caller::root(), node.inode(), &change);
        changed.map(drop).map_err(|error| failed("finish", path, &error))
    }

    fn name(&self, path: &Path) -> String {
        format!("{}:/{}", self.0.spec(), path.display().to_string().trim_start_matches('/'))
    }
}

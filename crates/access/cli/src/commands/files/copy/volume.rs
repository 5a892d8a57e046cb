//! The side of a copy that is a volume.

use super::{Entry, Identity, Kind, Side, Special, Xattr};
use crate::location::{Node, entries, failed, find, parent, resolve};
use onode::{Class, Error, Result, Spec, Volume};
use onode_fs::{Caller, ErrorKind, FileSystem, FileType, Seek, SetAttributes, SetTime, XattrFlags};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// A volume.
#[derive(Clone, Copy, Debug)]
pub struct InVolume<'a> {
    /// What it lies on, for people.
    pub spec: &'a Spec,
    /// Its files.
    pub files: &'a FileSystem,
}

impl<'a> InVolume<'a> {
    /// One that is open.
    pub fn new(volume: &'a Volume) -> Self {
        Self { spec: volume.spec(), files: volume.files() }
    }
}

impl Side for InVolume<'_> {
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let Some(node) = find(self.files, path)? else { return Ok(None) };
        let found = node.attributes();
        let kind = match found.file_type {
            FileType::Regular => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::SymbolicLink => {
                let target = self.files.read_link(node.inode()).map_err(|error| failed("read", path, &error))?;
                Kind::Link(OsString::from_vec(target))
            }
            file_type @ (FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice | FileType::Socket) => {
                Kind::Special(Special { file_type, device: found.device })
            }
        };
        let shared = Identity { file_system: 0, inode: found.inode.0 };
        Ok(Some(Entry {
            shared: (found.links > 1 && kind != Kind::Directory).then_some(shared),
            kind,
            size: found.size,
            permissions: found.permissions,
            uid: found.uid,
            gid: found.gid,
            modified: found.modified,
        }))
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        let node = resolve(self.files, path)?;
        let entries = entries(self.files, node.inode(), path)?;
        Ok(entries.into_iter().map(|entry| OsString::from_vec(entry.name)).collect())
    }

    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let node = resolve(self.files, path)?;
        self.files.read(node.inode(), offset, buffer).map_err(|error| failed("read", path, &error))
    }

    fn data(&self, path: &Path, offset: u64) -> Result<Option<Range<u64>>> {
        let node = resolve(self.files, path)?;
        let seek = |from, what| match self.files.seek(node.inode(), from, what) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind == ErrorKind::NoSuchOffset => Ok(None),
            Err(error) => Err(failed("read", path, &error)),
        };
        let Some(start) = seek(offset, Seek::Data)? else { return Ok(None) };
        Ok(seek(start, Seek::Hole)?.map(|end| start..end))
    }

    fn xattrs(&self, path: &Path) -> Result<Vec<Xattr>> {
        let node = resolve(self.files, path)?;
        let read = |error| failed("read the extended attributes of", path, &error);
        let names = self.files.list_xattrs(node.inode()).map_err(read)?;
        let mut xattrs = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let value = self.files.get_xattr(node.inode(), name).map_err(read)?;
            xattrs.push(Xattr { name: name.to_vec(), value });
        }
        xattrs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(xattrs)
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        let (directory, name) = parent(self.files, path)?;
        let made = self.files.make_directory(&Caller::root(), directory.inode(), name, 0o755);
        drop(Node::counted(self.files, made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()> {
        let (directory, name) = parent(self.files, path)?;
        if find(self.files, path)?.is_some_and(|there| there.attributes().file_type == FileType::SymbolicLink) {
            self.files.unlink(directory.inode(), name).map_err(|error| failed("replace", path, &error))?;
        }
        let made = self.files.make_symbolic_link(&Caller::root(), directory.inode(), name, target.as_bytes());
        drop(Node::counted(self.files, made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_name(&self, path: &Path, of: &Path) -> Result<()> {
        let node = resolve(self.files, of)?;
        let (directory, name) = parent(self.files, path)?;
        let made = self.files.link(node.inode(), directory.inode(), name);
        drop(Node::counted(self.files, made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_special(&self, path: &Path, special: Special) -> Result<()> {
        let (directory, name) = parent(self.files, path)?;
        let mode = special.file_type.mode_bits() | 0o600;
        let made = self.files.make_node(&Caller::root(), directory.inode(), name, mode, special.device);
        drop(Node::counted(self.files, made.map_err(|error| failed("make", path, &error))?));
        Ok(())
    }

    fn make_file(&self, path: &Path) -> Result<()> {
        match find(self.files, path)? {
            Some(node) => {
                let empty = SetAttributes { size: Some(0), ..SetAttributes::default() };
                let emptied = self.files.set_attributes(&Caller::root(), node.inode(), &empty);
                emptied.map(drop).map_err(|error| failed("empty", path, &error))
            }
            None => {
                let (directory, name) = parent(self.files, path)?;
                let made = self.files.create(&Caller::root(), directory.inode(), name, 0o600);
                drop(Node::counted(self.files, made.map_err(|error| failed("make", path, &error))?));
                Ok(())
            }
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let (directory, name) = parent(self.files, path)?;
        self.files.unlink(directory.inode(), name).map_err(|error| failed("replace", path, &error))
    }

    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let node = resolve(self.files, path)?;
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let wrote = self.files.write(&Caller::root(), node.inode(), offset + done as u64, rest);
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

    fn set_xattr(&self, path: &Path, xattr: &Xattr) -> Result<bool> {
        let node = resolve(self.files, path)?;
        let Xattr { name, value } = xattr;
        match self.files.set_xattr(&Caller::root(), node.inode(), name, value, XattrFlags::Any) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotSupported => Ok(false),
            Err(error) => {
                let action = format!("set the extended attribute {} of", OsStr::from_bytes(name).display());
                Err(failed(&action, path, &error))
            }
        }
    }

    fn finish(&self, path: &Path, entry: &Entry) -> Result<()> {
        let node = resolve(self.files, path)?;
        let change = SetAttributes {
            permissions: Some(entry.permissions),
            uid: Some(entry.uid),
            gid: Some(entry.gid),
            size: (entry.kind == Kind::File).then_some(entry.size),
            modified: Some(SetTime::At(entry.modified)),
            ..SetAttributes::default()
        };
        let changed = self.files.set_attributes(&Caller::root(), node.inode(), &change);
        changed.map(drop).map_err(|error| failed("finish", path, &error))
    }

    fn name(&self, path: &Path) -> String {
        format!("{}:/{}", self.spec, path.display().to_string().trim_start_matches('/'))
    }
}

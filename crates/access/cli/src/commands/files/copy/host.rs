//! The side of a copy that is the host's own file system.

use super::near::Near;
use super::{Entry, Identity, Kind, Side, Special, Xattr};
use onode::{Error, Result};
use onode_base::Timestamp;
use onode_fs::FileType;
use rustix::fs::{AtFlags, CWD, Mode, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, lsetxattr};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

/// What the kernel allows for the value of an extended attribute, and for the list of all names.
const XATTR_BYTES_MAX: usize = 64 << 10;

/// The host's file system.
#[derive(Clone, Copy, Debug)]
pub struct Host;

fn failed<'a>(action: &'a str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |error| Error::host_file(action, path, &error)
}

/// A path for `action` that the kernel takes, however long the file's own is.
fn near<'p>(action: &str, path: &'p Path) -> Result<Near<'p>> {
    Near::to(path).map_err(|error| Error::host_file(action, path, &error))
}

impl Side for Host {
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let near = match Near::to(path) {
            Ok(near) => near,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::host_file("read", path, &error)),
        };
        let metadata = match fs::symlink_metadata(&near) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::host_file("read", path, &error)),
        };
        let kind = match FileType::from_mode(metadata.mode()) {
            Some(FileType::Regular) => Kind::File,
            Some(FileType::Directory) => Kind::Directory,
            Some(FileType::SymbolicLink) => {
                Kind::Link(fs::read_link(&near).map_err(failed("read", path))?.into_os_string())
            }
            Some(file_type) => Kind::Special(Special { file_type, device: metadata.rdev() }),
            None => Kind::Special(Special { file_type: FileType::Socket, device: 0 }),
        };
        let shared = Identity { file_system: metadata.dev(), inode: metadata.ino() };
        Ok(Some(Entry {
            size: metadata.len(),
            permissions: (metadata.mode() & 0o7777) as u16,
            uid: metadata.uid(),
            gid: metadata.gid(),
            modified: Timestamp {
                seconds: metadata.mtime(),
                nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or_default(),
            },
            shared: (metadata.nlink() > 1 && kind != Kind::Directory).then_some(shared),
            kind,
        }))
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        Ok(Near::to(path).is_ok_and(|near| near.as_ref().is_dir()))
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(near("list", path)?).map_err(failed("list", path))? {
            names.push(entry.map_err(failed("list", path))?.file_name());
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let file = File::open(near("open", path)?).map_err(failed("open", path))?;
        file.read_at(buffer, offset).map_err(failed("read", path))
    }

    fn data(&self, path: &Path, offset: u64) -> Result<Option<Range<u64>>> {
        let file = File::open(near("open", path)?).map_err(failed("open", path))?;
        let seek = |from| rustix::fs::seek(&file, from);
        match seek(rustix::fs::SeekFrom::Data(offset)) {
            Ok(start) => {
                let end = seek(rustix::fs::SeekFrom::Hole(start));
                Ok(Some(start..end.map_err(|errno| Error::host_file("read", path, &errno.into()))?))
            }
            Err(Errno::NXIO) => Ok(None),
            // Where holes are not told, all is data.
            Err(_) => {
                let size = file.metadata().map_err(failed("read", path))?.len();
                Ok((offset < size).then_some(offset..size))
            }
        }
    }

    fn xattrs(&self, path: &Path) -> Result<Vec<Xattr>> {
        let read = |errno: Errno| Error::host_file("read the extended attributes of", path, &errno.into());
        let near = near("read the extended attributes of", path)?;
        let listed = filled(|buffer| llistxattr(near.as_ref(), buffer));
        let names = match listed {
            Ok(names) => names,
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            Err(errno) => return Err(read(errno)),
        };
        let mut xattrs = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            match filled(|buffer| lgetxattr(near.as_ref(), OsStr::from_bytes(name), buffer)) {
                Ok(value) => xattrs.push(Xattr { name: name.to_vec(), value }),
                // It went away meanwhile.
                Err(Errno::NODATA) => {}
                Err(errno) => return Err(read(errno)),
            }
        }
        xattrs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(xattrs)
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        fs::create_dir(near("make", path)?).map_err(failed("make", path))
    }

    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()> {
        let near = near("make", path)?;
        if fs::symlink_metadata(&near).is_ok_and(|there| there.is_symlink()) {
            fs::remove_file(&near).map_err(failed("replace", path))?;
        }
        symlink(target, &near).map_err(failed("make", path))
    }

    fn make_name(&self, path: &Path, of: &Path) -> Result<()> {
        fs::hard_link(near("read", of)?, near("make", path)?).map_err(failed("make", path))
    }

    fn make_special(&self, path: &Path, Special { file_type, device }: Special) -> Result<()> {
        let file_type = rustix::fs::FileType::from_raw_mode(file_type.mode_bits());
        let made =
            rustix::fs::mknodat(CWD, near("make", path)?.as_ref(), file_type, Mode::from_bits_truncate(0o600), device);
        made.map_err(|errno| Error::host_file("make", path, &errno.into()))
    }

    fn make_file(&self, path: &Path) -> Result<()> {
        File::create(near("make", path)?).map(drop).map_err(failed("make", path))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(near("replace", path)?).map_err(failed("replace", path))
    }

    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let file = OpenOptions::new().write(true).open(near("open", path)?).map_err(failed("open", path))?;
        file.write_all_at(data, offset).map_err(failed("write", path))
    }

    fn set_xattr(&self, path: &Path, xattr: &Xattr) -> Result<bool> {
        let name = OsStr::from_bytes(&xattr.name);
        match lsetxattr(near("set an extended attribute of", path)?.as_ref(), name, &xattr.value, XattrFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => Ok(false),
            Err(errno) => {
                let action = format!("set the extended attribute {} of", name.display());
                Err(Error::host_file(&action, path, &errno.into()))
            }
        }
    }

    fn finish(&self, path: &Path, entry: &Entry) -> Result<()> {
        let change = failed("finish", path);
        let near = near("finish", path)?;
        // A link that stands where a file or directory goes is followed, as when it was written.
        let is_followed = matches!(entry.kind, Kind::File | Kind::Directory);
        let there = if is_followed { fs::metadata(&near) } else { fs::symlink_metadata(&near) };
        let there = there.map_err(&change)?;
        if rustix::process::geteuid().is_root() && (there.uid(), there.gid()) != (entry.uid, entry.gid) {
            let (uid, gid) = (Some(entry.uid), Some(entry.gid));
            let given = if is_followed { chown(&near, uid, gid) } else { lchown(&near, uid, gid) };
            given.map_err(&change)?;
        }
        if entry.kind == Kind::File && there.len() != entry.size {
            let file = File::options().write(true).open(&near).map_err(&change)?;
            file.set_len(entry.size).map_err(&change)?;
        }
        let flags = if is_followed { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let time = Timespec { tv_sec: entry.modified.seconds, tv_nsec: entry.modified.nanoseconds.into() };
        let accessed = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = Timestamps { last_access: accessed, last_modification: time };
        rustix::fs::utimensat(CWD, near.as_ref(), &times, flags).map_err(|errno| change(errno.into()))?;
        if matches!(entry.kind, Kind::Link(_)) {
            return Ok(());
        }
        fs::set_permissions(&near, fs::Permissions::from_mode(u32::from(entry.permissions))).map_err(&change)
    }

    fn name(&self, path: &Path) -> String {
        path.display().to_string()
    }
}

/// What a call writes into a buffer: neither a value nor a list is ever larger.
fn filled(call: impl Fn(&mut [u8]) -> std::result::Result<usize, Errno>) -> std::result::Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; XATTR_BYTES_MAX];
    let length = call(&mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

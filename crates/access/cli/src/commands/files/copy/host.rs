//! The side of a copy that is the host's own file system.

use super::{Entry, Kind, Side};
use onode::{Error, Result};
use onode_base::Timestamp;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The host's file system.
#[derive(Clone, Copy, Debug)]
pub struct Host;

fn failed<'a>(action: &'a str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |error| Error::host_file(action, path, &error)
}

impl Side for Host {
    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::host_file("read", path, &error)),
        };
        let kind = if metadata.is_file() {
            Kind::File
        } else if metadata.is_dir() {
            Kind::Directory
        } else if metadata.is_symlink() {
            Kind::Link(fs::read_link(path).map_err(failed("read", path))?.into_os_string())
        } else {
            Kind::Special
        };
        Ok(Some(Entry {
            kind,
            size: metadata.len(),
            permissions: (metadata.mode() & 0o7777) as u16,
            uid: metadata.uid(),
            gid: metadata.gid(),
            modified: Timestamp {
                seconds: metadata.mtime(),
                nanoseconds: u32::try_from(metadata.mtime_nsec()).unwrap_or_default(),
            },
        }))
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        Ok(path.is_dir())
    }

    fn names(&self, path: &Path) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed("list", path))? {
            names.push(entry.map_err(failed("list", path))?.file_name());
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let file = File::open(path).map_err(failed("open", path))?;
        file.read_at(buffer, offset).map_err(failed("read", path))
    }

    fn make_directory(&self, path: &Path) -> Result<()> {
        fs::create_dir(path).map_err(failed("make", path))
    }

    fn make_link(&self, path: &Path, target: &OsStr) -> Result<()> {
        if fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) {
            fs::remove_file(path).map_err(failed("replace", path))?;
        }
        symlink(target, path).map_err(failed("make", path))
    }

    fn make_file(&self, path: &Path) -> Result<()> {
        File::create(path).map(drop).map_err(failed("make", path))
    }

    fn write(&self, path: &Path, offset: u64, data: &[u8]) -> Result<()> {
        let file = OpenOptions::new().write(true).open(path).map_err(failed("open", path))?;
        file.write_all_at(data, offset).map_err(failed("write", path))
    }

    fn finish(&self, path: &Path, entry: &Entry) -> Result<()> {
        let change = failed("finish", path);
        if rustix::process::geteuid().is_root() {
            let give = if matches!(entry.kind, Kind::Link(_)) { lchown } else { chown };
            give(path, Some(entry.uid), Some(entry.gid)).map_err(&change)?;
        }
        let file = File::options().read(true).write(entry.kind == Kind::File).open(path).map_err(&change)?;
        if entry.kind == Kind::File {
            file.set_len(entry.size).map_err(&change)?;
        }
        file.set_modified(system_time(entry.modified)).map_err(&change)?;
        file.set_permissions(fs::Permissions::from_mode(u32::from(entry.permissions))).map_err(&change)
    }

    fn name(&self, path: &Path) -> String {
        path.display().to_string()
    }
}

fn system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let seconds = if time.seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    };
    seconds.unwrap_or(SystemTime::UNIX_EPOCH) + Duration::from_nanos(u64::from(time.nanoseconds))
}

//! Paths of the host that are longer than one call of the kernel takes.
//!
//! Directories may lie in each other as deep as a file system has room for; only the path that a
//! call is given has a bound. So the way to such a file is gone in parts, each from the directory
//! where the one before ended.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a call of the kernel takes.
const PATH_BYTES_MAX: usize = 4095;
/// A part of a longer path: what leads to its directory has to fit in front of the last one.
const PART_BYTES_MAX: usize = 4000;

/// A path that the kernel takes, as long as this lives.
pub struct Near<'p> {
    path: Cow<'p, Path>,
    /// The directory on the way to the file in which the path begins, if it is not the file's own.
    _directory: Option<OwnedFd>,
}

impl<'p> Near<'p> {
    /// One for the file at `path`.
    ///
    /// # Errors
    /// Those of the directories on the way.
    pub fn to(path: &'p Path) -> io::Result<Self> {
        let mut rest = path.as_os_str().as_bytes();
        if rest.len() <= PATH_BYTES_MAX {
            return Ok(Self { path: path.into(), _directory: None });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory: Option<OwnedFd> = None;
        while let Some(part) = rest.get(..PART_BYTES_MAX) {
            let end = part.iter().rposition(|byte| *byte == b'/').filter(|end| *end > 0);
            let (part, behind) = rest.split_at(end.ok_or(Errno::NAMETOOLONG)?);
            let from = directory.as_ref().map_or(CWD, AsFd::as_fd);
            directory = Some(rustix::fs::openat(from, part, flags, Mode::empty())?);
            let name = behind.iter().position(|byte| *byte != b'/').unwrap_or(behind.len());
            rest = behind.get(name..).unwrap_or_default();
        }
        let path = match &directory {
            Some(directory) => {
                let near = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
                near.join(OsStr::from_bytes(rest)).into()
            }
            None => path.into(),
        };
        Ok(Self { path, _directory: directory })
    }
}

impl AsRef<Path> for Near<'_> {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

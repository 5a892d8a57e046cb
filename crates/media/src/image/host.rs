//! The file of the host below an image: opening, locking, positioned reads and writes, holes.
//!
//! It turns every refusal of the operating system into a kind that says what the caller can do. It
//! knows nothing of pages or blocks.

use crate::error::{Error, MediaErrorKind, Result};
use alloc::format;
use alloc::string::ToString;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) struct HostFile {
    file: File,
    path: PathBuf,
    can_punch: AtomicBool,
}

impl Drop for HostFile {
    /// The lock would end with the last descriptor; but a child that another thread of this program
    /// is about to start may still have one for a moment.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl HostFile {
    /// Opens and locks a file: alone if it is to be written, shared otherwise.
    pub(super) fn open(path: &Path, options: &OpenOptions, write: bool) -> Result<Self> {
        let file = options.open(path).map_err(|error| of_open(path, write, &error))?;
        let metadata = file.metadata().map_err(|error| of_io(path, "look at", &error))?;
        if !metadata.is_file() {
            let detail = format!("{} is not a regular file", path.display());
            return Err(Error::new(MediaErrorKind::NotAnImage, detail));
        }
        let lock = if write { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        match rustix::fs::flock(&file, lock) {
            Ok(()) => Ok(Self { file, path: path.to_path_buf(), can_punch: AtomicBool::new(true) }),
            Err(Errno::WOULDBLOCK) => {
                let detail = format!("{}: unmount it or end the command that uses it, then retry", path.display());
                Err(Error::new(MediaErrorKind::Locked, detail))
            }
            Err(errno) => Err(of_io(path, "lock", &errno.into())),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|error| of_io(&self.path, "look at", &error))?.len())
    }

    pub(super) fn set_bytes(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes).map_err(|error| of_io(&self.path, "resize", &error))
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let detail = format!("{} ends before byte {}", self.path.display(), offset + bytes.len() as u64);
                Error::new(MediaErrorKind::Damaged, detail)
            }
            _ => of_io(&self.path, "read", &error),
        })
    }

    /// Whether the byte at `offset` can be read without waiting for the host's disk; true where
    /// the host does not tell.
    pub(super) fn is_cached(&self, offset: u64) -> bool {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&self.file, &mut buffers, offset, ReadWriteFlags::NOWAIT) != Err(Errno::AGAIN)
    }

    /// Tells the host that a range will be read soon. Advice: nothing happens where it is not
    /// taken.
    pub(super) fn announce(&self, offset: u64, bytes: u64) {
        if let Some(bytes) = NonZeroU64::new(bytes) {
            let _ = rustix::fs::fadvise(&self.file, offset, Some(bytes), Advice::WillNeed);
        }
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| of_io(&self.path, "write", &error))
    }

    /// Gives the space of a range back to the host. Returns false, and leaves any content, where
    /// the host cannot.
    pub(super) fn punch(&self, offset: u64, bytes: u64) -> Result<bool> {
        if bytes == 0 || !self.can_punch.load(Ordering::Relaxed) {
            return Ok(bytes == 0);
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, how, offset, bytes) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.can_punch.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Err(errno) => Err(of_io(&self.path, "punch a hole into", &errno.into())),
        }
    }

    /// Makes a range read as zeros, as a hole if the host can.
    pub(super) fn zero(&self, offset: u64, bytes: u64) -> Result<()> {
        if self.punch(offset, bytes)? {
            return Ok(());
        }
        fill(self, offset, bytes, 0)
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|error| of_io(&self.path, "flush", &error))
    }

    pub(super) fn sync_all(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| of_io(&self.path, "flush", &error))
    }
}

/// Writes `bytes` times the same byte.
pub(super) fn fill(file: &HostFile, offset: u64, bytes: u64, byte: u8) -> Result<()> {
    let piece = [byte; 4096];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(piece.len() as u64);
        file.write(offset + done, &piece[..part as usize])?;
        done += part;
    }
    Ok(())
}

fn of_open(path: &Path, write: bool, error: &io::Error) -> Error {
    let place = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Error::new(MediaErrorKind::NotFound, place.to_string()),
        io::ErrorKind::AlreadyExists => Error::new(MediaErrorKind::Exists, place.to_string()),
        // No file is there, and none may be made.
        io::ErrorKind::PermissionDenied if !path.exists() => {
            Error::new(MediaErrorKind::Denied, format!("{place} cannot be made ({error})"))
        }
        io::ErrorKind::PermissionDenied if write => {
            let detail = format!("{place} cannot be written ({error}); open it read-only or change its permissions");
            Error::new(MediaErrorKind::Denied, detail)
        }
        io::ErrorKind::ReadOnlyFilesystem if write => {
            let detail = format!("{place} cannot be written ({error}); open it read-only");
            Error::new(MediaErrorKind::ReadOnly, detail)
        }
        _ => of_io(path, "open", error),
    }
}

fn of_io(path: &Path, verb: &str, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            MediaErrorKind::HostFull
        }
        io::ErrorKind::ReadOnlyFilesystem => MediaErrorKind::ReadOnly,
        io::ErrorKind::PermissionDenied => MediaErrorKind::Denied,
        _ => MediaErrorKind::Host,
    };
    Error::new(kind, format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_host_have_their_kinds() {
        let path = Path::new("disk.img");
        let of = |errno: Errno| of_io(path, "write", &errno.into()).kind;
        assert_eq!(of(Errno::NOSPC), MediaErrorKind::HostFull);
        assert_eq!(of(Errno::DQUOT), MediaErrorKind::HostFull);
        assert_eq!(of(Errno::FBIG), MediaErrorKind::HostFull);
        assert_eq!(of(Errno::ROFS), MediaErrorKind::ReadOnly);
        assert_eq!(of(Errno::IO), MediaErrorKind::Host);
        assert_eq!(of(Errno::ACCESS), MediaErrorKind::Denied);
        let opening = |errno: Errno, write| of_open(path, write, &errno.into()).kind;
        let opening_there = |errno: Errno, write| of_open(Path::new("/"), write, &errno.into()).kind;
        assert_eq!(opening_there(Errno::ACCESS, true), MediaErrorKind::Denied);
        assert_eq!(opening_there(Errno::ROFS, true), MediaErrorKind::ReadOnly);
        assert_eq!(opening_there(Errno::ACCESS, false), MediaErrorKind::Denied);
        assert_eq!(opening(Errno::ACCESS, true), MediaErrorKind::Denied);
        assert_eq!(opening(Errno::NOENT, true), MediaErrorKind::NotFound);
        assert_eq!(opening(Errno::EXIST, true), MediaErrorKind::Exists);
    }
}

//! A block device or a plain file, opened for direct input and output and for one user alone.
//!
//! It keeps true: whoever writes has the device to himself (`O_EXCL` keeps mounts and volume
//! managers out, a lock keeps other processes of Onode out), and errors of the device are told
//! apart from mistakes of the host.

mod aligned;
mod in_flight;
mod in_the_way;
mod posted;
mod shared;

use super::ioctl;
use super::kind::{Kind, identify, stripe_of_device};
use crate::blockdev::{BlockDev, SECTOR_BYTES, SharedDisk, check_request, too_short};
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::OpenMode;
use crate::tag::IoTag;
use aligned::{ALIGNMENT, AlignedBuffer, is_aligned};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use posted::Posted;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;
use shared::SharedFile;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// A device in the hands of this process.
pub struct DeviceFile {
    /// What is under way, if the kernel was asked to work beside us. It goes before the file does.
    posted: Option<Posted>,
    pub(super) file: Arc<File>,
    pub(super) name: String,
    /// Bytes of the file or device; who shares it sees it grow.
    bytes: Arc<AtomicU64>,
    is_block_device: bool,
    /// Whether buffers have to be aligned.
    pub(super) direct: bool,
    can_punch: bool,
    can_discard: bool,
    buffer: AlignedBuffer,
}

impl DeviceFile {
    /// Opens a block device or a file and keeps others out.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, `Locked` (mounted, or in use), `NotAnImage` (neither file nor block
    /// device), `ReadOnly`, `Host`.
    pub fn open(path: &Path, mode: OpenMode) -> Result<Self> {
        let kind = identify(path)?;
        let is_block_device = match kind {
            Kind::File => false,
            Kind::Block | Kind::Zoned => true,
            Kind::Mtd | Kind::Other => {
                let detail = format!("{} is neither a file nor a block device", path.display());
                return Err(Error::new(MediaErrorKind::NotAnImage, detail));
            }
        };
        let write = mode == OpenMode::ReadWrite;
        let exclusive = if is_block_device && write { OFlags::EXCL } else { OFlags::empty() };
        let open = |direct: OFlags| {
            let flags = (exclusive | direct).bits().cast_signed();
            OpenOptions::new().read(true).write(write).custom_flags(flags).open(path)
        };
        let (file, direct) = match open(OFlags::DIRECT) {
            // File systems in memory have no direct way.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => (open(OFlags::empty()), false),
            opened => (opened, true),
        };
        let mut file = file.map_err(|error| of_open(path, &error))?;
        lock(&file, path, write)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(|error| of_open(path, &error))?;
        if is_block_device {
            let sector = rustix::fs::ioctl_blksszget(&file).map_err(|errno| of_open(path, &errno.into()))?;
            if sector as usize > SECTOR_BYTES {
                let detail = format!("{} has sectors of {sector} bytes, more than {SECTOR_BYTES}", path.display());
                return Err(Error::new(MediaErrorKind::OutOfRange, detail));
            }
        }
        Ok(Self {
            posted: None,
            file: Arc::new(file),
            name: path.display().to_string(),
            bytes: Arc::new(AtomicU64::new(bytes)),
            is_block_device,
            direct,
            can_punch: true,
            can_discard: true,
            buffer: AlignedBuffer::default(),
        })
    }

    /// Makes a plain file at least `bytes` long; a device stays as long as it is.
    ///
    /// # Errors
    /// `HostFull`, `Host`.
    pub fn extend(&mut self, bytes: u64) -> Result<()> {
        if !self.is_block_device && self.bytes() < bytes {
            self.file.set_len(bytes).map_err(|error| self.failed("resize", &error, MediaErrorKind::Host))?;
            self.bytes.store(bytes, Ordering::Release);
        }
        Ok(())
    }

    /// The file itself, for requests of one kind of device.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<()> {
        check_request(&self.name, self.bytes(), offset, bytes)
    }

    fn punch(&mut self, offset: u64, bytes: u64) -> Result<bool> {
        if !self.can_punch {
            return Ok(false);
        }
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, how, offset, bytes) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV) => {
                self.can_punch = false;
                Ok(false)
            }
            Err(errno) => Err(self.failed("discard", &errno.into(), MediaErrorKind::EraseFailed)),
        }
    }
}

impl Drop for DeviceFile {
    /// The lock would end with the last descriptor; but a child that another thread of this program
    /// is about to start may still have one for a moment.
    fn drop(&mut self) {
        // Nothing of ours may reach the device when it is somebody else's.
        self.posted = None;
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl BlockDev for DeviceFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    fn grow(&mut self, bytes: u64) -> Result<()> {
        let end = (&*self.file).seek(SeekFrom::End(0));
        let end = end.map_err(|error| self.failed("measure", &error, MediaErrorKind::Host))?;
        self.bytes.store(end, Ordering::Release);
        self.extend(bytes)?;
        if self.bytes() < bytes { Err(too_short(&self.name, self.bytes(), bytes)) } else { Ok(()) }
    }

    fn shrink(&mut self, bytes: u64) -> Result<()> {
        if self.is_block_device || self.bytes() <= bytes {
            return Ok(());
        }
        self.wait_for_writes(None)?;
        self.file.set_len(bytes).map_err(|error| self.failed("resize", &error, MediaErrorKind::Host))?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    fn stripe_bytes(&self) -> Option<u64> {
        if self.is_block_device { stripe_of_device(&self.file) } else { None }
    }

    fn way(&self) -> Option<&'static str> {
        Some(if self.posted.is_some() { "io_uring" } else { "one request at a time" })
    }

    // By itself a request is a whole run of pages: pread and pwrite. Measured with fio on a loop
    // device with direct I/O (256 MiB, reads of 256 KiB): one pread of a run 170-270 MB/s, the same
    // as one request of io_uring 240-270 MB/s, split into four of 64 KiB 240 MB/s; writes 580
    // against 140 and 90 MB/s. The spread is the noise of that machine: io_uring gains only with
    // several independent requests in flight, which come as a batch.
    fn read_at(&mut self, offset: u64, out: &mut [u8], _tag: IoTag) -> Result<()> {
        self.check(offset, out.len() as u64)?;
        self.wait_for_writes(Some((offset, out.len() as u64)))?;
        let result = if !self.direct || is_aligned(out) {
            self.file.read_exact_at(out, offset)
        } else {
            let buffer = self.buffer.get(out.len())?;
            let result = self.file.read_exact_at(buffer, offset);
            out.copy_from_slice(buffer);
            result
        };
        result.map_err(|error| self.failed("read", &error, MediaErrorKind::Uncorrectable))?;
        self.overlay(offset, out);
        Ok(())
    }

    fn shared(&self) -> Option<Arc<dyn SharedDisk>> {
        let shared: Arc<dyn SharedDisk> = Arc::new(SharedFile::of(self));
        Some(shared)
    }

    fn read_batch(&mut self, reads: &mut [(u64, &mut [u8])], tag: IoTag) -> Result<()> {
        for (offset, out) in reads.iter() {
            self.check(*offset, out.len() as u64)?;
        }
        let alone: Vec<usize> = if reads.len() > 1 { self.read_together(reads)? } else { (0..reads.len()).collect() };
        for which in alone {
            if let Some((offset, out)) = reads.get_mut(which) {
                self.read_at(*offset, out, tag)?;
            }
        }
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8], _tag: IoTag) -> Result<()> {
        self.check(offset, bytes.len() as u64)?;
        self.wait_for_writes(Some((offset, bytes.len() as u64)))?;
        let result = if !self.direct || is_aligned(bytes) {
            self.file.write_all_at(bytes, offset)
        } else {
            let buffer = self.buffer.get(bytes.len())?;
            buffer.copy_from_slice(bytes);
            self.file.write_all_at(buffer, offset)
        };
        result.map_err(|error| self.failed("write", &error, MediaErrorKind::ProgramFailed))?;
        self.renew(offset, bytes);
        Ok(())
    }

    fn post_write(&mut self, offset: u64, bytes: &[u8], tag: IoTag) -> Result<()> {
        self.check(offset, bytes.len() as u64)?;
        if self.post(offset, bytes)? { Ok(()) } else { self.write_at(offset, bytes, tag) }
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.check(offset, bytes)?;
        self.wait_for_writes(Some((offset, bytes)))?;
        self.clear(offset, bytes);
        // On a block device this is a request to write zeros that the device itself carries out, or
        // none.
        if self.punch(offset, bytes)? {
            return Ok(());
        }
        let piece = alloc::vec![0; (64 * ALIGNMENT).min(usize::try_from(bytes).unwrap_or(usize::MAX))];
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(piece.len() as u64) as usize;
            self.write_at(offset + done, piece.get(..part).unwrap_or_default(), IoTag::Anchor)?;
            done += part as u64;
        }
        Ok(())
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.check(offset, bytes)?;
        self.wait_for_writes(Some((offset, bytes)))?;
        self.clear(offset, bytes);
        if self.punch(offset, bytes)? || !self.is_block_device || !self.can_discard {
            return Ok(());
        }
        match ioctl::discard(&self.file, offset, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => {
                self.can_discard = false;
                Ok(())
            }
            Err(errno) => Err(self.failed("discard", &errno.into(), MediaErrorKind::EraseFailed)),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.flush_all()
    }

    fn begin_flush(&mut self) -> Result<()> {
        if self.post_flush()? { Ok(()) } else { self.flush() }
    }

    fn flush_is_done(&mut self) -> Result<bool> {
        self.is_flushed()
    }

    fn is_busy(&mut self) -> bool {
        self.is_writing()
    }
}

/// Locks a device or file: alone if it is to be written, shared otherwise. The system's device
/// manager holds such a lock for a moment after every change of a device, so a lock in the way is
/// waited for shortly.
pub(super) fn lock(file: &File, path: &Path, write: bool) -> Result<()> {
    const TRIES: u32 = 8;
    const PAUSE: Duration = Duration::from_millis(40);
    let how = if write { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    for _ in 1..TRIES {
        match rustix::fs::flock(file, how) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            other => return other.map_err(|errno| of_open(path, &errno.into())),
        }
    }
    rustix::fs::flock(file, how).map_err(|errno| of_open(path, &errno.into()))
}

/// Why a device could not be opened.
pub(super) fn of_open(path: &Path, error: &io::Error) -> Error {
    let place = path.display();
    let (kind, detail) = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => (MediaErrorKind::NotFound, place.to_string()),
        Some(Errno::NXIO | Errno::NODEV) => (MediaErrorKind::NotFound, format!("there is no device behind {place}")),
        Some(Errno::NOMEDIUM) => (MediaErrorKind::NotFound, format!("there is no medium in {place}")),
        Some(Errno::ACCESS | Errno::PERM) => (MediaErrorKind::Denied, format!("this user may not open {place}")),
        Some(Errno::BUSY) => (MediaErrorKind::Locked, format!("{place} is mounted or part of something that is")),
        Some(Errno::WOULDBLOCK) => (MediaErrorKind::Locked, format!("another process has {place} open")),
        Some(Errno::ROFS) => (MediaErrorKind::ReadOnly, format!("{place} accepts no writes")),
        _ => (MediaErrorKind::Host, format!("cannot open {place}: {error}")),
    };
    Error::new(kind, detail)
}

/// Why a request to an open device failed; `lost` is what an error of the medium itself means.
pub(super) fn of_io(name: &str, verb: &str, error: &io::Error, lost: MediaErrorKind) -> Error {
    let kind = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::BADMSG | Errno::REMOTEIO) => lost,
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => MediaErrorKind::HostFull,
        Some(Errno::ROFS | Errno::PERM) => MediaErrorKind::ReadOnly,
        _ => MediaErrorKind::Host,
    };
    Error::new(kind, format!("cannot {verb} {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_kernel_have_their_kinds() {
        let opening = |errno: Errno| of_open(Path::new("/dev/sdx"), &errno.into()).kind;
        assert_eq!(opening(Errno::NOENT), MediaErrorKind::NotFound);
        assert_eq!(opening(Errno::NXIO), MediaErrorKind::NotFound);
        assert_eq!(opening(Errno::ACCESS), MediaErrorKind::Denied);
        assert_eq!(opening(Errno::BUSY), MediaErrorKind::Locked);
        assert_eq!(opening(Errno::ROFS), MediaErrorKind::ReadOnly);
        assert_eq!(opening(Errno::MFILE), MediaErrorKind::Host);
        let working = |errno: Errno, lost| of_io("sdx", "read", &errno.into(), lost).kind;
        assert_eq!(working(Errno::IO, MediaErrorKind::Uncorrectable), MediaErrorKind::Uncorrectable);
        assert_eq!(working(Errno::NODATA, MediaErrorKind::ProgramFailed), MediaErrorKind::ProgramFailed);
        assert_eq!(working(Errno::NOSPC, MediaErrorKind::ProgramFailed), MediaErrorKind::HostFull);
        assert_eq!(working(Errno::NODEV, MediaErrorKind::Uncorrectable), MediaErrorKind::Host);
    }
}

//! The file or device below a mapping: opening, locking, its length, its space on the host.
//!
//! It turns every refusal of the kernel into a kind that says what the caller can do, and allocates
//! all space at once: a store to a mapped hole of a file on a full host would end the process.

use super::options::{MappedOptions, Opening};
use crate::error::{Error, MediaErrorKind, Result};
use crate::pmem::LINE_BYTES;
use crate::real::host::of_open;
use crate::real::lock;
use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

pub(super) struct MemoryFile {
    file: File,
    name: String,
    is_device: bool,
    is_first: bool,
    length: AtomicU64,
}

/// Removes a file that could not be finished.
struct Unfinished<'a>(Option<&'a Path>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // The error that led here is the one to be told.
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        lock::unlock(&self.file);
    }
}

impl MemoryFile {
    pub(super) fn open(path: &Path, options: &MappedOptions) -> Result<Self> {
        let write = options.opening != Opening::ReadOnly;
        let mut how = OpenOptions::new();
        how.read(true).write(write);
        let (file, is_new) = match options.opening {
            Opening::Existing | Opening::ReadOnly => (how.open(path), false),
            Opening::New(_) => (how.create_new(true).open(path), true),
            Opening::ExistingOrNew(_) => match how.open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => (how.create_new(true).open(path), true),
                opened => (opened, false),
            },
        };
        let file = file.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::EXIST) => Error::new(MediaErrorKind::Exists, path.display().to_string()),
            Some(Errno::NOSPC | Errno::DQUOT) => Error::new(MediaErrorKind::HostFull, path.display().to_string()),
            Some(Errno::ISDIR) => not_memory(path, "it is a folder"),
            _ => of_open(path, &error),
        })?;
        let mut unfinished = Unfinished(is_new.then_some(path));
        let is_first = match (write, options.shared) {
            (false, _) => lock::lock_to_read(&file, path).map(|()| false)?,
            (true, false) => lock::lock(&file, path).map(|()| true)?,
            (true, true) => lock::share(&file, path)?,
        };
        lock::lock_against_other_uses(&file, path)?;
        let metadata = file.metadata().map_err(|error| of_open(path, &error))?;
        let is_device = metadata.file_type().is_char_device();
        let found = if is_device { length_of_device(path, metadata.rdev())? } else { metadata.len() };
        if !is_device && !metadata.is_file() {
            return Err(not_memory(path, "it is neither a file nor a device of persistent memory"));
        }
        let name = path.display().to_string();
        // What is missing of its last page reads as zeros.
        let is_completed = options.complete && !write && !is_device;
        let length = if is_completed { found.next_multiple_of(LINE_BYTES) } else { found };
        let memory = Self { file, name, is_device, is_first, length: AtomicU64::new(length) };
        match options.opening {
            Opening::New(length) | Opening::ExistingOrNew(length) if found == 0 => memory.grow(length)?,
            // A hole would be filled at the first store, and the host may have no room then.
            Opening::Existing | Opening::ExistingOrNew(_) if metadata.blocks() < found / 512 && !is_device => {
                memory.allocate(0, found)?;
            }
            _ => {}
        }
        let length = memory.length();
        if length == 0 {
            return Err(not_memory(path, "it is empty; remove it, and a new one gets the size of the spec"));
        }
        if !length.is_multiple_of(LINE_BYTES) {
            let what = format!("it has {length} bytes, which is not a whole number of lines of {LINE_BYTES}");
            return Err(not_memory(path, &what));
        }
        unfinished.0 = None;
        Ok(memory)
    }

    pub(super) fn anonymous(length: u64) -> Result<Self> {
        let name = "memory without a name".to_string();
        let fd = rustix::fs::memfd_create("onode", MemfdFlags::CLOEXEC)
            .map_err(|errno| failed(&name, "make", errno, MediaErrorKind::Host))?;
        let memory = Self { file: fd.into(), name, is_device: false, is_first: true, length: AtomicU64::new(0) };
        memory.grow(length.max(LINE_BYTES).next_multiple_of(LINE_BYTES))?;
        Ok(memory)
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn is_device(&self) -> bool {
        self.is_device
    }

    /// Whether nobody else used it when it was opened.
    pub(super) const fn is_first(&self) -> bool {
        self.is_first
    }

    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// The length that the file has by now.
    pub(super) fn refresh(&self) -> Result<u64> {
        if !self.is_device {
            let metadata = self.file.metadata();
            let length = metadata.map_err(|error| of_open(Path::new(&self.name), &error))?.len();
            self.length.fetch_max(length, Ordering::AcqRel);
        }
        Ok(self.length())
    }

    /// Makes the file `length` bytes long, with its space, durably.
    pub(super) fn grow(&self, length: u64) -> Result<()> {
        if self.is_device {
            let detail = format!("{} is a device of {} bytes, {length} are wanted", self.name, self.length());
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        // Pages of hugetlbfs are larger than a line.
        let unit = rustix::fs::fstatfs(&self.file).ok().and_then(|system| u64::try_from(system.f_bsize).ok());
        let is_huge = unit.is_some_and(|unit| unit >= super::medium::LARGE_PAGE_BYTES);
        let length = if is_huge { length.next_multiple_of(unit.unwrap_or(1)) } else { length };
        let old = self.refresh()?;
        if let Err(error) = self.allocate(old, length) {
            // What was taken is given back; the old length is what everyone knows.
            let _ = self.file.set_len(old);
            return Err(error);
        }
        self.file.sync_all().map_err(|error| self.refused("sync", &error))?;
        self.length.fetch_max(length, Ordering::AcqRel);
        Ok(())
    }

    /// Gives the bytes from `from` to `to` space on the host; what is there stays.
    fn allocate(&self, from: u64, to: u64) -> Result<()> {
        if from >= to {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), from, to - from) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.fill(from, to),
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
                let detail = format!("{} needs {} more bytes: {errno}", self.name, to - from);
                Err(Error::new(MediaErrorKind::HostFull, detail))
            }
            done => done.map_err(|errno| self.failed("allocate space for", errno, MediaErrorKind::Host)),
        }
    }

    /// Where the host cannot allocate, bytes are written as they read.
    fn fill(&self, from: u64, to: u64) -> Result<()> {
        let mut buffer = alloc::vec![0; 1 << 20];
        let mut at = from;
        while at < to {
            let part = (to - at).min(buffer.len() as u64) as usize;
            let there = self.length().saturating_sub(at).min(part as u64) as usize;
            buffer.fill(0);
            let (old, _) = buffer.split_at_mut(there);
            self.file.read_exact_at(old, at).map_err(|error| self.refused("read", &error))?;
            self.file.write_all_at(&buffer[..part], at).map_err(|error| self.refused("write", &error))?;
            at += part as u64;
        }
        Ok(())
    }

    fn refused(&self, verb: &str, error: &io::Error) -> Error {
        let errno = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
        self.failed(verb, errno, MediaErrorKind::Host)
    }

    /// The error of a request; `other` is what a refusal means that has no meaning of its own.
    pub(super) fn failed(&self, verb: &str, errno: Errno, other: MediaErrorKind) -> Error {
        failed(&self.name, verb, errno, other)
    }
}

fn failed(name: &str, verb: &str, errno: Errno, other: MediaErrorKind) -> Error {
    let kind = match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => MediaErrorKind::HostFull,
        Errno::ACCESS | Errno::PERM => MediaErrorKind::Denied,
        Errno::ROFS => MediaErrorKind::ReadOnly,
        _ => other,
    };
    Error::new(kind, format!("cannot {verb} {name}: {errno}"))
}

fn not_memory(path: &Path, why: &str) -> Error {
    Error::new(MediaErrorKind::NotAnImage, format!("{} cannot be used as memory: {why}", path.display()))
}

/// A device of persistent memory has no length of its own; the kernel tells it elsewhere.
fn length_of_device(path: &Path, number: u64) -> Result<u64> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let told = fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/size"));
    told.ok()
        .and_then(|told| told.trim().parse().ok())
        .ok_or_else(|| not_memory(path, "it is neither a file nor a device of persistent memory"))
}

//! Byte-addressable memory of Linux: a device or file with DAX, a file in memory (tmpfs, hugetlbfs,
//! memfd) or, with a sync for every fence, any plain file.
//!
//! It finds out what the medium needs, keeps the space of the file allocated so that no store meets
//! a full host, keeps others out, and never moves: address space for growth is reserved at the
//! start. If somebody shortens the file below it, or a page of the device goes bad, what is gone
//! reads as zeros in this process, and the memory says that it [failed](Pmem::failure) and makes
//! nothing durable any more.

mod ahead;
mod file;
mod lost;
mod mapping;
mod medium;
mod options;
mod pieces;
mod range;
#[cfg(test)]
mod tests;
mod views;
mod writeback;

pub use options::{Flushing, MappedOptions, Opening};
pub use views::{Executable, Stitched};

use crate::error::{Error, MediaErrorKind, Result};
use crate::pmem::{Domain, LINE_BYTES, Pmem};
use crate::real::lock;
use ahead::Ahead;
use alloc::format;
use alloc::string::{String, ToString};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use file::MemoryFile;
use mapping::{Access, Mapping};
use medium::Medium;
use onode_base::sync::{Mutex, rank};
use std::path::Path;
use writeback::{Writeback, fence_stores};

/// From so many bytes on, stores past the caches are faster than stores that are flushed (measured:
/// 0.76 us against 1.4 us for 4 KiB).
const STREAMED_BYTES: usize = 2048;

/// A file or device as memory.
pub struct MappedPmem {
    file: MemoryFile,
    mapping: Mapping,
    medium: Medium,
    domain: Domain,
    writeback: Writeback,
    read_only: bool,
    ahead: Ahead,
    /// What the next fence has to sync, from and to, where a fence is a sync.
    unsynced: Mutex<Option<(u64, u64)>, rank::MediumNotes>,
    /// Held during a sync: whoever finds nothing to sync waits for the one that took it.
    syncing: Mutex<(), rank::MediumWork>,
    /// A sync failed: the kernel has forgotten what it did not write, so no later one may succeed.
    failed: AtomicBool,
}

impl MappedPmem {
    /// Opens or makes the file at `path`, keeps others out and maps it.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Denied`, `ReadOnly`, `Locked`, `NotAnImage` (not a file, empty, or
    /// not a whole number of lines), `HostFull`, `OutOfRange` (no address space), `Host`.
    pub fn open(path: &Path, options: &MappedOptions) -> Result<Self> {
        Self::map(MemoryFile::open(path, options)?, options)
    }

    /// Memory of this process and of those that it gives the descriptor to; nothing is left of it
    /// in the end.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn anonymous(length: u64, options: &MappedOptions) -> Result<Self> {
        Self::map(MemoryFile::anonymous(length)?, options)
    }

    fn map(file: MemoryFile, options: &MappedOptions) -> Result<Self> {
        let medium = Medium::find_out(&file)?;
        let read_only = options.opening == Opening::ReadOnly;
        let writeback = Writeback::of_processor();
        let domain = match (medium.domain(), options.flushing) {
            // Without an instruction for it, only the kernel can write a line back.
            (_, Flushing::AtTheEnd) => Domain::Fence,
            (Domain::Flush, _) if !writeback.can() => Domain::Sync,
            (Domain::Fence, Flushing::Always) if writeback.can() => Domain::Flush,
            (domain, _) => domain,
        };
        let length = file.length();
        let mapping = Mapping::reserve(options.reserve.max(length), length, medium.page_bytes())
            .map_err(|errno| file.failed("reserve address space for", errno, MediaErrorKind::OutOfRange))?;
        let pmem = Self {
            file,
            mapping,
            medium,
            domain,
            writeback,
            read_only,
            ahead: Ahead::new(),
            unsynced: Mutex::new(None),
            syncing: Mutex::new(()),
            failed: AtomicBool::new(false),
        };
        pmem.map_up_to(length)?;
        Ok(pmem)
    }

    fn map_up_to(&self, length: u64) -> Result<()> {
        let extended = self.mapping.extend(self.file.file(), length, self.access());
        extended.map_err(|errno| self.file.failed("map", errno, MediaErrorKind::Host))
    }

    const fn access(&self) -> Access {
        match (self.read_only, self.medium) {
            (false, _) => Access::Shared(self.medium.map_flags()),
            // There is no private mapping of such a device.
            (true, Medium::DaxDevice) => Access::Copied(self.medium.map_flags()),
            (true, _) => Access::Private,
        }
    }

    /// One line for people: what the medium is and what makes stores durable on it.
    #[must_use]
    pub fn describe(&self) -> String {
        let needs = match self.domain {
            Domain::Flush => format!("lines are flushed ({})", self.writeback.name()),
            Domain::Fence => "nothing to flush; lives as long as the host is up".to_string(),
            Domain::Sync => "a fence syncs the file (milliseconds)".to_string(),
        };
        format!("{}; {needs}", self.medium.name())
    }

    /// Whether stores stay in this process.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether nobody else used the memory when it was opened. Who shares it and is the first has
    /// it alone until it [lets others in](Self::let_in).
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.file.is_first()
    }

    /// Lets the next one in who shares the memory; until then it waits.
    ///
    /// # Errors
    /// `Host`.
    pub fn let_in(&self) -> Result<()> {
        lock::let_in(self.file.file()).map_err(|error| self.refused("share", &error))
    }

    /// Takes a number that nobody else has who shares the memory, and keeps it until the memory is
    /// closed, however that comes.
    ///
    /// # Errors
    /// `Host`; `InUse` if there is none left.
    pub fn take_seat(&self) -> Result<u64> {
        let seat = lock::take_seat(self.file.file()).map_err(|error| self.refused("share", &error))?;
        seat.ok_or_else(|| Error::new(MediaErrorKind::InUse, format!("too many share {}", self.file.name())))
    }

    /// Whether somebody else has the number.
    #[must_use]
    pub fn is_seat_taken(&self, seat: u64) -> bool {
        lock::is_seat_taken(self.file.file(), seat)
    }

    /// Claims a number, whatever it stands for, among all that share the memory; false if another
    /// opening of it has it. One opening may claim a number twice. The claim ends with
    /// [`disclaim`](Self::disclaim), with the value, or with the process.
    ///
    /// # Errors
    /// `Host`.
    pub fn claim(&self, number: u64) -> Result<bool> {
        lock::claim(self.file.file(), number).map_err(|error| self.refused("claim a part of", &error))
    }

    /// Gives a claim back; one that there is not is no error.
    ///
    /// # Errors
    /// `Host`.
    pub fn disclaim(&self, number: u64) -> Result<()> {
        lock::disclaim(self.file.file(), number).map_err(|error| self.refused("give back a part of", &error))
    }

    fn refused(&self, verb: &str, error: &std::io::Error) -> Error {
        let errno = rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO);
        self.file.failed(verb, errno, MediaErrorKind::Host)
    }

    /// Maps what another process has added to the file; returns the length.
    ///
    /// # Errors
    /// `Host`, `OutOfRange`.
    pub fn refresh(&self) -> Result<u64> {
        let length = self.file.refresh()?;
        let whole = length - length % LINE_BYTES;
        if whole > self.length() {
            self.check_room(whole)?;
            self.map_up_to(whole)?;
        }
        Ok(self.length())
    }

    /// Maps a range, a whole number of pages from a page on, for execution in place.
    ///
    /// # Errors
    /// `OutOfRange`, `Denied` (the host does not execute from this file system), `Host`.
    pub fn executable(&self, at: u64, length: u64) -> Result<Executable> {
        let inside = at.checked_add(length).is_some_and(|end| end <= self.length());
        if !inside || length == 0 || !(at | length).is_multiple_of(self.medium.page_bytes()) {
            let detail = format!("bytes {at} to {} are not whole pages of the memory", at.saturating_add(length));
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        Executable::map(self.file.file(), at, length)
            .map_err(|errno| self.file.failed("map for execution", errno, MediaErrorKind::Host))
    }

    /// Maps parts of the memory, as (where, bytes), once more as one range. Each part begins at a
    /// page and is whole pages.
    ///
    /// # Errors
    /// `OutOfRange` for other parts, or if there is no address space; `Host`.
    pub fn stitched(&self, parts: &[(u64, u64)]) -> Result<Stitched> {
        let page = self.medium.page_bytes();
        for (at, length) in parts {
            // The last page of the memory may be mapped beyond its end.
            let end = self.length().next_multiple_of(page);
            let inside = at.checked_add(*length).is_some_and(|part_end| part_end <= end);
            if !inside || *length == 0 || !(at | length).is_multiple_of(page) {
                let detail = format!("bytes {at} to {} are not whole pages of the memory", at.saturating_add(*length));
                return Err(Error::new(MediaErrorKind::OutOfRange, detail));
            }
        }
        if parts.is_empty() {
            return Err(Error::new(MediaErrorKind::OutOfRange, "no part of the memory".to_string()));
        }
        Stitched::map(self.file.file(), parts, self.access(), page)
            .map_err(|errno| self.file.failed("map parts of", errno, MediaErrorKind::Host))
    }

    #[cold]
    fn gone(&self) -> Error {
        let detail = format!(
            "part of {} is gone: the file was cut short under it, or a page of the device is bad",
            self.file.name()
        );
        Error::new(MediaErrorKind::Host, detail)
    }

    fn check_room(&self, length: u64) -> Result<()> {
        if length <= self.mapping.reserved() {
            return Ok(());
        }
        let room = self.mapping.reserved();
        let detail = format!("{room} bytes of address space are reserved, {length} are wanted");
        Err(Error::new(MediaErrorKind::OutOfRange, detail))
    }
}

impl Drop for MappedPmem {
    fn drop(&mut self) {
        if self.read_only || self.domain != Domain::Fence {
            return;
        }
        // Whatever was not flushed meanwhile because nobody wanted to wait for it.
        match self.medium.domain() {
            Domain::Fence => {}
            Domain::Flush if self.writeback.can() => self.mapping.write_back(self.writeback, 0, self.length()),
            Domain::Flush | Domain::Sync => _ = self.mapping.sync(0, self.length()),
        }
        fence_stores();
    }
}

impl Pmem for MappedPmem {
    #[inline]
    fn length(&self) -> u64 {
        self.mapping.length()
    }

    fn domain(&self) -> Domain {
        self.domain
    }

    #[inline]
    fn load(&self, at: u64) -> u64 {
        self.mapping.load(at)
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.mapping.store(at, value);
    }

    #[inline]
    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
        self.mapping.compare_exchange(at, current, new)
    }

    #[inline]
    fn read(&self, at: u64, buffer: &mut [u8]) {
        self.mapping.read(at, buffer);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.mapping.write(at, bytes);
    }

    fn write_through(&self, at: u64, bytes: &[u8]) {
        if self.domain != Domain::Flush || bytes.len() < STREAMED_BYTES {
            self.write(at, bytes);
            return self.flush(at, bytes.len() as u64);
        }
        // The ends that are no whole lines go through the caches.
        let head = (at.next_multiple_of(LINE_BYTES) - at) as usize;
        let (head, rest) = bytes.split_at(head);
        let (lines, tail) = rest.split_at(rest.len() - rest.len() % LINE_BYTES as usize);
        let middle = at + head.len() as u64;
        let end = middle + lines.len() as u64;
        self.mapping.stream(middle, lines);
        for (at, bytes) in [(at, head), (end, tail)] {
            self.mapping.write(at, bytes);
            self.flush(at, bytes.len() as u64);
        }
    }

    fn zero(&self, at: u64, length: u64) {
        self.mapping.zero(at, length);
    }

    fn flush(&self, at: u64, length: u64) {
        match self.domain {
            Domain::Flush => self.mapping.write_back(self.writeback, at, length),
            Domain::Fence => {}
            Domain::Sync if length == 0 => {}
            Domain::Sync => {
                self.mapping.check(at, length);
                let mut unsynced = self.unsynced.lock();
                let (from, to) = unsynced.unwrap_or((at, at + length));
                *unsynced = Some((from.min(at), to.max(at + length)));
            }
        }
    }

    fn fence(&self) -> Result<()> {
        match self.domain {
            // Nothing is under way past the caches; stores only have to stay in order.
            Domain::Fence => core::sync::atomic::fence(Ordering::Release),
            Domain::Flush | Domain::Sync => fence_stores(),
        }
        if self.read_only {
            let detail = format!("{} is open for reading only", self.file.name());
            return Err(Error::new(MediaErrorKind::ReadOnly, detail));
        }
        if let Some(gone) = self.failure() {
            return Err(gone);
        }
        if self.domain != Domain::Sync {
            return Ok(());
        }
        let _alone = self.syncing.lock();
        let taken = self.unsynced.lock().take();
        if self.failed.load(Ordering::Acquire) {
            let detail = format!("an earlier sync of {} failed; open it anew", self.file.name());
            return Err(Error::new(MediaErrorKind::Host, detail));
        }
        let Some((from, to)) = taken else { return Ok(()) };
        self.mapping.sync(from, to - from).map_err(|errno| {
            self.failed.store(true, Ordering::Release);
            self.file.failed("sync", errno, MediaErrorKind::Host)
        })
    }

    #[inline]
    fn failure(&self) -> Option<Error> {
        if self.mapping.is_lost() { Some(self.gone()) } else { None }
    }

    fn grow(&self, length: u64) -> Result<()> {
        if length <= self.length() {
            return Ok(());
        }
        if self.read_only {
            let detail = format!("{} is open for reading only", self.file.name());
            return Err(Error::new(MediaErrorKind::ReadOnly, detail));
        }
        let length = length.next_multiple_of(self.medium.granularity());
        self.check_room(length)?;
        self.file.grow(length)?;
        self.map_up_to(self.file.length())
    }

    #[inline]
    fn words(&self, at: u64, count: u64) -> Option<&[AtomicU64]> {
        Some(self.mapping.words(at, count))
    }

    #[inline]
    fn prepare(&self, at: u64, length: u64) {
        if let Some(range) = self.ahead.of(at, length)
            // Pages of a plain file would be read and written back for nothing.
            && !self.read_only
            && self.medium.domain() != Domain::Sync
        {
            self.mapping.prepare(range.start, range.end - range.start);
        }
    }

    fn address(&self) -> Option<NonNull<u8>> {
        Some(self.mapping.address())
    }
}

//! A range of the address space that is reserved for ever, with a file mapped over its start.
//!
//! Miri, which looks for undefined behaviour in whatever touches the range, knows no mapped files:
//! there it is ordinary memory, and the file is left out.
#![allow(unsafe_code, reason = "mmap(2) has no safe face")]

use super::lost::Guard;
use core::ptr::NonNull;
use rustix::io::Errno;
use std::fs::File;
#[cfg(not(miri))]
use std::os::fd::{AsRawFd, RawFd};

/// What the last system call said.
pub(super) fn last_errno() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// How a file is mapped: protection and flags of mmap(2).
#[derive(Clone, Copy)]
#[cfg_attr(miri, allow(dead_code, reason = "there is no file then"))]
pub(super) struct How {
    pub protection: i32,
    pub flags: i32,
}

/// A range, taken back when it is dropped.
pub(super) struct Range {
    start: NonNull<u8>,
    bytes: usize,
    guard: Option<Guard>,
}

// SAFETY: a range of its own, touched through pointers only, by whoever may touch what is mapped
// there.
unsafe impl Send for Range {}
// SAFETY: as above.
unsafe impl Sync for Range {}

impl Range {
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on what is gone from the file below a part of the range is told by
    /// [`is_lost`](Self::is_lost), and ends no process. Parts are mapped in pages of `page_bytes`.
    pub(super) fn guard(&mut self, page_bytes: u64) {
        let page_bytes = usize::try_from(page_bytes).unwrap_or(usize::MAX);
        self.guard = Some(Guard::of(self.start, self.bytes, page_bytes));
    }

    /// Whether anything was gone when it was touched.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.guard.as_ref().is_some_and(Guard::is_lost)
    }
}

#[cfg(not(miri))]
impl Range {
    /// Reserves a range that nobody may touch yet.
    pub(super) fn reserve(bytes: usize) -> Result<Self, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::new(bytes, How { protection: libc::PROT_NONE, flags }, -1, 0)
    }

    /// A range where `bytes` of a file from `offset` on are, and nothing else.
    pub(super) fn of_file(bytes: usize, how: How, file: &File, offset: u64) -> Result<Self, Errno> {
        Self::new(bytes, how, file.as_raw_fd(), libc::off_t::try_from(offset).map_err(|_| Errno::OVERFLOW)?)
    }

    fn new(bytes: usize, how: How, file: RawFd, offset: libc::off_t) -> Result<Self, Errno> {
        // SAFETY: a new mapping at a place that the kernel chooses; nothing else is touched.
        let at = unsafe { libc::mmap(core::ptr::null_mut(), bytes, how.protection, how.flags, file, offset) };
        match NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, bytes, guard: None }),
            None => Err(last_errno()),
        }
    }

    /// Maps `length` bytes of a file from `offset` on over the range from `at` on.
    ///
    /// # Safety
    /// All of that lies in the range, and nobody has an address in it.
    pub(super) unsafe fn map(&self, at: usize, length: usize, how: How, file: &File, offset: u64) -> Result<(), Errno> {
        let offset = libc::off_t::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
        let flags = how.flags | libc::MAP_FIXED;
        // SAFETY: the caller answers for the part; replacing the reservation is what MAP_FIXED is
        // for.
        let mapped = unsafe {
            let start = self.start.add(at).as_ptr().cast();
            libc::mmap(start, length, how.protection, flags, file.as_raw_fd(), offset)
        };
        if mapped == libc::MAP_FAILED { Err(last_errno()) } else { Ok(()) }
    }

    /// Gives advice on a part of the range that is mapped.
    pub(super) fn advise(&self, at: usize, length: usize, advice: i32) {
        if at.checked_add(length).is_some_and(|end| end <= self.bytes) {
            // SAFETY: a part of this range; a kernel that does not know the advice refuses, and
            // nothing is lost.
            unsafe { libc::madvise(self.start.add(at).as_ptr().cast(), length, advice) };
        }
    }
}

#[cfg(not(miri))]
impl Drop for Range {
    fn drop(&mut self) {
        // Before somebody else can have something mapped there.
        self.guard = None;
        // SAFETY: what was reserved, with files over parts of it; the last user of it is being
        // dropped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(miri)]
impl Range {
    fn layout(bytes: usize) -> core::alloc::Layout {
        core::alloc::Layout::from_size_align(bytes, 4096).expect("a range of a test")
    }

    pub(super) fn reserve(bytes: usize) -> Result<Self, Errno> {
        // SAFETY: no range is empty.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(bytes)) };
        Ok(Self { start: NonNull::new(start).ok_or(Errno::NOMEM)?, bytes, guard: None })
    }

    pub(super) fn of_file(bytes: usize, _: How, _: &File, _: u64) -> Result<Self, Errno> {
        Self::reserve(bytes)
    }

    pub(super) unsafe fn map(&self, _: usize, _: usize, _: How, _: &File, _: u64) -> Result<(), Errno> {
        Ok(())
    }

    pub(super) fn advise(&self, _: usize, _: usize, _: i32) {}
}

#[cfg(miri)]
impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: made with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), Self::layout(self.bytes)) };
    }
}

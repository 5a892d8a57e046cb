//! Which pages of an arena were stored to since they were last looked at.
//!
//! Linux 6.7 and later say it: pages are write-protected by `userfaultfd` in its asynchronous mode,
//! where the kernel takes the protection away at the first store without asking anybody, and the
//! `PAGEMAP_SCAN` call lists pages without it and protects them again, in one walk over the page
//! table. Pages where nothing was ever stored are not in the table: to protect those, too, would
//! take time and memory with the size of an arena. Where that is not to be had (an older kernel, a
//! container that forbids the call), pages are compared with what was saved of them
//! ([`Tracking::Comparison`]): the same pages are found, in a time that goes with the size of the
//! arena.

use super::memory::{Memory, PAGE_BYTES};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// How changed pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tracking {
    /// The kernel notes each page that is stored to.
    Kernel,
    /// Every page is compared with what was saved of it.
    Comparison,
}

impl Tracking {
    /// One line for people.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel notes changed pages (userfaultfd, PAGEMAP_SCAN)",
            Self::Comparison => {
                "every page is compared: the kernel (Linux 6.7 or later is needed) or a rule of the host does not let \
                 changed pages be noted"
            }
        }
    }
}

const UFFD_API: u64 = 0xaa;
const UFFD_USER_MODE_ONLY: libc::c_int = 1;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 2;
const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const PAGEMAP_SCAN: u64 = 0xc060_6610;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// One that was only read so far.
const PAGE_IS_ZERO: u64 = 1 << 5;
const PM_SCAN_WP_MATCHING: u64 = 1;
const PM_SCAN_CHECK_WPASYNC: u64 = 2;
/// Ranges that one call of the kernel may return.
const RANGES: usize = 4096;

#[repr(C)]
#[derive(Default)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct UffdRegister {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

#[repr(C)]
#[derive(Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// The kernel's notes about one memory.
pub(crate) struct KernelNotes {
    pagemap: File,
    /// Closing it ends the notes.
    _protection: OwnedFd,
    found: Vec<PageRegion>,
}

fn checked(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

impl KernelNotes {
    /// Begins to note stores to `memory`.
    pub(crate) fn of(memory: &Memory) -> io::Result<Self> {
        // SAFETY: a call that makes a descriptor and touches nothing else.
        let code = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) };
        let code = checked(libc::c_int::try_from(code).unwrap_or(-1))?;
        // SAFETY: the descriptor was just made, and nobody else has it.
        let protection = unsafe { OwnedFd::from_raw_fd(code) };
        let mut api = UffdApi { api: UFFD_API, features: UFFD_FEATURE_WP_ASYNC, ioctls: 0 };
        // SAFETY: the argument is what this request wants.
        checked(unsafe { libc::ioctl(protection.as_raw_fd(), UFFDIO_API as _, &raw mut api) })?;
        let mut register = UffdRegister {
            start: memory.base().as_ptr().addr() as u64,
            length: (memory.pages() * PAGE_BYTES) as u64,
            mode: UFFDIO_REGISTER_MODE_WP,
            ioctls: 0,
        };
        // SAFETY: the argument is what this request wants, and the range is that of `memory`; in
        // the asynchronous mode no access waits for anybody.
        checked(unsafe { libc::ioctl(protection.as_raw_fd(), UFFDIO_REGISTER as _, &raw mut register) })?;
        let pagemap = File::open("/proc/self/pagemap")?;
        let mut notes = Self { pagemap, _protection: protection, found: vec![PageRegion::default(); RANGES] };
        notes.take(memory, |_| ())?;
        Ok(notes)
    }

    /// Calls `found` with the pages stored to since the last call, or since the notes began.
    pub(crate) fn take(&mut self, memory: &Memory, mut found: impl FnMut(Range<usize>)) -> io::Result<()> {
        let base = memory.base().as_ptr().addr() as u64;
        let end = base + (memory.pages() * PAGE_BYTES) as u64;
        let mut at = base;
        while at < end {
            let mut arguments = ScanArguments {
                size: size_of::<ScanArguments>() as u64,
                flags: PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
                start: at,
                end,
                vec: self.found.as_mut_ptr().addr() as u64,
                vec_len: self.found.len() as u64,
                category_inverted: PAGE_IS_ZERO,
                category_mask: PAGE_IS_WRITTEN | PAGE_IS_ZERO,
                // Without a protection those that nobody used count as written.
                category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                return_mask: PAGE_IS_WRITTEN,
                ..ScanArguments::default()
            };
            // SAFETY: the argument is what this request wants, its ranges go to a vector with that
            // much room, and all that changes in the memory is that its pages are protected.
            let code = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut arguments) };
            let count = checked(code)? as usize;
            for range in self.found.get(..count).unwrap_or_default() {
                let page = |address: u64| (address.clamp(base, end) - base) as usize / PAGE_BYTES;
                found(page(range.start)..page(range.end));
            }
            if arguments.walk_end <= at {
                return Err(io::Error::other("the kernel does not get on with its list of changed pages"));
            }
            at = arguments.walk_end;
        }
        Ok(())
    }
}

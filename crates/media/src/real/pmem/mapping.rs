//! A file in the address space: one range reserved for ever, mapped from its start on as far as the
//! file goes.
//!
//! Bytes are touched through pointers only, never through references, because other threads and
//! other processes store to the same memory. Every access is checked against the mapped length.
#![allow(unsafe_code, reason = "mmap(2) and memory that others store to have no safe face")]

use super::medium::LARGE_PAGE_BYTES;
use super::pieces::Pieces;
use super::range::{How, Range, last_errno};
use super::writeback::Writeback;
use crate::pmem::LINE_BYTES;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use onode_base::sync::{Mutex, rank};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;

/// A part of the address space with a file at its start.
pub(super) struct Mapping {
    /// Where the file begins.
    base: NonNull<u8>,
    /// What was reserved, before it was aligned.
    range: Range,
    /// Bytes behind `base` that are reserved.
    room: u64,
    page_bytes: u64,
    /// Bytes that may be touched, whole words.
    length: AtomicU64,
    /// Bytes that may be stored to just so: all of them, or none where `pieces` have to be copied
    /// first.
    storable: AtomicU64,
    pieces: Pieces,
    extending: Mutex<(), rank::MediumWork>,
}

// SAFETY: the range belongs to this value alone until it is dropped, and it is touched through
// pointers only.
unsafe impl Send for Mapping {}
// SAFETY: as above; accesses from several threads are like those from several processes, which the
// trait allows.
unsafe impl Sync for Mapping {}

pub(super) fn to_usize(bytes: u64) -> Result<usize, Errno> {
    usize::try_from(bytes).map_err(|_| Errno::NOMEM)
}

/// Apart from the checks, so that these keep their operands in registers.
#[cold]
#[inline(never)]
fn out_of_range(at: u64, length: u64, whole: u64) -> ! {
    panic!("bytes {at}..+{length} of {whole}");
}

#[cold]
#[inline(never)]
fn no_word(at: u64, whole: u64) -> ! {
    if at.is_multiple_of(8) {
        out_of_range(at, 8, whole);
    }
    panic!("address {at} is not a multiple of 8");
}

/// Whether the word at `at` lies within the first `whole` bytes, whole words.
#[inline]
const fn holds_word(whole: u64, at: u64) -> bool {
    at < whole && at.is_multiple_of(8)
}

/// Whether the file can be mapped without a page cache.
pub(super) fn has_dax(file: &File, bytes: u64) -> bool {
    let flags = libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC;
    // SAFETY: a new mapping at a place that the kernel chooses; nothing else is touched.
    let at = unsafe { libc::mmap(null_mut(), bytes as usize, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the mapping made above, which nobody has seen.
    unsafe { libc::munmap(at, bytes as usize) };
    true
}

/// How a file is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// With these flags, for loads and stores.
    Shared(i32),
    /// Without the right to write: the kernel copies a page before a store.
    Private,
    /// The same for what can only be mapped with these flags, in pages of a piece or more: pieces
    /// are copied here.
    Copied(i32),
}

impl Access {
    /// Protection and flags of mmap(2).
    pub(super) const fn of_mapping(self) -> How {
        match self {
            Self::Shared(flags) => How { protection: libc::PROT_READ | libc::PROT_WRITE, flags },
            Self::Private => How { protection: libc::PROT_READ | libc::PROT_WRITE, flags: libc::MAP_PRIVATE },
            Self::Copied(flags) => How { protection: libc::PROT_READ, flags },
        }
    }
}

impl Mapping {
    /// Reserves `wanted` bytes of address space, or less but at least `needed`, aligned for large
    /// pages.
    pub(super) fn reserve(wanted: u64, needed: u64, page_bytes: u64) -> Result<Self, Errno> {
        let align = to_usize(page_bytes.max(LARGE_PAGE_BYTES))?;
        let mut room = wanted.checked_next_multiple_of(page_bytes).ok_or(Errno::NOMEM)?;
        let least = needed.checked_next_multiple_of(page_bytes).ok_or(Errno::NOMEM)?;
        loop {
            let bytes = to_usize(room)?.checked_add(align).ok_or(Errno::NOMEM)?;
            match Range::reserve(bytes) {
                Ok(mut range) => {
                    range.guard(page_bytes);
                    let start = range.start().addr().get();
                    // SAFETY: this is less than `align`, by which the reservation is longer than
                    // `room`.
                    let base = unsafe { range.start().add(start.next_multiple_of(align) - start) };
                    return Ok(Self {
                        base,
                        range,
                        room,
                        page_bytes,
                        length: AtomicU64::new(0),
                        storable: AtomicU64::new(0),
                        pieces: Pieces::default(),
                        extending: Mutex::new(()),
                    });
                }
                Err(errno) if room == least => return Err(errno),
                Err(_) => {}
            }
            room = (room / 2).next_multiple_of(page_bytes).max(least);
        }
    }

    /// Maps the file as far as `length`; what is mapped stays as it is.
    pub(super) fn extend(&self, file: &File, length: u64, access: Access) -> Result<(), Errno> {
        let _alone = self.extending.lock();
        let mapped = self.length().next_multiple_of(self.page_bytes);
        let end = length.next_multiple_of(self.page_bytes);
        if end > self.room {
            return Err(Errno::NOMEM);
        }
        if end > mapped {
            let (at, bytes) = (self.shift() + to_usize(mapped)?, to_usize(end - mapped)?);
            // SAFETY: the part lies in the room behind all that was mapped before, so nobody has an
            // address in it.
            unsafe { self.range.map(at, bytes, access.of_mapping(), file, mapped)? };
            self.range.advise(at, bytes, libc::MADV_HUGEPAGE);
        }
        let length = length - length % 8;
        self.length.fetch_max(length, Ordering::Release);
        if !matches!(access, Access::Copied(_)) {
            self.storable.fetch_max(length, Ordering::Release);
        }
        Ok(())
    }

    /// Bytes of the range before the file.
    fn shift(&self) -> usize {
        self.base.addr().get() - self.range.start().addr().get()
    }

    #[inline]
    pub(super) fn length(&self) -> u64 {
        self.length.load(Ordering::Acquire)
    }

    /// Whether anything that was mapped is gone from the file.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.range.is_lost()
    }

    pub(super) const fn reserved(&self) -> u64 {
        self.room
    }

    pub(super) const fn address(&self) -> NonNull<u8> {
        self.base
    }

    /// Panics unless the range is inside.
    #[inline]
    pub(super) fn check(&self, at: u64, length: u64) {
        let whole = self.length();
        if at > whole || length > whole - at {
            out_of_range(at, length, whole);
        }
    }

    /// The address of a range, which is inside.
    #[inline]
    fn at(&self, at: u64, length: u64) -> *mut u8 {
        self.check(at, length);
        // SAFETY: inside of what is mapped from `base` on, as just checked.
        unsafe { self.base.add(at as usize).as_ptr() }
    }

    /// The address of a range, which is inside, for somebody who may store there.
    #[inline]
    fn at_to_store(&self, at: u64, length: u64) -> *mut u8 {
        let whole = self.storable.load(Ordering::Acquire);
        if at > whole || length > whole - at {
            self.copy_pieces(at, length);
        }
        // SAFETY: inside of what is mapped from `base` on, as just checked.
        unsafe { self.base.add(at as usize).as_ptr() }
    }

    #[cold]
    #[inline(never)]
    fn copy_pieces(&self, at: u64, length: u64) {
        self.check(at, length);
        if self.storable.load(Ordering::Acquire) == 0 {
            // SAFETY: the range was just checked, and pages of such a mapping are whole pieces.
            unsafe { self.pieces.copy(self.base, at, length) };
        }
    }

    /// Apart from the check of what may be stored to just so. Panics unless the word is inside.
    #[cold]
    #[inline(never)]
    fn make_storable(&self, at: u64) {
        if !holds_word(self.length(), at) {
            no_word(at, self.length());
        }
        self.copy_pieces(at, 8);
    }

    #[inline]
    fn word_to_store(&self, at: u64) -> &AtomicU64 {
        if !holds_word(self.storable.load(Ordering::Acquire), at) {
            self.make_storable(at);
        }
        // SAFETY: as in `word`; what is not storable at once is so now.
        unsafe { AtomicU64::from_ptr(self.base.add(at as usize).as_ptr().cast()) }
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        let whole = self.length();
        if !holds_word(whole, at) {
            no_word(at, whole);
        }
        // SAFETY: inside of what is mapped from `base` on, as just checked; mapped as long as
        // `self` lives, aligned, and stored to as whole words by everyone who uses words.
        unsafe { AtomicU64::from_ptr(self.base.add(at as usize).as_ptr().cast()) }
    }

    #[inline]
    pub(super) fn words(&self, at: u64, count: u64) -> &[AtomicU64] {
        if !at.is_multiple_of(8) {
            no_word(at, self.length());
        }
        let from = self.at_to_store(at, count.saturating_mul(8)).cast();
        // SAFETY: mapped as long as `self` lives, aligned, and only looked at as atomic words.
        unsafe { core::slice::from_raw_parts(from, count as usize) }
    }

    /// Has the kernel map the pages of a range now.
    pub(super) fn prepare(&self, at: u64, length: u64) {
        let start = at - at % self.page_bytes;
        let end = at.saturating_add(length).min(self.length());
        let Ok(bytes) = to_usize(end.saturating_sub(start)) else { return };
        if bytes > 0 {
            self.check(start, bytes as u64);
            self.range.advise(self.shift() + start as usize, bytes, libc::MADV_POPULATE_WRITE);
        }
    }

    #[inline]
    pub(super) fn load(&self, at: u64) -> u64 {
        u64::from_le(self.word(at).load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn store(&self, at: u64, value: u64) {
        self.word_to_store(at).store(value.to_le(), Ordering::Release);
    }

    #[inline]
    pub(super) fn compare_exchange(&self, at: u64, current: u64, new: u64) -> Result<u64, u64> {
        let done =
            self.word_to_store(at).compare_exchange(current.to_le(), new.to_le(), Ordering::AcqRel, Ordering::Acquire);
        done.map(u64::from_le).map_err(u64::from_le)
    }

    #[inline]
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) {
        let from = self.at(at, buffer.len() as u64);
        // SAFETY: `from` is mapped for as many bytes; `buffer` belongs to the caller, and no Rust
        // reference points into the mapping. Who stores to these bytes meanwhile breaks an
        // agreement of the trait and yields mixed bytes.
        unsafe { core::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), buffer.len()) };
    }

    #[inline]
    pub(super) fn write(&self, at: u64, bytes: &[u8]) {
        let to = self.at_to_store(at, bytes.len() as u64);
        // SAFETY: as in `read`, the other way round.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    pub(super) fn zero(&self, at: u64, length: u64) {
        let to = self.at_to_store(at, length);
        // SAFETY: mapped for as many bytes.
        unsafe { core::ptr::write_bytes(to, 0, length as usize) };
    }

    /// Copies whole lines past the caches; they have arrived after the next fence.
    pub(super) fn stream(&self, at: u64, lines: &[u8]) {
        assert!((at | lines.len() as u64).is_multiple_of(LINE_BYTES), "not whole lines");
        let to = self.at_to_store(at, lines.len() as u64);
        #[cfg(target_arch = "x86_64")]
        {
            use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
            for (number, quarter) in lines.chunks_exact(size_of::<__m128i>()).enumerate() {
                // SAFETY: `to` is mapped for as many bytes and aligned to a line; the source is 16
                // bytes of a slice and may lie anywhere; SSE2 is part of the architecture.
                unsafe { _mm_stream_si128(to.cast::<__m128i>().add(number), _mm_loadu_si128(quarter.as_ptr().cast())) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            // SAFETY: as in `write`.
            unsafe { core::ptr::copy_nonoverlapping(lines.as_ptr(), to, lines.len()) };
            self.write_back(Writeback::of_processor(), at, lines.len() as u64);
        }
    }

    /// Begins to write back the lines of a range.
    #[inline]
    pub(super) fn write_back(&self, how: Writeback, at: u64, length: u64) {
        let end = self.at(at, length).wrapping_add(length as usize);
        let line = self.at(at - at % LINE_BYTES, 0);
        if length > 0 {
            // SAFETY: the lines from the one that holds `at` on are mapped, and `how` was asked of
            // this processor.
            unsafe { how.lines(line, end) };
        }
    }

    /// Has the kernel write a range back, and waits for it.
    pub(super) fn sync(&self, at: u64, length: u64) -> Result<(), Errno> {
        let start = at - at % self.page_bytes;
        let bytes = to_usize(at + length - start)?;
        // SAFETY: a range that is mapped, from a page on; the call changes nothing in it.
        let code = unsafe { libc::msync(self.at(start, bytes as u64).cast(), bytes, libc::MS_SYNC) };
        if code == 0 { Ok(()) } else { Err(last_errno()) }
    }
}

#[cfg(test)]
mod tests;

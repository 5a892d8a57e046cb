//! Parts of the memory mapped once more: to be executed where they lie, or side by side.
#![allow(unsafe_code, reason = "mmap(2) has no safe face")]

use super::mapping::{Access, to_usize};
use super::range::{How, Range};
use core::ptr::NonNull;
use rustix::io::Errno;
use std::fs::File;

/// A part of the memory that can be executed where it lies.
pub struct Executable(Range);

impl Executable {
    pub(super) fn map(file: &File, offset: u64, length: u64) -> Result<Self, Errno> {
        let length = to_usize(length)?;
        let how = How { protection: libc::PROT_READ | libc::PROT_EXEC, flags: libc::MAP_SHARED };
        Range::of_file(length, how, file, offset).map(Self)
    }

    /// Where it begins; there as long as the value lives.
    #[must_use]
    pub const fn address(&self) -> NonNull<u8> {
        self.0.start()
    }

    /// Bytes of it.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.0.bytes()
    }
}

/// Parts of the memory side by side, in an order of the caller's.
pub struct Stitched(Range);

impl Stitched {
    /// Maps the parts, each whole pages from a page on, one behind the other.
    pub(super) fn map(file: &File, parts: &[(u64, u64)], access: Access, page_bytes: u64) -> Result<Self, Errno> {
        let length = parts.iter().try_fold(0_u64, |sum, (_, length)| sum.checked_add(*length));
        let mut range = Range::reserve(to_usize(length.ok_or(Errno::NOMEM)?)?)?;
        range.guard(page_bytes);
        let mut done = 0;
        for (offset, bytes) in parts {
            let bytes = to_usize(*bytes)?;
            // SAFETY: the part lies in the range that was just reserved, of which nobody has an
            // address yet.
            unsafe { range.map(done, bytes, access.of_mapping(), file, *offset)? };
            done += bytes;
        }
        Ok(Self(range))
    }

    /// Where it begins; there as long as the value lives.
    #[must_use]
    pub const fn address(&self) -> NonNull<u8> {
        self.0.start()
    }

    /// Bytes of it.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.0.bytes()
    }
}

//! How many bytes were asked for, of blocks that a program keeps as bare pointers.
//!
//! A block has no header and may be longer than what was asked for; a file that is made of it must
//! not be. So the number is noted beside the memory, in this process, at the place of the block:
//! one store that nobody waits for.
#![allow(unsafe_code, reason = "mmap(2) has no safe face")]

use crate::error::{Error, Result};
use onode_base::ErrorKind;
use onode_scm::allocator::SMALLEST_BLOCK_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Says that the number is too large for one place and stands in the next two.
const LARGE: u32 = u32::MAX;

/// A number for each place where a block can begin; pages that nobody notes anything in take no
/// memory.
pub(crate) struct Sizes {
    start: NonNull<AtomicU32>,
    places: usize,
}

// SAFETY: atomic numbers in a mapping of this value's own.
unsafe impl Send for Sizes {}
// SAFETY: as above.
unsafe impl Sync for Sizes {}

impl Sizes {
    /// For blocks in a memory of so many bytes.
    pub(crate) fn of_memory(bytes: u64) -> Result<Self> {
        let refused = || Error::new(ErrorKind::NoSpace, "no address space for the sizes of blocks");
        let places = usize::try_from(bytes / SMALLEST_BLOCK_BYTES).map_err(|_| refused())? + 1;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses; nothing else is touched.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), places * 4, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused());
        }
        let start = NonNull::new(start.cast()).ok_or_else(refused)?;
        Ok(Self { start, places })
    }

    #[inline]
    fn place(&self, number: usize) -> Option<&AtomicU32> {
        // SAFETY: within the mapping, which begins at a page and is all zeros at first, a value of
        // the type.
        (number < self.places).then(|| unsafe { self.start.add(number).as_ref() })
    }

    /// Notes that `bytes` were asked for of the block at an address.
    #[inline]
    pub(crate) fn note(&self, address: u64, bytes: usize) {
        let number = (address / SMALLEST_BLOCK_BYTES) as usize;
        let Some(place) = self.place(number) else { return };
        match u32::try_from(bytes) {
            Ok(bytes) if bytes != LARGE => place.store(bytes, Ordering::Relaxed),
            _ => self.note_large(number, bytes as u64),
        }
    }

    /// A block that large has many places.
    #[cold]
    fn note_large(&self, number: usize, bytes: u64) {
        for (i, part) in [LARGE, (bytes >> 32) as u32, bytes as u32].into_iter().enumerate() {
            if let Some(place) = self.place(number + i) {
                place.store(part, Ordering::Relaxed);
            }
        }
    }

    /// What was noted of the block at an address; 0 if nothing was.
    pub(crate) fn get(&self, address: u64) -> u64 {
        let number = (address / SMALLEST_BLOCK_BYTES) as usize;
        let part = |i: usize| self.place(number + i).map_or(0, |place| u64::from(place.load(Ordering::Relaxed)));
        match part(0) {
            large if large == u64::from(LARGE) => part(1) << 32 | part(2),
            small => small,
        }
    }
}

impl Drop for Sizes {
    fn drop(&mut self) {
        // SAFETY: the mapping made above; the last user of it is being dropped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.places * 4) };
    }
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn what_was_noted_is_told_and_nothing_else() {
        let sizes = Sizes::of_memory(1 << 40).expect("address space");
        let noted = [(0, 1), (32, 31), (64, 33_000), (1 << 20, u32::MAX as usize - 1), (1 << 30, u32::MAX as usize)];
        for (address, bytes) in noted.into_iter().chain([(1 << 35, 1 << 39)]) {
            assert_eq!(sizes.get(address), 0);
            sizes.note(address, bytes);
            assert_eq!(sizes.get(address), bytes as u64);
        }
        // Another block of the same place.
        sizes.note(1 << 35, 5);
        assert_eq!((sizes.get(1 << 35), sizes.get(64)), (5, 33_000));
        // Behind the memory there is nothing.
        sizes.note(1 << 50, 7);
        assert_eq!(sizes.get(1 << 50), 0);
    }
}

//! Memory that may be looked at and not stored to: a piece of it becomes memory of this process
//! before the first store.
//!
//! A device of persistent memory has no private mappings, which do that for files. Who only reads
//! copies nothing.
#![allow(unsafe_code, reason = "mmap(2) has no safe face")]

use core::alloc::Layout;
use core::ptr::{NonNull, copy_nonoverlapping, null_mut};
use onode_base::sync::{Mutex, rank};
use std::alloc::handle_alloc_error;
use std::collections::BTreeSet;

/// Bytes of a piece: such a device can only be mapped in pages of so many.
pub(super) const PIECE_BYTES: u64 = super::medium::LARGE_PAGE_BYTES;

/// The pieces of a mapping that are copies.
#[derive(Default)]
pub(super) struct Pieces(Mutex<BTreeSet<u64>, rank::MediumNotes>);

impl Pieces {
    /// Makes every piece of a range a copy.
    ///
    /// # Safety
    /// From `base` on there are mapped whole pieces, at least up to the end of the range, which no
    /// Rust reference points into and nobody else changes; `base` is a multiple of [`PIECE_BYTES`].
    pub(super) unsafe fn copy(&self, base: NonNull<u8>, at: u64, length: u64) {
        let mut copied = self.0.lock();
        for piece in at / PIECE_BYTES..at.saturating_add(length).div_ceil(PIECE_BYTES) {
            if copied.insert(piece) {
                // SAFETY: a piece of the range that the caller answers for.
                unsafe { copy_piece(base.as_ptr().add((piece * PIECE_BYTES) as usize)) };
            }
        }
    }
}

/// Puts a copy of a piece in its place, all at once.
///
/// # Safety
/// As for [`Pieces::copy`].
unsafe fn copy_piece(at: *mut u8) {
    const BYTES: usize = PIECE_BYTES as usize;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place that the kernel chooses, filled from a piece that can be
    // read. Moving it over the piece replaces what the caller has mapped there; a thread that reads
    // meanwhile finds the same bytes before and after.
    let moved = unsafe {
        let copy = libc::mmap(null_mut(), BYTES, protection, flags, -1, 0);
        if copy != libc::MAP_FAILED {
            copy_nonoverlapping(at, copy.cast::<u8>(), BYTES);
            libc::mremap(copy, BYTES, BYTES, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, at)
        } else {
            copy
        }
    };
    if moved == libc::MAP_FAILED {
        handle_alloc_error(Layout::new::<[u8; BYTES]>());
    }
}

#[cfg(test)]
mod tests {
    use super::PIECE_BYTES;
    use crate::real::pmem::mapping::{Access, Mapping};
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::vec;

    /// A file in memory, open for reading only, with words that say where they lie.
    fn numbered(bytes: u64) -> File {
        let fd = rustix::fs::memfd_create("onode", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let (file, path) = (File::from(fd.try_clone().unwrap()), std::format!("/proc/self/fd/{}", fd_number(&fd)));
        file.set_len(bytes).unwrap();
        for at in (0..bytes).step_by(4096) {
            file.write_all_at(&at.to_le_bytes(), at).unwrap();
        }
        File::open(path).unwrap()
    }

    fn fd_number(fd: &impl std::os::fd::AsRawFd) -> i32 {
        fd.as_raw_fd()
    }

    #[test]
    fn stores_are_seen_here_and_not_in_the_file() {
        let bytes = 4 * PIECE_BYTES;
        let file = numbered(bytes);
        let mapping = Mapping::reserve(2 * bytes, bytes, PIECE_BYTES).unwrap();
        mapping.extend(&file, bytes, Access::Copied(libc::MAP_SHARED)).unwrap();
        let edge = 2 * PIECE_BYTES;
        // Each way to store, the first of them across two pieces.
        mapping.write(edge - 4, &[1; 8]);
        mapping.store(4096, 7);
        assert_eq!(mapping.compare_exchange(8192, 8192, 9), Ok(8192));
        mapping.zero(12_288, 8);
        mapping.stream(16_384, &[2; 64]);
        let words = mapping.words(20_480, 1);
        assert_eq!(words[0].swap(5, std::sync::atomic::Ordering::AcqRel).to_le(), 20_480);
        let here = [4096, 8192, 12_288, 20_480].map(|at| mapping.load(at));
        assert_eq!((here, mapping.load(edge) as u32), ([7, 9, 0, 5], 0x0101_0101));
        let mut back = vec![0; 64];
        mapping.read(16_384, &mut back);
        assert_eq!(back, [2; 64]);
        // What nobody stored to is as it was, in pieces that are copies and in others.
        for at in [0, 24_576, edge + 4096, 3 * PIECE_BYTES, bytes - 4096] {
            assert_eq!(mapping.load(at), at);
        }
        for at in [4096, 8192, 12_288, 16_384, 20_480, edge] {
            let mut there = [0; 8];
            file.read_exact_at(&mut there, at).unwrap();
            assert_eq!(u64::from_le_bytes(there), at);
        }
    }

    #[test]
    fn who_only_reads_copies_nothing() {
        let file = numbered(PIECE_BYTES);
        let mapping = Mapping::reserve(PIECE_BYTES, PIECE_BYTES, PIECE_BYTES).unwrap();
        mapping.extend(&file, PIECE_BYTES, Access::Copied(libc::MAP_SHARED)).unwrap();
        assert_eq!(mapping.load(8192), 8192);
        // What others write goes on being seen as long as the piece is no copy.
        let path = std::format!("/proc/self/fd/{}", fd_number(&file));
        File::options().write(true).open(path).unwrap().write_all_at(&[3; 8], 8192).unwrap();
        assert_eq!(mapping.load(8192), 0x0303_0303_0303_0303);
        mapping.store(0, 1);
        assert_eq!(mapping.load(8192), 0x0303_0303_0303_0303);
    }
}

//! The working memory of an arena: anonymous memory of this process in pages of 4 KiB.
//!
//! Bytes are touched through pointers only, because the program stores there at the same time.
//! Every access is checked against the length. Nothing here is durable; what is, lies in the pages
//! of a checkpoint.

use onode_media::{Domain, MediaErrorKind, Pmem};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page of an arena, the unit in which changes are found and saved.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A range of pages that read as zeros until something is stored.
pub(crate) struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the range belongs to this value until it is dropped, and it is touched through pointers
// only.
unsafe impl Send for Memory {}
// SAFETY: as above; who stores where is settled by whoever uses the arena.
unsafe impl Sync for Memory {}

#[cold]
#[inline(never)]
fn outside(at: u64, length: u64, whole: usize) -> ! {
    panic!("bytes {at}..+{length} of {whole} of an arena");
}

impl Memory {
    /// Takes address space for `bytes`, whole pages.
    pub(crate) fn new(bytes: usize) -> std::io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses; nothing else is touched.
        let at = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        let base = NonNull::new(at.cast::<u8>()).filter(|_| at != libc::MAP_FAILED);
        let base = base.ok_or_else(std::io::Error::last_os_error)?;
        // A large page is dirty as a whole. SAFETY: advice on the range that was just mapped.
        unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Self { base, bytes })
    }

    pub(crate) const fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) const fn pages(&self) -> usize {
        self.bytes / PAGE_BYTES
    }

    /// Copies a page out; its bytes may be changing.
    pub(crate) fn copy_page(&self, page: usize, to: &mut [u8; PAGE_BYTES]) {
        self.read((page * PAGE_BYTES) as u64, to);
    }

    /// Makes everything zeros and gives the host its pages back.
    pub(crate) fn clear(&self) -> std::io::Result<()> {
        // SAFETY: the whole range is this value's, and its pages are allowed to become zeros.
        let code = unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, libc::MADV_DONTNEED) };
        if code == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }

    #[inline]
    fn at(&self, at: u64, length: u64) -> *mut u8 {
        let whole = self.bytes as u64;
        if at > whole || length > whole - at {
            outside(at, length, self.bytes);
        }
        // SAFETY: inside of the range, as just checked.
        unsafe { self.base.add(at as usize).as_ptr() }
    }

    #[inline]
    fn word(&self, at: u64) -> &AtomicU64 {
        let pointer = self.at(at, 8);
        assert!(at.is_multiple_of(8), "address {at} is not a multiple of 8");
        // SAFETY: mapped as long as `self` lives, aligned, and stored to as whole words by everyone
        // who uses words.
        unsafe { AtomicU64::from_ptr(pointer.cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; the last user of it is being dropped.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// For the allocator, whose tables lie in the arena and are saved with it.
impl Pmem for Memory {
    fn length(&self) -> u64 {
        self.bytes as u64
    }

    fn domain(&self) -> Domain {
        Domain::Fence
    }

    #[inline]
    fn load(&self, at: u64) -> u64 {
        u64::from_le(self.word(at).load(Ordering::Acquire))
    }

    #[inline]
    fn store(&self, at: u64, value: u64) {
        self.word(at).store(value.to_le(), Ordering::Release);
    }

    #[inline]
    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> Result<u64, u64> {
        let done = self.word(at).compare_exchange(current.to_le(), new.to_le(), Ordering::AcqRel, Ordering::Acquire);
        done.map(u64::from_le).map_err(u64::from_le)
    }

    #[inline]
    fn read(&self, at: u64, buffer: &mut [u8]) {
        let from = self.at(at, buffer.len() as u64);
        // SAFETY: `from` is mapped for as many bytes, and `buffer` is the caller's own.
        unsafe { std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), buffer.len()) };
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        let to = self.at(at, bytes.len() as u64);
        // SAFETY: as in `read`, the other way round.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn zero(&self, at: u64, length: u64) {
        let to = self.at(at, length);
        // SAFETY: mapped for as many bytes.
        unsafe { std::ptr::write_bytes(to, 0, length as usize) };
    }

    fn flush(&self, at: u64, length: u64) {
        self.at(at, length);
    }

    fn fence(&self) -> onode_media::Result<()> {
        std::sync::atomic::fence(Ordering::SeqCst);
        Ok(())
    }

    fn grow(&self, length: u64) -> onode_media::Result<()> {
        if length <= self.length() {
            return Ok(());
        }
        Err(onode_media::Error::new(MediaErrorKind::OutOfRange, "an arena does not grow"))
    }

    fn address(&self) -> Option<NonNull<u8>> {
        Some(self.base)
    }
}

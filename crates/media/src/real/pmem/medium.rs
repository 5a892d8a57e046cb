//! What a file is as memory: whether its lines have to be flushed, and how it is mapped.
//!
//! The kernel says it: only memory that the processor reaches directly can be mapped with
//! `MAP_SYNC`, and the type of the file system tells files that never had a disk.

use super::file::MemoryFile;
use super::mapping;
use crate::error::{MediaErrorKind, Result};
use crate::pmem::{Domain, LINE_BYTES};

const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const HUGETLBFS: u64 = 0x9584_58f6;

/// Bytes of a page of the processor, or a multiple of it: what offsets of mappings are multiples
/// of.
const PAGE_BYTES: u64 = 4096;
/// Alignment at which the kernel can use its larger pages.
pub(super) const LARGE_PAGE_BYTES: u64 = 2 << 20;

/// A kind of medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    /// A character device of persistent memory (`/dev/daxX.Y`).
    DaxDevice,
    /// A file of a file system on persistent memory, mapped without a page cache.
    DaxFile,
    /// A file that lives in memory.
    InMemory,
    /// The same in pages of so many bytes.
    Huge(u64),
    /// A file of any other file system.
    Plain,
}

impl Medium {
    pub(super) fn find_out(file: &MemoryFile) -> Result<Self> {
        if file.is_device() {
            return Ok(Self::DaxDevice);
        }
        let system = rustix::fs::fstatfs(file.file())
            .map_err(|errno| file.failed("look at the file system of", errno, MediaErrorKind::Host))?;
        // The width of the field is not the same on all architectures.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "a magic number of 32 bits")]
        let kind = system.f_type as u64 & 0xffff_ffff;
        Ok(match kind {
            HUGETLBFS => Self::Huge(u64::try_from(system.f_bsize).unwrap_or(LARGE_PAGE_BYTES)),
            TMPFS | RAMFS => Self::InMemory,
            _ if mapping::has_dax(file.file(), PAGE_BYTES) => Self::DaxFile,
            _ => Self::Plain,
        })
    }

    pub(super) const fn domain(self) -> Domain {
        match self {
            Self::DaxDevice | Self::DaxFile => Domain::Flush,
            Self::InMemory | Self::Huge(_) => Domain::Fence,
            Self::Plain => Domain::Sync,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::DaxDevice => "persistent memory (device)",
            Self::DaxFile => "persistent memory (file with DAX)",
            Self::InMemory => "file in memory",
            Self::Huge(_) => "file in memory (huge pages)",
            Self::Plain => "plain file",
        }
    }

    /// Flags of mmap(2) beyond the place.
    pub(super) const fn map_flags(self) -> i32 {
        match self {
            Self::DaxDevice | Self::DaxFile => libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
            Self::InMemory | Self::Huge(_) | Self::Plain => libc::MAP_SHARED,
        }
    }

    /// What offsets and addresses of mappings are multiples of.
    pub(super) const fn page_bytes(self) -> u64 {
        match self {
            Self::Huge(bytes) => bytes,
            Self::DaxDevice => LARGE_PAGE_BYTES,
            Self::DaxFile | Self::InMemory | Self::Plain => PAGE_BYTES,
        }
    }

    /// What lengths are multiples of.
    pub(super) const fn granularity(self) -> u64 {
        match self {
            Self::Huge(bytes) => bytes,
            _ => LINE_BYTES,
        }
    }
}

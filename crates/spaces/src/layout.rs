//! Where the partition table lies in a region, and the sizes of its parts.

/// What everything in a region is a multiple of.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Where the headers begin.
pub(crate) const HEADERS: [u64; 2] = [0, PAGE_BYTES];
/// Where the pages of the headers end.
pub(crate) const HEADERS_END: u64 = 2 * PAGE_BYTES;
/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 128;
/// Bytes of a list of spaces for each of them.
pub(crate) const ENTRY_BYTES: usize = 64;
/// Spaces that a region may have.
pub(crate) const SPACES_MAX: u32 = 4096;

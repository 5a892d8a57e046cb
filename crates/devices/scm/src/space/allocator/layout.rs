//! Where the side tables of the allocator lie: at the start of its area, or, once it has grown, at
//! its end.
//!
//! ```text
//! start  header: lock, free bytes, a list head per order      512 bytes
//!        lease slots: process, epoch, a list head per class      320 bytes each
//!        chunk table                                          8 bytes a chunk
//!        links of chunks in lists, counts                     16 bytes a chunk
//!        bitmaps: allocated, published                        2 bits per 32 bytes of a chunk
//! data   chunks
//! ```
//! All zeros mean empty everywhere, so a format is a fill with zeros and the few free pieces.
//! Chunks stay where they are when an area grows: the first one lies behind the tables that the
//! area was made with, for ever.

use super::class::CLASSES_MAX;

/// The smallest chunk.
pub const CHUNK_BYTES_MIN: u64 = 4 << 10;
/// The largest chunk.
pub const CHUNK_BYTES_MAX: u64 = 64 << 10;
/// Orders of pieces: a piece has two to the order chunks.
pub(super) const ORDERS: u64 = 42;
/// Chunks that a link can name.
const CHUNKS_MAX: u64 = u32::MAX as u64;
const HEADER_BYTES: u64 = 512;
const ORDER_HEADS: u64 = 128;
const LEASE_BYTES: u64 = 320;
const LEASE_HEADS: u64 = 64;
const LEASES_MIN: u64 = 4;
const LEASES_MAX: u64 = 64;

const _: () = assert!(ORDER_HEADS + ORDERS * 8 <= HEADER_BYTES);
const _: () = assert!(LEASE_HEADS + CLASSES_MAX as u64 * 8 <= LEASE_BYTES);

/// The addresses of everything in one area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Where the tables begin.
    start: u64,
    table_bytes: u64,
    /// Where the first chunk begins.
    pub(super) data: u64,
    /// Behind the last chunk.
    pub(super) end: u64,
    /// Bytes of all chunks.
    data_bytes: u64,
    /// The bits of an address that tell where in its chunk it is.
    offset_mask: u64,
    /// Logarithm of the bytes of a chunk.
    pub(super) chunk_shift: u32,
    /// Chunks in all.
    pub(super) chunks: u64,
    /// Lease slots, the one of the device itself (0) counted.
    pub(super) leases: u64,
    /// 64-bit words of one bitmap of a chunk.
    pub(super) bitmap_words: u64,
    table: u64,
    links: u64,
    bitmaps: u64,
}

const fn lease_slots(area_chunks: u64) -> u64 {
    let wanted = area_chunks / 64;
    if wanted < LEASES_MIN {
        LEASES_MIN
    } else if wanted > LEASES_MAX {
        LEASES_MAX
    } else {
        wanted
    }
}

/// Bytes of the side tables of an area of `area_bytes` cut in chunks of `chunk_bytes`, whole
/// chunks.
pub(super) fn table_bytes(area_bytes: u64, chunk_bytes: u64) -> u64 {
    let chunks = area_bytes / chunk_bytes.max(1);
    let per_chunk = 8 + 16 + chunk_bytes / 32 / 8 * 2;
    let bytes = (HEADER_BYTES + lease_slots(chunks) * LEASE_BYTES).saturating_add(chunks.saturating_mul(per_chunk));
    bytes.checked_next_multiple_of(chunk_bytes.max(1)).unwrap_or(u64::MAX)
}

impl Layout {
    /// The layout of an area that had `made_bytes` at first, or why there is none.
    pub(super) fn of(start: u64, made_bytes: u64, bytes: u64, chunk_bytes: u64) -> Result<Self, &'static str> {
        if !chunk_bytes.is_power_of_two() || !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes) {
            return Err("a chunk has a power of two of 4 to 64 KiB");
        }
        if !start.is_multiple_of(chunk_bytes) || start.checked_add(bytes).is_none() {
            return Err("an area begins at a multiple of its chunk and ends within the address space");
        }
        let tables = table_bytes(bytes, chunk_bytes);
        let has_grown = made_bytes != bytes;
        // What is in front of the chunks: the tables, or what is left of those it was made with.
        let before = table_bytes(made_bytes, chunk_bytes);
        let behind = if has_grown { tables } else { 0 };
        let chunks = bytes.saturating_sub(before).saturating_sub(behind) / chunk_bytes;
        if chunks == 0 || chunks > CHUNKS_MAX || made_bytes > bytes {
            return Err("an area holds its tables and 1 to 2^32 - 1 chunks, and never shrinks");
        }
        let data = start + before;
        let end = data + chunks * chunk_bytes;
        let (start, table_bytes) = if has_grown { (end, tables) } else { (start, before) };
        let leases = lease_slots(bytes / chunk_bytes);
        let table = start + HEADER_BYTES + leases * LEASE_BYTES;
        let links = table + chunks * 8;
        Ok(Self {
            start,
            table_bytes,
            data,
            end,
            data_bytes: end - data,
            offset_mask: chunk_bytes - 1,
            chunk_shift: chunk_bytes.trailing_zeros(),
            chunks,
            leases,
            bitmap_words: chunk_bytes / 32 / 64,
            table,
            links,
            bitmaps: links + chunks * 16,
        })
    }

    /// Behind everything.
    pub(super) const fn area_end(&self) -> u64 {
        if self.start < self.end { self.end } else { self.start + self.table_bytes }
    }

    /// The area of the tables: first address and bytes.
    pub(super) const fn tables(&self) -> (u64, u64) {
        (self.start, self.table_bytes)
    }

    #[inline]
    pub(super) const fn chunk_bytes(&self) -> u64 {
        1_u64.wrapping_shl(self.chunk_shift)
    }

    /// Chunks that a request takes, if whole chunks.
    #[inline]
    pub(super) const fn chunks_for(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(1).wrapping_shr(self.chunk_shift) + 1
    }

    /// The chunk of an address within the data.
    #[inline]
    pub(super) const fn chunk_of(&self, address: u64) -> Option<u64> {
        // One below the data is far behind it.
        let offset = address.wrapping_sub(self.data);
        if offset < self.data_bytes { Some(offset.wrapping_shr(self.chunk_shift)) } else { None }
    }

    /// Where in its chunk an address is: the first chunk begins at a multiple of its size.
    #[inline]
    pub(super) const fn offset_in_chunk(&self, address: u64) -> u64 {
        address & self.offset_mask
    }

    #[inline]
    pub(super) const fn address_of(&self, chunk: u64) -> u64 {
        self.data + (chunk << self.chunk_shift)
    }

    pub(super) const fn lock(&self) -> u64 {
        self.start
    }

    pub(super) const fn free_bytes(&self) -> u64 {
        self.start + 8
    }

    /// The head of the list of free pieces of an order.
    pub(super) const fn order_head(&self, order: u32) -> u64 {
        self.start + ORDER_HEADS + order as u64 * 8
    }

    /// A word of a lease slot.
    pub(super) const fn lease_word(&self, lease: u16, word: u64) -> u64 {
        self.start + HEADER_BYTES + lease as u64 * LEASE_BYTES + word * 8
    }

    /// The head of the list of chunks of a class with free blocks, of a lease.
    pub(super) const fn class_head(&self, lease: u16, class: usize) -> u64 {
        self.lease_word(lease, 0) + LEASE_HEADS + class as u64 * 8
    }

    /// The entry of a chunk in the chunk table.
    #[inline]
    pub(super) const fn entry(&self, chunk: u64) -> u64 {
        self.table.wrapping_add(chunk << 3)
    }

    /// The links of a chunk: next and previous in its list, one more than the chunk each.
    pub(super) const fn link(&self, chunk: u64) -> u64 {
        self.links + chunk * 16
    }

    /// The count of free blocks of a chunk, and the word of the bitmap below which none is free.
    pub(super) const fn count(&self, chunk: u64) -> u64 {
        self.links + chunk * 16 + 8
    }

    /// A word of the bitmap of allocated blocks.
    #[inline]
    pub(super) const fn allocated(&self, chunk: u64, word: u64) -> u64 {
        self.bitmaps.wrapping_add((chunk << 1).wrapping_mul(self.bitmap_words).wrapping_add(word) << 3)
    }

    /// A word of the bitmap of published blocks.
    #[inline]
    pub(super) const fn published(&self, chunk: u64, word: u64) -> u64 {
        self.bitmaps.wrapping_add((chunk << 1 | 1).wrapping_mul(self.bitmap_words).wrapping_add(word) << 3)
    }
}

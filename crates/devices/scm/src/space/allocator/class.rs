//! Sizes of blocks smaller than a chunk: powers of two, and half-classes (three times a power of
//! two) between them.
//!
//! The worst waste of a request is a third with half-classes and a half without (pure buddy, as in
//! the paper). The half class between a quarter and a half of a chunk does not exist: no more of
//! its blocks would fit a chunk.

use super::SMALLEST_BLOCK_BYTES;

/// Which classes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Classes {
    /// Powers of two and three times powers of two.
    #[default]
    Halves,
    /// Powers of two only (paper 2).
    PureBuddy,
}

/// Classes of the largest chunk.
pub(super) const CLASSES_MAX: usize = 21;

/// One class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Class {
    /// Bytes of a block.
    pub(super) bytes: u32,
    /// Blocks of a chunk.
    pub(super) blocks: u32,
    /// 2^32 / bytes, rounded up: the index of a block without a division.
    reciprocal: u64,
}

impl Class {
    /// The block of a chunk that the byte at `offset` of the chunk lies in, which may be behind the
    /// last.
    #[inline]
    pub(super) const fn index(&self, offset: u64) -> u64 {
        // Offsets are less than 2^16, reciprocals at most 2^27.
        offset.wrapping_mul(self.reciprocal) >> 32
    }

    /// The index of the block that begins at `offset`, if one begins there.
    #[inline]
    pub(super) const fn begins(&self, offset: u64) -> Option<u64> {
        let index = self.index(offset);
        if index.wrapping_mul(self.bytes as u64) == offset && index < self.blocks as u64 { Some(index) } else { None }
    }
}

/// The classes of one chunk size.
#[derive(Clone, Debug)]
pub(super) struct ClassTable {
    classes: [Class; 32],
    /// Requests larger than this take whole chunks.
    pub(super) bytes_max: u64,
    /// A bit per class that does not exist: its requests take the next.
    skipped: u32,
}

/// The class of a request of 1 to `bytes_max` bytes, before classes that do not exist are skipped.
#[inline]
const fn plain_class(bytes: u64) -> usize {
    let last = if bytes < SMALLEST_BLOCK_BYTES { SMALLEST_BLOCK_BYTES - 1 } else { bytes - 1 };
    let log = last.ilog2() as usize;
    // The logarithm is at least 4.
    (2 * log + (last.wrapping_shr(log as u32 - 1) & 1) as usize).wrapping_sub(9)
}

impl ClassTable {
    pub(super) fn new(chunk_bytes: u64, which: Classes) -> Self {
        let mut classes = [Class::default(); 32];
        let mut skipped = 0;
        for (index, class) in classes.iter_mut().enumerate().take(CLASSES_MAX) {
            let base = if index % 2 == 0 { SMALLEST_BLOCK_BYTES } else { SMALLEST_BLOCK_BYTES / 2 * 3 };
            let bytes = base << (index / 2);
            let blocks = chunk_bytes / bytes;
            if blocks >= 2 {
                let reciprocal = (1_u64 << 32).div_ceil(bytes);
                *class = Class { bytes: bytes as u32, blocks: blocks as u32, reciprocal };
            }
            if index % 2 == 1 && (which == Classes::PureBuddy || bytes * 8 == chunk_bytes * 3) {
                skipped |= 1 << index;
            }
        }
        Self { classes, bytes_max: chunk_bytes / 2, skipped }
    }

    /// The class of a request; `None` if it takes whole chunks.
    #[inline]
    pub(super) const fn of(&self, bytes: u64) -> Option<usize> {
        if bytes > self.bytes_max {
            return None;
        }
        let class = plain_class(bytes);
        Some(class + (self.skipped.wrapping_shr(class as u32) & 1) as usize)
    }

    /// A class, which an entry of the chunk table may name: any number is allowed.
    #[inline]
    pub(super) const fn get(&self, class: usize) -> &Class {
        &self.classes[class & 31]
    }
}

//! Extents: which blocks of the big disk hold which blocks of an object, and their checksums.

use crate::medium::bytes::{put_u16, put_u32, put_u64, take_u16, take_u32, take_u64};
use alloc::vec::Vec;

/// Most blocks of an extent.
pub const MOST_BLOCKS: u64 = 64;

/// A run of blocks. `born` is the checkpoint in the making when they were allocated: block and
/// `born` name one content, for blocks given up are handed out again only after the next
/// checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first block on the big disk.
    pub block: u64,
    /// The checkpoint that was being made.
    pub born: u64,
    /// The checksum of each block.
    pub sums: Vec<u32>,
}

impl Extent {
    /// The extent of `content`, which is whole blocks, at `block`.
    #[cfg(test)]
    pub fn of(block: u64, born: u64, content: &[u8]) -> Self {
        let sums = content.chunks(crate::medium::layout::BLOCK_BYTES).map(onode_base::checksum::crc32c).collect();
        Self { block, born, sums }
    }

    /// Blocks in it.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.sums.len() as u64
    }

    /// Whether `next` lies right behind it and was allocated with it, so that both can be read at
    /// once.
    #[must_use]
    pub fn is_continued_by(&self, next: &Self) -> bool {
        const MOST_AT_ONCE: u64 = 256;
        let is_short = self.blocks() + next.blocks() <= MOST_AT_ONCE;
        is_short && self.born == next.born && self.block + self.blocks() == next.block
    }

    /// The part of `count` blocks from `skip` on, as far as there is one.
    #[must_use]
    pub fn part(&self, skip: u64, count: u64) -> Self {
        let from = skip.min(self.blocks()) as usize;
        let sums = self.sums.iter().skip(from).take(count.min(self.blocks()) as usize).copied().collect();
        Self { block: self.block + skip, born: self.born, sums }
    }

    /// Its value in the tree.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18 + 4 * self.sums.len());
        put_u64(&mut out, self.block);
        put_u64(&mut out, self.born);
        put_u16(&mut out, self.sums.len() as u16);
        self.sums.iter().for_each(|sum| put_u32(&mut out, *sum));
        out
    }

    /// Takes an extent off the front of `input`.
    #[must_use]
    pub fn take(input: &mut &[u8]) -> Option<Self> {
        let (block, born) = (take_u64(input)?, take_u64(input)?);
        let count = take_u16(input)?;
        if count == 0 || u64::from(count) > MOST_BLOCKS {
            return None;
        }
        let sums = (0..count).map(|_| take_u32(input)).collect::<Option<Vec<_>>>()?;
        Some(Self { block, born, sums })
    }

    /// The extent that a value in the tree stands for.
    #[must_use]
    pub fn decode(mut value: &[u8]) -> Option<Self> {
        let extent = Self::take(&mut value)?;
        value.is_empty().then_some(extent)
    }
}

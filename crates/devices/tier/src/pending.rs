//! Content that is in the log, or only in memory, and has no place of its own yet: whole blocks by object and number.

use crate::layout::BLOCK;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The blocks, in the order in which they go to the disk.
#[derive(Debug, Default)]
pub struct Pending {
    blocks: BTreeMap<(u64, u64), Vec<u8>>,
}

impl Pending {
    /// Blocks.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count() * BLOCK
    }

    /// A block.
    #[must_use]
    pub fn get(&self, object: u64, block: u64) -> Option<&[u8]> {
        self.blocks.get(&(object, block)).map(|bytes| &bytes[..])
    }

    /// Puts a block; says whether it is a new one.
    pub fn put(&mut self, object: u64, block: u64, bytes: Vec<u8>) -> bool {
        self.blocks.insert((object, block), bytes).is_none()
    }

    /// The blocks of an object in `from..end`.
    pub fn range(&self, object: u64, from: u64, end: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let range = (object, from)..(object, end.max(from));
        self.blocks.range(range).map(|((_, block), bytes)| (*block, &bytes[..]))
    }

    /// Drops the blocks of an object in `from..end`; returns how many there were.
    pub fn remove(&mut self, object: u64, from: u64, end: u64) -> u64 {
        let gone: Vec<u64> = self.range(object, from, end).map(|(block, _)| block).collect();
        gone.iter().for_each(|block| _ = self.blocks.remove(&(object, *block)));
        gone.len() as u64
    }

    /// Takes the first run off: blocks of one object that follow each other, `most` at most.
    pub fn take_run(&mut self, most: u64) -> Option<(u64, u64, Vec<u8>)> {
        let ((object, first), mut bytes) = self.blocks.pop_first()?;
        for next in first + 1..first + most {
            let Some(more) = self.blocks.remove(&(object, next)) else { break };
            bytes.extend_from_slice(&more);
        }
        Some((object, first, bytes))
    }

    /// Puts back what was taken off and found no place.
    pub fn put_run(&mut self, object: u64, first: u64, bytes: &[u8]) {
        for (block, content) in (first..).zip(bytes.chunks(BLOCK as usize)) {
            self.blocks.insert((object, block), content.to_vec());
        }
    }
}

//! Cache of partly filled last blocks, so that an append does not read before it writes.
//!
//! What it keeps true: an entry is the content of a block that is in use, of the birth that it is
//! asked for with. It goes when the block is given up, and the oldest go when there are too many.

use crate::content::pending::{padded, trimmed, weight};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Content that does not fill its block.
#[derive(Debug)]
struct Tail {
    born: u64,
    turn: u64,
    bytes: Vec<u8>,
}

/// Such blocks, by their place on the big disk.
#[derive(Debug, Default)]
pub struct TailCache {
    blocks: BTreeMap<u64, Tail>,
    /// The same by when they came.
    turns: BTreeMap<u64, u64>,
    turn: u64,
    bytes: u64,
}

impl TailCache {
    /// Bytes of memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps the content of a block if it does not fill it, and `most` bytes of all.
    pub fn keep(&mut self, block: u64, born: u64, content: &[u8], most: u64) {
        let bytes = trimmed(content);
        if bytes.len() == content.len() || weight(bytes) > most {
            return;
        }
        self.forget(block, 1);
        self.turn += 1;
        self.bytes += weight(bytes);
        self.blocks.insert(block, Tail { born, turn: self.turn, bytes: bytes.to_vec() });
        self.turns.insert(self.turn, block);
        while self.bytes > most
            && let Some((_, oldest)) = self.turns.first_key_value()
        {
            self.forget(*oldest, 1);
        }
    }

    /// The whole content of a block.
    #[must_use]
    pub fn get(&self, block: u64, born: u64) -> Option<Vec<u8>> {
        let tail = self.blocks.get(&block).filter(|tail| tail.born == born)?;
        Some(padded(&tail.bytes))
    }

    /// Blocks are given up.
    pub fn forget(&mut self, first: u64, count: u64) {
        while let Some((block, _)) = self.blocks.range(first..first + count).next() {
            let block = *block;
            let Some(tail) = self.blocks.remove(&block) else { return };
            self.turns.remove(&tail.turn);
            self.bytes -= weight(&tail.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TailCache;
    use crate::medium::layout::BLOCK_BYTES;
    use alloc::vec;

    #[test]
    fn the_oldest_go_and_what_was_given_up_is_gone() {
        let mut tails = TailCache::default();
        let mut content = vec![7; 1000];
        content.resize(BLOCK_BYTES, 0);
        for block in 0..10 {
            tails.keep(block, 1, &content, 3000);
        }
        assert_eq!((tails.bytes(), tails.get(6, 1)), (3000, None));
        assert_eq!(tails.get(7, 1).as_ref(), Some(&content));
        assert_eq!(tails.get(7, 2), None, "another birth");
        tails.keep(20, 1, &vec![7; BLOCK_BYTES], 3000);
        assert_eq!(tails.get(20, 1), None, "it is full");
        // The same block again is not counted twice, and zeros are content, too.
        tails.keep(8, 2, &vec![0; BLOCK_BYTES], 3000);
        assert_eq!((tails.bytes(), tails.get(8, 2)), (2256, Some(vec![0; BLOCK_BYTES])));
        tails.forget(0, 9);
        assert_eq!((tails.bytes(), tails.get(8, 2)), (1000, None));
        tails.forget(0, u64::MAX);
        assert_eq!((tails.bytes(), tails.turns.len()), (0, 0));
    }
}

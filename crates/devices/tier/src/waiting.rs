//! Writes that wait for the big disk: everybody reads them as if they were done.
//!
//! A checkpoint under way hands over all that it writes at once, in runs of blocks, and the disk takes one after the
//! other when it has nothing else to do. A run is dropped only when the disk has it, so a write that fails leaves it readable.

use crate::fast::Piece;
use crate::layout::{BLOCK, BLOCK_BYTES};
use crate::wanted::Wanted;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_media::IoTag;

/// Bytes of a run at most.
const MOST_BYTES: usize = 1 << 20;

/// What one request writes.
#[derive(Debug)]
pub struct Run {
    /// Whole blocks.
    pub bytes: Vec<u8>,
    /// What they are.
    pub tag: IoTag,
    /// Content in them, of which the fast disk may take a copy.
    pub pieces: Vec<Piece>,
}

/// The writes, by their first block. No two have a block in common.
#[derive(Debug, Default)]
pub struct Waiting {
    runs: BTreeMap<u64, Arc<Run>>,
    bytes: u64,
}

impl Waiting {
    /// Bytes of memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds writes of one kind; those that lie in a row become one.
    pub fn add(&mut self, mut writes: Vec<(u64, Vec<u8>, Option<Piece>)>, tag: IoTag) {
        writes.sort_unstable_by_key(|(block, ..)| *block);
        let mut last: Option<(u64, Run)> = None;
        for (block, bytes, piece) in writes {
            match last.as_mut() {
                Some((first, run))
                    if *first + run.bytes.len() as u64 / BLOCK == block && run.bytes.len() < MOST_BYTES =>
                {
                    run.bytes.extend_from_slice(&bytes);
                    run.pieces.extend(piece);
                }
                _ => {
                    let run = Run { bytes, tag, pieces: piece.into_iter().collect() };
                    if let Some((first, run)) = last.replace((block, run)) {
                        self.put(first, run);
                    }
                }
            }
        }
        if let Some((first, run)) = last {
            self.put(first, run);
        }
    }

    fn put(&mut self, first: u64, run: Run) {
        self.bytes += run.bytes.len() as u64;
        self.runs.insert(first, Arc::new(run));
    }

    /// The run that is to be written next.
    #[must_use]
    pub fn first(&self) -> Option<(u64, Arc<Run>)> {
        self.runs.first_key_value().map(|(block, run)| (*block, Arc::clone(run)))
    }

    /// The disk has the run that begins at `block`.
    pub fn remove(&mut self, block: u64) {
        if let Some(run) = self.runs.remove(&block) {
            self.bytes -= run.bytes.len() as u64;
        }
    }

    /// Gives what is wanted and is not there yet its content, if that is still to be written.
    pub fn fill(&self, wanted: &mut Wanted) {
        if self.runs.is_empty() {
            return;
        }
        for part in wanted.missing(0) {
            for (first, run) in self.within(part.block, part.count as u64) {
                for number in part.blocks() {
                    let block = wanted.extent.block + number as u64;
                    let Some(at) = block.checked_sub(first).map(|at| at as usize * BLOCK_BYTES) else { continue };
                    let content = run.bytes.get(at..at + BLOCK_BYTES);
                    if let (Some(content), Some(to)) = (content, wanted.block(number)) {
                        to.copy_from_slice(content);
                        wanted.verify(number);
                    }
                }
            }
        }
    }

    /// The runs that have a block in `block..block + count`, with their first blocks.
    #[must_use]
    pub fn within(&self, block: u64, count: u64) -> Vec<(u64, Arc<Run>)> {
        let before = self.runs.range(..block).next_back();
        let inside = self.runs.range(block..block + count);
        let reaches = |(first, run): &(&u64, &Arc<Run>)| **first + run.bytes.len() as u64 / BLOCK > block;
        before.filter(reaches).into_iter().chain(inside).map(|(first, run)| (*first, Arc::clone(run))).collect()
    }
}

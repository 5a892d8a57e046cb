//! Writes that wait for the big disk: everybody reads them as if they were done.
//!
//! A checkpoint under way hands over all that it writes at once, in runs of blocks, and the disk
//! takes one after the other when it has nothing else to do. So does a commit whose content goes to
//! its place at once, and writes it when it has let go of the state. A run is dropped only when the
//! disk has it, so a write that fails leaves it readable.

use crate::content::pending::Logged;
use crate::disks::read_plan::PlannedRun;
use crate::fast::Piece;
use crate::medium::errors::bug;
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_media::IoTag;
use onode_object::Result;

/// Bytes of a run at most.
const MOST_BYTES: usize = 1 << 20;

/// What one request writes.
#[derive(Debug)]
pub struct WaitingWrite {
    /// Whole blocks.
    pub bytes: Vec<u8>,
    /// What they are.
    pub tag: IoTag,
    /// Content in them, of which the fast disk may take a copy.
    pub pieces: Vec<Piece>,
}

/// A write: its first block, the bytes, and what content they are.
pub type Placed = (u64, Vec<u8>, Option<Piece>);

/// Content that goes to the big disk from the log of the fast one.
#[derive(Debug, Default)]
pub struct Far {
    /// Where each block is.
    pub logged: Vec<Logged>,
    /// What content it is.
    pub pieces: Vec<Piece>,
}

/// What is written next, and where.
pub enum Next {
    /// These bytes.
    Run(u64, Arc<WaitingWrite>),
    /// What the fast disk has.
    Far(u64, Far),
}

/// The writes, by their first block. No two have a block in common.
#[derive(Debug, Default)]
pub struct Waiting {
    runs: BTreeMap<u64, Arc<WaitingWrite>>,
    bytes: u64,
    /// Those of them that a commit writes as soon as it has let go of the state, in their order.
    placed: VecDeque<u64>,
    far: BTreeMap<u64, Far>,
}

impl Waiting {
    /// Bytes of memory.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds writes of one kind; those that lie in a row become one.
    ///
    /// # Errors
    /// `Bug` if one of them has a block that another one waits for.
    pub fn add(&mut self, mut writes: Vec<Placed>, tag: IoTag) -> Result<()> {
        writes.sort_unstable_by_key(|(block, ..)| *block);
        let mut last: Option<(u64, WaitingWrite)> = None;
        for (block, bytes, piece) in writes {
            match last.as_mut() {
                Some((first, run))
                    if *first + run.bytes.len() as u64 / BLOCK == block && run.bytes.len() < MOST_BYTES =>
                {
                    run.bytes.extend_from_slice(&bytes);
                    run.pieces.extend(piece);
                }
                _ => {
                    let run = WaitingWrite { bytes, tag, pieces: piece.into_iter().collect() };
                    if let Some((first, run)) = last.replace((block, run)) {
                        self.put(first, run)?;
                    }
                }
            }
        }
        last.map_or(Ok(()), |(first, run)| self.put(first, run))
    }

    /// Adds content on its way to its place.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_placed(&mut self, piece: Piece, bytes: Vec<u8>) -> Result<()> {
        self.put(piece.block, WaitingWrite { bytes, tag: IoTag::Data, pieces: vec![piece] })?;
        self.placed.push_back(piece.block);
        Ok(())
    }

    /// The next of those that is not written yet.
    pub fn next_placed(&mut self) -> Option<(u64, Arc<WaitingWrite>)> {
        while let Some(first) = self.placed.front() {
            if let Some(run) = self.runs.get(first) {
                return Some((*first, Arc::clone(run)));
            }
            self.placed.pop_front();
        }
        None
    }

    fn put(&mut self, first: u64, run: WaitingWrite) -> Result<()> {
        if !self.within(first, run.bytes.len() as u64 / BLOCK).is_empty() {
            return Err(bug(format!("two writes of block {first} wait for the big disk")));
        }
        self.bytes += run.bytes.len() as u64;
        self.runs.insert(first, Arc::new(run));
        Ok(())
    }

    /// Adds content that the log of the fast disk has; what comes to lie in a row becomes one
    /// write.
    ///
    /// # Errors
    /// `Bug` as [`add`](Self::add).
    pub fn add_far(&mut self, mut all: Vec<(Piece, Vec<Logged>)>) -> Result<()> {
        all.sort_unstable_by_key(|(piece, _)| piece.block);
        for (piece, logged) in all {
            match self.far.range_mut(..piece.block).next_back() {
                Some((first, far))
                    if *first + far.logged.len() as u64 == piece.block
                        && far.logged.len() * BLOCK_BYTES < MOST_BYTES =>
                {
                    far.logged.extend(logged);
                    far.pieces.push(piece);
                }
                _ => {
                    if self.far.insert(piece.block, Far { logged, pieces: vec![piece] }).is_some() {
                        return Err(bug(format!("two writes of block {} wait for the big disk", piece.block)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether some of it is in the log of the fast disk alone.
    #[must_use]
    pub fn has_far(&self) -> bool {
        !self.far.is_empty()
    }

    /// What is to be written next.
    #[must_use]
    pub fn first(&self) -> Option<Next> {
        let far = self.far.first_key_value();
        let run = self.runs.first_key_value().filter(|(block, _)| far.is_none_or(|(first, _)| first > block));
        if let Some((block, run)) = run {
            return Some(Next::Run(*block, Arc::clone(run)));
        }
        far.map(|(block, far)| Next::Far(*block, Far { logged: far.logged.clone(), pieces: far.pieces.clone() }))
    }

    /// The disk has what was read from the fast one for `block` and those behind it.
    pub fn remove_far(&mut self, block: u64) {
        self.far.remove(&block);
    }

    /// Where the fast disk has what is wanted and is not there yet: the number of each such block.
    #[must_use]
    pub fn far(&self, wanted: &PlannedRun) -> Vec<(usize, Logged)> {
        if self.far.is_empty() {
            return Vec::new();
        }
        let place = |number: usize| {
            let block = wanted.extent.block + number as u64;
            let (first, far) = self.far.range(..=block).next_back()?;
            Some((number, *far.logged.get((block - first) as usize)?))
        };
        wanted.missing(0).into_iter().flat_map(|part| part.blocks()).filter_map(place).collect()
    }

    /// The disk has the run that begins at `block`.
    pub fn remove(&mut self, block: u64) {
        if let Some(run) = self.runs.remove(&block) {
            self.bytes -= run.bytes.len() as u64;
        }
    }

    /// Gives what is wanted and is not there yet its content, if that is still to be written.
    pub fn fill(&self, wanted: &mut PlannedRun) {
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
    pub fn within(&self, block: u64, count: u64) -> Vec<(u64, Arc<WaitingWrite>)> {
        let before = self.runs.range(..block).next_back();
        let inside = self.runs.range(block..block + count);
        let reaches = |(first, run): &(&u64, &Arc<WaitingWrite>)| **first + run.bytes.len() as u64 / BLOCK > block;
        before.filter(reaches).into_iter().chain(inside).map(|(first, run)| (*first, Arc::clone(run))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_object::ErrorKind;

    #[test]
    fn a_write_that_waits_is_not_lost_to_another_one() {
        let mut waiting = Waiting::default();
        let write = |block: u64, blocks: usize| vec![(block, vec![1; blocks * BLOCK_BYTES], None)];
        waiting.add(write(10, 4), IoTag::Data).unwrap();
        for block in [10, 12, 8] {
            assert_eq!(waiting.add(write(block, 3), IoTag::Data).unwrap_err().kind, ErrorKind::Bug);
        }
        waiting.add(write(14, 1), IoTag::Data).unwrap();
        assert_eq!(waiting.bytes(), 5 * BLOCK);
    }
}

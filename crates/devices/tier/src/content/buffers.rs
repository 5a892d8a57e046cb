//! Content in memory: what has no place yet, last blocks of what went home lately, and what was
//! read for the transaction at hand.
//!
//! What it keeps true: memory holds no more of each than the mount allows, as far as the fast disk
//! has the rest in its log. A block that was read for a transaction is there until that is applied,
//! so that applying it cannot fail.
//!
//! What it does not do: know where content lies on the disks, or write it.

use crate::content::pending::{Content, Held, Pending, PendingRun, padded};
use crate::content::plan::{ReadPlan, StoredBlocks};
use crate::content::tail_cache::TailCache;
use crate::device::options::MountOptions;
use crate::disks::Disks;
use crate::log::change::Change;
use crate::medium::layout::BLOCK_BYTES;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Mutation, ObjectId, Result};

/// Blocks of content that were read for a change, by their place and its birth; content that the
/// log of the fast disk has, by where it lies there and [`u64::MAX`].
pub type Prefetched = BTreeMap<(u64, u64), Vec<u8>>;

/// Figures of content since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentFigures {
    /// Bytes that users wrote.
    pub bytes_written: u64,
    /// Blocks read from the big disk.
    pub blocks_read: u64,
    /// Blocks read from the fast disk.
    pub blocks_read_fast: u64,
    /// Blocks of the big disk whose checksum was wrong.
    pub damaged_blocks: u64,
    /// Those of them that were written again from their copies.
    pub repaired_blocks: u64,
    /// Pending blocks that were deleted before they were written.
    pub blocks_never_written: u64,
}

/// Content in memory.
pub struct Buffers {
    /// Content without a place.
    pending: Pending,
    /// Bytes of it that memory is to have at most.
    most_pending: u64,
    /// Last blocks of what went home lately.
    tails: TailCache,
    /// Bytes of them at most.
    most_tails: u64,
    /// Blocks read ahead for the transaction at hand.
    prefetched: Prefetched,
    /// Content of a block that a change needs and that is not in memory. It is pinned.
    miss: Option<ReadPlan>,
    figures: ContentFigures,
}

impl Buffers {
    /// Empty ones, as large as the mount allows.
    #[must_use]
    pub fn new(options: &MountOptions) -> Self {
        Self {
            pending: Pending::default(),
            most_pending: options.pending_bytes,
            tails: TailCache::default(),
            most_tails: options.tail_bytes,
            prefetched: Prefetched::new(),
            miss: None,
            figures: ContentFigures::default(),
        }
    }

    /// Figures since the mount.
    #[must_use]
    pub const fn figures(&self) -> &ContentFigures {
        &self.figures
    }

    /// Users wrote so many bytes.
    pub const fn count_written(&mut self, bytes: u64) {
        self.figures.bytes_written += bytes;
    }

    /// Counts what was read.
    pub fn count_read(&mut self, found: &StoredBlocks) {
        self.figures.blocks_read_fast += found.on_fast;
        self.figures.blocks_read += found.from_big.iter().map(|part| part.count as u64).sum::<u64>();
    }

    /// A block of the big disk is damaged.
    pub const fn count_damaged(&mut self) {
        self.figures.damaged_blocks += 1;
    }

    /// A damaged block was written again from its copy.
    pub const fn count_repaired(&mut self) {
        self.figures.repaired_blocks += 1;
    }

    /// Content without a place.
    #[must_use]
    pub const fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Bytes of content without a place that memory is to have at most.
    #[must_use]
    pub const fn most_pending(&self) -> u64 {
        self.most_pending
    }

    /// Whether memory has more of it than it should.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.pending.bytes() > self.most_pending
    }

    /// Puts a block without a place; says whether it is a new one.
    pub fn put(&mut self, object: ObjectId, block: u64, bytes: Vec<u8>) -> bool {
        self.pending.put(object.0, block, bytes)
    }

    /// Drops the blocks of an object without a place in `first..last`; returns how many there were.
    pub fn remove(&mut self, object: ObjectId, first: u64, last: u64) -> u64 {
        let gone = self.pending.remove(object.0, first, last);
        self.figures.blocks_never_written += gone;
        gone
    }

    /// Gives the blocks of an object without a place in `blocks` to another object, which has none
    /// there; returns how many there were.
    pub fn move_to(&mut self, object: ObjectId, to: ObjectId, blocks: Range<u64>) -> u64 {
        self.pending.move_to(object.0, to.0, blocks)
    }

    /// Takes the first run off that gets a place, `most` blocks at most.
    pub fn take_run(&mut self, most: u64) -> Option<(u64, u64, PendingRun)> {
        self.pending.take_run(most)
    }

    /// Puts back what was taken off and found no place.
    pub fn put_run(&mut self, object: u64, first: u64, run: PendingRun) {
        self.pending.put_run(object, first, run);
    }

    /// The fast disk has this in its log, where it can be read: memory holds no more of it than it
    /// should.
    pub fn let_go(&mut self, readable: impl IntoIterator<Item = Content>) {
        self.pending.note_readable(readable);
        self.pending.spill(self.most_pending);
    }

    /// A transaction of `changes` was taken from a payload of `length` bytes, which begins at byte
    /// `at` of the fast disk: memory need not hold more of it than it should.
    pub fn let_go_of_replayed(&mut self, changes: &[(Change, usize)], at: u64, length: usize) {
        let mut contents = Vec::new();
        for (change, behind) in changes {
            if let Change::Plain(Mutation::Write { object, offset, data }) = change {
                self.pending.contents(*object, *offset, data, length - behind, &mut contents);
            }
        }
        contents.iter_mut().for_each(|content| content.logged.at += at);
        self.let_go(contents);
    }

    /// Keeps the content of a block that went home, if it does not fill the block.
    pub fn keep_tail(&mut self, block: u64, born: u64, content: &[u8]) {
        self.tails.keep(block, born, content, self.most_tails);
    }

    /// The whole content of a last block that went home lately.
    #[must_use]
    pub fn tail(&self, block: u64, born: u64) -> Option<Vec<u8>> {
        self.tails.get(block, born)
    }

    /// Blocks are given up.
    pub fn forget_tails(&mut self, block: u64, count: u64) {
        self.tails.forget(block, count);
    }

    /// Bytes of memory for last blocks.
    #[must_use]
    pub const fn tail_bytes(&self) -> u64 {
        self.tails.bytes()
    }

    /// Another transaction is prepared, for which this was read already.
    pub fn begin(&mut self, given: &Prefetched) {
        self.prefetched.clone_from(given);
    }

    /// Keeps a block that was read from its place, until the transaction is applied.
    pub fn prefetch(&mut self, block: u64, born: u64, bytes: Vec<u8>) {
        self.prefetched.insert((block, born), bytes);
    }

    /// A block that was read from its place for the transaction at hand.
    #[must_use]
    pub fn prefetched(&self, block: u64, born: u64) -> Option<&Vec<u8>> {
        self.prefetched.get(&(block, born))
    }

    /// The transaction is applied.
    pub fn end(&mut self) {
        self.prefetched.clear();
    }

    /// The content of a block without a place; `None` if it has one, or none was written.
    ///
    /// # Errors
    /// As [`Disks::load`].
    pub fn held(&self, disks: &Disks, object: ObjectId, block: u64) -> Result<Option<Vec<u8>>> {
        match self.pending.get(object.0, block) {
            None => Ok(None),
            Some(Held::Bytes(bytes)) => Ok(Some(padded(bytes))),
            Some(Held::Logged(_)) if is_planted(Bug::TierSpilledBlank) => Ok(Some(vec![0; BLOCK_BYTES])),
            Some(Held::Logged(logged)) => match self.prefetched.get(&(logged.at, u64::MAX)) {
                Some(bytes) => Ok(Some(bytes.clone())),
                None => disks.load(&[*logged]).map(Some),
            },
        }
    }

    /// Reads a block that only the log of the fast disk has, so that a change of it cannot fail.
    ///
    /// # Errors
    /// As [`Disks::load`].
    pub fn prefetch_held(&mut self, disks: &Disks, object: ObjectId, block: u64) -> Result<()> {
        if let Some(Held::Logged(logged)) = self.pending.get(object.0, block) {
            let logged = *logged;
            let bytes = disks.load(&[logged])?;
            self.prefetched.insert((logged.at, u64::MAX), bytes);
        }
        Ok(())
    }

    /// A block is lacking that a change needs, and its place is pinned.
    pub fn note_miss(&mut self, plan: ReadPlan) {
        self.miss = Some(plan);
    }

    /// What was lacking.
    pub const fn take_miss(&mut self) -> Option<ReadPlan> {
        self.miss.take()
    }
}

//! Content gets its places: pending blocks at a checkpoint, large content at its commit.
//!
//! What it keeps true: a block that is given a place is handed to what waits for the big disk, and
//! nothing is written here. What content replaces stays untouched until the next checkpoint.

use crate::content::buffers::Buffers;
use crate::content::pending::{Logged, PendingRun};
use crate::disks::Disks;
use crate::disks::waiting::Placed;
use crate::fast::Piece;
use crate::index::Index;
use crate::index::moving::FarExtent;
use crate::index::onode::Onode;
use crate::medium::errors::{bug, within};
use crate::medium::layout::BLOCK_BYTES;
use crate::space::extent::{Extent, MOST_BLOCKS};
use crate::space::{Space, no_room};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::checksum::crc32c;
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

/// Files of so many blocks are not small.
const SMALL_BLOCKS: u64 = 16;
/// Blocks that go home in one request at most.
const RUN_BLOCKS: u64 = 256;

/// What placing content needs of the state, borrowed side by side.
pub struct Placer<'a> {
    /// The disks.
    pub disks: &'a Disks,
    /// Where things are.
    pub index: &'a mut Index,
    /// Free space.
    pub space: &'a mut Space,
    /// Content in memory.
    pub buffers: &'a mut Buffers,
    /// The checkpoint in the making, in which the places are born.
    pub epoch: u64,
}

impl Placer<'_> {
    /// Gives every pending block a place: right behind what the object has before it, or near its
    /// directory. Written is in the order of the places, because objects in turn lie in groups far
    /// from each other.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Media`.
    pub fn write_pending(&mut self) -> Result<()> {
        let (mut writes, mut far) = (Vec::new(), Vec::new());
        let placed = self.place_pending(&mut writes, &mut far);
        // Even if that failed: nothing can be changed any more, but all that was can still be read.
        let mut waiting = self.disks.waiting.lock();
        let added = waiting.add(writes, IoTag::Data);
        placed.and(added).and(waiting.add_far(far))
    }

    fn place_pending(&mut self, writes: &mut Vec<Placed>, far: &mut Vec<(Piece, Vec<Logged>)>) -> Result<()> {
        while let Some((object, first, run)) = self.buffers.take_run(RUN_BLOCKS) {
            let sums: Vec<u32> = match &run {
                PendingRun::Bytes(bytes) => bytes.chunks(BLOCK_BYTES).map(crc32c).collect(),
                PendingRun::Logged(all) => all.iter().map(|logged| logged.sum).collect(),
            };
            let mut later = |piece: Piece, part: Range<usize>| {
                match &run {
                    PendingRun::Bytes(bytes) => {
                        writes.push((piece.block, part_of(bytes, &part)?.to_vec(), Some(piece)))
                    }
                    PendingRun::Logged(all) => far.push((piece, within(all, part)?.to_vec())),
                }
                Ok(())
            };
            let extents = match self.give_places(ObjectId(object), first, &sums, &mut later) {
                Ok(extents) => extents,
                Err(error) => {
                    self.buffers.put_run(object, first, run);
                    return Err(error);
                }
            };
            let mut at = first;
            for extent in extents {
                self.index.put_extent(ObjectId(object), at, &extent)?;
                self.keep_tails(&run, at - first, &extent);
                at += extent.blocks();
            }
        }
        Ok(())
    }

    /// Who appends to what went home needs the rest of its last block; content that is spilled was
    /// not in memory before.
    fn keep_tails(&mut self, run: &PendingRun, skip: u64, extent: &Extent) {
        let PendingRun::Bytes(bytes) = run else { return };
        let content = bytes.get(skip as usize * BLOCK_BYTES..).unwrap_or_default().chunks(BLOCK_BYTES);
        for (block, content) in (extent.block..extent.block + extent.blocks()).zip(content) {
            self.buffers.keep_tail(block, extent.born, content);
        }
    }

    /// Puts whole blocks of an object into free blocks; what they replace stays. They are written
    /// by [`write_placed`](crate::disks::Disks::write_placed), without the lock of the state.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Media`.
    pub fn place(&mut self, object: ObjectId, first: u64, content: &[u8]) -> Result<Vec<Extent>> {
        let disks = self.disks;
        let sums: Vec<u32> = content.chunks(BLOCK_BYTES).map(crc32c).collect();
        self.give_places(object, first, &sums, &mut |piece, part| {
            let run = part_of(content, &part)?;
            disks.waiting.lock().add_placed(piece, run.to_vec())
        })
    }

    /// Gives stored content of an object another place: it is written with the next checkpoint, and
    /// until that is durable its place of before stays. If the fast disk has a copy of it, it gets
    /// one of it there.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Media`.
    pub fn relocate(&mut self, far: &FarExtent, content: &[u8]) -> Result<()> {
        let FarExtent { object, at, ref extent } = *far;
        let (block, born, blocks) = (extent.block, extent.born, extent.blocks());
        let before = Piece { block, born, blocks: blocks as u32, object: object.0, index: at, class: 0 };
        let has_copy = self.disks.fast.lock().get().is_some_and(|fast| fast.copied(&before) > 0);
        let mut writes = Vec::new();
        let extents = self.give_places(object, at, &extent.sums, &mut |piece, part| {
            writes.push((piece.block, part_of(content, &part)?.to_vec(), has_copy.then_some(piece)));
            Ok(())
        })?;
        self.index.put_extents(object, at, &extents)?;
        self.buffers.forget_tails(block, blocks);
        self.space.give_up(block, blocks);
        self.disks.waiting.lock().add(writes, IoTag::Cleaning)
    }

    /// Finds free blocks for blocks of an object with these checksums, and hands over which of them
    /// are to be written where.
    fn give_places(
        &mut self,
        object: ObjectId,
        first: u64,
        sums: &[u32],
        write: &mut dyn FnMut(Piece, Range<usize>) -> Result<()>,
    ) -> Result<Vec<Extent>> {
        let mut goal = self.goal(object, first)?;
        let class = self.owner(object)?.hints.placement_class;
        let mut index = first;
        let mut extents = Vec::new();
        let mut done = 0;
        while let Some(rest) = sums.get(done..).filter(|rest| !rest.is_empty()) {
            let wanted = rest.len() as u64;
            let (block, count) = self.space.allocate(goal, wanted.min(RUN_BLOCKS)).ok_or_else(no_room)?;
            let born = self.epoch;
            let end = done + count as usize;
            write(Piece { block, born, blocks: count as u32, object: object.0, index, class }, done..end)?;
            let places = (block..).step_by(MOST_BLOCKS as usize);
            let parts = within(rest, 0..count as usize)?.chunks(MOST_BLOCKS as usize);
            extents.extend(places.zip(parts).map(|(block, sums)| Extent { block, born, sums: sums.to_vec() }));
            (goal, index) = (block + count, index + count);
            done = end;
        }
        Ok(extents)
    }

    /// The onode of an object that has content to be placed.
    fn owner(&mut self, object: ObjectId) -> Result<Onode> {
        self.index.onode(object)?.ok_or_else(|| bug(format!("there is content of {object} and no such object")))
    }

    /// Where block `first` of an object is best put: near its directory, with what else goes home
    /// now, or of a file that is not small behind what it has. A seek for each small file that grew
    /// costs more than a seek when it is read.
    fn goal(&mut self, object: ObjectId, first: u64) -> Result<u64> {
        if first >= SMALL_BLOCKS
            && let Some((at, extent)) = self.index.extents(object, first.saturating_sub(MOST_BLOCKS), first)?.last()
        {
            return Ok(extent.block + (first - at));
        }
        let hints = self.owner(object)?.hints;
        Ok(self.space.goal(object.0, &hints))
    }
}

/// The blocks of content in that range.
fn part_of<'a>(content: &'a [u8], blocks: &Range<usize>) -> Result<&'a [u8]> {
    within(content, blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES)
}

//! Checkpoints: pending content goes home, changed nodes get blocks, and a new superblock refers to
//! all of it.
//!
//! Everything is written to free blocks, flushed, and only then the superblock. So a cut leaves the
//! old checkpoint or the new one. When which of this happens is the business of
//! [`background_checkpoint`](crate::commit::background_checkpoint), and how the superblock is
//! written that of [`superblocks`](crate::commit::superblocks).

use crate::content::pending::{Logged, Run};
use crate::core::Core;
use crate::disks::waiting::Placed;
use crate::fast::Piece;
use crate::index::onode::Onode;
use crate::medium::anchors::{Anchors, Snapshot};
use crate::medium::errors::{bug, within};
use crate::medium::layout::BLOCK_BYTES;
use crate::medium::superblock::Superblock;
use crate::space::extent::{Extent, MOST_BLOCKS};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::checksum::crc32c;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// Files of so many blocks are not small.
const SMALL_BLOCKS: u64 = 16;
/// Blocks that go home in one request at most.
const RUN_BLOCKS: u64 = 256;

/// The checkpoints of a volume: what the superblocks say, and the one in the making.
#[derive(Debug)]
pub struct Checkpoints {
    /// What the superblocks say.
    anchors: Anchors,
    /// The id of the checkpoint in the making.
    epoch: u64,
    /// Checkpoints since the mount.
    count: u64,
}

impl Checkpoints {
    /// Those behind the superblock that a mount found.
    #[must_use]
    pub const fn new(anchors: Anchors) -> Self {
        let epoch = first_of(&anchors);
        Self { anchors, epoch, count: 0 }
    }

    /// The superblock as it is, or as it will be when it is written next.
    #[must_use]
    pub const fn superblock(&self) -> &Superblock {
        self.anchors.get()
    }

    /// What the superblocks say.
    #[must_use]
    pub const fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// The same, for who has the right to write superblocks.
    pub const fn anchors_mut(&mut self) -> &mut Anchors {
        &mut self.anchors
    }

    /// A session begins, later than all before and than `after`.
    pub fn begin_session(&mut self, after: u64) {
        self.anchors.begin_session(after);
        self.epoch = first_of(&self.anchors);
    }

    /// The id of the checkpoint in the making: what is written now is born in it.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Checkpoints since the mount.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The checkpoint in the making has begun; the next one is made from now on.
    pub const fn has_begun(&mut self) {
        self.epoch += 1;
    }

    /// One more is durable. Now and then the map of copies is worth writing: says whether it is.
    pub const fn has_ended(&mut self) -> bool {
        const SNAPSHOT_EVERY: u64 = 16;
        self.count += 1;
        self.count.is_multiple_of(SNAPSHOT_EVERY)
    }
}

/// The first checkpoint of a session.
const fn first_of(anchors: &Anchors) -> u64 {
    anchors.get().session << 32 | 1
}

impl Core {
    /// Takes all that was applied into a checkpoint: what it writes waits for the big disk from now
    /// on, and what changes later belongs to the next one.
    ///
    /// # Errors
    /// `NoSpace`, `Media`, after which nothing may change any more.
    pub fn begin_checkpoint(&mut self) -> Result<Snapshot> {
        self.write_pending()?;
        self.hold_old_nodes();
        self.index.pack()?;
        let space = &mut self.space;
        let nodes = self.index.write_changed(&mut || space.allocate_node().ok_or_else(no_room))?;
        let layout = self.index.layout();
        let pages = self.space.checkpoint_pages(self.checkpoints.epoch())?.into_iter();
        let pages = pages.map(|(page, slot, bytes)| (layout.bitmap_block(page, slot), bytes, None)).collect();
        let nodes = nodes.into_iter().map(|(block, bytes)| (block, bytes, None)).collect();
        let mut waiting = self.disks.waiting.lock();
        waiting.add(nodes, IoTag::Index)?;
        waiting.add(pages, IoTag::Summary)?;
        drop(waiting);
        let snapshot = Snapshot {
            checkpoint: self.checkpoints.epoch(),
            root: self.index.root(),
            nodes: self.index.counts().nodes,
            objects: self.index.objects(),
            next_id: self.index.next_id(),
            bitmap_digest: self.space.digest(),
            commits: self.commits.count(),
        };
        if is_planted(Bug::TierDiscardEarly) {
            let leaving = self.space.leaving();
            self.space.queue_discards(&leaving);
            self.discard_early();
        }
        self.checkpoints.has_begun();
        self.commits.take_into_checkpoint();
        Ok(snapshot)
    }

    /// The superblock is durable: what the checkpoint does without can be allocated.
    pub fn end_checkpoint(&mut self) {
        let freed = self.space.release();
        self.forget_freed(&freed);
        if self.checkpoints.has_ended() {
            self.disks.fast.lock().with(|fast| fast.snapshot());
        }
    }

    /// Blocks are free: their copies are worth nothing, and the disk may be told of them.
    pub fn forget_freed(&mut self, freed: &[(u64, u64)]) {
        self.disks.fast.lock().with(|fast| {
            freed.iter().for_each(|(first, count)| fast.forget(*first, *count as u32));
            Ok(())
        });
        if self.options.discard {
            self.space.queue_discards(freed);
        }
    }

    /// Gives every pending block a place: right behind what the object has before it, or near its
    /// directory. Written is in the order of the places, because objects in turn lie in groups far
    /// from each other.
    fn write_pending(&mut self) -> Result<()> {
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
                Run::Bytes(bytes) => bytes.chunks(BLOCK_BYTES).map(crc32c).collect(),
                Run::Logged(all) => all.iter().map(|logged| logged.sum).collect(),
            };
            let mut later = |piece: Piece, part: Range<usize>| {
                match &run {
                    Run::Bytes(bytes) => writes.push((piece.block, part_of(bytes, &part)?.to_vec(), Some(piece))),
                    Run::Logged(all) => far.push((piece, within(all, part)?.to_vec())),
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
    fn keep_tails(&mut self, run: &Run, skip: u64, extent: &Extent) {
        let Run::Bytes(bytes) = run else { return };
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
        let disks = Arc::clone(&self.disks);
        let sums: Vec<u32> = content.chunks(BLOCK_BYTES).map(crc32c).collect();
        self.give_places(object, first, &sums, &mut |piece, part| {
            let run = part_of(content, &part)?;
            disks.waiting.lock().add_placed(piece, run.to_vec())
        })
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
            let born = self.checkpoints.epoch();
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

fn no_room() -> Error {
    Error::new(ErrorKind::NoSpace, "no free block is left")
}

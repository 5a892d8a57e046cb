//! Checkpoints: pending content gets places, changed nodes get blocks, and a new superblock refers
//! to all of it.
//!
//! Everything is written to free blocks, flushed, and only then the superblock. So a cut leaves the
//! old checkpoint or the new one. When which of this happens is the business of
//! [`background_checkpoint`](crate::commit::background_checkpoint), and how the superblock is
//! written that of [`superblocks`](crate::commit::superblocks).

use crate::content::placing::Placer;
use crate::disks::Disks;
use crate::fast::Piece;
use crate::index::tree::ChangedNode;
use crate::log::commits::Commits;
use crate::medium::anchors::{Anchors, Snapshot};
use crate::medium::layout::BLOCK;
use crate::medium::superblock::Superblock;
use crate::space::{Space, no_room};
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

/// Checkpoints from one map of copies that is written to the next.
const SNAPSHOT_EVERY: u64 = 16;

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

    /// Takes all that was applied into a checkpoint: what it writes waits for the big disk from now
    /// on, and what changes later belongs to the next one. `placer` is of this epoch.
    ///
    /// # Errors
    /// `NoSpace`, `Media`, after which nothing may change any more.
    pub fn begin(&mut self, placer: &mut Placer<'_>, commits: &mut Commits) -> Result<Snapshot> {
        placer.write_pending()?;
        let Placer { disks, index, space, .. } = placer;
        space.give_up_nodes(index.take_freed());
        index.pack()?;
        let nodes = index.write_changed(&mut || space.allocate_node().ok_or_else(no_room))?;
        let layout = index.layout();
        let pages = space.checkpoint_pages(self.epoch)?.into_iter();
        let place = |(page, slot, bytes)| Ok((layout.bitmap_block(page, slot)?, bytes, None));
        let pages = pages.map(place).collect::<Result<_>>()?;
        let placed = |node: ChangedNode| (node.block, node.bytes, Some(Piece::of_node(node.block, node.crc)));
        let nodes = nodes.into_iter().map(placed).collect();
        let mut waiting = disks.waiting.lock();
        waiting.add(nodes, IoTag::Index)?;
        waiting.add(pages, IoTag::Summary)?;
        drop(waiting);
        let snapshot = Snapshot {
            checkpoint: self.epoch,
            layout,
            root: index.root(),
            nodes: index.counts().nodes,
            objects: index.objects(),
            next_id: index.next_id(),
            bitmap_digest: space.digest(),
            commits: commits.count(),
        };
        if is_planted(Bug::TierDiscardEarly) {
            discard_early(disks, space);
        }
        self.epoch += 1;
        commits.take_into_checkpoint();
        Ok(snapshot)
    }

    /// The superblock is durable: what the checkpoint does without can be allocated.
    pub fn end(&mut self, disks: &Disks, space: &mut Space) {
        let freed = space.release();
        disks.forget(&freed);
        space.queue_freed(&freed);
        self.count += 1;
        // Now and then the map of copies is worth writing.
        if self.count.is_multiple_of(SNAPSHOT_EVERY) {
            disks.fast.lock().with(|fast| fast.snapshot());
        }
    }
}

/// The planted bug: the disk is told before the checkpoint that does without the blocks is durable.
fn discard_early(disks: &Disks, space: &mut Space) {
    let leaving = space.leaving();
    space.queue_discards(&leaving);
    while let Some((first, count)) = space.take_discard() {
        _ = disks.big.lock().discard(first * BLOCK, count * BLOCK);
    }
}

/// The first checkpoint of a session.
const fn first_of(anchors: &Anchors) -> u64 {
    anchors.get().session << 32 | 1
}

//! Free space: block groups, and blocks given up that must stay until the next checkpoint and as
//! long as somebody reads them.

pub mod bitmap;
pub mod discard_queue;
pub mod extent;
pub mod pins;
mod shrinking;

use crate::medium::errors::bug;
use crate::medium::layout::{GROUP_BLOCKS, Layout};
use crate::space::bitmap::Bitmap;
use crate::space::discard_queue::DiscardQueue;
use crate::space::pins::Pins;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Error, ErrorKind, Hints, ObjectKind, Result};

/// A run at least this long is as good as any.
const GOOD_RUN: u64 = 64;
/// Runs looked at before the best so far is taken.
const LOOKS: u32 = 64;

/// Which blocks are free, and where to allocate.
#[derive(Debug)]
pub struct Space {
    /// The bits.
    bitmap: Bitmap,
    layout: Layout,
    /// What the volume is becoming, while it shrinks.
    planned: Option<Layout>,
    held: Vec<(u64, u64)>,
    /// What the checkpoint under way does without.
    leaving: Vec<(u64, u64)>,
    /// What durable checkpoints do without, and somebody still reads.
    lingering: Vec<(u64, u64)>,
    /// Blocks in all three.
    held_blocks: u64,
    /// What is read now.
    pins: Pins,
    /// What the disk is being told of: nobody gets it meanwhile.
    discarding: Option<(u64, u64)>,
    /// The disk is told of what was released.
    tells_disk: bool,
    /// What was released and not handed out since.
    discards: DiscardQueue,
    node_goal: u64,
    cursors: BTreeMap<u64, u64>,
}

impl Space {
    /// The space that `bitmap` tells of.
    #[must_use]
    pub fn new(bitmap: Bitmap, layout: Layout) -> Self {
        let node_goal = layout.first_free();
        Self {
            bitmap,
            layout,
            planned: None,
            held: Vec::new(),
            leaving: Vec::new(),
            lingering: Vec::new(),
            held_blocks: 0,
            pins: Pins::default(),
            discarding: None,
            tells_disk: true,
            discards: DiscardQueue::default(),
            node_goal,
            cursors: BTreeMap::new(),
        }
    }

    /// Blocks that can be allocated now, without those that what has yet to move needs.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.bitmap.free().saturating_sub(self.behind())
    }

    /// The same when what is held is free, too.
    #[must_use]
    pub fn free_with_held(&self) -> u64 {
        (self.bitmap.free() + self.held_blocks).saturating_sub(self.behind())
    }

    /// Blocks that the next checkpoints, and those who read, set free.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held_blocks
    }

    /// Whether a block can be allocated now.
    #[must_use]
    pub fn is_free(&self, block: u64) -> bool {
        self.bitmap.is_free(block)
    }

    /// What of these blocks has something that must stay: what is in use, or still belongs to the
    /// last durable checkpoint, and what stands before nodes and content and behind the last block.
    #[must_use]
    pub fn in_use(&self, blocks: Range<u64>) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for block in blocks.filter(|block| !(self.layout.holds(*block, 1) && self.bitmap.is_free(*block))) {
            match found.last_mut() {
                Some(last) if last.end == block => last.end += 1,
                _ => found.push(block..block + 1),
            }
        }
        found
    }

    /// Blocks in `first..end` that can be allocated now.
    #[must_use]
    pub fn count_free(&self, first: u64, end: u64) -> u64 {
        self.bitmap.count_free(first, end)
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn ram_bytes(&self) -> u64 {
        self.bitmap.ram_bytes()
    }

    /// Digest of the bitmap that the last checkpoint wrote.
    #[must_use]
    pub fn digest(&self) -> u32 {
        self.bitmap.digest()
    }

    /// Whether `bitmap` says the same.
    #[must_use]
    pub fn agrees_with(&self, bitmap: &Bitmap) -> bool {
        bitmap.is_same_as(&self.bitmap)
    }

    /// Blocks that the log or the tree names are in use; false if one of them was already, or none
    /// of them can be.
    #[must_use]
    pub fn claim(&mut self, first: u64, count: u64) -> bool {
        self.layout.holds(first, count) && self.bitmap.take(first, count) == count
    }

    /// Blocks that the log names are free all the same: nobody refers to them.
    pub fn disclaim(&mut self, first: u64, count: u64) {
        self.bitmap.release(first, count);
    }

    /// Somebody reads these blocks without the lock of the state: nobody writes to them.
    pub fn pin(&mut self, first: u64, count: u64) {
        self.pins.add(first, count);
    }

    /// They were read. [`free_unpinned`](Self::free_unpinned) says what became free.
    pub fn unpin(&mut self, first: u64, count: u64) {
        self.pins.remove(first, count);
    }

    /// The space that `bitmap` tells of in place of this one: blocks were counted anew.
    pub fn count_anew(&mut self, bitmap: Bitmap) {
        *self = Self { tells_disk: self.tells_disk, ..Self::new(bitmap, self.layout) };
    }

    /// Has the blocks of `layout`, which is larger. What comes can be allocated when a checkpoint
    /// that has them is durable: until then nothing may lie where the volume of before does not
    /// reach.
    pub fn grow(&mut self, layout: &Layout) {
        let before = core::mem::replace(&mut self.layout, *layout).blocks;
        self.bitmap.grow(layout);
        let mut first = before;
        for area in layout.areas.from(before) {
            self.come(first, area.first);
            first = area.end();
        }
        self.come(first, layout.blocks);
    }

    /// Blocks `first..end` came, and are held until a checkpoint.
    fn come(&mut self, first: u64, end: u64) {
        let count = self.bitmap.take(first, end.saturating_sub(first));
        self.give_up(first, count);
    }

    /// These blocks are free: the disk may be told, unless it is not to be told of any.
    pub fn queue_freed(&mut self, freed: &[(u64, u64)]) {
        if self.tells_disk {
            self.queue_discards(freed);
        }
    }

    /// The disk may be told that these blocks, which are free, hold nothing of value.
    pub fn queue_discards(&mut self, freed: &[(u64, u64)]) {
        freed.iter().for_each(|(first, count)| self.discards.add(*first, *count));
    }

    /// The next of them, for who does not wait until nobody gets it.
    pub fn take_discard(&mut self) -> Option<(u64, u64)> {
        self.discards.take()
    }

    /// The disk refuses discards, or is not to be told of what is free.
    pub fn refuse_discards(&mut self) {
        self.tells_disk = false;
        self.discards.forget();
    }

    /// Whether the disk is to be told of more.
    #[must_use]
    pub fn has_discards(&self) -> bool {
        !self.discards.is_empty()
    }

    /// Discards so far, and blocks in them.
    #[must_use]
    pub const fn discarded(&self) -> (u64, u64) {
        (self.discards.requests(), self.discards.blocks())
    }

    /// Blocks that are not needed any more stay as they are until the next checkpoint.
    pub fn give_up(&mut self, first: u64, count: u64) {
        if is_planted(Bug::TierHeldReused) {
            self.bitmap.release(first, count);
        } else if count > 0 && !is_planted(Bug::FullTierSpaceLeaked) {
            self.held.push((first, count));
            self.held_blocks += count;
        }
    }

    /// The blocks of replaced nodes stay as they are until the next checkpoint.
    pub fn give_up_nodes(&mut self, blocks: Vec<u64>) {
        blocks.into_iter().for_each(|block| self.give_up(block, 1));
    }

    /// The pages of the bitmap for a checkpoint that does without what was given up. That cannot be
    /// allocated before [`release`](Self::release).
    ///
    /// # Errors
    /// `Bug` if something was given up that was not in use: it could be handed out to two owners.
    pub fn checkpoint_pages(&mut self, checkpoint: u64) -> Result<Vec<(u64, u8, Vec<u8>)>> {
        self.leaving.append(&mut self.held);
        // In the pages that is free.
        let discarding = self.discarding.inspect(|(first, count)| self.bitmap.lend(*first, *count, false));
        for (first, count) in self.leaving.iter().chain(&self.lingering) {
            if self.bitmap.release(*first, *count) != *count {
                return Err(bug(format!("blocks {first} to {} were given up twice", first + count)));
            }
        }
        let pages = self.bitmap.checkpoint_pages(checkpoint);
        let stay = self.leaving.iter().chain(&self.lingering);
        stay.for_each(|(first, count)| _ = self.bitmap.take(*first, *count));
        discarding.inspect(|(first, count)| self.bitmap.lend(*first, *count, true));
        pages
    }

    /// What the checkpoint under way does without.
    #[must_use]
    pub fn leaving(&self) -> Vec<(u64, u64)> {
        self.leaving.clone()
    }

    /// The checkpoint is durable: what it does without, and nobody reads, can be allocated. Returns
    /// that.
    pub fn release(&mut self) -> Vec<(u64, u64)> {
        self.lingering.append(&mut self.leaving);
        self.free_unpinned()
    }

    /// Nobody reads something any more: it can be allocated if a durable checkpoint does without
    /// it. Returns what became free.
    pub fn free_unpinned(&mut self) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        for (first, count) in core::mem::take(&mut self.lingering) {
            for (first, count, is_pinned) in self.pins.split(first, count) {
                if is_pinned {
                    self.lingering.push((first, count));
                    continue;
                }
                self.bitmap.release(first, count);
                self.held_blocks -= count;
                freed.push((first, count));
            }
        }
        freed
    }

    /// What the disk is to be told of next, which nobody gets until
    /// [`end_discard`](Self::end_discard). `None` if there is nothing, or somebody tells the disk
    /// now.
    pub fn begin_discard(&mut self) -> Option<(u64, u64)> {
        if self.discarding.is_some() {
            return None;
        }
        self.discarding = self.discards.take();
        if is_planted(Bug::ManyTierDiscardHandedOut) {
            return self.discarding.take();
        }
        self.discarding.inspect(|(first, count)| {
            self.bitmap.lend(*first, *count, true);
            self.held_blocks += count;
        })
    }

    /// The disk was told.
    pub fn end_discard(&mut self) {
        if let Some((first, count)) = self.discarding.take() {
            self.bitmap.lend(first, count, false);
            self.held_blocks -= count;
        }
    }

    /// Where the content of an object goes that has none yet: near its directory, directories apart
    /// from each other, the first group left to nodes.
    #[must_use]
    pub fn goal(&self, object: u64, hints: &Hints) -> u64 {
        let near = match hints.locality {
            Some(directory) if hints.kind != ObjectKind::Directory => directory.0,
            _ => object,
        };
        let groups = self.target().blocks.div_ceil(GROUP_BLOCKS);
        // The bits of an id spread evenly: multiplication by 2^64 divided by the golden ratio.
        let spread = near.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let group = if groups > 1 { 1 + spread % (groups - 1) } else { 0 };
        let first = (group * GROUP_BLOCKS).max(self.layout.first_free());
        self.cursors.get(&group).copied().unwrap_or(first)
    }

    /// Allocates up to `most` blocks in one run, at `goal` if that is free and behind it otherwise.
    pub fn allocate(&mut self, goal: u64, most: u64) -> Option<(u64, u64)> {
        let first = self.layout.first_free();
        let goal = if self.layout.holds(goal, 1) { goal } else { first };
        let at_goal = self.bitmap.find(goal, goal + 1, most);
        let behind = || self.search(goal, self.layout.blocks, most);
        let (block, count) = at_goal.or_else(behind).or_else(|| self.search(first, goal, most))?;
        self.bitmap.take(block, count);
        self.discards.taken(block, count);
        self.cursors.insert(block / GROUP_BLOCKS, block + count);
        Some((block, count))
    }

    /// Allocates a block for a node.
    pub fn allocate_node(&mut self) -> Option<u64> {
        let first = self.layout.first_free();
        let found = self.bitmap.find(self.node_goal, self.layout.blocks, 1);
        let (block, _) = found.or_else(|| self.bitmap.find(first, self.node_goal, 1))?;
        self.bitmap.take(block, 1);
        self.discards.taken(block, 1);
        self.node_goal = block + 1;
        Some(block)
    }

    fn search(&self, from: u64, end: u64, most: u64) -> Option<(u64, u64)> {
        let mut best: Option<(u64, u64)> = None;
        let mut at = from;
        for _ in 0..LOOKS {
            let Some((block, count)) = self.bitmap.find(at, end, most) else { break };
            if best.is_none_or(|(_, most)| count > most) {
                best = Some((block, count));
            }
            if count >= most.min(GOOD_RUN) {
                break;
            }
            at = block + count;
        }
        best
    }
}

/// What is told when blocks have to be allocated and none is free.
#[must_use]
pub fn no_room() -> Error {
    Error::new(ErrorKind::NoSpace, "no free block is left")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let layout = Layout::new(4 << 20, None, None).unwrap();
        Space::new(Bitmap::new(&layout), layout)
    }

    #[test]
    fn what_is_given_up_twice_is_not_handed_out_twice() {
        let mut space = space();
        let (first, count) = space.allocate(0, 4).unwrap();
        space.give_up(first, count);
        space.give_up(first + 1, 1);
        assert_eq!(space.checkpoint_pages(1).unwrap_err().kind, ErrorKind::Bug);
    }

    #[test]
    fn a_pinned_block_is_not_handed_out_again() {
        let mut space = space();
        let (first, _) = space.allocate(0, 8).unwrap();
        let free = space.free();
        space.pins.add(first + 2, 3);
        space.give_up(first, 8);
        space.checkpoint_pages(1).unwrap();
        assert_eq!(space.release(), [(first, 2), (first + 5, 3)]);
        assert_eq!((space.free(), space.held()), (free + 5, 3));
        // A checkpoint does not change that, and its pages say that the blocks are free.
        space.checkpoint_pages(2).unwrap();
        assert_eq!(space.release(), []);
        assert_eq!(space.allocate(first, 8), Some((first, 2)));
        assert_eq!(space.allocate(first + 2, 8).unwrap().0, first + 5);
        space.pins.remove(first + 2, 3);
        assert_eq!(space.free_unpinned(), [(first + 2, 3)]);
        assert_eq!((space.allocate(first + 2, 3), space.held()), (Some((first + 2, 3)), 0));
    }
}

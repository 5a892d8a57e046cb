//! The state of a mounted volume behind its lock: it composes the parts, and is the only one that
//! names all of them.
//!
//! Each part owns its state: [`Index`], [`Space`], [`Buffers`], [`Commits`], [`Checkpoints`],
//! [`Recovery`], [`Latch`]. What reads, prepares, applies or places content works on several of
//! them, and is lent those: [`Reader`], [`Preparation`], [`Applier`], [`Placer`], [`Headroom`].
//!
//! What it keeps true: nobody but the parts changes what they own.
//!
//! What it does not do: take its lock, or that of the log; who does is said at
//! [`Volume`](crate::commit::Volume).

pub mod commit;
mod recover;
pub mod shrinking;

use crate::commit::apply::Applier;
use crate::commit::checkpoint::Checkpoints;
use crate::commit::prepare::Preparation;
use crate::commit::room::Headroom;
use crate::content::buffers::Buffers;
use crate::content::pending::Pending;
use crate::content::placing::Placer;
use crate::content::plan::{ReadPlan, StoredBlocks};
use crate::content::reader::Reader;
use crate::core::shrinking::Shrinking;
use crate::device::options::MountOptions;
use crate::disks::Disks;
use crate::index::Index;
use crate::log::commits::Commits;
use crate::medium::anchors::{Anchors, Snapshot};
use crate::medium::layout::{BLOCK, Layout};
use crate::medium::superblock::Superblock;
use crate::recover::recovery::Recovery;
use crate::space::Space;
use alloc::sync::Arc;
use onode_base::Clock;
use onode_engine::Latch;
use onode_object::{Error, Result, Space as UserSpace};

/// The state.
pub struct Core {
    /// The disks.
    disks: Arc<Disks>,
    /// How it was mounted.
    options: MountOptions,
    /// What the superblocks say, and the checkpoint in the making.
    checkpoints: Checkpoints,
    /// Where things are.
    index: Index,
    /// Free space.
    space: Space,
    /// Content in memory.
    buffers: Buffers,
    /// Commits, and what of them the log lacks.
    commits: Commits,
    /// Whether anything can be changed.
    latch: Latch,
    /// What the mount found.
    recovery: Recovery,
    /// What a fast disk takes the time from.
    clock: Option<Arc<dyn Clock>>,
    /// What is under way of becoming smaller.
    shrinking: Option<Shrinking>,
}

impl Core {
    /// The state at the checkpoint of which the superblocks tell, before the log is replayed.
    #[must_use]
    pub fn new(disks: Arc<Disks>, options: &MountOptions, anchors: Anchors, index: Index, mut space: Space) -> Self {
        if !options.discard {
            space.refuse_discards();
        }
        Self {
            disks,
            options: options.clone(),
            buffers: Buffers::new(options),
            commits: Commits::new(options.acknowledge, anchors.get().acknowledge),
            checkpoints: Checkpoints::new(anchors),
            index,
            space,
            latch: Latch::new(options.read_only),
            recovery: Recovery::new(options.accept_loss),
            clock: None,
            shrinking: None,
        }
    }

    /// The disks.
    #[must_use]
    pub const fn disks(&self) -> &Arc<Disks> {
        &self.disks
    }

    /// How it was mounted.
    #[must_use]
    pub const fn options(&self) -> &MountOptions {
        &self.options
    }

    /// Where things are.
    #[must_use]
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// The same, for who walks it. Nothing is changed in it but by commits and the recovery.
    pub const fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    /// Free space.
    #[must_use]
    pub const fn space(&self) -> &Space {
        &self.space
    }

    /// Content in memory.
    #[must_use]
    pub const fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Commits, and what of them the log lacks.
    #[must_use]
    pub const fn commits(&self) -> &Commits {
        &self.commits
    }

    /// The superblock as it is, or as it will be when it is written next.
    #[must_use]
    pub const fn superblock(&self) -> &Superblock {
        self.checkpoints.superblock()
    }

    /// What the superblocks say, and the checkpoint in the making.
    #[must_use]
    pub const fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// What the superblocks say, for who has the right to write them.
    pub const fn anchors_mut(&mut self) -> &mut Anchors {
        self.checkpoints.anchors_mut()
    }

    /// Whether anything can be changed.
    #[must_use]
    pub const fn latch(&self) -> &Latch {
        &self.latch
    }

    /// What the mount found.
    #[must_use]
    pub const fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What a fast disk takes the time from.
    #[must_use]
    pub const fn clock(&self) -> Option<&Arc<dyn Clock>> {
        self.clock.as_ref()
    }

    /// A fast disk takes the time from this one.
    pub fn set_clock(&mut self, clock: Arc<dyn Clock>) {
        self.clock = Some(clock);
    }

    /// The tree for who walks it, and beside it free space and the content that has no place yet.
    pub const fn parts(&mut self) -> (&mut Index, &Space, &Pending) {
        (&mut self.index, &self.space, self.buffers.pending())
    }

    /// What reads content under the lock.
    pub fn reader(&mut self) -> Reader<'_> {
        let Self { disks, index, buffers, latch, .. } = self;
        Reader { disks, index, buffers, latch }
    }

    /// What prepares a transaction.
    fn preparation(&mut self) -> Preparation<'_> {
        let Self { disks, index, buffers, latch, space, .. } = self;
        Preparation { reader: Reader { disks, index, buffers, latch }, space }
    }

    /// What applies changes.
    fn applier(&mut self) -> Applier<'_> {
        self.applying().0
    }

    /// What applies changes, and what the mount found.
    fn applying(&mut self) -> (Applier<'_>, &mut Recovery) {
        let Self { disks, index, buffers, latch, space, commits, recovery, .. } = self;
        (Applier { reader: Reader { disks, index, buffers, latch }, space, commits }, recovery)
    }

    /// What gives content its places, and the checkpoint in which they are born.
    fn placing(&mut self) -> (Placer<'_>, &mut Checkpoints, &mut Commits) {
        let Self { disks, index, space, buffers, checkpoints, commits, .. } = self;
        (Placer { disks, index, space, buffers, epoch: checkpoints.epoch() }, checkpoints, commits)
    }

    /// What there is room in.
    const fn headroom(&self) -> Headroom<'_> {
        Headroom { index: &self.index, space: &self.space, pending: self.buffers.pending() }
    }

    /// Space for users.
    #[must_use]
    pub fn user_space(&self) -> UserSpace {
        self.headroom().user_space()
    }

    /// Nodes of the tree that may stay in memory although nothing changed in them.
    fn nodes_kept(&self) -> u64 {
        (self.options.node_cache_bytes / BLOCK).max(8)
    }

    /// Drops nodes that reads alone brought into memory.
    pub fn shed_nodes(&mut self) {
        self.index.shed(self.nodes_kept());
    }

    /// # Errors
    /// `ReadOnly` if nothing can be changed.
    pub fn check_writable(&self) -> Result<()> {
        self.latch.check()
    }

    /// A write failed: from now on nothing changes.
    pub fn fail(&mut self, error: Error) -> Error {
        self.latch.fail(error)
    }

    /// Something that always holds does not: nothing changes any more either.
    pub fn fail_if_bug(&mut self, error: Error) -> Error {
        self.latch.fail_if_bug(error)
    }

    /// Nobody writes to the blocks of this plan until they are unpinned.
    pub fn pin(&mut self, plan: &ReadPlan) {
        plan.pin(&mut self.space);
    }

    /// They were read. What was given up meanwhile is free now.
    pub fn unpin(&mut self, plan: &ReadPlan) {
        plan.unpin(&mut self.space);
        self.free_unpinned();
    }

    /// Nobody reads something any more.
    fn free_unpinned(&mut self) {
        let freed = self.space.free_unpinned();
        if !freed.is_empty() {
            self.disks.forget(&freed);
            self.space.queue_freed(&freed);
        }
    }

    /// Counts what was read without the lock.
    pub fn count_read(&mut self, found: &StoredBlocks) {
        self.buffers.count_read(found);
    }

    /// Content of a block that the walk which ended was lacking.
    pub const fn take_content_miss(&mut self) -> Option<ReadPlan> {
        self.buffers.take_miss()
    }

    /// What the big disk is to be told of next: it holds nothing of value, and nobody gets it until
    /// [`end_discard`](Self::end_discard).
    pub fn begin_discard(&mut self) -> Option<(u64, u64)> {
        self.space.begin_discard()
    }

    /// The disk was told; if it refuses, it is not told again.
    pub fn end_discard(&mut self, is_refused: bool) {
        self.space.end_discard();
        if is_refused {
            self.space.refuse_discards();
        }
    }

    /// Has the blocks of `layout`, which is larger, from the next checkpoint on.
    pub fn take_up(&mut self, layout: &Layout) {
        self.index.set_layout(*layout);
        self.space.grow(layout);
        self.commits.mark_dirty();
    }

    /// Takes all that was applied into a checkpoint, see [`Checkpoints::begin`].
    ///
    /// # Errors
    /// `NoSpace`, `Media`, after which nothing changes any more.
    pub fn begin_checkpoint(&mut self) -> Result<Snapshot> {
        let (mut placer, checkpoints, commits) = self.placing();
        let begun = checkpoints.begin(&mut placer, commits);
        begun.map_err(|error| self.fail(error))
    }

    /// The superblock of a checkpoint is durable.
    pub fn end_checkpoint(&mut self) {
        self.checkpoints.end(&self.disks, &mut self.space);
    }
}

//! The state of a mounted volume: tree, pending content, free space and the group of commits that
//! the log lacks.

use crate::commit::checkpoint::Checkpoints;
use crate::commit::latch::Latch;
use crate::content::buffers::Buffers;
use crate::device::options::MountOptions;
use crate::disks::Disks;
use crate::index::Index;
use crate::log::change::Change;
use crate::log::commits::Commits;
use crate::log::{Load, Log};
use crate::medium::errors::damaged;
use crate::medium::layout::BLOCK;
use crate::recover::recovery::{Recovery, what_is_missing};
use crate::space::Space;
use crate::space::extent::Extent;
use alloc::string::String;
use alloc::sync::Arc;
use onode_base::Clock;
use onode_object::{Error, ErrorKind, Mutation, ObjectId, Result, Transaction};

/// The state.
pub struct Core {
    /// The disks.
    pub disks: Arc<Disks>,
    /// How it was mounted.
    pub options: MountOptions,
    /// What the superblocks say, and the checkpoint in the making.
    pub checkpoints: Checkpoints,
    /// Where things are.
    pub index: Index,
    /// Free space.
    pub space: Space,
    /// Content in memory.
    pub buffers: Buffers,
    /// Commits, and what of them the log lacks.
    pub commits: Commits,
    /// Whether anything can be changed.
    pub latch: Latch,
    /// What the mount found.
    pub recovery: Recovery,
    /// What a fast disk takes the time from.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Core {
    /// Nodes of the tree that may stay in memory although nothing changed in them.
    pub fn nodes_kept(&self) -> u64 {
        (self.options.node_cache_bytes / BLOCK).max(8)
    }

    /// Drops nodes that reads alone brought into memory.
    pub fn shed_nodes(&mut self) {
        self.index.shed(self.nodes_kept());
    }

    /// Makes a record of the commits that the log lacks and appends it.
    ///
    /// # Errors
    /// As [`Log::append`], after which nothing may change any more.
    pub fn append(&mut self, log: &mut Log) -> Result<()> {
        self.commits.append_to(log).map_err(|error| self.latch.fail(error))
    }

    /// What is to come into the log.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            payload: self.commits.group().payload().len(),
            unsynced: self.commits.unsynced(),
            pending: self.buffers.pending().bytes(),
            most_pending: self.buffers.most_pending(),
        }
    }

    /// Takes over a transaction from the log.
    ///
    /// # Errors
    /// `Corrupt` if it cannot be one that was logged here.
    pub fn replay(&mut self, changes: &[(Change, usize)]) -> Result<()> {
        for (change, _) in changes {
            if let Change::Placed { extents, .. } = change {
                self.take_places(extents)?;
            }
            if let Change::Plain(mutation) = change {
                check_logged(mutation)?;
                if matches!(mutation, Mutation::Create { .. }) {
                    self.index.note_id(mutation.object());
                }
            }
            match self.apply(change) {
                Err(error) if self.options.drop_damaged => self.salvage_change(change, error)?,
                done => done?,
            }
        }
        self.commits.mark_dirty();
        self.recovery.count_replayed();
        Ok(())
    }

    /// The blocks of these extents are in use from now on.
    fn take_places(&mut self, extents: &[Extent]) -> Result<()> {
        for extent in extents {
            let count = extent.blocks();
            if !self.space.claim(extent.block, count) {
                return Err(damaged("the log names blocks that are in use"));
            }
        }
        Ok(())
    }

    /// Whether the fast disk took part until it was lost just now.
    #[must_use]
    pub fn has_lost_fast(&self) -> bool {
        self.checkpoints.superblock().fast.is_attached
            && !self.disks.fast.lock().is_there()
            && self.latch.why().is_none()
    }

    /// What only the log of the fast disk had is gone with it. The big disk has the whole volume of
    /// before that, which the next mount finds.
    ///
    /// # Errors
    /// `Media` if there was anything.
    pub fn let_nothing_be_lost(&mut self) -> Result<()> {
        if self.has_spilled() {
            let why = "the fast disk failed with changes that only its log had; mount the volume again without it";
            return Err(self.latch.fail(Error::new(ErrorKind::Media, why)));
        }
        Ok(())
    }

    /// Whether only the log of the fast disk has some content.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.buffers.pending().is_spilled() || self.disks.waiting.lock().has_far()
    }

    /// Less is there than was promised, see [`Recovery::miss`].
    ///
    /// # Errors
    /// `Loss` without consent.
    pub fn miss(&mut self, what: String) -> Result<()> {
        self.recovery.miss(what, &mut self.commits)
    }

    /// The fast disk is not there, or not as it was, because of `why`.
    ///
    /// # Errors
    /// `Loss` if it may hold what the big disk has not.
    pub fn miss_fast(&mut self, why: &str) -> Result<()> {
        match what_is_missing(self.checkpoints.superblock(), why) {
            Some(what) => self.miss(what),
            None => Ok(()),
        }
    }

    /// Blocks of replaced nodes stay until the checkpoint.
    pub fn hold_old_nodes(&mut self) {
        for block in self.index.take_freed() {
            self.space.give_up(block, 1);
        }
    }
}

/// What a log holds was checked before it was written; a forged one must not get further.
fn check_logged(mutation: &Mutation) -> Result<()> {
    let most = Transaction::MAX_OBJECT_BYTES;
    let is_sound = match mutation {
        Mutation::Write { offset, data, .. } => offset.checked_add(data.len() as u64).is_some_and(|end| end <= most),
        Mutation::Truncate { size, .. } => *size <= most,
        Mutation::SetAttribute { value, .. } => value.len() <= Transaction::MAX_ATTRIBUTE_BYTES,
        _ => true,
    };
    if is_sound && mutation.object() < ObjectId::FIRST_OF_DEVICE {
        return Ok(());
    }
    Err(damaged("the log holds a change that cannot be"))
}

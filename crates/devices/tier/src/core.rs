//! The state of a mounted volume: tree, pending content, free space and the group of commits that
//! the log lacks.

use crate::content::buffers::Buffers;
use crate::device::options::MountOptions;
use crate::disks::Disks;
use crate::index::Index;
use crate::index::onode::Onode;
use crate::log::change::Change;
use crate::log::commits::Commits;
use crate::log::need::Need;
use crate::log::{Load, Log};
use crate::medium::anchors::Anchors;
use crate::medium::errors::damaged;
use crate::medium::layout::BLOCK;
use crate::recover::salvaged::Salvaged;
use crate::space::Space;
use crate::space::extent::Extent;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::Clock;
use onode_object::{Acknowledge, Condition, Error, ErrorKind, Mutation, ObjectId, Placement, Result, Transaction};

/// Figures since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Checkpoints.
    pub checkpoints: u64,
    /// Records written to the log.
    pub records: u64,
    /// Transactions in them.
    pub logged: u64,
    /// Bytes of records, padding included.
    pub log_bytes: u64,
    /// Records of the log that only the fast disk had at the mount.
    pub recovered_from_fast: u64,
    /// Records of the fast disk that belong to another history and were dropped.
    pub records_dropped: u64,
    /// Times that a disk was found not to have what it said it had.
    pub lies: u64,
    /// Commits found in the log at the mount.
    pub replayed: u64,
}

/// The state.
pub struct Core {
    /// The disks.
    pub disks: Arc<Disks>,
    /// How it was mounted.
    pub options: MountOptions,
    /// What the superblocks say.
    pub anchors: Anchors,
    /// Where things are.
    pub index: Index,
    /// Free space.
    pub space: Space,
    /// Content in memory.
    pub buffers: Buffers,
    /// The id of the checkpoint in the making.
    pub epoch: u64,
    /// Commits, and what of them the log lacks.
    pub commits: Commits,
    /// Why nothing can be changed.
    pub read_only: Option<String>,
    /// What was found at the mount that people should know.
    pub reports: Vec<Condition>,
    /// What a fast disk takes the time from.
    pub clock: Option<Arc<dyn Clock>>,
    /// What the mount dropped because it is damaged.
    pub salvaged: Salvaged,
    /// Figures.
    pub figures: Figures,
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

    /// # Errors
    /// `ReadOnly` if nothing can be changed.
    pub fn check_writable(&self) -> Result<()> {
        match &self.read_only {
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why.clone())),
            None => Ok(()),
        }
    }

    /// A write failed: from now on nothing changes.
    pub fn fail(&mut self, error: Error) -> Error {
        if self.read_only.is_none() {
            self.read_only = Some(format!("read-only since a failure: {error}"));
        }
        error
    }

    /// Something that always holds does not: nothing changes any more either.
    pub fn fail_if_bug(&mut self, error: Error) -> Error {
        if error.kind == ErrorKind::Bug { self.fail(error) } else { error }
    }

    /// Notes which logs a change of an object of this class needs.
    pub fn note_class(&mut self, onode: &Onode) {
        self.commits.add_need(self.rule(onode));
    }

    /// When durable changes of an object of this class return.
    #[must_use]
    pub fn rule(&self, onode: &Onode) -> Acknowledge {
        let placement = Placement::from_class(onode.hints.placement_class);
        let rules = [placement.acknowledge, self.options.acknowledge, self.anchors.get().acknowledge];
        rules.into_iter().find(|rule| *rule != Acknowledge::Volume).unwrap_or(Acknowledge::Safe)
    }

    /// Makes a record of the commits that the log lacks and appends it.
    ///
    /// # Errors
    /// As [`Log::append`], after which nothing may change any more.
    pub fn append(&mut self, log: &mut Log) -> Result<()> {
        let appended = self.commits.append_to(log);
        let (transactions, bytes) = appended.map_err(|error| self.fail(error))?;
        if transactions > 0 {
            self.figures.records += 1;
            self.figures.logged += u64::from(transactions);
            self.figures.log_bytes += bytes;
        }
        Ok(())
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

    /// Whether the big disk has to say first that the fast one, which takes part if `has_fast`, may
    /// have what it lacks.
    #[must_use]
    pub const fn must_lean(&self, has_fast: bool, need: Need) -> bool {
        need.either && has_fast && self.anchors.get().fast.is_attached && !self.anchors.may_lean()
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
        self.figures.replayed += 1;
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
        self.anchors.get().fast.is_attached && !self.disks.fast.lock().is_there() && self.read_only.is_none()
    }

    /// What only the log of the fast disk had is gone with it. The big disk has the whole volume of
    /// before that, which the next mount finds.
    ///
    /// # Errors
    /// `Media` if there was anything.
    pub fn let_nothing_be_lost(&mut self) -> Result<()> {
        if self.has_spilled() {
            let why = "the fast disk failed with changes that only its log had; mount the volume again without it";
            return Err(self.fail(Error::new(ErrorKind::Media, why)));
        }
        Ok(())
    }

    /// Whether only the log of the fast disk has some content.
    #[must_use]
    pub fn has_spilled(&self) -> bool {
        self.buffers.pending().is_spilled() || self.disks.waiting.lock().has_far()
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

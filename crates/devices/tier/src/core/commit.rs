//! Transactions applied to the state, and the record made of them.
//!
//! What it keeps true: a transaction that does not fit, or for which something has to be read
//! first, changes nothing. One that fits is applied wholly, or nothing changes any more.
//!
//! What it does not do: make anything durable, see [`commit`](crate::commit).

use crate::commit::room::Cost;
use crate::content::buffers::Prefetched;
use crate::content::pending::Content;
use crate::core::Core;
use crate::index::tree::Ways;
use crate::log::Log;
use crate::log::change::Change;
use crate::log::need::Need;
use crate::log::room::Load;
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::validate::{Admission, validate};
use onode_object::{Acknowledge, Error, ErrorKind, Mutation, ObjectId, Result, Transaction};

/// Content moves between an object and its versions byte by byte.
pub const MOVE_UNIT: u64 = 1;

/// Whether there is room for a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// There is.
    Now,
    /// There may be after a checkpoint.
    AfterCheckpoint,
}

/// What applying found.
pub enum Applied {
    /// It is done.
    Done {
        /// As this commit.
        commit: u64,
        /// Which logs must have it.
        need: Need,
        /// The group is so large now that it should be written.
        is_large: bool,
        /// Content is on its way to its place.
        has_placed: bool,
    },
    /// There is no room before a checkpoint.
    NeedsCheckpoint,
}

impl Core {
    /// Fails with nothing changed if something has to be read first.
    ///
    /// # Errors
    /// Those of [`validate`]; `NoSpace`, `ReadOnly`, `Corrupt`, `Media`.
    pub fn try_commit(&mut self, transaction: &Transaction, can_retry: bool, given: &Prefetched) -> Result<Applied> {
        let fit = self.fit(transaction, can_retry, given)?;
        if transaction.is_empty() {
            return Ok(Applied::Done {
                commit: self.commits.count(),
                need: Need::ALL,
                is_large: false,
                has_placed: false,
            });
        }
        if fit == Fit::AfterCheckpoint {
            return Ok(Applied::NeedsCheckpoint);
        }
        // From here on nothing is begun anew.
        self.index.set_can_miss(false);
        self.commits.begin();
        let done = self.apply_all(transaction);
        let need = self.commits.end();
        self.buffers.end();
        // Blocks of replaced nodes stay until the checkpoint.
        self.space.give_up_nodes(self.index.take_freed());
        let has_placed = done.map_err(|error| self.latch.fail(error))?;
        self.index.evict(self.nodes_kept());
        let is_large = self.commits.group().payload().len() >= 256 << 10 || self.buffers.is_full();
        Ok(Applied::Done { commit: self.commits.count(), need, is_large, has_placed })
    }

    /// Whether a transaction applies, and there is room for it; reads what applying it needs.
    ///
    /// # Errors
    /// As [`try_commit`](Self::try_commit).
    pub fn fit(&mut self, transaction: &Transaction, can_retry: bool, given: &Prefetched) -> Result<Fit> {
        self.latch.check()?;
        let admission = Admission { next_id: ObjectId(self.index.next_id()), move_unit: Some(MOVE_UNIT) };
        let index = &mut self.index;
        validate(transaction, admission, &mut |object| Ok(index.onode(object)?.is_some()))?;
        if transaction.is_empty() {
            return Ok(Fit::Now);
        }
        let cost = self.preparation().prepare(transaction, given)?;
        let ignored = is_planted(Bug::FullTierReserveIgnored);
        let reserve = if ignored { 0 } else { self.space.target().reserve_blocks() };
        if self.headroom().fits(&cost, reserve) {
            return Ok(Fit::Now);
        }
        let kept = cost.kept_from(reserve, &mut self.index, transaction)?;
        let is_refused = is_planted(Bug::FullTierUnlinkRefused);
        if !is_refused && kept != reserve && self.headroom().fits(&cost, kept) {
            return Ok(Fit::Now);
        }
        if can_retry && self.headroom().can_make_room() { Ok(Fit::AfterCheckpoint) } else { Err(no_space()) }
    }

    /// Applies a transaction that fits and was prepared, and adds it to the group. Says whether
    /// content of it is on its way to its place.
    fn apply_all(&mut self, transaction: &Transaction) -> Result<bool> {
        let content = transaction.mutations.iter().map(|mutation| match mutation {
            Mutation::Write { data, .. } => data.len(),
            _ => 0,
        });
        let content: usize = content.sum();
        self.buffers.count_written(content as u64);
        let above = self.options.place_above_bytes;
        // What is small goes through the log, unless there is so much of it that a short log would
        // not hold it.
        let is_long = content > above && content as u64 > self.index.layout().ring_blocks * BLOCK / 8;
        let mut changes = Vec::with_capacity(transaction.mutations.len());
        let mut has_placed = false;
        for mutation in &transaction.mutations {
            match mutation {
                Mutation::Write { object, offset, data }
                    if (data.len() > above && !self.can_wait(*object, data.len())?)
                        || (is_long && data.len() >= 2 * BLOCK_BYTES) =>
                {
                    self.apply_large(*object, *offset, data, &mut changes)?;
                    has_placed = true;
                }
                _ => {
                    let change = Change::Plain(mutation.clone());
                    self.applier().apply(&change)?;
                    changes.push(change);
                }
            }
        }
        let ends = self.commits.add(&changes, has_placed);
        for (change, end) in changes.iter().zip(ends) {
            if let Change::Plain(Mutation::Write { object, offset, data }) = change {
                self.note_acknowledged(*object, *offset, data, end)?;
            }
        }
        Ok(has_placed)
    }

    /// Notes which blocks can be read from the record that gets this write, whose data end at byte
    /// `end` of the payload: those that the fast disk alone acknowledges, so that memory need not
    /// hold them.
    fn note_acknowledged(&mut self, object: ObjectId, offset: u64, data: &[u8], end: usize) -> Result<()> {
        let Some(onode) = self.index.onode(object)?.filter(|onode| onode.has_blocks) else { return Ok(()) };
        if self.commits.rule(onode.hints.placement_class) == Acknowledge::Either {
            let mut contents = Vec::new();
            self.buffers.pending().contents(object, offset, data, end, &mut contents);
            self.commits.note_contents(contents);
        }
        Ok(())
    }

    /// Whether large content goes through the log, because the fast disk alone acknowledges it and
    /// its log has room.
    fn can_wait(&mut self, object: ObjectId, bytes: usize) -> Result<bool> {
        let bytes = bytes as u64;
        let has_room = self.commits.has_fast_room(bytes);
        let onode = self.index.onode(object)?.unwrap_or_default();
        Ok(has_room
            && self.commits.rule(onode.hints.placement_class) == Acknowledge::Either
            && self.disks.fast.lock().is_there())
    }

    /// A write whose whole blocks go to their place at once; the rest goes through the log.
    fn apply_large(&mut self, object: ObjectId, offset: u64, data: &[u8], changes: &mut Vec<Change>) -> Result<()> {
        let head = (offset.next_multiple_of(BLOCK) - offset) as usize;
        let (head, rest) = data.split_at(head.min(data.len()));
        let (middle, tail) = rest.split_at(rest.len() / BLOCK_BYTES * BLOCK_BYTES);
        let first = offset + head.len() as u64;
        let mut plain = |core: &mut Self, offset: u64, data: &[u8]| {
            if data.is_empty() {
                return Ok(());
            }
            let change = Change::Plain(Mutation::Write { object, offset, data: data.to_vec() });
            core.applier().apply(&change)?;
            changes.push(change);
            Ok(())
        };
        plain(self, offset, head)?;
        plain(self, first + middle.len() as u64, tail)?;
        let extents = self.placing().0.place(object, first / BLOCK, middle)?;
        let change = Change::Placed { object, first: first / BLOCK, extents };
        self.applier().apply(&change)?;
        changes.push(change);
        Ok(())
    }

    /// Whether a change of a few blocks can be applied before the next checkpoint.
    #[must_use]
    pub fn takes_more(&self) -> bool {
        const BLOCKS: u64 = 16;
        let ways = Ways::default();
        let cost = Cost { blocks: BLOCKS, new_blocks: BLOCKS, puts: 64, bytes: 8 << 10, grows_inline: true, ways };
        // With the nodes that it changes.
        self.headroom().fits(&cost, self.space.target().reserve_blocks() + 4 * BLOCKS)
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

    /// The fast disk has this in its log, where it can be read: memory holds no more of it than it
    /// should, unless that disk is lost.
    pub fn let_go(&mut self, readable: Vec<Content>) {
        if self.disks.fast.lock().is_there() {
            self.buffers.let_go(readable);
        }
    }

    /// The log of the fast disk has other room than before.
    pub fn note_fast_room(&mut self, log: &Log) {
        self.commits.note_fast_room(log);
    }

    /// All up to this commit are as durable as they need to be.
    pub fn synced(&mut self, commit: u64) {
        self.commits.synced(commit);
    }
}

/// What is told of a transaction for which there is no room, not even behind a checkpoint.
#[must_use]
pub fn no_space() -> Error {
    Error::new(ErrorKind::NoSpace, "the transaction does not fit any more")
}

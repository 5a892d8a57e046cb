//! Commits: applied under the lock of the state, made durable under the lock of the log.
//!
//! Who gets the lock of the log takes along all that was applied until then: one sequential write
//! and one flush for everyone who waits. Who needs the fast disk alone never waits for the big one,
//! unless memory or a ring is full or content was written to its place.

pub mod apply;
pub mod background_checkpoint;
pub mod checkpoint;
pub mod discard;
pub mod home;
pub mod latch;
pub mod look;
pub mod room;
pub mod running;
pub mod superblocks;

use crate::commit::home::Write;
use crate::commit::running::{Running, begin};
use crate::content::buffers::Prefetched;
use crate::core::Core;
use crate::log::change::Change;
use crate::log::need::Need;
use crate::log::{Log, Room};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::Mutex;
use onode_object::validate::validate;
use onode_object::{Acknowledge, Durability, Error, ErrorKind, Mutation, ObjectId, Result, Transaction};

/// A volume: the state and the log, each behind its lock, and the right to write to the big disk.
/// Who takes more than one of them takes that right first, then the log, then the state; a disk's
/// lock is the last, and only the fast disk's and that of what waits are taken with one of the
/// others.
pub struct Volume {
    /// The right to write to the big disk, and the checkpoint that is under way.
    pub home: Mutex<Option<Running>>,
    /// The log.
    pub log: Mutex<Log>,
    /// The state.
    pub core: Mutex<Core>,
}

/// What applying found.
enum Applied {
    /// It is done, as this commit with these needs; the group is so large now that it should be
    /// written, or has content on its way to its place.
    Done { commit: u64, need: Need, is_large: bool, has_placed: bool },
    /// There is no room before a checkpoint.
    NeedsCheckpoint,
}

impl Volume {
    /// The volume with this log and this state.
    #[must_use]
    pub const fn new(log: Log, core: Core) -> Self {
        Self { home: Mutex::new(None), log: Mutex::new(log), core: Mutex::new(core) }
    }

    /// Does the whole transaction or nothing.
    ///
    /// # Errors
    /// As [`ObjectDevice::commit`](onode_object::ObjectDevice::commit).
    pub fn commit(&self, transaction: &Transaction, durability: Durability) -> Result<()> {
        let mut applied = self.look(|core, given| core.try_commit(transaction, true, given))?;
        if matches!(applied, Applied::NeedsCheckpoint) {
            self.checkpoint()?;
            applied = self.look(|core, given| core.try_commit(transaction, false, given))?;
        }
        if matches!(applied, Applied::Done { has_placed: true, .. }) {
            let disks = alloc::sync::Arc::clone(&self.core.lock().disks);
            disks.write_placed().map_err(|error| self.core.lock().latch.fail(error))?;
        }
        match applied {
            Applied::NeedsCheckpoint => Err(no_space()),
            Applied::Done { commit, need, .. } if durability == Durability::Durable => self.persist(commit, need),
            Applied::Done { commit, is_large: true, .. } => self.persist(commit, Need::default()),
            Applied::Done { .. } => Ok(()),
        }
    }

    /// Brings the log as far as `commit`, and waits for the disks that `need` names.
    ///
    /// # Errors
    /// `Media`.
    pub fn persist(&self, commit: u64, need: Need) -> Result<()> {
        if self.persist_on_fast(commit, need)? {
            return Ok(());
        }
        let mut home = self.home();
        let write = loop {
            let (mut log, mut core) = (self.log.lock(), self.core.lock());
            if log.has(commit, need) {
                return Ok(());
            }
            core.latch.check()?;
            // Losing the fast disk while it was read, say. Whatever has to be done first is done
            // without the locks.
            if core.has_lost_fast() {
                drop((log, core));
                home.notice_loss()?;
                continue;
            }
            if !core.checkpoints.anchors().is_open() {
                drop((log, core));
                home.reopen()?;
                continue;
            }
            if core.checkpoints.anchors().must_lean(log.has_fast(), need) {
                drop((log, core));
                home.lean_on_fast().map_err(|error| home.fail(error))?;
                continue;
            }
            match log.room(&core.load(), need) {
                Room::Fits => {}
                Room::Begin => {
                    core.append(&mut log)?;
                    home.begin_beside(&mut log, &mut core)?;
                }
                Room::Finish => {
                    drop((log, core));
                    home.finish()?;
                    continue;
                }
                Room::Checkpoint => {
                    drop((log, core));
                    return home.checkpoint();
                }
            }
            core.append(&mut log)?;
            let leans_on_fast = log.leans_on_fast(core.commits.unsynced());
            let (batch, to_fast) = log.share(need, leans_on_fast);
            break Write { need, has_placed: log.holds_placed(), to_fast, batch };
        };
        let had_fast = self.log.lock().has_fast();
        let written = home.write(write);
        self.let_go();
        let written = written.and_then(|()| home.step(false));
        written.map_err(|error| home.fail(error))?;
        if had_fast && !self.log.lock().has_fast() {
            home.notice_loss()?;
        }
        Ok(())
    }

    /// The same if the fast disk alone is needed for it: nobody waits for the big disk then. False
    /// if that cannot be.
    fn persist_on_fast(&self, commit: u64, need: Need) -> Result<bool> {
        let disks = {
            let (mut log, mut core) = (self.log.lock(), self.core.lock());
            if log.has(commit, need) {
                return Ok(true);
            }
            core.latch.check()?;
            let is_waited_for = need.is_any();
            let is_enough = !need.big && !need.fast && (need.either || log.leans_on_fast(core.commits.unsynced()));
            let is_ready = core.checkpoints.anchors().is_open()
                && !core.has_lost_fast()
                && !core.checkpoints.anchors().must_lean(log.has_fast(), need);
            let names_placed = core.commits.group().has_placed() || log.holds_placed();
            let must_wait = log.must_wait() || (names_placed && !is_planted(Bug::TierFastRecordBeforeContent));
            if !is_enough || !is_ready || !log.has_fast() || must_wait {
                return Ok(false);
            }
            match log.room(&core.load(), need) {
                Room::Fits => {}
                // Whoever writes to the big disk now comes before the checkpoint, which can wait
                // for the next record.
                Room::Begin => {
                    if let Some(mut running) = self.home.try_lock() {
                        core.append(&mut log)?;
                        *running = Some(begin(&mut log, &mut core)?);
                    }
                }
                Room::Finish | Room::Checkpoint => return Ok(false),
            }
            core.append(&mut log)?;
            let disks = alloc::sync::Arc::clone(&core.disks);
            drop(core);
            if !log.write_fast(&disks) || (is_waited_for && !log.flush_fast(&disks)) {
                return Ok(false);
            }
            disks
        };
        self.let_go();
        // A checkpoint under way goes on when the big disk has nothing else to do.
        if !disks.is_taken()
            && let Some(mut home) = self.try_home()
        {
            home.step(false).map_err(|error| home.fail(error))?;
        }
        Ok(true)
    }

    /// The fast disk has more in its log: memory holds no more of it than it should.
    fn let_go(&self) {
        let readable = self.log.lock().take_readable();
        if !readable.is_empty() {
            let mut core = self.core.lock();
            if core.disks.fast.lock().is_there() {
                core.buffers.let_go(readable);
            }
        }
    }

    /// Writes a checkpoint if anything changed.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn checkpoint(&self) -> Result<()> {
        self.home().checkpoint()
    }

    /// Makes every commit so far durable, wherever the class of what it changed asks for it.
    ///
    /// # Errors
    /// `Media`.
    pub fn sync(&self) -> Result<()> {
        let (commit, unsynced) = {
            let core = self.core.lock();
            if core.commits.count() == 0 || core.latch.is_read_only() {
                return Ok(());
            }
            (core.commits.count(), core.commits.unsynced())
        };
        self.persist(commit, unsynced)?;
        self.core.lock().commits.synced(commit);
        Ok(())
    }
}

impl Core {
    /// Fails with nothing changed if something has to be read first.
    fn try_commit(&mut self, transaction: &Transaction, can_retry: bool, given: &Prefetched) -> Result<Applied> {
        self.latch.check()?;
        let next_id = ObjectId(self.index.next_id());
        validate(transaction, next_id, &mut |object| Ok(self.index.onode(object)?.is_some()))?;
        if transaction.is_empty() {
            return Ok(Applied::Done {
                commit: self.commits.count(),
                need: Need::ALL,
                is_large: false,
                has_placed: false,
            });
        }
        let cost = self.prepare(transaction, given)?;
        let ignored = is_planted(Bug::FullTierReserveIgnored);
        let reserve = if ignored { 0 } else { self.index.layout().reserve_blocks() };
        if !self.fits(&cost, reserve) {
            let kept = self.kept_from(transaction, &cost)?;
            let is_refused = is_planted(Bug::FullTierUnlinkRefused);
            if is_refused || kept == reserve || !self.fits(&cost, kept) {
                return if can_retry && self.can_make_room() { Ok(Applied::NeedsCheckpoint) } else { Err(no_space()) };
            }
        }
        // From here on nothing is begun anew.
        self.index.set_can_miss(false);
        self.commits.begin();
        let done = self.apply_all(transaction);
        let need = self.commits.end();
        self.buffers.end();
        self.hold_old_nodes();
        let has_placed = done.map_err(|error| self.latch.fail(error))?;
        self.index.evict(self.nodes_kept());
        let is_large = self.commits.group().payload().len() >= 256 << 10 || self.buffers.is_full();
        Ok(Applied::Done { commit: self.commits.count(), need, is_large, has_placed })
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
                    self.apply(&change)?;
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
            core.apply(&change)?;
            changes.push(change);
            Ok(())
        };
        plain(self, offset, head)?;
        plain(self, first + middle.len() as u64, tail)?;
        let extents = self.place(object, first / BLOCK, middle)?;
        let change = Change::Placed { object, first: first / BLOCK, extents };
        self.apply(&change)?;
        changes.push(change);
        Ok(())
    }
}

fn no_space() -> Error {
    Error::new(ErrorKind::NoSpace, "the transaction does not fit any more")
}

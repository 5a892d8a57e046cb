//! Commits: applied under the lock of the state, made durable under the lock of the log.
//!
//! Who gets the lock of the log takes along all that was applied until then: one sequential write
//! and one flush for everyone who waits. Who needs the fast disk alone never waits for the big one,
//! unless memory or a ring is full or content was written to its place.

pub mod apply;
pub mod background_checkpoint;
pub mod checkpoint;
pub mod discard;
mod growing;
pub mod home;
pub mod look;
pub mod prepare;
pub mod room;
pub mod running;
mod shrinking;
pub mod superblocks;

use crate::commit::home::Write;
use crate::commit::running::{Running, begin};
use crate::core::Core;
use crate::core::commit::{Applied, Fit, no_space};
use crate::log::Log;
use crate::log::need::Need;
use crate::log::room::Room;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{Mutex, rank};
use onode_object::{Durability, Result, Transaction};

/// A volume: the state and the log, each behind its lock, and the right to write to the big disk.
/// Who takes more than one of them takes that right first, then the log, then the state; a disk's
/// lock is the last, and only the fast disk's and that of what waits are taken with one of the
/// others.
pub struct Volume {
    /// The right to write to the big disk, and the checkpoint that is under way.
    pub home: Mutex<Option<Running>, rank::TierHome>,
    /// The log.
    pub log: Mutex<Log, rank::TierLog>,
    /// The state.
    pub core: Mutex<Core, rank::TierState>,
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
        self.begin_commit(transaction, durability)?.map_or(Ok(()), |(commit, need)| self.persist(commit, need))
    }

    /// As [`ObjectDevice::check_commit`](onode_object::ObjectDevice::check_commit).
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        if self.look(|core, given| core.fit(transaction, true, given))? == Fit::AfterCheckpoint {
            self.checkpoint()?;
            self.look(|core, given| core.fit(transaction, false, given))?;
        }
        Ok(())
    }

    /// Applies a transaction; returns how far the log is to be brought for it, and what to wait
    /// for.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn begin_commit(&self, transaction: &Transaction, durability: Durability) -> Result<Option<(u64, Need)>> {
        let mut applied = self.look(|core, given| core.try_commit(transaction, true, given))?;
        if matches!(applied, Applied::NeedsCheckpoint) {
            self.checkpoint()?;
            applied = self.look(|core, given| core.try_commit(transaction, false, given))?;
        }
        if matches!(applied, Applied::Done { has_placed: true, .. }) {
            let disks = alloc::sync::Arc::clone(self.core.lock().disks());
            disks.write_placed().map_err(|error| self.core.lock().fail(error))?;
        }
        match applied {
            Applied::NeedsCheckpoint => Err(no_space()),
            Applied::Done { commit, need, .. } if durability == Durability::Durable => Ok(Some((commit, need))),
            Applied::Done { commit, is_large: true, .. } => Ok(Some((commit, Need::default()))),
            Applied::Done { .. } => Ok(None),
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
            core.check_writable()?;
            // Losing the fast disk while it was read, say. Whatever has to be done first is done
            // without the locks.
            if core.has_lost_fast() {
                drop((log, core));
                home.notice_loss()?;
                continue;
            }
            if !core.checkpoints().anchors().is_open() {
                drop((log, core));
                home.reopen()?;
                continue;
            }
            if core.checkpoints().anchors().must_lean(log.has_fast(), need) {
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
            let leans_on_fast = log.leans_on_fast(core.commits().unsynced());
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
            core.check_writable()?;
            let is_waited_for = need.is_any();
            let is_enough = !need.big && !need.fast && (need.either || log.leans_on_fast(core.commits().unsynced()));
            let is_ready = core.checkpoints().anchors().is_open()
                && !core.has_lost_fast()
                && !core.checkpoints().anchors().must_lean(log.has_fast(), need);
            let names_placed = core.commits().group().has_placed() || log.holds_placed();
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
            let disks = alloc::sync::Arc::clone(core.disks());
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
            self.core.lock().let_go(readable);
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
            if core.commits().count() == 0 || core.latch().is_read_only() {
                return Ok(());
            }
            (core.commits().count(), core.commits().unsynced())
        };
        self.persist(commit, unsynced)?;
        self.core.lock().synced(commit);
        Ok(())
    }
}

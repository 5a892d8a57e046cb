//! A checkpoint under way beside the log.
//!
//! It begins under the locks of log and state: everything it will write is handed to
//! [`Waiting`](crate::disks::waiting::Waiting), and changes go on behind it, in the log behind its
//! mark. Then it takes steps: a run of blocks whenever the big disk has nothing else to do, a flush
//! that is begun and not waited for, the superblock, another flush. Only then do the rings give up
//! what is before the mark, and only then can the blocks be allocated that it does without.
//!
//! What it keeps true: the superblock is written when all that it refers to is durable, and one
//! copy is durable before the other is touched. There is one checkpoint at a time. While it is
//! under way nothing goes to the big disk's log: who needs that disk brings the checkpoint to its
//! end first, so that log never has a gap that somebody relies on.

use crate::commit::Volume;
use crate::commit::home::Home;
use crate::core::{Core, Need};
use crate::disks::discard::AT_ONCE;
use crate::log::Log;
use crate::medium::layout::BLOCK;
use crate::medium::superblock::Mark;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

/// What the superblock will say.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The checkpoint.
    pub checkpoint: u64,
    /// Block and checksum of the root.
    pub root: (u64, u32),
    /// Nodes of the tree.
    pub nodes: u64,
    /// Objects.
    pub objects: u64,
    /// The first id that was never handed out.
    pub next_id: u64,
    /// Digest of the bitmap.
    pub bitmap_digest: u32,
    /// Commits in it.
    pub commits: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Blocks are written.
    Blocks,
    /// They are made durable.
    Flush,
    /// The superblock of this sequence is made durable in this copy.
    Superblock { sequence: u64, copy: u64 },
}

/// A checkpoint under way.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    stage: Stage,
    snapshot: Snapshot,
    tail: Mark,
    /// Where the fast disk's log goes on, and its last durable record.
    fast: Option<(Mark, Mark)>,
    /// It has commits that no record has. What comes behind them must not be durable before it is.
    lacks_record: bool,
}

/// What has to be done before a record of the group can be appended.
pub enum Room {
    /// Nothing.
    Fits,
    /// It is time for a checkpoint, beside which the log goes on.
    Begin,
    /// The checkpoint under way has to come to its end.
    Finish,
    /// A checkpoint that has the group.
    Checkpoint,
}

impl Log {
    /// Whether a checkpoint is under way.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether no record may be written before the checkpoint under way is durable.
    #[must_use]
    pub fn must_wait(&self) -> bool {
        self.flight.is_some_and(|flight| flight.lacks_record)
    }

    /// Begins a checkpoint of all that was applied. Nothing is written here.
    ///
    /// # Errors
    /// `NoSpace`, `Media`, after which nothing may change any more.
    pub fn begin(&mut self, core: &mut Core) -> Result<()> {
        let tail = Mark { position: self.big.mark(), ..self.newest };
        // Who needs these records on the big disk waits for the checkpoint.
        self.big.take_backlog();
        let (stripe, newest) = (self.stripe_blocks, self.newest);
        let fast = self.fast.as_mut().map(|ring| {
            ring.align(stripe);
            (Mark { position: ring.mark(), ..newest }, ring.durable)
        });
        let lacks_record = core.group.transactions > 0;
        let begun = core.begin_checkpoint();
        let snapshot = begun.map_err(|error| core.fail(error))?;
        self.flight = Some(Flight { stage: Stage::Blocks, snapshot, tail, fast, lacks_record });
        Ok(())
    }

    /// Whether the group fits into the rings, and content does not gather in memory without end.
    #[must_use]
    pub fn room(&self, core: &Core, need: Need) -> Room {
        let waits_for_big = self.effective(need).big;
        let may_fall_behind = !waits_for_big && self.leans_on_fast(core);
        let fits = self.fits(core.group.payload.len(), may_fall_behind);
        let holds_much = self.holds_much(core);
        if self.is_under_way() {
            return if !waits_for_big && !holds_much && fits { Room::Fits } else { Room::Finish };
        }
        // Who waits for the big disk waits for the whole checkpoint, so it is put off until the log
        // is full: the more of what it would bring home is gone by then.
        let who_comes = if need == Need::default() { core.unsynced } else { need };
        let is_put_off = self.effective(who_comes).big;
        if fits && !holds_much && (is_put_off || !self.is_half_full(may_fall_behind)) {
            return Room::Fits;
        }
        // Between the heads' ways to the log and back a checkpoint takes much longer than by
        // itself.
        if waits_for_big || self.fast.is_none() || !fits { Room::Checkpoint } else { Room::Begin }
    }

    /// Whether memory has as much of what the big disk lacks as it may.
    fn holds_much(&self, core: &Core) -> bool {
        // One record more than that is held until the fast disk has it.
        const RECORD_BYTES: u64 = 4 << 20;
        let most = core.options.pending_bytes;
        match self.leans_on_fast(core) {
            true => core.pending.bytes() > most + RECORD_BYTES.min(most),
            false => core.pending.bytes() > most || self.big.backlog_bytes() > self.either_bytes,
        }
    }
}

impl Home<'_> {
    /// Begins a checkpoint of all that was applied.
    ///
    /// # Errors
    /// As [`Log::begin`].
    pub fn begin(&self) -> Result<()> {
        self.reopen()?;
        self.volume.log.lock().begin(&mut self.volume.core.lock())
    }

    /// Takes a step, which waits for the disk only if it is told so.
    ///
    /// # Errors
    /// `Media`, after which nothing may change any more.
    pub fn step(&self, waits: bool) -> Result<()> {
        // It is nobody else's: who has it, and how far it is, does not change before `settle`.
        let Some(flight) = self.volume.log.lock().flight else { return Ok(()) };
        if self.go_on(flight.stage, waits)? { self.settle(flight) } else { Ok(()) }
    }

    /// Writes a run, or looks whether a flush is done, or waits for both; true if the stage is.
    fn go_on(&self, stage: Stage, waits: bool) -> Result<bool> {
        if matches!(stage, Stage::Blocks) {
            if (!waits && (self.disks.is_taken() || self.disks.is_busy())) || self.disks.write_waiting()? {
                return Ok(false);
            }
            self.set_stage(Stage::Flush);
            if is_planted(Bug::TierSuperblockFirst) {
                return Ok(true);
            }
            if waits {
                return self.disks.flush().map(|()| true);
            }
            self.disks.begin_flush()?;
        }
        if !waits && self.disks.is_taken() {
            return Ok(false);
        }
        if self.disks.flush_is_done()? {
            return Ok(true);
        }
        if waits {
            self.disks.flush()?;
        }
        Ok(waits)
    }

    fn set_stage(&self, stage: Stage) {
        if let Some(flight) = self.volume.log.lock().flight.as_mut() {
            flight.stage = stage;
        }
    }

    /// Brings a checkpoint under way to its end.
    ///
    /// # Errors
    /// `Media`.
    pub fn finish(&self) -> Result<()> {
        while self.volume.log.lock().is_under_way() {
            self.step(true).map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// A stage is done and its writes are durable: the next one.
    fn settle(&self, flight: Flight) -> Result<()> {
        let Stage::Superblock { sequence, copy } = flight.stage else {
            {
                let mut core = self.volume.core.lock();
                core.superblock.tail = flight.tail;
                if let Some((tail, last)) = flight.fast {
                    (core.superblock.fast.tail, core.superblock.fast.last) = (tail, last);
                }
                core.set_root(&flight.snapshot);
            }
            let (sequence, copy) = self.write_first_copy()?;
            self.disks.begin_flush()?;
            self.set_stage(Stage::Superblock { sequence, copy });
            return Ok(());
        };
        // Otherwise a newer superblock was made durable meanwhile, in both places.
        let is_newest = self.volume.core.lock().superblock.sequence == sequence;
        if is_newest {
            self.write_second_copy(copy)?;
        }
        {
            let (log, core) = (&mut *self.volume.log.lock(), &mut *self.volume.core.lock());
            log.flight = None;
            core.end_checkpoint();
            log.big.release();
            if let Some(ring) = log.fast.as_mut() {
                ring.release();
            }
            log.covers(flight.snapshot.commits);
            log.note_room(core);
        }
        self.volume.tell_big(AT_ONCE);
        Ok(())
    }

    /// Writes a checkpoint if anything changed, and waits for it; then every commit until it began
    /// is durable.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn checkpoint(&self) -> Result<()> {
        self.volume.core.lock().check_writable()?;
        self.notice_loss()?;
        self.finish()?;
        let (is_needed, commits) = {
            let (log, core) = (self.volume.log.lock(), self.volume.core.lock());
            (core.is_dirty || log.big.used() > 0, core.commits)
        };
        if is_needed {
            self.begin()?;
            self.finish()?;
        }
        self.volume.log.lock().covers(commits);
        Ok(())
    }
}

impl Volume {
    /// Makes what only the fast disk has durable on the big disk, too: its log, or if there is much
    /// a checkpoint, of which at most `budget` steps are taken. Says how many, and whether there is
    /// more to do.
    ///
    /// # Errors
    /// `Media`.
    pub fn bring_home(&self, budget: u32) -> Result<(u32, bool)> {
        let home = self.home();
        self.core.lock().check_writable()?;
        home.notice_loss()?;
        if self.is_due() {
            home.reopen()?;
            let has_begun = {
                let (log, core) = (&mut *self.log.lock(), &mut *self.core.lock());
                let fits = log.fits(core.group.payload.len(), log.leans_on_fast(core)) && !core.group.has_placed;
                if fits {
                    log.append(core)?;
                    log.begin(core)?;
                }
                fits
            };
            if !has_begun {
                home.checkpoint()?;
            }
        }
        let mut steps = 0;
        let mut done = Ok(());
        while done.is_ok() && steps < budget.max(1) && self.log.lock().is_under_way() {
            done = home.step(true);
            steps += 1;
        }
        let is_under_way = self.log.lock().is_under_way();
        if !is_under_way {
            done = done.and_then(|()| home.catch_up());
        }
        done.map_err(|error| home.fail(error))?;
        Ok((steps, is_under_way || self.log.lock().big.is_behind()))
    }

    /// Whether there is so much that a checkpoint is worth it now.
    fn is_due(&self) -> bool {
        let (log, core) = (self.log.lock(), self.core.lock());
        let is_much = core.pending.count() * BLOCK * 2 >= core.options.pending_bytes;
        let is_due = is_much || log.big.is_behind() || log.is_half_full(log.leans_on_fast(&core));
        is_due && !log.is_under_way()
    }
}

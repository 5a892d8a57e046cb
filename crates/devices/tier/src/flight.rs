//! A checkpoint under way beside the log.
//!
//! It begins under the locks: everything it will write is handed to [`Waiting`](crate::waiting::Waiting), and changes go on behind it, in
//! the log behind its mark. Then it takes steps: a run of blocks whenever the big disk has nothing else to do, a flush that is
//! begun and not waited for, the superblock, another flush. Only then do the rings give up what is before the mark, and
//! only then can the blocks be allocated that it does without.
//!
//! What it keeps true: the superblock is written when all that it refers to is durable, and one copy is durable before the
//! other is touched. There is one checkpoint at a time. While it is under way nothing goes to the big disk's log: who needs
//! that disk brings the checkpoint to its end first, so that log never has a gap that somebody relies on.

use crate::commit::Volume;
use crate::core::{Core, Need};
use crate::disks::Disks;
use crate::layout::BLOCK;
use crate::log::Log;
use crate::superblock::Mark;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::Mutex;
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
#[derive(Debug)]
pub struct Flight {
    stage: Stage,
    snapshot: Snapshot,
    tail: Mark,
    /// Where the fast disk's log goes on, and its last durable record.
    fast: Option<(Mark, Mark)>,
}

impl Flight {
    /// Writes a run, or looks whether a flush is done, or waits for both; true if the stage is.
    fn go_on(&mut self, disks: &Disks, waits: bool) -> Result<bool> {
        if matches!(self.stage, Stage::Blocks) {
            if (!waits && disks.is_busy()) || disks.write_waiting()? {
                return Ok(false);
            }
            self.stage = Stage::Flush;
            if is_planted(Bug::TierSuperblockFirst) {
                return Ok(true);
            }
            if waits {
                return disks.flush().map(|()| true);
            }
            disks.begin_flush()?;
        }
        if disks.flush_is_done()? {
            return Ok(true);
        }
        if waits {
            disks.flush()?;
        }
        Ok(waits)
    }
}

impl Log {
    /// Whether a checkpoint is under way.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.flight.is_some()
    }

    /// Begins a checkpoint of all that was applied.
    ///
    /// # Errors
    /// `NoSpace`, `Media`, after which nothing may change any more.
    pub fn begin(&mut self, core: &mut Core) -> Result<()> {
        core.reopen()?;
        let tail = Mark { position: self.big.mark(), ..self.newest };
        // Who needs these records on the big disk waits for the checkpoint.
        self.big.take_backlog();
        let (stripe, newest) = (self.stripe_blocks, self.newest);
        let fast = self.fast.as_mut().map(|ring| {
            ring.align(stripe);
            (Mark { position: ring.mark(), ..newest }, ring.durable)
        });
        let begun = core.begin_checkpoint();
        let snapshot = begun.map_err(|error| core.fail(error))?;
        self.flight = Some(Flight { stage: Stage::Blocks, snapshot, tail, fast });
        Ok(())
    }

    /// Takes a step, which waits for the disk only if it is told so.
    ///
    /// # Errors
    /// `Media`, after which nothing may change any more.
    pub fn step(&mut self, disks: &Disks, core: &Mutex<Core>, waits: bool) -> Result<()> {
        let Some(flight) = self.flight.as_mut() else { return Ok(()) };
        if flight.go_on(disks, waits)? { self.settle(&mut core.lock()) } else { Ok(()) }
    }

    /// Brings a checkpoint under way to its end.
    ///
    /// # Errors
    /// `Media`.
    pub fn finish(&mut self, core: &mut Core) -> Result<()> {
        let disks = Arc::clone(&core.disks);
        while let Some(flight) = self.flight.as_mut() {
            let done = flight.go_on(&disks, true);
            let done = done.and_then(|is_done| if is_done { self.settle(core) } else { Ok(()) });
            done.map_err(|error| core.fail(error))?;
        }
        Ok(())
    }

    /// A stage is done and its writes are durable: the next one.
    fn settle(&mut self, core: &mut Core) -> Result<()> {
        let Some(flight) = self.flight.as_mut() else { return Ok(()) };
        if let Stage::Superblock { sequence, copy } = flight.stage {
            let commits = flight.snapshot.commits;
            self.flight = None;
            core.end_checkpoint(sequence, copy)?;
            self.big.release();
            if let Some(ring) = self.fast.as_mut() {
                ring.release();
            }
            self.covers(commits);
            self.note_room(core);
            return Ok(());
        }
        core.superblock.tail = flight.tail;
        if let Some((tail, last)) = flight.fast {
            (core.superblock.fast.tail, core.superblock.fast.last) = (tail, last);
        }
        let (sequence, copy) = core.write_root(&flight.snapshot)?;
        flight.stage = Stage::Superblock { sequence, copy };
        Ok(())
    }

    /// Writes a checkpoint if anything changed, and waits for it; then every commit is durable and the rings are empty.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn checkpoint(&mut self, core: &mut Core) -> Result<()> {
        core.check_writable()?;
        self.notice_loss(core)?;
        self.finish(core)?;
        if core.is_dirty || self.big.used() > 0 {
            self.begin(core)?;
            self.finish(core)?;
        }
        self.covers(core.commits);
        Ok(())
    }

    /// Sees to it that the group fits into the rings, and that content does not gather in memory without end; true if
    /// that took a checkpoint which has the group.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn make_room(&mut self, core: &mut Core, need: Need) -> Result<bool> {
        let waits_for_big = self.effective(need).big;
        let may_fall_behind = !waits_for_big && self.leans_on_fast(core);
        if self.is_under_way() {
            if !waits_for_big && !self.holds_much(core) && self.fits(core.group.payload.len(), may_fall_behind) {
                return Ok(false);
            }
            self.finish(core)?;
        }
        let fits = self.fits(core.group.payload.len(), may_fall_behind);
        // Who waits for the big disk waits for the whole checkpoint, so it is put off until the log is full: the more of what
        // it would bring home is gone by then.
        let who_comes = if need == Need::default() { core.unsynced } else { need };
        let is_put_off = self.effective(who_comes).big;
        if fits && !self.holds_much(core) && (is_put_off || !self.is_half_full(may_fall_behind)) {
            return Ok(false);
        }
        // Between the heads' ways to the log and back a checkpoint takes much longer than by itself.
        if waits_for_big || self.fast.is_none() || !fits {
            self.checkpoint(core)?;
            return Ok(true);
        }
        self.append(core)?;
        self.begin(core)?;
        Ok(false)
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

impl Volume {
    /// Makes what only the fast disk has durable on the big disk, too: its log, or if there is much a checkpoint, of
    /// which at most `budget` steps are taken. Says how many, and whether there is more to do.
    ///
    /// # Errors
    /// `Media`.
    pub fn bring_home(&self, budget: u32) -> Result<(u32, bool)> {
        let mut log = self.log.lock();
        let disks = {
            let mut core = self.core.lock();
            core.check_writable()?;
            log.notice_loss(&mut core)?;
            let is_much = core.pending.count() * BLOCK * 2 >= core.options.pending_bytes;
            let is_due = is_much || log.big.is_behind() || log.is_half_full(log.leans_on_fast(&core));
            if is_due && !log.is_under_way() {
                if log.fits(core.group.payload.len(), log.leans_on_fast(&core)) && !core.group.has_placed {
                    log.append(&mut core)?;
                    log.begin(&mut core)?;
                } else {
                    log.checkpoint(&mut core)?;
                }
            }
            Arc::clone(&core.disks)
        };
        let mut steps = 0;
        let mut done = Ok(());
        while done.is_ok() && log.is_under_way() && steps < budget.max(1) {
            done = log.step(&disks, &self.core, true);
            steps += 1;
        }
        let is_under_way = log.is_under_way();
        if !is_under_way {
            done = done.and_then(|()| log.catch_up(&disks));
        }
        done.map_err(|error| self.core.lock().fail(error))?;
        Ok((steps, is_under_way || log.big.is_behind()))
    }
}

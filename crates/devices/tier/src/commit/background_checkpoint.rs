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
use crate::commit::running::{Running, Stage, begin};
use crate::core::Core;
use crate::log::Log;
use crate::medium::layout::BLOCK;
use crate::space::discard_queue::AT_ONCE;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Home<'_> {
    /// Begins a checkpoint of all that was applied.
    ///
    /// # Errors
    /// As [`begin`].
    pub fn begin(&mut self) -> Result<()> {
        self.reopen()?;
        let volume = self.volume;
        self.begin_beside(&mut volume.log.lock(), &mut volume.core.lock())
    }

    /// The same for who holds the locks of log and state, of a volume that is open.
    ///
    /// # Errors
    /// As [`begin`].
    pub fn begin_beside(&mut self, log: &mut Log, core: &mut Core) -> Result<()> {
        *self.running = Some(begin(log, core)?);
        Ok(())
    }

    /// Takes a step, which waits for the disk only if it is told so.
    ///
    /// # Errors
    /// `Media`, after which nothing may change any more.
    pub fn step(&mut self, waits: bool) -> Result<()> {
        let Some(running) = *self.running else { return Ok(()) };
        if self.go_on(running.stage, waits)? { self.end_stage(running) } else { Ok(()) }
    }

    /// Writes a run, or looks whether a flush is done, or waits for both; true if the stage is.
    fn go_on(&mut self, stage: Stage, waits: bool) -> Result<bool> {
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

    fn set_stage(&mut self, stage: Stage) {
        if let Some(running) = self.running.as_mut() {
            running.stage = stage;
        }
    }

    /// Whether a checkpoint is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.running.is_some()
    }

    /// Brings a checkpoint under way to its end.
    ///
    /// # Errors
    /// `Media`.
    pub fn finish(&mut self) -> Result<()> {
        while self.running.is_some() {
            self.step(true).map_err(|error| self.fail(error))?;
        }
        Ok(())
    }

    /// A stage is done and its writes are durable: the next one.
    fn end_stage(&mut self, ended: Running) -> Result<()> {
        let Stage::Superblock { sequence, copy } = ended.stage else {
            {
                let mut core = self.volume.core.lock();
                core.anchors_mut().set_checkpoint(&ended.snapshot, ended.marks.tail, ended.marks.fast);
            }
            let (sequence, copy) = self.write_first_copy()?;
            self.disks.begin_flush()?;
            self.set_stage(Stage::Superblock { sequence, copy });
            return Ok(());
        };
        // Otherwise a newer superblock was made durable meanwhile, in both places.
        let is_newest = self.volume.core.lock().superblock().sequence == sequence;
        if is_newest {
            self.write_second_copy(copy)?;
        }
        {
            let (log, core) = (&mut *self.volume.log.lock(), &mut *self.volume.core.lock());
            core.end_checkpoint();
            log.end_checkpoint(ended.snapshot.commits);
            core.note_fast_room(log);
        }
        *self.running = None;
        self.volume.discard_on_big(AT_ONCE);
        Ok(())
    }

    /// Writes a checkpoint if anything changed, and waits for it; then every commit until it began
    /// is durable.
    ///
    /// # Errors
    /// `Media`, `ReadOnly`.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.volume.core.lock().check_writable()?;
        self.notice_loss()?;
        self.finish()?;
        let (is_needed, commits) = {
            let (log, core) = (self.volume.log.lock(), self.volume.core.lock());
            (core.commits().is_dirty() || log.has_records(), core.commits().count())
        };
        if is_needed {
            self.begin()?;
            self.finish()?;
        }
        let commits =
            if is_planted(Bug::ManyTierCheckpointCovers) { self.volume.core.lock().commits().count() } else { commits };
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
    pub fn checkpoint_steps(&self, budget: u32) -> Result<(u32, bool)> {
        let mut home = self.home();
        self.core.lock().check_writable()?;
        home.notice_loss()?;
        if self.is_due() {
            home.reopen()?;
            let has_begun = {
                let (log, core) = (&mut *self.log.lock(), &mut *self.core.lock());
                let load = core.load();
                let fits =
                    log.fits(load.payload, log.leans_on_fast(load.unsynced)) && !core.commits().group().has_placed();
                if fits {
                    core.append(log)?;
                    home.begin_beside(log, core)?;
                }
                fits
            };
            if !has_begun {
                home.checkpoint()?;
            }
        }
        let mut steps = 0;
        let mut done = Ok(());
        while done.is_ok() && steps < budget.max(1) && home.is_under_way() {
            done = home.step(true);
            steps += 1;
        }
        let is_under_way = home.is_under_way();
        if !is_under_way {
            done = done.and_then(|()| home.catch_up());
        }
        done.map_err(|error| home.fail(error))?;
        Ok((steps, is_under_way || self.log.lock().is_behind()))
    }

    /// Whether there is so much that a checkpoint is worth it now.
    fn is_due(&self) -> bool {
        let (log, core) = (self.log.lock(), self.core.lock());
        let is_much = core.buffers().pending().count() * BLOCK * 2 >= core.buffers().most_pending();
        let is_due = is_much || log.is_behind() || log.is_half_full(log.leans_on_fast(core.commits().unsynced()));
        is_due && !log.is_under_way()
    }
}

//! Who brings something to the big disk: one at a time, and without the locks of log and state
//! while that works.
//!
//! What it keeps true: only who has this right writes to the log of the big disk, writes a
//! superblock, changes what it will say, or takes a step of a checkpoint. So none of that changes
//! while the disk works, although log and state are free for those who need the fast disk or memory
//! alone. It is taken before the lock of the log, which is taken before that of the state.

use crate::commit::Volume;
use crate::commit::running::Running;
use crate::disks::Disks;
use crate::log::need::Need;
use crate::log::{Batch, Log};
use crate::medium::layout::BLOCK;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::MutexGuard;
use onode_media::IoTag;
use onode_object::Result;

/// The right.
pub struct Home<'a> {
    /// The volume.
    pub volume: &'a Volume,
    /// Its disks.
    pub disks: Arc<Disks>,
    /// The checkpoint under way.
    pub(super) running: MutexGuard<'a, Option<Running>>,
}

/// A record, or several, to be made as durable as somebody needs it.
pub struct Write {
    /// What is needed of it.
    pub need: Need,
    /// Content was written to its place for it, which must be durable before.
    pub has_placed: bool,
    /// The fast disk is to have it.
    pub to_fast: bool,
    /// What the big disk is to have.
    pub batch: Option<Batch>,
}

impl Volume {
    /// Waits for the right to write to the big disk.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn home(&self) -> Home<'_> {
        let running = self.home.lock();
        Home { volume: self, disks: Arc::clone(self.core.lock().disks()), running }
    }

    /// The right, if nobody has it now.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn try_home(&self) -> Option<Home<'_>> {
        let running = self.home.try_lock()?;
        Some(Home { volume: self, disks: Arc::clone(self.core.lock().disks()), running })
    }
}

impl Home<'_> {
    /// Writes what was appended, and waits as far as it is needed; a fast disk that fails is needed
    /// no more. Content that a record names is durable before the record is written.
    ///
    /// # Errors
    /// `Media` of the big disk.
    pub fn write(&self, write: Write) -> Result<()> {
        let Write { need, has_placed, to_fast, batch } = write;
        if has_placed && !is_planted(Bug::TierRecordBeforeContent) {
            // Of others, too.
            self.disks.write_placed()?;
            self.disks.flush()?;
        }
        if has_placed {
            self.volume.log.lock().content_is_durable();
        }
        let is_waited_for = need.is_any();
        if let Some(batch) = &batch {
            self.write_batch(batch)?;
        }
        let log = || self.volume.log.lock();
        if to_fast && log().write_fast(&self.disks) {
            if !is_waited_for {
                return Ok(());
            }
            // Both disks take their writes before one is waited for.
            if let Some(batch) = batch {
                self.flush_batch(&batch)?;
            }
            if log().flush_fast(&self.disks) {
                return Ok(());
            }
        }
        // If the fast disk was lost while a checkpoint is under way, that has to come to its end
        // first.
        let needs_big = |log: &Log| log.effective(need).big && !log.is_under_way() && !log.is_behind();
        if needs_big(&log()) { self.catch_up() } else { Ok(()) }
    }

    fn write_batch(&self, batch: &Batch) -> Result<()> {
        let write =
            |(offset, bytes): &(u64, alloc::vec::Vec<u8>)| self.disks.write(offset / BLOCK, bytes, IoTag::Journal);
        batch.writes.iter().try_for_each(write)
    }

    fn flush_batch(&self, batch: &Batch) -> Result<()> {
        if !is_planted(Bug::TierBigNotFlushed) {
            self.disks.flush()?;
        }
        self.volume.log.lock().is_on_big(batch);
        Ok(())
    }

    /// Makes everything that was appended durable on the big disk: what only the fast one had, too,
    /// unless its log fell behind, which only a checkpoint makes good.
    ///
    /// # Errors
    /// `Media`.
    pub fn catch_up(&self) -> Result<()> {
        let Some(batch) = self.volume.log.lock().lacks_on_big() else { return Ok(()) };
        self.write_batch(&batch)?;
        self.flush_batch(&batch)
    }

    /// The fast disk is away if it was lost; the superblock says so from then on.
    ///
    /// # Errors
    /// `Media` of the big disk.
    pub fn notice_loss(&mut self) -> Result<()> {
        {
            let (mut log, mut core) = (self.volume.log.lock(), self.volume.core.lock());
            if !core.has_lost_fast() {
                return Ok(());
            }
            log.detach_fast();
            core.let_nothing_be_lost()?;
        }
        self.finish()?;
        if self.volume.log.lock().is_behind() {
            self.begin()?;
            self.finish()?;
        }
        self.catch_up().map_err(|error| self.fail(error))?;
        {
            let (log, mut core) = (self.volume.log.lock(), self.volume.core.lock());
            core.anchors_mut().detach_fast(log.newest().sequence);
        }
        self.write_superblock().map_err(|error| self.fail(error))
    }

    /// A write failed: from now on nothing changes.
    pub fn fail(&self, error: onode_object::Error) -> onode_object::Error {
        self.volume.core.lock().fail(error)
    }
}

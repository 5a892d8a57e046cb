//! Group commit: one flush of the medium for all who wait for one.
//!
//! Who syncs takes a ticket under the device's lock. Who then gets the lock of the flushes is the
//! leader: it programs what waits, gives the device's lock back, lets the medium flush, and takes
//! along everybody who had a ticket when it began. So a sync waits for the flush that goes on and
//! for one more, whoever makes that.
//!
//! It keeps true: a sync returns when what came before it is durable, or with the error of the
//! flush that was to make it so; after such an error the volume is read-only. A medium that only
//! its owner can flush is flushed under the device's lock, one sync after another.

use crate::medium::store::FlushBegun;
use crate::policy::Stream;
use crate::volume::Volume;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_media::SharedNand;
use onode_object::{Error, Result};

/// The place of a sync among all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    /// The next one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Its number.
    #[cfg(test)]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// How far flushes have come. Who takes this lock and the device's takes this one first.
#[derive(Default)]
pub struct Syncs {
    /// What was asked for up to this ticket is durable.
    durable: Ticket,
    /// The error of the flush that was to cover the tickets up to this one.
    failed: Option<(Ticket, Error)>,
}

impl Syncs {
    /// What became of `ticket`, if a flush covered it.
    pub fn outcome(&self, ticket: Ticket) -> Option<Result<()>> {
        if ticket <= self.durable {
            return Some(Ok(()));
        }
        self.failed.as_ref().filter(|(covered, _)| ticket <= *covered).map(|(_, error)| Err(error.clone()))
    }

    /// A flush that covered the tickets up to `covered` succeeded.
    pub const fn note_durable(&mut self, covered: Ticket) {
        self.durable = covered;
    }

    /// One failed, and nothing can be made durable any more.
    pub fn note_failed(&mut self, covered: Ticket, error: &Error) {
        self.failed.get_or_insert((covered, error.clone()));
    }
}

/// A flush that has begun, and what it will make durable.
pub struct Begun {
    medium: Arc<dyn SharedNand>,
    flush: FlushBegun,
    transaction: u64,
}

impl Begun {
    /// Lets the medium flush; needs no lock of the device.
    pub fn finish(&self) -> onode_media::Result<()> {
        self.medium.finish_flush()
    }
}

impl Volume<'_> {
    /// Flushes what was programmed, under the device's lock.
    pub fn flush_programmed(&mut self) -> Result<()> {
        self.log.flush()?;
        self.log.note_durable(self.log.transaction())
    }

    /// Programs what has to be flushed; false if everything is durable already.
    pub fn program_unsynced(&mut self) -> Result<bool> {
        self.log.store().latch().check()?;
        if self.checkpoints.is_clean() || is_planted(Bug::AckBeforeProgram) {
            return Ok(false);
        }
        if self.checkpoints.sync_to_memory(self.index, self.log)? {
            self.log.note_durable(self.log.transaction())?;
            return Ok(false);
        }
        // Content that the cleaner moved need not be durable: its old place still is.
        if !is_planted(Bug::RecordBeforeData) {
            self.log.program_users()?;
        }
        self.log.program_page(Stream::Journal)?;
        if self.log.is_chain_broken() {
            self.checkpoint()?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Programs what has to be flushed and begins the flush; nothing if everything is durable
    /// already.
    pub fn begin_sync(&mut self) -> Result<Option<Begun>> {
        if !self.program_unsynced()? {
            return Ok(None);
        }
        let Some((medium, flush)) = self.log.begin_flush()? else {
            return self.flush_programmed().map(|()| None);
        };
        Ok(Some(Begun { medium, flush, transaction: self.log.transaction() }))
    }

    /// Takes note of how a flush ended that began with `begun`.
    pub fn end_sync(&mut self, begun: &Begun, flushed: onode_media::Result<()>) -> Result<()> {
        self.log.end_flush(&begun.flush, flushed)?;
        self.log.note_durable(begun.transaction)
    }
}

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

use crate::core::Core;
use crate::device::FlashDevice;
use crate::medium::store::FlushBegun;
use crate::policy::Stream;
use alloc::sync::Arc;
use onode_base::planted::{Bug, is_planted};
use onode_media::SharedNand;
use onode_object::{Durability, Error, Result, SyncScope, Transaction};

#[cfg(test)]
mod tests;

/// The place of a sync among all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

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
    fn outcome(&self, ticket: Ticket) -> Option<Result<()>> {
        if ticket <= self.durable {
            return Some(Ok(()));
        }
        self.failed.as_ref().filter(|(covered, _)| ticket <= *covered).map(|(_, error)| Err(error.clone()))
    }
}

/// A flush that has begun, and what it will make durable.
struct Begun {
    medium: Arc<dyn SharedNand>,
    flush: FlushBegun,
    transaction: u64,
}

impl FlashDevice {
    /// Commits as the object interface says.
    pub(crate) fn commit_grouped(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let ticket = {
            let mut core = self.core()?;
            if durability == Durability::Buffered || !core.log.store.flushes_beside() {
                return core.commit(transaction, durability);
            }
            let is_empty = transaction.is_empty();
            core.commit_to_be_synced(transaction)?;
            let ticket = core.take_ticket();
            drop(core);
            if is_empty {
                return self.persist(ticket);
            }
            ticket
        };
        let synced = self.persist(ticket);
        self.core()?.finish_commit(synced)
    }

    /// Makes every commit so far durable.
    pub(crate) fn sync_grouped(&self, scope: SyncScope) -> Result<()> {
        let ticket = {
            let mut core = self.core()?;
            core.sync_access_times(scope)?;
            // The journal is one log: what covers one object covers all that came before.
            if !core.log.store.flushes_beside() {
                return core.sync();
            }
            core.log.store.check_writable()?;
            core.take_ticket()
        };
        self.persist(ticket)
    }

    /// Waits until what `ticket` stands for is durable.
    fn persist(&self, ticket: Ticket) -> Result<()> {
        let mut syncs = self.syncs.lock();
        if let Some(outcome) = syncs.outcome(ticket) {
            return outcome;
        }
        let (covered, begun) = {
            let mut core = self.core()?;
            (core.tickets, core.begin_sync())
        };
        let ended = match begun {
            Ok(None) => Ok(()),
            Ok(Some(begun)) => {
                // From here on others commit and read while the medium flushes.
                let flushed = begun.medium.finish_flush();
                self.core.lock().end_sync(&begun, flushed)
            }
            Err(error) => Err(error),
        };
        match &ended {
            Ok(()) => syncs.durable = covered,
            Err(error) if self.core.lock().log.store.read_only().is_some() => {
                syncs.failed.get_or_insert((covered, error.clone()));
            }
            // Nothing is known of what the others wait for: each finds out by itself.
            Err(_) => {}
        }
        ended
    }
}

impl Core {
    /// The ticket of a sync of all that was committed so far.
    fn take_ticket(&mut self) -> Ticket {
        self.rhythm.sync();
        self.tickets.0 += 1;
        self.tickets
    }

    /// Makes every commit so far durable: one program of the page that holds the last record.
    pub fn sync(&mut self) -> Result<()> {
        self.rhythm.sync();
        if self.program_unsynced()? { self.flush_programmed() } else { Ok(()) }
    }

    /// Flushes what was programmed, under the device's lock.
    fn flush_programmed(&mut self) -> Result<()> {
        self.log.store.flush()?;
        self.log.store.set_watermark(self.log.transaction)
    }

    /// Programs what has to be flushed; false if everything is durable already.
    fn program_unsynced(&mut self) -> Result<bool> {
        self.log.store.check_writable()?;
        if self.clean || is_planted(Bug::AckBeforeProgram) {
            return Ok(false);
        }
        if self.sync_to_memory()? {
            self.log.store.set_watermark(self.log.transaction)?;
            return Ok(false);
        }
        // Content that the cleaner moved need not be durable: its old place still is.
        if !is_planted(Bug::RecordBeforeData) {
            self.log.program_users()?;
        }
        self.log.program_page(Stream::Journal)?;
        if self.log.chain_broken {
            self.checkpoint(false)?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Programs what has to be flushed and begins the flush; nothing if everything is durable
    /// already.
    fn begin_sync(&mut self) -> Result<Option<Begun>> {
        if !self.program_unsynced()? {
            return Ok(None);
        }
        let (journal_end, _) = self.log.journal_position();
        let Some((medium, flush)) = self.log.store.begin_flush(journal_end)? else {
            return self.flush_programmed().map(|()| None);
        };
        Ok(Some(Begun { medium, flush, transaction: self.log.transaction }))
    }

    /// Takes note of how a flush ended that began with `begun`.
    fn end_sync(&mut self, begun: &Begun, flushed: onode_media::Result<()>) -> Result<()> {
        self.log.store.end_flush(&begun.flush, flushed)?;
        self.log.store.set_watermark(begun.transaction)
    }
}

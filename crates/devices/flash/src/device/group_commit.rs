//! Commits and syncs of many programs at once: who leads a flush and who comes along.
//!
//! The rules are those of [`crate::commit::sync`].

use super::FlashDevice;
use crate::commit::sync::Ticket;
use onode_base::planted::{Bug, is_planted};
use onode_object::{Durability, Result, SyncScope, Transaction};

#[cfg(test)]
mod tests;

/// A commit that is to be durable before it returns, and is not yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unsynced {
    ticket: Ticket,
    /// There was nothing to change: it is a sync.
    is_empty: bool,
}

impl FlashDevice {
    /// Commits as the object interface says.
    pub(crate) fn commit_grouped(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.begin_commit(transaction, durability)?.map_or(Ok(()), |unsynced| self.end_commit(unsynced))
    }

    /// Does the part of a commit that waits for nobody's flush: what is left, if anything is, is
    /// for [`end_commit`](Self::end_commit).
    ///
    /// # Errors
    /// Those of a commit.
    #[doc(hidden)]
    pub fn begin_commit(&self, transaction: Transaction, durability: Durability) -> Result<Option<Unsynced>> {
        let mut core = self.core()?;
        if durability == Durability::Buffered || !core.log().store().flushes_beside() {
            return core.commit(transaction, durability).map(|()| None);
        }
        let is_empty = transaction.is_empty();
        core.commit_to_be_synced(transaction)?;
        Ok(Some(Unsynced { ticket: core.take_ticket(), is_empty }))
    }

    /// Waits until a commit is durable.
    ///
    /// # Errors
    /// That of the flush which was to make it so.
    #[doc(hidden)]
    pub fn end_commit(&self, unsynced: Unsynced) -> Result<()> {
        let synced = self.persist(unsynced.ticket);
        if unsynced.is_empty {
            return synced;
        }
        self.core()?.finish_commit(synced)
    }

    /// Makes every commit so far durable.
    pub(crate) fn sync_grouped(&self, scope: SyncScope) -> Result<()> {
        let ticket = {
            let mut core = self.core()?;
            core.volume().sync_access_times(scope)?;
            // The journal is one log: what covers one object covers all that came before.
            if !core.log().store().flushes_beside() {
                return core.sync();
            }
            core.log().store().latch().check()?;
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
            (core.tickets(), core.volume().begin_sync())
        };
        let ended = match begun {
            Ok(None) => Ok(()),
            Ok(Some(begun)) => {
                // From here on others commit and read while the medium flushes.
                let flushed = begun.finish();
                self.core.lock().volume().end_sync(&begun, flushed)
            }
            Err(error) => Err(error),
        };
        let covered = if is_planted(Bug::ManySyncCoversLater) { self.core.lock().tickets() } else { covered };
        match &ended {
            Ok(()) => syncs.note_durable(covered),
            Err(error) if self.core.lock().log().store().latch().why().is_some() => {
                syncs.note_failed(covered, error);
            }
            // Nothing is known of what the others wait for: each finds out by itself.
            Err(_) => {}
        }
        ended
    }
}

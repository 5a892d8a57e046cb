//! Transactions that only free space, on a volume without room for all that they change at once
//! (N7).
//!
//! Each removal may change a node of its own, and all changed nodes are written before the old ones
//! are free: no reserve is large enough for thousands. So the record of such a transaction goes to
//! the journal as always, and its changes are deferred like those that a mount finds there
//! ([`crate::index::deferred`]). They are applied some at a time, with checkpoints in between that
//! store what is left. A mount after a crash finds the record, or what is left of it, or neither,
//! never a part: whoever asks for something that is deferred gets it applied first.
//!
//! What bounds such a transaction is that a checkpoint can store all of it.

use super::Core;
use crate::log::record::{Change, Changes};
use crate::medium::format::FEATURE_MEMORY;
use crate::policy::Stream;
use crate::space::room::MUTATIONS_AT_ONCE;
use alloc::vec::Vec;
use onode_object::{Error, ErrorKind, Mutation, Result, Transaction};

impl Core {
    /// Whether `transaction`, which only frees space, is to be applied in steps: it finds no room
    /// otherwise.
    pub fn goes_in_steps(&self, transaction: &Transaction) -> bool {
        transaction.mutations.len() > MUTATIONS_AT_ONCE
            // With a memory a mount applies at once what it finds.
            && !self.checkpoints.has_feature(FEATURE_MEMORY)
            && !transaction.mutations.iter().any(|one| matches!(one, Mutation::Write { .. }))
            && !self.room().has_room(self.room().needed_segments(transaction))
    }

    /// Makes room for the record of such a transaction; the changes that it is made of.
    ///
    /// # Errors
    /// `NoSpace` if there are more than a checkpoint can store; nothing has changed that anyone can
    /// see.
    pub fn prepare_steps(&mut self, transaction: Transaction) -> Result<Vec<Change>> {
        let changes: Vec<Change> = transaction.mutations.into_iter().map(Change::Mutation).collect();
        if !self.index.could_store(&self.log, &changes) {
            let why = "the transaction frees more at once than a full volume can note down; free less at a time";
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        let filled_bytes = self.room().filled_bytes();
        let mut record = Changes::new();
        changes.iter().for_each(|change| record.push(change));
        let needed = 1 + (record.record(u64::MAX).len() as u64).div_ceil(filled_bytes) as u32;
        let (cleaner, mut volume) = self.parts();
        // One list at a time.
        cleaner.apply_deferred_in_room(&mut volume)?;
        if volume.index.has_deferred() || !cleaner.gain_segments(&mut volume, needed, true)? {
            return Err(Error::new(ErrorKind::NoSpace, "there is no room for the record of what is to be freed"));
        }
        // A replay finds nothing but this record, which may take all that can be deferred.
        volume.set_free()?;
        Ok(changes)
    }

    /// Does what was prepared.
    pub fn commit_in_steps(&mut self, changes: Vec<Change>) -> Result<()> {
        self.rhythm.commit();
        let mut record = Changes::new();
        changes.iter().for_each(|change| record.push(change));
        self.commits += 1;
        self.log_changes(&record)?;
        self.log.program_page(Stream::Journal)?;
        for change in changes {
            if let Change::Mutation(Mutation::SetAttribute { object, value, .. }) = &change {
                self.log.count_attribute(*object, value.len());
            }
            self.index.defer(&mut self.log, change, false)?;
        }
        let (cleaner, mut volume) = self.parts();
        cleaner.apply_deferred_in_room(&mut volume)
    }
}

//! What a device must hold after any history of commits, syncs and crashes (N1, N2, N3).
//!
//! The oracle is told what the device answered. After a crash it accepts exactly the states that
//! some number of the buffered commits, in order and each wholly, leads to.

use super::{Tree, dump};
use crate::device::ObjectDevice;
use crate::durability::{Durability, SyncScope};
use crate::error::Result;
use crate::id::ObjectId;
use crate::ram::RamDevice;
use crate::transaction::{Mutation, Transaction};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// More than any test writes.
const CAPACITY_BYTES: u64 = 1 << 60;

/// A model of the device, and which of its commits a crash may take.
pub struct Oracle {
    /// The reference device, always at the newest state.
    pub model: RamDevice,
    /// Commits since the model was last durable as a whole.
    buffered: Vec<Transaction>,
    /// How many of them must survive, because a sync of one object covered them.
    must_survive: usize,
}

impl Default for Oracle {
    fn default() -> Self {
        Self { model: RamDevice::with_crash_model(CAPACITY_BYTES), buffered: Vec::new(), must_survive: 0 }
    }
}

impl Oracle {
    /// Tells that the device was given this transaction; the answer is what it has to answer, apart
    /// from `NoSpace`, which the oracle never gives.
    ///
    /// # Errors
    /// Why the transaction cannot apply.
    pub fn commit(&mut self, transaction: &Transaction, durability: Durability) -> Result<()> {
        self.allow_ids(transaction)?;
        self.model.commit(transaction.clone(), durability)?;
        match durability {
            Durability::Durable => self.forget_buffered(),
            Durability::Buffered => self.buffered.push(transaction.clone()),
        }
        Ok(())
    }

    /// Tells that the device returned from this sync.
    ///
    /// # Errors
    /// None in practice; the model cannot fail to sync.
    pub fn sync(&mut self, scope: SyncScope) -> Result<()> {
        match scope {
            SyncScope::All => {
                self.model.sync(SyncScope::All)?;
                self.forget_buffered();
            }
            SyncScope::Object(object) => {
                let touches = |it: &Transaction| it.mutations.iter().any(|mutation| mutation.changes(object));
                let covered = self.buffered.iter().rposition(touches).map_or(0, |position| position + 1);
                self.must_survive = self.must_survive.max(covered);
            }
        }
        Ok(())
    }

    /// Tells that the device was cut off and shows `found` now. From then on the model stands where
    /// the device stands, and all of that is durable (N5).
    ///
    /// # Errors
    /// In words, if no allowed state equals what was found: the difference to the nearest allowed
    /// ends, the fewest and the most commits.
    pub fn crash(&mut self, found: &Tree) -> core::result::Result<(), String> {
        self.model.crash();
        let buffered = core::mem::take(&mut self.buffered);
        let must_survive = core::mem::take(&mut self.must_survive);
        let mut first = None;
        let mut last = None;
        for survivors in 0..=buffered.len() {
            if survivors >= must_survive {
                let expected = dump(&self.model).map_err(|error| format!("{error}"))?;
                let Some(difference) = found.difference(&expected) else {
                    return self.model.sync(SyncScope::All).map_err(|error| format!("{error}"));
                };
                first.get_or_insert_with(|| difference.clone());
                last = Some(difference);
            }
            if let Some(transaction) = buffered.get(survivors) {
                let replayed = self
                    .allow_ids(transaction)
                    .and_then(|()| self.model.commit(transaction.clone(), Durability::Buffered));
                replayed.map_err(|error| format!("the model refuses what it accepted before: {error}"))?;
            }
        }
        Err(format!(
            "no state from {must_survive} to {} buffered commits: with the fewest, {}; with all, {}",
            buffered.len(),
            first.unwrap_or_default(),
            last.unwrap_or_default()
        ))
    }

    fn forget_buffered(&mut self) {
        self.buffered.clear();
        self.must_survive = 0;
    }

    /// Lets the model accept the ids that the device handed out.
    fn allow_ids(&self, transaction: &Transaction) -> Result<()> {
        for mutation in &transaction.mutations {
            if let Mutation::Create { object, .. } = mutation {
                let ObjectId(next) = self.model.reserve_ids(0)?;
                if object.0 >= next && object.0 < 1 << 62 {
                    self.model.reserve_ids(object.0 + 1 - next)?;
                }
            }
        }
        Ok(())
    }
}

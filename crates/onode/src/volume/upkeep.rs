//! What has to be done for an open volume now and then: nothing below has a thread or a clock.

use crate::volume::Volume;
use crate::volume::snapshots::clones::Clones;
#[cfg(feature = "transactions")]
use crate::volume::transactions::Transactions;
use onode_fs::FileSystem;
use std::sync::Arc;

/// What lives by being called about once a second: write-back, background work of the device,
/// transactions that nobody uses any more, files of clones.
#[derive(Clone, Debug)]
pub struct Upkeep {
    files: Arc<FileSystem>,
    #[cfg(feature = "transactions")]
    transactions: Option<Arc<Transactions>>,
    clones: Option<Arc<Clones>>,
}

impl Volume {
    /// What keeps the volume up; it may be held longer than the volume is open.
    #[must_use]
    pub fn upkeep(&self) -> Upkeep {
        Upkeep {
            files: Arc::clone(self.files()),
            #[cfg(feature = "transactions")]
            transactions: self.transactions().cloned(),
            clones: self.clones().cloned(),
        }
    }
}

impl Upkeep {
    /// Writes back what has waited for long enough, and aborts transactions that nobody used for
    /// long. To be called about once a second. A failure of write-back is told by the next sync, as
    /// ever.
    pub fn tick(&self) {
        self.files.tick();
        #[cfg(feature = "transactions")]
        if let Some(transactions) = &self.transactions {
            transactions.sweep();
        }
        if let Some(clones) = &self.clones {
            clones.tick();
        }
    }

    /// Does up to `budget` units of background work: cleaning ahead of need, moving what may soon
    /// not be read any more, removing what deleted snapshots kept. True if there is more.
    ///
    /// # Errors
    /// Those of the device; the volume's health tells of them, too, until it succeeds.
    pub fn work(&self, budget: u32) -> onode_fs::Result<bool> {
        Ok(self.files.maintain(budget)?.more)
    }
}

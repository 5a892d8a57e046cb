//! What is to come into the log, and what has to be done before there is room for it.
//!
//! What it does not do: decide, which is the business of the [`Log`](crate::log::Log).

use crate::log::need::Need;

/// What is to come into the log, or waits for the big disk beside it.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of the group.
    pub payload: usize,
    /// What commits since the last sync need.
    pub unsynced: Need,
    /// Bytes of content without a place, in memory.
    pub pending: u64,
    /// Bytes of it that memory is to have at most.
    pub most_pending: u64,
}

/// What has to be done before a record of the group can be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Load {
    /// Whether memory has more content without a place than it should, by more than `beyond` bytes,
    /// of which no more count than it may have at all.
    #[must_use]
    pub fn is_above(&self, beyond: u64) -> bool {
        self.pending > self.most_pending + beyond.min(self.most_pending)
    }
}

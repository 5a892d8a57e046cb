//! What is known of a checkpoint under way: how far it is, what the superblock will say, and where
//! the logs go on behind it.
//!
//! What it keeps true: nothing is written when a checkpoint begins, so that it can begin under the
//! locks of log and state.
//!
//! What it does not do: take the steps, which is the business of
//! [`background_checkpoint`](crate::commit::background_checkpoint).

use crate::core::Core;
use crate::log::{CheckpointMarks, Log};
use crate::medium::anchors::Snapshot;
use onode_object::Result;

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Blocks are written.
    Blocks,
    /// They are made durable.
    Flush,
    /// The superblock of this sequence is made durable in this copy.
    Superblock {
        /// Its sequence.
        sequence: u64,
        /// Where it is written first.
        copy: u64,
    },
}

/// A checkpoint under way.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// How far it is.
    pub stage: Stage,
    /// What the superblock will say.
    pub snapshot: Snapshot,
    /// Where the logs go on behind it.
    pub marks: CheckpointMarks,
}

/// Begins a checkpoint of all that was applied. Nothing is written here.
///
/// # Errors
/// `NoSpace`, `Media`, after which nothing may change any more.
pub fn begin(log: &mut Log, core: &mut Core) -> Result<Running> {
    let lacks_record = core.commits().group().transactions() > 0;
    let snapshot = core.begin_checkpoint()?;
    Ok(Running { stage: Stage::Blocks, snapshot, marks: log.mark_checkpoint(lacks_record) })
}

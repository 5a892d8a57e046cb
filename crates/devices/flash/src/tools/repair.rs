//! Repair: sets right what can be set right without guessing.
//!
//! The volume is mounted in memory first, as for reading. Then everything that the index refers to
//! is counted, and what was noted down wrongly - live bytes, states, allocated bytes, numbers of
//! objects and extents - is replaced by what was counted. If entries of the index are lost, or the
//! newest checkpoint cannot be used at all, an older one that has everything is taken
//! (`repair/standing.rs`). Only if it is asked for, one is taken that lacks something, a journal
//! that is damaged is taken up to the damage, or entries that are lost or make no sense are
//! dropped, whichever loses less.
//!
//! It keeps true: nothing is written before all this is known, and then everything goes through one
//! checkpoint. A cut at any moment leaves the volume as it was or as it is to be. What was lost is
//! listed; content is never made up: damaged content stays an error for exactly its range, or if it
//! is asked for becomes a hole.

mod content;
mod recount;
mod standing;
#[cfg(test)]
mod tests;

use crate::core::Core;
use crate::medium::errors::damaged;
use crate::medium::ring;
use crate::volume::Volume;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use onode_base::ErrorKind;
use onode_media::{IoTag, Nand};
use onode_object::{Error, ObjectId, Result};
use standing::Standing;

/// How far a repair may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Drop entries of the index that are lost or make no sense and content that cannot be read,
    /// or take an older checkpoint that lacks something if that loses less. Without it a repair
    /// loses nothing that can still be read.
    pub drop_damaged: bool,
    /// Go on although the journal lacks what was durable once, and give up what a memory beside the
    /// flash may have that the flash lacks; so does who may drop what is damaged.
    pub accept_loss: bool,
}

/// One thing that a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The live bytes of a segment were wrong.
    LiveBytes {
        /// The segment.
        segment: u32,
        /// What was noted down.
        from: u64,
        /// What was counted.
        to: u64,
    },
    /// A segment that is referred to was not marked as in use.
    SegmentState {
        /// The segment.
        segment: u32,
        /// The state that was noted down.
        from: &'static str,
    },
    /// The allocated bytes of an object were wrong.
    Allocated {
        /// The object.
        object: ObjectId,
        /// What was noted down.
        from: u64,
        /// What was counted.
        to: u64,
    },
    /// The number of objects was wrong.
    ObjectCount {
        /// What was noted down.
        from: u64,
        /// What was counted.
        to: u64,
    },
    /// The number of extents was wrong.
    ExtentCount {
        /// What was noted down.
        from: u64,
        /// What was counted.
        to: u64,
    },
    /// The journal was taken up to a damaged page; what came behind it is lost.
    JournalCut {
        /// Where and why.
        why: String,
    },
    /// The newest checkpoint is damaged; an older one was taken, with what the journal has since.
    OlderCheckpoint {
        /// The superblock that was taken.
        generation: u32,
        /// The newest one.
        newest: u32,
        /// Commits that are lost with it; none if the journal has all of them.
        commits: u64,
    },
    /// A page of the index was damaged; what lay there was written anew from its copy.
    PageRestored {
        /// The segment.
        segment: u32,
        /// The page of it.
        page: u32,
    },
    /// A page could not be read; what lay there was written anew from the parity of its row.
    PageRebuilt {
        /// The segment.
        segment: u32,
        /// The page of it.
        page: u32,
    },
    /// A row of pages had no parity, or a damaged one; what lies there was written anew, with
    /// parity.
    RowProtected {
        /// The segment.
        segment: u32,
        /// The row of it.
        row: u32,
    },
    /// A tree node was lost; entries in this range may be lost with it.
    NodeDropped {
        /// The first object that may have lost something.
        from: ObjectId,
        /// The last one; `None` for all that follow.
        until: Option<ObjectId>,
    },
    /// An entry of the index was dropped.
    EntryDropped {
        /// The object.
        object: ObjectId,
        /// What it was.
        what: String,
    },
    /// Content that cannot be read became a hole.
    ContentDropped {
        /// The object.
        object: ObjectId,
        /// Which bytes of it.
        range: Range<u64>,
    },
}

impl Action {
    /// Whether something is gone with it.
    #[must_use]
    pub const fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::JournalCut { .. }
                | Self::OlderCheckpoint { commits: 1.., .. }
                | Self::NodeDropped { .. }
                | Self::EntryDropped { .. }
                | Self::ContentDropped { .. }
        )
    }

    /// The object that lost something, if it is one.
    #[must_use]
    pub const fn object(&self) -> Option<ObjectId> {
        match self {
            Self::EntryDropped { object, .. } | Self::ContentDropped { object, .. } => Some(*object),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LiveBytes { segment, from, to } => write!(f, "segment {segment}: live bytes {from} set to {to}"),
            Self::SegmentState { segment, from } => write!(f, "segment {segment}: state {from} set to full"),
            Self::Allocated { object, from, to } => write!(f, "{object}: allocated bytes {from} set to {to}"),
            Self::ObjectCount { from, to } => write!(f, "number of objects {from} set to {to}"),
            Self::ExtentCount { from, to } => write!(f, "number of extents {from} set to {to}"),
            Self::JournalCut { why } => write!(f, "lost: the end of the journal: {why}"),
            Self::OlderCheckpoint { generation, newest, commits: 0 } => {
                write!(
                    f,
                    "superblock {newest}: its index is damaged; all is there with that of superblock {generation}"
                )
            }
            Self::OlderCheckpoint { generation, newest, commits } => write!(
                f,
                "lost: the last {commits} changes: the index of superblock {newest} is damaged, and that of superblock \
                 {generation} was taken; files, snapshots and clones that changed since are as they were before, or \
                 gone, and not all of them are named"
            ),
            Self::PageRestored { segment, page } => {
                write!(f, "segment {segment}: page {page} restored from its copy")
            }
            Self::PageRebuilt { segment, page } => {
                write!(f, "segment {segment}: page {page} written anew from the parity of its row")
            }
            Self::RowProtected { segment, row } => {
                write!(f, "segment {segment}: what lies in row {row} written anew, with parity")
            }
            Self::NodeDropped { from, until: Some(until) } => {
                write!(f, "lost: a tree node with entries of {from} to {until}")
            }
            Self::NodeDropped { from, until: None } => write!(f, "lost: a tree node with entries from {from} on"),
            Self::EntryDropped { object, what } => write!(f, "lost: {object}: {what}"),
            Self::ContentDropped { object, range } => {
                write!(f, "lost: {object}: bytes {}..{} are zeros now", range.start, range.end)
            }
        }
    }
}

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// In the order it was done; empty if nothing was wrong.
    pub actions: Vec<Action>,
}

/// Repairs the volume on `nand` and closes it. Whoever wants to know what is left checks it again.
///
/// # Errors
/// `Invalid` if there is no volume, `NotSupported` for a newer format; `Corrupt` if more would have
/// to be dropped than `options` allow, `Loss` if the journal lacks what was durable once and nobody
/// consents to that, and nothing was changed then; `NoSpace`, `Media`.
pub fn repair(nand: impl Nand + 'static, options: &RepairOptions) -> Result<Repaired> {
    let mut nand: Box<dyn Nand> = Box::new(nand);
    let mut actions = Vec::new();
    let all = ring::find_all(&mut *nand)?;
    let newest = all.iter().max_by_key(|found| found.superblock.generation.get()).cloned();
    let newest =
        newest.ok_or_else(|| Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"))?;
    ring::check_superblock(&newest, &*nand)?;
    if newest.is_buffered() && !options.drop_damaged && !options.accept_loss {
        return Err(damaged("the memory beside the flash may have what the flash lacks"));
    }
    let standing = Standing::best(nand, &all, &newest, options.drop_damaged, &mut actions)?;
    if !options.drop_damaged && !options.accept_loss {
        standing.refuse_cuts()?;
    }
    let Standing { mut core, cuts, .. } = standing;
    actions.extend(cuts);
    recount::recount(&mut core.volume(), options.drop_damaged, &mut actions)?;
    if options.drop_damaged {
        core.with_index(|index, log| content::drop_content(index, log, &mut actions))?;
    }
    let restored = core.log().store().restored();
    actions.extend(restored.map(|at| Action::PageRestored { segment: at.segment, page: at.page }));
    actions.extend(scan_rows(&mut core)?);
    // A cut may come at any time from here on: the old superblock counts until the new one is
    // written.
    if !actions.is_empty() || !core.checkpoints().is_clean() {
        core.volume().checkpoints.set_clean(false);
        let (recovery, mut volume) = core.recovery_parts();
        recovery.finish(&mut volume)?;
        core.close()?;
    }
    Ok(Repaired { actions })
}

/// Whether the volume on `nand` was in use with a write buffer in the memory beside it, which may
/// have what was synced last: a mount with that memory brings it to the flash.
///
/// # Errors
/// Those of the medium.
pub fn needs_memory(nand: &mut dyn Nand) -> Result<bool> {
    Ok(ring::find(nand, None)?.is_some_and(|found| found.is_buffered()))
}

/// Looks at all rows of a volume with parity, so that what is wrong with them is moved when it is
/// closed; says what that is.
fn scan_rows(core: &mut Core) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let Volume { log, .. } = core.volume();
    let layout = *log.layout();
    if !layout.has_parity() {
        return Ok(actions);
    }
    for segment in 0..layout.segments {
        let stream = log.table().get(segment).stream;
        for row in layout.rows_of(stream, segment) {
            let Some(state) = log.examine_row(row, IoTag::Check)? else { continue };
            actions.extend(state.rebuilt.iter().map(|at| Action::PageRebuilt { segment, page: at.page }));
            if state.lacks_parity() {
                actions.push(Action::RowProtected { segment, row: row.row });
            }
        }
    }
    Ok(actions)
}

//! Repair: sets right what can be set right without guessing.
//!
//! The volume is mounted in memory first, as for reading. Then everything that the index refers to
//! is counted, and what was noted down wrongly - live bytes, states, allocated bytes, numbers of
//! objects and extents - is replaced by what was counted. A journal that is damaged in its middle
//! is taken up to the damage. Only if it is asked for, entries of the index that are lost or make
//! no sense are dropped, and an older checkpoint is taken if the newest one cannot be used at all.
//!
//! It keeps true: nothing is written before all this is known, and then everything goes through one
//! checkpoint. A cut at any moment leaves the volume as it was or as it is to be. What was lost is
//! listed; content is never made up: damaged content stays an error for exactly its range, or if it
//! is asked for becomes a hole.

mod content;
mod recount;
#[cfg(test)]
mod tests;

use crate::core::Core;
use crate::index::Index;
use crate::medium::errors::damaged;
use crate::medium::format::Superblock;
use crate::medium::ring::{self, Found};
use crate::options::MountOptions;
use crate::tools::check::medium::Medium;
use crate::tools::check::{Context, superblocks, table};
use crate::volume::Volume;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use onode_base::ErrorKind;
use onode_media::{IoTag, Nand};
use onode_object::{Error, ObjectId, Result};

/// How far a repair may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Drop entries of the index that are lost or make no sense and content that cannot be read,
    /// and take an older checkpoint if there is no other way. Without it a repair loses nothing
    /// that can still be read.
    pub drop_damaged: bool,
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
    /// The newest checkpoint could not be used; an older one was taken.
    OlderCheckpoint {
        /// The superblock that was taken.
        generation: u32,
        /// The newest one.
        newest: u32,
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
                | Self::OlderCheckpoint { .. }
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
            Self::OlderCheckpoint { generation, newest } => {
                write!(f, "lost: superblock {newest} cannot be used, went back to {generation}")
            }
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
/// to be dropped than `options` allow, and nothing was changed then; `NoSpace`, `Media`.
pub fn repair(nand: impl Nand + 'static, options: &RepairOptions) -> Result<Repaired> {
    let mut nand: Box<dyn Nand> = Box::new(nand);
    let mut actions = Vec::new();
    let all = ring::find_all(&mut *nand)?;
    let newest = all.iter().max_by_key(|found| found.superblock.generation.get()).cloned();
    let newest =
        newest.ok_or_else(|| Error::new(ErrorKind::Invalid, "no superblock: this is not an Onode flash volume"))?;
    let found = usable(&mut *nand, &all, &newest, options, &mut actions)?;
    if newest.is_buffered() && !options.drop_damaged {
        return Err(damaged(
            "the memory beside the flash may have what the flash lacks: mount the volume with it first",
        ));
    }
    let mut core = Core::mount_found(nand, &found, &MountOptions { read_only: true, ..MountOptions::default() }, None)?;
    recount::supersede(&mut core.volume(), &newest);
    if let Some(why) = core.recovery_parts().0.take_loss() {
        actions.push(Action::JournalCut { why });
    }
    while let Err(error) = core.with_index(Index::apply_all_deferred) {
        if error.kind != ErrorKind::Corrupt {
            return Err(error);
        }
        actions.push(Action::JournalCut { why: error.detail });
        core.with_index(|index, _| index.drop_next_deferred());
    }
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

/// The newest superblock whose segment table and root can be read.
fn usable(
    nand: &mut dyn Nand,
    all: &[Found],
    newest: &Found,
    options: &RepairOptions,
    actions: &mut Vec<Action>,
) -> Result<Found> {
    let layout = ring::check_superblock(newest, nand)?;
    let mut descending: Vec<&Found> = all.iter().collect();
    descending.sort_by_key(|found| core::cmp::Reverse(found.superblock.generation.get()));
    for found in descending {
        let superblock: &Superblock = &found.superblock;
        if superblock.uuid != newest.superblock.uuid || ring::check_superblock(found, nand).is_err() {
            continue;
        }
        let located = superblocks::Located {
            block: found.block,
            page: 0,
            superblock: *superblock,
            references: found.references.clone(),
        };
        let mut medium = Medium::new(nand, layout, &located);
        let Some(table) = table::load(&mut medium, &located, &mut Context::silent()) else { continue };
        let sequence = table.sequence(&layout, superblock.root.location.get());
        if medium.blob(&superblock.root, sequence).is_err() {
            continue;
        }
        if superblock.checkpoint_generation == newest.superblock.checkpoint_generation {
            return Ok(found.clone());
        }
        let (generation, newest) = (superblock.generation.get(), newest.superblock.generation.get());
        if !options.drop_damaged {
            return Err(damaged("the newest checkpoint cannot be used; an older one can, with what came since lost"));
        }
        actions.push(Action::OlderCheckpoint { generation, newest });
        return Ok(found.clone());
    }
    Err(damaged("no checkpoint can be used: segment table or root of the index are lost"))
}

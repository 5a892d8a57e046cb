//! Segments in which a program failed, seen from a checkpoint: what was left in memory is
//! moved before a checkpoint, what lies on good pages soon after it, and then the bad block is
//! marked.
//!
//! A segment is retired whole, also if only one of its erase blocks is bad. That happens after the
//! first checkpoint which needs nothing on it, because marking a block may spoil its content. A cut
//! between the failure and the checkpoint loses only the knowledge of it: the block fails again.

use super::Checkpoints;
use crate::cleaner::moving::items_on;
use crate::index::Index;
use crate::log::Log;
use crate::medium::layout::SegmentPage;
use crate::policy::Stream;
use crate::space::items::{Item, Owner};
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_media::IoTag;
use onode_object::Result;

impl Checkpoints {
    /// Moves what failed programs left in memory only. Moving may fail as well; then there is more
    /// to do.
    pub fn rescue(&self, index: &mut Index, log: &mut Log) -> Result<()> {
        if is_planted(Bug::StrandedForgotten) {
            return Ok(());
        }
        while let Some((segment, first, items)) = log.stranded() {
            let base = log.start_of(segment);
            for item in &items {
                let item = behind(item, first);
                self.mover(index, log).move_item_of_any(&item, base + u64::from(item.start))?;
            }
            log.forget_stranded(segment);
        }
        Ok(())
    }

    /// Moves what lies on pages that were read from their copies: the copies go with their erase
    /// block.
    pub fn move_restored(&self, index: &mut Index, log: &mut Log) -> Result<()> {
        let restored: Vec<SegmentPage> = log.store().restored().collect();
        for at in restored {
            let layout = *log.layout();
            let of_page = at.page * layout.payload_bytes..(at.page + 1) * layout.payload_bytes;
            for item in items_on(index, log, at.segment, IoTag::Index)? {
                if item.start < of_page.end && of_page.start < item.start + item.length {
                    let location = layout.location(SegmentPage { page: 0, ..at }, item.start);
                    self.mover(index, log).move_item_of_any(&item, location)?;
                }
            }
        }
        Ok(())
    }

    /// Marks the bad blocks of failing segments that the checkpoint just written needs no more.
    /// `journal_sequence` is that of the segment at which a replay from it starts.
    pub fn retire_failing(index: &Index, log: &mut Log, journal_sequence: u32) -> Result<()> {
        loop {
            // Access times that no onode has yet may lie on one.
            let has_times = !index.access_times().is_empty();
            let table = log.table();
            // What somebody reads is left to a later checkpoint, too.
            let dead = table.failing(journal_sequence, false).find(|segment| {
                (!has_times || table.get(*segment).stream != Stream::Atime) && !table.is_pinned(*segment)
            });
            let Some(segment) = dead else { return Ok(()) };
            let layout = *log.layout();
            let page = u32::from(log.table().get(segment).summary_page).min(layout.all_pages() - 1);
            let block = layout.geometry.block_of(layout.address(SegmentPage { page, ..log.page(segment) }));
            log.mark_bad(block)?;
            log.retire(segment);
        }
    }
}

/// The part of `item` behind `first`; a node or a table piece is not divided.
fn behind(item: &Item, first: u32) -> Item {
    let skipped = first.saturating_sub(item.start).min(item.length);
    match item.owner {
        Owner::Content { object, offset } => Item {
            start: item.start + skipped,
            length: item.length - skipped,
            owner: Owner::Content { object, offset: offset + u64::from(skipped) },
        },
        Owner::Node { .. } | Owner::TablePiece { .. } => *item,
    }
}

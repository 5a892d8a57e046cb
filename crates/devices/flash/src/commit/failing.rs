//! Segments in which a program failed, seen from the state machine: what was left in memory is
//! moved before a checkpoint, what lies on good pages soon after it, and then the bad block is
//! marked.
//!
//! A segment is retired whole, also if only one of its erase blocks is bad. That happens after the
//! first checkpoint which needs nothing on it, because marking a block may spoil its content. A cut
//! between the failure and the checkpoint loses only the knowledge of it: the block fails again.

use crate::core::Core;
use crate::medium::layout::SegmentPage;
use crate::policy::Stream;
use crate::space::items::{Item, Owner};
use crate::space::segments::SegmentState;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

impl Core {
    /// Moves what failed programs left in memory only. Moving may fail as well; then there is more
    /// to do.
    pub fn rescue(&mut self) -> Result<()> {
        if is_planted(Bug::StrandedForgotten) {
            return Ok(());
        }
        while let Some((segment, first, items)) = self.log.stranded() {
            let base = u64::from(segment) * self.log.store.layout.segment_bytes();
            for item in &items {
                let item = behind(item, first);
                self.move_item(&item, base + u64::from(item.start), false)?;
            }
            self.log.forget_stranded(segment);
        }
        Ok(())
    }

    /// Empties the segments in which programs failed, if there is room for what is on them, and
    /// retires them.
    pub fn move_failing(&mut self) -> Result<()> {
        if self.log.table.in_state(SegmentState::Failing) == 0 {
            return Ok(());
        }
        let journal_sequence = self.log.journal_position().1.min(self.checkpoint_state.journal_sequence);
        let stuck = &self.stuck;
        let wanted = self.log.table.failing(journal_sequence, true).find(|segment| !stuck.contains(segment));
        let Some(segment) = wanted.filter(|_| self.has_room(2)) else { return Ok(()) };
        self.prepare_writing()?;
        self.clean_segment(segment)?;
        self.checkpoint(false)?;
        if self.log.table.get(segment).live_bytes > 0 {
            self.stuck.insert(segment);
        }
        Ok(())
    }

    /// Marks the bad blocks of failing segments that the checkpoint just written needs no more.
    /// `journal_sequence` is that of the segment at which a replay from it starts.
    pub fn retire_failing(&mut self, journal_sequence: u32) -> Result<()> {
        loop {
            // Access times that no onode has yet may lie on one.
            let has_times = !self.pending_access.is_empty();
            let table = &self.log.table;
            // What somebody reads is left to a later checkpoint, too.
            let dead = table.failing(journal_sequence, false).find(|segment| {
                (!has_times || table.get(*segment).stream != Stream::Atime) && !table.pins.has(*segment)
            });
            let Some(segment) = dead else { return Ok(()) };
            let layout = self.log.store.layout;
            let page = u32::from(self.log.table.get(segment).summary_page).min(layout.segment_pages - 1);
            let block = layout.geometry.block_of(layout.address(SegmentPage { segment, page }));
            self.log.store.write("mark bad block", |nand| nand.mark_bad(block))?;
            self.log.retire(segment);
        }
    }

    /// Goes on without writing if a recovery failed for lack of space or sound blocks: what was
    /// replayed can still be read.
    pub fn outlive_recovery(&mut self, recovered: Result<()>) -> Result<()> {
        match recovered {
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::NoSpace | ErrorKind::HostFull | ErrorKind::Media | ErrorKind::ReadOnly
                ) =>
            {
                self.log.store.latch(&alloc::format!("the volume could not be recovered: {error}"));
                Ok(())
            }
            other => other,
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

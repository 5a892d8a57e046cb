//! What lies below the streams, for those beside them: the medium, and the use of its segments.
//!
//! Both can be looked at freely. What others do to the medium has a name here: flushes, reads of
//! pages that may not be what was written, bad blocks, and superblocks, which lie beside the
//! segments. The segment table guards itself; who changes it knows more of a segment than its
//! stream, as a checkpoint, the cleaner, a replay or a repair does.
//!
//! It keeps true: only streams open segments and program their pages, and a place that is referred
//! to counts for the segment that holds it.

use super::Log;
use crate::medium::layout::{Layout, Row, SegmentPage};
use crate::medium::page::Examined;
use crate::medium::pages::{RowState, VerifiedPage};
use crate::medium::saved::SavedPages;
use crate::medium::store::{FlushBegun, Reader, Store};
use crate::space::segments::{SegmentState, SegmentTable};
use alloc::boxed::Box;
use alloc::sync::Arc;
use onode_engine::Latch;
use onode_media::{BlockAddress, IoTag, Nand, SharedNand, Watermark};
use onode_object::Result;

impl Log {
    /// The division of the medium.
    pub const fn layout(&self) -> &Layout {
        self.store.layout()
    }

    /// Pages on the medium, as far as they can be had without it.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The medium for what is no page of a segment: superblocks and bad blocks.
    pub const fn medium(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The medium, as it is: what waits in buffers is given up.
    pub fn into_nand(self) -> Box<dyn Nand> {
        self.store.into_nand()
    }

    /// What refuses every further write when it is told to.
    pub const fn latch(&mut self) -> &mut Latch {
        self.store.latch_mut()
    }

    /// Reads verified pages under the device's lock.
    pub const fn reader(&mut self, tag: IoTag) -> Reader<'_> {
        self.store.reader(tag)
    }

    /// What stands at `at`, or stood there as parity has it, in a segment opened with `sequence` if
    /// that is known: for a mount.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn examine(&mut self, at: SegmentPage, sequence: Option<u32>) -> Result<Examined<VerifiedPage>> {
        self.store.examine_page(at, sequence, IoTag::Recovery)
    }

    /// What stands at `at` now: to see whether anything does.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn look(&mut self, at: SegmentPage, sequence: u32) -> Result<Examined<VerifiedPage>> {
        let address = self.store.layout().address(at);
        self.store.examine(address, Some(sequence), IoTag::Recovery)
    }

    /// The page `at` from its copy, whatever the life of its segment; nothing if there is none.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn restore(&mut self, at: SegmentPage) -> Result<Option<VerifiedPage>> {
        self.store.restore(at, None, IoTag::Recovery)
    }

    /// The pages that `saved` has copies of are read from these if they are damaged.
    pub fn set_saved(&mut self, saved: SavedPages) {
        self.store.set_saved(saved);
    }

    /// Nothing refers to the pages any more that were read from their copies.
    pub fn forget_restored(&mut self) {
        self.store.forget_restored();
    }

    /// Programs the parity of rows that are not full: nothing is likely to fill them.
    pub fn close_rows(&mut self) -> Result<()> {
        self.store.close_rows()
    }

    /// A segment that has pages that something is wrong with. What is being filled comes when it is
    /// full.
    pub fn doubtful_segment(&self) -> Option<u32> {
        let is_full = |at: &SegmentPage| self.table.get(at.segment).state != SegmentState::Open;
        self.store.pages().to_move().into_iter().find(is_full).map(|at| at.segment)
    }

    /// How the pages of `row` agree, if its segment has any that count. What has no sound parity is
    /// noted to be moved.
    ///
    /// # Errors
    /// Of the medium's host.
    pub fn examine_row(&mut self, row: Row, tag: IoTag) -> Result<Option<RowState>> {
        let entry = *self.table.get(row.segment);
        if !matches!(entry.state, SegmentState::Full | SegmentState::Failing) || entry.live_bytes == 0 {
            return Ok(None);
        }
        let state = self.store.examine_row(row, entry.sequence, tag)?;
        if state.lacks_parity() {
            self.store.pages().note_row_to_move(row);
        }
        Ok(Some(state))
    }

    /// Makes everything programmed so far survive a failure of the host, too.
    pub fn flush(&mut self) -> Result<()> {
        self.store.flush()
    }

    /// Begins a flush that needs no lock of the device to be finished; nothing if the medium cannot
    /// do that.
    pub fn begin_flush(&mut self) -> Result<Option<(Arc<dyn SharedNand>, FlushBegun)>> {
        let (journal_end, _) = self.journal_position();
        self.store.begin_flush(journal_end)
    }

    /// A flush ended that began with `begun`; a failure latches the device read-only.
    pub fn end_flush(&mut self, begun: &FlushBegun, flushed: onode_media::Result<()>) -> Result<()> {
        self.store.end_flush(begun, flushed)
    }

    /// Notes on the medium that all commits up to `transaction` are durable.
    pub fn note_durable(&mut self, transaction: u64) -> Result<()> {
        self.store.set_watermark(transaction)
    }

    /// Up to which commit all was durable once, as far as the medium knows.
    pub fn watermark(&mut self) -> Result<Watermark> {
        self.store.watermark()
    }

    /// No page of `block` is programmed any more.
    pub fn mark_bad(&mut self, block: BlockAddress) -> Result<()> {
        self.store.write("mark bad block", |nand| nand.mark_bad(block))
    }
}

/// The use of the segments.
impl Log {
    /// What each segment is used for.
    pub const fn table(&self) -> &SegmentTable {
        &self.table
    }

    /// The same, to be changed by who knows more of a segment than its stream.
    pub const fn table_mut(&mut self) -> &mut SegmentTable {
        &mut self.table
    }

    /// `length` bytes at `location` are referred to once more.
    pub fn retain(&mut self, location: u64, length: u64) {
        self.table.retain(self.store.layout().segment_of(location), length);
    }

    /// `length` bytes at `location` are no longer referred to.
    pub fn release(&mut self, location: u64, length: u64) {
        if self.store.layout().contains(location, length) {
            self.table.release(self.store.layout().segment_of(location), length);
        }
    }

    /// Segments that the next checkpoint sets free, or the one before has on hold.
    pub fn reclaimable(&self) -> u32 {
        self.table.reclaimable(self.journal_position().1)
    }

    /// Marks what the coming checkpoint no longer needs, behind which the journal goes on from
    /// here, as held.
    pub fn hold_dead(&mut self) {
        self.table.hold_dead(self.journal_position().1);
    }
}

//! What becomes of a segment in which a program failed: nothing that was acknowledged is lost, and
//! its bad block is never used again.
//!
//! The segment is given up where it stands. Its programmed pages stay readable; what waited in its
//! buffer stays readable from memory, *stranded*, until a checkpoint has moved it. Places in a
//! buffer may have been handed out to records that wait in the journal's buffer. So if data or
//! journal failed, those records are dropped, the journal goes on in a segment that nothing on the
//! medium names, and a checkpoint stands in for all of them: what a cut leaves before it is the
//! journal as it was.

use super::{Log, OpenSegment};
use crate::medium::format::NO_SUMMARY;
use crate::medium::layout::SegmentPage;
use crate::policy::Stream;
use crate::space::items::{Item, Items};
use crate::space::segments::SegmentState;
use alloc::vec::Vec;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

/// Content of a failed program.
pub struct Stranded {
    segment: u32,
    /// The first page that is not on the medium.
    page: u32,
    bytes: Vec<u8>,
}

/// Items as a summary would hold them.
pub struct LooseItems {
    bytes: Vec<u8>,
    count: u32,
}

impl LooseItems {
    /// The items.
    pub fn decode(&self) -> Option<Vec<Item>> {
        Items::decode(&self.bytes, self.count)
    }
}

impl Log {
    /// Gives up the open segment of `stream`, a page of which could not be programmed.
    pub(super) fn fail(&mut self, stream: Stream, failed: SegmentPage) {
        let journal_is_open = self.open[Stream::Journal as usize].is_some();
        let mut placed = stream == Stream::Journal;
        if let Some(open) = self.open[stream as usize].take() {
            placed |= open.from_users;
            self.strand(open, SegmentState::Failing, failed.page as u16);
        }
        let concerns_journal = placed && journal_is_open;
        if concerns_journal && !is_planted(Bug::RecordsOutliveContent) {
            if let Some(open) = self.open[Stream::Journal as usize].take() {
                self.strand(open, SegmentState::Full, NO_SUMMARY);
            }
            if !is_planted(Bug::ReservationKept) {
                self.reserve_journal_anew();
            }
        }
        self.chain_broken = true;
    }

    /// Reserves another segment for a journal that is to go on behind the end of those that may be
    /// opened. For a checkpoint that follows at once: until then the chain on the medium leads to
    /// where the journal ends.
    pub fn reserve_journal_within(&mut self) {
        let is_behind = self.next_journal.0 >= self.table.usable_segments();
        if is_behind && self.open[Stream::Journal as usize].is_none() {
            self.reserve_journal_anew();
        }
    }

    /// Lets the journal go on elsewhere than the chain on the medium says. The segment named there
    /// stays as it is until the checkpoint: a replay that gets to it must neither take for the
    /// journal what goes on now, nor for a sign that its superblock is not the newest.
    fn reserve_journal_anew(&mut self) {
        let named = self.next_journal.0;
        if self.reserve_journal().is_ok() {
            self.table.update(named, |entry| entry.state = SegmentState::Full);
        } else {
            // No segment is free. Under another number this one is at least not taken for what
            // follows.
            self.next_journal.1 = self.table.open(named, Stream::Journal);
        }
    }

    /// Nothing is left of segments from `end` on.
    pub fn forget_from(&mut self, end: u32) {
        self.loose_items.retain(|segment, _| *segment < end);
        self.store.pages().forget_from(end);
    }

    /// Lets `stream` go on elsewhere, since the parity of the row of its next page was programmed
    /// when the volume was closed, or was about to be. A summary there would have none either.
    pub(super) fn leave(&mut self, stream: Stream) -> Result<()> {
        let Some(open) = self.open[stream as usize].take() else { return Ok(()) };
        let segment = open.segment;
        self.strand(open, SegmentState::Full, NO_SUMMARY);
        self.store.finish(segment)
    }

    fn strand(&mut self, open: OpenSegment, state: SegmentState, summary_page: u16) {
        let OpenSegment { segment, page, front, items, .. } = open;
        self.store.forget_row(segment);
        let (bytes, count) = items.finish();
        self.keep_items(segment, bytes, count);
        if !front.is_empty() {
            self.stranded.push(Stranded { segment, page, bytes: front });
        }
        let state = if is_planted(Bug::FailedSegmentReused) { SegmentState::Free } else { state };
        self.table.update(segment, |entry| {
            entry.state = state;
            entry.summary_page = summary_page;
        });
    }

    /// Keeps the items of a segment that has no summary until it is erased.
    pub(super) fn keep_items(&mut self, segment: u32, bytes: Vec<u8>, count: u32) {
        self.loose_items.insert(segment, LooseItems { bytes, count });
    }

    /// Memory that failures hold.
    pub(super) fn failure_bytes(&self) -> usize {
        let stranded: usize = self.stranded.iter().map(|one| one.bytes.capacity()).sum();
        stranded + self.loose_items.values().map(|items| items.bytes.capacity()).sum::<usize>()
    }

    /// The first page of `segment` that is stranded, and the content from there on.
    pub(super) fn stranded_in(&self, segment: u32) -> Option<(u32, &[u8])> {
        self.stranded.iter().find(|one| one.segment == segment).map(|one| (one.page, &one.bytes[..]))
    }

    /// Whether content is in memory that no buffer will program.
    pub fn has_stranded(&self) -> bool {
        !self.stranded.is_empty()
    }

    /// A segment with stranded content, where that begins, and the items that lie there, at least
    /// in part.
    pub fn stranded(&self) -> Option<(u32, u32, Vec<Item>)> {
        let one = self.stranded.first()?;
        let first = one.page * self.store.layout().payload_bytes;
        let mut items = self.loose_items.get(&one.segment).and_then(LooseItems::decode).unwrap_or_default();
        items.retain(|item| item.start + item.length > first);
        Some((one.segment, first, items))
    }

    /// A segment with a bad block is not used any more.
    pub fn retire(&mut self, segment: u32) {
        self.loose_items.remove(&segment);
        self.table.update(segment, |entry| {
            entry.state = SegmentState::Bad;
            entry.summary_page = NO_SUMMARY;
        });
    }

    /// What was stranded in `segment` has been moved.
    pub fn forget_stranded(&mut self, segment: u32) {
        self.stranded.retain(|one| one.segment != segment);
    }
}

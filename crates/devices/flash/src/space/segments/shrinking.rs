//! Fewer segments, when a volume shrinks.
//!
//! First the end is planned: users have no more room than in front of it, and what is opened lies
//! there if it can. When enough is free there, segments behind it are not opened any more, and the
//! figures of the volume leave them out. When nothing on them is needed, the table ends in front of
//! them. Until then nothing of this is on the medium.

use super::{STATES, Segment, SegmentState, SegmentTable};
use crate::medium::format::BlobReference;
use crate::medium::layout::Layout;
use crate::policy::Candidate;
use alloc::vec::Vec;

impl SegmentTable {
    /// Segments from `end` on are opened last, and users have no room there.
    pub fn plan_end(&mut self, end: u32) {
        self.planned_end = end;
    }

    /// So many segments have room for users.
    pub const fn planned_segments(&self) -> u32 {
        self.planned_end
    }

    /// Segments from `end` on are not opened from now on; if `end` is their number, all are again.
    pub fn end_at(&mut self, end: u32) {
        self.end = end.min(self.entries.len() as u32);
        self.planned_end = self.end;
        let mut counts = [0; STATES];
        let mut erases = 0;
        for (_, one) in self.usable() {
            counts[one.state as usize] += 1;
            erases += one.erases_of_sound();
        }
        (self.counts, self.erases) = (counts, erases);
    }

    /// Whether the segments behind the planned end are not opened any more.
    pub const fn has_ended(&self) -> bool {
        self.end == self.planned_end
    }

    /// Those in front of the planned end.
    fn within(&self) -> impl Iterator<Item = (u32, &Segment)> {
        self.iter().take(self.planned_end as usize)
    }

    /// Segments in front of the planned end that may be opened now, and that the next checkpoint
    /// sets free.
    pub fn free_within(&self, journal_sequence: u32) -> (u32, u32) {
        let is_free = |one: &Segment| one.state == SegmentState::Free;
        let is_freed = |one: &Segment| one.state == SegmentState::Held || one.is_dead(journal_sequence);
        let count = |is: &dyn Fn(&Segment) -> bool| self.within().filter(|(_, one)| is(one)).count() as u32;
        (count(&is_free), count(&is_freed))
    }

    /// The segment in front of the planned end that has the fewest bytes to be moved.
    pub fn emptiest_within(&self, journal_sequence: u32) -> Option<Candidate> {
        let within = self.candidates(journal_sequence).filter(|one| one.segment < self.planned_end);
        within.min_by_key(|one| (one.live_bytes, one.segment))
    }

    /// Those behind the planned end, in order.
    pub fn behind_end(&self) -> impl Iterator<Item = (u32, &Segment)> {
        self.iter().skip(self.planned_end as usize)
    }

    /// Bytes that are referred to there.
    pub fn bytes_behind_end(&self) -> u64 {
        self.behind_end().map(|(_, one)| u64::from(one.live_bytes)).sum()
    }

    /// Segments before `end` that are bad, or will be.
    pub fn bad_before(&self, end: u32) -> u32 {
        let is_bad = |one: &Segment| matches!(one.state, SegmentState::Bad | SegmentState::Failing);
        self.iter().take(end as usize).filter(|(_, one)| is_bad(one)).count() as u32
    }

    /// One of them with something to be moved before the next checkpoint.
    pub fn next_behind_end(&self) -> Option<u32> {
        let is_next = |(segment, one): &(u32, &Segment)| one.live_bytes > 0 && !self.emptied.contains(segment);
        self.behind_end().find(is_next).map(|(segment, _)| segment)
    }

    /// One of them that cannot be emptied.
    pub fn stuck_behind_end(&self) -> Option<u32> {
        self.stuck.range(self.planned_end..).next().copied()
    }

    /// Waits until nobody reads in a segment behind the end.
    pub fn wait_for_readers_behind_end(&self, before_waiting: impl Fn()) {
        while self.pins.segments().range(self.end..).next().is_some() {
            before_waiting();
            self.pins.wait();
        }
    }

    /// Ends where `layout` does: nothing on a segment behind that is needed. Gives the places of
    /// the pieces of before back, as [`grow`](Self::grow) does.
    pub fn shrink(&mut self, layout: &Layout) -> Vec<BlobReference> {
        self.end_at(layout.segments);
        for segment in self.entries.drain(layout.segments as usize..) {
            self.live_bytes = self.live_bytes.saturating_sub(u64::from(segment.live_bytes));
        }
        self.emptied.retain(|segment| *segment < layout.segments);
        self.stuck.retain(|segment| *segment < layout.segments);
        self.choice.keep_within(layout.segments);
        self.divide_anew(layout)
    }
}

//! The segment table: what each segment is used for, how full and how worn it is.
//!
//! It keeps the rule on which every recovery stands: a segment that the newest or the last but one
//! checkpoint refers to is not handed out. A segment without live bytes becomes `Held` at a
//! checkpoint and is `Free` only after that checkpoint is sure to be found: when its superblock has
//! been written, or when the session that found it has repeated that superblock. And no segment is
//! handed out that somebody still reads.

use crate::medium::format::{BlobReference, NO_SUMMARY, NOWHERE};
use crate::medium::layout::Layout;
use crate::policy::{Candidate, Placement, Stream, Wear, WearPolicy};
use crate::space::pins::{Pinned, Pins};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use choice::Choice;
use onode_base::planted::{Bug, is_planted};
use packing::Packing;

mod choice;
mod growing;
mod packed;
mod packing;
pub mod piece;
mod segment;
mod shrinking;
mod stored;

pub use segment::{Segment, SegmentState};

/// Number of states.
const STATES: usize = SegmentState::Failing as usize + 1;

/// All segments, and the pieces in which the table lies on the medium.
pub struct SegmentTable {
    entries: Vec<Segment>,
    /// Segments from here on are opened last, and users have no room there: the volume is to become
    /// smaller.
    planned_end: u32,
    /// Segments from here on are not opened, and are not counted.
    end: u32,
    /// How many segments are in each state; asked at every commit.
    counts: [u32; STATES],
    pieces: Vec<BlobReference>,
    dirty: Vec<bool>,
    piece_entries: usize,
    /// Pieces that fit into a segment of their own.
    pieces_fit: usize,
    live_bytes: u64,
    /// The same as segments with the most parity would hold them, and how those of each stream do.
    packed_bytes: u64,
    packing: Packing,
    /// The part of them that lies on segments for nodes alone.
    index_bytes: u64,
    /// Erases of all sound segments.
    erases: u64,
    /// What is read without the device's lock, and must stay as it is.
    pins: Arc<Pins>,
    /// Which free segment is opened next.
    choice: Choice,
    /// The next sequence number.
    next_sequence: u32,
    /// Segments that were emptied but for pieces of this table, which the next checkpoint moves.
    emptied: BTreeSet<u32>,
    /// Segments that could not be emptied because something on them is damaged.
    stuck: BTreeSet<u32>,
}

impl SegmentTable {
    /// A table of free segments.
    pub fn new(layout: &Layout) -> Self {
        let mut counts = [0; STATES];
        counts[SegmentState::Free as usize] = layout.segments;
        let piece_entries = Self::piece_entries(layout);
        let pieces = (layout.segments as usize).div_ceil(piece_entries);
        Self {
            entries: vec![Segment::NEW; layout.segments as usize],
            planned_end: layout.segments,
            end: layout.segments,
            counts,
            pieces: vec![BlobReference { location: NOWHERE.into(), ..BlobReference::default() }; pieces],
            dirty: vec![true; pieces],
            piece_entries,
            pieces_fit: Self::pieces_that_fit(layout),
            live_bytes: 0,
            packed_bytes: 0,
            packing: Packing::new(layout),
            index_bytes: 0,
            erases: 0,
            pins: Arc::default(),
            choice: Choice::default(),
            next_sequence: 1,
            emptied: BTreeSet::new(),
            stuck: BTreeSet::new(),
        }
    }

    /// Memory it holds.
    pub const fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Segment>()
            + self.pieces.capacity() * size_of::<BlobReference>()
            + self.dirty.capacity()
    }

    /// A segment.
    pub fn get(&self, segment: u32) -> &Segment {
        &self.entries[segment as usize]
    }

    /// Changes a segment; its piece will be written at the next checkpoint.
    pub fn update(&mut self, segment: u32, change: impl FnOnce(&mut Segment)) {
        self.dirty[segment as usize / self.piece_entries] = true;
        let entry = &mut self.entries[segment as usize];
        let before = *entry;
        change(entry);
        if segment < self.end {
            self.counts[before.state as usize] -= 1;
            self.counts[entry.state as usize] += 1;
            self.erases = self.erases - before.erases_of_sound() + entry.erases_of_sound();
        }
        self.index_bytes = self.index_bytes - before.index_bytes() + entry.index_bytes();
        let (before, after) = (self.packing.packed(&before), self.packing.packed(entry));
        self.packed_bytes = self.packed_bytes - u64::from(before) + u64::from(after);
    }

    /// Opens a segment for `stream` under a new sequence number, which it returns.
    pub fn open(&mut self, segment: u32, stream: Stream) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.update(segment, |entry| {
            entry.state = SegmentState::Open;
            entry.stream = stream;
            entry.sequence = sequence;
            entry.summary_page = NO_SUMMARY;
        });
        sequence
    }

    /// The next sequence number.
    pub const fn next_sequence(&self) -> u32 {
        self.next_sequence
    }

    /// Goes on with the sequence number that a checkpoint says is next.
    pub const fn set_next_sequence(&mut self, next: u32) {
        self.next_sequence = next;
    }

    /// Numbers below `next` are in use.
    pub fn skip_to(&mut self, next: u32) {
        self.next_sequence = self.next_sequence.max(next);
    }

    /// Leaves out the sequence numbers that a session before may have used without leaving word of
    /// it: one for each segment, and another for each that was reserved again after a failure.
    pub fn skip_numbers(&mut self) {
        self.next_sequence += 2 * self.entries.len() as u32;
    }

    /// All segments in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        (0u32..).zip(&self.entries)
    }

    /// Those that may be opened.
    fn usable(&self) -> impl Iterator<Item = (u32, &Segment)> {
        self.iter().take(self.end as usize)
    }

    /// How many those are.
    pub const fn usable_segments(&self) -> u32 {
        self.end
    }

    /// Bytes referred to on all segments.
    pub const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Bytes that they would take if all segments had as much parity as those with the most: where
    /// objects choose their parity, space is counted in such segments.
    pub const fn packed_bytes(&self) -> u64 {
        self.packed_bytes
    }

    /// Bytes referred to on segments for nodes alone.
    pub const fn index_bytes(&self) -> u64 {
        self.index_bytes
    }

    /// `length` more bytes of `segment` are referred to.
    pub fn retain(&mut self, segment: u32, length: u64) {
        self.live_bytes += length;
        self.update(segment, |entry| entry.live_bytes = entry.live_bytes.saturating_add(length as u32));
    }

    /// `length` bytes of `segment` are no longer referred to.
    pub fn release(&mut self, segment: u32, length: u64) {
        let length = if is_planted(Bug::FullFlashSpaceLeaked) { length / 2 } else { length };
        self.live_bytes = self.live_bytes.saturating_sub(length);
        self.update(segment, |entry| entry.live_bytes = entry.live_bytes.saturating_sub(length as u32));
    }

    /// Replaces what is noted down of a segment's use by what was counted.
    pub fn set_live(&mut self, segment: u32, counted: u32) {
        self.live_bytes = self.live_bytes.saturating_sub(u64::from(self.get(segment).live_bytes));
        self.live_bytes += u64::from(counted);
        self.update(segment, |entry| {
            entry.live_bytes = counted;
            if counted > 0 && !matches!(entry.state, SegmentState::Open | SegmentState::Failing) {
                entry.state = SegmentState::Full;
            }
        });
    }

    /// Segments that may be opened now. A recovery after a crash could open as many.
    pub const fn allocatable(&self) -> u32 {
        self.in_state(SegmentState::Free)
    }

    /// Segments that the next checkpoint sets free, or the one before has on hold.
    pub fn reclaimable(&self, journal_sequence: u32) -> u32 {
        let dead = self.usable().filter(|(_, segment)| segment.is_dead(journal_sequence)).count();
        self.in_state(SegmentState::Held) + dead as u32
    }

    /// How many of the segments that may be opened are in `state`.
    pub const fn in_state(&self, state: SegmentState) -> u32 {
        self.counts[state as usize]
    }

    /// Erases of the sound segments together.
    pub const fn wear(&self) -> Wear {
        Wear { erases: self.erases, segments: self.end - self.in_state(SegmentState::Bad) }
    }

    /// Chooses free segments by `wear` on a volume whose content goes where `placement` says.
    pub const fn choose_by(&mut self, wear: WearPolicy, placement: Placement) {
        self.choice = Choice::new(wear, placement);
    }

    /// How wear is spread.
    pub const fn wear_policy(&self) -> WearPolicy {
        self.choice.policy()
    }

    /// Keeps `segments` as they are until what this returns is dropped.
    pub fn pin(&self, segments: Vec<u32>) -> Pinned {
        self.pins.pin(segments)
    }

    /// Whether somebody reads `segment` without the device's lock.
    pub fn is_pinned(&self, segment: u32) -> bool {
        self.pins.has(segment)
    }

    /// Marks what the coming checkpoint no longer needs as held. `journal_sequence` is the sequence
    /// number of the segment at which a replay from the coming checkpoint starts.
    pub fn hold_dead(&mut self, journal_sequence: u32) {
        for number in 0..self.entries.len() as u32 {
            let entry = *self.get(number);
            if entry.is_dead(journal_sequence) {
                let state = if is_planted(Bug::HeldReused) { SegmentState::Free } else { SegmentState::Held };
                self.update(number, |entry| entry.state = state);
            }
        }
    }

    /// The newest checkpoint is sure to be found: what it holds may be reused.
    pub fn release_held(&mut self) {
        for number in 0..self.entries.len() as u32 {
            if self.get(number).state == SegmentState::Held {
                self.update(number, |entry| entry.state = SegmentState::Free);
            }
        }
    }

    /// Segments in which a program failed and that a replay from `journal_sequence` does not read:
    /// those that something is left on if `live`, else the others.
    pub fn failing(&self, journal_sequence: u32, live: bool) -> impl Iterator<Item = u32> {
        let any = self.in_state(SegmentState::Failing) > 0;
        self.iter().filter_map(move |(segment, one)| {
            let wanted = any
                && one.state == SegmentState::Failing
                && (one.live_bytes > 0) == live
                && !one.in_replay(journal_sequence);
            wanted.then_some(segment)
        })
    }

    /// A segment is as empty as it can be before the next checkpoint.
    pub fn note_emptied(&mut self, segment: u32) {
        self.emptied.insert(segment);
    }

    /// A checkpoint was written: it moved the pieces of this table.
    pub fn forget_emptied(&mut self) {
        self.emptied.clear();
    }

    /// A segment cannot be emptied.
    pub fn note_stuck(&mut self, segment: u32) {
        self.stuck.insert(segment);
    }

    /// Whether a segment cannot be emptied.
    pub fn is_stuck(&self, segment: u32) -> bool {
        self.stuck.contains(&segment)
    }

    /// How many segments cannot be emptied.
    pub fn stuck(&self) -> usize {
        self.stuck.len()
    }

    /// Segments that the cleaner may take.
    pub fn candidates(&self, journal_sequence: u32) -> impl Iterator<Item = Candidate> {
        let now = self.next_sequence;
        self.usable().filter_map(move |(segment, one)| {
            let is_full = one.state == SegmentState::Full && one.live_bytes > 0 && !one.in_replay(journal_sequence);
            let wanted = is_full && !self.stuck.contains(&segment) && !self.emptied.contains(&segment);
            wanted.then(|| Candidate {
                segment,
                live_bytes: self.packing.packed(one),
                age: now.saturating_sub(one.sequence),
                erases: one.erases,
                stream: one.stream,
            })
        })
    }
}

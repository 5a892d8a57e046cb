//! The segment table: what each segment is used for, how full and how worn it is.
//!
//! It keeps the rule on which every recovery stands: a segment that the newest or the last but one
//! checkpoint refers to is not handed out. A segment without live bytes becomes `Held` at a
//! checkpoint and is `Free` only after that checkpoint is sure to be found: when its superblock has
//! been written, or when the session that found it has repeated that superblock. And no segment is
//! handed out that somebody still reads.

use crate::medium::errors::damaged;
use crate::medium::format::{BlobReference, NO_SUMMARY, NOWHERE};
use crate::medium::layout::Layout;
use crate::policy::{Candidate, Placement, Stream, Wear, WearPolicy};
use crate::space::pins::{Pinned, Pins};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::planted::{Bug, is_planted};
use onode_object::Result;

mod choice;
mod packed;
pub mod piece;

use choice::Choice;

/// Number of states.
const STATES: usize = SegmentState::Failing as usize + 1;

/// What a segment is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SegmentState {
    /// Nothing on it is needed, and was not at the last checkpoint either.
    Free = 0,
    /// Nothing on it is needed, but the checkpoint before the newest may still refer to it.
    Held = 1,
    /// Being filled, or reserved as the next journal segment.
    Open = 3,
    /// Written.
    Full = 4,
    /// Retired: an erase block of it is bad.
    Bad = 5,
    /// Written up to a page that could not be programmed, its `summary_page`: retired once nothing
    /// on it is needed any more.
    Failing = 6,
}

impl SegmentState {
    /// The state a byte stands for.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Free,
            1 => Self::Held,
            3 => Self::Open,
            4 => Self::Full,
            5 => Self::Bad,
            6 => Self::Failing,
            _ => return None,
        })
    }

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Held => "held",
            Self::Open => "open",
            Self::Full => "full",
            Self::Bad => "bad",
            Self::Failing => "failing",
        }
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its use.
    pub state: SegmentState,
    /// The stream that fills or filled it.
    pub stream: Stream,
    /// Bytes that are referred to.
    pub live_bytes: u32,
    /// Times erased.
    pub erases: u32,
    /// Sequence number of its present life.
    pub sequence: u32,
    /// Page at which its summary starts, [`NO_SUMMARY`] if there is none.
    pub summary_page: u16,
}

/// All segments, and the pieces in which the table lies on the medium.
pub struct SegmentTable {
    entries: Vec<Segment>,
    /// How many segments are in each state; asked at every commit.
    counts: [u32; STATES],
    pieces: Vec<BlobReference>,
    dirty: Vec<bool>,
    piece_entries: usize,
    live_bytes: u64,
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
        let segment = Segment {
            state: SegmentState::Free,
            stream: Stream::Data,
            live_bytes: 0,
            erases: 0,
            sequence: 0,
            summary_page: NO_SUMMARY,
        };
        let mut counts = [0; STATES];
        counts[SegmentState::Free as usize] = layout.segments;
        let piece_entries = Self::piece_entries(layout);
        let pieces = (layout.segments as usize).div_ceil(piece_entries);
        Self {
            entries: vec![segment; layout.segments as usize],
            counts,
            pieces: vec![BlobReference { location: NOWHERE.into(), ..BlobReference::default() }; pieces],
            dirty: vec![true; pieces],
            piece_entries,
            live_bytes: 0,
            index_bytes: 0,
            erases: 0,
            pins: Arc::default(),
            choice: Choice::default(),
            next_sequence: 1,
            emptied: BTreeSet::new(),
            stuck: BTreeSet::new(),
        }
    }

    /// Entries of one piece: about a page of them, and so many that the references fit the
    /// superblock page.
    pub fn piece_entries(layout: &Layout) -> usize {
        let payload = layout.payload_bytes as usize;
        let fit = (payload - size_of::<crate::medium::format::Superblock>()) / size_of::<BlobReference>();
        (layout.segments as usize).div_ceil(fit.min(64)).max(payload / piece::ENTRY_BYTES_USUAL)
    }

    /// Number of pieces of a table for `layout`.
    pub fn piece_count(layout: &Layout) -> usize {
        (layout.segments as usize).div_ceil(Self::piece_entries(layout))
    }

    /// Bytes of the largest piece.
    pub const fn piece_bytes(&self) -> usize {
        piece::bytes_max(self.piece_entries)
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
        self.counts[before.state as usize] -= 1;
        self.counts[entry.state as usize] += 1;
        self.erases = self.erases - before.erases_of_sound() + entry.erases_of_sound();
        self.index_bytes = self.index_bytes - before.index_bytes() + entry.index_bytes();
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

    /// Bytes referred to on all segments.
    pub const fn live_bytes(&self) -> u64 {
        self.live_bytes
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
        let dead = self.entries.iter().filter(|segment| segment.is_dead(journal_sequence)).count();
        self.in_state(SegmentState::Held) + dead as u32
    }

    /// How many segments are in `state`.
    pub const fn in_state(&self, state: SegmentState) -> u32 {
        self.counts[state as usize]
    }

    /// Erases of the sound segments together.
    pub const fn wear(&self) -> Wear {
        Wear { erases: self.erases, segments: self.entries.len() as u32 - self.in_state(SegmentState::Bad) }
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
        self.iter().filter_map(move |(segment, one)| {
            let is_full = one.state == SegmentState::Full && one.live_bytes > 0 && !one.in_replay(journal_sequence);
            let wanted = is_full && !self.stuck.contains(&segment) && !self.emptied.contains(&segment);
            wanted.then(|| Candidate {
                segment,
                live_bytes: one.live_bytes,
                age: now.saturating_sub(one.sequence),
                erases: one.erases,
                stream: one.stream,
            })
        })
    }

    /// References to the pieces on the medium.
    pub fn pieces(&self) -> &[BlobReference] {
        &self.pieces
    }

    /// Whether a piece differs from what is on the medium.
    pub fn is_dirty(&self, piece: usize) -> bool {
        self.dirty[piece]
    }

    /// Marks the piece that describes `segment` as changed.
    pub fn touch(&mut self, segment: u32) {
        self.dirty[segment as usize / self.piece_entries] = true;
    }

    /// Marks a piece as changed.
    pub fn touch_piece(&mut self, piece: usize) {
        self.dirty[piece] = true;
    }

    /// Bytes of a piece as it is now.
    pub fn encode_piece(&self, piece: usize) -> Vec<u8> {
        piece::encode(&self.entries[self.range(piece)], self.next_sequence)
    }

    /// The same for the memory beside the flash, where every byte counts.
    pub fn pack_piece(&self, piece: usize, layout: &Layout) -> Vec<u8> {
        packed::encode(&self.entries[self.range(piece)], layout)
    }

    fn range(&self, piece: usize) -> Range<usize> {
        let start = piece * self.piece_entries;
        start..(start + self.piece_entries).min(self.entries.len())
    }

    /// A piece was written.
    pub fn set_piece(&mut self, piece: usize, reference: BlobReference) {
        self.pieces[piece] = reference;
        self.dirty[piece] = false;
    }

    /// All pieces are loaded: memory and medium agree.
    pub fn finish_loading(&mut self) {
        self.dirty.fill(false);
    }

    /// Takes a piece read from the medium.
    ///
    /// # Errors
    /// `Corrupt` if it does not describe this medium's segments.
    pub fn load_piece(&mut self, piece: usize, reference: BlobReference, bytes: &[u8], layout: &Layout) -> Result<()> {
        let entries = piece::decode(bytes, self.range(piece).len(), layout)
            .map_err(|what| damaged(format!("segment table piece {piece}: {what}")))?;
        self.load(piece, reference, entries)
    }

    /// Takes a piece from the memory beside the flash.
    ///
    /// # Errors
    /// As [`load_piece`](Self::load_piece).
    pub fn load_packed(&mut self, piece: usize, reference: BlobReference, bytes: &[u8], layout: &Layout) -> Result<()> {
        let entries = packed::decode(bytes, self.range(piece).len(), layout)
            .ok_or_else(|| damaged(format!("the memory has no sense in piece {piece} of the segment table")))?;
        self.load(piece, reference, entries)
    }

    fn load(&mut self, piece: usize, reference: BlobReference, entries: Vec<Segment>) -> Result<()> {
        let range = self.range(piece);
        if range.is_empty() {
            return Err(damaged(format!("there is no piece {piece} of the segment table")));
        }
        for (number, loaded) in range.zip(entries) {
            self.live_bytes += u64::from(loaded.live_bytes);
            self.update(number as u32, |entry| *entry = loaded);
        }
        self.set_piece(piece, reference);
        Ok(())
    }
}

impl Segment {
    /// Whether a replay that starts in the journal segment `journal_sequence` reads this segment.
    pub const fn in_replay(&self, journal_sequence: u32) -> bool {
        matches!(self.stream, Stream::Journal) && self.sequence >= journal_sequence
    }

    const fn erases_of_sound(&self) -> u64 {
        if matches!(self.state, SegmentState::Bad) { 0 } else { self.erases as u64 }
    }

    const fn index_bytes(&self) -> u64 {
        if matches!(self.stream, Stream::Index) { self.live_bytes as u64 } else { 0 }
    }

    const fn is_dead(&self, journal_sequence: u32) -> bool {
        matches!(self.state, SegmentState::Full) && self.live_bytes == 0 && !self.in_replay(journal_sequence)
    }
}

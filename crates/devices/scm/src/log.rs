//! The log: a chain of segments with records, each a transaction or a part of one.
//!
//! A record is durable with the first fence after it was written, and its checksum says so: no
//! mark, no second fence. Its number must be the one that follows, and the key of its checksum
//! names the session, so nothing that was there before is taken for it. A segment's head names the
//! segment to come, so the chain needs no table. It knows how far it is durable and how many of its
//! bytes still say something; it fences nothing and looks into no index: it is told.

pub mod batch;
pub mod chain;
pub mod item;
pub mod losses;
pub mod mark;
pub mod place;
pub mod room;
pub mod scan;
pub mod search;

use crate::log::batch::Batch;
use crate::log::chain::Chain;
use crate::log::item::{Item, Objects};
use crate::log::place::Place;
use crate::medium::format::{FIRST_RECORD, RECORD_FRONT, RECORD_HEADER, RecordHead, SegmentHead, record_key};
use crate::space::free_list::FreeList;
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The log as it is appended to.
#[derive(Debug)]
pub(crate) struct Log {
    state: LogState,
    shape: Shape,
    /// Bytes of the items in the log that still say something.
    live_bytes: u64,
    /// What this process left as the mark.
    marked: u64,
    /// Memory for the next record.
    record: Vec<u8>,
    /// What checksums of a session's records begin with, and of which session.
    key: Option<(u64, u32)>,
}

/// What never changes of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Of the volume: in every head and checksum.
    pub salt: u64,
    pub segment_bytes: u64,
    /// Bytes of the device.
    pub device_bytes: u64,
}

/// What processes tell each other of the log, word by word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct LogState {
    session: u64,
    segments: Chain,
    /// Number of the oldest.
    tail_sequence: u64,
    /// Where the segment after the last is going to be.
    next: u64,
    /// Segments in store.
    spare: FreeList,
    /// Where the next record goes.
    position: u64,
    /// The number of the next record.
    sequence: u64,
    /// Records below this number are durable.
    fenced: u64,
    /// Changes in place of records below this number are durable.
    applied: u64,
    /// Changes in place of records below this number were flushed.
    flushed: u64,
    /// The last record does not say of those from this number on that they are durable.
    unverified_from: u64,
}

/// Where a log goes on in a session of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    pub session: u64,
    /// Number of the oldest segment.
    pub tail_sequence: u64,
    /// The segments so far.
    pub segments: &'a [u64],
    /// Address of the segment to open.
    pub first: u64,
    /// Number of the first record.
    pub sequence: u64,
    /// Bytes of the items that still say something.
    pub live_bytes: u64,
}

/// What a superblock says of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    pub session: u64,
    /// The oldest segment, and its number.
    pub address: u64,
    pub sequence: u64,
}

/// The most records that may wait for a fence.
pub(crate) const MOST_UNFENCED: u64 = 16_000;

impl Log {
    /// A log whose first segment of this session is opened, after the segments before it. `None` if
    /// no segment in store follows it.
    pub(crate) fn start<P: Pmem + ?Sized>(
        memory: &P,
        shape: Shape,
        start: &Start<'_>,
        spare: FreeList,
    ) -> Option<Self> {
        let segments = Chain::of(start.segments);
        let mut lent = segments.last().map(|_| segments.first());
        let sequence = start.sequence;
        let state = LogState {
            session: start.session,
            segments,
            tail_sequence: start.tail_sequence,
            next: start.first,
            spare,
            position: 0,
            sequence,
            fenced: sequence,
            applied: sequence,
            flushed: sequence,
            unverified_from: sequence,
        };
        let mut log = Self { state, live_bytes: start.live_bytes, ..Self::nowhere(shape) };
        log.open_segment(memory, &mut lent).then_some(log)
    }

    /// A log that is not known yet.
    pub(crate) const fn nowhere(shape: Shape) -> Self {
        let state = LogState {
            session: 0,
            segments: Chain::EMPTY,
            tail_sequence: 0,
            next: 0,
            spare: FreeList::EMPTY,
            position: 0,
            sequence: 0,
            fenced: 0,
            applied: 0,
            flushed: 0,
            unverified_from: 0,
        };
        Self { state, shape, live_bytes: 0, marked: 0, record: Vec::new(), key: None }
    }

    /// What others have to know of it.
    #[inline]
    pub(crate) const fn state(&self) -> LogState {
        self.state
    }

    /// Takes over what another process did to it.
    pub(crate) const fn set_state(&mut self, state: &LogState, live_bytes: u64) {
        (self.state, self.live_bytes) = (*state, live_bytes);
    }

    /// Bytes of the items in the log that still say something.
    #[inline]
    pub(crate) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// So many bytes more, or fewer, say something.
    pub(crate) const fn count_live(&mut self, more: i64) {
        self.live_bytes = self.live_bytes.saturating_add_signed(more);
    }

    /// An item was said again in `now` bytes; it took `before`, more where it named its object.
    pub(crate) const fn count_repeated(&mut self, before: u64, now: u64) {
        self.live_bytes = (self.live_bytes + now).saturating_sub(before);
    }

    /// The number of the last record.
    pub(crate) const fn last(&self) -> u64 {
        self.state.sequence - 1
    }

    /// Whether any record waits for a fence.
    #[inline]
    pub(crate) const fn has_unfenced(&self) -> bool {
        self.state.fenced < self.state.sequence
    }

    /// Whether too many do.
    pub(crate) const fn has_many_unfenced(&self) -> bool {
        self.state.sequence - self.state.fenced > MOST_UNFENCED
    }

    /// Whether any record, or anything that was flushed to be put in place, waits for a fence.
    #[inline]
    pub(crate) const fn has_undurable(&self) -> bool {
        self.has_unfenced() || self.state.applied < self.state.flushed
    }

    /// Whether the record of this number is durable.
    pub(crate) const fn is_fenced(&self, sequence: u64) -> bool {
        self.state.fenced > sequence
    }

    /// Whether what the record of this number puts in place is durable.
    pub(crate) const fn is_applied(&self, sequence: u64) -> bool {
        self.state.applied > sequence
    }

    /// Records below this number are durable, and what they put in place is.
    pub(crate) const fn durable(&self) -> u64 {
        if self.state.fenced < self.state.applied { self.state.fenced } else { self.state.applied }
    }

    /// Whether all records are, and what they put in place is.
    pub(crate) const fn is_durable(&self) -> bool {
        self.durable() >= self.state.sequence
    }

    /// A recovery verifies no content of records below this number.
    pub(crate) const fn unverified_from(&self) -> u64 {
        self.state.unverified_from
    }

    /// What a superblock says of it now.
    pub(crate) const fn tail(&self) -> Tail {
        let LogState { session, segments, tail_sequence, .. } = self.state;
        Tail { session, address: segments.first(), sequence: tail_sequence }
    }

    /// The segments, oldest first.
    pub(crate) const fn segments(&self) -> &Chain {
        &self.state.segments
    }

    /// Whether the oldest segment is also the one to come.
    pub(crate) const fn is_oldest_lent(&self) -> bool {
        self.state.segments.last().is_some() && self.state.next == self.state.segments.first()
    }

    /// Lets the oldest segment go. What it still said must be durable elsewhere.
    pub(crate) fn drop_oldest<P: Pmem + ?Sized>(&mut self, memory: &P) {
        self.state.segments.pop(memory);
        self.state.tail_sequence += 1;
    }

    /// Opens the next segment; false if there is none in store to follow it, and none `lent`: the
    /// oldest segment, which the opened one is about to repeat. Where that did not become durable,
    /// the opened one does not count.
    fn open_segment<P: Pmem + ?Sized>(&mut self, memory: &P, lent: &mut Option<u64>) -> bool {
        let state = &mut self.state;
        let Some(next) = state.spare.pop(memory).or_else(|| lent.take()) else { return false };
        let address = std::mem::replace(&mut state.next, next);
        let sequence = state.tail_sequence + state.segments.len() as u64;
        let (first_record, session, tail_sequence) = (state.sequence, state.session, state.tail_sequence);
        let head = SegmentHead { sequence, first_record, next, session, tail_sequence };
        memory.write_through(address, &head.encode(self.shape.salt));
        state.segments.push(address);
        state.position = address + FIRST_RECORD;
        true
    }

    /// Bytes of items that fit into a record of an empty segment.
    fn most_item_bytes(&self) -> u64 {
        self.shape.segment_bytes - FIRST_RECORD - RECORD_HEADER
    }

    /// The most bytes that the value of one item may have.
    pub(crate) fn most_value_bytes(&self) -> usize {
        self.most_item_bytes() as usize / 2
    }

    /// How many segments appending the batch may open at most.
    pub(crate) fn segments_for(&self, batch: &Batch) -> usize {
        if batch.fits() {
            return 0;
        }
        // What is left of a segment because the next item does not fit is less than half of it.
        1 + batch.bytes() / (self.most_value_bytes() - Item::HEAD_BYTES_MAX)
    }

    /// How many it opens, by putting the items together as [`Log::append`] does.
    pub(crate) fn exact_segments_for(&self, batch: &Batch) -> usize {
        let most = (RECORD_HEADER + self.most_item_bytes()) as usize;
        let (mut segments, mut record) = (0, Vec::new());
        let mut objects = Objects::default();
        for number in batch.fitting()..batch.len() {
            batch.copy_to(number, &mut record, &mut objects);
            if segments == 0 || RECORD_HEADER as usize + record.len() > most {
                segments += 1;
                record.clear();
                objects = Objects::default();
                batch.copy_to(number, &mut record, &mut objects);
            }
        }
        segments
    }

    fn end(&self) -> u64 {
        self.state.segments.last().map_or(0, |last| last + self.shape.segment_bytes)
    }

    /// Has the items of a batch put together for where the next record goes.
    pub(crate) fn begin(&self, batch: &mut Batch) {
        batch.begin(self.state.position, self.end() - self.state.position);
    }

    /// Appends the batch, flushed but not fenced, and tells where each item lies that had no place
    /// yet. [`Log::segments_for`] segments must be in store, and nothing may have been appended
    /// since [`Log::begin`]; false if it is not so. A segment may be `lent` to follow the one that
    /// is opened, should none be in store.
    pub(crate) fn append<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        batch: &mut Batch,
        mut lent: Option<u64>,
        mut placed: impl FnMut(usize, Place),
    ) -> bool {
        if batch.is_empty() {
            return true;
        }
        if batch.position() != self.state.position {
            return false;
        }
        let (fitting, all) = (batch.fitting(), batch.len());
        if fitting == all {
            self.write_record(memory, batch.record(), false);
            return true;
        }
        let mut record = std::mem::take(&mut self.record);
        if fitting > 0 {
            record.clear();
            let end = batch.fitting_end();
            record.extend_from_slice(&batch.record()[..end]);
            self.write_record(memory, &mut record, true);
        }
        let mut number = fitting;
        while number < all {
            record.clear();
            record.resize((RECORD_FRONT + RECORD_HEADER) as usize, 0);
            let room = (RECORD_FRONT + self.end() - self.state.position) as usize;
            let first = number;
            let mut objects = Objects::default();
            while number < all {
                let start = record.len();
                batch.copy_to(number, &mut record, &mut objects);
                if record.len() > room {
                    record.truncate(start);
                    break;
                }
                let at = self.state.position + start as u64 - RECORD_FRONT;
                placed(number, Place::new(at, (record.len() - start) as u64));
                number += 1;
            }
            if number > first {
                self.write_record(memory, &mut record, number < all);
            } else if !self.open_segment(memory, &mut lent) {
                return false;
            }
        }
        if record.capacity() as u64 <= self.shape.segment_bytes {
            self.record = record;
        }
        true
    }

    /// Writes the next record, which stands behind [`RECORD_FRONT`] bytes; the transaction goes on
    /// in another one if there is `more`.
    fn write_record<P: Pmem + ?Sized>(&mut self, memory: &P, framed: &mut Vec<u8>, more: bool) {
        let LogState { session, sequence, fenced, applied, .. } = self.state;
        let key = match self.key {
            Some((of, key)) if of == session => key,
            _ => record_key(self.shape.salt, session),
        };
        self.key = Some((session, key));
        let front = RECORD_FRONT as usize;
        let bytes = framed.len() - front;
        let head = RecordHead {
            sequence,
            bytes: bytes as u32,
            more,
            unfenced: u16::try_from(sequence - fenced).unwrap_or(u16::MAX).min(RecordHead::MOST_UNFENCED),
            unapplied: u16::try_from(sequence - applied).unwrap_or(u16::MAX),
        };
        head.seal(framed, key);
        let whole = bytes.next_multiple_of(LINE_BYTES as usize);
        framed.resize(front + whole, 0);
        memory.write_through(self.state.position, &framed[front..]);
        self.state.position += whole as u64;
        self.state.unverified_from = self.state.fenced;
        self.state.sequence += 1;
    }

    /// Leaves the mark of how far it is durable.
    pub(crate) fn leave_mark<P: Pmem + ?Sized>(&mut self, memory: &P) {
        if self.marked != self.state.fenced {
            self.marked = self.state.fenced;
            mark::store(memory, self.shape.salt, self.state.session, self.state.fenced);
        }
    }

    /// Everything appended so far has become durable, and everything flushed.
    pub(crate) const fn note_fence(&mut self) {
        self.state.fenced = self.state.sequence;
        self.state.applied = self.state.flushed;
    }

    /// What the records so far put in place was flushed.
    pub(crate) const fn note_flushed(&mut self) {
        self.state.flushed = self.state.sequence;
    }
}

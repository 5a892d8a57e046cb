//! The log: a chain of segments with records, each a transaction or a part of one.
//!
//! A record is durable with the first fence after it was written, and its checksum says so: no
//! mark, no second fence. Its number must be the one that follows, and the key of its checksum
//! names the session, so nothing that was there before is taken for it. A segment's head names the
//! segment to come, so the chain needs no table.

pub mod batch;
pub mod cleaner;
pub mod item;
pub mod mark;
pub mod room;
pub mod scan;
pub mod search;

use crate::log::batch::Batch;
use crate::log::item::{Item, Objects};
use crate::medium::format::{FIRST_RECORD, RECORD_FRONT, RECORD_HEADER, RecordHead, SegmentHead, record_key};
use crate::space::stack::Stack;
use onode_media::Pmem;
use onode_media::pmem::LINE_BYTES;

/// Where an item lies: address and bytes in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub u64);

const ADDRESS_BITS: u32 = 47;
const PENDING: u64 = 1 << 63;

impl Place {
    pub(crate) const fn new(address: u64, bytes: u64) -> Self {
        Self(address | bytes << ADDRESS_BITS)
    }

    /// The item of this number in the batch of the running transaction.
    pub(crate) const fn pending(number: usize) -> Self {
        Self(PENDING | number as u64)
    }

    /// The number, if the item is not in the log yet.
    pub(crate) const fn as_pending(self) -> Option<usize> {
        if self.0 & PENDING != 0 { Some((self.0 & !PENDING) as usize) } else { None }
    }

    pub(crate) const fn address(self) -> u64 {
        self.0 & ((1 << ADDRESS_BITS) - 1)
    }

    pub(crate) const fn bytes(self) -> u64 {
        if self.0 & PENDING != 0 { 0 } else { self.0 >> ADDRESS_BITS }
    }
}

/// The segments of the log, oldest first: the head of each names the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    pub first: u64,
    pub last: u64,
    pub count: u64,
}

impl Chain {
    /// Where a segment's head names the next one.
    const NEXT: u64 = 24;

    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    /// The segment after one.
    pub(crate) fn after<P: Pmem + ?Sized>(memory: &P, address: u64) -> u64 {
        memory.load(address + Self::NEXT)
    }

    /// One more, which the last one names.
    fn push(&mut self, address: u64) {
        if self.count == 0 {
            self.first = address;
        }
        self.last = address;
        self.count += 1;
    }

    /// Takes the oldest away.
    pub(crate) fn pop<P: Pmem + ?Sized>(&mut self, memory: &P) {
        self.first = Self::after(memory, self.first);
        self.count -= 1;
    }

    /// All of them.
    pub(crate) fn addresses<P: Pmem + ?Sized>(&self, memory: &P) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len());
        let mut next = self.first;
        for _ in 0..self.count {
            all.push(next);
            if next != self.last {
                next = Self::after(memory, next);
            }
        }
        all
    }
}

/// The log as it is appended to.
#[derive(Debug)]
pub(crate) struct Log {
    salt: u64,
    pub(crate) session: u64,
    segment_bytes: u64,
    pub segments: Chain,
    /// Number of the oldest.
    pub tail_sequence: u64,
    /// Where the segment after the last is going to be.
    pub next: u64,
    /// Segments in store.
    pub spare: Stack,
    /// Where the next record goes.
    pub(crate) position: u64,
    /// The number of the next record.
    pub sequence: u64,
    /// Records below this number are durable.
    pub fenced: u64,
    /// Changes in place of records below this number are durable.
    pub applied: u64,
    /// Changes in place of records below this number were flushed.
    pub flushed: u64,
    /// What this process left as the mark.
    marked: u64,
    /// The last record does not say of those from this number on that they are durable.
    pub doubted_from: u64,
    /// Memory for the next record.
    record: Vec<u8>,
    /// What checksums of a session's records begin with, and of which session.
    key: Option<(u64, u32)>,
}

/// The most records that may wait for a fence.
pub(crate) const MOST_UNFENCED: u64 = 16_000;

impl Log {
    /// A log whose first segment of this session is opened at `first`, after the segments before
    /// it.
    pub(crate) fn start<P: Pmem + ?Sized>(memory: &P, start: &Start, segments: &[u64], spare: Stack) -> Option<Self> {
        let count = segments.len() as u64;
        let segments = Chain { first: *segments.first().unwrap_or(&0), last: *segments.last().unwrap_or(&0), count };
        let mut log = Self {
            session: start.session,
            segments,
            tail_sequence: start.tail_sequence,
            next: start.first,
            spare,
            sequence: start.sequence,
            fenced: start.sequence,
            applied: start.sequence,
            flushed: start.sequence,
            doubted_from: start.sequence,
            ..Self::nowhere(start.salt, start.segment_bytes)
        };
        let mut lent = Some(log.segments.first).filter(|_| count > 0);
        log.open_segment(memory, &mut lent).then_some(log)
    }

    /// A log that is not known yet.
    pub(crate) const fn nowhere(salt: u64, segment_bytes: u64) -> Self {
        Self {
            salt,
            session: 0,
            segment_bytes,
            segments: Chain { first: 0, last: 0, count: 0 },
            tail_sequence: 0,
            next: 0,
            spare: Stack { first: 0, count: 0 },
            position: 0,
            sequence: 0,
            fenced: 0,
            applied: 0,
            flushed: 0,
            marked: 0,
            doubted_from: 0,
            record: Vec::new(),
            key: None,
        }
    }

    /// Opens the next segment; false if there is none in store to follow it, and none `lent`: the
    /// oldest segment, which the opened one is about to repeat. Where that did not become durable,
    /// the opened one does not count.
    fn open_segment<P: Pmem + ?Sized>(&mut self, memory: &P, lent: &mut Option<u64>) -> bool {
        let Some(next) = self.spare.pop(memory).or_else(|| lent.take()) else { return false };
        let address = std::mem::replace(&mut self.next, next);
        let sequence = self.tail_sequence + self.segments.len() as u64;
        let (first_record, session, tail_sequence) = (self.sequence, self.session, self.tail_sequence);
        let head = SegmentHead { sequence, first_record, next, session, tail_sequence };
        memory.write_through(address, &head.encode(self.salt));
        self.segments.push(address);
        self.position = address + FIRST_RECORD;
        true
    }

    /// Bytes of items that fit into a record of an empty segment.
    fn most_item_bytes(&self) -> u64 {
        self.segment_bytes - FIRST_RECORD - RECORD_HEADER
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
        if self.segments.count == 0 { 0 } else { self.segments.last + self.segment_bytes }
    }

    /// Segments in use, the one to come unless that is the oldest one, and those in store.
    pub(crate) const fn owned(&self) -> u64 {
        let is_lent = self.segments.count > 0 && self.next == self.segments.first;
        self.segments.count + self.spare.count + if is_lent { 0 } else { 1 }
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.owned() * self.segment_bytes
    }

    /// Has the items of a batch put together for where the next record goes.
    pub(crate) fn begin(&self, batch: &mut Batch) {
        batch.begin(self.position, self.end() - self.position);
    }

    /// Appends the batch, flushed but not fenced, and tells where each item lies that had no place
    /// yet. [`Log::segments_for`] segments must be in store, and nothing may have been appended
    /// since [`Log::begin`]; false if it is not so.
    pub(crate) fn append<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        batch: &mut Batch,
        placed: impl FnMut(usize, Place),
    ) -> bool {
        self.append_with(memory, batch, None, placed)
    }

    /// The same with a segment lent to follow the one that is opened, should none be in store.
    pub(crate) fn append_with<P: Pmem + ?Sized>(
        &mut self,
        memory: &P,
        batch: &mut Batch,
        mut lent: Option<u64>,
        mut placed: impl FnMut(usize, Place),
    ) -> bool {
        if batch.is_empty() {
            return true;
        }
        if batch.position() != self.position {
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
            let room = (RECORD_FRONT + self.end() - self.position) as usize;
            let first = number;
            let mut objects = Objects::default();
            while number < all {
                let start = record.len();
                batch.copy_to(number, &mut record, &mut objects);
                if record.len() > room {
                    record.truncate(start);
                    break;
                }
                let at = self.position + start as u64 - RECORD_FRONT;
                placed(number, Place::new(at, (record.len() - start) as u64));
                number += 1;
            }
            if number > first {
                self.write_record(memory, &mut record, number < all);
            } else if !self.open_segment(memory, &mut lent) {
                return false;
            }
        }
        if record.capacity() as u64 <= self.segment_bytes {
            self.record = record;
        }
        true
    }

    /// Writes the next record, which stands behind [`RECORD_FRONT`] bytes; the transaction goes on
    /// in another one if there is `more`.
    fn write_record<P: Pmem + ?Sized>(&mut self, memory: &P, framed: &mut Vec<u8>, more: bool) {
        let key = match self.key {
            Some((session, key)) if session == self.session => key,
            _ => record_key(self.salt, self.session),
        };
        self.key = Some((self.session, key));
        let front = RECORD_FRONT as usize;
        let bytes = framed.len() - front;
        let head = RecordHead {
            sequence: self.sequence,
            bytes: bytes as u32,
            more,
            unfenced: u16::try_from(self.sequence - self.fenced).unwrap_or(u16::MAX).min(RecordHead::MOST_UNFENCED),
            unapplied: u16::try_from(self.sequence - self.applied).unwrap_or(u16::MAX),
        };
        head.seal(framed, key);
        let whole = bytes.next_multiple_of(LINE_BYTES as usize);
        framed.resize(front + whole, 0);
        memory.write_through(self.position, &framed[front..]);
        self.position += whole as u64;
        self.doubted_from = self.fenced;
        self.sequence += 1;
    }

    /// Leaves the mark of how far it is durable.
    pub(crate) fn leave_mark<P: Pmem + ?Sized>(&mut self, memory: &P) {
        if self.marked != self.fenced {
            self.marked = self.fenced;
            mark::store(memory, self.salt, self.session, self.fenced);
        }
    }

    /// The session that appends.
    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    /// Everything appended so far has become durable, and everything flushed.
    pub(crate) const fn note_fence(&mut self) {
        self.fenced = self.sequence;
        self.applied = self.flushed;
    }
}

/// Where a session's log begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub salt: u64,
    pub session: u64,
    pub segment_bytes: u64,
    /// Number of the oldest segment.
    pub tail_sequence: u64,
    /// Address of the segment to open.
    pub first: u64,
    /// Number of the first record.
    pub sequence: u64,
}

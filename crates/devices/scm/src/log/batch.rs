//! The items of one transaction on their way into the log.
//!
//! They are put one after another as they stand in the record that is going to hold them. Where
//! that begins is known before, so each item has its place at once; only what does not fit into the
//! segment any more waits to hear of it.

use crate::log::item::{Item, Objects};
use crate::log::place::Place;
use crate::medium::format::{RECORD_FRONT, RECORD_HEADER};
use onode_object::ObjectId;

/// Encoded items behind room for the head of a record.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    items: Vec<Encoded>,
    objects: Objects,
    /// Where the record is to be, and how many bytes of it fit there.
    position: u64,
    room: usize,
    /// So many items, the first ones, fit.
    fitting: usize,
}

/// Where an item lies among the bytes.
#[derive(Clone, Copy, Debug)]
struct Encoded {
    start: usize,
    /// Behind tag and object.
    body: usize,
    object: Option<ObjectId>,
}

/// Bytes before the items.
const HEAD: usize = (RECORD_FRONT + RECORD_HEADER) as usize;
/// The most bytes that naming an object takes.
const NAME_BYTES_MAX: usize = 10;

/// Longer lists are not kept.
const MOST_KEPT: usize = 16 << 10;

/// Empties a list and keeps its memory for the next transaction, if that is not much.
pub(crate) fn keep<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() > MOST_KEPT {
        *list = Vec::new();
    }
}

impl Batch {
    /// Begins, empty, for a record at `position`, where `room` bytes are left of the segment.
    pub(crate) fn begin(&mut self, position: u64, room: u64) {
        self.clear();
        self.bytes.resize(HEAD, 0);
        (self.position, self.room) = (position, room as usize);
    }

    /// Adds an item and returns its place, pending if it does not fit.
    pub(crate) fn push(&mut self, item: &Item<'_>) -> Place {
        let object = item.object();
        let start = self.bytes.len();
        self.objects.put(&mut self.bytes, item.tag(), object);
        let body = self.bytes.len();
        item.put_body(&mut self.bytes);
        let (number, end) = (self.items.len(), self.bytes.len());
        self.items.push(Encoded { start, body, object });
        if self.fitting < number || end - RECORD_FRONT as usize > self.room {
            return Place::pending(number);
        }
        self.fitting = number + 1;
        Place::new(self.position + start as u64 - RECORD_FRONT, (end - start) as u64)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.objects = Objects::default();
        self.fitting = 0;
    }

    /// Empties it; keeps no more memory than is usual.
    pub(crate) fn keep(&mut self) {
        keep(&mut self.bytes);
        keep(&mut self.items);
        self.clear();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) const fn len(&self) -> usize {
        self.items.len()
    }

    /// Where its record is to be.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// How many items have a place.
    pub(crate) const fn fitting(&self) -> usize {
        self.fitting
    }

    /// Whether all have.
    pub(crate) const fn fits(&self) -> bool {
        self.fitting == self.items.len()
    }

    /// Bytes of the items.
    pub(crate) const fn item_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(HEAD)
    }

    /// Bytes of an item.
    pub(crate) fn bytes_of(&self, number: usize) -> usize {
        let end = self.items.get(number + 1).map_or(self.bytes.len(), |next| next.start);
        self.items.get(number).map_or(0, |item| end - item.start)
    }

    /// Bytes of all items, in one record, at most.
    pub(crate) const fn bytes(&self) -> usize {
        self.item_bytes() + self.items.len() * NAME_BYTES_MAX
    }

    /// The record of the items that fit, behind [`RECORD_FRONT`] bytes; only the first call has all
    /// of it.
    pub(crate) fn record(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Where the items that fit end in [`Batch::record`].
    pub(crate) fn fitting_end(&self) -> usize {
        self.items.get(self.fitting).map_or(self.bytes.len(), |item| item.start)
    }

    /// Appends an item to a record whose items so far named `objects`.
    pub(crate) fn copy_to(&self, number: usize, record: &mut Vec<u8>, objects: &mut Objects) {
        let Some(Encoded { start, body, object }) = self.items.get(number).copied() else { return };
        let end = self.items.get(number + 1).map_or(self.bytes.len(), |next| next.start);
        let (Some(tag), Some(bytes)) = (self.bytes.get(start), self.bytes.get(body..end)) else { return };
        objects.put(record, *tag, object);
        record.extend_from_slice(bytes);
    }
}

//! The items of one transaction on their way into the log.

use crate::item::{Item, Objects};
use crate::scratch::keep;
use onode_object::ObjectId;

/// Encoded items one after another, without their objects: which of them a record has to name shows when it is filled.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Where each item ends, and its object.
    items: Vec<(usize, Option<ObjectId>)>,
}

/// The most bytes that naming an object takes.
const NAME_BYTES_MAX: usize = 10;

impl Batch {
    /// Adds an item and returns its number.
    pub(crate) fn push(&mut self, item: &Item<'_>) -> usize {
        item.encode(&mut self.bytes);
        self.items.push((self.bytes.len(), item.object()));
        self.items.len() - 1
    }

    /// Empties it and keeps its memory.
    pub(crate) fn keep(&mut self, kept: &mut Self) {
        keep(&mut self.bytes, &mut kept.bytes);
        keep(&mut self.items, &mut kept.items);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of all items, in one record, at most.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.items.len() * NAME_BYTES_MAX
    }

    /// Appends an item to a record whose items so far named `objects`.
    pub(crate) fn copy_to(&self, number: usize, record: &mut Vec<u8>, objects: &mut Objects) {
        let Some((end, object)) = self.items.get(number) else { return };
        let start = number.checked_sub(1).map_or(0, |before| self.items[before].0);
        objects.append(record, self.bytes.get(start..*end).unwrap_or_default(), *object);
    }
}

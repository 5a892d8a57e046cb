//! The items of one transaction on their way into the log.

use crate::item::Item;
use onode_base::varint;
use onode_object::ObjectId;

/// Encoded items one after another.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    /// Where each item ends, and its object.
    items: Vec<(usize, Option<ObjectId>)>,
    last: Option<ObjectId>,
}

/// The highest bit of an item's object being left out.
const SAME: u8 = 0x80;

impl Batch {
    /// Adds an item and returns its number.
    pub(crate) fn push(&mut self, item: &Item<'_>) -> usize {
        item.encode(&mut self.bytes, &mut self.last);
        let object = match item {
            Item::Put { .. } | Item::Zero { .. } | Item::Check { .. } => None,
            _ => self.last,
        };
        self.items.push((self.bytes.len(), object));
        self.items.len() - 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of all items.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes of an item, and the object that it may leave out.
    pub(crate) fn get(&self, number: usize) -> Option<(&[u8], Option<ObjectId>)> {
        let (end, object) = *self.items.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.items[before].0);
        Some((self.bytes.get(start..end)?, object))
    }

    /// Appends an item to a record; the first one of a record that has an object names it, which `names` keeps in mind.
    pub(crate) fn copy_to(&self, number: usize, record: &mut Vec<u8>, names: &mut bool) {
        let Some((bytes, object)) = self.get(number) else { return };
        match (bytes.split_first(), object) {
            (Some((tag, rest)), Some(object)) if !*names && tag & SAME != 0 => {
                record.push(tag & !SAME);
                varint::put(record, object.0);
                record.extend_from_slice(rest);
            }
            _ => record.extend_from_slice(bytes),
        }
        *names |= object.is_some();
    }
}

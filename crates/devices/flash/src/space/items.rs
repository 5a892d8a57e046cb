//! Items of the reverse index: what lies where in a segment, so that the cleaner finds its owners.
//!
//! An item names the owner that content had when it was written; whether it still has is asked of
//! the index. Items are delta-coded: 5 to 8 bytes each.

use alloc::vec::Vec;
use onode_base::varint;
use onode_engine::Key;

/// What a run of bytes belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Bytes of an object from `offset` on.
    Content {
        /// The object.
        object: u64,
        /// First byte in the object.
        offset: u64,
    },
    /// A tree node of `level` that contains `key`.
    Node {
        /// A key in the node.
        key: Key,
        /// Its level.
        level: u8,
    },
    /// A piece of the segment table.
    TablePiece {
        /// Which one.
        piece: u32,
    },
}

/// A run of bytes in a segment and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// First byte, counted from the start of the segment's payload.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
    /// Whose.
    pub owner: Owner,
}

/// The most bytes one item takes.
pub const ITEM_BYTES_MAX: usize = 48;

/// Items of a segment being filled.
#[derive(Clone, Debug, Default)]
pub struct Items {
    bytes: Vec<u8>,
    count: u32,
    last: Option<Item>,
    end: u32,
    object: u64,
}

impl Items {
    /// Adds an item; bytes that continue the last item of the same object join it.
    pub fn push(&mut self, item: Item) {
        if let (Some(last), Owner::Content { object, offset }) = (&mut self.last, item.owner)
            && let Owner::Content { object: last_object, offset: last_offset } = last.owner
            && last_object == object
            && last_offset + u64::from(last.length) == offset
            && last.start + last.length == item.start
        {
            last.length += item.length;
            return;
        }
        self.write_last();
        self.last = Some(item);
    }

    fn write_last(&mut self) {
        let Some(item) = self.last.take() else { return };
        let out = &mut self.bytes;
        let kind = match item.owner {
            Owner::Content { .. } => 0,
            Owner::Node { .. } => 1,
            Owner::TablePiece { .. } => 2,
        };
        out.push(kind);
        varint::put(out, u64::from(item.start.wrapping_sub(self.end)));
        varint::put(out, u64::from(item.length));
        match item.owner {
            Owner::Content { object, offset } => {
                varint::put(out, varint::zigzag(object.wrapping_sub(self.object)));
                varint::put(out, offset);
                self.object = object;
            }
            Owner::Node { key, level } => {
                out.push(level);
                varint::put(out, key.object);
                varint::put(out, u64::from(key.kind));
                varint::put(out, key.index);
            }
            Owner::TablePiece { piece } => varint::put(out, u64::from(piece)),
        }
        self.end = item.start + item.length;
        self.count += 1;
    }

    /// The most bytes that the items take with one more added.
    pub fn bytes_with_one_more(&self) -> usize {
        self.bytes.len() + 2 * ITEM_BYTES_MAX
    }

    /// Memory they hold.
    pub const fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The encoded items and how many they are.
    pub fn finish(mut self) -> (Vec<u8>, u32) {
        self.write_last();
        (self.bytes, self.count)
    }

    /// Takes the items apart again; `None` if they are malformed.
    pub fn decode(mut bytes: &[u8], count: u32) -> Option<Vec<Item>> {
        let mut items = Vec::with_capacity((count as usize).min(bytes.len()));
        let (mut end, mut last_object) = (0u32, 0u64);
        let input = &mut bytes;
        for _ in 0..count {
            let (&kind, rest) = input.split_first()?;
            *input = rest;
            let start = end.wrapping_add(u32::try_from(varint::take(input)?).ok()?);
            let length = u32::try_from(varint::take(input)?).ok()?;
            let owner = match kind {
                0 => {
                    let object = last_object.wrapping_add(varint::unzigzag(varint::take(input)?));
                    last_object = object;
                    Owner::Content { object, offset: varint::take(input)? }
                }
                1 => {
                    let (&level, rest) = input.split_first()?;
                    *input = rest;
                    let object = varint::take(input)?;
                    let kind = u16::try_from(varint::take(input)?).ok()?;
                    Owner::Node { key: Key { object, kind, index: varint::take(input)? }, level }
                }
                2 => Owner::TablePiece { piece: u32::try_from(varint::take(input)?).ok()? },
                _ => return None,
            };
            end = start.checked_add(length)?;
            items.push(Item { start, length, owner });
        }
        input.is_empty().then_some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_round_trip_and_neighbours_join() {
        let content = |start, length, object, offset| Item { start, length, owner: Owner::Content { object, offset } };
        let node = Item {
            start: 4096,
            length: 900,
            owner: Owner::Node { key: Key { object: u64::MAX, kind: 512, index: u64::MAX }, level: 3 },
        };
        let piece = Item { start: 5000, length: 64, owner: Owner::TablePiece { piece: 9 } };
        let mut items = Items::default();
        for one in [content(0, 10, 70, 0), content(10, 20, 70, 10), content(40, 5, 69, 0), node, piece] {
            items.push(one);
        }
        let room = items.bytes_with_one_more();
        let (bytes, count) = items.finish();
        assert!(bytes.len() <= room);
        let expected = [content(0, 30, 70, 0), content(40, 5, 69, 0), node, piece];
        assert_eq!(Items::decode(&bytes, count).as_deref(), Some(&expected[..]));
        for cut in 0..bytes.len() {
            assert_eq!(Items::decode(&bytes[..cut], count), None);
        }
        assert_eq!(Items::decode(&bytes, count + 1), None);
    }
}

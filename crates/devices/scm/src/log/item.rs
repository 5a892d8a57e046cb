//! Items: what a record of the log says. Each states what is so from then on, not how it changed.
//!
//! Hence replaying an item twice does no harm, the newest one of a kind is all that counts, and the
//! cleaner may repeat an item at the log's end. An item that concerns one of the last two objects
//! in its record does not name it again, and what is usually 0 is left out: a file is made with two
//! lines of the log.

use onode_base::varint;
use onode_object::wire::hints::{put as put_hints, take as take_hints};
use onode_object::{AttributeKey, AttributeKind, Hints, ObjectId};

/// Size and settings of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Onode {
    /// Size in bytes.
    pub size: u64,
    /// Access time as last set.
    pub accessed: u64,
    /// Advice.
    pub hints: Hints,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// The object exists, with these.
    Onode(ObjectId, Onode),
    /// The object has this attribute.
    Attribute(ObjectId, AttributeKey, &'a [u8]),
    /// The object has no such attribute.
    NoAttribute(ObjectId, AttributeKey),
    /// Bytes of the object from `offset` on lie in the block at `address`.
    Extent { object: ObjectId, offset: u64, address: u64, length: u64 },
    /// No block holds these bytes of the object.
    NoExtent { object: ObjectId, offset: u64, length: u64 },
    /// The object is gone with all it had.
    Removed(ObjectId),
    /// These bytes are to be put in place.
    Put { address: u64, bytes: &'a [u8] },
    /// Zeros are to be put in place.
    Zero { address: u64, length: u64 },
    /// Bytes were written there before the record; if their checksum is another one they did not
    /// become durable.
    Check { address: u64, length: u64, crc: u32 },
}

const ONODE: u8 = 1;
const ATTRIBUTE: u8 = 2;
const NO_ATTRIBUTE: u8 = 3;
const EXTENT: u8 = 4;
const NO_EXTENT: u8 = 5;
const REMOVED: u8 = 6;
const PUT: u8 = 7;
const ZEROS: u8 = 8;
const CHECK: u8 = 9;
/// The bits of a tag that tell the item.
const KIND: u8 = 0x0f;
/// The object is the one that was the last before the last one.
const OTHER: u8 = 0x10;
/// The index of the attribute takes 8 bytes: as a varint it would take more.
const WIDE: u8 = 0x20;
/// What the item begins with is 0 and left out: index of the attribute, offset, access time.
const ZERO: u8 = 0x40;
/// The object is that of the item before.
const SAME: u8 = 0x80;

/// The last two objects that the items of a record have named.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Objects {
    last: Option<ObjectId>,
    before: Option<ObjectId>,
}

impl Objects {
    /// For an item that is read alone.
    pub(crate) const fn only(object: ObjectId) -> Self {
        Self { last: Some(object), before: Some(object) }
    }

    /// Appends the tag of an item, however it named its object before, and what names its object
    /// now to a record.
    pub(crate) fn put(&mut self, record: &mut Vec<u8>, tag: u8, object: Option<ObjectId>) {
        let tag = tag & !(SAME | OTHER);
        match object {
            None => record.push(tag),
            Some(object) if self.last == Some(object) => record.push(tag | SAME),
            Some(object) if self.before == Some(object) => {
                record.push(tag | OTHER);
                std::mem::swap(&mut self.last, &mut self.before);
            }
            Some(object) => {
                record.push(tag);
                varint::put(record, object.0);
                (self.before, self.last) = (self.last, Some(object));
            }
        }
    }

    /// The object of an item with this tag.
    fn take(&mut self, tag: u8, input: &mut &[u8]) -> Option<ObjectId> {
        match tag & (SAME | OTHER) {
            SAME => {}
            OTHER => std::mem::swap(&mut self.last, &mut self.before),
            0 => (self.before, self.last) = (self.last, Some(ObjectId(varint::take(input)?))),
            _ => return None,
        }
        self.last
    }
}

/// A number that is left out if it is 0.
fn put_unless_zero(out: &mut Vec<u8>, number: u64) {
    if number != 0 {
        varint::put(out, number);
    }
}

fn take_unless_zero(tag: u8, input: &mut &[u8]) -> Option<u64> {
    if tag & ZERO != 0 { Some(0) } else { varint::take(input).filter(|number| *number != 0) }
}

const fn is_wide(index: u64) -> bool {
    index >> 56 != 0
}

impl Item<'_> {
    /// The most bytes of an item besides the bytes of its value.
    pub(crate) const HEAD_BYTES_MAX: usize = 64;

    pub(crate) const fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Onode(object, _)
            | Self::Attribute(object, ..)
            | Self::NoAttribute(object, _)
            | Self::Extent { object, .. }
            | Self::NoExtent { object, .. }
            | Self::Removed(object) => Some(*object),
            Self::Put { .. } | Self::Zero { .. } | Self::Check { .. } => None,
        }
    }

    /// What the item begins with, but for how it names its object.
    pub(crate) const fn tag(&self) -> u8 {
        let (kind, first) = match self {
            Self::Onode(_, onode) => (ONODE, onode.accessed),
            Self::Attribute(_, key, _) => (ATTRIBUTE, key.index),
            Self::NoAttribute(_, key) => (NO_ATTRIBUTE, key.index),
            Self::Extent { offset, .. } => (EXTENT, *offset),
            Self::NoExtent { offset, .. } => (NO_EXTENT, *offset),
            Self::Removed(_) => return REMOVED,
            Self::Put { .. } => return PUT,
            Self::Zero { .. } => return ZEROS,
            Self::Check { .. } => return CHECK,
        };
        let wide = matches!(kind, ATTRIBUTE | NO_ATTRIBUTE) && is_wide(first);
        kind | if first == 0 { ZERO } else { 0 } | if wide { WIDE } else { 0 }
    }

    /// Appends what stands behind tag and object.
    pub(crate) fn put_body(&self, out: &mut Vec<u8>) {
        let put_key = |out: &mut Vec<u8>, key: &AttributeKey| {
            out.push(key.kind.0);
            if is_wide(key.index) {
                out.extend_from_slice(&key.index.to_le_bytes());
            } else {
                put_unless_zero(out, key.index);
            }
        };
        match self {
            Self::Onode(_, onode) => {
                put_unless_zero(out, onode.accessed);
                varint::put(out, onode.size);
                put_hints(out, &onode.hints);
            }
            Self::Attribute(_, key, value) => {
                put_key(out, key);
                varint::put_bytes(out, value);
            }
            Self::NoAttribute(_, key) => put_key(out, key),
            Self::Extent { offset, address, length, .. } => {
                put_unless_zero(out, *offset);
                varint::put(out, *address);
                varint::put(out, *length);
            }
            Self::NoExtent { offset, length, .. } => {
                put_unless_zero(out, *offset);
                varint::put(out, *length);
            }
            Self::Removed(_) => {}
            Self::Put { address, bytes } => {
                varint::put(out, *address);
                varint::put_bytes(out, bytes);
            }
            Self::Zero { address, length } => {
                varint::put(out, *address);
                varint::put(out, *length);
            }
            Self::Check { address, length, crc } => {
                varint::put(out, *address);
                varint::put(out, *length);
                out.extend_from_slice(&crc.to_le_bytes());
            }
        }
    }

    /// Takes the next item off the front of `input`; `None` if it is none.
    pub(crate) fn decode<'a>(input: &mut &'a [u8], objects: &mut Objects) -> Option<Item<'a>> {
        let (&tag, rest) = input.split_first()?;
        *input = rest;
        let kind = tag & KIND;
        let allowed = match kind {
            ATTRIBUTE | NO_ATTRIBUTE => SAME | OTHER | ZERO | WIDE,
            ONODE | EXTENT | NO_EXTENT => SAME | OTHER | ZERO,
            REMOVED => SAME | OTHER,
            _ => 0,
        };
        if tag & !KIND & !allowed != 0 {
            return None;
        }
        let object = if kind <= REMOVED { objects.take(tag, input)? } else { ObjectId(0) };
        Some(match kind {
            ONODE => {
                let (accessed, size) = (take_unless_zero(tag, input)?, varint::take(input)?);
                Item::Onode(object, Onode { size, accessed, hints: take_hints(input)? })
            }
            ATTRIBUTE => {
                let key = take_key(tag, input)?;
                Item::Attribute(object, key, varint::take_bytes(input)?)
            }
            NO_ATTRIBUTE => Item::NoAttribute(object, take_key(tag, input)?),
            EXTENT => {
                let (offset, address) = (take_unless_zero(tag, input)?, varint::take(input)?);
                Item::Extent { object, offset, address, length: varint::take(input)? }
            }
            NO_EXTENT => {
                let offset = take_unless_zero(tag, input)?;
                Item::NoExtent { object, offset, length: varint::take(input)? }
            }
            REMOVED => Item::Removed(object),
            PUT => {
                let address = varint::take(input)?;
                Item::Put { address, bytes: varint::take_bytes(input)? }
            }
            ZEROS => {
                let address = varint::take(input)?;
                Item::Zero { address, length: varint::take(input)? }
            }
            CHECK => {
                let (address, length) = (varint::take(input)?, varint::take(input)?);
                let (crc, rest) = input.split_first_chunk::<4>()?;
                *input = rest;
                Item::Check { address, length, crc: u32::from_le_bytes(*crc) }
            }
            _ => return None,
        })
    }
}

fn take_key(tag: u8, input: &mut &[u8]) -> Option<AttributeKey> {
    let (&kind, rest) = input.split_first()?;
    *input = rest;
    let index = if tag & WIDE == 0 {
        take_unless_zero(tag, input).filter(|index| !is_wide(*index))?
    } else {
        let (index, rest) = input.split_first_chunk::<8>().filter(|_| tag & ZERO == 0)?;
        *input = rest;
        Some(u64::from_le_bytes(*index)).filter(|index| is_wide(*index))?
    };
    Some(AttributeKey::new(AttributeKind(kind), index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back() {
        let key = AttributeKey::new(AttributeKind(7), u64::MAX);
        let (one, two, three) = (ObjectId(1 << 40), ObjectId(3), ObjectId(4));
        let hints = Hints { expected_size: 5, ..Hints::default() };
        let items = [
            Item::Onode(one, Onode { size: 1 << 62, accessed: 9, hints }),
            Item::Attribute(two, AttributeKey::new(AttributeKind(7), 1 << 55), b""),
            Item::Onode(one, Onode { size: 1 << 62, accessed: 0, hints }),
            Item::NoExtent { object: three, offset: 0, length: 1 },
            Item::Onode(one, Onode { size: 0, accessed: 1, hints }),
            Item::Attribute(one, AttributeKey::new(AttributeKind(7), 0), b"zero"),
            Item::Attribute(one, key, b"value"),
            Item::NoAttribute(two, key),
            Item::Extent { object: two, offset: 0, address: 1 << 47, length: 4096 },
            Item::NoExtent { object: two, offset: 4096, length: 1 },
            Item::Put { address: 77, bytes: &[1; 300] },
            Item::Zero { address: 1, length: 2 },
            Item::Removed(two),
            Item::Check { address: 64, length: 1000, crc: 0xdead_beef },
        ];
        let mut record = Vec::new();
        let mut objects = Objects::default();
        for item in &items {
            objects.put(&mut record, item.tag(), item.object());
            item.put_body(&mut record);
        }
        let (mut input, mut objects) = (record.as_slice(), Objects::default());
        for item in &items {
            assert_eq!(Item::decode(&mut input, &mut objects).as_ref(), Some(item));
        }
        assert!(input.is_empty());
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let mut prng = onode_base::Prng::new(1);
        for _ in 0..20_000 {
            let mut bytes = [0; 24];
            prng.fill(&mut bytes);
            bytes[0] = (bytes[0] % 10) | (bytes[0] & !KIND);
            let mut input = bytes.as_slice();
            // What is taken for an item has no other form.
            if let Some(item) = Item::decode(&mut input, &mut Objects::default()) {
                let mut again = Vec::new();
                Objects::default().put(&mut again, item.tag(), item.object());
                item.put_body(&mut again);
                assert_eq!(again, bytes[..bytes.len() - input.len()]);
            }
        }
    }
}

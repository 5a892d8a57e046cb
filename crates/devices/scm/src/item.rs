//! Items: what a record of the log says. Each states what is so from then on, not how it changed.
//!
//! Hence replaying an item twice does no harm, the newest one of a kind is all that counts, and the cleaner may repeat an
//! item at the log's end. An item that concerns the same object as the one before it in its record does not name it again.

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
    /// Bytes were written there before the record; if their checksum is another one they did not become durable.
    Check { address: u64, length: u64, crc: u32 },
}

const ONODE: u8 = 1;
const ATTRIBUTE: u8 = 2;
const NO_ATTRIBUTE: u8 = 3;
const EXTENT: u8 = 4;
const NO_EXTENT: u8 = 5;
const REMOVED: u8 = 6;
const PUT: u8 = 7;
const ZERO: u8 = 8;
const CHECK: u8 = 9;
/// The object is that of the item before.
const SAME: u8 = 0x80;

impl Item<'_> {
    /// The most bytes of an item besides the bytes of its value.
    pub(crate) const HEAD_BYTES_MAX: usize = 64;

    const fn object(&self) -> Option<ObjectId> {
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

    const fn tag(&self) -> u8 {
        match self {
            Self::Onode(..) => ONODE,
            Self::Attribute(..) => ATTRIBUTE,
            Self::NoAttribute(..) => NO_ATTRIBUTE,
            Self::Extent { .. } => EXTENT,
            Self::NoExtent { .. } => NO_EXTENT,
            Self::Removed(_) => REMOVED,
            Self::Put { .. } => PUT,
            Self::Zero { .. } => ZERO,
            Self::Check { .. } => CHECK,
        }
    }

    /// Appends the item; `last` is the object of the item before in the same record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, last: &mut Option<ObjectId>) {
        match self.object() {
            Some(object) if *last == Some(object) => out.push(self.tag() | SAME),
            Some(object) => {
                out.push(self.tag());
                varint::put(out, object.0);
                *last = Some(object);
            }
            None => out.push(self.tag()),
        }
        let put_key = |out: &mut Vec<u8>, key: &AttributeKey| {
            out.push(key.kind.0);
            varint::put(out, key.index);
        };
        let put_all = |out: &mut Vec<u8>, numbers: &[u64]| numbers.iter().for_each(|number| varint::put(out, *number));
        match self {
            Self::Onode(_, onode) => {
                put_all(out, &[onode.size, onode.accessed]);
                put_hints(out, &onode.hints);
            }
            Self::Attribute(_, key, value) => {
                put_key(out, key);
                varint::put_bytes(out, value);
            }
            Self::NoAttribute(_, key) => put_key(out, key),
            Self::Extent { offset, address, length, .. } => put_all(out, &[*offset, *address, *length]),
            Self::NoExtent { offset, length, .. } => put_all(out, &[*offset, *length]),
            Self::Removed(_) => {}
            Self::Put { address, bytes } => {
                varint::put(out, *address);
                varint::put_bytes(out, bytes);
            }
            Self::Zero { address, length } => put_all(out, &[*address, *length]),
            Self::Check { address, length, crc } => {
                put_all(out, &[*address, *length]);
                out.extend_from_slice(&crc.to_le_bytes());
            }
        }
    }

    /// Takes the next item off the front of `input`; `None` if it is none.
    pub(crate) fn decode<'a>(input: &mut &'a [u8], last: &mut Option<ObjectId>) -> Option<Item<'a>> {
        let (&tag, rest) = input.split_first()?;
        *input = rest;
        let mut object = ObjectId(0);
        if matches!(tag & !SAME, ONODE..=REMOVED) {
            object = if tag & SAME != 0 { (*last)? } else { ObjectId(varint::take(input)?) };
            *last = Some(object);
        }
        Some(match tag & !SAME {
            ONODE => {
                let (size, accessed) = (varint::take(input)?, varint::take(input)?);
                Item::Onode(object, Onode { size, accessed, hints: take_hints(input)? })
            }
            ATTRIBUTE => {
                let key = take_key(input)?;
                Item::Attribute(object, key, varint::take_bytes(input)?)
            }
            NO_ATTRIBUTE => Item::NoAttribute(object, take_key(input)?),
            EXTENT => {
                let (offset, address) = (varint::take(input)?, varint::take(input)?);
                Item::Extent { object, offset, address, length: varint::take(input)? }
            }
            NO_EXTENT => {
                let offset = varint::take(input)?;
                Item::NoExtent { object, offset, length: varint::take(input)? }
            }
            REMOVED => Item::Removed(object),
            PUT => {
                let address = varint::take(input)?;
                Item::Put { address, bytes: varint::take_bytes(input)? }
            }
            ZERO => {
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

fn take_key(input: &mut &[u8]) -> Option<AttributeKey> {
    let (&kind, rest) = input.split_first()?;
    *input = rest;
    Some(AttributeKey::new(AttributeKind(kind), varint::take(input)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back() {
        let key = AttributeKey::new(AttributeKind(7), u64::MAX);
        let (one, two) = (ObjectId(1 << 40), ObjectId(3));
        let hints = Hints { expected_size: 5, ..Hints::default() };
        let items = [
            Item::Onode(one, Onode { size: 1 << 62, accessed: 9, hints }),
            Item::Attribute(one, key, b"value"),
            Item::NoAttribute(two, key),
            Item::Extent { object: two, offset: 0, address: 1 << 47, length: 4096 },
            Item::NoExtent { object: two, offset: 4096, length: 1 },
            Item::Put { address: 77, bytes: &[1; 300] },
            Item::Zero { address: 1, length: 2 },
            Item::Removed(two),
            Item::Check { address: 64, length: 1000, crc: 0xdead_beef },
        ];
        let mut bytes = Vec::new();
        let mut last = None;
        items.iter().for_each(|item| item.encode(&mut bytes, &mut last));
        let (mut input, mut last) = (bytes.as_slice(), None);
        for item in &items {
            assert_eq!(Item::decode(&mut input, &mut last).as_ref(), Some(item));
        }
        assert!(input.is_empty());
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let mut prng = onode_base::Prng::new(1);
        for _ in 0..20_000 {
            let mut bytes = [0; 24];
            prng.fill(&mut bytes);
            bytes[0] = (bytes[0] % 10) | (bytes[0] & SAME);
            let _ = Item::decode(&mut bytes.as_slice(), &mut None);
        }
    }
}

//! What is stored of sums: of all attributes of an object in its head, of the heads of 256 objects
//! in a bucket, of all buckets in the root. Each is sealed and bound to its place.

use crate::authenticated::sum::{Counting, SUM_BYTES, Sum};
use crate::encrypted::cipher::{Cipher, Context, NONCE_BYTES, Nonce, What};
use crate::encrypted::{MasterKey, derive};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, Mutation, ObjectId, Result};
use std::fmt;
use std::str::FromStr;

/// Objects share a bucket if their numbers are the same but for so many of the lowest bits.
const BUCKET_BITS: u32 = 8;
const ROOT_INDEX: u64 = 1 << 60;
const MARK_BYTES: usize = 16;

/// What has the root and the buckets.
pub(super) const HOLDER: ObjectId = ObjectId::AUTHENTICATED;
/// What every other object has.
pub(super) const HEAD: AttributeKey = AttributeKey::AUTHENTICATED;

/// The bucket of an object.
pub(super) const fn bucket_of(object: ObjectId) -> u64 {
    object.0 >> BUCKET_BITS
}

/// The first object that may be in a bucket.
pub(super) const fn first_of(bucket: u64) -> ObjectId {
    ObjectId(bucket << BUCKET_BITS)
}

/// Where a sum is stored.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Root,
    Bucket(u64),
    Head(ObjectId),
}

impl Place {
    pub(super) const fn object(self) -> ObjectId {
        match self {
            Self::Root | Self::Bucket(_) => HOLDER,
            Self::Head(object) => object,
        }
    }

    pub(super) const fn key(self) -> AttributeKey {
        match self {
            Self::Root => AttributeKey::new(AttributeKind::SERVICE, ROOT_INDEX),
            Self::Bucket(number) => AttributeKey::new(AttributeKind::SERVICE, number),
            Self::Head(_) => HEAD,
        }
    }

    /// The place of an attribute of the holder; `None` if this service has none there.
    pub(super) fn of_holder(key: AttributeKey) -> Option<Self> {
        match key.index {
            _ if key.kind != AttributeKind::SERVICE => None,
            ROOT_INDEX => Some(Self::Root),
            number if number <= bucket_of(ObjectId(u64::MAX)) => Some(Self::Bucket(number)),
            _ => None,
        }
    }
}

/// A state of a volume that an owner has noted: an older one is told from it.
///
/// Its text is the number of changes so far, a hyphen, and 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// How many changes there were.
    pub changes: u64,
    mark: [u8; MARK_BYTES],
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:032x}", self.changes, u128::from_le_bytes(self.mark))
    }
}

impl FromStr for Anchor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (changes, mark) = text.split_once('-')?;
            let is_hex = mark.len() == 2 * MARK_BYTES && mark.bytes().all(|digit| digit.is_ascii_hexdigit());
            let mark = u128::from_str_radix(mark, 16).ok().filter(|_| is_hex)?.to_le_bytes();
            let is_number = changes.bytes().all(|digit| digit.is_ascii_digit());
            Some(Self { changes: changes.parse().ok().filter(|_| is_number)?, mark })
        };
        let why = "an anchor is a number, a hyphen and 32 hexadecimal digits";
        parse().ok_or_else(|| Error::new(ErrorKind::Invalid, why))
    }
}

/// What is found where a sum is stored.
pub(super) struct Stored {
    /// The number of the change that wrote it.
    pub(super) change: u64,
    pub(super) sum: Sum,
    /// What it counts for in the sum above.
    pub(super) item: Sum,
}

/// What is to be stored there.
pub(super) struct Sealed {
    pub(super) set: Mutation,
    pub(super) item: Sum,
}

/// The keys that sums are made and sealed with.
pub(super) struct SumKeys {
    counting: Counting,
    cipher: Cipher,
}

impl SumKeys {
    pub(super) fn new(master: &MasterKey) -> Self {
        let cipher = Cipher::new(&derive(master.bytes(), b"onode 1 records of sums"));
        Self { counting: Counting::new(master), cipher }
    }

    /// What an attribute counts for.
    pub(super) fn item(&self, object: ObjectId, key: AttributeKey, value: &[u8]) -> Sum {
        self.counting.attribute(object, key, value)
    }

    /// A sum as the change of this number stores it. A cut may have this number come again with
    /// other sums; this cipher then shows whether two of one place are the same, and nothing else.
    pub(super) fn seal(&self, change: u64, place: Place, sum: &Sum) -> Sealed {
        let mut nonce: Nonce = [0; NONCE_BYTES];
        nonce[..8].copy_from_slice(&change.to_le_bytes());
        let value = self.cipher.seal_value(&nonce, &context(place), &sum.bytes());
        let item = self.item(place.object(), place.key(), &value);
        Sealed { set: Mutation::SetAttribute { object: place.object(), key: place.key(), value }, item }
    }

    /// What is stored at a place; `None` if it was never stored there.
    pub(super) fn open(&self, place: Place, value: &[u8]) -> Option<Stored> {
        let sum: [u8; SUM_BYTES] = self.cipher.open_value(&context(place), value)?.try_into().ok()?;
        let change = u64::from_le_bytes(*value.first_chunk()?);
        Some(Stored { change, sum: Sum::of_bytes(&sum), item: self.item(place.object(), place.key(), value) })
    }

    /// What an owner may note of a root that was stored so.
    pub(super) fn anchor(changes: u64, item: &Sum) -> Anchor {
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&item.bytes()[..MARK_BYTES]);
        Anchor { changes, mark }
    }
}

fn context(place: Place) -> Context {
    Context::new(What::Sum, place.object(), place.key().index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_opens_only_where_it_was_stored() {
        let keys = SumKeys::new(&MasterKey::new([1; 32]));
        let sum = Sum::of_bytes(&[7; 32]);
        let Mutation::SetAttribute { value, .. } = keys.seal(9, Place::Bucket(3), &sum).set else { unreachable!() };
        let stored = keys.open(Place::Bucket(3), &value).expect("it was stored there");
        assert_eq!((stored.change, stored.sum), (9, sum));
        for place in [Place::Root, Place::Bucket(4), Place::Head(ObjectId(3))] {
            assert!(keys.open(place, &value).is_none());
        }
        assert!(SumKeys::new(&MasterKey::new([2; 32])).open(Place::Bucket(3), &value).is_none());
    }

    #[test]
    fn anchors_read_as_they_are_written() {
        let anchor = SumKeys::anchor(70, &Sum::of_bytes(&[0x0f; 32]));
        assert_eq!(anchor.to_string(), format!("70-{}", "0f".repeat(16)));
        assert_eq!(anchor.to_string().parse::<Anchor>(), Ok(anchor));
        for text in
            ["", "70", "-0f", "70-0f", &format!("+7-{}", "0f".repeat(16)), &format!("7-+{}", "0f".repeat(16))[..34]]
        {
            assert!(text.parse::<Anchor>().is_err(), "{text}");
        }
    }
}

//! Which objects changed while a member was away: a bit for each, in attributes of 512 bits.
//!
//! One set serves all members that are away or behind. It may name more than one of them lacks:
//! what is named is compared, and only what differs is copied.

use onode_object::{AttributeKey, AttributeKind, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

const BITS: u64 = 512;
const BYTES: usize = 64;
const FIRST: u64 = 1 << 62;
/// Attributes that the set has at most.
const PARTS_MAX: usize = 4096;

/// The bits of 512 objects.
type Bits = [u8; BYTES];

/// Objects by bits.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedObjects {
    parts: BTreeMap<u64, Bits>,
}

impl ChangedObjects {
    const fn key(part: u64) -> AttributeKey {
        AttributeKey::new(AttributeKind::SERVICE, FIRST + part)
    }

    /// The first key of the set.
    pub(crate) const fn first_key() -> AttributeKey {
        Self::key(0)
    }

    /// Takes in an attribute; whether it is one of the set.
    pub(crate) fn read(&mut self, key: AttributeKey, value: &[u8]) -> bool {
        let part = key.index.checked_sub(FIRST).filter(|_| key.kind == AttributeKind::SERVICE);
        match (part, value.try_into()) {
            (Some(part), Ok(bits)) => {
                self.parts.insert(part, bits);
                true
            }
            _ => false,
        }
    }

    /// The parts of the set that become others with these objects; `None` if they would be too
    /// many.
    pub(crate) fn with(&self, objects: &BTreeSet<ObjectId>) -> Option<Self> {
        let mut new = Self::default();
        for object in objects {
            let part = object.0 / BITS;
            let known = self.parts.get(&part).copied();
            let bits = new.parts.entry(part).or_insert(known.unwrap_or([0; BYTES]));
            bits[(object.0 % BITS / 8) as usize] |= 1 << (object.0 % 8);
        }
        new.parts.retain(|part, bits| self.parts.get(part) != Some(bits));
        let more = new.parts.keys().filter(|part| !self.parts.contains_key(part)).count();
        (self.parts.len() + more <= PARTS_MAX).then_some(new)
    }

    /// Takes in parts as they are now.
    pub(crate) fn take(&mut self, parts: Self) {
        self.parts.extend(parts.parts);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The attributes.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (AttributeKey, Vec<u8>)> {
        self.parts.iter().map(|(part, bits)| (Self::key(*part), bits.to_vec()))
    }

    /// Takes some out, to be removed.
    pub(crate) fn drain(&mut self, limit: usize) -> Vec<AttributeKey> {
        std::iter::from_fn(|| self.parts.pop_first()).take(limit).map(|(part, _)| Self::key(part)).collect()
    }

    /// All objects of the set.
    pub(crate) fn objects(&self) -> BTreeSet<ObjectId> {
        let of = |(part, bits): (&u64, &Bits)| {
            let (part, bits) = (*part, *bits);
            (0..BITS)
                .filter(move |bit| bits[(bit / 8) as usize] & 1 << (bit % 8) != 0)
                .map(move |bit| ObjectId(part * BITS + bit))
        };
        self.parts.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_kept_by_bits() {
        let wanted: BTreeSet<_> = [1, 63, 511, 512, 1 << 40, (1 << 63) - 1].map(ObjectId).into();
        let mut set = ChangedObjects::default();
        let new = set.with(&wanted).unwrap();
        assert_eq!(new.attributes().count(), 4);
        set.take(new);
        assert_eq!(set.objects(), wanted);
        assert!(set.with(&wanted).unwrap().is_empty(), "nothing becomes another");
        let mut again = ChangedObjects::default();
        assert!(set.attributes().all(|(key, value)| again.read(key, &value)));
        assert_eq!(again.objects(), wanted);
        assert_eq!((again.drain(3).len(), again.drain(3).len()), (3, 1));
        let far: BTreeSet<_> = (0..5000).map(|part| ObjectId(part * BITS)).collect();
        assert!(set.with(&far).is_none());
    }
}

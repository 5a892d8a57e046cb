//! Slots: a hash table inside an object's attributes; directories and extended attributes are two.
//!
//! Each entry is one attribute of its own, at the index its name hashes to: its *home*. If another
//! name sits there already, the entry goes to the next index (linear probing, the last index wraps to
//! the first). A slot that an entry was moved past carries a mark; a search goes on past a marked slot
//! and ends at one without. Removing an entry from a marked slot leaves an empty marked slot.
//! So one index is one entry, for ever: a readdir cursor never has to point into the middle of one.
//!
//! With a keyed 63-bit hash, two names with one home do not occur by chance nor by intent; tests force
//! them with a weak hash.

use crate::error::Result;
use onode_object::{AttributeKey, AttributeKind, ObjectDevice, ObjectId, Transaction};
use siphasher::sip::SipHasher13;
use std::collections::BTreeMap;

/// First index of a slot; the ones below are readdir cursors of `.` and `..`.
pub(crate) const FIRST_SLOT: u64 = 3;
/// Last index of a slot: the cursor after it must be a positive `off_t`.
pub(crate) const LAST_SLOT: u64 = i64::MAX as u64 - 1;

/// Set in the first byte of a slot that an entry was moved past.
pub(crate) const PASSED: u8 = 0x80;

/// Turns names into homes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHash {
    key: [u8; 16],
    homes: u64,
}

impl NameHash {
    /// The hash of a volume with that secret.
    pub(crate) const fn new(key: [u8; 16]) -> Self {
        Self { key, homes: LAST_SLOT - FIRST_SLOT + 1 }
    }

    /// A bad hash with few homes at the end of the range, so that names collide and wrap.
    #[cfg(test)]
    pub(crate) const fn weak(homes: u64) -> Self {
        Self { key: [7; 16], homes }
    }

    /// Where an entry of that name belongs.
    pub(crate) fn home(&self, name: &[u8]) -> u64 {
        let hash = SipHasher13::new_with_key(&self.key).hash(name);
        LAST_SLOT - hash % self.homes
    }
}

/// The slot after `index`.
pub(crate) const fn next_slot(index: u64) -> u64 {
    if index >= LAST_SLOT { FIRST_SLOT } else { index + 1 }
}

/// One slot as it is stored: the mark and the payload; an empty payload is an empty slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Where it is.
    pub index: u64,
    /// Whether an entry was moved past it.
    pub passed: bool,
    /// First byte without the mark, then the rest.
    pub payload: Vec<u8>,
}

impl Slot {
    /// Takes the mark off the stored bytes. A slot that only carries the mark has an empty payload.
    pub(crate) fn from_bytes(index: u64, mut bytes: Vec<u8>) -> Self {
        let passed = bytes.first().is_some_and(|head| head & PASSED != 0);
        if let Some(head) = bytes.first_mut() {
            *head &= !PASSED;
        }
        if bytes == [0] {
            bytes.clear();
        }
        Self { index, passed, payload: bytes }
    }

    /// The stored bytes of a slot.
    pub(crate) fn to_bytes(passed: bool, payload: &[u8]) -> Vec<u8> {
        let mut bytes = if payload.is_empty() { vec![0] } else { payload.to_vec() };
        if passed {
            bytes[0] |= PASSED;
        }
        bytes
    }
}

/// The slots of one kind of one object.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    pub device: &'a dyn ObjectDevice,
    pub object: ObjectId,
    pub kind: AttributeKind,
}

impl Slots<'_> {
    const fn key(&self, index: u64) -> AttributeKey {
        AttributeKey::new(self.kind, index)
    }

    /// The slot of that index, if there is one.
    pub(crate) fn at(&self, index: u64) -> Result<Option<Slot>> {
        Ok(self.device.attribute(self.object, self.key(index))?.map(|bytes| Slot::from_bytes(index, bytes)))
    }

    /// The slot of the entry that `matches`, searched from `home`.
    pub(crate) fn find(&self, home: u64, matches: impl Fn(&[u8]) -> bool) -> Result<Option<Slot>> {
        match self.at(home)? {
            Some(first) => self.find_from(first, matches),
            None => Ok(None),
        }
    }

    /// The same, from the slot at the home on.
    pub(crate) fn find_from(&self, first: Slot, matches: impl Fn(&[u8]) -> bool) -> Result<Option<Slot>> {
        let home = first.index;
        let mut slot = first;
        loop {
            if !slot.payload.is_empty() && matches(&slot.payload) {
                return Ok(Some(slot));
            }
            let next = next_slot(slot.index);
            if !slot.passed || next == home {
                return Ok(None);
            }
            let Some(further) = self.at(next)? else { return Ok(None) };
            slot = further;
        }
    }

    /// Adds an entry whose home is known to be free.
    pub(crate) fn insert_first(&self, transaction: &mut Transaction, home: u64, payload: Vec<u8>) {
        transaction.set_attribute(self.object, self.key(home), payload);
    }

    /// Adds an entry that is known not to be there; returns its index. `freed` is a slot that an
    /// earlier part of the same transaction empties.
    pub(crate) fn insert(
        &self,
        transaction: &mut Transaction,
        home: u64,
        payload: &[u8],
        freed: Option<u64>,
    ) -> Result<u64> {
        let mut index = home;
        loop {
            let slot = self.at(index)?;
            let passed = slot.as_ref().is_some_and(|slot| slot.passed);
            let taken = slot.as_ref().is_some_and(|slot| !slot.payload.is_empty()) && freed != Some(index);
            if !taken {
                transaction.set_attribute(self.object, self.key(index), Slot::to_bytes(passed, payload));
                return Ok(index);
            }
            if let Some(slot) = slot.filter(|slot| !slot.passed) {
                transaction.set_attribute(self.object, self.key(index), Slot::to_bytes(true, &slot.payload));
            }
            index = next_slot(index);
        }
    }

    /// Puts another payload into the slot of an entry.
    pub(crate) fn replace(&self, transaction: &mut Transaction, slot: &Slot, payload: &[u8]) {
        transaction.set_attribute(self.object, self.key(slot.index), Slot::to_bytes(slot.passed, payload));
    }

    /// Takes an entry out.
    pub(crate) fn remove(&self, transaction: &mut Transaction, slot: &Slot) {
        if slot.passed {
            self.replace(transaction, slot, &[]);
        } else {
            transaction.remove_attribute(self.object, self.key(slot.index));
        }
    }

    /// Up to `limit` occupied or empty slots at or after `from`; none means that there are no more.
    pub(crate) fn list(&self, from: u64, limit: usize) -> Result<Vec<Slot>> {
        let found = self.device.attributes(self.object, self.key(from), limit)?;
        Ok(found
            .into_iter()
            .take_while(|(key, _)| key.kind == self.kind)
            .map(|(key, bytes)| Slot::from_bytes(key.index, bytes))
            .collect())
    }
}

/// The slots of an object that has none yet, as (index, stored bytes).
pub(crate) fn place(entries: Vec<(u64, Vec<u8>)>) -> BTreeMap<u64, Vec<u8>> {
    let mut slots = BTreeMap::new();
    for (home, payload) in entries {
        let mut index = home;
        while let Some(taken) = slots.get_mut(&index) {
            let taken: &mut Vec<u8> = taken;
            taken[0] |= PASSED;
            index = next_slot(index);
        }
        slots.insert(index, Slot::to_bytes(false, &payload));
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;
    use onode_object::ram::RamDevice;
    use onode_object::{Durability, Hints};
    use std::collections::BTreeSet;

    const OBJECT: ObjectId = ObjectId(1);

    fn commit(device: &RamDevice, transaction: Transaction) {
        device.commit(transaction, Durability::Buffered).unwrap();
    }

    #[test]
    fn a_weak_hash_costs_time_and_never_a_name() {
        for seed in 0..30 {
            let mut prng = Prng::new(seed);
            let device = RamDevice::new(1 << 20);
            let mut transaction = Transaction::new();
            transaction.create(OBJECT, Hints::default());
            commit(&device, transaction);
            let slots = Slots { device: &device, object: OBJECT, kind: AttributeKind::ENTRY };
            let hash = NameHash::weak(4);
            let mut model = BTreeSet::new();
            for step in 0..600 {
                let name = vec![1 + prng.below(25) as u8];
                let found = slots.find(hash.home(&name), |payload| payload == name).unwrap();
                assert_eq!(found.is_some(), model.contains(&name), "seed {seed} step {step}");
                let mut transaction = Transaction::new();
                if let Some(slot) = found {
                    slots.remove(&mut transaction, &slot);
                    model.remove(&name);
                    // Half the time another name takes its place in the same transaction.
                    let other = vec![101 + prng.below(25) as u8];
                    if prng.chance(1, 2) && !model.contains(&other) {
                        slots.insert(&mut transaction, hash.home(&other), &other, Some(slot.index)).unwrap();
                        model.insert(other);
                    }
                } else {
                    slots.insert(&mut transaction, hash.home(&name), &name, None).unwrap();
                    model.insert(name);
                }
                commit(&device, transaction);
            }
            let listed: BTreeSet<Vec<u8>> = slots.list(0, 1000).unwrap().into_iter().map(|slot| slot.payload).collect();
            assert!(listed.iter().filter(|payload| !payload.is_empty()).eq(&model), "seed {seed}");
        }
    }

    #[test]
    fn the_last_slot_is_followed_by_the_first_and_cursors_stay_positive() {
        assert_eq!(next_slot(LAST_SLOT), FIRST_SLOT);
        assert!(i64::try_from(LAST_SLOT + 1).is_ok());
        let hash = NameHash::new([3; 16]);
        for name in 0..1000u32 {
            assert!((FIRST_SLOT..=LAST_SLOT).contains(&hash.home(&name.to_le_bytes())));
        }
    }

    #[test]
    fn slots_of_a_new_object_follow_the_same_rule() {
        let placed = place(vec![(LAST_SLOT, vec![1, 1]), (LAST_SLOT, vec![2, 2]), (FIRST_SLOT, vec![3])]);
        let expected = [(FIRST_SLOT, vec![2 | PASSED, 2]), (FIRST_SLOT + 1, vec![3]), (LAST_SLOT, vec![1 | PASSED, 1])];
        assert!(placed.into_iter().eq(expected));
    }
}

//! Random transactions that apply, from a seed and the objects that a device has now.
//!
//! What is alive stays small (a few MiB), so that a test can run for long on a small device.

use crate::device::ObjectDevice;
use crate::hints::{Compression, Hints, Lifetime, ObjectKind, Temperature};
use crate::id::{AttributeKey, AttributeKind, ObjectId};
use crate::transaction::{Mutation, Transaction};
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

/// Most objects that are alive at a time.
const OBJECTS: usize = 24;
/// Where most content lies.
const USUAL_BYTES: u64 = 96 << 10;

/// A source of random transactions.
#[derive(Clone, Debug)]
pub struct Generator {
    /// The numbers it draws from; tests may draw from it too.
    pub prng: Prng,
    /// It makes versions of objects and moves content in this unit.
    move_unit: Option<u64>,
}

impl Generator {
    /// A generator whose output follows from the seed and the devices it is shown.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { prng: Prng::new(seed), move_unit: None }
    }

    /// The same, that makes versions of objects and moves content between them, if there is a
    /// unit of that.
    #[must_use]
    pub const fn moving(self, move_unit: Option<u64>) -> Self {
        Self { move_unit, ..self }
    }

    /// Some advice. It names no encryption key, for a device may want that key.
    pub fn hints(&mut self) -> Hints {
        let prng = &mut self.prng;
        if prng.chance(1, 3) {
            return Hints::default();
        }
        let mut byte = |bound| prng.below(bound) as u8;
        Hints {
            kind: ObjectKind::from_byte(byte(7)).unwrap_or_default(),
            expected_size: u64::from(byte(20)) << byte(30),
            lifetime: Lifetime::from_byte(byte(4)).unwrap_or_default(),
            temperature: Temperature::from_byte(byte(4)).unwrap_or_default(),
            locality: (byte(2) == 1).then(|| ObjectId(u64::from(byte(100)))),
            embed: byte(2) == 1,
            compression: Compression::from_byte(byte(3)).unwrap_or_default(),
            parity_pages: if byte(4) == 0 { byte(4) } else { 0 },
            encryption_key: 0,
            placement_class: if byte(4) == 0 { u16::from(byte(4)) } else { 0 },
        }
    }

    /// A transaction of one to six mutations that applies to the device as it is now. New ids come
    /// from the device.
    ///
    /// # Panics
    /// If the device cannot list its objects or has no ids left.
    pub fn transaction(&mut self, device: &dyn ObjectDevice) -> Transaction {
        let mut alive = device.list(ObjectId(0), OBJECTS * 2).expect("objects can be listed");
        let mut transaction = Transaction::new();
        for _ in 0..=self.prng.below(6) {
            self.mutation(device, &mut alive, &mut transaction);
        }
        transaction
    }

    /// Makes a transaction one that cannot apply, by one mutation somewhere in it.
    pub fn spoil(&mut self, transaction: &mut Transaction) {
        let object = transaction.mutations.first().map_or(ObjectId(1), Mutation::object);
        let key = AttributeKey::new(AttributeKind::FIRST_FREE, 0);
        let wrong = match self.prng.below(5) {
            0 => Mutation::Remove { object: ObjectId(1 << 62) },
            1 => Mutation::Create { object: ObjectId(1 << 62), hints: Hints::default() },
            2 => Mutation::Truncate { object, size: u64::MAX },
            3 => Mutation::SetAttribute { object, key, value: vec![0; Transaction::MAX_ATTRIBUTE_BYTES + 1] },
            _ => Mutation::Write { object, offset: u64::MAX - 5, data: vec![0; 9] },
        };
        let position = self.prng.below(transaction.mutations.len() as u64 + 1) as usize;
        transaction.mutations.insert(position, wrong);
    }

    fn mutation(&mut self, device: &dyn ObjectDevice, alive: &mut Vec<ObjectId>, transaction: &mut Transaction) {
        let create = alive.is_empty() || (alive.len() < OBJECTS && self.prng.chance(1, 6));
        if create {
            let well_known = ObjectId(1 + self.prng.below(8));
            let object = if self.prng.chance(1, 5) && !alive.contains(&well_known) {
                well_known
            } else {
                device.reserve_ids(1).expect("ids are left")
            };
            transaction.create(object, self.hints());
            alive.push(object);
            return;
        }
        if let Some(unit) = self.move_unit
            && self.prng.chance(1, 5)
        {
            return self.move_content(unit.max(1), alive, transaction);
        }
        let position = self.prng.below(alive.len() as u64) as usize;
        let object = alive[position];
        match self.prng.below(20) {
            0 => {
                transaction.remove(object);
                alive.swap_remove(position);
            }
            1..=8 => {
                let data = self.bytes();
                transaction.write(object, self.offset(), data);
            }
            9 | 10 => {
                transaction.truncate(object, self.offset());
            }
            11 | 12 => {
                let length = if self.prng.chance(1, 10) { u64::MAX } else { self.prng.below(40_000) };
                transaction.punch(object, self.offset(), length);
            }
            13..=16 => {
                let key = self.key();
                let bound = if self.prng.chance(1, 4) { 601 } else { 80 };
                let mut value = vec![0; self.prng.below(bound) as usize];
                self.prng.fill(&mut value);
                transaction.set_attribute(object, key, value);
            }
            17 | 18 => {
                let key = self.key();
                transaction.remove_attribute(object, key);
            }
            _ => {
                transaction.set_hints(object, self.hints());
            }
        }
    }

    /// Moves content of an object to a relative that is there or is made for it.
    fn move_content(&mut self, unit: u64, alive: &mut Vec<ObjectId>, transaction: &mut Transaction) {
        let object = alive[self.prng.below(alive.len() as u64) as usize];
        let generation = self.prng.below(3) as u32;
        let version = object.origin().version(generation).filter(|version| *version != object);
        let to = if self.prng.chance(1, 3) { Some(object.origin()) } else { version };
        let Some(to) = to.filter(|to| *to != object) else { return };
        if !alive.contains(&to) {
            if !to.is_version() {
                return;
            }
            transaction.create(to, self.hints());
            alive.push(to);
        }
        let start = self.offset() / unit * unit;
        let length = if self.prng.chance(1, 6) { u64::MAX / 2 } else { self.prng.below(40_000) };
        let end = (start + length).next_multiple_of(unit);
        transaction.move_content(object, start..end, to);
    }

    /// A key out of a few hundred.
    pub fn key(&mut self) -> AttributeKey {
        AttributeKey::new(AttributeKind(self.prng.below(4) as u8 + 30), self.prng.below(64))
    }

    /// Mostly within the usual part, sometimes on a page border, rarely very far out.
    pub fn offset(&mut self) -> u64 {
        match self.prng.below(40) {
            0 => (1 << 40) + self.prng.below(3) * 100_000,
            1 => 0,
            2..=9 => self.prng.below(USUAL_BYTES / 512) * 512,
            _ => self.prng.below(USUAL_BYTES),
        }
    }

    /// Bytes that compress, or do not, or are all zero.
    fn bytes(&mut self) -> Vec<u8> {
        let bound = if self.prng.chance(1, 5) { 20_000 } else { 600 };
        let mut bytes = vec![0; self.prng.below(bound) as usize];
        match self.prng.below(8) {
            0 => {}
            1..=3 => {
                let byte = self.prng.next_u64() as u8;
                bytes.fill(byte);
            }
            _ => self.prng.fill(&mut bytes),
        }
        bytes
    }
}

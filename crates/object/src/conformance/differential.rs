//! Random histories: a device and the reference model must never differ.

use super::generate::Generator;
use super::oracle::Oracle;
use super::subject::Subject;
use super::{Maker, suite};
use crate::device::ObjectDevice;
use crate::durability::{Durability, SyncScope};
use crate::id::ObjectId;
use alloc::vec;
use std::eprintln;

suite! { "differential":
    Nothing random_history_one,
    Nothing random_history_two,
    Nothing random_history_three,
    Crash random_history_with_crashes_one,
    Crash random_history_with_crashes_two,
    Crash random_history_with_crashes_three,
}

const OPERATIONS: u64 = 2_500;

fn random_history_one(make: Maker<'_>) {
    differential(make, 0x0b1ec7, OPERATIONS, false);
}

fn random_history_two(make: Maker<'_>) {
    differential(make, 0x5eed02, OPERATIONS, false);
}

fn random_history_three(make: Maker<'_>) {
    differential(make, 0x5eed03, OPERATIONS, false);
}

fn random_history_with_crashes_one(make: Maker<'_>) {
    differential(make, 0xc4a501, OPERATIONS, true);
}

fn random_history_with_crashes_two(make: Maker<'_>) {
    differential(make, 0xc4a502, OPERATIONS, true);
}

fn random_history_with_crashes_three(make: Maker<'_>) {
    differential(make, 0xc4a503, OPERATIONS, true);
}

/// Runs `operations` random operations that follow from `seed` on a fresh device and on the model.
///
/// # Panics
/// At the first difference, with the seed and the number of the operation on standard error.
pub fn differential(make: Maker<'_>, seed: u64, operations: u64, crashes: bool) {
    let it = Subject::new(make);
    let generator = Generator::new(seed).moving(it.device().move_unit());
    let mut history = History { it, oracle: Oracle::default(), generator };
    for number in 0..operations {
        let failed = Notice(seed, number);
        history.step(crashes);
        if number % 250 == 249 {
            history.compare();
        }
        core::mem::forget(failed);
    }
}

/// Says where a history broke when it is dropped by a panic.
struct Notice(u64, u64);

impl Drop for Notice {
    fn drop(&mut self) {
        eprintln!("differential: seed {:#x} failed in operation {}", self.0, self.1);
    }
}

struct History {
    it: Subject,
    oracle: Oracle,
    generator: Generator,
}

impl History {
    fn step(&mut self, crashes: bool) {
        match self.generator.prng.below(200) {
            0 => {
                self.it.harness.reopen();
                self.oracle.sync(SyncScope::All).expect("the model can sync");
                self.compare();
            }
            1 | 2 if crashes => {
                self.it.harness.crash();
                let found = self.it.dump();
                if let Err(difference) = self.oracle.crash(&found) {
                    panic!("after a crash: {difference}");
                }
            }
            3..=6 => self.sync(),
            7..=11 => {
                self.it.device().maintain(4).expect("maintenance works");
            }
            12..=49 => self.look(),
            _ => self.commit(),
        }
    }

    fn commit(&mut self) {
        let mut transaction = self.generator.transaction(self.it.device());
        if self.generator.prng.chance(1, 10) {
            self.generator.spoil(&mut transaction);
        }
        let durable = self.generator.prng.chance(1, 8);
        let durability = if durable { Durability::Durable } else { Durability::Buffered };
        let expected = self.oracle.commit(&transaction, durability).map_err(|error| (error.kind, error.object));
        let found = self.it.device().commit(transaction, durability);
        assert_eq!(found.map_err(|error| (error.kind, error.object)), expected, "answer to a commit");
    }

    fn sync(&mut self) {
        let scope = match self.some_object() {
            Some(object) if self.generator.prng.chance(1, 2) => SyncScope::Object(object),
            _ => SyncScope::All,
        };
        self.it.device().sync(scope).expect("a sync works");
        self.oracle.sync(scope).expect("the model can sync");
    }

    fn some_object(&mut self) -> Option<ObjectId> {
        let objects = self.oracle.model.list(ObjectId(0), 100).expect("the model can list");
        let position = self.generator.prng.below(objects.len() as u64) as usize;
        objects.get(position).copied()
    }

    /// Compares the answers to one query of each sort, sometimes about an object that is not there.
    fn look(&mut self) {
        let object = self.some_object().unwrap_or(ObjectId(7));
        let object = if self.generator.prng.chance(1, 20) { ObjectId(object.0 + 1) } else { object };
        let (offset, key) = (self.generator.offset(), self.generator.key());
        let (length, limit) = (self.generator.prng.below(20_000) as usize, self.generator.prng.below(9) as usize);
        let answers = |device: &dyn ObjectDevice| {
            let mut buffer = vec![0x5a; length];
            let read = device.read(object, offset, &mut buffer).map_err(|error| error.kind);
            let stat = device.stat(object).map(|stat| (stat.size, stat.hints)).map_err(|error| error.kind);
            let attribute = device.attribute(object, key).map_err(|error| error.kind);
            (read, buffer, stat, attribute, device.space().objects)
        };
        let (found, expected) = (answers(self.it.device()), answers(&self.oracle.model));
        assert!(found == expected, "queries of {object} at {offset}+{length} and {key:?} differ");
        // Fewer may be returned than the limit, but what comes must be the first ones.
        let found = self.it.device().attributes(object, key, limit).map_err(|error| error.kind);
        let expected = self.oracle.model.attributes(object, key, limit).map_err(|error| error.kind);
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert!(expected.starts_with(&found) && found.is_empty() == expected.is_empty(), "attributes differ");
            }
            (found, expected) => assert_eq!(found, expected),
        }
    }

    fn compare(&self) {
        let expected = super::dump(&self.oracle.model).expect("the model is readable");
        assert_eq!(self.it.dump().difference(&expected), None);
    }
}

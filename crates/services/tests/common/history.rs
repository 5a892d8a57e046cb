//! A random history: what the wrapper shows must never differ from what the device in memory shows
//! that compresses nothing.

use super::changes::{Changes, OBJECTS};
use onode_object::conformance::dump;
use onode_object::{Durability, ObjectDevice, ObjectId, RamDevice, Transaction};
use std::sync::Arc;

/// Wraps a device in memory that may have been wrapped before.
pub type Wrap = Box<dyn FnMut(&Arc<RamDevice>) -> Box<dyn ObjectDevice>>;

/// The wrapper over a device in memory, and a device in memory without it.
pub struct History {
    changes: Changes,
    inner: Arc<RamDevice>,
    device: Box<dyn ObjectDevice>,
    model: RamDevice,
    wrap: Wrap,
    /// Steps after which less was stored than without the wrapper.
    smaller: u64,
}

impl History {
    pub fn new(seed: u64, mut wrap: Wrap) -> Self {
        let inner = Arc::new(RamDevice::with_crash_model(1 << 40));
        let device = wrap(&inner);
        let mut it =
            Self { changes: Changes::new(seed), inner, device, model: RamDevice::new(1 << 60), wrap, smaller: 0 };
        for object in 1..=OBJECTS {
            let mut transaction = Transaction::new();
            transaction.create(ObjectId(object), it.changes.hints());
            it.commit(&transaction);
        }
        it
    }

    fn commit(&self, transaction: &Transaction) {
        let expected = self.model.commit(transaction.clone(), Durability::Buffered);
        let found = self.device.commit(transaction.clone(), Durability::Buffered);
        assert_eq!(found.map_err(|error| error.kind), expected.map_err(|error| error.kind));
    }

    /// Reads and asks here and there.
    fn look(&mut self) {
        let object = ObjectId(1 + self.changes.prng.below(OBJECTS));
        let (offset, length) = (self.changes.offset(), self.changes.bytes().len());
        let answer = |device: &dyn ObjectDevice| {
            let mut buffer = vec![0xa5; length];
            let count = device.read(object, offset, &mut buffer).unwrap();
            (count, buffer, device.stat(object).map(|stat| (stat.size, stat.hints)).unwrap())
        };
        assert!(answer(&*self.device) == answer(&self.model), "{object} at {offset}+{length}");
        self.check_extents(object);
    }

    /// Extents are in order, lie below the size, cover what is not zero, and one at a time they are
    /// the same.
    fn check_extents(&self, object: ObjectId) {
        let size = self.model.stat(object).unwrap().size;
        let all = self.device.extents(object, 0, 10_000).unwrap();
        let mut end = 0;
        let mut covered = vec![false; (size as usize).min(32 << 20)];
        for (start, length) in &all {
            assert!(*start >= end && *length > 0 && start + length <= size, "{all:?} of {size}");
            end = start + length;
            covered[*start as usize..end as usize].fill(true);
        }
        let mut bytes = vec![0; covered.len()];
        self.model.read(object, 0, &mut bytes).unwrap();
        let missed = (0..bytes.len()).find(|at| bytes[*at] != 0 && !covered[*at]);
        assert_eq!(missed, None, "data outside of {all:?}");
        let data: u64 = all.iter().map(|(_, length)| length).sum();
        let model: u64 = self.model.extents(object, 0, 10_000).unwrap().iter().map(|(_, length)| length).sum();
        assert!(data <= model + 8192 * all.len() as u64, "holes are gone: {data} of {model} bytes");
        let (mut at, mut singly) = (0, Vec::new());
        while let Some((start, length)) = self.device.extents(object, at, 1).unwrap().first().copied() {
            singly.push((start, length));
            at = start + length;
        }
        assert_eq!(singly.iter().map(|(_, length)| length).sum::<u64>(), data, "{singly:?} {all:?}");
    }

    /// Runs so many steps; tells after how many of them less was stored than without the wrapper.
    pub fn run(&mut self, steps: u64) -> u64 {
        for step in 0..steps {
            let mut transaction = Transaction::new();
            for _ in 0..=self.changes.prng.below(5) {
                self.changes.mutate(&self.model, &mut transaction);
            }
            if self.changes.prng.chance(1, 15) {
                let wrong = ObjectId(50);
                transaction.write(wrong, 5, vec![1; 9000]);
            }
            if self.changes.prng.chance(1, 15) {
                transaction.truncate(ObjectId(1), u64::MAX - 5).remove(ObjectId(40));
            }
            self.commit(&transaction);
            self.look();
            let stored = |device: &dyn ObjectDevice| -> u64 {
                (1..=OBJECTS).map(|one| device.stat(ObjectId(one)).unwrap().allocated).sum()
            };
            self.smaller += u64::from(stored(&*self.device) < stored(&self.model));
            if step % 40 == 39 {
                // What was remembered is not needed.
                self.device = (self.wrap)(&self.inner);
            }
            if step % 20 == 19 {
                let (found, expected) = (dump(&*self.device).unwrap(), dump(&self.model).unwrap());
                assert_eq!(found.difference(&expected), None, "after step {step}");
            }
        }
        self.smaller
    }
}

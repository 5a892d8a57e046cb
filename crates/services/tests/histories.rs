//! Random histories of content that compresses, against the device in memory that does not: what
//! the wrapper shows must never differ, not even between one transaction and the next.

use onode_base::Prng;
use onode_object::conformance::dump;
use onode_object::{
    AttributeKey, AttributeKind, Compression, Durability, Hints, ObjectDevice, ObjectId, ObjectKind, RamDevice,
    Transaction,
};
use onode_services::Compressed;
use std::sync::Arc;

const CHUNK: u64 = 64 << 10;
const OBJECTS: u64 = 4;
/// Where most content lies: some chunks.
const USUAL: u64 = 5 * CHUNK;

struct Histories {
    prng: Prng,
    inner: Arc<RamDevice>,
    device: Compressed<RamDevice>,
    model: RamDevice,
    mode: Compression,
    /// Steps after which less was stored than without compression.
    smaller: u64,
}

impl Histories {
    fn new(seed: u64, mode: Compression) -> Self {
        let inner = Arc::new(RamDevice::with_crash_model(1 << 40));
        let device = Compressed::new(Arc::clone(&inner), mode);
        let mut it = Self { prng: Prng::new(seed), inner, device, model: RamDevice::new(1 << 60), mode, smaller: 0 };
        for object in 1..=OBJECTS {
            let mut transaction = Transaction::new();
            transaction.create(ObjectId(object), it.hints());
            it.commit(&transaction);
        }
        it
    }

    fn hints(&mut self) -> Hints {
        let compression = Compression::from_byte(self.prng.below(4) as u8).unwrap_or_default();
        let compression = if self.prng.chance(1, 2) { Compression::Auto } else { compression };
        Hints { kind: ObjectKind::Data, compression, ..Hints::default() }
    }

    fn commit(&self, transaction: &Transaction) {
        let expected = self.model.commit(transaction.clone(), Durability::Buffered);
        let found = self.device.commit(transaction.clone(), Durability::Buffered);
        assert_eq!(found.map_err(|error| error.kind), expected.map_err(|error| error.kind));
    }

    fn offset(&mut self) -> u64 {
        let chunk = self.prng.below(USUAL / CHUNK + 1) * CHUNK;
        match self.prng.below(20) {
            // Another group of the map.
            0 => (12 << 20) + self.prng.below(3) * CHUNK + self.prng.below(2) * 77,
            1..=6 => chunk,
            7..=9 => chunk + self.prng.below(200),
            10..=11 => chunk.saturating_sub(self.prng.below(200)),
            12..=13 => self.prng.below(USUAL / 4096) * 4096,
            _ => self.prng.below(USUAL),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = match self.prng.below(10) {
            0 => self.prng.below(300),
            1..=3 => self.prng.below(20_000),
            4..=6 => CHUNK * (1 + self.prng.below(3)),
            _ => self.prng.below(3 * CHUNK),
        };
        let mut bytes = vec![0; length as usize];
        let seed = self.prng.next_u64();
        match self.prng.below(6) {
            0 => self.prng.fill(&mut bytes),
            1 => bytes.fill(seed as u8),
            // Half of it does not compress.
            2 => {
                let half = bytes.len() / 2;
                self.prng.fill(&mut bytes[half..]);
            }
            _ => (0..bytes.len()).for_each(|at| bytes[at] = (seed >> (at / 32 % 8)) as u8 ^ (at / 100) as u8),
        }
        bytes
    }

    fn mutate(&mut self, transaction: &mut Transaction) {
        let object = ObjectId(1 + self.prng.below(OBJECTS));
        match self.prng.below(24) {
            0 => {
                let hints = self.hints();
                transaction.remove(object).create(object, hints);
            }
            1 => {
                let hints = self.hints();
                transaction.set_hints(object, hints);
            }
            2 => {
                let key = AttributeKey::new(AttributeKind(5 + self.prng.below(3) as u8 / 2 * 2), self.prng.below(5));
                transaction.set_attribute(object, key, vec![1; self.prng.below(50) as usize]);
            }
            3..=6 => {
                let offset = self.offset();
                transaction.truncate(object, offset);
            }
            7..=10 => {
                let offset = self.offset();
                let length = if self.prng.chance(1, 8) { u64::MAX } else { self.offset() / 2 };
                transaction.punch(object, offset, length);
            }
            11..=13 => {
                // Goes on where it ends, as a log does.
                let size = self.model.stat(object).map_or(0, |stat| stat.size);
                let data = self.bytes();
                transaction.write(object, size, data);
            }
            _ => {
                let (offset, data) = (self.offset(), self.bytes());
                transaction.write(object, offset, data);
            }
        }
    }

    /// Reads and asks here and there.
    fn look(&mut self) {
        let object = ObjectId(1 + self.prng.below(OBJECTS));
        let (offset, length) = (self.offset(), self.bytes().len());
        let answer = |device: &dyn ObjectDevice| {
            let mut buffer = vec![0xa5; length];
            let count = device.read(object, offset, &mut buffer).unwrap();
            (count, buffer, device.stat(object).map(|stat| (stat.size, stat.hints)).unwrap())
        };
        assert!(answer(&self.device) == answer(&self.model), "{object} at {offset}+{length}");
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

    fn run(&mut self, steps: u64) {
        for step in 0..steps {
            let mut transaction = Transaction::new();
            for _ in 0..=self.prng.below(5) {
                self.mutate(&mut transaction);
            }
            if self.prng.chance(1, 15) {
                let wrong = ObjectId(50);
                transaction.write(wrong, 5, vec![1; 9000]);
            }
            if self.prng.chance(1, 15) {
                transaction.truncate(ObjectId(1), u64::MAX - 5).remove(ObjectId(40));
            }
            self.commit(&transaction);
            self.look();
            let stored = |device: &dyn ObjectDevice| -> u64 {
                (1..=OBJECTS).map(|one| device.stat(ObjectId(one)).unwrap().allocated).sum()
            };
            self.smaller += u64::from(stored(&self.device) < stored(&self.model));
            if step % 40 == 39 {
                // What was remembered is not needed.
                self.device = Compressed::new(Arc::clone(&self.inner), self.mode);
            }
            if step % 20 == 19 {
                let (found, expected) = (dump(&self.device).unwrap(), dump(&self.model).unwrap());
                assert_eq!(found.difference(&expected), None, "after step {step}");
            }
        }
        assert!(self.smaller > steps / 20, "content was smaller only after {} steps", self.smaller);
    }
}

fn steps() -> u64 {
    std::env::var("ONODE_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(600)
}

#[test]
fn fast() {
    (1..5).for_each(|seed| Histories::new(seed, Compression::Fast).run(steps()));
}

#[test]
fn small() {
    Histories::new(11, Compression::Small).run(steps() / 2);
}

#[test]
fn auto() {
    (21..23).for_each(|seed| Histories::new(seed, Compression::Auto).run(steps()));
}

#[test]
fn by_hints_alone() {
    Histories::new(31, Compression::Never).run(steps());
}

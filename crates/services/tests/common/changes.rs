//! Random changes of content that compresses, on and beside the borders of chunks.

use onode_base::Prng;
use onode_object::{AttributeKey, AttributeKind, Compression, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction};

pub const CHUNK: u64 = 64 << 10;
/// Objects 1 to this one are changed.
pub const OBJECTS: u64 = 4;

/// What changes are drawn from.
pub struct Changes {
    pub prng: Prng,
    /// Where most content lies: some chunks.
    usual: u64,
    /// Whether now and then something is put far behind, in another group of the map.
    is_far: bool,
}

impl Changes {
    pub fn new(seed: u64) -> Self {
        Self { prng: Prng::new(seed), usual: 5 * CHUNK, is_far: true }
    }

    /// Changes that fit on a small medium.
    pub fn small(seed: u64) -> Self {
        Self { usual: 2 * CHUNK, is_far: false, ..Self::new(seed) }
    }

    pub fn hints(&mut self) -> Hints {
        let compression = Compression::from_byte(self.prng.below(4) as u8).unwrap_or_default();
        let compression = if self.prng.chance(1, 2) { Compression::Auto } else { compression };
        Hints { kind: ObjectKind::Data, compression, ..Hints::default() }
    }

    pub fn offset(&mut self) -> u64 {
        let chunk = self.prng.below(self.usual / CHUNK + 1) * CHUNK;
        match self.prng.below(20) {
            // Another group of the map.
            0 if self.is_far => (12 << 20) + self.prng.below(3) * CHUNK + self.prng.below(2) * 77,
            1..=6 => chunk,
            7..=9 => chunk + self.prng.below(200),
            10..=11 => chunk.saturating_sub(self.prng.below(200)),
            12..=13 => self.prng.below(self.usual / 4096) * 4096,
            _ => self.prng.below(self.usual),
        }
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let length = match self.prng.below(10) {
            0 => self.prng.below(300),
            1..=3 => self.prng.below(20_000),
            4..=6 => CHUNK * (1 + self.prng.below(self.usual / CHUNK / 2 + 1)),
            _ => self.prng.below(self.usual / 2),
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

    /// Adds a change of an object that `model` has.
    pub fn mutate(&mut self, model: &dyn ObjectDevice, transaction: &mut Transaction) {
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
                let length = if self.prng.chance(1, 3) { 550 + self.prng.below(51) } else { self.prng.below(50) };
                transaction.set_attribute(object, key, vec![1; length as usize]);
            }
            3..=5 => {
                let offset = self.offset();
                transaction.truncate(object, offset);
            }
            6 => _ = transaction.truncate(object, self.prng.below(257)),
            7..=10 => {
                let offset = self.offset();
                let length = if self.prng.chance(1, 8) { u64::MAX } else { self.offset() / 2 };
                transaction.punch(object, offset, length);
            }
            11..=13 => {
                // Goes on where it ends, as a log does.
                let size = model.stat(object).map_or(0, |stat| stat.size);
                let data = self.bytes();
                transaction.write(object, size, data);
            }
            14..=16 if model.stat(object).is_ok_and(|stat| (1..=256).contains(&stat.size)) => {
                let size = model.stat(object).map_or(0, |stat| stat.size);
                transaction.write(object, 0, vec![self.prng.next_u64() as u8; size as usize]);
            }
            _ => {
                let (offset, data) = (self.offset(), self.bytes());
                transaction.write(object, offset, data);
            }
        }
    }
}

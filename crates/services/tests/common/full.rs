//! A full volume: content that compresses is filled to the last byte, overwritten with what does
//! not, cut and emptied. What is refused changes nothing, and what takes away is never refused.

use super::changes::CHUNK;
use onode_base::Prng;
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectId, Transaction};
use std::collections::BTreeMap;

const NOTE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);

struct Full<'a> {
    harness: &'a mut dyn Harness,
    contents: BTreeMap<ObjectId, Vec<u8>>,
    prng: Prng,
}

/// Bytes that shrink to about a third.
fn text(prng: &mut Prng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let third = length / 3;
    prng.fill(&mut bytes[..third]);
    (third..length).for_each(|at| bytes[at] = (at / 700) as u8);
    bytes
}

impl Full<'_> {
    fn commit(&self, transaction: Transaction) -> bool {
        match self.harness.device().commit(transaction, Durability::Buffered) {
            Ok(()) => true,
            Err(error) if error.kind == ErrorKind::NoSpace => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn make(&mut self, length: usize) -> bool {
        let object = self.harness.device().reserve_ids(1).unwrap();
        let data = text(&mut self.prng, length);
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).set_attribute(object, NOTE, vec![1; 40]).write(
            object,
            0,
            data.clone(),
        );
        let fits = self.commit(transaction);
        if fits {
            self.contents.insert(object, data);
        }
        fits
    }

    fn verify(&self, when: &str) {
        for (object, content) in &self.contents {
            let mut found = vec![0xa5; content.len() + 1];
            let count =
                self.harness.device().read(*object, 0, &mut found).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(count == content.len() && found[..count] == content[..], "{when}: {object} of {}", content.len());
        }
    }

    /// Noise over content that is there; says how often there was room.
    fn overwrite(&mut self, rounds: u64) -> u64 {
        let mut fitted = 0;
        for round in 0..rounds {
            let at = self.prng.below(self.contents.len() as u64) as usize;
            let (object, content) =
                self.contents.iter().nth(at).map(|(object, content)| (*object, content.clone())).unwrap();
            let start = self.prng.below(content.len() as u64) as usize;
            let length = if round % 2 == 0 { 4096 } else { 30_000 }.min(content.len() - start);
            let mut data = vec![0; length];
            self.prng.fill(&mut data);
            let mut transaction = Transaction::new();
            transaction.write(object, start as u64, data.clone()).set_attribute(object, NOTE, vec![round as u8; 40]);
            if self.commit(transaction) {
                fitted += 1;
                if let Some(content) = self.contents.get_mut(&object) {
                    content[start..start + length].copy_from_slice(&data);
                }
            }
        }
        fitted
    }

    /// Cuts of every sort, each with as much more attribute as it is allowed.
    fn cut(&mut self) {
        let objects: Vec<ObjectId> = self.contents.keys().copied().collect();
        for (number, object) in objects.into_iter().enumerate() {
            let size = self.contents[&object].len() as u64;
            if size < 5000 {
                continue;
            }
            let mut transaction = Transaction::new();
            let content = self.contents.get_mut(&object).unwrap();
            let mut note = 40;
            match number % 4 {
                0 => {
                    let new = 1 + self.prng.below(size - 1);
                    transaction.truncate(object, new);
                    content.truncate(new as usize);
                    note += 16;
                }
                1 => {
                    let (start, length) = (self.prng.below(size), self.prng.below(9000));
                    transaction.punch(object, start, length);
                    content[start as usize..(start + length).min(size) as usize].fill(0);
                    note += 16;
                }
                2 => {
                    // What is cut off does not come back.
                    let new = 1 + self.prng.below(size - 1);
                    transaction.truncate(object, new).truncate(object, size);
                    content[new as usize..].fill(0);
                    note += 32;
                }
                _ => {
                    for start in [CHUNK / 4, CHUNK / 2, CHUNK, size / 2] {
                        transaction.punch(object, start, 600);
                        let start = start.min(size) as usize;
                        content[start..(start + 600).min(size as usize)].fill(0);
                    }
                    note += 64;
                }
            }
            transaction.set_attribute(object, NOTE, vec![9; note]);
            let durability = if number % 5 == 0 { Durability::Durable } else { Durability::Buffered };
            if let Err(error) = self.harness.device().commit(transaction.clone(), durability) {
                panic!("a full volume does not let go: {error}: {transaction:?}");
            }
        }
    }
}

/// Fills a device, of which the content has to take so many tenths, and empties it.
pub fn run(harness: &mut dyn Harness, tenths: u64) {
    let mut it = Full { harness, contents: BTreeMap::new(), prng: Prng::new(17) };
    let available = it.harness.device().space().available;
    for round in 0..2 {
        for length in [100_000, 65_536, 20_000, 5_000, 600, 100] {
            while it.make(length) {}
        }
        let plain: usize = it.contents.values().map(Vec::len).sum();
        assert!(plain as u64 > available * tenths / 10, "round {round}: only {plain} bytes fitted into {available}");
        it.verify("full");
        let fitted = it.overwrite(60);
        it.verify("overwritten");
        it.harness.reopen();
        it.verify("overwritten and opened again");
        it.cut();
        it.verify("cut");
        if it.harness.can_crash() {
            it.harness.device().sync(onode_object::SyncScope::All).unwrap();
            it.harness.crash();
            it.verify("cut, after a crash");
        }
        eprintln!("round {round}: {plain} bytes in {available}, {fitted} of 60 overwrites fitted");
        for object in std::mem::take(&mut it.contents).into_keys() {
            let mut transaction = Transaction::new();
            transaction.remove(object);
            assert!(it.commit(transaction), "{object} is not let go");
        }
        let after = it.harness.device().space().available;
        assert!(after + available / 16 >= available, "{after} bytes of {available} are free in the end");
    }
}

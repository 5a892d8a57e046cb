//! Random histories of a device with snapshots: each must show for ever what there was when it was
//! taken, and what there is now must be as if there were none.

use super::pool::Mounted;
use onode_base::Timestamp;
use onode_object::conformance::{Generator, Harness, Oracle, Tree, dump};
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, ObjectDevice, ObjectId, SyncScope};
use onode_services::Versioned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Snapshots that there are at a time.
const SNAPSHOTS: usize = 6;

/// A device, and what it and its snapshots have to show.
struct History {
    mounted: Arc<Mounted>,
    device: Arc<Versioned<Mounted>>,
    oracle: Oracle,
    taken: BTreeMap<String, Tree>,
    generator: Generator,
    names: u64,
}

/// Runs `steps` steps of a history on a device, with cuts of power if it can have any.
pub fn run(harness: impl Harness + Send + 'static, seed: u64, steps: u64) {
    let cuts = harness.can_crash();
    let mounted = Mounted::new(harness);
    let device = open(&mounted);
    let (oracle, generator) = (Oracle::default(), Generator::new(seed));
    let mut history = History { mounted, device, oracle, taken: BTreeMap::new(), generator, names: 0 };
    for step in 0..steps {
        let told = Told(seed, step);
        history.step(cuts);
        std::mem::forget(told);
    }
    history.end();
}

/// Says where a history broke.
struct Told(u64, u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("snapshots: seed {} failed in step {}", self.0, self.1);
    }
}

fn open(mounted: &Arc<Mounted>) -> Arc<Versioned<Mounted>> {
    Arc::new(Versioned::open(Arc::clone(mounted)).expect("it opens").expect("it can have snapshots"))
}

impl History {
    fn step(&mut self, cuts: bool) {
        match self.generator.prng.below(100) {
            0..=4 => self.take(),
            5..=7 => self.delete(),
            8..=17 => {
                let budget = 1 + self.generator.prng.below(6) as u32;
                self.device.maintain(budget).expect("maintenance works");
            }
            18 => self.verify(),
            22 => {
                self.mounted.with(|harness| harness.reopen());
                self.oracle.sync(SyncScope::All).expect("the model can sync");
                self.device = open(&self.mounted);
                self.verify();
            }
            23 if cuts => self.cut(),
            24 | 25 => {
                self.device.sync(SyncScope::All).expect("a sync works");
                self.oracle.sync(SyncScope::All).expect("the model can sync");
            }
            19..=21 | 26..=35 => self.look_at_one(),
            _ => self.commit(),
        }
    }

    fn commit(&mut self) {
        let mut transaction = self.generator.transaction(self.device.as_ref());
        if self.generator.prng.chance(1, 12) {
            self.generator.spoil(&mut transaction);
        }
        let durable = self.generator.prng.chance(1, 6);
        let durability = if durable { Durability::Durable } else { Durability::Buffered };
        let expected = self.oracle.commit(&transaction, durability).map_err(|error| error.kind);
        let found = self.device.commit(transaction, durability).map_err(|error| error.kind);
        assert_eq!(found, expected, "answer to a commit");
        // What snapshots keep is nothing that people have, and it is not counted anew.
        assert_eq!(self.device.space().objects, self.oracle.model.space().objects, "number of objects");
    }

    fn take(&mut self) {
        if self.taken.len() == SNAPSHOTS {
            return self.delete();
        }
        self.names += 1;
        let name = format!("snapshot {}", self.names);
        let tree = dump(self.device.as_ref()).expect("the device can be read");
        self.device.take(&name, Timestamp::default()).expect("a snapshot is taken");
        self.oracle.sync(SyncScope::All).expect("the model can sync");
        let again = self.device.take(&name, Timestamp::default()).map(drop).map_err(|error| error.kind);
        assert_eq!(again, Err(ErrorKind::Exists));
        self.taken.insert(name, tree);
    }

    fn some_name(&mut self) -> Option<String> {
        let position = self.generator.prng.below(self.taken.len() as u64) as usize;
        self.taken.keys().nth(position).cloned()
    }

    fn delete(&mut self) {
        let Some(name) = self.some_name() else { return };
        let view = self.device.view(&name).expect("it is there");
        self.device.delete(&name).expect("it is deleted");
        self.oracle.sync(SyncScope::All).expect("the model can sync");
        assert_eq!(view.stat(ObjectId(1)).map(drop).map_err(|error| error.kind), Err(ErrorKind::Stale));
        assert_eq!(self.device.view(&name).map(drop).map_err(|error| error.kind), Err(ErrorKind::NotFound));
        self.taken.remove(&name);
    }

    /// The power goes.
    fn cut(&mut self) {
        self.mounted.with(|harness| harness.crash());
        self.device = open(&self.mounted);
        let found = dump(self.device.as_ref()).expect("the device can be read");
        if let Err(difference) = self.oracle.crash(&found) {
            panic!("after a cut: {difference}");
        }
        self.verify();
    }

    /// Everything is as it has to be.
    fn verify(&self) {
        let now = dump(self.device.as_ref()).expect("the device can be read");
        let model = dump(&self.oracle.model).expect("the model can be read");
        assert_eq!(now.difference(&model), None, "now");
        let names: Vec<_> = self.device.snapshots().into_iter().map(|one| one.name).collect();
        assert_eq!(names.len(), self.taken.len(), "{names:?}");
        for (name, tree) in &self.taken {
            let view = self.device.view(name).expect("it is there");
            let found = dump(&view).expect("a snapshot can be read");
            assert_eq!(found.difference(tree), None, "{name}");
        }
    }

    /// One query of each sort has the answer that all of them have together.
    fn look_at_one(&mut self) {
        let Some(name) = self.some_name() else { return };
        let (view, tree) = (self.device.view(&name).expect("it is there"), &self.taken[&name]);
        let prng = &mut self.generator.prng;
        let position = prng.below(tree.objects.len() as u64) as usize;
        let Some((id, object)) = tree.objects.iter().nth(position) else { return };
        let offset = prng.below(object.size.min(200_000) + 100);
        let mut buffer = vec![0x5a; prng.below(20_000) as usize];
        let count = view.read(*id, offset, &mut buffer).expect("a snapshot can be read");
        assert_eq!(count as u64, (buffer.len() as u64).min(object.size.saturating_sub(offset)));
        for (at, byte) in (offset..).zip(&buffer[..count]) {
            let unit = object.content.get(&(at / 512));
            let expected = unit.and_then(|unit| unit.get((at % 512) as usize)).copied().unwrap_or(0);
            assert_eq!(*byte, expected, "{id} at {at}");
        }
        let mut from = offset;
        while let Some((start, length)) = view.extents(*id, from, 3).expect("it has extents").last().copied() {
            assert!(start + length <= object.size, "{id}: data at {start}, {length} bytes");
            from = start + length;
        }
        let key = AttributeKey::new(AttributeKind(30 + prng.below(4) as u8), prng.below(64));
        assert_eq!(view.attribute(*id, key), Ok(object.attributes.get(&key).cloned()), "{id}: {key:?}");
        let limit = 1 + prng.below(9) as usize;
        let expected: Vec<_> =
            object.attributes.range(key..).take(limit).map(|(key, value)| (*key, value.clone())).collect();
        assert_eq!(view.attributes(*id, key, limit), Ok(expected), "{id} from {key:?}");
        assert_eq!(view.attribute(ObjectId(1 << 40), key).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    }

    /// Nothing is left of snapshots once all are deleted.
    fn end(mut self) {
        self.verify();
        while !self.taken.is_empty() {
            self.delete();
            self.verify();
            if self.generator.prng.chance(1, 2) {
                while self.device.maintain(3).expect("maintenance works").more && self.device.is_cleaning() {}
            }
        }
        while self.device.is_cleaning() {
            self.device.maintain(64).expect("maintenance works");
        }
        self.verify();
        let own = |id: &ObjectId| *id == ObjectId::SNAPSHOTS || id.is_version();
        let all = self.mounted.list(ObjectId(0), 10_000).expect("the device can be read");
        assert_eq!(all.iter().find(|id| own(id)), None);
        let versions = self.mounted.list(ObjectId::FIRST_VERSION, 10).expect("the device can be read");
        assert_eq!(versions, []);
    }
}

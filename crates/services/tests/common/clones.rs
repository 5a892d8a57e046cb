//! Random histories of a device with snapshots and clones of them: each clone must show what its
//! snapshot did and what was changed in it since, and nothing of what changes elsewhere.

use super::pool::Mounted;
use onode_base::Timestamp;
use onode_object::conformance::{Generator, Harness, Oracle, Tree, dump};
use onode_object::{
    Durability, ErrorKind, Mutation, ObjectDevice, ObjectId, Space, SyncScope, Transaction, forward_device,
};
use onode_services::{CloneDevice, Versioned};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Snapshots, and clones, that there are at a time.
const MOST: usize = 3;

/// A clone of a device under test that can be closed, cut and opened again.
pub struct Cloned {
    mounted: Arc<Mounted>,
    device: Counted,
}

/// A clone that says how many objects it has: of itself it tells those of the device that it is on.
struct Counted(CloneDevice<Mounted>);

impl ObjectDevice for Counted {
    fn space(&self) -> Space {
        let (mut objects, mut from) = (0, ObjectId(0));
        loop {
            let found = self.0.list(from, 256).expect("a clone can be listed");
            let Some(last) = found.last() else { return Space { objects, ..self.0.space() } };
            (objects, from) = (objects + found.len() as u64, ObjectId(last.0 + 1));
        }
    }

    forward_device! {
        self => self.0;
        info, reserve_ids, commit, sync, read, attribute, attributes, stat, list, extents, space_for, promisable,
        move_unit, maintain, close, health, compression, decisions
    }
}

const NAME: &str = "copy";

impl Cloned {
    /// A clone of a snapshot of an empty device.
    pub fn over(harness: impl Harness + Send + 'static) -> Self {
        let mounted = Mounted::new(harness);
        let versioned = open(&mounted);
        versioned.take("empty", Timestamp::default()).expect("a snapshot is taken");
        versioned.make_clone(NAME, "empty", Timestamp::default()).expect("a clone is made");
        Self { device: Counted(open_clone(&versioned, NAME)), mounted }
    }

    fn again(&mut self) {
        self.device = Counted(open_clone(&open(&self.mounted), NAME));
    }
}

impl Harness for Cloned {
    fn device(&self) -> &dyn ObjectDevice {
        &self.device
    }

    fn reopen(&mut self) {
        self.mounted.with(|harness| harness.reopen());
        self.again();
    }

    fn is_bare(&self) -> bool {
        false
    }

    fn can_crash(&self) -> bool {
        self.mounted.with(|harness| harness.can_crash())
    }

    fn crash(&mut self) {
        self.mounted.with(|harness| harness.crash());
        self.again();
    }
}

fn open(mounted: &Arc<Mounted>) -> Arc<Versioned<Mounted>> {
    Arc::new(Versioned::open(Arc::clone(mounted)).expect("it opens").expect("it can have snapshots"))
}

fn open_clone(device: &Arc<Versioned<Mounted>>, name: &str) -> CloneDevice<Mounted> {
    device.open_clone(name).expect("the clone is there")
}

/// A model that shows this, durably.
fn model_of(tree: &Tree) -> Oracle {
    let mut oracle = Oracle::default();
    for made in tree.making() {
        oracle.commit(&made, Durability::Durable).expect("the model takes it");
    }
    oracle
}

struct Site {
    device: CloneDevice<Mounted>,
    oracle: Oracle,
    base: String,
}

/// A device, its snapshots and clones, and what they have to show.
struct History {
    mounted: Arc<Mounted>,
    device: Arc<Versioned<Mounted>>,
    oracle: Oracle,
    taken: BTreeMap<String, Tree>,
    clones: BTreeMap<String, Site>,
    generator: Generator,
    names: u64,
}

/// Runs `steps` steps of a history on a device, with cuts of power if it can have any.
pub fn run(harness: impl Harness + Send + 'static, seed: u64, steps: u64) {
    let cuts = harness.can_crash();
    let mounted = Mounted::new(harness);
    let device = open(&mounted);
    let (oracle, generator) = (Oracle::default(), Generator::new(seed));
    let (taken, clones) = (BTreeMap::new(), BTreeMap::new());
    let mut history = History { mounted, device, oracle, taken, clones, generator, names: 0 };
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
        eprintln!("clones: seed {} failed in step {}", self.0, self.1);
    }
}

impl History {
    fn step(&mut self, cuts: bool) {
        match self.generator.prng.below(100) {
            0..=3 => self.take(),
            4..=6 => self.make(),
            7 => self.delete_clone(),
            8 => self.delete_snapshot(),
            9..=18 => {
                let budget = 1 + self.generator.prng.below(6) as u32;
                self.device.maintain(budget).expect("maintenance works");
            }
            19 => self.verify(),
            20 => {
                self.mounted.with(|harness| harness.reopen());
                self.synced();
                self.open_again();
                self.verify();
            }
            21 if cuts => self.cut(),
            22 | 23 => {
                self.device.sync(SyncScope::All).expect("a sync works");
                self.synced();
            }
            24 => self.sync_one(),
            25..=79 => self.commit_in_clone(),
            _ => self.commit(),
        }
    }

    /// Everything is durable: all are on one device.
    fn synced(&mut self) {
        self.oracle.sync(SyncScope::All).expect("the model can sync");
        self.clones.values_mut().for_each(|site| site.oracle.sync(SyncScope::All).expect("the model can sync"));
    }

    fn open_again(&mut self) {
        self.device = open(&self.mounted);
        for (name, site) in &mut self.clones {
            site.device = open_clone(&self.device, name);
        }
    }

    fn durability(&mut self) -> Durability {
        if self.generator.prng.chance(1, 6) { Durability::Durable } else { Durability::Buffered }
    }

    fn commit(&mut self) {
        let mut transaction = self.generator.transaction(self.device.as_ref());
        if self.generator.prng.chance(1, 12) {
            self.generator.spoil(&mut transaction);
        }
        let durability = self.durability();
        let expected = self.oracle.commit(&transaction, durability).map_err(|error| error.kind);
        let found = self.device.commit(transaction, durability).map_err(|error| error.kind);
        assert_eq!(found, expected, "answer to a commit");
        if found.is_ok() && durability == Durability::Durable {
            self.synced();
        }
    }

    fn some_clone(&mut self) -> Option<String> {
        let position = self.generator.prng.below(self.clones.len() as u64) as usize;
        self.clones.keys().nth(position).cloned()
    }

    fn commit_in_clone(&mut self) {
        let Some(name) = self.some_clone() else { return self.commit() };
        let durability = self.durability();
        let Some(site) = self.clones.get_mut(&name) else { return };
        let mut transaction = self.generator.transaction(&site.device);
        if self.generator.prng.chance(1, 12) {
            self.generator.spoil(&mut transaction);
        }
        // What was made or removed in the same transaction may be made again.
        if let Some(Mutation::Remove { object }) = transaction.mutations.last().cloned()
            && object < ObjectId(64)
            && self.generator.prng.chance(1, 2)
        {
            transaction.create(object, self.generator.hints()).write(object, 100, vec![7; 5000]);
        }
        let expected = site.oracle.commit(&transaction, durability).map_err(|error| error.kind);
        let found = site.device.commit(transaction.clone(), durability).map_err(|error| error.kind);
        assert_eq!(found, expected, "{name}: answer to a commit: {transaction:?}");
        if found.is_ok() && durability == Durability::Durable {
            self.synced();
        }
    }

    fn sync_one(&mut self) {
        let Some(name) = self.some_clone() else { return };
        let site = &self.clones[&name];
        let objects = site.device.list(ObjectId(0), 99).expect("a clone can be listed");
        let Some(object) = objects.get(self.generator.prng.below(objects.len() as u64 + 1) as usize) else { return };
        let scope = SyncScope::Object(*object);
        site.device.sync(scope).expect("a sync works");
        self.clones.get_mut(&name).map(|site| site.oracle.sync(scope)).expect("it is there").expect("a model can sync");
    }

    fn take(&mut self) {
        if self.taken.len() == MOST {
            return self.delete_snapshot();
        }
        self.names += 1;
        let name = format!("snapshot {}", self.names);
        let tree = dump(self.device.as_ref()).expect("the device can be read");
        self.device.take(&name, Timestamp::default()).expect("a snapshot is taken");
        self.synced();
        self.taken.insert(name, tree);
    }

    fn some_snapshot(&mut self) -> Option<String> {
        let position = self.generator.prng.below(self.taken.len() as u64) as usize;
        self.taken.keys().nth(position).cloned()
    }

    fn make(&mut self) {
        if self.clones.len() == MOST {
            return self.delete_clone();
        }
        let Some(base) = self.some_snapshot() else { return };
        self.names += 1;
        let name = format!("clone {}", self.names);
        self.device.make_clone(&name, &base, Timestamp::default()).expect("a clone is made");
        self.synced();
        let again = self.device.make_clone(&name, &base, Timestamp::default()).map(drop).map_err(|error| error.kind);
        assert_eq!(again, Err(ErrorKind::Exists));
        let oracle = model_of(&self.taken[&base]);
        self.clones.insert(name.clone(), Site { device: open_clone(&self.device, &name), oracle, base });
    }

    fn delete_clone(&mut self) {
        let Some(name) = self.some_clone() else { return };
        let site = self.clones.remove(&name).expect("it is there");
        self.device.delete_clone(&name, None).expect("it is deleted");
        self.synced();
        assert_eq!(site.device.stat(ObjectId(1)).map(drop).map_err(|error| error.kind), Err(ErrorKind::Stale));
        let refused = site.device.commit(Transaction::new(), Durability::Buffered);
        assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Stale));
    }

    fn delete_snapshot(&mut self) {
        let Some(name) = self.some_snapshot() else { return };
        let deleted = self.device.delete(&name).map_err(|error| error.kind);
        if self.clones.values().any(|site| site.base == name) {
            assert_eq!(deleted, Err(ErrorKind::Busy), "a clone stands on it");
            return;
        }
        assert_eq!(deleted, Ok(()));
        self.synced();
        self.taken.remove(&name);
    }

    /// The power goes.
    fn cut(&mut self) {
        self.mounted.with(|harness| harness.crash());
        self.open_again();
        let found = dump(self.device.as_ref()).expect("the device can be read");
        if let Err(difference) = self.oracle.crash(&found) {
            panic!("after a cut: {difference}");
        }
        for (name, site) in &mut self.clones {
            let found = dump(&site.device).expect("a clone can be read");
            if let Err(difference) = site.oracle.crash(&found) {
                panic!("{name} after a cut: {difference}");
            }
        }
        self.verify();
    }

    /// Everything is as it has to be.
    fn verify(&self) {
        let now = dump(self.device.as_ref()).expect("the device can be read");
        let model = dump(&self.oracle.model).expect("the model can be read");
        assert_eq!(now.difference(&model), None, "now");
        let names: Vec<_> = self.device.clones().into_iter().map(|one| one.name).collect();
        assert_eq!(names.len(), self.clones.len(), "{names:?}");
        for (name, site) in &self.clones {
            let found = dump(&site.device).expect("a clone can be read");
            let model = dump(&site.oracle.model).expect("the model can be read");
            assert_eq!(found.difference(&model), None, "{name}");
        }
        for (name, tree) in &self.taken {
            let view = self.device.view(name).expect("it is there");
            let found = dump(&view).expect("a snapshot can be read");
            assert_eq!(found.difference(tree), None, "{name}");
        }
    }

    /// Nothing is left of snapshots and clones once all are deleted.
    fn end(mut self) {
        self.verify();
        while !self.clones.is_empty() {
            self.delete_clone();
            self.verify();
        }
        while !self.taken.is_empty() {
            self.delete_snapshot();
        }
        while self.device.is_cleaning() {
            self.device.maintain(64).expect("maintenance works");
        }
        self.verify();
        let versions = self.mounted.list(ObjectId::FIRST_VERSION, 10).expect("the device can be read");
        assert_eq!(versions, []);
        assert_eq!(self.mounted.stat(ObjectId::SNAPSHOTS).map(drop).map_err(|it| it.kind), Err(ErrorKind::NotFound));
    }
}

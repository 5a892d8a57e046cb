//! What somebody does to the medium of an authenticated volume while nobody has it open: older and
//! other things in the place of those that were stored last, each sound for itself.

use super::vault::Vault;
use onode_object::{
    AttributeKey, AttributeKind, Durability, Error, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, RamDevice,
    Transaction,
};
use std::sync::Arc;

const NAME: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 7);
const OTHER: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 9);
const BYTES: usize = 9000;
/// Enough for several buckets.
const OBJECTS: u64 = 600;

/// All that a device has of an object.
#[derive(Clone)]
struct Image {
    content: Vec<u8>,
    attributes: Vec<(AttributeKey, Vec<u8>)>,
}

impl Image {
    fn of(ram: &RamDevice, object: ObjectId) -> Self {
        let mut content = vec![0; ram.stat(object).unwrap().size as usize];
        ram.read(object, 0, &mut content).unwrap();
        let first = AttributeKey::new(AttributeKind(0), 0);
        Self { content, attributes: ram.attributes(object, first, 1000).unwrap() }
    }

    fn set(&self, object: ObjectId, is_meant: impl Fn(AttributeKey) -> bool) -> Vec<Mutation> {
        let meant = self.attributes.iter().filter(|(key, _)| is_meant(*key));
        meant.map(|(key, value)| Mutation::SetAttribute { object, key: *key, value: value.clone() }).collect()
    }

    fn write(&self, object: ObjectId) -> Mutation {
        Mutation::Write { object, offset: 0, data: self.content.clone() }
    }
}

/// A volume as it was once and as it is now, below.
pub struct Scene {
    pub ram: Arc<RamDevice>,
    vault: Vault,
    first: u64,
    /// The objects that attacks are about, and what tells of all, as they were.
    old: [Image; 3],
}

impl Scene {
    /// The object that has changed since, one that has not, one that is gone.
    fn objects(&self) -> [ObjectId; 3] {
        [self.first + 300, self.first + 301, self.first + 302].map(ObjectId)
    }

    pub fn new() -> Self {
        let (ram, vault) = (Arc::new(RamDevice::new(64 << 20)), Vault::new());
        let device = vault.open_authenticated(&ram);
        let first = device.reserve_ids(OBJECTS).unwrap().0;
        for object in (first..first + OBJECTS).map(ObjectId) {
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default()).write(object, 0, vec![object.0 as u8; BYTES]);
            transaction.set_attribute(object, NAME, vec![1; 20]).set_attribute(object, OTHER, vec![2; 20]);
            device.commit(transaction, Durability::Durable).unwrap();
        }
        let (changed, gone) = (ObjectId(first + 300), ObjectId(first + 302));
        let old = [changed, gone, ObjectId::AUTHENTICATED].map(|object| Image::of(&ram, object));
        let mut transaction = Transaction::new();
        transaction.set_attribute(changed, NAME, vec![3; 20]).remove_attribute(changed, OTHER);
        transaction.write(changed, 5000, vec![4; 100]).remove(gone);
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        Self { ram, vault, first, old }
    }

    fn attack(&self, mutations: Vec<Mutation>) {
        self.ram.commit(Transaction { mutations }, Durability::Durable).unwrap();
    }

    /// Uses all that there is of an object.
    fn look(device: &dyn ObjectDevice, object: ObjectId) -> Result<(), Error> {
        device.stat(object)?;
        device.attribute(object, NAME)?;
        device.attributes(object, NAME, 10)?;
        device.read(object, 0, &mut [0; BYTES]).map(drop)
    }

    /// What the objects that an attack is about say, and whether all others are as ever.
    fn told(&self) -> Result<(), String> {
        let open = || self.vault.open_authenticated(&self.ram);
        // One that cannot be opened tells enough.
        let Ok(device) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(open)) else { return Ok(()) };
        let far = ObjectId(self.first);
        Self::look(&device, far).map_err(|error| format!("an object of another bucket: {error}"))?;
        let [changed, same, gone] = self.objects();
        for object in [changed, same] {
            match Self::look(&device, object) {
                Err(error) if error.kind == ErrorKind::Corrupt => return Ok(()),
                found => found.map_err(|error| format!("{object}: {error}"))?,
            }
        }
        match device.stat(gone).map_err(|error| error.kind) {
            Err(ErrorKind::Corrupt) => Ok(()),
            found => Err(format!("nothing was told; what is gone: {found:?}")),
        }
    }
}

/// Each way by itself on a volume of its own; the first of which nothing is told.
pub fn run() -> Result<(), String> {
    type Attack = fn(&Scene) -> Vec<Mutation>;
    let attacks: [(&str, Attack); 14] = [
        ("content is taken away", |scene| {
            vec![Mutation::Punch { object: scene.objects()[1], offset: 4096, length: 4096 }]
        }),
        ("an object is cut", |scene| vec![Mutation::Truncate { object: scene.objects()[1], size: 0 }]),
        ("an older attribute", |scene| scene.old[0].set(scene.objects()[0], |key| key == NAME)),
        ("an attribute that was removed", |scene| scene.old[0].set(scene.objects()[0], |key| key == OTHER)),
        ("an attribute is removed", |scene| vec![Mutation::RemoveAttribute { object: scene.objects()[0], key: NAME }]),
        ("an attribute of another object", |scene| scene.old[0].set(scene.objects()[1], |key| key == NAME)),
        ("older content", |scene| vec![scene.old[0].write(scene.objects()[0])]),
        ("older content and what tells of it", |scene| {
            let told = |key: AttributeKey| key.kind == AttributeKind::SERVICE && key != AttributeKey::AUTHENTICATED;
            let mut all = scene.old[0].set(scene.objects()[0], told);
            all.push(scene.old[0].write(scene.objects()[0]));
            all
        }),
        ("an older object", |scene| {
            let mut all = scene.old[0].set(scene.objects()[0], |_| true);
            all.push(scene.old[0].write(scene.objects()[0]));
            all
        }),
        ("an object in the place of another", |scene| {
            let object = scene.objects()[1];
            let mut all = vec![Mutation::Remove { object }, Mutation::Create { object, hints: Hints::default() }];
            all.extend(scene.old[0].set(object, |_| true));
            all.push(scene.old[0].write(object));
            all
        }),
        ("an object is removed", |scene| vec![Mutation::Remove { object: scene.objects()[1] }]),
        ("a removed object is back", |scene| {
            let object = scene.objects()[2];
            let mut all = vec![Mutation::Create { object, hints: Hints::default() }];
            all.extend(scene.old[1].set(object, |_| true));
            all.push(scene.old[1].write(object));
            all
        }),
        ("an older object, and what tells of it", |scene| {
            let mut all = scene.old[0].set(scene.objects()[0], |_| true);
            all.push(scene.old[0].write(scene.objects()[0]));
            all.extend(scene.old[2].set(ObjectId::AUTHENTICATED, |key| key.index < 1 << 60));
            all
        }),
        ("what tells of all is older", |scene| scene.old[2].set(ObjectId::AUTHENTICATED, |_| true)),
    ];
    match Scene::new().told() {
        Err(why) if why == "nothing was told; what is gone: Err(NotFound)" => {}
        found => return Err(format!("without an attack: {found:?}")),
    }
    for (what, attack) in attacks {
        let scene = Scene::new();
        scene.attack(attack(&scene));
        scene.told().map_err(|why| format!("{what}: {why}"))?;
    }
    Ok(())
}

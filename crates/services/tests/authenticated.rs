//! Authenticated volumes: what is told of older and other things on the medium, and what an owner
//! can do about it.

use crate::common::attacks;
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice, Transaction,
};
use onode_services::{Authenticated, MasterKey};
use std::sync::Arc;

const NAME: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 7);

fn master() -> MasterKey {
    MasterKey::new([7; 32])
}

fn open(ram: &Arc<RamDevice>) -> onode_object::Result<Authenticated<RamDevice>> {
    Authenticated::open(Arc::clone(ram), &master())
}

fn set(device: &impl ObjectDevice, object: ObjectId, value: u8) {
    let mut transaction = Transaction::new();
    transaction.set_attribute(object, NAME, vec![value; 10]);
    device.commit(transaction, Durability::Durable).unwrap();
}

/// A volume with objects in two buckets.
fn volume() -> (Arc<RamDevice>, Vec<ObjectId>) {
    let ram = Arc::new(RamDevice::new(16 << 20));
    let device = Authenticated::create(Arc::clone(&ram), &master()).unwrap();
    let first = device.reserve_ids(300).unwrap().0;
    let objects: Vec<_> = (first..first + 300).map(ObjectId).collect();
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.create(*object, Hints::default());
        device.commit(transaction, Durability::Durable).unwrap();
        set(&device, *object, 1);
    }
    (ram, objects)
}

#[test]
fn whatever_is_put_back_is_told() {
    attacks::run().unwrap();
}

#[test]
fn an_older_medium_is_told_by_an_anchor() {
    let (ram, objects) = volume();
    let anchors: Vec<_> = (2..5)
        .map(|value| {
            let device = open(&ram).unwrap();
            set(&device, objects[0], value);
            device.anchor()
        })
        .collect();
    let device = open(&ram).unwrap();
    assert_eq!(device.anchor(), anchors[2]);
    anchors.iter().for_each(|anchor| device.expect(anchor).unwrap());
    let (older, _) = volume();
    let older = open(&older).unwrap();
    for anchor in &anchors {
        assert_eq!(older.expect(anchor).map_err(|error| error.kind), Err(ErrorKind::Corrupt));
    }
    // As many changes, and not the same.
    set(&older, objects[1], 2);
    assert_eq!(older.anchor().changes, anchors[0].changes);
    assert_eq!(older.expect(&anchors[0]).map_err(|error| error.kind), Err(ErrorKind::Corrupt));
}

#[test]
fn another_key_opens_nothing() {
    let (ram, _) = volume();
    let opened = Authenticated::open(ram, &MasterKey::new([8; 32]));
    assert_eq!(opened.err().map(|error| error.kind), Some(ErrorKind::Corrupt));
}

#[test]
fn an_owner_may_take_what_there_is() {
    let (ram, objects) = volume();
    let (device, other) = Authenticated::open_accepting(Arc::clone(&ram), &master()).unwrap();
    assert_eq!((device.attribute(objects[5], NAME), other), (Ok(Some(vec![1; 10])), None));
    let before = device.anchor();
    drop(device);
    // Somebody changes one object and removes another.
    set(ram.as_ref(), objects[5], 9);
    let device = open(&ram).unwrap();
    assert_eq!((device.stat(objects[7]).is_ok(), device.health().worst()), (true, None));
    assert_eq!(device.stat(objects[5]).map_err(|error| error.kind), Err(ErrorKind::Corrupt));
    assert_eq!(device.health().conditions[0].code, onode_services::NOT_AUTHENTIC);
    let (device, other) = Authenticated::open_accepting(Arc::clone(&ram), &master()).unwrap();
    assert_eq!(other, Some(vec![objects[5]]));
    assert!(device.anchor().changes > before.changes);
    drop(device);
    let device = open(&ram).unwrap();
    assert_eq!(device.attribute(objects[5], NAME), Ok(Some(vec![9; 10])));
    set(&device, objects[6], 3);
    drop(device);
    // Without any sums.
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId::AUTHENTICATED);
    ram.commit(transaction, Durability::Durable).unwrap();
    assert!(open(&ram).is_err());
    let (_, other) = Authenticated::open_accepting(Arc::clone(&ram), &master()).unwrap();
    assert_eq!(other, Some(vec![ObjectId::AUTHENTICATED]));
    let device = open(&ram).unwrap();
    assert!(objects.iter().all(|object| device.stat(*object).is_ok()));
    assert_eq!(device.attribute(objects[6], NAME), Ok(Some(vec![3; 10])));
}

#[test]
fn what_tells_of_objects_goes_with_the_last_of_them() {
    let (ram, objects) = volume();
    let device = open(&ram).unwrap();
    let buckets =
        || ram.attributes(ObjectId::AUTHENTICATED, AttributeKey::new(AttributeKind(0), 0), 100).unwrap().len();
    let before = buckets();
    for object in objects {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Durable).unwrap();
    }
    assert!(before >= 3, "{before} sums");
    assert_eq!(buckets(), 1);
    assert_eq!((device.list(ObjectId(0), 10).unwrap(), device.space().objects), (vec![], 0));
    assert!(open(&ram).unwrap().list(ObjectId(0), 10).unwrap().is_empty());
}

#[test]
fn a_host_sees_and_sets_nothing_of_it() {
    let (ram, objects) = volume();
    let device = open(&ram).unwrap();
    let head = AttributeKey::AUTHENTICATED;
    assert_eq!(device.attribute(objects[0], head), Ok(None));
    assert_eq!(device.attributes(objects[0], head, 1), Ok(vec![]));
    assert_eq!(device.attributes(objects[0], NAME, 1).unwrap().len(), 1);
    assert!(!device.list(ObjectId(0), 1000).unwrap().contains(&ObjectId::AUTHENTICATED));
    assert_eq!(device.stat(ObjectId::AUTHENTICATED).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    let mut sets = Transaction::new();
    sets.set_attribute(objects[0], head, vec![1]);
    let mut removes = Transaction::new();
    removes.remove(ObjectId::AUTHENTICATED);
    let mut makes = Transaction::new();
    makes.create(ObjectId::AUTHENTICATED, Hints::default());
    for refused in [sets, removes, makes] {
        assert!(device.commit(refused, Durability::Durable).is_err());
    }
    let mut takes = Transaction::new();
    takes.remove_attribute(objects[0], head);
    device.commit(takes, Durability::Durable).unwrap();
    assert!(open(&ram).unwrap().stat(objects[0]).is_ok());
}

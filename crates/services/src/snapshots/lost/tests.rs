//! Snapshots and clones over a device some of whose objects were dropped.

use super::Dropped;
use crate::snapshots::Versioned;
use onode_base::Timestamp;
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, Mutation, ObjectDevice, ObjectId, RamDevice, Transaction,
};
use std::sync::Arc;

type Device = Versioned<RamDevice>;

const BYTES: usize = 20_000;

fn write(device: &dyn ObjectDevice, object: ObjectId, byte: u8) {
    let mut transaction = Transaction::new();
    if device.stat(object).is_err() {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, 0, vec![byte; BYTES]);
    transaction.set_attribute(object, AttributeKey::new(AttributeKind(40), 0), vec![byte]);
    device.commit(transaction, Durability::Durable).expect("it is written");
}

fn content(device: &dyn ObjectDevice, object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0xee; BYTES];
    let length = device.read(object, 0, &mut bytes).expect("it is read");
    bytes.truncate(length);
    bytes
}

/// Two objects, a snapshot with the bytes 1 of both, one with 2, a clone of the latter with 5, and
/// 3 now; what has changed since is kept.
fn volume() -> (Arc<RamDevice>, [ObjectId; 2]) {
    let inner = Arc::new(RamDevice::new(64 << 20));
    let device = open(&inner);
    let first = device.reserve_ids(2).expect("there are some");
    let objects = [first, ObjectId(first.0 + 1)];
    for (byte, name) in [(1, Some("one")), (2, Some("two")), (3, None)] {
        objects.iter().for_each(|object| write(device.as_ref(), *object, byte));
        if let Some(name) = name {
            device.take(name, Timestamp::default()).expect("it is taken");
        }
    }
    device.make_clone("copy", "two", Timestamp::default()).expect("it is made");
    write(&device.open_clone("copy").expect("it opens"), objects[0], 5);
    (inner, objects)
}

fn open(inner: &Arc<RamDevice>) -> Arc<Device> {
    Arc::new(Device::open(Arc::clone(inner)).expect("it opens").expect("it can have snapshots"))
}

/// Drops an object as a repair does; returns what that tells.
fn drop_object(inner: &RamDevice, object: ObjectId) -> Dropped {
    let mutations = vec![Mutation::Remove { object }];
    inner.commit(Transaction { mutations }, Durability::Durable).expect("it was there");
    let mut dropped = Dropped::default();
    dropped.add_objects(object..=object);
    dropped
}

fn names(device: &Device) -> (Vec<String>, Vec<String>) {
    let snapshots = device.snapshots().into_iter().map(|one| one.name);
    (snapshots.collect(), device.clones().into_iter().map(|one| one.name).collect())
}

/// What deleted ones kept can be removed, and nothing is left of all when all are deleted.
fn clean(device: &Arc<Device>, inner: &RamDevice) {
    while device.maintain(100).expect("it is cleaned").more {}
    for clone in device.clones() {
        device.delete_clone(&clone.name, None).expect("it is there");
    }
    for snapshot in device.snapshots() {
        device.delete(&snapshot.name).expect("it is there");
    }
    while device.maintain(100).expect("it is cleaned").more {}
    assert_eq!(inner.list(ObjectId::FIRST_VERSION, 10).expect("it is listed"), []);
    assert_eq!(inner.stat(ObjectId::SNAPSHOTS).map_err(|error| error.kind).err(), Some(ErrorKind::NotFound));
}

#[test]
fn what_a_sound_volume_has_stays() {
    let (inner, objects) = volume();
    assert_eq!(Device::settle_dropped(&inner, &Dropped::default()).expect("it is settled"), Vec::<String>::new());
    let device = open(&inner);
    assert_eq!(names(&device), (vec!["one".into(), "two".into()], vec!["copy".into()]));
    let shown = device.view("one").expect("it is there");
    assert_eq!(content(&shown, objects[1]), [1; BYTES]);
    clean(&device, &inner);
}

#[test]
fn a_snapshot_that_lost_a_version_is_given_up_and_no_other() {
    let (inner, objects) = volume();
    let version = objects[1].version(1).expect("it has one");
    let told = Device::settle_dropped(&inner, &drop_object(&inner, version)).expect("it is settled");
    assert!(told.len() == 1 && told[0].contains("snapshot `one`"), "{told:?}");
    let device = open(&inner);
    assert_eq!(names(&device), (vec!["two".into()], vec!["copy".into()]));
    let shown = device.view("two").expect("it is there");
    assert_eq!(content(&shown, objects[1]), [2; BYTES]);
    clean(&device, &inner);
}

#[test]
fn what_stands_on_a_lost_version_of_a_later_snapshot_is_given_up() {
    let (inner, objects) = volume();
    let version = objects[1].version(2).expect("it has one");
    let told = Device::settle_dropped(&inner, &drop_object(&inner, version)).expect("it is settled");
    assert_eq!(told.len(), 3, "{told:?}");
    let device = open(&inner);
    assert_eq!(names(&device), (Vec::new(), Vec::new()));
    assert_eq!(content(device.as_ref(), objects[1]), [3; BYTES]);
    clean(&device, &inner);
}

#[test]
fn a_clone_that_lost_what_it_has_is_given_up_alone() {
    let (inner, objects) = volume();
    let version = objects[0].in_clone(3).expect("it has one");
    let told = Device::settle_dropped(&inner, &drop_object(&inner, version)).expect("it is settled");
    assert!(told.len() == 1 && told[0].contains("clone `copy`"), "{told:?}");
    let device = open(&inner);
    assert_eq!(names(&device), (vec!["one".into(), "two".into()], Vec::new()));
    clean(&device, &inner);
}

#[test]
fn a_version_that_says_nothing_of_itself_is_lost() {
    let (inner, objects) = volume();
    let version = objects[0].version(1).expect("it has one");
    let key = AttributeKey::new(AttributeKind::SNAPSHOT, 0);
    let mutations = vec![Mutation::RemoveAttribute { object: version, key }];
    inner.commit(Transaction { mutations }, Durability::Durable).expect("it had one");
    let told = Device::settle_dropped(&inner, &Dropped::default()).expect("it is settled");
    assert!(told.len() == 1 && told[0].contains("snapshot `one`"), "{told:?}");
    clean(&open(&inner), &inner);
}

#[test]
fn a_lost_list_is_made_anew_of_the_versions() {
    let (inner, objects) = volume();
    let list = ObjectId(0).version(1).expect("it has one");
    let told = Device::settle_dropped(&inner, &drop_object(&inner, list)).expect("it is settled");
    assert_eq!(told, Vec::<String>::new(), "no version can be lost");
    let device = open(&inner);
    let shown = device.view("one").expect("it is there");
    assert_eq!(content(&shown, objects[0]), [1; BYTES]);
    clean(&device, &inner);
    // Where versions may be gone with it nobody knows which.
    let (inner, objects) = volume();
    let mut dropped = drop_object(&inner, list);
    let version = objects[0].version(1).expect("it has one");
    dropped.add_objects(version..=version);
    let told = Device::settle_dropped(&inner, &dropped).expect("it is settled");
    assert!(told.len() == 1 && told[0].contains("snapshot `one`"), "{told:?}");
    clean(&open(&inner), &inner);
}

#[test]
fn without_the_records_all_are_given_up() {
    let (inner, objects) = volume();
    let told = Device::settle_dropped(&inner, &drop_object(&inner, ObjectId::SNAPSHOTS)).expect("it is settled");
    assert!(told.len() == 1 && told[0].contains("all snapshots"), "{told:?}");
    assert_eq!(inner.list(ObjectId::FIRST_VERSION, 10).expect("it is listed"), []);
    assert_eq!(content(open(&inner).as_ref(), objects[0]), [3; BYTES]);
}

#[test]
fn dropped_content_of_a_snapshot_is_a_hole_there() {
    let (inner, objects) = volume();
    let version = objects[0].version(1).expect("it has one");
    let mutations = vec![Mutation::Punch { object: version, offset: 4096, length: 4096 }];
    inner.commit(Transaction { mutations }, Durability::Durable).expect("it is there");
    let mut dropped = Dropped::default();
    dropped.add_content(version, 4096..8192);
    assert_eq!(Device::settle_dropped(&inner, &dropped).expect("it is settled"), Vec::<String>::new());
    let device = open(&inner);
    let shown = content(&device.view("one").expect("it is there"), objects[0]);
    assert_eq!((&shown[..4096], &shown[8192..]), (&[1; 4096][..], &[1; BYTES - 8192][..]));
    assert_eq!(shown[4096..8192], [0; 4096], "what came later is shown");
    clean(&device, &inner);
}

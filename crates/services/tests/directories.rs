//! Keys of directories: what they keep while they are locked, and what they do not.

use crate::common::directories::lock_and_look;
use crate::common::keyed::{make_key, secret};
use crate::common::secrecy::{self, HOLDERS, Witness, made, opened};
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice, Temperature,
    Transaction,
};
use onode_services::{Cost, DirectoryKeys, KeyHeader, MasterKey, NewSlot, Secret, Staged};
use std::sync::Arc;

const INODE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);
const NAME: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 77);

fn keyed(number: u32) -> Hints {
    Hints { encryption_key: number, ..Hints::default() }
}

fn slot(secret: &Secret, byte: u8) -> NewSlot<'_> {
    NewSlot { secret, label: "desk", cost: Cost::LEAST, salt: [byte; 16] }
}

#[test]
fn what_a_locked_key_keeps_cannot_be_read_and_the_rest_can() {
    lock_and_look().unwrap();
}

#[test]
fn a_key_outlives_mounts_and_its_number_is_never_used_again() {
    let ram = Arc::new(RamDevice::with_crash_model(1 << 20));
    let device = made(Arc::clone(&ram));
    assert!(device.keys().unwrap().is_empty() && !device.has_directory_keys());
    let first = make_key(&device, 1);
    let second = device.create(MasterKey::new([2; 32]), &slot(&secrecy::secret(9), 2)).unwrap();
    assert_eq!((first, second), (1, 2));
    ram.crash();
    let device = opened(Arc::clone(&ram)).unwrap();
    assert!(device.has_directory_keys());
    let keys = device.keys().unwrap();
    assert_eq!(keys.iter().map(|key| (key.number, key.is_unlocked)).collect::<Vec<_>>(), [(1, false), (2, false)]);
    assert_eq!(keys[1].slots[0].label(), "desk");
    // Those of the volume are others.
    let header = KeyHeader::load(ram.as_ref(), &HOLDERS).unwrap().expect("it is encrypted");
    assert_eq!((header.slots().len(), header.unknown()), (1, &[][..]));
    assert!(header.slots().iter().all(|slot| slot.directory_key() == 0));
    // A secret opens what it opens, and no other.
    assert_eq!(device.unlock(Some(2), &secret()).map_err(|error| error.kind), Err(ErrorKind::KeyNeeded));
    assert_eq!(device.unlock(None, &secrecy::secret(3)).map_err(|error| error.kind), Err(ErrorKind::KeyNeeded));
    assert_eq!(device.unlock(Some(3), &secret()).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    assert_eq!(device.unlock(None, &secret()).unwrap(), [1]);
    assert_eq!(device.unlock(Some(2), &secrecy::secret(9)).unwrap(), [2]);
    // The last slot goes only on purpose, and then the key is gone.
    let id = device.keys().unwrap()[1].slots[0].id();
    assert_eq!(device.change(2, None, &[id], false).map_err(|error| error.kind), Err(ErrorKind::Invalid));
    assert_eq!(device.change(1, None, &[id], true).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    assert_eq!(device.change(2, None, &[id], true).unwrap(), None);
    ram.crash();
    let device = opened(Arc::clone(&ram)).unwrap();
    assert_eq!(device.keys().unwrap().len(), 1);
    assert_eq!(device.create(MasterKey::new([4; 32]), &slot(&secret(), 4)).unwrap(), 3);
}

#[test]
fn slots_of_a_key_are_added_and_removed_while_it_is_unlocked() {
    let ram = Arc::new(RamDevice::with_crash_model(1 << 20));
    let device = made(Arc::clone(&ram));
    let number = make_key(&device, 1);
    let old = device.keys().unwrap()[0].slots[0].id();
    let words = Secret::passphrase(b"horse".to_vec()).unwrap();
    device.lock(number);
    let refused = device.change(number, Some(&slot(&words, 2)), &[], false);
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::KeyNeeded));
    device.unlock(Some(number), &secret()).unwrap();
    let new = device.change(number, Some(&slot(&words, 2)), &[old], false).unwrap().expect("a slot");
    assert_ne!(new, old);
    ram.crash();
    let device = opened(Arc::clone(&ram)).unwrap();
    assert!(device.unlock(Some(number), &secret()).is_err());
    assert_eq!(device.unlock(None, &words).unwrap(), [number]);
}

#[test]
fn keys_of_directories_outlive_either_object_that_has_them() {
    for lost in HOLDERS {
        let ram = Arc::new(RamDevice::new(1 << 20));
        let number = make_key(&made(Arc::clone(&ram)), 1);
        let mut transaction = Transaction::new();
        transaction.remove(lost);
        ram.commit(transaction, Durability::Durable).unwrap();
        let device = opened(Arc::clone(&ram)).unwrap();
        assert_eq!(device.unlock(None, &secret()).unwrap(), [number]);
        // It says so again when it is made anew, and the other one can go.
        let other = HOLDERS[usize::from(lost == HOLDERS[0])];
        let mut transaction = Transaction::new();
        transaction.create(lost, Hints::default());
        device.commit(transaction, Durability::Durable).unwrap();
        let mut transaction = Transaction::new();
        transaction.remove(other);
        ram.commit(transaction, Durability::Durable).unwrap();
        let device = opened(Arc::clone(&ram)).unwrap();
        assert!(device.has_directory_keys());
        assert_eq!(device.unlock(None, &secret()).unwrap(), [number]);
    }
}

#[test]
fn an_object_gets_a_key_before_it_has_content_and_keeps_it() {
    let device = made(Arc::new(RamDevice::new(1 << 20)));
    let (one, other) = (make_key(&device, 1), make_key(&device, 2));
    let object = device.reserve_ids(1).unwrap();
    let commit = |change: &dyn Fn(&mut Transaction)| {
        let mut transaction = Transaction::new();
        change(&mut transaction);
        device.commit(transaction, Durability::Durable).map_err(|error| error.kind)
    };
    commit(&|it| _ = it.create(object, Hints::default()).set_attribute(object, INODE, vec![1])).unwrap();
    commit(&|it| _ = it.set_hints(object, keyed(one))).unwrap();
    commit(&|it| _ = it.set_attribute(object, NAME, vec![2]).write(object, 0, vec![3; 5000])).unwrap();
    // Who does not speak of the key takes none away.
    commit(&|it| _ = it.set_hints(object, Hints::default())).unwrap();
    assert_eq!(device.stat(object).unwrap().hints.encryption_key, one);
    assert_eq!(commit(&|it| _ = it.set_hints(object, keyed(other))), Err(ErrorKind::Invalid));
    // What has content gets none any more.
    let plain = device.reserve_ids(1).unwrap();
    commit(&|it| _ = it.create(plain, Hints::default()).write(plain, 0, vec![3])).unwrap();
    assert_eq!(commit(&|it| _ = it.set_hints(plain, keyed(one))), Err(ErrorKind::Invalid));
    // A key that is locked, or is none, keeps nothing new.
    let new = device.reserve_ids(1).unwrap();
    assert_eq!(commit(&|it| _ = it.create(new, keyed(77))), Err(ErrorKind::KeyNeeded));
    device.lock(one);
    assert_eq!(commit(&|it| _ = it.create(new, keyed(one))), Err(ErrorKind::KeyNeeded));
    assert_eq!(commit(&|it| _ = it.set_attribute(object, NAME, vec![4])), Err(ErrorKind::KeyNeeded));
    assert_eq!(commit(&|it| _ = it.write(object, 0, vec![4])), Err(ErrorKind::KeyNeeded));
    assert_eq!(device.attribute(object, INODE).unwrap(), Some(vec![1]));
    assert_eq!(device.stat(object).unwrap().size, 5000);
    // Cut to nothing and removed it can be.
    commit(&|it| _ = it.set_attribute(object, INODE, vec![5]).truncate(object, 0)).unwrap();
    commit(&|it| _ = it.remove(object)).unwrap();
    assert!(device.stat(object).is_err());
}

#[test]
fn the_key_of_the_volume_alone_opens_nothing_of_what_is_stored() {
    // Whoever has the medium and the key of the volume has this device.
    let witness = Witness::new();
    let number = {
        let device = made(Arc::clone(&witness));
        let number = make_key(&device, 1);
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(30), keyed(number)).write(ObjectId(30), 0, vec![7; 100]);
        device.commit(transaction, Durability::Durable).unwrap();
        number
    };
    let device = opened(Arc::clone(&witness)).unwrap();
    let mut bytes = [1; 100];
    assert_eq!(device.read(ObjectId(30), 0, &mut bytes).map_err(|error| error.kind), Err(ErrorKind::KeyNeeded));
    device.unlock(Some(number), &secret()).unwrap();
    assert_eq!(device.read(ObjectId(30), 0, &mut bytes), Ok(100));
    assert_eq!(bytes, [7; 100]);
}

#[test]
fn no_object_gets_a_key_while_transactions_are_open_but_what_one_of_them_made() {
    let device = Arc::new(made(Arc::new(RamDevice::new(1 << 20))));
    let key = make_key(&device, 1);
    let staged = Staged::open(Arc::clone(&device), Arc::new(())).unwrap().0;
    let commit = |on: &dyn ObjectDevice, change: &dyn Fn(&mut Transaction)| {
        let mut transaction = Transaction::new();
        change(&mut transaction);
        on.commit(transaction, Durability::Durable).map_err(|error| error.kind)
    };
    let on: &dyn ObjectDevice = staged.as_ref();
    let (old, keyed_before) = (on.reserve_ids(1).unwrap(), on.reserve_ids(1).unwrap());
    commit(on, &|it| _ = it.create(old, Hints::default()).create(keyed_before, keyed(key))).unwrap();
    let view = staged.begin().unwrap();
    assert_eq!(commit(on, &|it| _ = it.set_hints(old, keyed(key))), Err(ErrorKind::Busy));
    assert_eq!(commit(&view, &|it| _ = it.set_hints(old, keyed(key))), Err(ErrorKind::NotSupported));
    // Other hints are nobody's secret, and what has the key keeps it.
    let cold = Hints { temperature: Temperature::Cold, ..keyed(key) };
    commit(on, &|it| _ = it.set_hints(keyed_before, cold)).unwrap();
    commit(&view, &|it| _ = it.set_hints(old, Hints { temperature: Temperature::Cold, ..Hints::default() })).unwrap();
    // Of what the view made nobody else knows.
    let new = on.reserve_ids(1).unwrap();
    commit(&view, &|it| _ = it.create(new, Hints::default())).unwrap();
    commit(&view, &|it| _ = it.set_hints(new, keyed(key))).unwrap();
    commit(&view, &|it| _ = it.set_attribute(new, NAME, vec![2])).unwrap();
    view.make_true(Durability::Durable).unwrap();
    assert_eq!(on.stat(new).unwrap().hints.encryption_key, key);
    assert_eq!(on.attribute(new, NAME).unwrap(), Some(vec![2]));
    device.lock(key);
    assert_eq!(on.attribute(new, NAME).map_err(|error| error.kind), Err(ErrorKind::KeyNeeded));
    device.unlock(Some(key), &secret()).unwrap();
    commit(on, &|it| _ = it.set_hints(old, keyed(key))).unwrap();
}

#[test]
fn what_takes_the_place_of_an_object_with_a_key_needs_none() {
    let ram = Arc::new(RamDevice::new(1 << 20));
    let device = made(Arc::clone(&ram));
    let (key, object) = (make_key(&device, 1), device.reserve_ids(1).unwrap());
    let mut transaction = Transaction::new();
    transaction.create(object, keyed(key)).set_attribute(object, NAME, vec![1]).write(object, 0, vec![1; 5000]);
    device.commit(transaction, Durability::Durable).unwrap();
    let mut transaction = Transaction::new();
    transaction.remove(object).create(object, Hints::default()).set_attribute(object, NAME, vec![2]);
    device.commit(transaction, Durability::Durable).unwrap();
    for device in [device, opened(ram).unwrap()] {
        device.lock(key);
        let stat = device.stat(object).unwrap();
        assert_eq!((stat.hints.encryption_key, stat.size), (0, 0));
        assert_eq!(device.attribute(object, NAME).unwrap(), Some(vec![2]));
        let mut transaction = Transaction::new();
        transaction.write(object, 0, vec![3; 100]);
        device.commit(transaction, Durability::Durable).unwrap();
        let mut bytes = [0; 200];
        assert_eq!(device.read(object, 0, &mut bytes), Ok(100));
        assert_eq!(bytes[..100], [3; 100]);
        let mut transaction = Transaction::new();
        transaction.truncate(object, 0);
        device.commit(transaction, Durability::Durable).unwrap();
    }
}

//! Encrypted volumes: what can be seen of them, who can open them, and what is told of damage.

mod common;

use common::secrecy::{HOLDERS, Witness, damage, made, master, nonces, opened, secret, slot};
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, RamDevice, Transaction,
};
use onode_services::{Encrypted, KeyHeader, MasterKey, Session};
use std::sync::Arc;

const NAME: AttributeKey = AttributeKey::new(AttributeKind::ENTRY, 77);

#[test]
fn no_byte_of_the_host_and_no_exact_size_can_be_seen_below() {
    let witness = Witness::new();
    let device = made(Arc::clone(&witness));
    let object = device.reserve_ids(1).unwrap();
    let (text, name) = (b"a secret text of some length", b"the name of a file");
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 5000, text.to_vec());
    transaction.set_attribute(object, NAME, name.to_vec());
    device.commit(transaction, Durability::Durable).unwrap();
    for piece in [&text[..8], &name[..8]] {
        assert!(!witness.has_seen(piece), "{:?} stands below", String::from_utf8_lossy(piece));
    }
    assert_eq!(device.stat(object).unwrap().size, 5000 + text.len() as u64);
    assert_eq!(witness.ram.stat(object).unwrap().size, 8192);
    // The same content has other bytes elsewhere, and anew in the same place.
    let stored = || {
        let mut bytes = vec![0; 4096];
        witness.ram.read(object, 4096, &mut bytes).unwrap();
        bytes
    };
    let before = stored();
    let mut transaction = Transaction::new();
    transaction.write(object, 5000, text.to_vec());
    device.commit(transaction, Durability::Durable).unwrap();
    assert_ne!(before, stored());
}

#[test]
fn no_nonce_is_used_twice_across_crashes() {
    for seed in 1..6 {
        let count = nonces(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(count > 100, "only {count} nonces");
    }
}

#[test]
fn damage_is_told_of_exactly_the_blocks_that_have_it() {
    damage().unwrap();
}

#[test]
fn a_wrong_key_opens_nothing_and_writes_nothing() {
    let witness = Witness::new();
    drop(made(Arc::clone(&witness)));
    let before = witness.seen.lock().len();
    let header = KeyHeader::load(witness.as_ref(), &HOLDERS).unwrap().expect("it is encrypted");
    assert_eq!(header.unlock(&secret(2)).err().map(|error| error.kind), Some(ErrorKind::KeyNeeded));
    let other = MasterKey::new([3; 32]);
    let refused = Encrypted::open(Arc::clone(&witness), header, &other, Session::new([0; 32])).err();
    assert_eq!(refused.map(|error| error.kind), Some(ErrorKind::KeyNeeded));
    assert_eq!(witness.seen.lock().len(), before);
    assert!(KeyHeader::load(&RamDevice::new(1 << 20), &HOLDERS).unwrap().is_none());
}

#[test]
fn keys_are_added_and_removed_and_the_last_one_stays() {
    let ram = Arc::new(RamDevice::with_crash_model(1 << 20));
    drop(made(Arc::clone(&ram)));
    let load = || KeyHeader::load(ram.as_ref(), &HOLDERS).unwrap().expect("it is encrypted");
    let mut header = load();
    let id = header.free_id().unwrap();
    header.change(ram.as_ref(), Some(slot(id, 2)), &[]).unwrap();
    ram.crash();
    for byte in [1, 2] {
        assert!(load().unlock(&secret(byte)).is_ok(), "key {byte}");
    }
    header.change(ram.as_ref(), None, &[0]).unwrap();
    ram.crash();
    assert!(load().unlock(&secret(1)).is_err() && load().unlock(&secret(2)).is_ok());
    assert_eq!(header.change(ram.as_ref(), None, &[id]).map_err(|error| error.kind), Err(ErrorKind::Invalid));
    assert_eq!(header.change(ram.as_ref(), None, &[9]).map_err(|error| error.kind), Err(ErrorKind::NotFound));
    // One transaction puts another in its place.
    header.change(ram.as_ref(), Some(slot(5, 3)), &[id]).unwrap();
    assert!(load().unlock(&secret(2)).is_err() && load().unlock(&secret(3)).is_ok());
    for _ in header.slots().len()..onode_services::SLOTS_MAX {
        let id = header.free_id().unwrap();
        header.change(ram.as_ref(), Some(slot(id, 4)), &[]).unwrap();
    }
    assert_eq!(header.free_id().map_err(|error| error.kind), Err(ErrorKind::NoSpace));
    assert_eq!(load().slots().len(), onode_services::SLOTS_MAX);
}

#[test]
fn the_key_slots_outlive_either_object_that_has_them() {
    for lost in HOLDERS {
        let ram = Arc::new(RamDevice::new(1 << 20));
        let device = made(Arc::clone(&ram));
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![7; 10]);
        device.commit(transaction, Durability::Durable).unwrap();
        let mut transaction = Transaction::new();
        transaction.remove(lost);
        ram.commit(transaction, Durability::Durable).unwrap();
        let device = opened(Arc::clone(&ram)).unwrap();
        let mut bytes = [0; 10];
        assert_eq!(device.read(object, 0, &mut bytes), Ok(10));
        assert_eq!(bytes, [7; 10]);
        // It says so again when it is made anew.
        let mut transaction = Transaction::new();
        transaction.create(lost, Hints::default());
        device.commit(transaction, Durability::Durable).unwrap();
        assert!(KeyHeader::load(ram.as_ref(), &[lost]).unwrap().is_some());
    }
}

#[test]
fn a_volume_for_reading_seals_nothing() {
    let ram = Arc::new(RamDevice::new(1 << 20));
    let device = made(Arc::clone(&ram));
    assert_eq!(device.header().epoch(), 1);
    for epoch in 2..5 {
        assert_eq!(opened(Arc::clone(&ram)).unwrap().header().epoch(), epoch);
    }
    let _ = master();
}

/// Attributes of the service belong to nobody else.
#[test]
fn the_host_neither_sees_nor_sets_what_the_service_keeps() {
    let device = made(Arc::new(RamDevice::new(1 << 20)));
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 9000]);
    device.commit(transaction, Durability::Durable).unwrap();
    let all = device.attributes(object, AttributeKey::new(AttributeKind(0), 0), 99).unwrap();
    assert!(all.is_empty(), "{all:?}");
    assert_eq!(device.attribute(object, AttributeKey::ENCRYPTED), Ok(None));
    let mut transaction = Transaction::new();
    transaction.set_attribute(object, AttributeKey::ENCRYPTED, vec![1]);
    let refused = device.commit(transaction, Durability::Durable);
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Invalid));
    let mut transaction = Transaction::new();
    transaction.remove_attribute(object, AttributeKey::ENCRYPTED);
    device.commit(transaction, Durability::Durable).unwrap();
    assert_eq!(device.read(object, 8999, &mut [0]), Ok(1));
    let gone = ObjectId(4000);
    assert_eq!(device.read(gone, 0, &mut [0]).map_err(|error| error.kind), Err(ErrorKind::NotFound));
}

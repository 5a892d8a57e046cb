//! Encrypted volumes: what can be seen of them, who can open them, and what is told of damage.

use crate::common::secrecy::{HOLDERS, Witness, damage, long_attributes, made, nonces, opened, secret, slot};
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
fn long_attributes_take_each_others_place() {
    long_attributes().unwrap();
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
    let id = header.free_id(&[]).unwrap();
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
        let id = header.free_id(&[]).unwrap();
        header.change(ram.as_ref(), Some(slot(id, 4)), &[]).unwrap();
    }
    assert_eq!(header.free_id(&[]).map_err(|error| error.kind), Err(ErrorKind::NoSpace));
    // One that takes the place of another finds it free.
    let old = header.slots()[3].id();
    let new = header.free_id(&[old]).unwrap();
    header.change(ram.as_ref(), Some(slot(new, 6)), &[old]).unwrap();
    assert!(load().unlock(&secret(6)).is_ok());
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
fn every_mount_that_may_write_has_an_epoch_of_its_own() {
    let ram = Arc::new(RamDevice::new(1 << 20));
    let device = made(Arc::clone(&ram));
    assert_eq!(device.header().epoch(), 1);
    for epoch in 2..5 {
        assert_eq!(opened(Arc::clone(&ram)).unwrap().header().epoch(), epoch);
    }
}

#[test]
fn a_volume_for_reading_seals_nothing() {
    let witness = Witness::new();
    let device = made(Arc::clone(&witness));
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 10]);
    device.commit(transaction, Durability::Durable).unwrap();
    let before = witness.seen.lock().len();
    witness.is_read_only.store(true, std::sync::atomic::Ordering::Relaxed);
    let device = opened(Arc::clone(&witness)).unwrap();
    assert_eq!(device.read(object, 0, &mut [0; 10]), Ok(10));
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![8; 10]);
    let refused = device.commit(transaction, Durability::Durable);
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::ReadOnly));
    assert_eq!(witness.seen.lock().len(), before);
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

/// A key in the place of another, cut at every operation of a chip: the old one or the new one
/// opens the volume, and what was written before is there.
#[test]
fn at_every_cut_of_a_change_the_old_key_or_the_new_one_opens() {
    use onode_flash::{FlashDevice, FormatOptions, MountOptions};
    use onode_media::sim::RecordedNand;
    use onode_media::{Damage, Geometry, SimNand, SimOptions};

    let geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 40, chips: 1 };
    let chip = RecordedNand::new(SimNand::new(geometry, SimOptions::default()).unwrap(), true);
    let flash =
        Arc::new(FlashDevice::format(chip.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap());
    let device = made(Arc::clone(&flash));
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 10_000]);
    device.commit(transaction, Durability::Durable).unwrap();
    drop(device);
    let first = chip.position();
    let mut header = KeyHeader::load(flash.as_ref(), &HOLDERS).unwrap().expect("it is encrypted");
    header.change(flash.as_ref(), Some(slot(1, 2)), &[0]).unwrap();
    header.change(flash.as_ref(), Some(slot(2, 3)), &[1]).unwrap();
    let recording = chip.take_recording();
    let mut opened_by = std::collections::BTreeSet::new();
    for position in recording.kept().filter(|position| *position >= first) {
        for damage in [Damage::Nothing, Damage::Complete, Damage::RandomBits] {
            let (operation, mut left) = recording.operation(position).zip(recording.before(position)).unwrap();
            if !damage.fits(operation) {
                continue;
            }
            left.apply_cut(operation, damage, position as u64).unwrap();
            let flash = FlashDevice::mount(RecordedNand::new(left, false), &MountOptions::default()).unwrap();
            let header = KeyHeader::load(&flash, &HOLDERS).unwrap().expect("it is encrypted");
            let fitting: Vec<u8> = (1..=3).filter(|byte| header.unlock(&secret(*byte)).is_ok()).collect();
            assert_eq!(fitting.len(), 1, "operation {position}, {damage:?}: keys {fitting:?}");
            opened_by.insert(fitting[0]);
            let (master, _) = header.unlock(&secret(fitting[0])).unwrap();
            let device = Encrypted::open(Arc::new(flash), header, &master, Session::new([5; 32])).unwrap();
            let mut bytes = vec![0; 10_000];
            assert_eq!(device.read(object, 0, &mut bytes), Ok(10_000));
            assert!(bytes == [7; 10_000]);
        }
    }
    assert_eq!(opened_by.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

/// Whatever stands in the place of the key slots, they are read without harm or refused.
#[test]
fn hostile_key_slots_are_refused() {
    const FIRST: u64 = (3 << 62) + (1 << 60);
    let ram = Arc::new(RamDevice::new(1 << 24));
    drop(made(Arc::clone(&ram)));
    let sound: Vec<(AttributeKey, Vec<u8>)> =
        ram.attributes(HOLDERS[0], AttributeKey::VOLUME_ENCRYPTED, 9).unwrap().into_iter().collect();
    let mut prng = onode_base::Prng::new(3);
    for _ in 0..2000 {
        let mut transaction = Transaction::new();
        for (key, value) in &sound {
            let mut value = value.clone();
            match prng.below(4) {
                0 => value.truncate(prng.below(value.len() as u64 + 1) as usize),
                1 => value.extend((0..prng.below(80)).map(|_| prng.next_u64() as u8).collect::<Vec<_>>()),
                2 if !value.is_empty() => {
                    let at = prng.below(value.len() as u64) as usize;
                    value[at] = prng.next_u64() as u8;
                }
                _ => {}
            }
            transaction.set_attribute(HOLDERS[0], *key, value);
        }
        let far = AttributeKey::new(AttributeKind::SERVICE, FIRST + prng.next_u64() % (1 << 40));
        transaction.set_attribute(HOLDERS[0], far, vec![1; prng.below(100) as usize]);
        ram.commit(transaction, Durability::Buffered).unwrap();
        match KeyHeader::load(ram.as_ref(), &HOLDERS[..1]) {
            Ok(Some(header)) => match header.unlock(&secret(1)) {
                Ok((key, _)) => drop(Encrypted::open(Arc::clone(&ram), header, &key, Session::new([0; 32]))),
                Err(error) => {
                    assert!(matches!(error.kind, ErrorKind::KeyNeeded | ErrorKind::Invalid), "{error}");
                }
            },
            Ok(None) => panic!("nothing says any more that the volume is encrypted"),
            Err(error) => assert!(matches!(error.kind, ErrorKind::Corrupt | ErrorKind::NotSupported), "{error}"),
        }
        let mut transaction = Transaction::new();
        transaction.remove_attribute(HOLDERS[0], far);
        ram.commit(transaction, Durability::Buffered).unwrap();
    }
}

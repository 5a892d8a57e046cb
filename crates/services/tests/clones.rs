//! Clones of snapshots over each kind of device that can have them.

use crate::common::clones::{Cloned, run};
use crate::common::pool::{Mounted, Pooled, Ram};
use crate::snapshots::pages;
use crate::{flash, scm, tier};
use onode_base::{Prng, Timestamp};
use onode_object::{
    AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, RamDevice, SyncScope, Transaction,
};
use onode_services::Versioned;
use std::sync::Arc;

const BYTES: u64 = 24 << 20;

/// With room for what a volume with snapshots keeps free, and for what tells of objects.
const fn with_reserve(bytes: u64) -> u64 {
    bytes + bytes / 16 + (64 << 10)
}

onode_object::conformance!(of_memory, |bytes| Cloned::over(Ram::holding(with_reserve(bytes))));
onode_object::conformance!(of_flash, |bytes| {
    Cloned::over(flash::Flash::holding(flash::SMALL, with_reserve(bytes)))
});
onode_object::conformance!(of_storage_class_memory, |bytes| {
    Cloned::over(scm::Scm::holding(16 << 10, with_reserve(bytes)))
});
onode_object::conformance!(of_two_disks, |bytes| {
    Cloned::over(tier::Pair::with(with_reserve(bytes), 12 << 20, onode_tier::MountOptions::default()))
});

#[test]
fn histories_over_memory() {
    for seed in 1..=4 {
        run(Ram::holding(BYTES), seed, 1_000);
    }
}

#[test]
fn histories_over_flash() {
    for seed in 1..=2 {
        run(flash::Flash::holding(flash::SMALL, BYTES), seed, 1_000);
    }
}

#[test]
fn histories_over_two_disks() {
    for seed in 1..=2 {
        run(tier::Pair::with(BYTES, 12 << 20, onode_tier::MountOptions::default()), seed, 1_200);
    }
}

#[test]
fn histories_over_storage_class_memory() {
    for (seed, chunk_bytes) in [(1, 16 << 10), (2, 64 << 10)] {
        run(scm::Scm::holding(chunk_bytes, BYTES), seed, 1_000);
    }
}

#[test]
fn histories_over_a_pool() {
    // A memory numbers versions in a way of its own, and tells of data where nothing was written.
    for (seed, chunk_bytes) in [(1, 4 << 10), (2, 64 << 10)] {
        let memory = scm::Scm::holding(chunk_bytes, BYTES);
        run(Pooled::new(vec![Mounted::new(Ram::holding(BYTES)), Mounted::new(memory)]), seed, 1_000);
    }
}

const OBJECTS: u64 = 64;
const OBJECT_BYTES: u64 = 256 << 10;

/// Overwrites one eighth of 16 MiB and an attribute of each of 64 objects eight times, in a device
/// or in a clone of it, and tells what that costs and what reading all of it then does, in pages.
fn overwritten(in_clone: bool) -> [u64; 2] {
    let mut flash = flash::Flash::holding(flash::LARGE, 96 << 20);
    let versioned = Arc::new(Versioned::open(Arc::new(flash.device.take().unwrap())).unwrap().unwrap());
    let first = versioned.reserve_ids(OBJECTS).unwrap().0;
    let objects = || (first..first + OBJECTS).map(ObjectId);
    let key = AttributeKey::new(AttributeKind::INODE, 0);
    for object in objects() {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![7; OBJECT_BYTES as usize]);
        transaction.set_attribute(object, key, vec![1; 24]);
        versioned.commit(transaction, Durability::Buffered).unwrap();
    }
    versioned.take("base", Timestamp::default()).unwrap();
    versioned.make_clone("clone", "base", Timestamp::default()).unwrap();
    let clone = versioned.open_clone("clone").unwrap();
    let device: &dyn ObjectDevice = if in_clone { &clone } else { versioned.as_ref() };
    let before = pages(&flash.nand);
    let mut prng = Prng::new(1);
    for round in 0..8 {
        for object in objects() {
            let mut transaction = Transaction::new();
            for _ in 0..8 {
                let data = vec![round as u8; 4096];
                transaction.write(object, prng.below(OBJECT_BYTES / 4096) * 4096, data);
            }
            transaction.set_attribute(object, key, vec![round as u8; 24]);
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.sync(SyncScope::All).unwrap();
    }
    let between = pages(&flash.nand);
    let mut buffer = vec![0; OBJECT_BYTES as usize];
    for object in objects() {
        assert_eq!(device.read(object, 0, &mut buffer), Ok(buffer.len()));
    }
    [between[0] - before[0], pages(&flash.nand)[1] - between[1]]
}

#[test]
fn a_clone_costs_what_is_changed_in_it() {
    let ([written, read], [in_clone, read_in_clone]) = (overwritten(false), overwritten(true));
    println!("{in_clone} pages programmed in a clone, {written} in its volume; {read_in_clone} and {read} read");
    assert!(written > 4_000, "{written} pages of 4 KiB for 16 MiB");
    assert!(in_clone * 10 <= written * 11, "{in_clone} pages programmed in a clone, {written} in its volume");
    assert!(read_in_clone * 10 <= read * 11, "{read_in_clone} pages read of a clone, {read} of its volume");
}

/// What acts on objects of the device by their numbers would act on those of the volume.
#[test]
fn a_clone_has_no_power_over_objects_of_its_volume() {
    let flash = flash::Flash::holding(flash::SMALL, 4 << 20).device.take().unwrap();
    let versioned = Arc::new(Versioned::open(Arc::new(flash)).unwrap().unwrap());
    assert!(versioned.scrub().is_some());
    versioned.take("base", Timestamp::default()).unwrap();
    versioned.make_clone("clone", "base", Timestamp::default()).unwrap();
    let clone = versioned.open_clone("clone").unwrap();
    assert!(clone.scrub().is_none() && clone.erase().is_none() && clone.place().is_none());
    assert!(clone.map_objects().is_none() && clone.share().is_none());
}

#[test]
fn numbers_of_objects_do_not_come_again_in_a_clone() {
    let ram = Arc::new(RamDevice::with_crash_model(1 << 20));
    let open = || Arc::new(Versioned::open(Arc::clone(&ram)).unwrap().unwrap());
    let versioned = open();
    versioned.take("base", Timestamp::default()).unwrap();
    versioned.make_clone("clone", "base", Timestamp::default()).unwrap();
    let mut highest = ObjectId(0);
    for round in 0..4 {
        let versioned = open();
        let clone = versioned.open_clone("clone").unwrap();
        let object = clone.reserve_ids(300).unwrap();
        assert!(object > highest, "round {round}: {object} after {highest}");
        highest = ObjectId(object.0 + 299);
        let mut transaction = Transaction::new();
        transaction.create(highest, Hints::default());
        clone.commit(transaction, Durability::Durable).unwrap();
        // Nothing of it is left, and its number is used up all the same.
        let mut transaction = Transaction::new();
        transaction.remove(highest);
        clone.commit(transaction, Durability::Durable).unwrap();
        ram.crash();
    }
    // The volume knows nothing of them.
    assert!(open().reserve_ids(1).unwrap() < ObjectId(100));
}

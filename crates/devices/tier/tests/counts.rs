//! What a synced operation costs: one sequential write and one flush of each disk that is waited for.

mod common;

use common::Pair;
use onode_media::{BlockDev, IoTag};
use onode_object::{Acknowledge, AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::MountOptions;

/// Creates, appends and deletes, each durable, as a file system does them: with an entry of a directory.
fn work(device: &dyn ObjectDevice, files: u64) -> u64 {
    let directory = ObjectId(3);
    let mut transaction = Transaction::new();
    transaction.create(directory, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    let mut operations = 1;
    for number in 0..files {
        let object = device.reserve_ids(1).unwrap();
        let entry = AttributeKey::new(AttributeKind::ENTRY, number);
        let mut create = Transaction::new();
        create.create(object, Hints { locality: Some(directory), ..Hints::default() });
        create.set_attribute(object, AttributeKey::new(AttributeKind::INODE, 0), vec![1; 70]);
        create.set_attribute(directory, entry, vec![2; 30]);
        let mut append = Transaction::new();
        append.write(object, 0, vec![number as u8; 3_500]);
        append.set_attribute(object, AttributeKey::new(AttributeKind::INODE, 0), vec![3; 70]);
        let mut remove = Transaction::new();
        remove.remove_attribute(directory, entry).remove(object);
        let keep = number % 2 == 0;
        for transaction in [Some(create), Some(append), (!keep).then_some(remove)].into_iter().flatten() {
            device.commit(transaction, Durability::Durable).unwrap();
            operations += 1;
        }
    }
    operations
}

/// (journal writes, flushes, jumps of the log) of each disk between two checkpoints.
fn count(acknowledge: Acknowledge) -> (u64, [[u64; 2]; 2]) {
    let pair = Pair::with(16 << 20, 8 << 20, MountOptions { acknowledge, ..MountOptions::default() });
    let device = pair.device.as_ref().unwrap();
    pair.fast.reset_counters();
    pair.big.reset_counters();
    // Few enough for no checkpoint to come in between: half of the ring.
    let operations = work(device, 12);
    let of = |counts: onode_media::BlockCounters| {
        assert_eq!(counts.total().writes, counts.of(IoTag::Journal).writes, "something beside the log was written");
        [counts.total().writes, counts.flushes]
    };
    (operations, [of(pair.fast.counters().unwrap()), of(pair.big.counters().unwrap())])
}

#[test]
fn a_synced_operation_is_one_write_and_one_flush() {
    let (operations, [fast, big]) = count(Acknowledge::Safe);
    assert_eq!((fast, big), ([operations, operations], [operations, operations]));
}

#[test]
fn either_waits_for_the_fast_disk_alone() {
    let (operations, [fast, big]) = count(Acknowledge::Either);
    assert_eq!((fast, big), ([operations, operations], [0, 0]));
}

#[test]
fn big_waits_for_the_big_disk_alone() {
    let (operations, [fast, big]) = count(Acknowledge::Big);
    assert_eq!((fast, big), ([0, 0], [operations, operations]));
}

#[test]
fn checkpoints_cost_little_beside() {
    let pair = Pair::with(32 << 20, 8 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    pair.big.reset_counters();
    let operations = work(device, 1_500);
    let counts = pair.big.counters().unwrap();
    let (writes, flushes) = (counts.total().writes, counts.flushes);
    println!("{operations} operations: {writes} writes and {flushes} flushes of the big disk");
    assert!(flushes * 10 <= operations * 11, "{flushes} flushes");
    assert!(writes * 10 <= operations * 20, "{writes} writes");
}

//! What a synced operation costs: one sequential write and one flush of each disk that is waited
//! for.

use crate::common::Pair;
use onode_media::{BlockDev, IoTag};
use onode_object::{Acknowledge, AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::MountOptions;

/// Creates, appends and deletes, each durable, as a file system does them: with an entry of a
/// directory.
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

/// Files whose last block is not full go home, and are appended to; reads of both disks for it.
fn reads_of_appends(tail_bytes: u64) -> u64 {
    let options = MountOptions { pending_bytes: 64 << 10, tail_bytes, ..MountOptions::default() };
    let mut pair = Pair::with(16 << 20, 8 << 20, options);
    let device = pair.device.as_ref().unwrap();
    let first = device.reserve_ids(100).unwrap();
    let files: Vec<ObjectId> = (0..100).map(|number| ObjectId(first.0 + number)).collect();
    let content = |object: ObjectId| (1..=5_700).map(|at: u64| (at * object.0 % 251) as u8).collect::<Vec<u8>>();
    for object in &files {
        let mut create = Transaction::new();
        create.create(*object, Hints::default());
        create.write(*object, 0, content(*object)[..5_000].to_vec());
        device.commit(create, Durability::Durable).unwrap();
    }
    while device.maintain(100).unwrap().more {}
    let pending = device.inspect().unwrap().counters().into_iter().find(|(name, _)| name == "big.blocks_pending");
    assert!(pending.unwrap().1 < 20, "they did not go home");
    let reads = |pair: &Pair| [&pair.fast, &pair.big].map(|disk| disk.counters().unwrap().total().reads);
    let before = reads(&pair);
    for object in &files {
        let mut append = Transaction::new();
        append.write(*object, 5_000, content(*object)[5_000..].to_vec());
        device.commit(append, Durability::Durable).unwrap();
    }
    let count = reads(&pair).iter().sum::<u64>() - before.iter().sum::<u64>();
    device.close().unwrap();
    pair.mount();
    for object in &files {
        let mut out = vec![0; 6_000];
        assert_eq!(pair.device.as_ref().unwrap().read(*object, 0, &mut out).unwrap(), 5_700);
        assert!(out[..5_700] == content(*object), "{object}");
    }
    count
}

#[test]
fn appending_to_what_went_home_lately_reads_nothing() {
    assert_eq!(reads_of_appends(256 << 10), 0);
    assert!(reads_of_appends(0) > 50, "what would be read without that memory");
}

//! Snapshots over each kind of device that can have them.

use crate::common::losses::tend;
use crate::common::pool::{Device, Mounted, Pooled, Ram, members};
use crate::common::snapshots::run;
use crate::{flash, scm, tier};
use onode_base::{Prng, Timestamp};
use onode_media::{BlockDev, Nand};
use onode_object::{
    AttributeKey, AttributeKind, Durability, ErrorKind, Hints, Maintenance, ObjectDevice, ObjectId, RamDevice, Result,
    SyncScope, Transaction, forward_device,
};
use onode_services::{Pool, Versioned};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const BYTES: u64 = 24 << 20;

#[test]
fn histories_over_memory() {
    for seed in 1..=6 {
        run(Ram::holding(BYTES), seed, 1_500);
    }
}

#[test]
fn histories_over_storage_class_memory() {
    for (seed, chunk_bytes) in [(1, 4 << 10), (2, 16 << 10), (3, 64 << 10)] {
        run(scm::Scm::holding(chunk_bytes, BYTES), seed, 1_200);
    }
}

#[test]
fn histories_over_flash() {
    for seed in 1..=3 {
        run(flash::Flash::holding(flash::SMALL, BYTES), seed, 1_200);
    }
}

#[test]
fn histories_over_two_disks() {
    for seed in 1..=3 {
        run(tier::Pair::with(BYTES, 12 << 20, onode_tier::MountOptions::default()), seed, 1_200);
    }
}

#[test]
fn histories_over_a_pool() {
    let members = || vec![Mounted::new(Ram::holding(BYTES)), Mounted::new(Ram::holding(BYTES))];
    for seed in 1..=3 {
        run(Pooled::new(members()), seed, 1_200);
    }
}

#[test]
fn histories_over_a_pool_with_storage_class_memory() {
    for seed in 1..=3 {
        let memory = Mounted::new(scm::Scm::holding(64 << 10, BYTES));
        run(Pooled::new(vec![Mounted::new(Ram::holding(BYTES)), memory]), seed, 1_200);
    }
}

/// A member whose extents are coarse was away, or came later: what a snapshot and a clone have
/// there of objects that changed in part is what the others have.
#[test]
fn a_memory_that_joins_a_pool_later_shows_the_same_snapshots() {
    let memory = Mounted::new(scm::Scm::holding(64 << 10, BYTES));
    let ram = Mounted::new(Ram::holding(BYTES));
    let both: Vec<Device> = vec![Arc::<Mounted>::clone(&ram), Arc::<Mounted>::clone(&memory)];
    drop(Pool::create([9; 16], members(&both)).unwrap());
    let content: Vec<u8> = (0..200_000_u32).map(|at| at as u8 | 1).collect();
    let object = {
        let pool: Arc<Pool<Device>> = Arc::new(Pool::open(members(&both[..1]), false).unwrap());
        let device = Versioned::open(Arc::clone(&pool)).unwrap().unwrap();
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, content.clone());
        device.commit(transaction, Durability::Durable).unwrap();
        device.take("before", Timestamp::default()).unwrap();
        for at in [70_001, 131_072, 199_000] {
            let mut transaction = Transaction::new();
            transaction.write(object, at, vec![0; 700]);
            device.commit(transaction, Durability::Durable).unwrap();
        }
        assert!(!Versioned::relies_on_holes(&*pool).unwrap());
        object
    };
    let pool = Pool::open(members(&both), false).unwrap();
    tend(&pool).unwrap();
    drop(pool);
    for member in both {
        let alone: Arc<Pool<Device>> = Arc::new(Pool::open(members(&[member]), true).unwrap());
        let device = Arc::new(Versioned::open(alone).unwrap().unwrap());
        let mut shown = vec![0; content.len()];
        assert_eq!(device.view("before").unwrap().read(object, 0, &mut shown), Ok(content.len()));
        assert_eq!(shown.iter().zip(&content).position(|(shown, kept)| shown != kept), None);
    }
}

/// A memory tells of data from the start of a small block on, also where nothing was written: what
/// was there before the part that a snapshot keeps was shown as zeros.
#[test]
fn a_snapshot_in_a_memory_shows_what_lies_before_what_it_keeps() {
    let mounted = Mounted::new(scm::Scm::holding(64 << 10, BYTES));
    let device = Arc::new(Versioned::open(Arc::clone(&mounted)).unwrap().unwrap());
    let object = device.reserve_ids(1).unwrap();
    let content: Vec<u8> = (0..20_000_u32).map(|at| at as u8 | 1).collect();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, content.clone());
    device.commit(transaction, Durability::Durable).unwrap();
    device.take("whole", Timestamp::default()).unwrap();
    let mut transaction = Transaction::new();
    transaction.truncate(object, 12_300);
    device.commit(transaction, Durability::Durable).unwrap();
    let mut shown = vec![0; content.len()];
    assert_eq!(device.view("whole").unwrap().read(object, 0, &mut shown), Ok(content.len()));
    assert_eq!(shown.iter().zip(&content).position(|(shown, kept)| shown != kept), None);
}

/// Ids that were handed out and never used come again after a mount. What gets one then came after
/// the snapshot that was taken when they were out.
#[test]
fn a_snapshot_does_not_show_what_got_an_id_that_was_reserved_before_it() {
    let mounted = Mounted::new(flash::Flash::holding(flash::SMALL, BYTES));
    let versioned = || Arc::new(Versioned::open(Arc::clone(&mounted)).unwrap().unwrap());
    let device = versioned();
    let first = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(first, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    device.reserve_ids(10).unwrap();
    device.take("one", Timestamp::default()).unwrap();
    drop(device);
    mounted.with(|harness| harness.crash());
    let device = versioned();
    device.take("two", Timestamp::default()).unwrap();
    let later = device.reserve_ids(1).unwrap();
    assert!(later.0 < first.0 + 10, "{later} was out before");
    let mut transaction = Transaction::new();
    transaction.create(later, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    for name in ["one", "two"] {
        assert_eq!(device.view(name).unwrap().list(ObjectId(0), 9).unwrap(), [first], "{name}");
    }
}

/// Pages that were programmed and read so far.
pub fn pages(nand: &flash::Shared) -> [u64; 2] {
    let counts = nand.with(|nand| nand.counters().map(|counters| counters.total()).unwrap_or_default());
    [counts.programs, counts.reads]
}

/// Writes 64 objects of 256 KiB to `device`, overwrites one eighth and an attribute of each in each
/// of 8 rounds, with a snapshot before every `period`th of them, and says by how much what `count`
/// counts grew by the rounds.
fn overwritten<D: ObjectDevice>(device: D, period: Option<u64>, count: &dyn Fn() -> [u64; 2]) -> [u64; 2] {
    let (objects, object_bytes) = (64, 256_u64 << 10);
    let versioned = Versioned::open(Arc::new(device)).unwrap().unwrap();
    let first = versioned.reserve_ids(objects).unwrap().0;
    let key = AttributeKey::new(AttributeKind::INODE, 0);
    for object in (first..first + objects).map(ObjectId) {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![7; object_bytes as usize]);
        transaction.set_attribute(object, key, vec![1; 24]);
        versioned.commit(transaction, Durability::Buffered).unwrap();
    }
    versioned.sync(SyncScope::All).unwrap();
    let before = count();
    let mut prng = Prng::new(1);
    for round in 0..8 {
        if period.is_some_and(|period| round % period == 0) {
            versioned.take(&format!("round {round}"), Timestamp::default()).unwrap();
        }
        for object in (first..first + objects).map(ObjectId) {
            let mut transaction = Transaction::new();
            for _ in 0..8 {
                let data = vec![round as u8; 4096];
                transaction.write(object, prng.below(object_bytes / 4096) * 4096, data);
            }
            transaction.set_attribute(object, key, vec![round as u8; 24]);
            versioned.commit(transaction, Durability::Buffered).unwrap();
        }
        versioned.sync(SyncScope::All).unwrap();
    }
    versioned.close().unwrap();
    let after = count();
    [after[0] - before[0], after[1] - before[1]]
}

/// The same in pages of flash.
fn overwritten_on_flash(period: Option<u64>) -> [u64; 2] {
    let mut flash = flash::Flash::holding(flash::LARGE, 96 << 20);
    let device = flash.device.take().unwrap();
    overwritten(device, period, &|| pages(&flash.nand))
}

/// The same in KiB of the big one of two disks, written and read.
fn overwritten_on_disk(period: Option<u64>) -> [u64; 2] {
    let mut alone = tier::Alone::holding(96 << 20, 12 << 20);
    let device = alone.device.take().unwrap();
    overwritten(device, period, &|| {
        let total = alone.big.counters().unwrap_or_default().total();
        [total.bytes_written >> 10, total.bytes_read >> 10]
    })
}

#[test]
fn flash_keeps_what_is_overwritten_without_copies() {
    let [without, _] = overwritten_on_flash(None);
    assert!(without > 4_000, "{without} pages of 4 KiB for 16 MiB");
    for period in [8, 2, 1] {
        let [programs, reads] = overwritten_on_flash(Some(period));
        println!("a snapshot every {period} rounds: {programs} pages programmed, {without} without; {reads} read");
        assert!(programs * 10 <= without * 11, "{programs} pages programmed, {without} without a snapshot");
    }
}

/// What is overwritten before it went home is never written there, but for a snapshot that keeps
/// it: with one before each round all 16 MiB are written once to the log and once to their places.
#[test]
fn two_disks_keep_what_is_overwritten_without_copies() {
    let [without, _] = overwritten_on_disk(None);
    let once_each = 2 * (16 << 10);
    for (period, most) in [(8, without), (2, once_each), (1, once_each)] {
        let [written, read] = overwritten_on_disk(Some(period));
        println!("a snapshot every {period} rounds: {written} KiB written, {without} without; {read} read");
        assert!(written * 100 <= most * 102, "{written} KiB written, {without} without a snapshot");
    }
}

#[test]
fn what_cannot_be_read_of_snapshots_is_told_and_given_up_with_consent() {
    let ram = Arc::new(RamDevice::new(1 << 20));
    let versioned = Versioned::open(Arc::clone(&ram)).unwrap().unwrap();
    versioned.commit(made(ObjectId(1), 3), Durability::Durable).unwrap();
    versioned.take("one", Timestamp::default()).unwrap();
    versioned.commit(overwritten_with(ObjectId(1), 4), Durability::Durable).unwrap();
    drop(versioned);
    let key = AttributeKey::new(AttributeKind::SNAPSHOT, 1);
    let sound = ram.attribute(ObjectId::SNAPSHOTS, key).unwrap().unwrap();
    for damaged in [vec![], vec![9; 20], sound[..sound.len() - 3].to_vec()] {
        let mut damage = Transaction::new();
        damage.set_attribute(ObjectId::SNAPSHOTS, key, damaged);
        ram.commit(damage, Durability::Durable).unwrap();
        let refused = Versioned::open(Arc::clone(&ram)).map(drop).map_err(|error| error.kind);
        assert_eq!(refused, Err(ErrorKind::Corrupt));
    }
    let versioned = Versioned::open_giving_up(Arc::clone(&ram));
    assert_eq!((versioned.snapshots(), versioned.list(ObjectId(0), 10)), (vec![], Ok(vec![ObjectId(1)])));
    assert_eq!(ram.list(ObjectId(0), 10), Ok(vec![ObjectId(1)]), "all that was kept for them is gone");
    versioned.take("two", Timestamp::default()).unwrap();
    versioned.commit(overwritten_with(ObjectId(1), 5), Durability::Durable).unwrap();
    // A repair may drop the record as a whole: what is left is no part of new snapshots.
    let mut damage = Transaction::new();
    damage.remove(ObjectId::SNAPSHOTS);
    ram.commit(damage, Durability::Durable).unwrap();
    let versioned = Arc::new(Versioned::open(Arc::clone(&ram)).unwrap().unwrap());
    versioned.take("three", Timestamp::default()).unwrap();
    versioned.commit(overwritten_with(ObjectId(1), 6), Durability::Durable).unwrap();
    let mut buffer = [0; 8];
    assert_eq!(versioned.view("three").unwrap().read(ObjectId(1), 0, &mut buffer), Ok(8));
    assert_eq!(buffer, [5; 8]);
}

const OBJECT_BYTES: usize = 40_000;

fn made(object: ObjectId, byte: u8) -> Transaction {
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![byte; OBJECT_BYTES]);
    transaction
}

fn overwritten_with(object: ObjectId, byte: u8) -> Transaction {
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![byte; OBJECT_BYTES]);
    transaction
}

#[test]
fn a_snapshot_is_read_while_all_of_it_is_overwritten() {
    let flash = flash::Flash::holding(flash::SMALL, 24 << 20).device.take().unwrap();
    let versioned = Arc::new(Versioned::open(Arc::new(flash)).unwrap().unwrap());
    let objects: Vec<_> = (1..=6).map(ObjectId).collect();
    for object in &objects {
        versioned.commit(made(*object, 0), Durability::Buffered).unwrap();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=40 {
                let name = format!("round {round}");
                versioned.take(&name, Timestamp::default()).unwrap();
                for object in &objects {
                    versioned.commit(overwritten_with(*object, round), Durability::Buffered).unwrap();
                }
                if round > 4 {
                    versioned.delete(&format!("round {}", round - 4)).unwrap();
                }
                versioned.maintain(2).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let Some(snapshot) = versioned.snapshots().pop() else { continue };
                    let Ok(view) = versioned.view(&snapshot.name) else { continue };
                    for object in &objects {
                        let mut buffer = vec![0xff; OBJECT_BYTES];
                        match view.read(*object, 0, &mut buffer) {
                            // It was deleted meanwhile.
                            Err(error) if error.kind == ErrorKind::Stale => break,
                            read => assert_eq!(read, Ok(OBJECT_BYTES)),
                        }
                        let expected = snapshot.generation as u8 - 1;
                        let other = buffer.iter().position(|byte| *byte != expected);
                        assert_eq!(other, None, "{object} in {}", snapshot.name);
                    }
                }
            });
        }
    });
}

/// A device with just as much to do as it is asked for.
struct Occupied(RamDevice);

impl ObjectDevice for Occupied {
    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        Ok(Maintenance { done: budget, more: false })
    }

    forward_device!(self => self.0;
        info, commit, read, attribute, attributes, stat, list, extents, space, reserve_ids, sync, close);
}

/// Whoever works until there is no more would leave what a deleted snapshot kept.
#[test]
fn work_is_left_as_long_as_a_deleted_snapshot_keeps_something() {
    let versioned = Versioned::open(Arc::new(Occupied(RamDevice::new(BYTES)))).unwrap().unwrap();
    versioned.commit(made(ObjectId(1), 0), Durability::Buffered).unwrap();
    versioned.take("one", Timestamp::default()).unwrap();
    versioned.commit(overwritten_with(ObjectId(1), 1), Durability::Buffered).unwrap();
    assert_eq!(versioned.maintain(2), Ok(Maintenance { done: 2, more: false }));
    versioned.delete("one").unwrap();
    assert_eq!(versioned.maintain(2), Ok(Maintenance { done: 2, more: true }));
    while versioned.clean(1).unwrap().more {}
    assert_eq!(versioned.maintain(2), Ok(Maintenance { done: 2, more: false }));
}

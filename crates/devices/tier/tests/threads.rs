//! Threads: nobody waits for a disk but who needs it, and everybody reads what was there.

use crate::common::gate::{Gate, Gated};
use crate::common::patience::{PATIENCE, ends_in_time};
use crate::common::{new_fast, small_division};
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_object::powers::Place;
use onode_object::{Acknowledge, Durability, Hints, ObjectDevice, ObjectId, Placement, SyncScope, Target, Transaction};
use onode_tier::fast::{Fast, FastOptions, FastSettings};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const HOT: ObjectId = ObjectId(10);
const COLD: ObjectId = ObjectId(11);

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    Prng::new(seed).fill(&mut content);
    content
}

fn put(device: &TierDevice, object: ObjectId, hints: Hints, data: &[u8]) {
    let mut transaction = Transaction::new();
    transaction.create(object, hints);
    transaction.write(object, 0, data.to_vec());
    device.commit(transaction, Durability::Buffered).unwrap();
}

fn read(device: &TierDevice, object: ObjectId, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    let count = device.read(object, 0, &mut found).unwrap();
    found.truncate(count);
    found
}

fn bypass() -> Hints {
    let placement = Placement { target: Target::Bypass, ..Placement::default() };
    Hints { placement_class: placement.to_class(), ..Hints::default() }
}

/// A volume whose changes return when the fast disk has them, with a hot object on the fast disk
/// and a cold one that only the big disk has; and the gate of the big disk.
fn volume() -> (TierDevice, Gate) {
    let (device, gate, _) = volume_and_disks();
    (device, gate)
}

struct Disks {
    big: SimDisk,
    fast: SimDisk,
}

impl Disks {
    /// Gives up all copies of nodes.
    fn forget_nodes(&self) {
        let volume = Fast::identify(&mut self.fast.clone()).unwrap().unwrap().volume;
        let mut fast = Fast::open(Box::new(self.fast.clone()), volume, &FastSettings::default()).unwrap();
        let nodes: Vec<u64> = fast.copies().filter(|copy| copy.born >> 63 != 0).map(|copy| copy.block).collect();
        assert!(!nodes.is_empty());
        nodes.into_iter().for_each(|node| fast.forget(node, 1));
        fast.close().unwrap();
    }

    fn mount(&self) -> (TierDevice, Gate) {
        let big = Gated::new(&self.big);
        let gate = big.gate.clone();
        (TierDevice::mount(Box::new(big), Some(Box::new(self.fast.clone())), &options()).unwrap(), gate)
    }
}

fn options() -> MountOptions {
    MountOptions {
        acknowledge: Acknowledge::Either,
        pending_bytes: 8 << 20,
        either_bytes: 32 << 20,
        ..MountOptions::default()
    }
}

fn volume_and_disks() -> (TierDevice, Gate, Disks) {
    let disks = Disks { big: SimDisk::new("big", 64 << 20), fast: SimDisk::new("fast", 64 << 20) };
    let (big, fast) = (Gated::new(&disks.big), disks.fast.clone());
    let (gate, options) = (big.gate.clone(), options());
    let format = FormatOptions { acknowledge: Acknowledge::Either, ..FormatOptions::default() };
    let division = FastOptions { ring_bytes: 16 << 20, ..small_division() };
    let fast = NewFast { options: division, ..new_fast(&fast) };
    let device = TierDevice::format(Box::new(big), Some(fast), &format, &options).unwrap();
    put(&device, HOT, Hints::default(), &content(1, 40_000));
    put(&device, COLD, bypass(), &content(2, 400_000));
    device.sync(SyncScope::All).unwrap();
    while device.maintain(64).unwrap().more {}
    device.promote(HOT, true).unwrap();
    (device, gate, disks)
}

/// Does something in a thread of its own, which must be done within ten seconds.
fn in_time<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    gate: &Gate,
    what: &str,
    act: impl FnOnce() -> T + Send + 'scope,
) -> T {
    let (done, is_done) = mpsc::channel();
    scope.spawn(move || done.send(act()));
    let result = is_done.recv_timeout(Duration::from_secs(10));
    if result.is_err() {
        // So that the test ends.
        gate.open();
    }
    result.unwrap_or_else(|_| panic!("{what} waits for the big disk"))
}

/// It fails with its own words, and does not wait for who waits at the gate.
#[test]
#[should_panic(expected = "the words of the test")]
fn a_test_that_fails_at_a_closed_gate_ends() {
    ends_in_time(PATIENCE, || {
        let (device, gate) = volume();
        let device = &device;
        gate.close();
        gate.scope(|scope| {
            scope.spawn(move || read(device, COLD, 400_000));
            assert!(gate.is_waited_for());
            panic!("the words of the test");
        });
    });
}

/// What nobody who reads hot content, reads memory or needs the fast disk alone may wait for.
fn goes_on(device: &TierDevice, gate: &Gate, from: u64) {
    thread::scope(|scope| {
        let hot = in_time(scope, gate, "a read of the fast disk", || read(device, HOT, 40_000));
        assert!(hot == content(1, 40_000));
        for number in from..from + 5 {
            in_time(scope, gate, "a commit", move || {
                let mut transaction = Transaction::new();
                transaction.create(ObjectId(number), Hints::default());
                transaction.write(ObjectId(number), 0, content(number, 5_000));
                device.commit(transaction, Durability::Durable).unwrap();
            });
            let found = in_time(scope, gate, "a read of memory", move || read(device, ObjectId(number), 5_000));
            assert!(found == content(number, 5_000));
        }
        in_time(scope, gate, "a look at the state", || drop((device.info(), device.space(), device.health())));
    });
}

#[test]
fn a_read_that_waits_for_the_big_disk_holds_up_nobody_else() {
    ends_in_time(PATIENCE, || {
        let (device, gate) = volume();
        let device = &device;
        put(device, ObjectId(20), Hints::default(), &content(3, 9_000));
        gate.close();
        gate.scope(|scope| {
            let cold = scope.spawn(move || read(device, COLD, 400_000));
            assert!(gate.is_waited_for());
            goes_on(device, &gate, 30);
            let pending = in_time(scope, &gate, "a read of memory", || read(device, ObjectId(20), 9_000));
            assert!(pending == content(3, 9_000));
            in_time(scope, &gate, "a sync", || device.sync(SyncScope::All).unwrap());
            assert!(!cold.is_finished());
            gate.open();
            assert!(cold.join().unwrap() == content(2, 400_000));
        });
        device.verify().unwrap();
    });
}

/// The same for who waits for a node of the tree, and for the rest of a block that is to be
/// changed.
#[test]
fn a_walk_that_waits_for_the_big_disk_holds_up_nobody_else() {
    ends_in_time(PATIENCE, || {
        let (device, gate, disks) = volume_and_disks();
        let first = device.reserve_ids(1000).unwrap().0;
        for number in 0..600 {
            put(&device, ObjectId(first + number), bypass(), &content(number, 3_000));
        }
        device.close().unwrap();
        drop((device, gate));
        disks.forget_nodes();
        // Nothing of the tree is in memory or on the fast disk but what leads to the hot object.
        let (device, gate) = disks.mount();
        let device = &device;
        assert!(read(device, HOT, 40_000) == content(1, 40_000));
        put(device, ObjectId(20), Hints::default(), &content(3, 9_000));
        device.sync(SyncScope::All).unwrap();
        gate.close();
        type Act<'a> = Box<dyn FnOnce() + Send + 'a>;
        let walks: [Act<'_>; 3] = [
            Box::new(move || assert!(read(device, ObjectId(first + 599), 3_000) == content(599, 3_000))),
            Box::new(move || assert_eq!(device.stat(ObjectId(first + 300)).unwrap().size, 3_000)),
            Box::new(move || {
                let mut transaction = Transaction::new();
                transaction.write(ObjectId(first + 200), 100, vec![7; 50]);
                device.commit(transaction, Durability::Durable).unwrap();
            }),
        ];
        gate.scope(|scope| {
            let walks = walks.map(|walk| {
                let walk = scope.spawn(walk);
                assert!(gate.is_waited_for());
                walk
            });
            goes_on(device, &gate, 30);
            assert!(walks.iter().all(|walk| !walk.is_finished()));
            gate.open();
            walks.into_iter().for_each(|walk| walk.join().unwrap());
        });
        let mut expected = content(200, 3_000);
        expected[100..150].fill(7);
        assert!(read(device, ObjectId(first + 200), 3_000) == expected);
        device.verify().unwrap();
    });
}

/// Maintenance brings home what only the fast disk has: its log, or a checkpoint.
#[test]
fn maintenance_that_waits_for_the_big_disk_holds_up_nobody_else() {
    ends_in_time(PATIENCE, || {
        for pending in [0, 600] {
            let (device, gate) = volume();
            let device = &device;
            // So much that a checkpoint is due.
            let first = device.reserve_ids(1000).unwrap().0;
            (0..pending)
                .for_each(|number| put(device, ObjectId(first + number), Hints::default(), &content(number, 8_000)));
            device.sync(SyncScope::All).unwrap();
            put(device, ObjectId(20), Hints::default(), &content(3, 9_000));
            device.sync(SyncScope::All).unwrap();
            gate.close();
            gate.scope(|scope| {
                let maintenance = scope.spawn(move || while device.maintain(64).unwrap().more {});
                assert!(gate.is_waited_for());
                goes_on(device, &gate, 30);
                in_time(scope, &gate, "a sync", || device.sync(SyncScope::All).unwrap());
                assert!(!maintenance.is_finished());
                gate.open();
                maintenance.join().unwrap();
            });
            device.verify().unwrap();
            device.close().unwrap();
        }
    });
}

/// Who needs both disks waits for the big one, and nobody else does: be it for the log or for
/// content that is so large that it goes to its place at once.
#[test]
fn a_commit_for_both_disks_holds_up_none_for_the_fast_one() {
    ends_in_time(PATIENCE, || {
        for bytes in [9_000, 900_000] {
            let (device, gate) = volume();
            let device = &device;
            gate.close();
            gate.scope(|scope| {
                let safe = scope.spawn(move || {
                    let placement = Placement { acknowledge: Acknowledge::Safe, ..Placement::default() };
                    let hints = Hints { placement_class: placement.to_class(), ..Hints::default() };
                    let mut transaction = Transaction::new();
                    transaction.create(ObjectId(20), hints);
                    transaction.write(ObjectId(20), 0, content(3, bytes));
                    device.commit(transaction, Durability::Durable).unwrap();
                });
                assert!(gate.is_waited_for());
                let hot = in_time(scope, &gate, "a read of the fast disk", || read(device, HOT, 40_000));
                assert!(hot == content(1, 40_000));
                let found = in_time(scope, &gate, "a read of memory", || read(device, ObjectId(20), bytes));
                assert!(found == content(3, bytes));
                put(device, ObjectId(21), Hints::default(), &content(4, 5_000));
                // A record that names what the big disk has not yet written waits for that disk.
                if bytes < 100_000 {
                    goes_on(device, &gate, 30);
                }
                assert!(!safe.is_finished());
                gate.open();
                safe.join().unwrap();
            });
            assert!(read(device, ObjectId(20), bytes) == content(3, bytes));
            device.verify().unwrap();
            device.close().unwrap();
        }
    });
}

/// Says at its end that all is done.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Version `version` of an object: its length and all of its content follow from both numbers.
fn version_of(object: u64, version: u64) -> Vec<u8> {
    let mut content = content(object << 32 | version, 3_000 + (object * 7 + version) as usize % 5 * 9_000);
    if (object + version).is_multiple_of(16) {
        content.resize(700_000, object as u8);
    }
    content[..8].copy_from_slice(&version.to_le_bytes());
    content
}

/// Writers replace, remove and create again; others read, promote, demote, maintain and write
/// checkpoints. Every read is one version, whole, and none that is older than what the reader knew
/// to be there.
#[test]
fn readers_beside_writers_read_one_version_whole() {
    ends_in_time(PATIENCE, || {
        const OBJECTS: u64 = 12;
        const ROUNDS: u64 = 150;
        let options = MountOptions {
            acknowledge: Acknowledge::Either,
            pending_bytes: 256 << 10,
            node_cache_bytes: 64 << 10,
            ..MountOptions::default()
        };
        let (big, fast) = (SimDisk::new("big", 24 << 20), SimDisk::new("fast", 4 << 20));
        let format = FormatOptions { log_bytes: Some(1 << 20), ..FormatOptions::default() };
        let device = TierDevice::format(Box::new(big), Some(new_fast(&fast)), &format, &options).unwrap();
        let first = device.reserve_ids(OBJECTS).unwrap().0;
        // The newest version of each object that was committed.
        let newest: Vec<AtomicU64> = (0..OBJECTS).map(|_| AtomicU64::new(0)).collect();
        (0..OBJECTS)
            .for_each(|object| put(&device, ObjectId(first + object), Hints::default(), &version_of(object, 0)));
        let is_done = AtomicBool::new(false);
        let (device, newest, is_done) = (&device, &newest, &is_done);
        thread::scope(|scope| {
            // Also if a writer fails: else the others would go on forever.
            let _done = Done(is_done);
            let writers: Vec<_> = (0..2u64)
                .map(|writer| {
                    scope.spawn(move || {
                        let mut draw = Prng::new(writer);
                        for version in 1..ROUNDS {
                            let object = draw.below(OBJECTS / 2) * 2 + writer;
                            let data = version_of(object, version);
                            let mut transaction = Transaction::new();
                            transaction.truncate(ObjectId(first + object), 0);
                            transaction.write(ObjectId(first + object), 0, data);
                            let durable = draw.chance(1, 4);
                            let durability = if durable { Durability::Durable } else { Durability::Buffered };
                            device.commit(transaction, durability).unwrap();
                            newest[object as usize].store(version, Ordering::SeqCst);
                            if draw.chance(1, 20) {
                                device.sync(SyncScope::All).unwrap();
                            }
                        }
                    })
                })
                .collect();
            for reader in 0..2u64 {
                scope.spawn(move || {
                    let mut draw = Prng::new(100 + reader);
                    while !is_done.load(Ordering::SeqCst) {
                        let object = draw.below(OBJECTS);
                        let known = newest[object as usize].load(Ordering::SeqCst);
                        let found = read(device, ObjectId(first + object), 800_000);
                        let version = u64::from_le_bytes(found[..8].try_into().unwrap());
                        assert!(version >= known, "object {object}: version {version}, and {known} was there");
                        assert!(found == version_of(object, version), "object {object} is not version {version}");
                    }
                });
            }
            scope.spawn(move || {
                let mut draw = Prng::new(200);
                while !is_done.load(Ordering::SeqCst) {
                    let object = ObjectId(first + draw.below(OBJECTS));
                    match draw.below(4) {
                        0 => drop(device.promote(object, true)),
                        1 => drop(device.demote(object)),
                        2 => {
                            drop(device.scrub().unwrap().scrub(object, 1).map(|report| assert_eq!(report.damaged, [])))
                        }
                        _ => drop(device.maintain(8).unwrap()),
                    }
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        device.verify().unwrap();
        assert_eq!(device.health().conditions, []);
        for object in 0..OBJECTS {
            let version = newest[object as usize].load(Ordering::SeqCst);
            assert!(read(device, ObjectId(first + object), 800_000) == version_of(object, version));
        }
    });
}

//! Nodes of the tree, and with them onodes, attributes and small files, are read from the fast
//! disk.

use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::fast::FastOptions;
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};

const MIB: u64 = 1 << 20;
const OBJECTS: u64 = 10_000;
const BYTES: usize = 300;

fn disks() -> [SimDisk; 2] {
    [SimDisk::new("fast", 64 * MIB), SimDisk::new("big", 256 * MIB)]
}

fn options() -> MountOptions {
    // Nodes must not all stay in memory.
    MountOptions { node_cache_bytes: MIB, ..MountOptions::default() }
}

fn content(object: ObjectId, version: u8) -> Vec<u8> {
    (0..BYTES).map(|at| (object.0 as u8).wrapping_mul(31).wrapping_add(at as u8) ^ version).collect()
}

fn format([fast, big]: &[SimDisk; 2]) -> TierDevice {
    let fast = NewFast { disk: Box::new(fast.clone()), uuid: [3; 16], options: FastOptions::for_disk(64 * MIB) };
    TierDevice::format(Box::new(big.clone()), Some(fast), &FormatOptions::default(), &options()).expect("a volume")
}

fn mount(disks: &[SimDisk; 2]) -> TierDevice {
    let [fast, big] = disks.clone().map(|disk| Box::new(disk) as Box<dyn BlockDev>);
    TierDevice::mount(big, Some(fast), &options()).expect("a volume")
}

fn fill(device: &TierDevice) -> Vec<ObjectId> {
    let first = device.reserve_ids(OBJECTS).expect("ids");
    let objects: Vec<ObjectId> = (first.0..first.0 + OBJECTS).map(ObjectId).collect();
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.create(*object, Hints::default());
        transaction.write(*object, 0, content(*object, 0));
        device.commit(transaction, Durability::Buffered).expect("room");
    }
    device.sync(SyncScope::All).expect("no fault");
    objects
}

/// A volume that was filled and closed.
fn filled() -> ([SimDisk; 2], Vec<ObjectId>) {
    let disks = disks();
    let device = format(&disks);
    let objects = fill(&device);
    device.close().expect("no fault");
    (disks, objects)
}

fn check(device: &TierDevice, objects: &[ObjectId], version: u8) {
    for object in objects {
        let mut found = [0; BYTES];
        assert_eq!(device.read(*object, 0, &mut found).expect("sound"), BYTES);
        assert_eq!(found[..], content(*object, version));
    }
}

fn reads(disk: &SimDisk) -> u64 {
    disk.counters().expect("it counts").total().reads
}

#[test]
fn ten_thousand_small_files_are_read_without_the_big_disk() {
    let (disks, objects) = filled();
    let device = mount(&disks);
    disks.iter().for_each(SimDisk::reset_counters);
    check(&device, &objects, 0);
    println!("{OBJECTS} files: {} reads of the big disk, {} of the fast one", reads(&disks[1]), reads(&disks[0]));
    // The first walk after a mount looks at the root where it must be.
    assert!(reads(&disks[1]) <= 4, "{} reads of the big disk", reads(&disks[1]));
}

#[test]
fn a_node_that_was_read_often_enough_comes_to_a_new_fast_disk() {
    let [fast, big] = disks();
    let device = TierDevice::format(Box::new(big.clone()), None, &FormatOptions::default(), &options());
    let device = device.expect("a volume");
    // Here and there: what lies in a row is read ahead, which is good enough.
    let mut objects = fill(&device);
    objects.sort_by_key(|object| object.0 * 7919 % OBJECTS);
    let new = NewFast { disk: Box::new(fast), uuid: [4; 16], options: FastOptions::for_disk(64 * MIB) };
    device.attach_new_fast(new).expect("a new fast disk");
    let passes: Vec<u64> = (0..3)
        .map(|_| {
            big.reset_counters();
            check(&device, &objects, 0);
            reads(&big)
        })
        .collect();
    assert!(passes[0] > 100 && passes[2] * 10 < passes[0], "{passes:?} reads of the big disk");
}

#[test]
fn nodes_of_before_are_never_taken_for_those_of_now() {
    let (disks, objects) = filled();
    for version in 1..4 {
        let device = mount(&disks);
        check(&device, &objects, version - 1);
        for object in &objects {
            let mut transaction = Transaction::new();
            transaction.write(*object, 0, content(*object, version));
            device.commit(transaction, Durability::Buffered).expect("room");
        }
        // What lies on the fast disk is of before.
        device.sync(SyncScope::All).expect("no fault");
        check(&device, &objects, version);
        device.close().expect("no fault");
    }
}

#[test]
fn a_damaged_copy_of_a_node_costs_a_read_of_the_big_disk() {
    let (disks, objects) = filled();
    let device = mount(&disks);
    // All but the superblocks; the map is in memory.
    let mut fast = disks[0].clone();
    let mut block = [0; 4096];
    for at in (2 * 4096..disks[0].bytes()).step_by(4096) {
        fast.read_at(at, &mut block, onode_media::tag::IoTag::Data).expect("no fault");
        if block.iter().any(|byte| *byte != 0) {
            block[100] ^= 1;
            fast.write_at(at, &block, onode_media::tag::IoTag::Data).expect("no fault");
        }
    }
    check(&device, &objects, 0);
    assert!(device.damaged_copies() > 0);
}

//! Damaged blocks of the big disk that have a good copy on the fast one.

use crate::common::Pair;
use onode_base::Prng;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_media::tag::IoTag;
use onode_object::powers::{Inspect, Place, Scrub, ScrubReport};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

const BYTES: usize = 300 << 10;
const SECTOR: usize = 4096;

fn content(object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    Prng::new(object.0).fill(&mut bytes);
    bytes
}

/// Two objects, the first of which has copies.
fn filled() -> (Pair, [ObjectId; 2]) {
    let mut pair = Pair::with(8 << 20, 4 << 20, MountOptions::default());
    let objects = [ObjectId(7), ObjectId(8)];
    let device = pair.device.as_ref().unwrap();
    for object in objects {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        transaction.write(object, 0, content(object));
        device.commit(transaction, Durability::Durable).unwrap();
    }
    device.close().unwrap();
    device.promote(objects[0], true).unwrap();
    device.demote(objects[1]).unwrap();
    device.close().unwrap();
    pair.mount();
    (pair, objects)
}

/// Turns bits in blocks of an object on the big disk; how many blocks.
fn damage(disk: &mut SimDisk, object: ObjectId) -> u64 {
    let (truth, mut found) = (content(object), 0);
    for offset in (0..disk.bytes()).step_by(SECTOR) {
        let mut block = vec![0; SECTOR];
        disk.read_at(offset, &mut block, IoTag::Check).unwrap();
        if truth.chunks_exact(SECTOR).any(|chunk| chunk == block) {
            block[found as usize] ^= 1;
            disk.write_at(offset, &block, IoTag::Check).unwrap();
            found += 1;
        }
    }
    disk.flush().unwrap();
    found
}

fn scrub(device: &TierDevice) -> ScrubReport {
    Scrub::scrub(device, ObjectId(0), 100).unwrap()
}

fn read(device: &TierDevice, object: ObjectId) -> onode_object::Result<Vec<u8>> {
    let mut bytes = vec![0; BYTES];
    device.read(object, 0, &mut bytes).map(|_| bytes)
}

fn count(device: &TierDevice, name: &str) -> u64 {
    device.counters().into_iter().find(|(own, _)| own == name).unwrap().1
}

#[test]
fn a_scrub_writes_damaged_blocks_again_from_their_copies() {
    let (pair, [copied, other]) = filled();
    let device = pair.device.as_ref().unwrap();
    let blocks = damage(&mut pair.big.clone(), copied);
    assert_eq!(blocks, BYTES as u64 / SECTOR as u64);
    let report = scrub(device);
    assert_eq!((report.damaged.len(), report.repaired), (0, BYTES as u64), "{report:?}");
    assert_eq!(count(device, "big.blocks_repaired"), blocks);
    assert_eq!(scrub(device).repaired, 0, "it was repaired");
    // What has no copy stays damaged, and says so.
    damage(&mut pair.big.clone(), other);
    let report = scrub(device);
    assert!(!report.damaged.is_empty() && report.repaired == 0, "{report:?}");
    device.close().unwrap();
    // The big disk by itself has what was repaired.
    let alone = TierDevice::mount(Box::new(pair.big.clone()), None, &MountOptions::default()).unwrap();
    assert!(read(&alone, copied).unwrap() == content(copied));
    assert!(read(&alone, other).is_err());
}

#[test]
fn what_may_not_be_written_is_reported_and_can_be_read() {
    let (pair, [copied, _]) = filled();
    pair.device.as_ref().unwrap().close().unwrap();
    damage(&mut pair.big.clone(), copied);
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let (big, fast) = (Box::new(pair.big.clone()), Box::new(pair.fast.clone()));
    let device = TierDevice::mount(big, Some(fast), &options).unwrap();
    let report = scrub(&device);
    assert!(report.repaired == 0 && !report.damaged.is_empty(), "{report:?}");
    assert!(report.damaged[0].detail.contains("its copy on the fast disk is good"), "{:?}", report.damaged[0]);
    assert!(read(&device, copied).unwrap() == content(copied));
}

#[test]
fn a_sector_that_cannot_be_read_is_written_again() {
    let (pair, [copied, _]) = filled();
    let device = pair.device.as_ref().unwrap();
    let truth = content(copied);
    let mut big = pair.big.clone();
    let mut block = vec![0; SECTOR];
    let is_last = |block: &[u8]| truth.rchunks_exact(SECTOR).next().unwrap() == block;
    let place = (0..big.bytes()).step_by(SECTOR).find(|offset| {
        big.read_at(*offset, &mut block, IoTag::Check).unwrap();
        is_last(&block)
    });
    pair.big.make_unreadable(place.unwrap());
    let report = scrub(device);
    assert_eq!((report.damaged.len(), report.repaired), (0, SECTOR as u64), "{report:?}");
    pair.big.clone().read_at(place.unwrap(), &mut block, IoTag::Check).unwrap();
    assert!(is_last(&block));
}

/// Turns a bit in every node of the tree on the big disk; how many.
fn damage_nodes(disk: &mut SimDisk) -> u64 {
    let mut found = 0;
    for offset in (0..disk.bytes()).step_by(SECTOR) {
        let mut block = vec![0; SECTOR];
        disk.read_at(offset, &mut block, IoTag::Check).unwrap();
        if block.starts_with(b"TNOD") {
            block[200] ^= 1;
            disk.write_at(offset, &block, IoTag::Check).unwrap();
            found += 1;
        }
    }
    disk.flush().unwrap();
    found
}

#[test]
fn damaged_nodes_are_written_again_from_their_copies() {
    let (mut pair, objects) = filled();
    pair.device = None;
    let nodes = damage_nodes(&mut pair.big);
    assert!(nodes > 0);
    // Who only looks tells of it and changes nothing.
    let read_only = MountOptions { read_only: true, ..MountOptions::default() };
    let (big, fast) = (Box::new(pair.big.clone()), Box::new(pair.fast.clone()));
    let told = TierDevice::mount(big, Some(fast), &read_only).and_then(|device| device.verify());
    assert!(told.is_err(), "a check finds it");
    pair.mount();
    let device = pair.device.as_ref().unwrap();
    device.verify().unwrap();
    let repaired = count(device, "tree.nodes_repaired");
    assert!((1..=nodes).contains(&repaired), "{repaired} of {nodes} nodes");
    assert!(device.health().conditions.iter().any(|told| told.code == "blocks-repaired"), "{:?}", device.health());
    objects.iter().for_each(|object| assert!(read(device, *object).unwrap() == content(*object)));
    device.close().unwrap();
    // The big disk alone is sound again.
    pair.device = None;
    let alone = TierDevice::mount(Box::new(pair.big.clone()), None, &MountOptions::default()).unwrap();
    alone.verify().unwrap();
    assert_eq!(count(&alone, "tree.nodes_repaired"), 0);
    objects.iter().for_each(|object| assert!(read(&alone, *object).unwrap() == content(*object)));
}

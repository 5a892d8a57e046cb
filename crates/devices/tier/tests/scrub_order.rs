//! A scrub reads small objects in the order in which they lie on the hard disk, many at a time.

use onode_base::Prng;
use onode_media::sim::disk::hdd::{Hdd, HddOptions};
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_media::{BlockDev, IoTag};
use onode_object::powers::Scrub;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};

const OBJECTS: u64 = 2_000;
const BYTES: usize = 8 << 10;
const BLOCK: usize = 4096;

fn object(number: u64) -> ObjectId {
    ObjectId(ObjectId::FIRST_FREE.0 + number)
}

/// What an object holds, which no other does.
fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    Prng::new(number).fill(&mut bytes);
    bytes
}

/// A hard disk with small objects, none of which lies beside the next.
fn filled(clock: &HostClock) -> (TierDevice, SimDisk) {
    let hdd = Box::new(Hdd::new(HddOptions::seagate_750()));
    let big = SimDisk::with_model("big", 256 << 20, hdd, clock);
    let format = FormatOptions { log_bytes: Some(4 << 20), ..FormatOptions::default() };
    let device = TierDevice::format(Box::new(big.clone()), None, &format, &MountOptions::default()).unwrap();
    device.reserve_ids(OBJECTS).unwrap();
    // 797 and the number of objects have no divisor in common.
    for turn in 0..OBJECTS {
        let number = turn * 797 % OBJECTS;
        let mut transaction = Transaction::new();
        transaction.create(object(number), Hints::default()).write(object(number), 0, content(number));
        // What others have in between.
        let other = device.reserve_ids(1).unwrap();
        transaction.create(other, Hints::default()).write(other, 0, vec![0; BYTES]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    device.sync(SyncScope::All).unwrap();
    device.close().unwrap();
    (TierDevice::mount(Box::new(big.clone()), None, &MountOptions::default()).unwrap(), big)
}

/// The time that a scrub of so many objects a call takes, and the bytes that it verified.
fn scrub(device: &TierDevice, clock: &HostClock, limit: usize) -> (u64, u64) {
    let begun = clock.now();
    let (mut from, mut bytes, mut objects) = (object(0), 0, 0);
    while objects < OBJECTS {
        let report = Scrub::scrub(device, from, limit.min((OBJECTS - objects) as usize)).unwrap();
        assert!(report.damaged.is_empty());
        bytes += report.bytes;
        objects += report.objects;
        from = report.next.unwrap();
    }
    (clock.now() - begun, bytes)
}

#[test]
fn small_objects_are_read_in_the_order_of_the_disk() {
    let clock = HostClock::default();
    let (device, _) = filled(&clock);
    // Nodes of the index are in memory for both.
    scrub(&device, &clock, 64);
    let ((alone, bytes), (together, same)) = (scrub(&device, &clock, 1), scrub(&device, &clock, 64));
    println!("{OBJECTS} objects: {} ms each by itself, {} ms together", alone / 1_000_000, together / 1_000_000);
    assert_eq!((bytes, same), (OBJECTS * BYTES as u64, bytes));
    assert!(alone >= 2 * together, "{alone} ns each by itself, {together} ns together");
}

#[test]
fn one_that_is_damaged_is_told_among_others() {
    let clock = HostClock::default();
    let (device, mut big) = filled(&clock);
    let damaged = [70, 71, 500];
    let starts = damaged.map(|number| content(number)[..BLOCK].to_vec());
    for offset in (0..big.bytes()).step_by(BLOCK) {
        let mut block = vec![0; BLOCK];
        big.read_at(offset, &mut block, IoTag::Check).unwrap();
        if starts.contains(&block) {
            block[7] ^= 1;
            big.write_at(offset, &block, IoTag::Check).unwrap();
        }
    }
    let mut found = Vec::new();
    let (mut from, mut bytes) = (object(0), 0);
    while from < object(OBJECTS) {
        let report = Scrub::scrub(&device, from, 64.min((object(OBJECTS).0 - from.0) as usize)).unwrap();
        found.extend(report.damaged.iter().filter_map(|error| error.object));
        bytes += report.bytes;
        from = report.next.unwrap();
    }
    assert_eq!(found, damaged.map(object));
    assert_eq!(bytes, OBJECTS * BYTES as u64 - 3 * BLOCK as u64);
}

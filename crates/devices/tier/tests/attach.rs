//! The fast disk comes and goes while the volume is mounted.

use crate::common::{Pair, cut, new_fast};
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_object::powers::{Inspect, Place};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

fn write(device: &TierDevice, number: u64) {
    let object = ObjectId(10 + number);
    let mut transaction = Transaction::new();
    if device.stat(object).is_err() {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, 0, vec![number as u8 + 1; 50_000]);
    device.commit(transaction, Durability::Durable).unwrap();
}

fn expect(device: &TierDevice, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut found = vec![0; 50_001];
        assert_eq!(device.read(ObjectId(10 + number), 0, &mut found).unwrap(), 50_000);
        assert!(found[..50_000].iter().all(|byte| *byte == number as u8 + 1), "object {number}");
    }
    device.verify().unwrap();
}

fn counter(device: &TierDevice, name: &str) -> u64 {
    device.counters().into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
}

/// Mounts what a cut leaves, with the fast disk or without.
fn after_cut(pair: &Pair, fast: Option<&SimDisk>, seed: u64) -> TierDevice {
    let mut prng = Prng::new(seed);
    let big = Box::new(cut(&pair.big, &mut prng));
    let fast = fast.map(|fast| Box::new(cut(fast, &mut prng)) as Box<dyn onode_media::BlockDev>);
    TierDevice::mount(big, fast, &pair.options).unwrap()
}

#[test]
fn a_fast_disk_is_detached_and_attached_again() {
    for acknowledge in [Acknowledge::Safe, Acknowledge::Either] {
        let pair = Pair::with(8 << 20, 8 << 20, MountOptions { acknowledge, ..MountOptions::default() });
        let device = pair.device.as_ref().unwrap();
        (0..10).for_each(|number| write(device, number));
        device.sync(onode_object::SyncScope::All).unwrap();
        device.promote(ObjectId(10), true).unwrap();
        device.detach_fast().unwrap();
        assert!(!device.has_fast());
        assert!(device.health().conditions.iter().any(|told| told.code == "fast-disk-away"));
        assert_eq!(device.detach_fast().unwrap_err().kind, ErrorKind::Invalid);
        // The big disk has it all, and is asked for no consent.
        expect(&after_cut(&pair, None, 1), 0..10);
        (10..20).for_each(|number| write(device, number));
        expect(&after_cut(&pair, None, 2), 0..20);
        device.attach_fast(Box::new(pair.fast.clone())).unwrap();
        assert!(device.has_fast());
        assert_eq!(device.health().conditions, Vec::new());
        let before = counter(device, "fast.blocks_read");
        expect(device, 0..1);
        assert!(counter(device, "fast.blocks_read") > before, "copies of before are used again");
        (20..30).for_each(|number| write(device, number));
        assert_eq!(device.attach_fast(Box::new(pair.fast.clone())).unwrap_err().kind, ErrorKind::Invalid);
        for seed in 3..8 {
            expect(&after_cut(&pair, Some(&pair.fast), seed), 0..30);
        }
        device.close().unwrap();
        expect(device, 0..30);
    }
}

#[test]
fn a_fast_disk_that_failed_is_replaced_at_work() {
    let pair = Pair::with(8 << 20, 8 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    (0..5).for_each(|number| write(device, number));
    pair.fast.unplug();
    (5..10).for_each(|number| write(device, number));
    assert!(!device.has_fast());
    let other = SimDisk::new("other", 8 << 20);
    let foreign = SimDisk::new("foreign", 8 << 20);
    assert_eq!(device.attach_fast(Box::new(foreign)).unwrap_err().kind, ErrorKind::WrongPart);
    device.attach_new_fast(new_fast(&other)).unwrap();
    (10..20).for_each(|number| write(device, number));
    expect(&after_cut(&pair, Some(&other), 3), 0..20);
    device.close().unwrap();
}

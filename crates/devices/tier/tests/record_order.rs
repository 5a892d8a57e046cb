//! When a record of the log may be written, and what it may say: not before the content that it
//! names is durable, and nothing that a mount would take for a lie.

use crate::common::gate::{Gate, Gated};
use crate::common::{Pair, new_fast};
use onode_base::Prng;
use onode_media::BlockDev;
use onode_media::sim::disk::SimDisk;
use onode_object::{Acknowledge, Durability, Hints, ObjectDevice, ObjectId, Placement, SyncScope, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};
use std::thread;
use std::time::Duration;

/// Needs both disks.
const SAFE: ObjectId = ObjectId(10);
/// Needs one of them.
const EITHER: ObjectId = ObjectId(11);
/// So much goes to its place at once.
const LARGE: usize = 400_000;

fn hints(acknowledge: Acknowledge) -> Hints {
    Hints { placement_class: Placement { acknowledge, ..Placement::default() }.to_class(), ..Hints::default() }
}

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    Prng::new(seed).fill(&mut content);
    content
}

fn create(device: &TierDevice) {
    let mut transaction = Transaction::new();
    transaction.create(SAFE, hints(Acknowledge::Safe)).create(EITHER, hints(Acknowledge::Either));
    device.commit(transaction, Durability::Durable).unwrap();
}

fn write(device: &TierDevice, object: ObjectId, data: Vec<u8>, durability: Durability) {
    let mut transaction = Transaction::new();
    transaction.write(object, 0, data);
    device.commit(transaction, durability).unwrap();
}

/// The disk after the power was cut, with its cache or without.
fn cut(disk: &SimDisk, with_cache: bool) -> SimDisk {
    SimDisk::from_content(disk.name(), disk.bytes(), disk.content().after_cut(|_, _| with_cache))
}

/// A record that became durable on the fast disk while a checkpoint that has it was under way is
/// behind that checkpoint, so a mount does not look for it; the next record says that it was.
#[test]
fn a_record_that_a_checkpoint_has_is_not_missed() {
    let pair = Pair::with(8 << 20, 4 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    create(device);
    for number in 0..200 {
        write(device, EITHER, content(number, 3000), Durability::Durable);
        if number % 5 == 0 {
            while device.maintain(64).unwrap().more {}
        }
        if number % 5 < 2 {
            // The power goes when the big disk has the next record and the fast one has not.
            let fast = cut(&pair.fast, false);
            write(device, SAFE, content(number, 2000), Durability::Durable);
            let big = cut(&pair.big, false);
            let mounted = TierDevice::mount(Box::new(big), Some(Box::new(fast)), &MountOptions::default()).unwrap();
            assert_eq!(mounted.reports(), Vec::<String>::new(), "after commit {number}");
            mounted.verify().unwrap();
        }
    }
}

/// A volume with the gate of its big disk, and its disks, the big one first.
fn gated() -> (TierDevice, Gate, [SimDisk; 2]) {
    let (big, fast) = (SimDisk::new("big", 16 << 20), SimDisk::new("fast", 8 << 20));
    let gated = Gated::new(&big);
    let gate = gated.gate.clone();
    let (format, options) = (FormatOptions::default(), MountOptions::default());
    let device = TierDevice::format(Box::new(gated), Some(new_fast(&fast)), &format, &options).unwrap();
    create(&device);
    write(&device, EITHER, content(1, 3000), Durability::Durable);
    (device, gate, [big, fast])
}

/// Another commit, that the fast disk alone has to have, comes by while content on its way to its
/// place waits for the big disk; then the power goes. `begin` brings the content on its way and
/// does not return before the gate is open.
fn comes_by(device: &TierDevice, gate: &Gate, [big, fast]: &[SimDisk; 2], begin: impl FnOnce() + Send) {
    gate.scope(|scope| {
        gate.close();
        scope.spawn(begin);
        assert!(gate.is_waited_for());
        let other = scope.spawn(|| write(device, EITHER, content(2, 3000), Durability::Durable));
        for _ in 0..60 {
            if !other.is_finished() {
                thread::sleep(Duration::from_millis(5));
            }
        }
        // What was acknowledged is there, and what was not is there as a whole or not at all.
        let is_acknowledged = other.is_finished();
        let disks = [cut(big, false), cut(fast, false)];
        gate.open();
        let [big, fast] = disks;
        let mounted = TierDevice::mount(Box::new(big), Some(Box::new(fast)), &MountOptions::default()).unwrap();
        mounted.verify().unwrap();
        let mut found = vec![0; LARGE + 1];
        let count = mounted.read(SAFE, 0, &mut found).unwrap();
        assert!(count == 0 || found[..count] == content(3, LARGE), "{count} bytes");
        let count = mounted.read(EITHER, 0, &mut found).unwrap();
        let seeds = if is_acknowledged { 2..3 } else { 1..3 };
        assert!(seeds.into_iter().any(|seed| found[..count] == content(seed, 3000)));
    });
    device.verify().unwrap();
}

#[test]
fn no_record_is_written_before_content_that_is_being_written() {
    let (device, gate, disks) = gated();
    comes_by(&device, &gate, &disks, || write(&device, SAFE, content(3, LARGE), Durability::Durable));
}

#[test]
fn no_record_is_written_before_content_that_is_being_flushed() {
    let (device, gate, disks) = gated();
    write(&device, SAFE, content(3, LARGE), Durability::Buffered);
    comes_by(&device, &gate, &disks, || device.sync(SyncScope::All).unwrap());
}

//! Power cuts while several threads write: whatever one of them was told is durable is there,
//! whole, after the cut.

use crate::common::gate::{Gate, Gated};
use crate::common::{cut, new_fast};
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_object::{Acknowledge, Durability, Hints, ObjectDevice, ObjectId, Placement, Transaction};
use onode_tier::{FormatOptions, MountOptions, TierDevice};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const OBJECTS: u64 = 8;
const WRITERS: u64 = 3;
const CUTS: u64 = 24;

/// Version `version` of an object; some are so large that they go to their place at once.
fn version_of(object: u64, version: u64) -> Vec<u8> {
    let is_large = (object + version).is_multiple_of(5);
    let mut content = vec![0; if is_large { 400_000 } else { 2_000 + (version % 4) as usize * 5_000 }];
    Prng::new(object << 32 | version).fill(&mut content);
    content[..8].copy_from_slice(&version.to_le_bytes());
    content
}

fn read(device: &TierDevice, object: ObjectId) -> Vec<u8> {
    let mut found = vec![0; 500_000];
    let count = device.read(object, 0, &mut found).unwrap();
    found.truncate(count);
    found
}

/// Half of the objects need both disks, the others the fast one alone.
fn hints(object: u64) -> Hints {
    let acknowledge = if object.is_multiple_of(2) { Acknowledge::Either } else { Acknowledge::Safe };
    Hints { placement_class: Placement { acknowledge, ..Placement::default() }.to_class(), ..Hints::default() }
}

/// Tells the threads to end, also if the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Replaces objects until it is told to end, or the power is gone.
fn write(device: &TierDevice, writer: u64, acknowledged: &[AtomicU64], ends: &AtomicBool, first: u64) {
    let mut draw = Prng::new(writer);
    let own: Vec<u64> = (0..OBJECTS).filter(|object| object % WRITERS == writer).collect();
    let mut version = 1;
    while !ends.load(Ordering::SeqCst) {
        let object = own[draw.below(own.len() as u64) as usize];
        let mut transaction = Transaction::new();
        transaction.truncate(ObjectId(first + object), 0);
        transaction.write(ObjectId(first + object), 0, version_of(object, version));
        let durable = draw.chance(2, 3);
        device.commit(transaction, if durable { Durability::Durable } else { Durability::Buffered }).unwrap();
        if durable {
            acknowledged[object as usize].store(version, Ordering::SeqCst);
        }
        version += 1;
    }
}

#[test]
fn what_several_threads_were_told_is_durable_is_there_after_a_cut() {
    let options = MountOptions { pending_bytes: 256 << 10, ..MountOptions::default() };
    let gate = Gate::default();
    let (big, fast) = (SimDisk::new("big", 32 << 20), SimDisk::new("fast", 8 << 20));
    let gated = |disk: &SimDisk| Gated { disk: disk.clone(), gate: gate.clone() };
    let format = FormatOptions { log_bytes: Some(1 << 20), ..FormatOptions::default() };
    let new = onode_tier::NewFast { disk: Box::new(gated(&fast)), ..new_fast(&fast) };
    let device = TierDevice::format(Box::new(gated(&big)), Some(new), &format, &options).unwrap();
    let first = device.reserve_ids(OBJECTS).unwrap().0;
    for object in 0..OBJECTS {
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(first + object), hints(object));
        transaction.write(ObjectId(first + object), 0, version_of(object, 0));
        device.commit(transaction, Durability::Durable).unwrap();
    }
    let acknowledged: Vec<AtomicU64> = (0..OBJECTS).map(|_| AtomicU64::new(0)).collect();
    let ends = AtomicBool::new(false);
    let (device, acknowledged, ends) = (&device, &acknowledged[..], &ends);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || write(device, writer, acknowledged, ends, first));
        }
        scope.spawn(move || {
            while !ends.load(Ordering::SeqCst) {
                device.maintain(4).unwrap();
            }
        });
        let _ends = Ends(ends);
        let mut draw = Prng::new(7);
        for number in 0..CUTS {
            thread::sleep(Duration::from_millis(draw.below(30)));
            let known: Vec<u64> = acknowledged.iter().map(|version| version.load(Ordering::SeqCst)).collect();
            // Nothing happens on the disks while they are copied; what is on its way is cut off.
            gate.close();
            thread::sleep(Duration::from_millis(5));
            let disks = (cut(&fast, &mut draw), cut(&big, &mut draw));
            gate.open();
            let mounted = TierDevice::mount(Box::new(disks.1), Some(Box::new(disks.0)), &options);
            let mounted = mounted.unwrap_or_else(|error| panic!("cut {number}: {error}"));
            assert_eq!(mounted.reports(), Vec::<String>::new(), "cut {number}");
            mounted.verify().unwrap();
            for object in 0..OBJECTS {
                let found = read(&mounted, ObjectId(first + object));
                let version = u64::from_le_bytes(found[..8].try_into().unwrap());
                let least = known[object as usize];
                assert!(version >= least, "cut {number}, object {object}: version {version}, and {least} was durable");
                assert!(found == version_of(object, version), "cut {number}, object {object}: not version {version}");
            }
        }
    });
    device.verify().unwrap();
    device.close().unwrap();
}

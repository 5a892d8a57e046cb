//! A mount that has a long log to replay holds one record of it at a time, and ranges instead of
//! content.

#[allow(dead_code, reason = "it uses a part")]
mod common;

use common::new_fast;
use onode_media::sim::disk::SimDisk;
use onode_object::{Acknowledge, Durability, Hints, ObjectDevice as _, ObjectId, Transaction};
use onode_tier::fast::FastOptions;
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use peak_alloc::PeakAlloc;

/// Counts what is allocated. The only test of this program, so nothing else does it at the same
/// time.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MEBIBYTE: usize = 1 << 20;
const CONTENT: usize = 48 * MEBIBYTE;
const PIECE: usize = 250_000;

fn content(object: ObjectId) -> Vec<u8> {
    (0..PIECE).map(|at| ((at as u64 / 5) ^ object.0) as u8 | 1).collect()
}

#[test]
fn a_long_log_is_not_held_in_memory() {
    let (big, fast) = (SimDisk::new("big", 96 << 20), SimDisk::new("fast", 160 << 20));
    let options = MountOptions { pending_bytes: 1 << 20, either_bytes: 1 << 20, ..MountOptions::default() };
    let new = new_fast(&fast);
    let new = NewFast { options: FastOptions { ring_bytes: 112 << 20, ..new.options.clone() }, ..new };
    let format =
        FormatOptions { log_bytes: Some(1 << 20), acknowledge: Acknowledge::Either, ..FormatOptions::default() };
    let device = TierDevice::format(Box::new(big.clone()), Some(new), &format, &options).unwrap();
    let count = (CONTENT / PIECE) as u64;
    let first = device.reserve_ids(count).unwrap();
    for object in (first.0..first.0 + count).map(ObjectId) {
        let mut create = Transaction::new();
        create.create(object, Hints::default()).write(object, 0, content(object));
        device.commit(create, Durability::Durable).unwrap();
    }
    drop(device);
    let options = MountOptions { read_only: true, ..options };
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let device = TierDevice::mount(Box::new(big), Some(Box::new(fast)), &options).unwrap();
    let most = ALLOCATOR.peak_usage() - before;
    println!("{} KiB at most for a log of {} KiB", most >> 10, CONTENT >> 10);
    assert!(most < 8 * MEBIBYTE, "{most} bytes");
    let recovered = device.inspect().unwrap().counters().into_iter().find(|(name, _)| name.contains("recovered"));
    assert!(recovered.unwrap().1 >= count, "there was no long log");
    for object in (first.0..first.0 + count).map(ObjectId) {
        let mut out = vec![0; PIECE];
        assert_eq!(device.read(object, 0, &mut out).unwrap(), PIECE);
        assert!(out == content(object), "{object}");
    }
}

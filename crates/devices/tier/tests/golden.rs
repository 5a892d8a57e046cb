//! The format does not change by accident: an image of every format version mounts, and the same
//! operations make the same bytes.
//!
//! An image is the list of the blocks of both disks that hold anything, zero bytes packed: see
//! [`pack`]. After a deliberate change of the format, raise its version and let
//! `ONODE_WRITE_GOLDEN=1` write the new image.

use crate::common::new_fast;
use onode_base::{Prng, varint};
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::{
    Acknowledge, AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Placement, Transaction,
};
use onode_tier::{FormatOptions, MountOptions, TierDevice};
use std::path::PathBuf;

const BIG_BYTES: u64 = 1 << 20;
const FAST_BYTES: u64 = 1 << 20;
const BLOCK: usize = 4096;
const VERSION: u32 = 2;
const ATTRIBUTE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);

fn golden_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn content(object: u64) -> Vec<u8> {
    let mut bytes = vec![0; 40 + object as usize % 7 * 1500];
    // Text compresses by itself: one random byte in 64.
    let mut prng = Prng::new(object);
    for byte in bytes.iter_mut().step_by(64) {
        *byte = prng.next_u64() as u8;
    }
    bytes
}

/// Every third object is acknowledged as soon as one disk has it.
fn hints(object: u64) -> Hints {
    let acknowledge = if object.is_multiple_of(3) { Acknowledge::Either } else { Acknowledge::Volume };
    Hints { placement_class: Placement { acknowledge, ..Placement::default() }.to_class(), ..Hints::default() }
}

fn create(device: &TierDevice, object: u64) {
    assert_eq!(device.reserve_ids(1).unwrap(), ObjectId(object));
    let mut transaction = Transaction::new();
    transaction.create(ObjectId(object), hints(object)).write(ObjectId(object), 10, content(object));
    transaction.set_attribute(ObjectId(object), ATTRIBUTE, vec![object as u8; 30]);
    device.commit(transaction, Durability::Durable).unwrap();
}

/// The volume of the golden image: a closed session, then one that ended in a crash, with a record
/// that only the fast disk has. The big disk, then the fast one.
fn make() -> [SimDisk; 2] {
    let (big, fast) = (SimDisk::new("big", BIG_BYTES), SimDisk::new("fast", FAST_BYTES));
    let options = FormatOptions { uuid: *b"golden tier v1  ", log_bytes: Some(128 << 10), ..FormatOptions::default() };
    let device =
        TierDevice::format(Box::new(big.clone()), Some(new_fast(&fast)), &options, &MountOptions::default()).unwrap();
    (64..70).for_each(|object| create(&device, object));
    device.close().unwrap();
    drop(device);
    let device = mount([&big, &fast], &MountOptions::default());
    let mut transaction = Transaction::new();
    transaction.remove(ObjectId(65)).truncate(ObjectId(67), 100).punch(ObjectId(68), 20, 30);
    transaction.remove_attribute(ObjectId(64), ATTRIBUTE);
    device.commit(transaction, Durability::Durable).unwrap();
    (70..73).for_each(|object| create(&device, object));
    drop(device);
    let durable =
        |disk: SimDisk| SimDisk::from_content(disk.name(), disk.bytes(), disk.content().after_cut(|_, _| false));
    [durable(big), durable(fast)]
}

fn mount([big, fast]: [&SimDisk; 2], options: &MountOptions) -> TierDevice {
    let device = TierDevice::mount(Box::new(big.clone()), Some(Box::new(fast.clone())), options).unwrap();
    assert_eq!(device.reports(), Vec::<String>::new());
    device.verify().unwrap();
    device
}

fn expect_content(device: &TierDevice) {
    let objects = device.list(ObjectId(0), 100).unwrap();
    assert!(objects.iter().copied().eq([64, 66, 67, 68, 69, 70, 71, 72].map(ObjectId)), "{objects:?}");
    for object in objects {
        let mut expected = vec![0; 10];
        expected.extend(content(object.0));
        if object.0 == 67 {
            expected.resize(100, 0);
        } else if object.0 == 68 {
            expected[20..50].fill(0);
        }
        let mut found = vec![0; 3 * BLOCK];
        let length = device.read(object, 0, &mut found).unwrap();
        assert!(found[..length] == expected, "{object}");
        let value = device.attribute(object, ATTRIBUTE).unwrap();
        assert_eq!(value, (object.0 != 64).then(|| vec![object.0 as u8; 30]), "{object}");
        assert_eq!(device.stat(object).unwrap().hints, hints(object.0));
    }
}

/// Blocks of both disks, one behind the other, that hold anything: distance to the block before,
/// then runs of (zeros, bytes) up to the block's end.
fn pack(disks: &[SimDisk; 2]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = 0;
    let blocks = disks.iter().flat_map(|disk| (0..disk.bytes() / BLOCK as u64).map(move |block| (disk, block)));
    for (number, (disk, block)) in (0u64..).zip(blocks) {
        let mut data = vec![0; BLOCK];
        disk.clone().read_at(block * BLOCK as u64, &mut data, IoTag::Check).unwrap();
        if data.iter().all(|&byte| byte == 0) {
            continue;
        }
        varint::put(&mut out, number - last);
        last = number;
        let mut rest = &data[..];
        while !rest.is_empty() {
            let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
            rest = &rest[zeros..];
            // Single zeros stay within a run of bytes.
            let bytes = rest.windows(3).position(|three| three == [0; 3]).unwrap_or(rest.len());
            varint::put(&mut out, zeros as u64);
            varint::put_bytes(&mut out, &rest[..bytes]);
            rest = &rest[bytes..];
        }
    }
    out
}

fn unpack(mut input: &[u8]) -> [SimDisk; 2] {
    let mut disks = [SimDisk::new("big", BIG_BYTES), SimDisk::new("fast", FAST_BYTES)];
    let mut number = 0;
    while !input.is_empty() {
        number += varint::take(&mut input).unwrap();
        let mut data = Vec::new();
        while data.len() < BLOCK {
            data.resize(data.len() + varint::take(&mut input).unwrap() as usize, 0);
            data.extend_from_slice(varint::take_bytes(&mut input).unwrap());
        }
        let blocks = BIG_BYTES / BLOCK as u64;
        let disk = usize::from(number >= blocks);
        disks[disk].write_at(number % blocks * BLOCK as u64, &data, IoTag::Check).unwrap();
    }
    disks.iter_mut().for_each(|disk| disk.flush().unwrap());
    disks
}

#[test]
fn packing_loses_nothing() {
    let packed = pack(&make());
    assert_eq!(pack(&unpack(&packed)), packed);
}

#[test]
fn the_same_operations_make_the_same_bytes() {
    let packed = pack(&make());
    assert!(packed.len() < 20_000, "{} bytes are too many for a golden image", packed.len());
    let path = golden_folder().join(format!("v{VERSION}.blocks"));
    if std::env::var_os("ONODE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &packed).unwrap();
    }
    let golden = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("format {VERSION} has no golden image at {}: {error}", path.display()));
    assert!(packed == golden, "the same operations make other bytes: the format or its use has changed");
}

#[test]
fn every_golden_image_mounts_takes_changes_and_mounts_again() {
    let mut images = 0;
    for entry in std::fs::read_dir(golden_folder()).unwrap() {
        let packed = std::fs::read(entry.unwrap().path()).unwrap();
        let [big, fast] = &unpack(&packed);
        // To look at it changes nothing.
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        expect_content(&mount([big, fast], &read_only));
        assert_eq!(pack(&[big.clone(), fast.clone()]), packed);
        let device = mount([big, fast], &MountOptions::default());
        let counters = device.inspect().unwrap().counters();
        let recovered = counters.iter().find(|(name, _)| *name == "log.recovered_from_fast").unwrap().1;
        assert_eq!(recovered, 1, "the last record is on the fast disk alone");
        expect_content(&device);
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![9; 3000]);
        device.commit(transaction, Durability::Durable).unwrap();
        drop(device);
        let device = mount([big, fast], &MountOptions::default());
        let mut found = vec![0; 4000];
        assert_eq!(device.read(object, 0, &mut found).unwrap(), 3000);
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        drop(device);
        let device = mount([big, fast], &MountOptions::default());
        expect_content(&device);
        let damaged = device.scrub().unwrap().scrub(ObjectId(0), 100).unwrap().damaged;
        assert!(damaged.is_empty(), "{damaged:?}");
        images += 1;
    }
    assert!(images > 0);
}

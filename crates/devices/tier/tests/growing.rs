//! Volumes that take up what their big disk has more than them.

use crate::common::held::{fill, make, mount, verify};
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::powers::Extent;
use onode_object::{ErrorKind, ObjectDevice};
use onode_tier::{MountOptions, TierDevice};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

#[test]
fn a_full_volume_grows_and_is_filled_again() {
    let (disk, fast) = (SimDisk::new("big", 160 * MIB), SimDisk::new("fast", 8 * MIB));
    let device = make(&disk, Some(&fast), 16 * MIB);
    let growth = device.resizing().unwrap();
    let before = growth.extent().unwrap();
    let least = 16 * MIB + 64 * BLOCK;
    let fewest = before.fewest;
    assert!(fewest < 2 * MIB, "{fewest}");
    assert_eq!(before, Extent { bytes: 16 * MIB, most: 160 * MIB, least, unit: BLOCK, fewest, moving: 0 });
    let mut made = fill(&device, u64::MAX);
    let full = device.space();
    // Within the page of the bitmap that there is, and beyond it.
    for bytes in [40 * MIB, 150 * MIB] {
        growth.grow(bytes).unwrap();
        assert_eq!(growth.extent().unwrap().bytes, bytes);
        let more = fill(&device, 200);
        assert_eq!(more.len(), 200, "with {bytes} bytes");
        made.extend(more);
    }
    // Pages of the bitmap and a little more for each gigabyte are not for users.
    let grown = device.space();
    assert!(grown.total > full.total + 130 * MIB, "{full:?} {grown:?}");
    verify(&device, &made);
    device.close().unwrap();
    drop(device);
    let device = mount(&disk, Some(&fast));
    assert_eq!(device.space().total, grown.total);
    verify(&device, &made);
    let more = fill(&device, u64::MAX);
    let available = device.space().available;
    assert!(available < MIB, "{available} bytes are left, {} objects were made", more.len());
    verify(&device, &more);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let disk = SimDisk::new("big", 32 * MIB);
    let device = make(&disk, None, 16 * MIB);
    let made = fill(&device, 10);
    let growth = device.resizing().unwrap();
    for bytes in [0, 8 * MIB, 16 * MIB, 16 * MIB + 63 * BLOCK, 33 * MIB, u64::MAX] {
        let refused = growth.grow(bytes).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{bytes}: {refused}");
    }
    assert_eq!(growth.extent().unwrap().bytes, 16 * MIB);
    growth.grow(16 * MIB + 64 * BLOCK + 1).unwrap();
    assert_eq!(growth.extent().unwrap().bytes, 16 * MIB + 64 * BLOCK);
    verify(&device, &made);
    device.close().unwrap();
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let device = TierDevice::mount(Box::new(disk), None, &options).unwrap();
    assert_eq!(device.resizing().unwrap().grow(32 * MIB).unwrap_err().kind, ErrorKind::ReadOnly);
}

#[test]
fn a_volume_that_grows_often_has_room_for_more_pages_each_time() {
    let disk = SimDisk::new("big", 40 << 30);
    let device = make(&disk, None, 1 << 30);
    let made = fill(&device, 20);
    for gigabytes in 2..=40 {
        device.resizing().unwrap().grow(gigabytes << 30).unwrap();
    }
    let total = device.space().total;
    assert!(total > 39 << 30, "{total}");
    device.close().unwrap();
    drop(device);
    verify(&mount(&disk, None), &made);
}

/// Both superblocks at the start are damaged: the one at the end tells the size, before and after
/// the volume grew.
#[test]
fn the_superblock_at_the_end_moves_with_the_volume() {
    let disk = SimDisk::new("big", 300 * MIB);
    let device = make(&disk, None, 16 * MIB);
    let made = fill(&device, 10);
    device.resizing().unwrap().grow(280 * MIB).unwrap();
    device.close().unwrap();
    drop(device);
    let mut damaged = disk.clone();
    damaged.write_at(0, &vec![0x55; 2 * BLOCK as usize], IoTag::Check).unwrap();
    let device = mount(&disk, None);
    assert_eq!(device.resizing().unwrap().extent().unwrap().bytes, 280 * MIB);
    verify(&device, &made);
}

/// Both slots of a page that came are damaged: what is in use is found out from the tree.
#[test]
fn a_damaged_page_of_what_came_is_counted_anew() {
    let disk = SimDisk::new("big", 200 * MIB);
    let device = make(&disk, None, 16 * MIB);
    let mut made = fill(&device, u64::MAX);
    device.resizing().unwrap().grow(200 * MIB).unwrap();
    made.extend(fill(&device, 300));
    device.close().unwrap();
    drop(device);
    let space = {
        let device = mount(&disk, None);
        device.close().unwrap();
        device.space()
    };
    disk.clone().write_at(16 * MIB, &vec![0x55; 2 * BLOCK as usize], IoTag::Check).unwrap();
    let device = mount(&disk, None);
    assert_eq!(device.space(), space);
    made.extend(fill(&device, u64::MAX));
    verify(&device, &made);
}

/// What lay on the disk before must not pass for pages of the bitmap.
#[test]
fn remains_of_a_former_volume_are_not_believed() {
    let disk = SimDisk::new("big", 300 * MIB);
    let former = make(&disk, None, 300 * MIB);
    fill(&former, 100);
    former.close().unwrap();
    drop(former);
    let mut page = vec![0; BLOCK as usize];
    let mut raw = disk.clone();
    // The second page of its bitmap, where this volume will have its own.
    let from = (2 + (256 << 10) / BLOCK + 2) * BLOCK;
    for slot in 0..2 {
        raw.read_at(from + slot * BLOCK, &mut page, IoTag::Check).unwrap();
        raw.write_at(16 * MIB + slot * BLOCK, &page, IoTag::Check).unwrap();
    }
    let device = make(&disk, None, 16 * MIB);
    device.resizing().unwrap().grow(300 * MIB).unwrap();
    let slots = [0, 1].map(|slot| {
        raw.read_at(16 * MIB + slot * BLOCK, &mut page, IoTag::Check).unwrap();
        page.iter().all(|byte| *byte == 0)
    });
    assert_eq!(slots, [true, false], "whether the slots of the page are blank");
    let made = fill(&device, 400);
    device.close().unwrap();
    drop(device);
    verify(&mount(&disk, None), &made);
}

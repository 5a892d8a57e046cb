//! Volumes that give back the end of their big disk: everything moves in front of it while they are
//! in use, and a refusal leaves them as they were.

use crate::common::held::{bytes_of, fill, make, mount, remove, verify};
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::powers::Resize;
use onode_object::{Durability, ErrorKind, ObjectDevice, ObjectId, Result, SyncScope};
use onode_tier::{MountOptions, TierDevice};

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// Removes all but one of so many objects.
fn thin_out(device: &TierDevice, made: &mut Vec<ObjectId>, one_of: usize) {
    let (kept, doomed): (Vec<_>, Vec<_>) = made.iter().copied().enumerate().partition(|(at, _)| at % one_of == 0);
    for (_, object) in doomed {
        remove(device, object, Durability::Buffered);
    }
    *made = kept.into_iter().map(|(_, object)| object).collect();
    device.sync(SyncScope::All).unwrap();
}

/// Shrinks with nothing else going on; gives the number of steps.
fn shrink(device: &TierDevice, bytes: u64) -> Result<usize> {
    device.begin_shrinking(bytes)?;
    for steps in 1..10_000 {
        if device.shrink_some()? {
            return Ok(steps);
        }
    }
    panic!("it never ends")
}

/// The disk as far as the volume has it.
fn cut_off(disk: &SimDisk, bytes: u64) -> SimDisk {
    let mut part = SimDisk::new(disk.name(), bytes);
    let (mut from, mut block) = (disk.clone(), vec![0; BLOCK as usize]);
    for offset in (0..bytes).step_by(BLOCK as usize) {
        from.read_at(offset, &mut block, IoTag::Check).unwrap();
        part.write_at(offset, &block, IoTag::Check).unwrap();
    }
    part.flush().unwrap();
    part
}

#[test]
fn a_volume_shrinks_to_what_it_holds_and_grows_again() {
    for has_fast in [false, true] {
        let (disk, fast) = (SimDisk::new("big", 64 * MIB), SimDisk::new("fast", 8 * MIB));
        let fast = has_fast.then_some(&fast);
        let device = make(&disk, fast, 64 * MIB);
        let mut made = fill(&device, u64::MAX);
        let full = device.extent().unwrap();
        assert!(full.fewest > full.bytes / 8 * 7, "{full:?}");
        assert_eq!(device.begin_shrinking(32 * MIB).unwrap_err().kind, ErrorKind::NoSpace);
        thin_out(&device, &mut made, 3);
        let (extent, space) = (device.extent().unwrap(), device.space());
        assert!(extent.fewest < extent.bytes / 2, "{extent:?}");
        let steps = shrink(&device, extent.fewest).unwrap();
        assert!(steps > 6, "{steps}");
        let after = device.extent().unwrap();
        assert_eq!((after.bytes, after.moving, after.most), (extent.fewest, 0, 64 * MIB));
        assert!(device.space().total < space.total / 2);
        verify(&device, &made);
        drop(device);
        // As a crash finds it, then as a close leaves it; nothing behind the end is needed.
        let disk = cut_off(&disk, extent.fewest);
        for closes in [false, true] {
            let device = mount(&disk, fast);
            assert_eq!(device.extent().unwrap().bytes, extent.fewest);
            verify(&device, &made);
            if closes {
                device.close().unwrap();
            }
        }
        let longer = SimDisk::from_content("big", 64 * MIB, disk.content());
        let device = mount(&longer, fast);
        made.extend(fill(&device, u64::MAX));
        device.grow(64 * MIB).unwrap();
        let more = fill(&device, u64::MAX);
        assert!(more.len() > 300, "{}", more.len());
        made.extend(more);
        verify(&device, &made);
        device.close().unwrap();
        drop(device);
        verify(&mount(&longer, fast), &made);
    }
}

/// Pages of the bitmap lie where the volume had grown, and behind the log there are more than a
/// smaller one needs.
#[test]
fn pages_of_the_bitmap_go_with_what_they_tell_of() {
    let disk = SimDisk::new("big", 600 * MIB);
    let device = make(&disk, None, 300 * MIB);
    let mut made = fill(&device, 100);
    device.grow(600 * MIB).unwrap();
    made.extend(fill(&device, 100));
    // In front of the area, in it, and behind it; then with fewer pages than it was made with.
    for bytes in [600 * MIB - BLOCK, 300 * MIB + BLOCK, 290 * MIB, 100 * MIB, 40 * MIB] {
        shrink(&device, bytes).unwrap();
        let now = device.extent().unwrap().bytes;
        assert!(now <= bytes && now + 2 * BLOCK >= bytes, "{now} of {bytes}");
        verify(&device, &made);
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let found = TierDevice::mount(Box::new(cut_off(&disk, now)), None, &options).unwrap();
        assert_eq!(found.extent().unwrap().bytes, now);
        verify(&found, &made);
    }
    device.grow(500 * MIB).unwrap();
    made.extend(fill(&device, 3000));
    verify(&device, &made);
    device.close().unwrap();
    drop(device);
    verify(&mount(&disk, None), &made);
}

#[test]
fn what_is_written_meanwhile_is_there_afterwards() {
    let (disk, fast) = (SimDisk::new("big", 64 * MIB), SimDisk::new("fast", 8 * MIB));
    let device = make(&disk, Some(&fast), 64 * MIB);
    let mut made = fill(&device, u64::MAX);
    thin_out(&device, &mut made, 4);
    device.begin_shrinking(32 * MIB).unwrap();
    let (mut steps, mut moving) = (0, u64::MAX);
    while !device.shrink_some().unwrap() {
        steps += 1;
        let extent = device.extent().unwrap();
        assert!(extent.moving <= moving && extent.bytes == 64 * MIB, "{extent:?} {moving}");
        moving = extent.moving;
        made.extend(fill(&device, 2));
        if steps % 2 == 0 {
            remove(&device, made.remove(steps % made.len()), Durability::Buffered);
        }
        device.verify().unwrap();
    }
    assert!(steps > 3, "{steps}");
    assert_eq!(device.extent().unwrap().bytes, 32 * MIB);
    made.extend(fill(&device, u64::MAX));
    verify(&device, &made);
    drop(device);
    verify(&mount(&cut_off(&disk, 32 * MIB), Some(&fast)), &made);
}

/// Blocks written for each that had to move. The least is 1; nodes, pages of the bitmap and
/// superblocks are more.
#[test]
fn what_moves_is_written_about_once() {
    let disk = SimDisk::new("big", 256 * MIB);
    let device = make(&disk, None, 256 * MIB);
    let mut made = fill(&device, u64::MAX);
    thin_out(&device, &mut made, 3);
    device.begin_shrinking(128 * MIB).unwrap();
    let moving = device.extent().unwrap().moving;
    let written = || disk.counters().unwrap().total().bytes_written;
    let before = written();
    let mut steps = 0;
    while !device.shrink_some().unwrap() {
        steps += 1;
    }
    let ratio = (written() - before) as f64 / moving as f64;
    println!("{} MiB moved in {steps} steps: {ratio:.3} bytes written a byte", moving / MIB);
    assert!(moving > 32 * MIB && ratio < 1.06, "{ratio} for {moving}");
    verify(&device, &made);
}

#[test]
fn what_cannot_be_is_refused_and_a_stop_leaves_it_as_large() {
    let disk = SimDisk::new("big", 64 * MIB);
    let device = make(&disk, None, 64 * MIB);
    let mut made = fill(&device, u64::MAX);
    thin_out(&device, &mut made, 2);
    let space = device.space();
    for bytes in [0, BLOCK, 512 << 10, 64 * MIB, 65 * MIB, u64::MAX] {
        let refused = device.begin_shrinking(bytes).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Invalid, "{bytes}: {refused}");
    }
    assert!(device.shrink_some().unwrap());
    device.begin_shrinking(48 * MIB).unwrap();
    assert!(device.space().total < space.total);
    assert!(!device.shrink_some().unwrap());
    device.stop_shrinking().unwrap();
    assert_eq!(device.space().total, space.total);
    // It is filled with what a smaller one has no room for; then it cannot shrink any more.
    made.extend(fill(&device, u64::MAX));
    assert_eq!(device.begin_shrinking(48 * MIB).unwrap_err().kind, ErrorKind::NoSpace);
    verify(&device, &made);
    device.close().unwrap();
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let device = TierDevice::mount(Box::new(disk), None, &options).unwrap();
    assert_eq!(device.begin_shrinking(48 * MIB).unwrap_err().kind, ErrorKind::ReadOnly);
}

/// What is damaged cannot move: the volume stays as it is, and tells what is damaged.
#[test]
fn damage_in_the_way_is_told_and_nothing_is_lost() {
    let disk = SimDisk::new("big", 64 * MIB);
    let device = make(&disk, None, 64 * MIB);
    let mut made = fill(&device, u64::MAX);
    thin_out(&device, &mut made, 4);
    device.close().unwrap();
    drop(device);
    let (mut damaged, mut block) = (disk.clone(), vec![0; BLOCK as usize]);
    let starts: Vec<Vec<u8>> = made.iter().map(|object| bytes_of(*object)[..BLOCK as usize].to_vec()).collect();
    for offset in (40 * MIB..60 * MIB).step_by(BLOCK as usize) {
        damaged.read_at(offset, &mut block, IoTag::Check).unwrap();
        if starts.contains(&block) {
            damaged.write_at(offset, &[0x55; BLOCK as usize], IoTag::Check).unwrap();
        }
    }
    let device = mount(&disk, None);
    device.begin_shrinking(32 * MIB).unwrap();
    let refused = loop {
        match device.shrink_some() {
            Ok(is_done) => assert!(!is_done),
            Err(error) => break error,
        }
    };
    assert!(refused.kind == ErrorKind::Corrupt && refused.object.is_some(), "{refused}");
    assert_eq!((device.extent().unwrap().bytes, device.extent().unwrap().moving), (64 * MIB, 0));
    device.verify().unwrap();
    // Without what is damaged it shrinks.
    let is_whole = |object: &ObjectId| device.read(*object, 0, &mut vec![0; 64 << 10]).is_ok();
    let (whole, lost): (Vec<_>, Vec<_>) = made.iter().partition(|object| is_whole(object));
    assert!(!lost.is_empty() && !whole.is_empty());
    for object in lost {
        remove(&device, object, Durability::Durable);
    }
    shrink(&device, 32 * MIB).unwrap();
    verify(&device, &whole);
}

/// A hot file stays on the fast disk when its place on the big one changes.
#[test]
fn what_moves_keeps_its_copy() {
    let (disk, fast) = (SimDisk::new("big", 64 * MIB), SimDisk::new("fast", 8 * MIB));
    let device = make(&disk, Some(&fast), 64 * MIB);
    let mut made = fill(&device, u64::MAX);
    let hot: Vec<ObjectId> = made.iter().copied().rev().step_by(40).take(20).collect();
    made.retain(|object| hot.contains(object) || object.0 % 4 == 0);
    let kept = made.clone();
    for object in device.list(ObjectId(0), usize::MAX).unwrap() {
        if !kept.contains(&object) {
            remove(&device, object, Durability::Buffered);
        }
    }
    device.sync(SyncScope::All).unwrap();
    let place = device.place().unwrap();
    for object in &hot {
        place.promote(*object, true).unwrap();
    }
    let copied = || hot.iter().map(|object| place.why(*object).unwrap().fast_bytes).sum::<u64>();
    let before = copied();
    assert!(before > MIB, "{before}");
    shrink(&device, 32 * MIB).unwrap();
    assert!(copied() >= before / 4 * 3, "{} of {before}", copied());
    verify(&device, &made);
}

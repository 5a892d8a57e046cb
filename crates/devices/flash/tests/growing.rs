//! Volumes that grow into a medium that became larger: full ones go on, nothing that was there is
//! touched, and superblocks are found wherever they are.

use crate::common::held::{Held, closes_whole, fill, is_sound, mount, verify, volume};
use crate::common::pair::memory;
use crate::common::{LARGE, SMALL, STRIPED, Shared, TINY};
use onode_base::ErrorKind;
use onode_flash::{FindMemory, FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath};
use onode_media::{BlockAddress, Geometry, IoTag, Nand, Pmem, SimOptions, SimPmem};
use onode_object::powers::{Attach, Resize};
use onode_object::{Durability, Error, ObjectDevice, ObjectId, SyncScope, Transaction};
use std::sync::Arc;

fn first(blocks: u32) -> FormatOptions {
    FormatOptions { blocks: Some(blocks), ..FormatOptions::default() }
}

#[test]
fn a_full_volume_takes_more_after_it_has_grown() {
    let parity = FormatOptions { blocks_per_segment: Some(4), parity_pages: 1, ..FormatOptions::default() };
    for (shape, blocks, medium, format) in [
        (TINY, 40, 100, FormatOptions::default()),
        (TINY, 100, 1100, FormatOptions::default()),
        (SMALL, 80, 200, FormatOptions::default()),
        (LARGE, 1020, 1100, FormatOptions::default()),
        (STRIPED, 160, 400, FormatOptions::default()),
        (SMALL, 160, 400, parity),
        (TINY, 160, 400, parity),
    ] {
        let (nand, device) = volume(shape, medium, &FormatOptions { blocks: Some(blocks), ..format });
        let mut held = Held::new();
        fill(&device, &mut held);
        let before = (device.space(), device.extent().unwrap());
        assert_eq!(before.1.most / before.1.unit, u64::from(medium));
        device.grow(before.1.most).unwrap();
        assert_eq!(device.extent().unwrap().bytes, before.1.most);
        let gained = device.space().total - before.0.total;
        let all = (before.1.most - before.1.bytes) / 100;
        assert!((55 * all..=100 * all).contains(&gained), "{gained} of {} bytes gained", 100 * all);
        verify(&device, &held);
        let more = fill(&device, &mut held);
        assert!(more > 0);
        device.sync(SyncScope::All).unwrap();
        // As a crash finds it, then as a close leaves it.
        for closes in [false, true] {
            let device = mount(&nand);
            verify(&device, &held);
            if closes {
                device.close().unwrap();
                is_sound(&nand);
            }
        }
        verify(&mount(&nand), &held);
    }
}

#[test]
fn a_volume_grows_step_by_step_and_needs_no_superblock_at_its_end() {
    for steps in [[100, 300, 1000], [1000, 1030, 2000], [300, 1023, 1100]] {
        let (nand, device) = volume(TINY, 2100, &first(steps[0]));
        let mut held = Held::new();
        fill(&device, &mut held);
        for blocks in steps.into_iter().skip(1) {
            let unit = device.extent().unwrap().unit;
            device.grow(u64::from(blocks) * unit + unit - 1).unwrap();
            assert_eq!(device.extent().unwrap().bytes, u64::from(blocks) * unit);
            fill(&device, &mut held);
        }
        device.close().unwrap();
        drop(device);
        is_sound(&nand);
        let last = *steps.last().unwrap();
        // Where the medium is larger than the volume, its end is found from its start alone.
        for block in last - 2..last {
            nand.with(|nand| nand.erase(BlockAddress(block), IoTag::Data)).unwrap();
        }
        verify(&mount(&nand), &held);
    }
}

#[test]
fn with_its_start_lost_a_volume_that_fills_its_medium_is_found_from_the_end() {
    for (blocks, medium) in [(100, 300), (1000, 1100), (1030, 1100)] {
        let (nand, device) = volume(TINY, medium, &first(blocks));
        let mut held = Held::new();
        fill(&device, &mut held);
        device.grow(device.extent().unwrap().most).unwrap();
        device.close().unwrap();
        drop(device);
        // Two blocks at the start of each of these volumes, or three.
        let head = if blocks < 1024 { 2 } else { 3 };
        for block in 0..head {
            nand.with(|nand| nand.erase(BlockAddress(block), IoTag::Data)).unwrap();
        }
        let device = mount(&nand);
        verify(&device, &held);
        fill(&device, &mut held);
        closes_whole(&device, &nand, &held);
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (nand, device) = volume(SMALL, 100, &first(80));
    let extent = device.extent().unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    for bytes in [0, extent.bytes - extent.unit, extent.bytes, extent.bytes + extent.unit, extent.most + extent.unit] {
        let error = device.grow(bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{bytes}: {error}");
        let after = device.extent().unwrap();
        assert_eq!((after.bytes, after.most, after.least), (extent.bytes, extent.most, extent.least));
    }
    assert_eq!(device.grow(u64::MAX).unwrap_err().kind, ErrorKind::Invalid);
    verify(&device, &held);
    device.close().unwrap();
    drop(device);
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let device = FlashDevice::mount(nand, &options).unwrap();
    assert_eq!(device.grow(extent.most).unwrap_err().kind, ErrorKind::ReadOnly);
}

#[test]
fn a_table_longer_than_a_segment_is_written_in_parts() {
    // Segments of 32 pages of 512 bytes, at first 70 of them.
    let format = FormatOptions { blocks_per_segment: Some(2), ..first(160) };
    let (nand, device) = volume(TINY, 16_000, &format);
    let mut held = Held::new();
    fill(&device, &mut held);
    let most = (1..16_000u32).rev().find(|blocks| device.grow(u64::from(*blocks) * 16 * 512).is_ok()).unwrap();
    assert!(most > 5000, "{most}");
    let error = device.grow(15_999 * 16 * 512).unwrap_err();
    assert!(error.detail.contains("at most 39 MiB"), "{error}");
    for round in 0..20 {
        let doomed: Vec<ObjectId> = held.keys().copied().step_by(3 + round % 2).collect();
        for object in doomed {
            let mut transaction = Transaction::new();
            transaction.remove(object);
            device.commit(transaction, Durability::Buffered).unwrap();
            held.remove(&object);
        }
        fill(&device, &mut held);
        device.sync(SyncScope::All).unwrap();
    }
    verify(&mount(&nand), &held);
    let device = mount(&nand);
    closes_whole(&device, &nand, &held);
}

#[test]
fn bad_blocks_in_what_comes_are_passed_over() {
    let nand = Shared::with_options(Geometry { blocks: 300, ..SMALL }, SimOptions::default());
    for block in [120, 121, 200, 298] {
        nand.with(|nand| nand.mark_bad(BlockAddress(block))).unwrap();
    }
    let device = FlashDevice::format(nand.clone(), &first(100), &MountOptions::default()).unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    device.grow(device.extent().unwrap().most).unwrap();
    fill(&device, &mut held);
    closes_whole(&device, &nand, &held);
}

/// A memory that is where it was, or gone.
struct Where(Option<Arc<SimPmem>>);

impl FindMemory for Where {
    fn find(&self) -> onode_object::Result<(Box<dyn Pmem>, MemoryOptions)> {
        let memory = self.0.clone().ok_or_else(|| Error::new(ErrorKind::Media, "it is gone"))?;
        Ok((Box::new(memory), MemoryOptions::default()))
    }
}

#[test]
fn a_memory_beside_the_flash_takes_part_again_after_growth() {
    let (nand, beside) = (Shared::new(Geometry { blocks: 128, ..SMALL }), memory(64 << 10));
    let (options, memory_options) = Default::default();
    let device =
        FlashDevice::format_beside(nand.clone(), beside.clone(), &first(64), &options, &memory_options).unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    let unit = device.extent().unwrap().unit;
    // The library does not know where the memory is unless it is told.
    assert_eq!(device.grow(96 * unit).unwrap_err().kind, ErrorKind::Invalid);
    assert!(device.is_attached());
    device.set_finder(Arc::new(Where(Some(beside.clone()))));
    device.grow(96 * unit).unwrap();
    assert!(device.is_attached() && fill(&device, &mut held) > 10);
    verify(&device, &held);
    device.close().unwrap();
    drop(device);
    let again = FlashDevice::mount_beside(nand.clone(), beside, &options, &memory_options, &mut |_| {});
    let (device, path) = again.unwrap();
    assert_eq!(path, MountPath::Memory);
    verify(&device, &held);
    // One that does not come back is missed, and nothing with it.
    device.set_finder(Arc::new(Where(None)));
    device.grow(128 * unit).unwrap();
    let health = device.health();
    let told: Vec<&str> = health.conditions.iter().map(|condition| &*condition.code).collect();
    assert!(told.contains(&"memory-given-up") && told.contains(&"memory-not-attached"), "{told:?}");
    assert!(fill(&device, &mut held) > 10);
    verify(&device, &held);
    device.close().unwrap();
    drop(device);
    let again = FlashDevice::mount_beside(nand, memory(64 << 10), &options, &memory_options, &mut |_| {});
    verify(&again.unwrap().0, &held);
}

//! Volumes that shrink: everything moves in front of the new end while the volume is in use, and a
//! refusal leaves it as it was.

use crate::common::held::{Held, closes_whole, fill, is_sound, mount, verify, volume};
use crate::common::pair::memory;
use crate::common::{LARGE, SMALL, STRIPED, Shared, TINY};
use onode_base::ErrorKind;
use onode_flash::{FindMemory, FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath};
use onode_media::{BlockAddress, Geometry, IoTag, Nand, PageAddress, Pmem, SimOptions, SimPmem};
use onode_object::powers::{Attach, Resize};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Result, SyncScope, Transaction};
use std::sync::Arc;

/// Removes all but one of so many objects.
fn thin_out(device: &FlashDevice, held: &mut Held, one_of: usize) {
    let doomed: Vec<ObjectId> =
        held.keys().copied().enumerate().filter(|(place, _)| place % one_of != 0).map(|(_, object)| object).collect();
    for object in doomed {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Buffered).unwrap();
        held.remove(&object);
    }
}

/// Shrinks to so many erase blocks with nothing else going on; gives the number of steps.
fn shrink(device: &FlashDevice, blocks: u64) -> Result<usize> {
    device.begin_shrinking(blocks * device.extent()?.unit)?;
    for steps in 1.. {
        if device.shrink_some()? {
            return Ok(steps);
        }
    }
    unreachable!()
}

fn blocks(device: &FlashDevice) -> u64 {
    let extent = device.extent().unwrap();
    extent.bytes / extent.unit
}

#[test]
fn a_volume_shrinks_to_what_it_holds_and_grows_again() {
    let parity = FormatOptions { blocks_per_segment: Some(4), parity_pages: 1, ..FormatOptions::default() };
    for (shape, medium, format) in [
        (TINY, 100, FormatOptions::default()),
        (TINY, 1100, FormatOptions::default()),
        (SMALL, 200, FormatOptions::default()),
        (LARGE, 1100, FormatOptions::default()),
        (STRIPED, 400, FormatOptions::default()),
        (SMALL, 400, parity),
        (TINY, 400, parity),
    ] {
        let (nand, device) = volume(shape, medium, &format);
        let mut held = Held::new();
        fill(&device, &mut held);
        let full = device.extent().unwrap();
        assert!(full.fewest > full.bytes / 8 * 7, "{full:?}");
        thin_out(&device, &mut held, 3);
        let (extent, space) = (device.extent().unwrap(), device.space());
        assert!(extent.fewest < extent.bytes / 4 * 3, "{extent:?}");
        let steps = shrink(&device, extent.fewest / extent.unit).unwrap();
        let after = device.extent().unwrap();
        assert_eq!((after.bytes, after.moving), (extent.fewest, 0), "in {steps} steps");
        assert!(device.space().total < space.total);
        verify(&device, &held);
        drop(device);
        // As a crash finds it, then as a close leaves it.
        for closes in [false, true] {
            let device = mount(&nand);
            assert_eq!(device.extent().unwrap().bytes, extent.fewest);
            verify(&device, &held);
            if closes {
                device.close().unwrap();
                is_sound(&nand);
            }
        }
        let device = mount(&nand);
        fill(&device, &mut held);
        device.grow(extent.bytes).unwrap();
        assert!(fill(&device, &mut held) > 0);
        verify(&device, &held);
        closes_whole(&device, &nand, &held);
    }
}

#[test]
fn what_was_removed_before_a_crash_takes_no_room() {
    let (nand, device) = volume(SMALL, 400, &FormatOptions::default());
    let mut held = Held::new();
    fill(&device, &mut held);
    device.close().unwrap();
    drop(device);
    let device = mount(&nand);
    thin_out(&device, &mut held, 10);
    device.sync(SyncScope::All).unwrap();
    drop(device);
    let device = mount(&nand);
    let told = device.extent().unwrap();
    // The mount has yet to apply it.
    shrink(&device, told.fewest / 8 * 7 / told.unit).unwrap();
    verify(&device, &held);
}

#[test]
fn what_is_written_meanwhile_is_there_afterwards() {
    for (shape, medium, to) in [(TINY, 600, 300), (SMALL, 120, 60), (STRIPED, 400, 200)] {
        let (nand, device) = volume(shape, medium, &FormatOptions::default());
        let mut held = Held::new();
        fill(&device, &mut held);
        thin_out(&device, &mut held, 6);
        device.begin_shrinking(to * device.extent().unwrap().unit).unwrap();
        let (mut steps, mut moved) = (0, 0);
        while !device.shrink_some().unwrap() {
            steps += 1;
            moved += u64::from(device.extent().unwrap().moving > 0);
            assert_eq!(blocks(&device), u64::from(medium));
            // Some come, some are overwritten, some go.
            let object = device.reserve_ids(1).unwrap();
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default()).write(object, 0, vec![steps as u8; 300]);
            if steps % 3 == 0 {
                let (&other, content) = held.iter_mut().next_back().unwrap();
                transaction.write(other, 0, vec![0xee; 70]);
                content.resize(content.len().max(70), 0);
                content[..70].fill(0xee);
            }
            if steps % 4 == 0 {
                let (doomed, _) = held.pop_first().unwrap();
                transaction.remove(doomed);
            }
            let durability = if steps % 2 == 0 { Durability::Durable } else { Durability::Buffered };
            device.commit(transaction, durability).unwrap();
            held.insert(object, vec![steps as u8; 300]);
        }
        assert!(steps > 3 && moved > 0, "{steps} {moved}");
        assert_eq!(blocks(&device), to);
        verify(&device, &held);
        device.sync(SyncScope::All).unwrap();
        drop(device);
        verify(&mount(&nand), &held);
        mount(&nand).close().unwrap();
        is_sound(&nand);
    }
}

/// Pages programmed for each that had to move. The least is 1; nodes above what moved, the segment
/// table and what was cleaned to make room are more.
#[test]
fn what_moves_is_moved_about_once() {
    for (shape, medium, left, most) in [(SMALL, 1000, 2, 1.05), (SMALL, 1000, 4, 1.05), (LARGE, 1100, 3, 1.05)] {
        let (nand, device) = volume(shape, medium, &FormatOptions::default());
        let mut held = Held::new();
        fill(&device, &mut held);
        // What is made first lies at the start, and goes.
        let gone = held.len() - held.len() / left;
        for _ in 0..gone {
            let (object, _) = held.pop_first().unwrap();
            let mut transaction = Transaction::new();
            transaction.remove(object);
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.sync(SyncScope::All).unwrap();
        let programs = || nand.with(|nand| nand.counters()).unwrap().total().programs;
        let extent = device.extent().unwrap();
        let before = programs();
        device.begin_shrinking(extent.fewest + (extent.bytes - extent.fewest) / 4).unwrap();
        let moving = device.extent().unwrap().moving.div_ceil(u64::from(shape.page_bytes));
        while !device.shrink_some().unwrap() {}
        let ratio = (programs() - before) as f64 / moving as f64;
        println!("{moving} pages behind the new end: {:.2} programs each", ratio);
        assert!(moving > 1000 && ratio < most, "{moving} {ratio}");
        verify(&device, &held);
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (nand, device) = volume(SMALL, 100, &FormatOptions::default());
    let extent = device.extent().unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    let space = device.space();
    for (bytes, kind) in [
        (0, ErrorKind::Invalid),
        (extent.unit * 8, ErrorKind::Invalid),
        (extent.bytes, ErrorKind::Invalid),
        (extent.bytes - extent.unit, ErrorKind::Invalid),
        (extent.bytes + extent.unit, ErrorKind::Invalid),
        (extent.bytes / 2, ErrorKind::NoSpace),
        (u64::MAX, ErrorKind::Invalid),
    ] {
        let error = device.begin_shrinking(bytes).unwrap_err();
        assert_eq!(error.kind, kind, "{bytes}: {error}");
        assert!(device.shrink_some().unwrap() && device.space() == space);
    }
    assert_eq!(device.extent().unwrap().bytes, extent.bytes);
    thin_out(&device, &mut held, 10);
    // It was to shrink, and stays, as long as it is told so or it is mounted anew.
    device.begin_shrinking(extent.bytes / 2).unwrap();
    assert!(!device.shrink_some().unwrap());
    let smaller = device.space().total;
    assert!(smaller < space.total / 5 * 3);
    device.stop_shrinking().unwrap();
    assert!(device.space().total > smaller && blocks(&device) == 100);
    device.begin_shrinking(extent.bytes / 2).unwrap();
    assert!(!device.shrink_some().unwrap());
    device.close().unwrap();
    drop(device);
    is_sound(&nand);
    let device = mount(&nand);
    assert_eq!(device.extent().unwrap().bytes, extent.bytes);
    verify(&device, &held);
    device.close().unwrap();
    drop(device);
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let device = FlashDevice::mount(nand, &options).unwrap();
    assert_eq!(device.begin_shrinking(extent.bytes / 2).unwrap_err().kind, ErrorKind::ReadOnly);
}

#[test]
fn who_fills_the_volume_meanwhile_is_told_that_it_is_full() {
    let (nand, device) = volume(TINY, 600, &FormatOptions::default());
    let mut held = Held::new();
    fill(&device, &mut held);
    thin_out(&device, &mut held, 5);
    device.begin_shrinking(300 * device.extent().unwrap().unit).unwrap();
    assert!(!device.shrink_some().unwrap());
    fill(&device, &mut held);
    let mut steps = 0;
    while !device.shrink_some().unwrap() {
        steps += 1;
        assert!(steps < 10_000);
    }
    assert_eq!(blocks(&device), 300);
    verify(&device, &held);
    fill(&device, &mut held);
    closes_whole(&device, &nand, &held);
}

#[test]
fn superblocks_of_a_large_medium_are_found_on_one_that_is_cut_to_the_small_volume() {
    // Three blocks at the start hold them, and seven at the end.
    let (nand, device) = volume(TINY, 1100, &FormatOptions::default());
    let mut held = Held::new();
    fill(&device, &mut held);
    thin_out(&device, &mut held, 20);
    shrink(&device, 400).unwrap();
    device.close().unwrap();
    drop(device);
    let copy = |blocks: u32| {
        let geometry = Geometry { blocks, ..nand.with(|nand| nand.geometry()) };
        let copy = Shared::new(geometry);
        let mut page = vec![0; 512];
        for address in 0..geometry.pages() {
            nand.with(|nand| nand.read(PageAddress(address), &mut page, &mut [], IoTag::Data)).unwrap();
            if page.iter().any(|byte| *byte != 0xff) {
                copy.with(|nand| nand.program(PageAddress(address), &page, &[], IoTag::Data)).unwrap();
            }
        }
        copy
    };
    for lost in [vec![], vec![0, 1], vec![0, 1, 2], vec![393, 394, 395, 396, 397, 398, 399], vec![1, 2]] {
        let cut = copy(400);
        for block in &lost {
            cut.with(|nand| nand.erase(BlockAddress(*block), IoTag::Data)).unwrap();
        }
        let device = mount(&cut);
        assert_eq!(blocks(&device), 400);
        verify(&device, &held);
        let mut more = held.clone();
        fill(&device, &mut more);
        closes_whole(&device, &cut, &more);
    }
}

#[test]
fn bad_blocks_are_passed_over_and_what_is_damaged_stays_where_it_is() {
    let nand = Shared::with_options(Geometry { blocks: 300, ..SMALL }, SimOptions::default());
    for block in [20, 120, 121, 150, 298] {
        nand.with(|nand| nand.mark_bad(BlockAddress(block))).unwrap();
    }
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    thin_out(&device, &mut held, 4);
    shrink(&device, 152).unwrap();
    verify(&device, &held);
    device.close().unwrap();
    is_sound(&nand);
    drop(device);
    let device = mount(&nand);
    verify(&device, &held);
    // Something else is in blocks near the end now: what was there is lost.
    for block in 141..149 {
        nand.with(|nand| nand.erase(BlockAddress(block), IoTag::Data)).unwrap();
        for page in 0..64 {
            let page = PageAddress(u64::from(block) * 64 + page);
            nand.with(|nand| nand.program(page, &[7; 2048], &[7; 64], IoTag::Data)).unwrap();
        }
    }
    let before = device.extent().unwrap();
    let error = shrink(&device, 140).unwrap_err();
    assert_eq!((error.kind, device.extent().unwrap().bytes), (ErrorKind::Corrupt, before.bytes), "{error}");
    assert!(device.extent().unwrap().moving == 0);
}

/// A memory that is where it was.
struct Beside(Arc<SimPmem>);

impl FindMemory for Beside {
    fn find(&self) -> Result<(Box<dyn Pmem>, MemoryOptions)> {
        Ok((Box::new(self.0.clone()), MemoryOptions::default()))
    }
}

#[test]
fn a_memory_beside_the_flash_takes_part_again_when_it_has_shrunk() {
    let (nand, beside) = (Shared::new(Geometry { blocks: 128, ..SMALL }), memory(64 << 10));
    let (options, memory_options) = Default::default();
    let format = FormatOptions::default();
    let device = FlashDevice::format_beside(nand.clone(), beside.clone(), &format, &options, &memory_options).unwrap();
    let mut held = Held::new();
    fill(&device, &mut held);
    thin_out(&device, &mut held, 3);
    // The library does not know where the memory is unless it is told.
    let refused = device.begin_shrinking(90 * device.extent().unwrap().unit).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Invalid, "{refused}");
    device.set_finder(Arc::new(Beside(beside.clone())));
    shrink(&device, 90).unwrap();
    assert!(device.is_attached() && blocks(&device) == 90);
    verify(&device, &held);
    fill(&device, &mut held);
    device.close().unwrap();
    drop(device);
    let again = FlashDevice::mount_beside(nand, beside, &options, &memory_options, &mut |_| {});
    let (device, path) = again.unwrap();
    assert_eq!((path, blocks(&device)), (MountPath::Memory, 90));
    verify(&device, &held);
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_written_after_an_image_changed_its_size_is_read_beside_the_owner() {
    use onode_media::ImageNand;
    use onode_media::image::CreateOptions;
    let path = std::env::temp_dir().join(format!("onode-flash-shrinking-{}", std::process::id()));
    let (shape, how) = (Geometry { blocks: 96, ..SMALL }, CreateOptions { uuid: [4; 16], overwrite: true });
    let nand = ImageNand::create(&path, shape, how).unwrap();
    let device = FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).unwrap();
    let (mut held, before) = (Held::new(), blocks(&device));
    for to in [before / 2, before / 3, before] {
        fill(&device, &mut held);
        verify(&device, &held);
        thin_out(&device, &mut held, 8);
        if to < before {
            shrink(&device, to).unwrap();
        } else {
            device.grow(to * device.extent().unwrap().unit).unwrap();
        }
        assert_eq!(blocks(&device), to);
        assert!(fill(&device, &mut held) > 0);
        verify(&device, &held);
    }
    assert!(device.health().conditions.is_empty(), "{:?}", device.health());
    device.close().unwrap();
    std::fs::remove_file(&path).unwrap();
}

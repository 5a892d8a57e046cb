//! Volumes with their index in a memory beside the flash: the conformance suite, and the ways of a
//! mount.

use crate::common::pair::{Pair, look, memory, put, used};
use crate::common::{SMALL, Shared};
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, FormatOptions, MemoryOptions, MountOptions, MountPath};
use onode_media::sim::pmem::crash::Survival;
use onode_media::sim::pmem::options::PmemOptions;
use onode_media::{Geometry, SimPmem};
use onode_object::{Durability, Hints, ObjectDevice, Transaction};
use std::sync::Arc;

onode_object::conformance!(pages_of_2_kib, |bytes| Pair::holding(SMALL, bytes, MemoryOptions::default()));

#[test]
fn a_clean_mount_reads_no_page_of_flash_however_full() {
    for (blocks, steps) in [(64, 30), (64, 400), (256, 2000)] {
        let mut pair = used(blocks, 256 << 10, steps, MemoryOptions::default());
        let seen = look(pair.device());
        pair.device().close().unwrap();
        let before = pair.reads();
        assert_eq!(pair.mount(), MountPath::Memory);
        assert_eq!(pair.reads() - before, 0, "{blocks} blocks, {steps} steps");
        assert_eq!(look(pair.device()), seen);
        // Nor does finding out where the bytes of an object lie, once the two are known to belong
        // together.
        let before = pair.reads();
        for (object, ..) in &seen {
            pair.device().stat(*object).unwrap();
            pair.device().extents(*object, 0, 100).unwrap();
        }
        assert_eq!(pair.reads() - before, 0, "{blocks} blocks, {steps} steps");
    }
}

#[test]
fn all_ways_of_a_mount_show_the_same() {
    for steps in [1, 7, 60, 300, 900] {
        let mut pair = used(128, 128 << 10, steps, MemoryOptions::default());
        let seen = look(pair.device());
        pair.cut(Survival::Nothing);
        let (nand, image) = (pair.nand.with(|nand| nand.clone()), pair.memory.image());
        assert_eq!(pair.mount(), MountPath::Behind);
        assert_eq!(look(pair.device()), seen, "behind, {steps} steps");
        pair.agrees();
        let mut torn = image.clone();
        for blob in (128..torn.len()).step_by(32) {
            // Some of them may be given up already.
            torn[blob + 17] ^= u8::from(torn[blob] != 0 && torn[blob + 1] == 0xb7);
        }
        let mut anchorless = image.clone();
        anchorless[..128].fill(0xff);
        for (image, what) in [(vec![0; image.len()], "wiped"), (torn, "torn"), (anchorless, "without anchor")] {
            pair.nand = Shared::holding(nand.clone());
            pair.memory = Arc::new(SimPmem::from_image(image, PmemOptions::default()));
            assert!(matches!(pair.mount(), MountPath::Rebuilt(_)), "{what}");
            assert_eq!(look(pair.device()), seen, "{what}, {steps} steps");
            pair.agrees();
            pair.device().close().unwrap();
            assert_eq!(pair.mount(), MountPath::Memory);
            pair.agrees();
        }
    }
}

#[test]
fn flash_and_memory_that_do_not_belong_together_are_told_apart() {
    let mut pair = used(64, 64 << 10, 100, MemoryOptions::default());
    let seen = look(pair.device());
    pair.device().close().unwrap();
    let old = pair.memory.image();
    // The memory of before, after the volume was used with another.
    pair.memory = memory(64 << 10);
    assert!(matches!(pair.mount(), MountPath::Rebuilt(_)));
    pair.device().close().unwrap();
    let other = used(64, 64 << 10, 10, MemoryOptions::default());
    drop(other.device);
    let mount = |image: Vec<u8>, rebuild: bool| {
        let memory = SimPmem::from_image(image, PmemOptions::default());
        let beside = MemoryOptions { rebuild, ..Default::default() };
        let mounted =
            FlashDevice::mount_beside(pair.nand.clone(), memory, &MountOptions::default(), &beside, &mut |_| {});
        mounted.and_then(|(device, _)| device.confirm().map(|()| device))
    };
    assert_eq!(mount(old.clone(), false).err().map(|error| error.kind), Some(ErrorKind::Stale));
    let foreign = {
        let nand = Shared::new(Geometry { blocks: 64, ..SMALL });
        let (options, other) = (FormatOptions { uuid: [9; 16], ..Default::default() }, memory(64 << 10));
        let (mount, beside) = Default::default();
        let device = FlashDevice::format_beside(nand, other.clone(), &options, &mount, &beside).unwrap();
        device.close().unwrap();
        other.image()
    };
    assert_eq!(mount(foreign.clone(), false).err().map(|error| error.kind), Some(ErrorKind::WrongPart));
    for image in [old, foreign] {
        assert_eq!(look(&mount(image, true).unwrap()), seen);
    }
    // Without its memory the volume is none of plain flash.
    let plain = FlashDevice::mount(pair.nand.clone(), &MountOptions::default());
    assert_eq!(plain.err().map(|error| error.kind), Some(ErrorKind::PartNeeded));
}

#[test]
fn a_full_memory_refuses_what_is_new_and_loses_nothing() {
    for spill in [false, true] {
        let mut pair = Pair::on(Geometry { blocks: 128, ..SMALL }, 16 << 10, MemoryOptions::default());
        pair.beside.spill = spill;
        pair.mount();
        let mut objects = Vec::new();
        let refused = loop {
            let device = pair.device();
            let object = device.reserve_ids(1).unwrap();
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default());
            transaction.write(object, 0, vec![object.0 as u8; 700]);
            match device.commit(transaction, Durability::Durable) {
                Ok(()) => objects.push(object),
                Err(error) => break error,
            }
            if objects.len() == 4000 {
                assert!(spill, "a small memory is never full: {:?}", device.memory_use());
                break onode_object::Error::new(ErrorKind::NoSpace, "enough");
            }
        };
        assert_eq!(refused.kind, ErrorKind::NoSpace);
        assert!(objects.len() > 500, "{} objects in {:?}", objects.len(), pair.device().memory_use());
        let seen = look(pair.device());
        assert_eq!(seen.len(), objects.len());
        pair.agrees();
        pair.cut(Survival::Nothing);
        pair.mount();
        assert_eq!(look(pair.device()), seen);
        pair.agrees();
        // Removing always works, and makes room.
        for object in objects.drain(..300) {
            let mut transaction = Transaction::new();
            transaction.remove(object);
            pair.device().commit(transaction, Durability::Durable).unwrap();
        }
        put(pair.device(), None, 0, 700);
        pair.agrees();
    }
}

/// A memory that was full was given up: places that had to lie in front were taken by buckets, and
/// each bucket without a place had a mark of its own.
#[test]
fn a_full_memory_stays_and_what_it_cannot_take_is_on_flash_alone() {
    for (buffer, bytes) in [(false, 16 << 10), (true, 32 << 10), (false, 24 << 10)] {
        let beside = MemoryOptions { spill: true, buffer, ..MemoryOptions::default() };
        let geometry = Geometry { blocks: 128, ..SMALL };
        let mut pair = Pair::on(geometry, bytes, beside);
        let mut prng = onode_base::Prng::new(8);
        let mut objects = Vec::new();
        let kept = |pair: &Pair, step: usize| {
            let told = pair.device().health().conditions;
            assert!(pair.device().memory_use().is_some(), "buffer: {buffer}, {bytes} bytes, step {step}: {told:?}");
        };
        for step in 0..5000 {
            let device = pair.device();
            match prng.below(8) {
                0 if step > 2500 => {
                    let mut transaction = Transaction::new();
                    transaction.remove(objects.swap_remove(prng.below(objects.len() as u64) as usize));
                    device.commit(transaction, Durability::Durable).unwrap();
                }
                1 if step > 1000 => {
                    let object = objects[prng.below(objects.len() as u64) as usize];
                    put(device, Some(object), prng.below(9000), prng.below(200) as usize + 1);
                }
                _ => objects.push(put(device, None, prng.below(9000), prng.below(200) as usize + 1)),
            }
            if step % 100 == 0 {
                kept(&pair, step);
            }
        }
        kept(&pair, 5000);
        pair.agrees();
        let seen = look(pair.device());
        pair.cut(Survival::Nothing);
        pair.mount();
        assert!(look(pair.device()) == seen);
        pair.agrees();
        kept(&pair, 5001);
    }
}

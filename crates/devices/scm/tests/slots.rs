//! A slot holds the block before or the block after, wherever the change of it is cut.

mod common;

use common::Scm;
use onode_media::Pmem;
use onode_media::sim::{SimPmem, Survival};
use onode_object::powers::{Content, MapObjects};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{MountOptions, ScmDevice};

const SLOT: u64 = 5 << 32;

/// A device with an object for slots, of which one holds a block of ones.
fn with_slots() -> (Scm, ObjectId) {
    let scm = Scm::holding(4096, 200 << 10);
    let object = scm.device.reserve_ids(1).expect("ids");
    let mut making = Transaction::new();
    making.create(object, Hints::default()).truncate(object, 1 << 40);
    scm.device.commit(making, Durability::Durable).expect("room");
    let content = block(&scm, object, 1);
    scm.device.put_block(&content, SLOT).expect("a slot");
    (scm, object)
}

fn block(scm: &Scm, object: ObjectId, byte: u8) -> Content {
    let blocks = scm.device.blocks().expect("blocks");
    let address = blocks.allocate(700).expect("room");
    scm.memory.write(address, &[byte; 700]);
    // The device's own blocks count as published from the first.
    blocks.unpublish(address).expect("a block");
    Content { object, address, bytes: 700, is_durable: false }
}

/// The first byte in the slot after each of many cuts now; `None` where it is empty.
fn after_cuts(scm: &Scm, object: ObjectId) -> Vec<Option<u8>> {
    let look = |seed| {
        let image = scm.memory.crash_image(Survival::Words(seed));
        let memory = SimPmem::from_image(image, Default::default());
        let device = ScmDevice::mount(memory, &MountOptions::default()).expect("it mounts");
        device.verify().unwrap_or_else(|what| panic!("cut {seed}: {what}"));
        assert_eq!(device.stat(object).expect("there").size, 1 << 40);
        let mut found = [0; 700];
        let placed = device.block_at(object, SLOT)?;
        device.look(placed.address, &mut found);
        assert!(found.iter().all(|byte| *byte == found[0]), "cut {seed}: bytes of two blocks");
        Some(found[0])
    };
    (0..40).map(look).collect()
}

#[test]
fn a_slot_that_is_filled_anew_holds_the_one_block_or_the_other() {
    let mut seen = [0, 0];
    for events in 0..40 {
        let (scm, object) = with_slots();
        let content = block(&scm, object, 2);
        scm.memory.cut_after(events);
        let done = scm.device.put_block(&content, SLOT).is_ok();
        for found in after_cuts(&scm, object) {
            let found = found.expect("a block");
            assert!(found == 2 || (found == 1 && !done), "{found} after {events} events");
            seen[usize::from(found) - 1] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "the test proves nothing: {seen:?}");
}

#[test]
fn a_slot_that_is_emptied_holds_its_block_or_nothing() {
    let mut seen = [0, 0];
    for events in 0..40 {
        let (scm, object) = with_slots();
        scm.memory.cut_after(events);
        let taken = scm.device.take_block(object, SLOT);
        for found in after_cuts(&scm, object) {
            assert!(found.is_none() || (found == Some(1) && taken.is_err()), "{found:?} after {events} events");
            seen[usize::from(found.is_some())] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "the test proves nothing: {seen:?}");
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (scm, object) = with_slots();
    let content = block(&scm, object, 2);
    let before = scm.device.block_at(object, SLOT).expect("a block");
    for offset in [SLOT + 64, SLOT - 64, 1 << 40, u64::MAX] {
        assert!(scm.device.put_block(&content, offset).is_err(), "at {offset}");
    }
    assert!(scm.device.put_block(&Content { address: before.address, ..content }, 0).is_err(), "a block of the object");
    assert!(scm.device.take_block(object, 0).is_err() && scm.device.take_block(ObjectId(99), SLOT).is_err());
    assert_eq!(scm.device.block_at(object, SLOT), Some(before));
    // It is memory as before.
    scm.device.put_block(&content, 0).expect("a slot");
    scm.device.verify().expect("sound");
}

//! A slot holds the block before or the block after, wherever the change of it is cut.

use crate::common::Scm;
use onode_media::Pmem;
use onode_media::sim::{SimPmem, Survival};
use onode_object::powers::{Content, MapObjects, SLOTS};
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{MountOptions, ScmDevice};

const SLOT: u64 = 5;

/// A device with an object for slots, of which one holds a block of ones.
fn with_slots() -> (Scm, ObjectId) {
    let scm = Scm::holding(4096, 200 << 10);
    let object = scm.device.reserve_ids(1).expect("ids");
    let mut making = Transaction::new();
    making.create(object, Hints::default());
    scm.device.commit(making, Durability::Durable).expect("room");
    let content = block(&scm, object, 1);
    scm.device.fill_slot(&content, SLOT).expect("a slot");
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
        let mut found = [0; 700];
        let (address, _) = device.slot(object, SLOT)?;
        device.look(address, &mut found).unwrap();
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
        let done = scm.device.fill_slot(&content, SLOT).is_ok();
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
        let taken = scm.device.take_slot(object, SLOT);
        for found in after_cuts(&scm, object) {
            assert!(found.is_none() || (found == Some(1) && taken.is_err()), "{found:?} after {events} events");
            seen[usize::from(found.is_some())] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "the test proves nothing: {seen:?}");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (scm, object) = with_slots();
    let content = block(&scm, object, 2);
    let before = scm.device.slot(object, SLOT).expect("a block");
    assert!(scm.device.fill_slot(&content, SLOTS).is_err() && scm.device.fill_slot(&content, u64::MAX).is_err());
    for wrong in [
        Content { address: before.0, ..content },
        Content { address: content.address + 16, ..content },
        Content { bytes: 1 << 20, ..content },
        Content { bytes: 0, ..content },
        Content { object: ObjectId(99), ..content },
    ] {
        assert!(scm.device.fill_slot(&wrong, 0).is_err(), "{wrong:?}");
    }
    assert_eq!(scm.device.take_slot(object, 0).expect_err("empty").kind, ErrorKind::NotFound);
    assert_eq!(scm.device.take_slot(ObjectId(99), SLOT).expect_err("no table").kind, ErrorKind::NotFound);
    assert_eq!((scm.device.slot(object, SLOT), scm.device.slot(object, SLOTS)), (Some(before), None));
    // It is memory as before.
    scm.device.fill_slot(&content, 0).expect("a slot");
    scm.device.verify().expect("sound");
}

#[test]
fn a_change_of_a_slot_is_one_line_and_one_fence() {
    let (scm, object) = with_slots();
    let content = Content { is_durable: true, ..block(&scm, object, 2) };
    scm.memory.reset_counters();
    scm.device.fill_slot(&content, SLOT + 1).expect("a slot");
    let counters = scm.memory.counters();
    assert_eq!((counters.lines_flushed, counters.fences), (1, 1));
}

#[test]
fn a_slot_is_never_ahead_of_what_was_done_before() {
    let key = AttributeKey::new(AttributeKind::ENTRY, 7);
    let mut seen = [0, 0];
    for events in 0..20 {
        let (scm, object) = with_slots();
        let content = Content { is_durable: true, ..block(&scm, object, 2) };
        let (first, _) = scm.device.slot(object, SLOT).expect("a block");
        let mut before = Transaction::new();
        before.set_attribute(object, key, vec![1; 20]);
        scm.device.commit(before, Durability::Buffered).expect("room");
        scm.memory.cut_after(events);
        let _ = scm.device.fill_slot(&content, SLOT);
        for seed in 0..40 {
            let image = scm.memory.crash_image(Survival::Words(seed));
            let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default());
            let device = device.expect("it mounts");
            let (found, _) = device.slot(object, SLOT).expect("a block");
            let was_set = device.attribute(object, key).expect("the object").is_some();
            assert!(found == first || was_set, "cut {seed} after {events} events");
            seen[usize::from(found != first)] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "the test proves nothing: {seen:?}");
}

#[test]
fn a_table_goes_with_its_object_and_hosts_do_not_see_it() {
    let (scm, object) = with_slots();
    let table = ObjectId(object.0 | 1 << 63);
    assert_eq!(scm.device.list(ObjectId(0), 100), Ok(vec![object]));
    assert_eq!(scm.device.list(ObjectId(1 << 63), 100), Ok(vec![]));
    assert_eq!(scm.device.space().objects, 1);
    let mut writing = Transaction::new();
    writing.write(table, 0, vec![1; 8]);
    let refused = scm.device.commit(writing, Durability::Durable).expect_err("no object of a host");
    assert_eq!(refused.kind, ErrorKind::NotFound);
    for events in 0..20 {
        let (scm, object) = with_slots();
        let (first, _) = scm.device.slot(object, SLOT).expect("a block");
        let mut removing = Transaction::new();
        removing.remove(object);
        scm.memory.cut_after(events);
        let _ = scm.device.commit(removing, Durability::Durable);
        for seed in 0..20 {
            let image = scm.memory.crash_image(Survival::Words(seed));
            let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default());
            let device = device.expect("it mounts");
            device.verify().expect("sound");
            let there = device.stat(object).is_ok();
            assert_eq!(device.slot(object, SLOT).map(|(address, _)| address), there.then_some(first));
        }
    }
    let free = scm.device.space().available;
    let mut removing = Transaction::new();
    removing.remove(object);
    scm.device.commit(removing, Durability::Durable).expect("room");
    scm.device.maintain(1).expect("sound");
    assert!(scm.device.space().available >= free + 4096, "page and block are free");
    scm.device.verify().expect("sound");
}

#[test]
fn the_blocks_of_a_table_as_it_once_was_are_in_slots() {
    let scm = Scm::holding(4096, 200 << 10);
    let object = scm.device.reserve_ids(1).expect("ids");
    let address = block(&scm, object, 3).address;
    let mut making = Transaction::new();
    making.create(object, Hints::default());
    let first = Content { object, address, bytes: 700, is_durable: false };
    scm.device.publish(making, &[first], Durability::Durable).expect("room");
    let mut growing = Transaction::new();
    growing.truncate(object, SLOTS << 32);
    scm.device.commit(growing, Durability::Durable).expect("room");
    scm.device.make_slots(object).expect("a table");
    assert_eq!(scm.device.slot(object, 0).map(|(address, _)| address), Some(address));
    scm.device.verify().expect("sound");
    let image = scm.memory.crash_image(Survival::Words(1));
    let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default());
    let device = device.expect("it mounts");
    assert_eq!(device.take_slot(object, 0).map(|content| content.address), Ok(address));
    assert_eq!(device.extents(object, 0, 10), Ok(vec![]));
    device.blocks().expect("blocks").try_release(address).expect("memory");
    device.verify().expect("sound");
}

//! What each consistency mode promises for content (`docs/semantics.md`), besides what the
//! conformance suite asks of all.

use crate::common::Scm;
use onode_media::Pmem;
use onode_media::sim::{SimPmem, Survival};
use onode_object::conformance::Harness;
use onode_object::powers::{Content, MapObjects};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_scm::allocator::Process;
use onode_scm::{Mode, MountOptions, ScmDevice};
use std::sync::Arc;

const BYTES: usize = 1000;
const CUTS: u64 = 60;

type Device = ScmDevice<Arc<SimPmem>>;

fn scm(mode: Mode) -> Scm {
    Scm::holding_in_mode(4096, 200 << 10, mode)
}

fn commit(device: &Device, build: impl FnOnce(&mut Transaction) -> &mut Transaction) {
    let mut transaction = Transaction::new();
    build(&mut transaction);
    device.commit(transaction, Durability::Durable).expect("room");
}

fn create(device: &Device, bytes: &[u8]) -> ObjectId {
    let object = device.reserve_ids(1).expect("ids");
    commit(device, |t| t.create(object, Hints::default()).write(object, 0, bytes.to_vec()));
    object
}

fn address(device: &Device, object: ObjectId) -> u64 {
    let size = device.stat(object).expect("there is one").size;
    device.whole(object, size).expect("one block")
}

/// The content of an object after each of many cuts at this moment.
fn after_cuts(scm: &Scm, object: ObjectId, mut look: impl FnMut(&[u8])) {
    for seed in 0..CUTS {
        let image = scm.memory.crash_image(Survival::Words(seed));
        let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &MountOptions::default());
        let device = device.unwrap_or_else(|error| panic!("cut {seed}: {error}"));
        device.verify().unwrap_or_else(|what| panic!("cut {seed}: {what}"));
        let mut found = vec![0; device.stat(object).expect("the object is there").size as usize];
        device.read(object, 0, &mut found).expect("readable");
        look(&found);
    }
}

#[test]
fn what_was_overwritten_in_mode_sync_is_durable_whatever_came_before() {
    type Before = fn(&Device, ObjectId);
    let befores: [Before; 4] = [
        |_, _| {},
        // A recovery would check the content.
        |device, object| commit(device, |t| t.write(object, BYTES as u64, vec![9; 50])),
        // A recovery would put zeros in place.
        |device, object| commit(device, |t| t.punch(object, 100, 300)),
        // A recovery would put bytes in place.
        |device, object| commit(device, |t| t.write(object, 100, vec![8; 300])),
    ];
    for before in befores {
        let scm = scm(Mode::Sync);
        let object = create(&scm.device, &[1; BYTES]);
        before(&scm.device, object);
        scm.device.overwrite(address(&scm.device, object) + 90, &[2; 500]).expect("writable");
        let mut expected = vec![0; scm.device.stat(object).unwrap().size as usize];
        scm.device.read(object, 0, &mut expected).unwrap();
        assert_eq!(expected[90..590], [2; 500]);
        after_cuts(&scm, object, |found| assert_eq!(found, expected));
    }
}

#[test]
fn an_overwrite_that_is_cut_leaves_old_and_new_words_and_nothing_else() {
    let mut torn = 0;
    for events in 0..12 {
        let scm = scm(Mode::Sync);
        let object = create(&scm.device, &[1; BYTES]);
        let beside = create(&scm.device, &[3; BYTES]);
        let at = address(&scm.device, object);
        scm.memory.cut_after(events);
        let _ = scm.device.overwrite(at, &[2; BYTES]);
        after_cuts(&scm, object, |found| {
            assert_eq!(found.len(), BYTES);
            assert!(found.chunks(8).all(|word| word.iter().all(|byte| *byte == word[0] && [1, 2].contains(byte))));
            torn += u32::from(found.contains(&1) && found.contains(&2));
        });
        after_cuts(&scm, beside, |found| assert_eq!(found, [3; BYTES]));
    }
    assert!(torn > 0, "no cut ever met an overwrite: the test proves nothing");
}

#[test]
fn mode_meta_flushes_content_with_the_next_durable_commit_or_sync() {
    let scm = scm(Mode::Meta);
    let object = create(&scm.device, &[1; BYTES]);
    after_cuts(&scm, object, |found| assert_eq!(found, [1; BYTES]));
    let mut lost = 0;
    scm.device.overwrite(address(&scm.device, object), &[2; BYTES]).expect("writable");
    after_cuts(&scm, object, |found| {
        assert_eq!(found.len(), BYTES);
        lost += u32::from(found != [2; BYTES]);
    });
    assert!(lost > 0, "content was flushed that nobody had asked for");
    create(&scm.device, &[3; 10]);
    after_cuts(&scm, object, |found| assert_eq!(found, [2; BYTES]));
    scm.device.overwrite(address(&scm.device, object), &[4; BYTES]).expect("writable");
    scm.device.sync(SyncScope::All).expect("writable");
    after_cuts(&scm, object, |found| assert_eq!(found, [4; BYTES]));
}

#[test]
fn mode_meta_keeps_what_was_durable_when_it_moves() {
    let scm = scm(Mode::Meta);
    let object = create(&scm.device, &[1; BYTES]);
    let before = address(&scm.device, object);
    let mut append = Transaction::new();
    append.write(object, BYTES as u64, vec![2; BYTES]);
    scm.device.commit(append, Durability::Buffered).expect("room");
    assert_ne!(address(&scm.device, object), before, "the test proves nothing");
    // Whether the record made it or not.
    after_cuts(&scm, object, |found| assert_eq!(found[..BYTES], [1; BYTES]));
}

#[test]
fn a_sync_flushes_what_other_processes_stored() {
    let scm = scm(Mode::Meta);
    let object = create(&scm.device, &[1; BYTES]);
    let options = MountOptions { mode: Mode::Meta, ..MountOptions::default() };
    let process = |id| Process { id, started: 1 };
    let Scm { memory, mut device, .. } = scm;
    device.join(process(1), |_| false).expect("a lease");
    let other = ScmDevice::attach(Arc::clone(&memory), &options, process(2), |_| false).expect("attached");
    let at = address(&device, object);
    let shows = |bytes: u8| {
        let image = memory.crash_image(Survival::Nothing);
        let device = ScmDevice::mount(SimPmem::from_image(image, Default::default()), &options).expect("mounts");
        let mut found = vec![0; BYTES];
        device.read(object, 0, &mut found).expect("readable");
        found == vec![bytes; BYTES]
    };
    device.overwrite(at, &[2; BYTES]).expect("writable");
    assert!(shows(1), "content was flushed that nobody had asked for");
    other.sync(SyncScope::All).expect("writable");
    assert!(shows(2));
    other.overwrite(at, &[3; BYTES]).expect("writable");
    commit(&device, |t| t.create(ObjectId(5), Hints::default()));
    assert!(shows(3));
}

#[test]
fn mode_meta_publishes_a_block_without_touching_it_and_flushes_it_by_a_sync() {
    let scm = scm(Mode::Meta);
    let blocks = scm.device.blocks().expect("blocks");
    let block = blocks.allocate(2048).expect("room");
    scm.memory.write(block, &[7; 2048]);
    // The device's own blocks count as published from the first.
    blocks.unpublish(block).expect("a block");
    let object = scm.device.reserve_ids(1).expect("ids");
    let mut making = Transaction::new();
    making.create(object, Hints::default());
    let content = Content { object, address: block, bytes: 2048, is_durable: false };
    scm.device.publish(making, &[content], Durability::Durable).expect("room");
    scm.device.sync(SyncScope::Object(object)).expect("writable");
    after_cuts(&scm, object, |found| assert_eq!(found, [7; 2048]));
}

#[test]
fn mode_mem_loses_nothing_with_the_process() {
    let mut scm = scm(Mode::Mem);
    let object = create(&scm.device, &[1; BYTES]);
    scm.device.overwrite(address(&scm.device, object) + 10, &[2; 10]).expect("writable");
    scm.crash();
    let mut found = [0; 30];
    scm.device.read(object, 0, &mut found).expect("readable");
    assert_eq!(found, [[1; 10], [2; 10], [1; 10]].as_flattened());
}

#[test]
fn only_mode_atomic_changes_content_by_transactions_alone() {
    assert!(!Scm::holding(4096, 200 << 10).device.overwrites(), "the default");
    for (name, mode) in Mode::ALL {
        assert_eq!(scm(mode).device.overwrites(), name != "atomic", "{name}");
        assert_eq!(mode.name(), name);
    }
}

//! An object in several blocks, or with holes, is brought together in one, and nothing else of it
//! changes.

use crate::common::{Scm, sim};
use onode_base::ErrorKind;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem, Survival};
use onode_object::conformance::Harness;
use onode_object::powers::MapObjects;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice};
use std::sync::Arc;

const KEY: AttributeKey = AttributeKey::new(AttributeKind::XATTR, 1);

fn commit(device: &dyn ObjectDevice, fill: impl FnOnce(&mut Transaction)) {
    let mut transaction = Transaction::new();
    fill(&mut transaction);
    device.commit(transaction, Durability::Durable).expect("room");
}

/// An object with an attribute, parts at these places, and this size.
fn scattered(device: &dyn ObjectDevice, parts: &[(u64, usize)], size: u64) -> ObjectId {
    let object = device.reserve_ids(1).expect("an id");
    commit(device, |transaction| {
        transaction.create(object, Hints::default()).set_attribute(object, KEY, b"stays".to_vec());
    });
    for (number, (offset, bytes)) in parts.iter().enumerate() {
        commit(device, |transaction| {
            transaction.write(object, *offset, vec![number as u8 + 1; *bytes]);
        });
    }
    commit(device, |transaction| {
        transaction.truncate(object, size);
    });
    object
}

fn content(device: &dyn ObjectDevice, object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; device.stat(object).expect("it is there").size as usize];
    device.read(object, 0, &mut bytes).expect("readable");
    bytes
}

/// Parts and size of objects that are not one block.
fn shapes() -> Vec<(Vec<(u64, usize)>, u64)> {
    vec![
        (vec![], 0),
        (vec![], 1),
        (vec![], 300_000),
        (vec![(200_000, 1)], 200_001),
        (vec![(0, 5), (200_000, 1)], 200_001),
        (vec![(4096, 4096), (40_000, 3), (100_000, 50_000)], 150_000),
        // Longer than what is written, and cut within a block.
        (vec![(0, 100), (70_000, 9000)], 75_000),
        (vec![(0, 10_000)], 64_000),
    ]
}

#[test]
fn content_is_one_block_afterwards_and_nothing_else_has_changed() {
    for mode in [Mode::Mem, Mode::Meta, Mode::Sync, Mode::Atomic] {
        let mut scm = Scm::in_mode(4096, 16 << 20, mode);
        for (parts, size) in shapes() {
            let object = scattered(scm.device(), &parts, size);
            let (before, stat) = (content(scm.device(), object), scm.device().stat(object).unwrap());
            scm.device.gather(object).expect("room");
            scm.device.verify().unwrap();
            let placed = scm.device.placement(object).unwrap();
            assert_eq!(
                placed.iter().map(|part| (part.offset, part.length)).collect::<Vec<_>>(),
                match size {
                    0 => vec![],
                    _ => vec![(0, size)],
                }
            );
            for _ in 0..2 {
                assert!(content(scm.device(), object) == before, "{mode:?} {parts:?}");
                assert_eq!(scm.device().attribute(object, KEY), Ok(Some(b"stays".to_vec())));
                let now = scm.device().stat(object).unwrap();
                assert_eq!((now.size, now.hints, now.accessed), (stat.size, stat.hints, stat.accessed));
                scm.crash();
            }
            // The second time nothing is to be done.
            let commits = |scm: &Scm| scm.device.inspect().unwrap().counters()[0].1;
            let done = commits(&scm);
            scm.device.gather(object).unwrap();
            assert_eq!(commits(&scm), done);
            commit(scm.device(), |transaction| {
                transaction.remove(object);
            });
            scm.device.maintain(1).unwrap();
            // Every block is somebody's or free.
            scm.device.verify().unwrap();
        }
        assert_eq!(scm.device.gather(ObjectId(999)).unwrap_err().kind, ErrorKind::NotFound);
    }
}

#[test]
fn a_power_cut_leaves_the_content_wherever_it_lies() {
    let parts = [(0, 5), (20_000, 3000), (60_000, 7)];
    let options = FormatOptions { uuid: *b"a device in test", chunk_bytes: Some(4096), ..FormatOptions::default() };
    let make = || {
        let memory = Arc::new(sim(2 << 20));
        let device = ScmDevice::format(Arc::clone(&memory), &options).expect("large enough");
        let object = scattered(&device, &parts, 70_000);
        (memory, device, object)
    };
    let (memory, device, object) = make();
    let before = memory.events();
    device.gather(object).unwrap();
    let (events, whole) = (memory.events() - before, content(&device, object));
    assert!(events > 20, "a cut at each of {events} events");
    for cut in 0..=events {
        let (memory, device, object) = make();
        memory.cut_after(cut);
        let _ = device.gather(object);
        for survival in [Survival::Nothing, Survival::Words(cut), Survival::Words(!cut), Survival::Everything] {
            let quiet = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
            let image = Arc::new(SimPmem::from_image(memory.crash_image(survival), quiet));
            let device = ScmDevice::mount(image, &MountOptions::default()).expect("it mounts");
            device.verify().unwrap();
            assert!(content(&device, object) == whole, "cut after {cut} of {events}");
            assert_eq!(device.attribute(object, KEY), Ok(Some(b"stays".to_vec())));
        }
    }
}

#[test]
fn without_room_for_a_second_copy_everything_stays() {
    let scm = Scm::in_mode(4096, 2 << 20, Mode::default());
    let object = scattered(scm.device(), &[(4096, 900_000)], 1_000_000);
    let before = content(scm.device(), object);
    assert_eq!(scm.device.gather(object).unwrap_err().kind, ErrorKind::NoSpace);
    scm.device.verify().unwrap();
    assert!(content(scm.device(), object) == before);
    commit(scm.device(), |transaction| {
        transaction.write(object, 0, vec![9; 100]);
    });
}

//! A device whose memory grows: all that was there stays where it was, and there is more room.

use crate::common::{Scm, sim};
use onode_media::Pmem;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem, Survival};
use onode_object::conformance::Harness;
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::{FormatOptions, MountOptions, ScmDevice};
use std::sync::Arc;

const PIECE: usize = 9000;

/// Makes objects until there is no room, and returns them.
fn fill(device: &dyn ObjectDevice, byte: u8) -> Vec<ObjectId> {
    let mut objects = Vec::new();
    loop {
        let object = device.reserve_ids(1).expect("ids");
        let mut made = Transaction::new();
        made.create(object, Hints::default()).write(object, 0, vec![byte; PIECE]);
        match device.commit(made, Durability::Durable) {
            Ok(()) => objects.push(object),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace);
                return objects;
            }
        }
    }
}

fn holds(device: &dyn ObjectDevice, objects: &[ObjectId], byte: u8) {
    for object in objects {
        let mut content = vec![0; PIECE];
        assert_eq!(device.read(*object, 0, &mut content), Ok(PIECE));
        assert!(content.iter().all(|found| *found == byte), "{object:?}");
    }
}

#[test]
fn a_longer_memory_is_more_room() {
    for chunk_bytes in [4 << 10, 16 << 10, 64 << 10] {
        let mut scm = Scm::with_length(chunk_bytes, 2 << 20);
        let mut made = Vec::new();
        for (byte, length) in [(1, 2), (2, 3), (3, 6)] {
            scm.memory.grow(length << 20).expect("it grows");
            let before = scm.device.space().total;
            scm.crash();
            let gained = scm.device.space().total - before;
            assert_eq!(gained > 0, byte > 1, "{length} MiB: {gained} bytes more");
            let objects = fill(&scm.device, byte);
            assert!(!objects.is_empty());
            made.push((byte, objects));
            scm.crash();
            made.iter().for_each(|(byte, objects)| holds(&scm.device, objects, *byte));
            scm.reopen();
        }
        // All of it comes back, and the room of 6 MiB is that of a device made so, but for the
        // tables of the first.
        let mut all = Transaction::new();
        for object in made.iter().flat_map(|(_, objects)| objects) {
            all.remove(*object);
        }
        scm.device.commit(all, Durability::Durable).expect("room to remove");
        scm.crash();
        let (grown, fresh) = (scm.device.space(), Scm::with_length(chunk_bytes, 6 << 20).device.space());
        assert!(grown.total + (512 << 10) > fresh.total, "{grown:?} {fresh:?}");
        assert!(fill(&scm.device, 5).len() > made.iter().map(|(_, objects)| objects.len()).sum::<usize>() * 9 / 10);
    }
}

#[test]
fn less_than_the_tables_need_changes_nothing() {
    let mut scm = Scm::with_length(16 << 10, 8 << 20);
    let objects = fill(&scm.device, 7);
    let before = scm.device.space();
    scm.memory.grow((8 << 20) + (16 << 10)).expect("it grows");
    scm.crash();
    assert_eq!(scm.device.space().total, before.total);
    holds(&scm.device, &objects, 7);
}

#[test]
fn a_cut_while_it_grows_loses_nothing() {
    let options = || PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
    let memory = Arc::new(sim(1 << 20));
    let made = FormatOptions { uuid: [7; 16], chunk_bytes: Some(4 << 10), ..FormatOptions::default() };
    let device = ScmDevice::format(Arc::clone(&memory), &made).expect("large enough");
    let objects = fill(&device, 3);
    memory.grow(3 << 20).expect("it grows");
    let image = memory.durable_image();
    let mut cut = 0;
    loop {
        let memory = Arc::new(SimPmem::from_image(image.clone(), options()));
        memory.cut_after(cut);
        let _ = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default());
        let is_last = !memory.is_cut();
        for survival in [Survival::Nothing, Survival::Words(cut)] {
            let left = Arc::new(SimPmem::from_image(memory.crash_image(survival), options()));
            let device = ScmDevice::mount(left, &MountOptions::default()).expect("it mounts");
            device.verify().unwrap_or_else(|what| panic!("cut {cut}: {what}"));
            holds(&device, &objects, 3);
            assert!(device.space().total > 2 << 20);
        }
        if is_last {
            break;
        }
        // All of the first moments, in which the device becomes longer, and some of those in which
        // it is rebuilt.
        cut += 1 + cut / 8;
    }
    assert!(cut > 20, "a mount has more moments than {cut}");
}

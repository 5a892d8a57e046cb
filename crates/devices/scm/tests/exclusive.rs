//! A device that one process at a time uses.

use crate::common::sim;
use onode_media::Pmem;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, Transaction};
use onode_scm::allocator::Process;
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice, is_exclusive};
use std::sync::Arc;

const OPTIONS: FormatOptions =
    FormatOptions { uuid: *b"a device in test", chunk_bytes: Some(4 << 10), mode: Mode::Atomic, exclusive: true };
const PROCESS: Process = Process { id: 1, started: 1 };

fn made() -> (Arc<SimPmem>, ScmDevice<Arc<SimPmem>>) {
    let memory = Arc::new(sim(1 << 20));
    let device = ScmDevice::format(Arc::clone(&memory), &OPTIONS).unwrap();
    (memory, device)
}

/// The device after a cut of power.
fn cut(memory: &SimPmem) -> ScmDevice<Arc<SimPmem>> {
    let options = PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() };
    let memory = SimPmem::from_image(memory.durable_image(), options);
    ScmDevice::mount(Arc::new(memory), &MountOptions::default()).unwrap()
}

#[test]
fn nobody_maps_or_shares_it() {
    let (memory, mut device) = made();
    assert!(device.is_exclusive() && device.map_objects().is_none());
    assert!(device.info().summary.ends_with("one process at a time"), "{}", device.info().summary);
    assert_eq!(device.join(PROCESS, |_| false).unwrap_err().kind, ErrorKind::NotSupported);
    assert!(device.share().is_none());
    let attached = ScmDevice::attach(Arc::clone(&memory), &MountOptions::default(), PROCESS, |_| false);
    assert_eq!(attached.map(drop).unwrap_err().kind, ErrorKind::NotSupported);
    assert!(cut(&memory).is_exclusive());
}

#[test]
fn it_has_one_mode() {
    let refused = |mode| {
        let memory = Arc::new(sim(1 << 20));
        ScmDevice::format(memory, &FormatOptions { mode, ..OPTIONS }).map(drop).unwrap_err().kind
    };
    let (memory, device) = made();
    device.close().unwrap();
    drop(device);
    let before = memory.durable_image();
    for mode in [Mode::Mem, Mode::Meta, Mode::Sync] {
        assert_eq!(refused(mode), ErrorKind::NotSupported);
        let options = MountOptions { mode, ..MountOptions::default() };
        let mounted = ScmDevice::mount(Arc::clone(&memory), &options);
        assert_eq!(mounted.map(drop).unwrap_err().kind, ErrorKind::NotSupported);
    }
    assert!(memory.durable_image() == before, "what is refused changes nothing");
}

#[test]
fn it_becomes_shared_and_exclusive_again() {
    let (memory, device) = made();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 9000]);
    device.commit(transaction, Durability::Durable).unwrap();
    device.set_exclusive(false).unwrap();
    assert!(device.map_objects().is_some() && !is_exclusive(&*memory).unwrap());
    let mut shared = cut(&memory);
    assert!(!shared.is_exclusive());
    shared.join(PROCESS, |_| false).unwrap();
    assert_eq!(shared.set_exclusive(true).unwrap_err().kind, ErrorKind::Busy);
    device.set_exclusive(true).unwrap();
    let again = cut(&memory);
    assert!(again.is_exclusive());
    let mut content = vec![0; 9000];
    assert!(again.read(object, 0, &mut content) == Ok(9000) && content.iter().all(|byte| *byte == 7));
}

/// Whichever two of the three superblocks are damaged, the third says so.
#[test]
fn each_superblock_says_so() {
    for is_exclusive in [true, false] {
        for sound in [0, 4096, (1 << 20) - 4096_u64] {
            let memory = Arc::new(sim(1 << 20));
            let device =
                ScmDevice::format(Arc::clone(&memory), &FormatOptions { exclusive: !is_exclusive, ..OPTIONS }).unwrap();
            device.set_exclusive(is_exclusive).unwrap();
            drop(device);
            for damaged in [0, 4096, (1 << 20) - 4096].into_iter().filter(|at| *at != sound) {
                memory.write(damaged + 30, &[0x55; 8]);
            }
            let found = onode_scm::is_exclusive(&*memory).unwrap();
            assert_eq!(found, is_exclusive, "the sound one lies at {sound}");
        }
    }
}

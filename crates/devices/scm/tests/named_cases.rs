//! What broke other file systems on byte-addressable memory and is no sequence of calls on files,
//! by its number in the catalogue. `crates/crash/tests/named_cases.rs` has the others.

use crate::common::{Scm, sim};
use onode_base::ErrorKind;
use onode_media::sim::{PmemLatency, PmemOptions, SimPmem, Survival};
use onode_media::{Domain, Pmem};
use onode_object::conformance::Harness;
use onode_object::powers::{Content, MapObjects};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::allocator::{Misuse, Process};
use onode_scm::{FormatOptions, MountOptions, SMALLEST_BYTES, ScmDevice};
use std::sync::Arc;

type Device = ScmDevice<Arc<SimPmem>>;

fn create(device: &dyn ObjectDevice, content: &[u8]) -> onode_object::Result<ObjectId> {
    let object = device.reserve_ids(1)?;
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, content.to_vec());
    device.commit(transaction, Durability::Durable).map(|()| object)
}

fn memory_of(image: Vec<u8>) -> Arc<SimPmem> {
    Arc::new(SimPmem::from_image(image, PmemOptions { latency: PmemLatency::NONE, ..PmemOptions::default() }))
}

fn mount(image: Vec<u8>) -> onode_object::Result<Device> {
    let device = ScmDevice::mount(memory_of(image), &MountOptions::default())?;
    device.verify().unwrap_or_else(|what| panic!("{what}"));
    Ok(device)
}

fn content(device: &Device, object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; device.stat(object).unwrap().size as usize];
    device.read(object, 0, &mut bytes).unwrap();
    bytes
}

/// A table had an entry for each processor, and recovery ran over its end where there was one.
#[test]
fn case_24_recovery_of_the_smallest_memory() {
    for chunk_bytes in [4 << 10, 8 << 10] {
        let mut scm = Scm::in_mode(chunk_bytes, SMALLEST_BYTES, onode_scm::Mode::Atomic);
        let mut objects = Vec::new();
        while let Ok(object) = create(scm.device(), &[objects.len() as u8; 300]) {
            objects.push(object);
        }
        assert!(!objects.is_empty());
        for _ in 0..4 {
            scm.crash();
            for (number, object) in objects.iter().enumerate() {
                assert_eq!(content(&scm.device, *object), [number as u8; 300]);
            }
        }
    }
}

/// The pointer to the log was durable before what it points to.
#[test]
fn case_25_format_is_cut_everywhere() {
    let options = FormatOptions { uuid: *b"a device in test", chunk_bytes: Some(4096), ..FormatOptions::default() };
    let format = |memory: &Arc<SimPmem>| ScmDevice::format(Arc::clone(memory), &options).map(drop);
    let whole = Arc::new(sim(SMALLEST_BYTES));
    let before = whole.events();
    format(&whole).unwrap();
    let events = whole.events() - before;
    let mut made = 0;
    for cut in (0..=events).filter(|cut| events - cut < 300 || cut % 16 == 0) {
        let memory = Arc::new(sim(SMALLEST_BYTES));
        memory.cut_after(cut);
        let _ = format(&memory);
        for survival in [Survival::Nothing, Survival::Words(cut), Survival::Words(!cut)] {
            match mount(memory.crash_image(survival)) {
                Ok(device) => {
                    made += 1;
                    assert_eq!(device.list(ObjectId(0), 1), Ok(Vec::new()));
                    let object = create(&device, b"the first").unwrap();
                    assert_eq!(content(&device, object), b"the first");
                }
                Err(error) => assert!(matches!(error.kind, ErrorKind::Invalid | ErrorKind::Corrupt), "{error}"),
            }
        }
    }
    assert!(made > 0 && mount(whole.durable_image()).is_ok());
}

/// Two copies of a head were written without a fence between them, and one that was wrong could not
/// be repaired.
#[test]
fn case_26_one_superblock_is_always_sound() {
    let scm = Scm::holding(4096, 100 << 10);
    let object = create(scm.device(), &[7; 700]).unwrap();
    let start = scm.memory.durable_image();
    // Every cut of a mount and a close, each of which writes superblocks.
    let session = |memory: &Arc<SimPmem>| {
        if let Ok(device) = ScmDevice::mount(Arc::clone(memory), &MountOptions::default()) {
            let _ = device.close();
        }
    };
    let whole = memory_of(start.clone());
    let before = whole.events();
    session(&whole);
    let events = whole.events() - before;
    for cut in (0..events).filter(|cut| events - cut < 200 || cut % 8 == 0) {
        let memory = memory_of(start.clone());
        memory.cut_after(cut);
        session(&memory);
        let device = mount(memory.crash_image(Survival::Words(cut))).unwrap_or_else(|error| panic!("{cut}: {error}"));
        assert_eq!(content(&device, object), [7; 700]);
    }
    // Each is enough, be it the copy at the end; without all of them it says that they are damaged.
    let closed = whole.durable_image();
    let copy = (closed.len() / 4096 - 1) * 4096;
    for (damaged, is_lost) in
        [(&[0][..], false), (&[4096], false), (&[0, 4096], false), (&[0, copy], false), (&[0, 4096, copy], true)]
    {
        let mut image = closed.clone();
        damaged.iter().for_each(|at| image[at + 50] ^= 1);
        match mount(image) {
            Ok(device) => assert!(!is_lost && content(&device, object) == [7; 700]),
            Err(error) => assert!(is_lost && error.kind == ErrorKind::Corrupt, "{error}"),
        }
    }
}

/// Journals of several processors were read one after another, not in the order of what they say.
#[test]
fn case_30_commits_of_threads_and_sessions_keep_one_order() {
    const THREADS: u8 = 3;
    const COMMITS: u8 = 20;
    let mut image = Scm::holding(4096, 400 << 10).memory.durable_image();
    let mut shared = None;
    for session in 0..3 {
        let memory = memory_of(image);
        let device = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default()).unwrap();
        device.verify().unwrap();
        if let Some(object) = shared {
            assert_eq!(content(&device, object).len(), usize::from(THREADS));
        }
        let object = *shared.get_or_insert_with(|| create(&device, &[0; THREADS as usize]).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let device = &device;
                scope.spawn(move || {
                    for number in 1..=COMMITS {
                        let mut transaction = Transaction::new();
                        transaction.write(object, u64::from(thread), vec![session * COMMITS + number]);
                        device.commit(transaction, Durability::Durable).unwrap();
                    }
                });
            }
        });
        // Whatever the order was, the last of each thread is what is durable.
        image = memory.crash_image(Survival::Words(u64::from(session)));
        let after = mount(image.clone()).unwrap();
        assert_eq!(content(&after, object), [(session + 1) * COMMITS; THREADS as usize]);
    }
}

fn publish(device: &Device, address: u64, bytes: u64) -> onode_object::Result<ObjectId> {
    let object = device.reserve_ids(1)?;
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    let content = Content { object, address, bytes, is_durable: false };
    device.publish(transaction, &[content], Durability::Durable).map(|()| object)
}

/// `mm_to_file` cut at each of its stores: the block is the file's, or nobody's.
#[test]
fn case_43_publication_is_cut_at_each_store() {
    for bytes in [32, 33, 1000, 4096, 9000, 128 << 10] {
        let scm = Scm::holding(4096, 400 << 10);
        create(scm.device(), &[3; 900]).unwrap();
        let start = scm.memory.durable_image();
        let run = |cut: Option<u64>| {
            let memory = memory_of(start.clone());
            let device = ScmDevice::mount(Arc::clone(&memory), &MountOptions::default()).unwrap();
            let mut blocks = device.blocks().unwrap();
            blocks.join(Process { id: 1, started: 1 }, |_| false).unwrap();
            // A neighbour that is split off and merged again.
            let (address, other) = (blocks.allocate(bytes).unwrap(), blocks.allocate(bytes).unwrap());
            memory.write(address, &vec![9; bytes as usize]);
            let before = memory.events();
            cut.into_iter().for_each(|cut| memory.cut_after(cut));
            let published = publish(&device, address, bytes);
            blocks.release(other, bytes);
            (memory.events() - before, memory, published)
        };
        let (events, memory, published) = run(None);
        let object = published.unwrap();
        assert_eq!(content(&mount(memory.durable_image()).unwrap(), object), vec![9; bytes as usize]);
        for cut in (0..events).filter(|cut| *cut < 40 || events - cut < 60 || cut % 64 == 0) {
            let (_, memory, _) = run(Some(cut));
            let device = mount(memory.crash_image(Survival::Words(cut))).unwrap();
            match device.stat(object) {
                Ok(_) => assert_eq!(content(&device, object), vec![9; bytes as usize], "{bytes} bytes, cut {cut}"),
                Err(error) => assert_eq!(error.kind, ErrorKind::NotFound),
            }
        }
    }
}

/// What is no block of the program cannot become a file, and nothing is lost by the try.
#[test]
fn case_43_what_is_free_or_a_file_already_is_not_published() {
    let scm = Scm::holding(4096, 200 << 10);
    let mut blocks = scm.device.blocks().unwrap();
    blocks.join(Process { id: 1, started: 1 }, |_| false).unwrap();
    for bytes in [32, 4096, 20_000] {
        let address = blocks.allocate(bytes).unwrap();
        let refused = |address: u64, bytes: u64| {
            let error = publish(&scm.device, address, bytes).expect_err("this cannot become a file");
            assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
        };
        refused(address, 1 << 20);
        refused(address + 16, 8);
        refused(scm.memory.length(), 64);
        refused(u64::MAX - 7, 64);
        // A program must not free what is a file's, by whatever pointer it kept.
        let object = publish(&scm.device, address, bytes).unwrap();
        assert_eq!(blocks.try_release(address), Err(Misuse::Published));
        refused(address, bytes);
        assert_eq!(scm.device.stat(object).unwrap().size, bytes);
        // What lies on a free list is nobody's.
        let free = blocks.allocate(bytes).unwrap();
        blocks.try_release(free).unwrap();
        assert_eq!(blocks.try_release(free), Err(Misuse::DoubleFree));
        refused(free, bytes);
    }
    scm.device.verify().unwrap();
}

/// A program stores through a pointer that it kept: it changes the file, and costs nothing else.
#[test]
fn case_43_a_kept_pointer_costs_no_file() {
    for domain in [Domain::Flush, Domain::Fence] {
        let options = PmemOptions { latency: PmemLatency::NONE, domain, ..PmemOptions::default() };
        let memory = Arc::new(SimPmem::new(512 << 10, options));
        let device = ScmDevice::format(Arc::clone(&memory), &FormatOptions::default()).unwrap();
        let mut blocks = device.blocks().unwrap();
        blocks.join(Process { id: 1, started: 1 }, |_| false).unwrap();
        let address = blocks.allocate(1000).unwrap();
        memory.write(address, &[1; 1000]);
        let object = publish(&device, address, 1000).unwrap();
        memory.write(address + 8, &[2; 500]);
        let later = create(&device, b"later").unwrap();
        for seed in 0..50 {
            let device = mount(memory.crash_image(Survival::Words(seed))).unwrap();
            let found = content(&device, object);
            assert_eq!(found.len(), 1000);
            assert!(found.iter().all(|byte| matches!(byte, 1 | 2)));
            assert_eq!(content(&device, later), b"later");
        }
    }
}

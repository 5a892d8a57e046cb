//! Reads go on beside each other, and beside nothing else: no change begins while a read copies,
//! and a read that another process overtook is done again.

use crate::common::sim;
use onode_media::sim::SimPmem;
use onode_media::{Domain, Pmem, Result};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};
use onode_scm::allocator::Process;
use onode_scm::{FormatOptions, Mode, MountOptions, ScmDevice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Reads of so many bytes are reads of content.
const CONTENT: usize = 60_000;
const SOON: Duration = Duration::from_secs(60);

type Hook = Box<dyn Fn() + Send + Sync>;

/// The memory as one process sees it, which calls a hook before content is copied.
struct Hooked {
    memory: Arc<SimPmem>,
    before_copy: Mutex<Option<Arc<Hook>>>,
}

impl Hooked {
    fn new(memory: Arc<SimPmem>) -> Arc<Self> {
        Arc::new(Self { memory, before_copy: Mutex::new(None) })
    }

    fn before_copy(&self, hook: impl Fn() + Send + Sync + 'static) {
        *self.before_copy.lock().unwrap() = Some(Arc::new(Box::new(hook)));
    }
}

impl Pmem for Hooked {
    fn length(&self) -> u64 {
        self.memory.length()
    }

    fn domain(&self) -> Domain {
        self.memory.domain()
    }

    fn load(&self, at: u64) -> u64 {
        self.memory.load(at)
    }

    fn store(&self, at: u64, value: u64) {
        self.memory.store(at, value);
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> std::result::Result<u64, u64> {
        self.memory.compare_exchange(at, current, new)
    }

    fn read(&self, at: u64, buffer: &mut [u8]) {
        let hook = self.before_copy.lock().unwrap().clone().filter(|_| buffer.len() == CONTENT);
        if let Some(hook) = hook {
            hook();
        }
        self.memory.read(at, buffer);
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write(at, bytes);
    }

    fn zero(&self, at: u64, length: u64) {
        self.memory.zero(at, length);
    }

    fn flush(&self, at: u64, length: u64) {
        self.memory.flush(at, length);
    }

    fn fence(&self) -> Result<()> {
        self.memory.fence()
    }

    fn grow(&self, length: u64) -> Result<()> {
        self.memory.grow(length)
    }
}

/// A device with an object of ones, which lies in one block.
fn device(mode: Mode) -> (Arc<Hooked>, Arc<ScmDevice<Arc<Hooked>>>, ObjectId) {
    let memory = Hooked::new(Arc::new(sim(4 << 20)));
    let options = FormatOptions { chunk_bytes: Some(64 << 10), mode, ..FormatOptions::default() };
    let device = ScmDevice::format(Arc::clone(&memory), &options).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    transaction.write(object, 0, vec![1; CONTENT]);
    device.commit(transaction, Durability::Durable).unwrap();
    (memory, Arc::new(device), object)
}

fn read(device: &impl ObjectDevice, object: ObjectId) -> Vec<u8> {
    let mut bytes = vec![0; CONTENT];
    assert_eq!(device.read(object, 0, &mut bytes).unwrap(), CONTENT);
    bytes
}

/// Overwrites the first bytes, which are put in place.
fn overwrite(device: &impl ObjectDevice, object: ObjectId) {
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![2; 3000]);
    device.commit(transaction, Durability::Durable).unwrap();
}

#[test]
fn reads_copy_side_by_side() {
    let (memory, device, object) = device(Mode::default());
    let inside = Arc::new((Mutex::new(0), Condvar::new()));
    memory.before_copy(move || {
        let (count, changed) = &*inside;
        *count.lock().unwrap() += 1;
        changed.notify_all();
        let (_count, late) = changed.wait_timeout_while(count.lock().unwrap(), SOON, |count| *count < 2).unwrap();
        assert!(!late.timed_out(), "the other read did not come");
    });
    let threads = [(); 2].map(|()| {
        let device = Arc::clone(&device);
        thread::spawn(move || read(&*device, object))
    });
    for thread in threads {
        assert!(thread.join().unwrap() == [1; CONTENT]);
    }
}

/// Reads while another thread changes something; the change must not be over before the read is.
fn changes_wait(mode: Mode, change: fn(&ScmDevice<Arc<Hooked>>, ObjectId)) {
    let (memory, device, object) = device(mode);
    let (copies, is_changed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (device, copies, is_changed) = (Arc::clone(&device), Arc::clone(&copies), Arc::clone(&is_changed));
        thread::spawn(move || {
            while !copies.load(Ordering::Acquire) {
                thread::yield_now();
            }
            change(&device, object);
            is_changed.store(true, Ordering::Release);
        })
    };
    memory.before_copy(move || {
        copies.store(true, Ordering::Release);
        thread::sleep(Duration::from_millis(50));
        assert!(!is_changed.load(Ordering::Acquire), "it changed while it was copied");
    });
    assert!(read(&*device, object) == [1; CONTENT]);
    writer.join().unwrap();
}

#[test]
fn a_commit_waits_for_reads_that_copy() {
    changes_wait(Mode::Atomic, overwrite);
}

#[test]
fn an_overwrite_that_tells_nobody_waits_for_reads_that_copy() {
    changes_wait(Mode::Mem, |device, object| {
        let mapping = device.map_objects().unwrap();
        let address = mapping.whole(object, CONTENT as u64).unwrap();
        mapping.overwrite(address, &[2; 3000]).unwrap();
    });
}

#[test]
fn a_removal_waits_for_reads_that_copy() {
    changes_wait(Mode::Atomic, |device, object| {
        let mut transaction = Transaction::new();
        transaction.remove(object);
        device.commit(transaction, Durability::Durable).unwrap();
    });
}

#[test]
fn a_read_that_another_process_overtook_is_done_again() {
    let memory = Arc::new(sim(4 << 20));
    let hooked = Hooked::new(Arc::clone(&memory));
    let options = FormatOptions { chunk_bytes: Some(64 << 10), ..FormatOptions::default() };
    let mut device = ScmDevice::format(Arc::clone(&hooked), &options).unwrap();
    device.join(Process { id: 1, started: 10 }, |_| false).unwrap();
    let other = Process { id: 2, started: 20 };
    let other = ScmDevice::attach(Arc::clone(&memory), &MountOptions::default(), other, |_| false).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    transaction.write(object, 0, vec![1; CONTENT]);
    device.commit(transaction, Durability::Durable).unwrap();
    let (other, is_first) = (Mutex::new(Some(other)), AtomicBool::new(true));
    hooked.before_copy(move || {
        if is_first.swap(false, Ordering::Relaxed) {
            let other = other.lock().unwrap().take().unwrap();
            overwrite(&other, object);
        }
    });
    let expected = [vec![2; 3000], vec![1; CONTENT - 3000]].concat();
    assert!(read(&device, object) == expected);
    device.verify().unwrap();
}

//! What threads and processes do without a lock, under schedules that a scheduler draws: locks that
//! name their holder, the leases they name, the lock of processes, and the caches of threads.
//!
//! It is the code itself that runs. Its memory is one for whose accesses the thread may have to
//! wait: of the locks all those that are made without holding one; of the caches all.

use super::super::lease::HOLDER;
use crate::medium::shared_area::{BEGUN, LOCK};
use crate::share::process_lock::ProcessLock;
use crate::share::readers::Readers;
use crate::space::allocator::{Allocator, Process};
use onode_media::{Domain, Pmem, Result};
use shuttle::sync::atomic::AtomicU64 as Point;
use shuttle::thread::{self, ThreadId};
use std::boxed::Box;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::vec::Vec;

const CHUNK: u64 = 4 << 10;
const START: u64 = 64 << 10;
const AREA: u64 = 8 * CHUNK;
const VICTIM: u64 = 1;

/// Words, some of which are places where another thread may go on.
struct Memory {
    words: Vec<AtomicU64>,
    /// `None` if all are.
    places: Option<Vec<u64>>,
    point: Point,
    /// What each thread loaded last.
    last: Mutex<HashMap<ThreadId, (u64, u64)>>,
}

type Blocks = Allocator<Arc<Memory>>;

impl Memory {
    fn new(places: Option<Vec<u64>>) -> Arc<Self> {
        let words = (0..(START + AREA) / 8).map(|_| AtomicU64::new(0)).collect();
        let (point, last) = (Point::new(0), Mutex::default());
        let memory = Arc::new(Self { words, places: Some(Vec::new()), point, last });
        let blocks = attach(&memory);
        blocks.reset();
        let layout = blocks.table.layout;
        drop(blocks);
        let mut memory = Arc::into_inner(memory).expect("nobody else has it");
        memory.places = places.map(|mut places| {
            places.push(layout.lock());
            places.extend((0..layout.leases as u16).map(|lease| layout.lease_word(lease, HOLDER)));
            places
        });
        Arc::new(memory)
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        if self.places.as_ref().is_none_or(|places| places.contains(&at)) {
            self.point.load(Ordering::SeqCst);
        }
        &self.words[(at / 8) as usize]
    }
}

impl Pmem for Memory {
    fn length(&self) -> u64 {
        START + AREA
    }

    fn domain(&self) -> Domain {
        Domain::Fence
    }

    fn load(&self, at: u64) -> u64 {
        let found = self.word(at).load(Ordering::SeqCst);
        let is_same = self.last.lock().unwrap().insert(thread::current().id(), (at, found)) == Some((at, found));
        if is_same {
            // It waits for somebody.
            thread::yield_now();
        }
        found
    }

    fn store(&self, at: u64, value: u64) {
        self.word(at).store(value, Ordering::SeqCst);
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> std::result::Result<u64, u64> {
        self.word(at).compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    fn read(&self, at: u64, buffer: &mut [u8]) {
        (at..).step_by(8).zip(buffer.chunks_exact_mut(8)).for_each(|(at, word)| {
            word.copy_from_slice(&self.load(at).to_le_bytes());
        });
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        (at..).step_by(8).zip(bytes.chunks_exact(8)).for_each(|(at, word)| {
            self.store(at, u64::from_le_bytes(word.try_into().expect("8 bytes")));
        });
    }

    fn zero(&self, at: u64, length: u64) {
        (at..at + length).step_by(8).for_each(|at| self.store(at, 0));
    }

    fn flush(&self, _at: u64, _length: u64) {}

    fn fence(&self) -> Result<()> {
        Ok(())
    }

    fn grow(&self, _length: u64) -> Result<()> {
        Ok(())
    }
}

fn attach(memory: &Arc<Memory>) -> Blocks {
    Allocator::attach(Arc::clone(memory), START, AREA, CHUNK).expect("a layout")
}

fn join(memory: &Arc<Memory>, id: u64) -> Blocks {
    let mut blocks = attach(memory);
    blocks.join(Process { id, started: 1 }, |process| process.id == VICTIM).expect("a free lease");
    blocks
}

/// What processes hold one after the other.
trait Held: Send + Sync {
    fn hold(&self, within: &dyn Fn());
    fn hold_and_die(self: Box<Self>);
    fn sweep(&self);
}

struct ByLock(Blocks);

impl Held for ByLock {
    fn hold(&self, within: &dyn Fn()) {
        let _guard = self.0.lock();
        within();
    }

    fn hold_and_die(self: Box<Self>) {
        std::mem::forget(self.0.lock());
        std::mem::forget(self);
    }

    fn sweep(&self) {
        self.0.sweep_dead();
    }
}

struct ByProcessLock(ProcessLock<Memory>);

impl Held for ByProcessLock {
    fn hold(&self, within: &dyn Fn()) {
        self.0.lock();
        within();
        self.0.unlock();
    }

    fn hold_and_die(self: Box<Self>) {
        self.0.lock();
        std::mem::forget(self);
    }

    fn sweep(&self) {
        self.0.members().sweep_dead();
    }
}

/// A process died with the lock. Two wait for it; one of them goes on, and a later process gets the
/// lease of the dead one and the lock. At no time do two have it.
fn one_has_it_at_a_time(make: fn(&Arc<Memory>, u64) -> Box<dyn Held>) {
    let run = move || {
        let memory = Memory::new(Some(Vec::from([LOCK])));
        make(&memory, VICTIM).hold_and_die();
        let inside = Arc::new(AtomicBool::new(false));
        let within = move |memory: &Memory| {
            assert!(!inside.swap(true, Ordering::SeqCst), "two have it");
            memory.point.load(Ordering::SeqCst);
            inside.store(false, Ordering::SeqCst);
        };
        let (one, other) = (make(&memory, 2), make(&memory, 3));
        let first = {
            let (memory, within) = (Arc::clone(&memory), within.clone());
            thread::spawn(move || {
                one.hold(&|| within(&memory));
                one.sweep();
                let later = make(&memory, 4);
                later.hold(&|| within(&memory));
                std::mem::forget((one, later));
            })
        };
        let second = thread::spawn(move || {
            other.hold(&|| within(&memory));
            std::mem::forget(other);
        });
        first.join().unwrap();
        second.join().unwrap();
    };
    shuttle::check_random(run, 4000);
    shuttle::check_pct(run, 4000, 3);
}

#[test]
fn one_process_has_the_lock_at_a_time() {
    one_has_it_at_a_time(|memory, id| Box::new(ByLock(join(memory, id))));
}

#[test]
fn one_process_has_the_process_lock_at_a_time() {
    one_has_it_at_a_time(|memory, id| Box::new(ByProcessLock(ProcessLock::new(Arc::clone(memory), join(memory, id)))));
}

#[test]
fn threads_never_get_the_same_block() {
    let run = || {
        let memory = Memory::new(None);
        let blocks = Arc::new(join(&memory, 2));
        let work = |number: u64| {
            let (memory, blocks) = (Arc::clone(&memory), Arc::clone(&blocks));
            move || {
                let mut cache = blocks.cache();
                let wanted = [1000, 1000, CHUNK].into_iter();
                // The caches together want more than there is, so there may be none.
                let taken: Vec<u64> = wanted.filter_map(|bytes| blocks.allocate_cached(&mut cache, bytes)).collect();
                taken.iter().for_each(|at| memory.store(at + 16, number << 32 | at));
                let kept = taken.first().map_or(0, |at| {
                    blocks.publish(*at).expect("a block");
                    blocks.block_of(*at).expect("a block").1
                });
                taken.iter().for_each(|at| assert_eq!(memory.load(at + 16), number << 32 | at, "another has {at}"));
                taken.iter().skip(1).for_each(|at| blocks.release_cached(&mut cache, *at).expect("a block"));
                blocks.drain(&mut cache);
                kept
            }
        };
        let threads = [1, 2].map(|number| thread::spawn(work(number)));
        let kept: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        blocks.check().unwrap();
        assert_eq!(blocks.free_bytes() + blocks.unusable_bytes() + kept, blocks.capacity_bytes());
    };
    shuttle::check_random(run, 40);
}

/// Words of the content of an object.
const CONTENT: [u64; 2] = [32 << 10, 40 << 10];

/// A process whose threads read content and change it.
struct Host {
    memory: Arc<Memory>,
    lock: ProcessLock<Memory>,
    readers: Readers,
}

impl Host {
    fn new(memory: &Arc<Memory>, id: u64) -> Arc<Self> {
        let lock = ProcessLock::new(Arc::clone(memory), join(memory, id));
        Arc::new(Self { memory: Arc::clone(memory), lock, readers: Readers::default() })
    }

    fn copy(&self) -> [u64; 2] {
        CONTENT.map(|at| self.memory.load(at))
    }

    /// Reads as a device does; without a second look if it `believes`.
    fn read(&self, believes: bool) -> [u64; 2] {
        self.lock.lock();
        let reading = self.readers.begin(&*self.memory);
        self.lock.unlock();
        let found = self.copy();
        if reading.end(&*self.memory) || believes {
            return found;
        }
        self.lock.lock();
        let found = self.copy();
        self.lock.unlock();
        found
    }

    /// Changes all content as a device does; beside reads if it is `careless`.
    fn change(&self, value: u64, careless: bool) {
        self.lock.lock();
        if !careless {
            self.readers.begin_change(&*self.memory, thread::yield_now);
        }
        CONTENT.iter().for_each(|at| self.memory.store(*at, value));
        self.lock.unlock();
    }
}

/// A thread reads while another one of its process changes what it reads, or one of another
/// process.
fn no_read_is_mixed(is_same_process: bool, believes: bool, careless: bool) {
    let run = move || {
        let memory = Memory::new(Some([&[LOCK, BEGUN], &CONTENT[..]].concat()));
        let host = Host::new(&memory, 2);
        let other = if is_same_process { Arc::clone(&host) } else { Host::new(&memory, 3) };
        let reader = thread::spawn(move || {
            let found = host.read(believes);
            assert_eq!(found[0], found[1], "a mixture");
        });
        let writer = thread::spawn(move || {
            other.change(1, careless);
            other.change(2, careless);
        });
        reader.join().unwrap();
        writer.join().unwrap();
    };
    shuttle::check_random(run, 4000);
    shuttle::check_pct(run, 4000, 3);
}

#[test]
fn no_read_mixes_what_a_thread_of_its_process_changes() {
    no_read_is_mixed(true, false, false);
}

#[test]
fn no_read_mixes_what_another_process_changes() {
    no_read_is_mixed(false, false, false);
}

#[test]
#[should_panic(expected = "a mixture")]
fn a_read_that_does_not_look_again_is_found() {
    no_read_is_mixed(false, true, false);
}

#[test]
#[should_panic(expected = "a mixture")]
fn a_change_that_does_not_wait_is_found() {
    no_read_is_mixed(true, false, true);
}

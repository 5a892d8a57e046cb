//! Two processes share an area; one is killed at any time, again and again, and the other works on.

#![cfg(target_os = "linux")]

use onode_base::Prng;
use onode_media::Pmem;
use onode_media::real::{MappedOptions, MappedPmem, Opening};
use onode_scm::allocator::{Allocator, Process, ThreadCache};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Tells the test program that it is the process to be killed, and where the memory is.
const REGION: &str = "ONODE_SCM_TEST_REGION";
const NAME: &str = "a_process_that_is_killed_takes_nothing_with_it";
const CHUNK: u64 = 4 << 10;
const AREA: u64 = 512 * CHUNK;
const KILLS: u64 = 40;
/// The lease of the process that stays.
const OWN: u16 = 1;

fn open(path: &Path, opening: Opening) -> Allocator<MappedPmem> {
    let options = MappedOptions { opening, shared: true, reserve: AREA, ..MappedOptions::default() };
    let memory = MappedPmem::open(path, &options).expect("memory");
    memory.let_in().expect("others may share it");
    Allocator::attach(memory, 0, AREA, CHUNK).expect("a layout")
}

fn is_dead(process: Process) -> bool {
    !Path::new("/proc").join(process.id.to_string()).exists()
}

fn join(allocator: &mut Allocator<MappedPmem>) {
    let own = Process { id: u64::from(std::process::id()), started: 1 };
    allocator.join(own, is_dead).expect("a free lease");
}

/// Blocks of one process, each with its number in the first and the last word.
struct Work<'a> {
    allocator: &'a Allocator<MappedPmem>,
    cache: ThreadCache,
    prng: Prng,
    held: Vec<(u64, u64)>,
}

impl<'a> Work<'a> {
    fn new(allocator: &'a Allocator<MappedPmem>, seed: u64) -> Self {
        Self { allocator, cache: allocator.cache(), prng: Prng::new(seed), held: Vec::new() }
    }

    fn tag(at: u64) -> u64 {
        u64::from(std::process::id()) << 32 | at
    }

    fn hold(&mut self, at: u64, bytes: u64) {
        for word in [at, at + bytes - 8] {
            self.allocator.pmem().store(word, Self::tag(at));
        }
        self.held.push((at, bytes));
    }

    fn release(&mut self, index: usize) {
        let (at, bytes) = self.held.swap_remove(index);
        for word in [at, at + bytes - 8] {
            assert_eq!(self.allocator.pmem().load(word), Self::tag(at), "two owners of {at}");
        }
        match self.prng.below(4) {
            0 if bytes >= 3 * CHUNK => {
                self.allocator.release_part(at + CHUNK, bytes - 2 * CHUNK);
                self.hold(at, CHUNK);
                self.hold(at + bytes - CHUNK, CHUNK);
            }
            1 if self.allocator.try_extend(at, bytes, bytes + CHUNK) => {
                let bytes = self.allocator.usable_bytes(bytes + CHUNK);
                self.hold(at, bytes);
            }
            2 => self.allocator.release(at, bytes),
            _ => assert_eq!(self.allocator.release_cached(&mut self.cache, at), Ok(())),
        }
    }

    fn step(&mut self) {
        if self.held.len() < 60 && self.prng.chance(1, 2) {
            let order = 5 + self.prng.below(10);
            let bytes = 1 + self.prng.below(1 << order);
            if let Some(at) = self.allocator.allocate_cached(&mut self.cache, bytes) {
                self.hold(at, self.allocator.usable_bytes(bytes));
            }
        } else if !self.held.is_empty() {
            let index = self.prng.below(self.held.len() as u64) as usize;
            self.release(index);
        }
    }
}

/// The life of the process that is killed.
fn live(path: &Path) -> ! {
    let mut allocator = open(path, Opening::Existing);
    join(&mut allocator);
    let mut work = Work::new(&allocator, u64::from(std::process::id()));
    loop {
        work.step();
    }
}

struct Region(PathBuf);

impl Region {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        Self(folder.join(format!("onode-scm-test-{}", std::process::id())))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Says that something is over, in whatever way it ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_process_that_is_killed_takes_nothing_with_it() {
    if let Some(path) = std::env::var_os(REGION) {
        live(Path::new(&path));
    }
    let region = Region::new();
    let mut allocator = open(&region.0, Opening::New(AREA));
    allocator.reset();
    join(&mut allocator);
    assert_eq!(allocator.lease(), OWN);
    let mut work = Work::new(&allocator, 1);
    let mut delays = Prng::new(2);
    for kill in 0..KILLS {
        let program = std::env::current_exe().expect("this program");
        let mut victim = Command::new(program)
            .args(["--exact", NAME])
            .env(REGION, &region.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a second process");
        let dead = AtomicBool::new(false);
        let delay = Duration::from_micros(delays.below(4000));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _over = Over(&dead);
                while allocator.holder(OWN + 1).is_none() {
                    let ended = victim.try_wait().expect("a child");
                    assert!(ended.is_none(), "kill {kill}: the process ended by itself: {ended:?}");
                    std::thread::sleep(Duration::from_micros(100));
                }
                std::thread::sleep(delay);
                victim.kill().expect("a child");
                let status = victim.wait().expect("a child");
                assert_eq!(status.signal(), Some(9), "kill {kill}: {status}");
            });
            while !dead.load(Ordering::Acquire) {
                work.step();
            }
        });
        // Before anything is swept, whatever the victim was doing must be no hindrance.
        (0..50).for_each(|_| work.step());
        assert_eq!(allocator.sweep_dead(), 1, "kill {kill}");
        allocator.check().unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        for (at, bytes) in &work.held {
            assert_eq!(allocator.block_of(*at), Some((*at, *bytes)), "kill {kill}");
        }
    }
    while !work.held.is_empty() {
        let last = work.held.len() - 1;
        work.release(last);
    }
    allocator.drain(&mut work.cache);
    allocator.check().unwrap();
    assert_eq!(allocator.free_bytes(), allocator.capacity_bytes(), "a block was lost");
}

//! A robust lock of processes, in the device's memory: one for all threads of all processes that
//! use a device.
//!
//! A word in the memory names the lease of the process that has the lock, so that whoever waits can
//! see that it is dead and go on in its place. Taking and giving back a free lock is one exchange
//! and one store, and no system call. A thread may keep the lock over several calls
//! ([`Share`](onode_object::powers::Share)); its calls see that it has it. What the lock protects
//! it does not know.

use crate::medium::shared_area::{CHANGES, LOCK};
use crate::space::Blocks;
use crate::space::allocator::Process;
use crate::space::allocator::lock::{BROKEN, FREE, lease_of};
use onode_media::Pmem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Attempts before the thread lets others run; few where a scheduler draws each of them.
const SPINS: u32 = if cfg!(test) { 2 } else { 200 };
/// How often it does so before it sleeps in between.
const YIELDS: u32 = 64;
const SLEEP: Duration = Duration::from_micros(50);

/// The lock.
pub(crate) struct ProcessLock<P: Pmem> {
    memory: Arc<P>,
    /// Who else uses the device, and in whose name the lock is taken.
    members: Blocks<P>,
    /// The thread of this process that has the lock.
    thread: AtomicU64,
    /// What this process knows of [`CHANGES`], and of what others committed; for who has the lock.
    known: AtomicU64,
    others_commits: AtomicU64,
}

/// A number of this thread that no other one of the process has, never 0.
fn this_thread() -> u64 {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr() as u64)
}

impl<P: Pmem> ProcessLock<P> {
    pub(crate) const fn new(memory: Arc<P>, members: Blocks<P>) -> Self {
        Self {
            memory,
            members,
            thread: AtomicU64::new(0),
            known: AtomicU64::new(u64::MAX),
            others_commits: AtomicU64::new(0),
        }
    }

    /// Who else uses the device, and in whose name the lock is taken.
    #[inline]
    pub(crate) const fn members(&self) -> &Blocks<P> {
        &self.members
    }

    /// Takes the lock in the name of a process from now on; false if too many use the memory.
    pub(crate) fn join(&mut self, process: Process, is_dead: impl Fn(Process) -> bool + Send + Sync + 'static) -> bool {
        self.members.join(process, is_dead).is_some()
    }

    /// This process uses the memory no more, but for the lock that it still has.
    pub(crate) fn leave(&mut self) {
        self.members.leave();
    }

    /// Has nobody hold it. Only for who has the memory alone.
    pub(crate) fn reset(memory: &P) {
        memory.store(LOCK, FREE);
    }

    /// Whether this thread has it.
    #[inline]
    pub(crate) fn is_mine(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == this_thread()
    }

    /// Notes what this process knows.
    #[inline]
    pub(crate) fn note(&self, changes: u64, others_commits: u64) {
        self.known.store(changes, Ordering::Relaxed);
        self.others_commits.store(others_commits, Ordering::Relaxed);
    }

    /// What others have committed, if nobody has changed anything that this process does not know.
    #[inline]
    pub(crate) fn unchanged(&self) -> Option<u64> {
        let is_known = self.memory.load(CHANGES) == self.known.load(Ordering::Relaxed);
        is_known.then(|| self.others_commits.load(Ordering::Relaxed))
    }

    /// Waits for the lock; whether whoever had it before died or failed in the middle of a change.
    #[inline]
    pub(crate) fn lock(&self) -> bool {
        let own = self.members.holder_word();
        let broken = self.memory.compare_exchange(LOCK, FREE, own).is_err() && self.wait(own);
        self.thread.store(this_thread(), Ordering::Relaxed);
        broken
    }

    #[cold]
    fn wait(&self, own: u64) -> bool {
        let (mut spins, mut turns) = (0, 0_u32);
        loop {
            let found = self.memory.load(LOCK);
            let broken = match found {
                FREE => false,
                BROKEN => true,
                _ if spins < SPINS => {
                    spins += 1;
                    std::hint::spin_loop();
                    continue;
                }
                _ => {
                    (spins, turns) = (0, turns.saturating_add(1));
                    // The longer it takes, the seldomer the holder is looked at.
                    if !turns.is_power_of_two() || !self.members.is_dead(lease_of(found)) {
                        if turns < YIELDS {
                            std::thread::yield_now()
                        } else {
                            std::thread::sleep(SLEEP)
                        }
                        continue;
                    }
                    true
                }
            };
            if self.memory.compare_exchange(LOCK, found, own).is_ok() {
                return broken;
            }
        }
    }

    /// Lets the next one have it.
    #[inline]
    pub(crate) fn unlock(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.memory.store(LOCK, if std::thread::panicking() { BROKEN } else { FREE });
    }
}

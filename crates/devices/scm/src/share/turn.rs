//! Whose turn it is: one lock for all threads of all processes that use a device.
//!
//! A word in the memory names the lease of the process that has the turn, so that whoever waits can
//! see that it is dead and go on in its place. Taking and giving back a free turn is one exchange
//! and one store, and no system call. A thread may keep its turn over several calls
//! ([`Share`](onode_object::powers::Share)); its calls see that it has it.

use crate::core::Core;
use crate::share::shared::{CHANGES, LOCK};
use crate::space::allocator::Allocator;
use crate::space::allocator::lock::{BROKEN, FREE, lease_of};
use onode_media::Pmem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Attempts before the thread lets others run; few where a scheduler draws each of them.
const SPINS: u32 = if cfg!(test) { 2 } else { 200 };
/// How often it does so before it sleeps in between.
const YIELDS: u32 = 64;
const SLEEP: Duration = Duration::from_micros(50);

/// The lock.
pub(crate) struct Turn<P: Pmem> {
    memory: Arc<P>,
    /// Who else uses the device, and in whose name the turn is taken.
    pub(crate) members: Allocator<Arc<P>>,
    /// The thread of this process that has the turn.
    thread: AtomicU64,
    /// What the core of this process knows of [`CHANGES`], and of what others committed; for who
    /// has the turn.
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

impl<P: Pmem> Turn<P> {
    pub(crate) const fn new(memory: Arc<P>, members: Allocator<Arc<P>>) -> Self {
        Self {
            memory,
            members,
            thread: AtomicU64::new(0),
            known: AtomicU64::new(u64::MAX),
            others_commits: AtomicU64::new(0),
        }
    }

    /// Makes it nobody's turn. Only for who has the memory alone.
    pub(crate) fn reset(memory: &P) {
        memory.store(LOCK, FREE);
    }

    /// Whether it is the turn of this thread.
    #[inline]
    pub(crate) fn is_mine(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == this_thread()
    }

    /// Notes what the core knows.
    #[inline]
    pub(crate) fn note(&self, core: &Core<P>) {
        self.known.store(core.changes, Ordering::Relaxed);
        self.others_commits.store(core.others_commits, Ordering::Relaxed);
    }

    /// What others have committed, if nobody has changed anything that the core of this process
    /// does not know.
    #[inline]
    pub(crate) fn unchanged(&self) -> Option<u64> {
        let is_known = self.memory.load(CHANGES) == self.known.load(Ordering::Relaxed);
        is_known.then(|| self.others_commits.load(Ordering::Relaxed))
    }

    /// Waits for the turn; whether whoever had it before died or failed in the middle of a change.
    #[inline]
    pub(crate) fn take(&self) -> bool {
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
    pub(crate) fn give_back(&self) {
        self.thread.store(0, Ordering::Relaxed);
        self.memory.store(LOCK, if std::thread::panicking() { BROKEN } else { FREE });
    }
}

/// The device, while it is this thread's turn.
pub(crate) struct Guard<'a, P: Pmem, G: DerefMut<Target = Core<P>>> {
    core: G,
    turn: &'a Turn<P>,
    /// The turn ends with this.
    ends: bool,
    is_changed: bool,
}

impl<'a, P: Pmem, G: DerefMut<Target = Core<P>>> Guard<'a, P, G> {
    pub(crate) const fn new(core: G, turn: &'a Turn<P>, ends: bool) -> Self {
        Self { core, turn, ends, is_changed: false }
    }

    /// The same for a change of what only this process knows: nothing is left for others.
    #[inline]
    pub(crate) fn unshared(&mut self) -> &mut Core<P> {
        &mut self.core
    }
}

impl<P: Pmem, G: DerefMut<Target = Core<P>>> Deref for Guard<'_, P, G> {
    type Target = Core<P>;

    #[inline]
    fn deref(&self) -> &Core<P> {
        &self.core
    }
}

impl<P: Pmem, G: DerefMut<Target = Core<P>>> DerefMut for Guard<'_, P, G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core<P> {
        self.is_changed = true;
        &mut self.core
    }
}

impl<P: Pmem, G: DerefMut<Target = Core<P>>> Drop for Guard<'_, P, G> {
    #[inline]
    fn drop(&mut self) {
        // Whoever unwinds leaves a change half-done; the next one makes everything anew.
        if self.is_changed && !std::thread::panicking() {
            self.core.leave_words();
            self.turn.note(&self.core);
        }
        if self.ends {
            self.turn.give_back();
        }
    }
}

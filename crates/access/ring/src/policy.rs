//! The scheduling policy of threads that serve: low while requests follow one another closely, so
//! that the scheduler leaves the program on its processor.
//!
//! A program that is woken by an answer while the thread that gave it still runs is put on another
//! processor, if one is idle, and waking that one takes longer than the request. A processor on
//! which nothing but threads of `SCHED_IDLE` run counts as idle, so the program stays. But such a
//! thread hardly runs while anything else wants its processor.
//!
//! Where the requests of several programs come to one processor, the thread has to run between
//! them, so there it keeps the usual policy.
//!
//! Keeps true: no thread has that policy for longer than [`PERIOD`] twice without handing over an
//! answer, whatever else runs; where it was taken away soon after it was given, it is given less
//! and less often.
#![allow(unsafe_code, reason = "no crate of ours has the call that sets a policy")]

use onode_base::sync::{Condvar, Mutex, MutexGuard, rank};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often the deputy looks after threads with the low policy.
const PERIOD: Duration = Duration::from_millis(1);
/// Requests that come within this time of the answer before follow closely.
const CLOSE: u64 = 200_000;
/// So many must follow closely before a thread gets the low policy: at first, and at most.
const STREAK_LEAST: u32 = 8;
const STREAK_MOST: u32 = 1 << 16;
/// Whoever served so many times the streak with the low policy was right to get it.
const WORTH: u32 = 4;

/// What a thread and the deputy know of each other.
struct Thread {
    id: libc::pid_t,
    is_low: AtomicBool,
    /// When it last handed over an answer, in nanoseconds after the beginning of all.
    answered: AtomicU64,
}

/// The programs whose requests come to one processor.
#[derive(Default)]
struct Programs {
    last: AtomicU32,
    /// When its last request came, in nanoseconds after the beginning of all.
    came: AtomicU64,
}

impl Programs {
    /// A request of a program comes; whether no other's came shortly before.
    fn is_alone(&self, program: u32, now: u64) -> bool {
        let before = self.last.swap(program, Ordering::Relaxed);
        let since = now.saturating_sub(self.came.swap(now, Ordering::Relaxed));
        before == program || since >= CLOSE
    }
}

/// The policies of the threads of one mount.
pub struct Policies {
    since: Instant,
    programs: Mutex<BTreeMap<u16, Arc<Programs>>, rank::RingPrograms>,
    threads: Mutex<Vec<Arc<Thread>>, rank::RingPolicies>,
    /// A thread has got the low policy.
    lowered: Condvar,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Policies")
    }
}

fn set(thread: libc::pid_t, policy: libc::c_int) -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call reads one structure, which lives until it returns.
    unsafe { libc::sched_setscheduler(thread, policy, &raw const none) == 0 }
}

impl Policies {
    /// Starts the deputy. `None` where a policy that was lowered cannot be raised again, which
    /// needs a right of root's (`CAP_SYS_NICE`).
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "it measures how long a thread waits; no volume depends on it")]
    pub fn start() -> Option<Arc<Self>> {
        // In a thread of its own, which is gone if it cannot go back.
        let try_out = || set(0, libc::SCHED_IDLE) && set(0, libc::SCHED_OTHER);
        if !std::thread::spawn(try_out).join().unwrap_or(false) {
            return None;
        }
        let made = Arc::new(Self {
            since: Instant::now(),
            programs: Mutex::default(),
            threads: Mutex::default(),
            lowered: Condvar::new(),
        });
        let deputy = Arc::downgrade(&made);
        std::thread::Builder::new().name("policies".to_owned()).spawn(move || look_after(&deputy)).ok()?;
        Some(made)
    }

    /// The policy of the thread that calls this, which is kept on a processor.
    #[must_use]
    pub fn of_this_thread(self: &Arc<Self>, processor: u16) -> Policy {
        // SAFETY: the call has no arguments and cannot fail.
        let id = unsafe { libc::gettid() };
        let thread = Arc::new(Thread { id, is_low: AtomicBool::new(false), answered: AtomicU64::new(0) });
        self.threads().push(Arc::clone(&thread));
        let programs = Arc::clone(self.programs.lock().entry(processor).or_default());
        Policy { all: Arc::clone(self), thread, programs, streak: Streak::new(), was_low: false }
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn threads(&self) -> MutexGuard<'_, Vec<Arc<Thread>>> {
        self.threads.lock()
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }

    /// Raises the policy of threads that handed over no answer for a period, and says whether any
    /// is low still.
    fn raise(&self, threads: &[Arc<Thread>]) -> bool {
        let now = self.now();
        let mut any = false;
        for thread in threads.iter().filter(|thread| thread.is_low.load(Ordering::SeqCst)) {
            let idle = now.saturating_sub(thread.answered.load(Ordering::SeqCst));
            if idle >= PERIOD.as_nanos() as u64 {
                set(thread.id, libc::SCHED_OTHER);
                thread.is_low.store(false, Ordering::SeqCst);
            } else {
                any = true;
            }
        }
        any
    }
}

/// What the deputy does, as long as there is something to look after.
fn look_after(policies: &Weak<Policies>) {
    while let Some(policies) = policies.upgrade() {
        let mut threads = policies.threads();
        if !policies.raise(&threads) {
            // It looks whether anybody is left now and then; whoever is lowered wakes it.
            policies.lowered.wait_for(&mut threads, Duration::from_secs(1));
            continue;
        }
        drop(threads);
        drop(policies);
        std::thread::sleep(PERIOD);
    }
}

/// When a thread gets the low policy, and how often it was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Streak {
    needed: u32,
    /// Requests that followed closely, one after another.
    close: u32,
    /// Requests that were served with the low policy since it was given.
    served: u32,
}

impl Streak {
    const fn new() -> Self {
        Self { needed: STREAK_LEAST, close: 0, served: 0 }
    }

    /// A request came with the usual policy; whether the thread gets the low one.
    fn came(&mut self, is_close: bool) -> bool {
        self.close = if is_close { self.close + 1 } else { 0 };
        let gets = self.close >= self.needed;
        if gets {
            *self = Self { close: 0, served: 0, ..*self };
        }
        gets
    }

    /// The policy was raised again.
    fn ended(&mut self) {
        let was_right = self.served >= WORTH * STREAK_LEAST;
        self.needed = if was_right { STREAK_LEAST } else { (self.needed * 2).min(STREAK_MOST) };
        self.close = 0;
    }
}

/// The policy of one thread.
pub struct Policy {
    all: Arc<Policies>,
    thread: Arc<Thread>,
    programs: Arc<Programs>,
    streak: Streak,
    /// The last answer was handed over with the low policy.
    was_low: bool,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Policy of thread {}: {:?}", self.thread.id, self.streak)
    }
}

impl Policy {
    /// A request of a program came.
    pub(crate) fn came(&mut self, program: u32) {
        let now = self.all.now();
        let is_alone = self.programs.is_alone(program, now);
        if self.thread.is_low.load(Ordering::SeqCst) {
            if is_alone {
                self.streak.served = self.streak.served.saturating_add(1);
                return;
            }
            set(0, libc::SCHED_OTHER);
            self.thread.is_low.store(false, Ordering::SeqCst);
            self.was_low = true;
        }
        if self.was_low {
            self.was_low = false;
            self.streak.ended();
        }
        let idle = now.saturating_sub(self.thread.answered.load(Ordering::SeqCst));
        if self.streak.came(is_alone && idle < CLOSE) && set(0, libc::SCHED_IDLE) {
            self.thread.answered.store(self.all.now(), Ordering::SeqCst);
            self.thread.is_low.store(true, Ordering::SeqCst);
            // A deputy that has just seen nothing to look after waits by now, and is woken.
            drop(self.all.threads());
            self.all.lowered.notify_one();
        }
    }

    /// The answer is handed over now.
    pub(crate) fn answers(&mut self) {
        self.thread.answered.store(self.all.now(), Ordering::SeqCst);
        self.was_low = self.thread.is_low.load(Ordering::SeqCst);
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        self.all.threads().retain(|thread| !Arc::ptr_eq(thread, &self.thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_that_was_worth_it_is_short_the_next_time() {
        let mut streak = Streak::new();
        let run = |streak: &mut Streak| (1..).find(|_| streak.came(true)).unwrap();
        assert_eq!(run(&mut streak), STREAK_LEAST);
        for needed in [16, 32, 64] {
            streak.ended();
            assert_eq!(run(&mut streak), needed);
        }
        streak.served = 1000;
        streak.ended();
        assert_eq!(run(&mut streak), STREAK_LEAST);
        assert!(!streak.came(true) && !streak.came(false));
        assert_eq!(run(&mut streak), STREAK_LEAST);
        (0..40).for_each(|_| streak.ended());
        assert_eq!(streak.needed, STREAK_MOST);
    }

    #[test]
    fn a_thread_that_does_not_answer_gets_its_policy_back() {
        let Some(policies) = Policies::start() else { return };
        let mut policy = policies.of_this_thread(0);
        for _ in 0..4 * STREAK_LEAST {
            policy.came(1);
            policy.answers();
        }
        let (thread, policy_of) = (Arc::clone(&policy.thread), |id| {
            // SAFETY: the call takes a number and gives one.
            unsafe { libc::sched_getscheduler(id) }
        });
        // A machine that does other work may have taken it back meanwhile.
        if thread.is_low.load(Ordering::SeqCst) {
            assert_eq!(policy_of(thread.id), libc::SCHED_IDLE);
        }
        while thread.is_low.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert_eq!(policy_of(thread.id), libc::SCHED_OTHER);
        policy.was_low = true;
        policy.came(1);
        assert!(policy.streak.needed >= STREAK_LEAST);
        // Among several programs it keeps the usual one.
        for program in (0..8 * STREAK_LEAST).map(|n| n % 3) {
            policy.came(program);
            policy.answers();
            assert!(!thread.is_low.load(Ordering::SeqCst));
        }
        drop(policy);
        assert!(policies.threads().is_empty());
    }
}

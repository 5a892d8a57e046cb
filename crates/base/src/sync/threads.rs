//! What each thread holds and waits for, in debug builds.
//!
//! A lock is written down before the thread waits for it, when it has it and when it lets go. What
//! a thread that ends still holds, in the destructors of its variables, is not written down.

use super::order::Wanted;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// All threads that have taken a lock.
static THREADS: Mutex<Vec<Weak<Record>>> = Mutex::new(Vec::new());

std::thread_local! {
    static OWN: Arc<Record> = Record::of_this_thread();
}

/// A thread.
pub struct Record {
    name: String,
    locks: Mutex<Locks>,
}

/// The locks of a thread.
#[derive(Default)]
struct Locks {
    held: Vec<OfLock>,
    waits: Option<Waits>,
    next: u64,
    /// What was taken before this number is another thread's, as far as order goes.
    own_from: u64,
}

struct OfLock {
    number: u64,
    lock: Wanted,
    since: Instant,
}

struct Waits {
    lock: Wanted,
    /// For a change of what the lock guards, and not for the lock.
    for_change: bool,
    since: Instant,
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "people want to know since when a lock is held; no volume depends on it")]
fn now() -> Instant {
    Instant::now()
}

impl Record {
    fn of_this_thread() -> Arc<Self> {
        let thread = thread::current();
        let name = alloc::format!("{:?} {}", thread.id(), thread.name().unwrap_or("without a name"));
        let record = Arc::new(Self { name, locks: Mutex::default() });
        let mut all = unpoisoned(&THREADS);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&record));
        record
    }

    fn locks(&self) -> MutexGuard<'_, Locks> {
        unpoisoned(&self.locks)
    }
}

impl Locks {
    /// What is wrong with waiting for `wanted` with all that is held `but` one.
    fn broken(&self, wanted: &Wanted, but: Option<u64>) -> Option<String> {
        let held = self.held.iter().filter(|one| Some(one.number) != but);
        let mut relevant = held.filter(|one| one.number >= self.own_from || one.lock.is_same(wanted));
        relevant.find_map(|one| wanted.broken_by(&one.lock))
    }

    fn wait(&mut self, lock: Wanted, for_change: bool) {
        self.waits = Some(Waits { lock, for_change, since: now() });
    }

    fn hold(&mut self, lock: Wanted) -> u64 {
        self.waits = None;
        let number = self.next;
        self.next += 1;
        self.held.push(OfLock { number, lock, since: now() });
        number
    }
}

/// That a lock is held, until this is dropped.
pub struct HeldLock {
    number: Option<u64>,
    lock: Wanted,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let _ = OWN.try_with(|own| own.locks().held.retain(|one| one.number != number));
    }
}

/// That a lock is let go to wait for a change, until this is dropped.
pub struct LetGo<'a> {
    held: &'a mut HeldLock,
}

impl HeldLock {
    /// The lock is let go to wait for a change.
    #[track_caller]
    pub fn let_go(&mut self) -> LetGo<'_> {
        let back = self.lock.here();
        let number = self.number;
        check(&back, number);
        let _ = OWN.try_with(|own| {
            let mut locks = own.locks();
            locks.held.retain(|one| Some(one.number) != number);
            locks.wait(back, true);
        });
        LetGo { held: self }
    }
}

impl Drop for LetGo<'_> {
    fn drop(&mut self) {
        let lock = self.held.lock;
        self.held.number = OWN.try_with(|own| own.locks().hold(lock)).ok();
    }
}

/// That what was held before says nothing about the order, until this is dropped.
pub struct Hidden {
    before: Option<u64>,
}

/// Hides what the thread holds.
pub fn hide() -> Hidden {
    let hidden = OWN.try_with(|own| {
        let mut locks = own.locks();
        let next = locks.next;
        core::mem::replace(&mut locks.own_from, next)
    });
    Hidden { before: hidden.ok() }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        let _ = OWN.try_with(|own| own.locks().own_from = before);
    }
}

/// The thread waits for a lock from now on.
#[track_caller]
pub fn wait(wanted: Wanted) {
    check(&wanted, None);
    let _ = OWN.try_with(|own| own.locks().wait(wanted, false));
}

/// Panics if waiting for a lock with all that is held `but` one breaks the order.
#[track_caller]
fn check(wanted: &Wanted, but: Option<u64>) {
    // A second panic would hide the first one.
    if thread::panicking() {
        return;
    }
    if let Ok(Some(broken)) = OWN.try_with(|own| own.locks().broken(wanted, but)) {
        panic!("{broken}");
    }
}

/// The thread has a lock from now on.
pub fn hold(lock: Wanted) -> HeldLock {
    HeldLock { number: OWN.try_with(|own| own.locks().hold(lock)).ok(), lock }
}

/// What one thread holds and waits for.
pub struct ThreadLocks {
    /// Number and name of the thread.
    pub name: String,
    /// What it holds, and for how long.
    pub held: Vec<(Wanted, Duration)>,
    /// What it waits for, and for how long.
    pub waits: Option<Awaited>,
}

/// What a thread waits for.
pub struct Awaited {
    /// The lock.
    pub lock: Wanted,
    /// For a change of what it guards, and not for the lock.
    pub for_change: bool,
    /// For how long.
    pub time: Duration,
}

/// Every thread that holds or waits for a lock.
pub fn all() -> Vec<ThreadLocks> {
    let records: Vec<Arc<Record>> = unpoisoned(&THREADS).iter().filter_map(Weak::upgrade).collect();
    let threads = records.iter().map(|record| {
        let locks = record.locks();
        let held = locks.held.iter().map(|one| (one.lock, one.since.elapsed())).collect();
        let waits = locks.waits.as_ref();
        let waits = waits.map(|it| Awaited { lock: it.lock, for_change: it.for_change, time: it.since.elapsed() });
        ThreadLocks { name: record.name.clone(), held, waits }
    });
    threads.filter(|thread| !thread.held.is_empty() || thread.waits.is_some()).collect()
}

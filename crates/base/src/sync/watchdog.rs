//! Tells of locks that are waited for too long, in debug builds.
//!
//! Who waits longer than [`patience`] has what every thread holds and waits for printed to standard
//! error, and goes on waiting: it may be a deadlock, or a medium that hangs. Of several who wait,
//! one prints it.

use super::order::Wanted;
use super::threads::{self, HeldLock, ThreadLocks};
use alloc::format;
use alloc::string::String;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(30_000);
/// When it was printed last.
static PRINTED: Mutex<Option<Instant>> = Mutex::new(None);

/// How long a lock is waited for without a word.
pub fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

/// Sets how long a lock is waited for without a word.
pub fn set_patience(time: Duration) {
    PATIENCE.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// What every thread holds and waits for, since when and taken where.
#[must_use]
pub fn report() -> String {
    let threads = threads::all();
    let mut text = String::new();
    for thread in &threads {
        // A string takes all that is written.
        let _ = describe(&mut text, thread, &threads);
    }
    text
}

fn describe(text: &mut String, thread: &ThreadLocks, threads: &[ThreadLocks]) -> core::fmt::Result {
    writeln!(text, "{}", thread.name)?;
    for (lock, time) in &thread.held {
        writeln!(text, "  has {lock} for {:.1} s", time.as_secs_f64())?;
    }
    let Some(waits) = &thread.waits else { return Ok(()) };
    let what = if waits.for_change { "a change under" } else { "the lock" };
    writeln!(text, "  waits for {what} {} for {:.1} s", waits.lock, waits.time.as_secs_f64())?;
    let has_it = |other: &&ThreadLocks| other.held.iter().any(|(lock, _)| lock.is_same(&waits.lock));
    for holder in threads.iter().filter(has_it) {
        writeln!(text, "    which {} has", holder.name)?;
    }
    Ok(())
}

/// Takes a lock: with `attempt`, which gives up after the time it is told, and then with `wait`.
#[track_caller]
pub(super) fn wait_for<G>(
    wanted: Wanted,
    attempt: impl FnOnce(Duration) -> Option<G>,
    wait: impl FnOnce() -> G,
) -> (G, HeldLock) {
    threads::wait(wanted);
    let guard = attempt(patience()).unwrap_or_else(|| {
        bark(&wanted);
        wait()
    });
    (guard, threads::hold(wanted))
}

#[expect(clippy::disallowed_methods, reason = "it says once what several wait for; no volume depends on it")]
fn bark(wanted: &Wanted) {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    // Who waits that long was told of then.
    if printed.is_some_and(|at| at.elapsed() < patience()) {
        return;
    }
    let seconds = patience().as_secs_f64();
    let text = format!("{wanted} has been waited for longer than {seconds} s. What threads have:\n{}", report());
    // Past what a test keeps to itself until it ends: it may not end. Nobody is left to hear of an
    // error.
    let _ = std::io::stderr().write_all(text.as_bytes());
    *printed = Some(Instant::now());
}

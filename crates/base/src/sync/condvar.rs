//! Waiting with a lock let go until somebody says that what it guards has changed.

use super::MutexGuard;
use core::time::Duration;

/// Where threads wait until they are told of a change.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: parking_lot::Condvar,
}

impl Condvar {
    /// Nobody waits there.
    #[must_use]
    pub const fn new() -> Self {
        Self { inner: parking_lot::Condvar::new() }
    }

    /// Lets go of the lock until somebody tells of a change, and takes it back.
    ///
    /// # Panics
    /// In debug builds if the thread holds a lock that is not taken before that one.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        #[cfg(debug_assertions)]
        let _let_go = guard._held.let_go();
        self.inner.wait(&mut guard.inner);
    }

    /// As [`wait`](Self::wait), at most so long; whether it was told of a change.
    ///
    /// # Panics
    /// As there.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        #[cfg(debug_assertions)]
        let _let_go = guard._held.let_go();
        !self.inner.wait_for(&mut guard.inner, time).timed_out()
    }

    /// Tells one of those who wait.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Tells all who wait.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

//! The lock that one thread holds at a time.

use super::{HeldLock, rank::Rank, raw};
#[cfg(all(debug_assertions, feature = "std"))]
use super::{order::Wanted, threads::hold, watchdog::wait_for};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// A mutual-exclusion lock of a rank; it never poisons.
pub struct Mutex<T, R> {
    inner: raw::Mutex<T>,
    rank: PhantomData<R>,
}

/// What holds a [`Mutex`].
pub struct MutexGuard<'a, T> {
    pub(super) inner: raw::MutexGuard<'a, T>,
    pub(super) _held: HeldLock,
}

impl<T, R> Mutex<T, R> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { inner: raw::Mutex::new(value), rank: PhantomData }
    }

    /// The value, without the lock.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }

    /// The value, for who has the lock for itself.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<T, R: Rank> Mutex<T, R> {
    /// Waits until nobody holds it.
    ///
    /// # Panics
    /// In debug builds if the thread holds a lock that is not taken before this one.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock_numbered(None)
    }

    /// As [`lock`](Self::lock), for locks of one rank that are taken together: the one with the
    /// lowest number first.
    ///
    /// # Panics
    /// As there.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn lock_at(&self, number: usize) -> MutexGuard<'_, T> {
        self.lock_numbered(Some(number))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    fn lock_numbered(&self, _number: Option<usize>) -> MutexGuard<'_, T> {
        #[cfg(all(debug_assertions, feature = "std"))]
        let (inner, _held) = wait_for(
            Wanted::new::<R, _>(&self.inner, _number),
            |patience| self.inner.try_lock_for(patience),
            || self.inner.lock(),
        );
        #[cfg(not(all(debug_assertions, feature = "std")))]
        let (inner, _held) = (self.inner.lock(), ());
        MutexGuard { inner, _held }
    }

    /// The lock, if nobody holds it now.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = self.inner.try_lock()?;
        #[cfg(all(debug_assertions, feature = "std"))]
        let _held = hold(Wanted::new::<R, _>(&self.inner, None));
        #[cfg(not(all(debug_assertions, feature = "std")))]
        let _held = ();
        Some(MutexGuard { inner, _held })
    }
}

impl<T: Default, R> Default for Mutex<T, R> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

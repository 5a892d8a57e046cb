//! The lock that many hold to look and one to change.

use super::{HeldLock, rank::Rank, raw};
#[cfg(debug_assertions)]
use super::{order::Wanted, watchdog::wait_for};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// A lock of a rank that many may hold to look and one to change; it never poisons.
pub struct RwLock<T, R> {
    inner: raw::RwLock<T>,
    rank: PhantomData<R>,
}

/// What holds a [`RwLock`] to look.
pub struct ReadGuard<'a, T> {
    inner: raw::RwLockReadGuard<'a, T>,
    _held: HeldLock,
}

/// What holds a [`RwLock`] alone.
pub struct WriteGuard<'a, T> {
    inner: raw::RwLockWriteGuard<'a, T>,
    _held: HeldLock,
}

impl<T, R> RwLock<T, R> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self { inner: raw::RwLock::new(value), rank: PhantomData }
    }
}

impl<T, R: Rank> RwLock<T, R> {
    /// Waits until nobody changes the value.
    ///
    /// # Panics
    /// In debug builds if the thread holds a lock that is not taken before this one; this one held
    /// to look is such a lock, too, for another thread may wait between the two to change it.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T> {
        #[cfg(debug_assertions)]
        let (inner, _held) = wait_for(
            Wanted::new::<R, _>(&self.inner, None),
            |patience| self.inner.try_read_for(patience),
            || self.inner.read(),
        );
        #[cfg(not(debug_assertions))]
        let (inner, _held) = (self.inner.read(), ());
        ReadGuard { inner, _held }
    }

    /// Waits until nobody looks at the value.
    ///
    /// # Panics
    /// In debug builds if the thread holds a lock that is not taken before this one.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.write_numbered(None)
    }

    /// As [`write`](Self::write), for locks of one rank that are taken together: the one with the
    /// lowest number first.
    ///
    /// # Panics
    /// As there.
    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    pub fn write_at(&self, number: usize) -> WriteGuard<'_, T> {
        self.write_numbered(Some(number))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    #[inline]
    fn write_numbered(&self, _number: Option<usize>) -> WriteGuard<'_, T> {
        #[cfg(debug_assertions)]
        let (inner, _held) = wait_for(
            Wanted::new::<R, _>(&self.inner, _number),
            |patience| self.inner.try_write_for(patience),
            || self.inner.write(),
        );
        #[cfg(not(debug_assertions))]
        let (inner, _held) = (self.inner.write(), ());
        WriteGuard { inner, _held }
    }
}

impl<T: Default, R> Default for RwLock<T, R> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug, R> fmt::Debug for RwLock<T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

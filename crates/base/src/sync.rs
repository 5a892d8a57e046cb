//! The lock that wraps a single-threaded device core once.
//!
//! With `std` it parks the waiting thread; firmware without threads gets a spin lock.

/// A mutual-exclusion lock; `lock()` returns a guard and never poisons.
#[cfg(feature = "std")]
pub type Mutex<T> = parking_lot::Mutex<T>;

/// A mutual-exclusion lock; `lock()` returns a guard and never poisons.
#[cfg(not(feature = "std"))]
pub type Mutex<T> = spin::Mutex<T>;

/// What holds a [`Mutex`].
#[cfg(feature = "std")]
pub type MutexGuard<'a, T> = parking_lot::MutexGuard<'a, T>;

/// What holds a [`Mutex`].
#[cfg(not(feature = "std"))]
pub type MutexGuard<'a, T> = spin::MutexGuard<'a, T>;

/// A lock that many may hold to look and one to change; it never poisons.
#[cfg(feature = "std")]
pub type RwLock<T> = parking_lot::RwLock<T>;

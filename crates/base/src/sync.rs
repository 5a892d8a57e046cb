//! Locks. Each has a rank, which says where it stands in the one order in which locks are taken
//! ([`rank`] has it).
//!
//! With `std` a lock parks the waiting thread; firmware without threads gets a spin lock. In debug
//! builds with `std` taking a lock out of order panics, and a lock that is waited for too long
//! prints what all threads hold and wait for ([`watchdog`]). Elsewhere a rank costs nothing.
//!
//! Beyond its reach are locks between processes and locks of files.

#[cfg(feature = "std")]
mod condvar;
mod mutex;
#[cfg(all(debug_assertions, feature = "std"))]
mod order;
pub mod rank;
#[cfg(feature = "std")]
mod rw_lock;
#[cfg(all(debug_assertions, feature = "std"))]
mod threads;
#[cfg(all(debug_assertions, feature = "std"))]
pub mod watchdog;

#[cfg(feature = "std")]
pub use condvar::Condvar;
pub use mutex::{Mutex, MutexGuard};
#[cfg(feature = "std")]
pub use rw_lock::{ReadGuard, RwLock, WriteGuard};

#[cfg(feature = "std")]
use parking_lot as raw;
#[cfg(not(feature = "std"))]
use spin as raw;
#[cfg(all(debug_assertions, feature = "std"))]
use threads::HeldLock;

/// That a lock is held is known to nobody but the lock.
#[cfg(not(all(debug_assertions, feature = "std")))]
type HeldLock = ();

/// Does what another thread would do: what this one holds says nothing about its order. For who
/// makes the calls of several clients in one thread.
pub fn as_another_thread<T>(act: impl FnOnce() -> T) -> T {
    #[cfg(all(debug_assertions, feature = "std"))]
    let _hidden = threads::hide();
    act()
}

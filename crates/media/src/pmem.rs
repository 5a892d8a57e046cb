//! Byte-addressable persistent memory: loads and stores, lines that are flushed, fences.

use crate::error::{Error, Result};
use core::ptr::NonNull;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;

/// Bytes of a cache line, the unit in which stores reach the medium.
pub const LINE_BYTES: u64 = 64;

/// What makes stores durable on a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Lines are flushed and fenced; the medium begins behind the processor's caches.
    Flush,
    /// A fence is enough: the caches belong to what survives, or nothing survives but the failure
    /// of a process (tmpfs, memfd).
    Fence,
    /// The memory is a file whose pages the host writes back: a fence is a sync of the file and
    /// costs milliseconds.
    Sync,
}

impl Domain {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flush => "flush",
            Self::Fence => "none",
            Self::Sync => "sync",
        }
    }
}

/// A region of byte-addressable memory that survives (paper 2, section III).
///
/// **Power cuts.** Nothing that was stored is durable before a [`fence`](Pmem::fence) that follows
/// a [`flush`](Pmem::flush) of it. Until then a cut leaves, of each aligned 8 bytes by themselves,
/// any value that they had since they were last durable: processors write lines back whenever they
/// like, in any order. Aligned 8 bytes are the only unit that never tears. [`Domain`] says what
/// flush and fence cost; whoever uses the memory calls both always.
///
/// All methods take `&self`: threads and processes share the memory, and who stores where is
/// settled by whoever uses it. Addresses are bytes from the start. **One past the end panics**,
/// like an index past a slice: an address that comes from the medium is checked by its reader
/// first.
pub trait Pmem: Send + Sync {
    /// Bytes in all, a multiple of [`LINE_BYTES`].
    fn length(&self) -> u64;

    /// What makes stores durable.
    fn domain(&self) -> Domain;

    /// The aligned 8 bytes at `at` as a little-endian number; everything that was stored before the
    /// value was stored is seen by who loads it (acquire).
    fn load(&self, at: u64) -> u64;

    /// Stores the aligned 8 bytes at `at` at once (release).
    fn store(&self, at: u64, value: u64);

    /// Stores `new` in the aligned 8 bytes at `at` if they hold `current`.
    ///
    /// # Errors
    /// The value found instead.
    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64>;

    /// Copies bytes from `at` on into `buffer`.
    fn read(&self, at: u64, buffer: &mut [u8]);

    /// Copies `bytes` to `at`.
    fn write(&self, at: u64, bytes: &[u8]);

    /// Copies `bytes` to `at` and flushes them, past the caches where that is faster; durable after
    /// a fence.
    fn write_through(&self, at: u64, bytes: &[u8]) {
        self.write(at, bytes);
        self.flush(at, bytes.len() as u64);
    }

    /// Fills `length` bytes from `at` on with zeros.
    fn zero(&self, at: u64, length: u64);

    /// Begins to write back the lines that hold any of the `length` bytes from `at` on.
    fn flush(&self, at: u64, length: u64);

    /// Waits until everything flushed so far is durable, and orders stores before it with those
    /// after it.
    ///
    /// # Errors
    /// `Host`, `HostFull` from media that are files. What was flushed since the fence before may
    /// then be durable or not.
    fn fence(&self) -> Result<()>;

    /// What is wrong with the memory for good: a part of it is gone and reads as zeros, whatever it
    /// held. Whoever believes what it read asks afterwards; from then on every
    /// [`fence`](Pmem::fence) fails.
    fn failure(&self) -> Option<Error> {
        None
    }

    /// Makes the memory at least `length` bytes long; what is there stays where it is, and the new
    /// part reads as zeros. Durable when it returns.
    ///
    /// # Errors
    /// `HostFull`, `Host`, `ReadOnly`; `OutOfRange` if this memory cannot grow so far.
    fn grow(&self, length: u64) -> Result<()>;

    /// The `count` aligned words from `at` on where they lie, as little-endian numbers, if this
    /// process can look at them there: one check for all of them. `None` from a memory whose every
    /// access is to be seen by it.
    #[cfg(target_has_atomic = "64")]
    fn words(&self, at: u64, count: u64) -> Option<&[AtomicU64]> {
        let _ = (at, count);
        None
    }

    /// Says that the `length` bytes from `at` on, and perhaps what lies behind them, are about to
    /// be stored to for the first time in this process, so that the host can provide for it.
    /// Advice: nothing that can be seen changes.
    fn prepare(&self, at: u64, length: u64) {
        let _ = (at, length);
    }

    /// Where the memory lies in the address space of this process, if it does. It stays there as
    /// long as the value lives.
    fn address(&self) -> Option<NonNull<u8>> {
        None
    }
}

macro_rules! forward {
    ($type:ty) => {
        impl<P: Pmem + ?Sized> Pmem for $type {
            fn length(&self) -> u64 {
                (**self).length()
            }
            fn domain(&self) -> Domain {
                (**self).domain()
            }
            #[inline]
            fn load(&self, at: u64) -> u64 {
                (**self).load(at)
            }
            #[inline]
            fn store(&self, at: u64, value: u64) {
                (**self).store(at, value);
            }
            #[inline]
            fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
                (**self).compare_exchange(at, current, new)
            }
            fn read(&self, at: u64, buffer: &mut [u8]) {
                (**self).read(at, buffer);
            }
            fn write(&self, at: u64, bytes: &[u8]) {
                (**self).write(at, bytes);
            }
            fn write_through(&self, at: u64, bytes: &[u8]) {
                (**self).write_through(at, bytes);
            }
            fn zero(&self, at: u64, length: u64) {
                (**self).zero(at, length);
            }
            fn flush(&self, at: u64, length: u64) {
                (**self).flush(at, length);
            }
            fn fence(&self) -> Result<()> {
                (**self).fence()
            }
            #[inline]
            fn failure(&self) -> Option<Error> {
                (**self).failure()
            }
            fn grow(&self, length: u64) -> Result<()> {
                (**self).grow(length)
            }
            #[cfg(target_has_atomic = "64")]
            #[inline]
            fn words(&self, at: u64, count: u64) -> Option<&[AtomicU64]> {
                (**self).words(at, count)
            }
            #[inline]
            fn prepare(&self, at: u64, length: u64) {
                (**self).prepare(at, length);
            }
            fn address(&self) -> Option<NonNull<u8>> {
                (**self).address()
            }
        }
    };
}

forward!(&P);
forward!(alloc::boxed::Box<P>);
forward!(alloc::sync::Arc<P>);

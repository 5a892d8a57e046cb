//! Reads of content beside each other: bytes are copied without a lock, and whoever changes
//! anything waits for those of this process and tells those of others.
//!
//! A read is planned under the locks, and begins before they are given back. No change begins while
//! a read of this process copies, so what it copies is neither stored to nor released for reuse:
//! every block that it copies is pinned, all at once and for no list. No read begins while a change
//! holds the locks, so a change waits for the copies under way and no longer. Other processes do
//! not know of these reads: each of their changes counts in the memory before it stores anything,
//! and a read that finds another count than at its begin has copied for nothing and is done again
//! under the locks. What programs store through their pointers is theirs to put in order.

use crate::medium::shared_area::BEGUN;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use onode_media::Pmem;

/// Reads of this process that copy content.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    copying: AtomicU64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    readers: &'a Readers,
    /// Changes of all processes that had begun.
    begun: u64,
}

impl Readers {
    /// Begins a read; the locks are held.
    #[inline]
    pub(crate) fn begin<P: Pmem + ?Sized>(&self, memory: &P) -> Reading<'_> {
        self.copying.fetch_add(1, Ordering::Relaxed);
        Reading { readers: self, begun: memory.load(BEGUN) }
    }

    /// Begins a change; the locks are held. It waits, and calls `pause` meanwhile, until no read of
    /// this process copies.
    #[inline]
    pub(crate) fn begin_change<P: Pmem + ?Sized>(&self, memory: &P, pause: impl Fn()) {
        while self.copying.load(Ordering::Acquire) != 0 {
            pause();
        }
        memory.store(BEGUN, memory.load(BEGUN).wrapping_add(1));
        // Whoever sees anything of the change sees that it has begun.
        fence(Ordering::Release);
    }
}

impl Reading<'_> {
    /// Ends the read; whether what it copied is what there was when it began.
    #[inline]
    pub(crate) fn end<P: Pmem + ?Sized>(self, memory: &P) -> bool {
        // What was copied was copied before this is looked at.
        fence(Ordering::Acquire);
        memory.load(BEGUN) == self.begun
    }
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        self.readers.copying.fetch_sub(1, Ordering::Release);
    }
}

//! The free blocks that each thread keeps for itself, one cache a heap; a thread that ends gives
//! them back.
//!
//! A cache is no handle of its heap: a thread that is about to end keeps no heap open and its file
//! in use.

use crate::error::{Result, misuse};
use crate::process::Opener;
use crate::shared::Shared;
use onode_base::sync::{Mutex, MutexGuard, rank};
use onode_scm::allocator::ThreadCache;
use std::cell::RefCell;
use std::sync::Arc;

/// Whether a heap is open. Whoever holds the lock may rely on it: a heap closes its gate before it
/// goes.
pub(crate) struct Gate {
    open: Mutex<bool, rank::HeapGate>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { open: Mutex::new(true) })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, bool> {
        self.open.lock()
    }
}

struct Entry {
    opener: Opener,
    gate: Arc<Gate>,
    heap: *const Shared,
    cache: ThreadCache,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A child has a copy of the cache; the blocks are the parent's.
        if !self.opener.is_here() {
            return;
        }
        let open = self.gate.lock();
        // A heap that is gone has swept its lease, these blocks with it.
        if *open {
            // SAFETY: a heap closes its gate before it is dropped or moved, and it cannot while the
            // lock is held here.
            unsafe { &*self.heap }.blocks().drain(&mut self.cache);
        }
    }
}

thread_local! {
    static CACHES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Calls `with` with this thread's cache for the heap, which this process opened.
#[inline]
pub(crate) fn with_cache<R>(heap: &Arc<Shared>, with: impl FnOnce(&mut ThreadCache) -> R) -> R {
    CACHES.with_borrow_mut(|caches| {
        if let Some(entry) = caches.first_mut()
            && Arc::ptr_eq(&entry.gate, heap.gate())
        {
            return with(&mut entry.cache);
        }
        let at = match caches.iter().position(|entry| Arc::ptr_eq(&entry.gate, heap.gate())) {
            Some(at) => at,
            None => {
                caches.retain(|entry| entry.opener.is_here() && *entry.gate.lock());
                let gate = Arc::clone(heap.gate());
                let (opener, cache) = (heap.opener(), heap.blocks().cache());
                caches.push(Entry { opener, gate, heap: Arc::as_ptr(heap), cache });
                caches.len() - 1
            }
        };
        // The one used last comes first.
        caches.swap(0, at);
        with(&mut caches[0].cache)
    })
}

/// Frees the block at an address.
#[inline]
pub(crate) fn release(heap: &Arc<Shared>, address: u64) -> Result<()> {
    heap.opener().check()?;
    with_cache(heap, |cache| heap.blocks().release_cached(cache, address)).map_err(|why| misuse("free", address, why))
}

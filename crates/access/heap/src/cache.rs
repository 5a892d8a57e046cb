//! The free blocks that each thread keeps for itself, one cache a heap; a thread that ends gives them back.

use crate::heap::Shared;
use onode_scm::allocator::ThreadCache;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

struct Entry {
    heap: Weak<Shared>,
    cache: ThreadCache,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A heap that is gone has swept its lease, these blocks with it.
        if let Some(heap) = self.heap.upgrade() {
            heap.blocks().drain(&mut self.cache);
        }
    }
}

thread_local! {
    static CACHES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Calls `with` with this thread's cache for the heap.
#[inline]
pub(crate) fn with_cache<R>(heap: &Arc<Shared>, with: impl FnOnce(&mut ThreadCache) -> R) -> R {
    CACHES.with_borrow_mut(|caches| {
        let wanted = Arc::as_ptr(heap);
        if let Some(entry) = caches.first_mut()
            && entry.heap.as_ptr() == wanted
        {
            return with(&mut entry.cache);
        }
        let at = match caches.iter().position(|entry| entry.heap.as_ptr() == wanted) {
            Some(at) => at,
            None => {
                caches.retain(|entry| entry.heap.strong_count() > 0);
                caches.push(Entry { heap: Arc::downgrade(heap), cache: heap.blocks().cache() });
                caches.len() - 1
            }
        };
        // The one used last comes first.
        caches.swap(0, at);
        with(&mut caches[0].cache)
    })
}

//! What tests of the heap share: a place for one.

use onode_heap::Heap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A file in memory, gone at the end.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/onode-heap-test-{}-{number}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    pub fn open(&self) -> Heap {
        Heap::open(&format!("scm:{},size=64M", self.0.display())).expect("the heap opens")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

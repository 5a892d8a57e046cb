//! The memory as one process sees it, which dies at a store of the test's choice: what it stored
//! before stays.

use onode_media::sim::SimPmem;
use onode_media::{Domain, Pmem, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a dying process unwinds with.
pub struct Died;

/// A view of memory that others see, too.
#[derive(Clone)]
pub struct Mortal {
    memory: Arc<SimPmem>,
    /// Stores that still take effect.
    left: Arc<AtomicU64>,
}

impl Mortal {
    pub fn new(memory: &Arc<SimPmem>) -> Self {
        Self { memory: Arc::clone(memory), left: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Lets the process die instead of its store number `stores` from now on.
    pub fn die_after(&self, stores: u64) {
        self.left.store(stores, Ordering::Relaxed);
    }

    /// Whether it has died.
    pub fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Whether the store takes effect; unwinds at the first that does not.
    fn may_store(&self) -> bool {
        match self.left.load(Ordering::Relaxed) {
            u64::MAX => true,
            0 if std::thread::panicking() => false,
            0 => std::panic::resume_unwind(Box::new(Died)),
            left => {
                self.left.store(left - 1, Ordering::Relaxed);
                true
            }
        }
    }
}

impl Pmem for Mortal {
    fn length(&self) -> u64 {
        self.memory.length()
    }

    fn domain(&self) -> Domain {
        self.memory.domain()
    }

    fn load(&self, at: u64) -> u64 {
        self.memory.load(at)
    }

    fn store(&self, at: u64, value: u64) {
        if self.may_store() {
            self.memory.store(at, value);
        }
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> std::result::Result<u64, u64> {
        if self.may_store() { self.memory.compare_exchange(at, current, new) } else { Err(self.memory.load(at)) }
    }

    fn read(&self, at: u64, buffer: &mut [u8]) {
        self.memory.read(at, buffer);
    }

    /// Line by line: a process may die between any two.
    fn write(&self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() && self.may_store() {
            let at = at + done as u64;
            let part = ((64 - at % 64) as usize).min(bytes.len() - done);
            self.memory.write(at, &bytes[done..done + part]);
            done += part;
        }
    }

    fn zero(&self, at: u64, length: u64) {
        if self.may_store() {
            self.memory.zero(at, length);
        }
    }

    fn flush(&self, at: u64, length: u64) {
        self.memory.flush(at, length);
    }

    fn fence(&self) -> Result<()> {
        self.memory.fence()
    }

    fn grow(&self, length: u64) -> Result<()> {
        self.memory.grow(length)
    }
}

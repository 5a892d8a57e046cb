//! A memory for tests: words, and a store after which the process is dead.

use onode_media::{Domain, Pmem, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec::Vec;

/// What a dying process unwinds with.
pub struct Died;

/// Words that survive their processes.
pub struct Memory {
    words: Vec<AtomicU64>,
    /// Stores that still take effect.
    left: AtomicU64,
}

impl Memory {
    pub fn new(bytes: u64) -> Self {
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        Self { words, left: AtomicU64::new(u64::MAX) }
    }

    /// Filled with what nobody wrote.
    pub fn garbage(bytes: u64, prng: &mut onode_base::Prng) -> Self {
        let memory = Self::new(bytes);
        memory.words.iter().for_each(|word| word.store(prng.next_u64(), Ordering::Relaxed));
        memory
    }

    /// Lets the process die instead of its store number `stores` from now on.
    pub fn die_after(&self, stores: u64) {
        self.left.store(stores, Ordering::Relaxed);
    }

    pub fn live(&self) {
        self.die_after(u64::MAX);
    }

    /// Whether the store takes effect; unwinds at the first that does not.
    fn may_store(&self) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if left == u64::MAX {
            return true;
        }
        if left == 0 {
            if !std::thread::panicking() {
                std::panic::resume_unwind(std::boxed::Box::new(Died));
            }
            return false;
        }
        self.left.store(left - 1, Ordering::Relaxed);
        true
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8), "{at} is not aligned");
        &self.words[(at / 8) as usize]
    }
}

impl Pmem for Memory {
    fn length(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    fn domain(&self) -> Domain {
        Domain::Fence
    }

    fn load(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    fn store(&self, at: u64, value: u64) {
        if self.may_store() {
            self.word(at).store(value, Ordering::Release);
        }
    }

    fn compare_exchange(&self, at: u64, current: u64, new: u64) -> core::result::Result<u64, u64> {
        if self.may_store() {
            self.word(at).compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
        } else {
            Err(self.load(at))
        }
    }

    fn read(&self, _: u64, _: &mut [u8]) {
        panic!("the allocator copies nothing");
    }

    fn write(&self, _: u64, _: &[u8]) {
        panic!("the allocator copies nothing");
    }

    fn zero(&self, at: u64, length: u64) {
        (at..at + length).step_by(8).for_each(|at| self.store(at, 0));
    }

    fn flush(&self, _: u64, _: u64) {
        panic!("the allocator flushes nothing");
    }

    fn fence(&self) -> Result<()> {
        panic!("the allocator needs no fence");
    }

    fn grow(&self, _: u64) -> Result<()> {
        panic!("the allocator does not grow its memory");
    }
}

//! Blocks of the SCM device's allocator, in memory that a process can share.

use super::pairs::Blocks;
use onode_media::real::{MappedOptions, MappedPmem};
use onode_media::{Pmem, Result};
use onode_scm::allocator::{Allocator, CHUNK_BYTES_MAX, Process, ThreadCache};

/// Room for a batch of the largest blocks for two threads, several times.
const AREA_BYTES: u64 = 1 << 30;

/// An allocator over memory of this process.
pub struct Own {
    allocator: Allocator<MappedPmem>,
}

/// One thread's share.
pub struct OwnThread<'a> {
    allocator: &'a Allocator<MappedPmem>,
    cache: ThreadCache,
}

impl Own {
    /// A fresh area.
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn new() -> Result<Self> {
        let options = MappedOptions { reserve: AREA_BYTES, ..MappedOptions::default() };
        let pmem = MappedPmem::anonymous(AREA_BYTES, &options)?;
        let mut allocator = Allocator::attach(pmem, 0, AREA_BYTES, CHUNK_BYTES_MAX)?;
        allocator.reset();
        // As a process that shares the memory with others would have it.
        allocator.join(Process { id: u64::from(std::process::id()), started: 0 }, |_| false);
        Ok(Self { allocator })
    }

    /// What one thread uses.
    pub fn thread(&self) -> OwnThread<'_> {
        OwnThread { allocator: &self.allocator, cache: self.allocator.cache() }
    }
}

impl Blocks for OwnThread<'_> {
    type Block = u64;

    fn allocate(&mut self, bytes: u64) -> u64 {
        let at = self.allocator.allocate_cached(&mut self.cache, bytes).expect("the area is larger than all blocks");
        self.allocator.pmem().store(at, 1);
        at
    }

    fn release(&mut self, block: u64) {
        let released = self.allocator.release_cached(&mut self.cache, block);
        assert_eq!(released, Ok(()), "the block at {block} was allocated just now");
    }
}

impl Drop for OwnThread<'_> {
    fn drop(&mut self) {
        self.allocator.drain(&mut self.cache);
    }
}

//! Finds the memory beside the flash of a mounted volume again: where its spec says it is.

use crate::open::flash::beside;
use crate::spec::flash::Beside;
use onode_flash::{FindMemory, MemoryOptions};
use onode_media::Pmem;
use onode_object::ErrorKind;
use std::path::PathBuf;

/// Finds the memory beside the flash of one volume.
pub(crate) struct MemoryFinder {
    beside: Beside,
    path: PathBuf,
    flash_bytes: u64,
}

impl MemoryFinder {
    /// For a volume on a flash of so many bytes, whose memory is at `path`.
    pub(crate) const fn new(beside: Beside, path: PathBuf, flash_bytes: u64) -> Self {
        Self { beside, path, flash_bytes }
    }
}

impl FindMemory for MemoryFinder {
    fn find(&self) -> onode_object::Result<(Box<dyn Pmem>, MemoryOptions)> {
        let memory = beside::memory_to_fill(&self.beside, &self.path, self.flash_bytes);
        let memory = memory.map_err(|error| onode_object::Error::new(ErrorKind::Invalid, error.to_string()))?;
        Ok((memory, self.beside.options()))
    }
}

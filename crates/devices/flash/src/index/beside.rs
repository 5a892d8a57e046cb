//! How a volume takes to the memory beside it, and which way its mount went: the device `flash+scm`
//! of paper 3.

use alloc::boxed::Box;
use alloc::string::String;
use onode_media::Pmem;
use onode_object::Result;

/// How a volume takes to the memory beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Whatever the memory holds, even of another volume, is given up, and it is filled from the
    /// flash.
    pub rebuild: bool,
    /// What a full memory has no room for stays on flash alone, where it is slower to find; else
    /// what needs room is refused.
    pub spill: bool,
    /// Syncs end in the memory instead of a page of flash that is not full. The memory then has
    /// commits that the flash lacks, up to a page of them: without it the volume is an earlier one.
    pub buffer: bool,
    /// Bytes of the memory for that, when it is made; `None` chooses by its size.
    pub log_bytes: Option<u64>,
}

/// Which way a mount went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MountPath {
    /// The memory had everything.
    Memory,
    /// The memory had the last checkpoint, the flash what followed.
    Behind,
    /// The flash alone, for this reason.
    Rebuilt(String),
}

/// Finds the memory of a volume again while that is mounted.
pub trait FindMemory: Send + Sync {
    /// The memory, whatever it holds, and how the volume takes to it.
    ///
    /// # Errors
    /// Those of opening it; `Invalid` for what is no memory.
    fn find(&self) -> Result<(Box<dyn Pmem>, MemoryOptions)>;
}

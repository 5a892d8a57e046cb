//! A block of memory that a program owns, also where it could not become something else.

use crate::error::Error;
use crate::shared::Shared;
use crate::shared::cache::release;
use onode_base::ErrorKind;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory of the heap: freed when it is dropped, unless it became a file.
///
/// Fresh memory holds anything that was there before.
pub struct Block {
    pub(crate) shared: Arc<Shared>,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl Block {
    /// Where it lies, in bytes from the start of the memory: holds in every process that maps it.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Lets only the first `bytes` count; more than it has changes nothing.
    pub fn shorten(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
    }

    /// Where it lies in this process.
    #[must_use]
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.shared.pointer(self.address)
    }

    /// The pointer, for a program that keeps pointers itself; [`Heap::free`](crate::Heap::free)
    /// takes it back.
    #[must_use]
    pub fn into_raw(self) -> NonNull<u8> {
        self.shared.sizes().note(self.address, self.bytes);
        self.leak()
    }

    fn leak(self) -> NonNull<u8> {
        let block = ManuallyDrop::new(self);
        let pointer = block.as_ptr();
        // SAFETY: `block` is never dropped, so the reference is taken out of it once.
        drop(unsafe { std::ptr::read(&raw const block.shared) });
        pointer
    }

    /// Gives up ownership without freeing: the block is whose it was before it was this value.
    pub fn leave(self) {
        let _ = self.leak();
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocator handed out these bytes to this value alone, and the mapping
        // outlives `shared`.
        unsafe { std::slice::from_raw_parts(self.as_ptr().as_ptr(), self.bytes) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr().as_ptr(), self.bytes) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // It came from the allocator, which takes it back.
        let _ = release(&self.shared, self.address);
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("address", &self.address).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Why a block could not become something else. The block is still the caller's:
/// [`BlockError::into_block`] gives it back, and dropping the error frees it.
#[derive(Debug)]
pub struct BlockError {
    block: Block,
    error: Error,
}

impl BlockError {
    pub(crate) const fn new(block: Block, error: Error) -> Self {
        Self { block, error }
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.error.kind
    }

    /// The error without the block.
    #[must_use]
    pub const fn error(&self) -> &Error {
        &self.error
    }

    /// The block, as it was.
    #[must_use]
    pub const fn block(&self) -> &Block {
        &self.block
    }

    /// The block, the caller's again.
    #[must_use]
    pub fn into_block(self) -> Block {
        self.block
    }

    /// Both.
    #[must_use]
    pub fn into_parts(self) -> (Block, Error) {
        (self.block, self.error)
    }
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for BlockError {}

/// Frees the block.
impl From<BlockError> for Error {
    fn from(error: BlockError) -> Self {
        error.error
    }
}

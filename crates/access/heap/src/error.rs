//! What a heap cannot do.

use crate::block::Block;
use onode_base::ErrorKind;
use std::fmt;

/// An error of a heap: a kind that says what the caller can do, and words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// What was asked for and why it cannot be.
    pub detail: String,
}

/// A result of a heap.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    pub(crate) fn of_files(what: &str, error: &onode_fs::Error) -> Self {
        Self::new(error.kind, format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Error {}

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

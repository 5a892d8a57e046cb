//! What a heap cannot do.

use onode_base::ErrorKind;
use onode_scm::allocator::Misuse;
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

/// What is wrong with the address of a block.
pub(crate) fn misuse(verb: &str, address: u64, misuse: Misuse) -> Error {
    let why = match misuse {
        Misuse::OutOfArea => "it does not lie in this heap",
        Misuse::Wild => "no block begins there",
        Misuse::DoubleFree => "the block was freed before",
        Misuse::Published => "the block belongs to a file",
    };
    Error::new(ErrorKind::Invalid, format!("cannot {verb} the memory at {address:#x} of the heap: {why}"))
}

//! The error of the file system: what the caller can do, which file it concerns, and why.
//!
//! The errno comes from [`ErrorKind::errno`] and from nowhere else.

use crate::types::InodeNumber;
use onode_base::ErrorKind;
use std::fmt;

/// What the file system answers when it cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// The file concerned, if it is one.
    pub inode: Option<InodeNumber>,
    /// Why, in words for people; may be empty.
    pub detail: String,
}

/// A result of the file system.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` with a reason.
    #[must_use]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, inode: None, detail: detail.into() }
    }

    /// An error of `kind` about one file.
    #[must_use]
    pub fn of(kind: ErrorKind, inode: InodeNumber, detail: impl Into<String>) -> Self {
        Self { kind, inode: Some(inode), detail: detail.into() }
    }

    /// The Linux errno.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        self.kind.errno()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, inode: None, detail: String::new() }
    }
}

impl From<onode_object::Error> for Error {
    fn from(error: onode_object::Error) -> Self {
        let mut detail = error.detail;
        if let Some(range) = error.range {
            detail = format!("bytes {}..{}: {detail}", range.start, range.end);
        }
        Self { kind: error.kind, inode: error.object.map(|object| InodeNumber(object.0)), detail }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(inode) = self.inode {
            write!(f, ": inode {}", inode.0)?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

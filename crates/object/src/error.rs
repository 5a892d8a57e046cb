//! The error of the object interface.

use crate::id::ObjectId;
use alloc::string::String;
use core::fmt;
use core::ops::Range;
pub use onode_base::ErrorKind;

/// What an object device answers when it cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What the caller can do about it.
    pub kind: ErrorKind,
    /// The object concerned, if it is one.
    pub object: Option<ObjectId>,
    /// The bytes concerned, if it is some of them: for [`ErrorKind::Corrupt`] exactly those lost.
    pub range: Option<Range<u64>>,
    /// Where on the medium and what was expected, in words for people.
    pub detail: String,
}

/// A result of the object interface.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that concerns no single object.
    #[must_use]
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, object: None, range: None, detail: detail.into() }
    }

    /// An error of `kind` about `object`.
    #[must_use]
    pub fn of(kind: ErrorKind, object: ObjectId, detail: impl Into<String>) -> Self {
        Self { kind, object: Some(object), range: None, detail: detail.into() }
    }

    /// The same about `object`.
    #[must_use]
    pub fn about(self, object: ObjectId) -> Self {
        Self { object: Some(object), ..self }
    }

    /// The same about these bytes.
    #[must_use]
    pub fn in_bytes(self, range: Range<u64>) -> Self {
        Self { range: Some(range), ..self }
    }

    /// Bytes `range` of `object` are lost.
    #[must_use]
    pub fn corrupt(object: ObjectId, range: Range<u64>, detail: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Corrupt, object: Some(object), range: Some(range), detail: detail.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(object) = self.object {
            write!(f, ": {object}")?;
        }
        if let Some(range) = &self.range {
            write!(f, ", bytes {}..{}", range.start, range.end)?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl core::error::Error for Error {}

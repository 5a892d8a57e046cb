//! Errors of media and of what lies on them, as errors of the object interface.

use alloc::format;
use alloc::string::String;
use onode_object::{Error, ErrorKind};

/// An error of the medium while doing `what`.
pub fn from_media(what: &str, error: &onode_media::Error) -> Error {
    Error::new(error.error_kind(), format!("{what}: {error}"))
}

/// Something on the medium is not what it must be.
pub fn damaged(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, detail)
}

/// What was asked for cannot be.
pub fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, detail)
}

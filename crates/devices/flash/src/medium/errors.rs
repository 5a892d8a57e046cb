//! From an error of the medium to an error of the object interface.

use alloc::format;
use onode_base::ErrorKind;
use onode_object::Error;

/// An error of the medium while doing `what`.
pub fn from_media(what: &str, error: &onode_media::Error) -> Error {
    Error::new(error.error_kind(), format!("{what}: {error}"))
}

/// Something on the medium is not what it must be.
pub fn damaged(detail: impl Into<alloc::string::String>) -> Error {
    Error::new(ErrorKind::Corrupt, detail)
}

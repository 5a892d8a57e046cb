//! From an error of the medium to an error of the object interface.

use onode_base::ErrorKind;
use onode_object::Error;

/// An error of the medium while doing `what`.
pub(crate) fn from_media(what: &str, error: &onode_media::Error) -> Error {
    Error::new(error.error_kind(), format!("{what}: {error}"))
}

/// Something on the memory is not what it must be.
pub(crate) fn damaged(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, detail)
}

/// The device is full.
pub(crate) fn no_space(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::NoSpace, detail)
}

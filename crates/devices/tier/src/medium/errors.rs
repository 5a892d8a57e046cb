//! Errors of media and of what lies on them, as errors of the object interface.

use alloc::format;
use alloc::string::String;
use core::ops::Range;
use onode_object::{Error, ErrorKind, Result};

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

/// What was given as the fast disk is none of this volume.
pub fn wrong_part(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::WrongPart, detail)
}

/// Something that always holds does not. The change that met it is not made, and no other one after
/// it.
pub fn bug(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::Bug, detail)
}

/// The part of `all` in `range`, which must lie inside of it.
pub fn within<T>(all: &[T], range: Range<usize>) -> Result<&[T]> {
    let length = all.len();
    all.get(range.clone()).ok_or_else(|| bug(format!("{range:?} is not inside of {length}")))
}

/// The same to be changed.
pub fn within_mut<T>(all: &mut [T], range: Range<usize>) -> Result<&mut [T]> {
    let length = all.len();
    all.get_mut(range.clone()).ok_or_else(|| bug(format!("{range:?} is not inside of {length}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_there_is_a_mistake_of_ours() {
        let mut all = [1, 2, 3];
        assert_eq!(within(&all, 1..3).unwrap(), [2, 3]);
        within_mut(&mut all, 0..1).unwrap()[0] = 9;
        assert_eq!(all, [9, 2, 3]);
        for range in [2..4, 4..5] {
            assert_eq!(within(&all, range.clone()).unwrap_err().kind, ErrorKind::Bug);
            assert_eq!(within_mut(&mut all, range).unwrap_err().kind, ErrorKind::Bug);
        }
    }
}

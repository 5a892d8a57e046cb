//! What C hands in: strings, and places for answers.

use crate::error::{Failure, Outcome};
use onode::{Compression, Spec};
use onode_base::ErrorKind;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// Bytes of a name in an answer, with the zero byte that ends it.
const NAME_BYTES: usize = 256;

/// The bytes of a string of C.
///
/// # Safety
/// `text` is null or ends with a zero byte.
pub(crate) unsafe fn text_of<'a>(text: *const c_char) -> Outcome<&'a [u8]> {
    if text.is_null() {
        return Err(Failure::new(ErrorKind::Invalid, "the string is NULL"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A string of C that is UTF-8, as names of snapshots and clones are.
///
/// # Safety
/// As [`text_of`].
pub(crate) unsafe fn words_of<'a>(text: *const c_char) -> Outcome<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { text_of(text) }?;
    std::str::from_utf8(bytes).map_err(|_| {
        let words = format!("`{}` is not UTF-8", String::from_utf8_lossy(bytes));
        Failure::new(ErrorKind::Invalid, words)
    })
}

/// The volume that a string of C names.
///
/// # Safety
/// As [`text_of`].
pub(crate) unsafe fn spec_of(text: *const c_char) -> Outcome<Spec> {
    // SAFETY: the caller's promise.
    Ok(Spec::from_argument(OsStr::from_bytes(unsafe { text_of(text) }?))?)
}

/// How content is to be compressed, as a string of C says; NULL is not at all.
///
/// # Safety
/// As [`text_of`].
pub(crate) unsafe fn compression_of(text: *const c_char) -> Outcome<Compression> {
    if text.is_null() {
        return Ok(Compression::Never);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { words_of(text) }?;
    let unknown = || Failure::new(ErrorKind::Invalid, format!("`{name}` is not none, fast, small or auto"));
    Compression::from_name(name).ok_or_else(unknown)
}

/// Where an answer goes.
///
/// # Safety
/// `place` is null or a place for the answer that nobody else uses.
pub(crate) unsafe fn place_of<'a, T>(place: *mut T) -> Outcome<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { place.as_mut() }.ok_or_else(|| Failure::new(ErrorKind::Invalid, "no place for the answer"))
}

/// Where several answers go: room for `count`.
///
/// # Safety
/// `places` has room for `count` that nobody else uses, or `count` is 0.
pub(crate) unsafe fn places_of<'a, T>(places: *mut T, count: usize) -> Outcome<&'a mut [T]> {
    if count == 0 {
        return Ok(&mut []);
    }
    if places.is_null() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::new(ErrorKind::Invalid, "no place for the answers"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(places, count) })
}

/// Puts a string and the zero byte that ends it into a place, and tells how long it is without that
/// byte; the place stays as it is if it is too small.
pub(crate) fn string_into(place: &mut [c_char], text: &[u8]) -> Outcome<isize> {
    if text.len() >= place.len() {
        let words = format!(
            "the answer has {} bytes with the zero byte, and there is room for {}",
            text.len() + 1,
            place.len()
        );
        return Err(Failure::new(ErrorKind::Range, words));
    }
    place.iter_mut().zip(text.iter().chain(&[0])).for_each(|(to, from)| *to = *from as c_char);
    Ok(text.len() as isize)
}

/// A name as answers have it, ended by a zero byte.
pub(crate) fn name_field(name: &[u8]) -> [c_char; NAME_BYTES] {
    let mut field = [0; NAME_BYTES];
    for (to, from) in field[..NAME_BYTES - 1].iter_mut().zip(name) {
        *to = *from as c_char;
    }
    field
}

//! Errors as bytes: kind, object, range, words.

use super::{put_id, take_bool, take_byte, take_id};
use crate::error::{Error, ErrorKind};
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::varint;

/// Appends an error. The number of a kind is its place in [`ErrorKind::ALL`].
pub fn put(out: &mut Vec<u8>, error: &Error) {
    out.push(error.kind as u8);
    out.push(u8::from(error.object.is_some()));
    if let Some(object) = error.object {
        put_id(out, object);
    }
    out.push(u8::from(error.range.is_some()));
    if let Some(range) = &error.range {
        varint::put(out, range.start);
        varint::put(out, range.end);
    }
    varint::put_bytes(out, error.detail.as_bytes());
}

/// Takes an error off the front of `input`; `None` if it is cut short or not known.
pub fn take(input: &mut &[u8]) -> Option<Error> {
    let kind = *ErrorKind::ALL.get(usize::from(take_byte(input)?))?;
    let object = if take_bool(input)? { Some(take_id(input)?) } else { None };
    let range = if take_bool(input)? { Some(varint::take(input)?..varint::take(input)?) } else { None };
    let detail = String::from(core::str::from_utf8(varint::take_bytes(input)?).ok()?);
    Some(Error { kind, object, range, detail })
}

//! The object interface as bytes, so that host and device need to share nothing but a wire.
//!
//! Equal values have equal bytes and equal bytes have equal values: every number is in its shortest
//! form, every enum value is known, nothing trails. Decoding never allocates more than the input
//! justifies and never panics. `docs/format/wire.md` describes the bytes; devices may use
//! [`mutation`] and [`hints`] for their logs. The optional powers do not cross the wire.

pub mod client;
pub mod error;
pub mod frame;
pub mod hints;
pub mod mutation;
pub mod reply;
pub mod request;
pub mod serve;

pub use client::{RemoteDevice, Transport};
pub use reply::Reply;
pub use request::Request;
pub use serve::serve;

use crate::id::ObjectId;
use alloc::vec::Vec;
use onode_base::varint;

/// Most bytes of content that one reply carries; a longer read is several requests.
pub const MAX_READ_BYTES: usize = 1 << 20;
/// Most attributes, ids or extents that one reply carries.
pub const MAX_ITEMS: usize = 4096;

/// Takes one byte off the front of `input`.
pub(crate) fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}

/// Takes a byte that is 0 or 1.
fn take_bool(input: &mut &[u8]) -> Option<bool> {
    match take_byte(input)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn put_id(out: &mut Vec<u8>, object: ObjectId) {
    varint::put(out, object.0);
}

fn take_id(input: &mut &[u8]) -> Option<ObjectId> {
    varint::take(input).map(ObjectId)
}

fn take_usize(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint::take(input)?).ok()
}

/// Takes a count and that many items of at least `least_bytes` each.
fn take_items<T>(
    input: &mut &[u8],
    least_bytes: usize,
    mut take: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let count = take_usize(input)?;
    if count > input.len() / least_bytes {
        return None;
    }
    let mut items = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        items.push(take(input)?);
    }
    Some(items)
}

#[cfg(test)]
mod tests;

//! The object interface as bytes, so that host and device need to share nothing but a wire.
//!
//! Equal values have equal bytes and equal bytes have equal values: every number is in its shortest
//! form, every enum value is known, nothing trails. Decoding never allocates more than the input
//! justifies and never panics. `docs/format/wire.md` describes the bytes; devices may use
//! [`mutation`] and [`hints`] for their logs.

pub mod hints;
pub mod mutation;

/// Takes one byte off the front of `input`.
pub(crate) fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}

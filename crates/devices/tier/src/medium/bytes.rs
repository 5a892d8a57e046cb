//! Little-endian numbers at the front of bytes, and at their end.

use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_engine::Fault;

/// Takes `count` bytes off the front of `input`; `None` if there are fewer.
pub fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(front)
}

/// Takes an array off the front of `input`.
pub fn take_array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    take(input, N)?.try_into().ok()
}

/// Takes one byte.
pub fn take_u8(input: &mut &[u8]) -> Option<u8> {
    take_array(input).map(u8::from_le_bytes)
}

/// Takes two bytes.
pub fn take_u16(input: &mut &[u8]) -> Option<u16> {
    take_array(input).map(u16::from_le_bytes)
}

/// Takes four bytes.
pub fn take_u32(input: &mut &[u8]) -> Option<u32> {
    take_array(input).map(u32::from_le_bytes)
}

/// Takes eight bytes.
pub fn take_u64(input: &mut &[u8]) -> Option<u64> {
    take_array(input).map(u64::from_le_bytes)
}

/// Appends four bytes.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends two bytes.
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends eight bytes.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// What follows magic and version in a block that ends with its checksum, and the version.
///
/// # Errors
/// Why it is no such block.
pub fn sealed_body(block: &[u8], magic: [u8; 8]) -> core::result::Result<(&[u8], u32), Fault> {
    let (body, sum) = block.split_at_checked(block.len().saturating_sub(4)).ok_or(Fault::Foreign)?;
    let rest = &mut body.strip_prefix(&magic).ok_or(Fault::Foreign)?;
    let version = take_u32(rest).ok_or(Fault::Foreign)?;
    if crc32c(body).to_le_bytes() == sum { Ok((rest, version)) } else { Err(Fault::Damaged) }
}

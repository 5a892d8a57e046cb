//! LEB128 numbers: small values take one byte, in log records and on the wire.

use alloc::vec::Vec;

/// Appends `value` in 1 to 10 bytes.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 { out.push(value as u8) } else { put_long(out, value) }
}

fn put_long(out: &mut Vec<u8>, mut value: u64) {
    let mut bytes = [0; 10];
    let mut length = 0;
    for byte in &mut bytes {
        length += 1;
        *byte = value as u8 | 0x80;
        value >>= 7;
        if value == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    // At once: room is asked for once.
    out.extend_from_slice(&bytes[..length]);
}

/// Takes one number off the front of `input`; `None` if it is cut short, too long for 64 bits or
/// not in its shortest form (so that equal values have equal bytes).
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if i == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * i);
        if byte & 0x80 == 0 {
            if byte == 0 && i > 0 {
                return None;
            }
            *input = &input[i + 1..];
            return Some(value);
        }
    }
    None
}

/// A signed number (in two's complement) as one that is small if it is near zero: 0, -1, 1, -2, ...
pub const fn zigzag(value: u64) -> u64 {
    let signed = value.cast_signed();
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

/// Takes [`zigzag`] back.
pub const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Appends a length and the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes a length and that many bytes off the front of `input`.
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take(input)?).ok()?;
    if length > input.len() {
        return None;
    }
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_near_zero_are_small() {
        for (signed, small) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)] {
            assert_eq!(zigzag(signed.cast_unsigned()), small);
            assert_eq!(unzigzag(small).cast_signed(), signed);
        }
    }

    #[test]
    fn round_trip_and_refusal() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut input = &bytes[..];
            assert_eq!(take(&mut input), Some(value));
            assert!(input.is_empty());
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take(&mut &[0x80, 0x00][..]), None);
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        assert_eq!(take_bytes(&mut &[5, 1, 2][..]), None);
    }
}

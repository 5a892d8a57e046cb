//! LEB128 numbers: small values take one byte, in log records and on the wire.

use alloc::vec::Vec;

/// Appends `value` in 1 to 10 bytes.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 { out.push(value as u8) } else { put_long(out, value) }
}

fn put_long(out: &mut Vec<u8>, value: u64) {
    let length = (70 - (value | 1).leading_zeros() as usize) / 7;
    // Seven bits to each of the first eight bytes: halves, quarters and eighths move apart.
    let mut low = value & 0x00ff_ffff_ffff_ffff;
    low = (low & 0x00ff_ffff_f000_0000) << 4 | low & 0x0fff_ffff;
    low = (low & 0x0fff_c000_0fff_c000) << 2 | low & 0x0000_3fff_0000_3fff;
    low = (low & 0x3f80_3f80_3f80_3f80) << 1 | low & 0x007f_007f_007f_007f;
    let mut bytes = [0; 10];
    bytes[..8].copy_from_slice(&(low | MORE).to_le_bytes());
    (bytes[8], bytes[9]) = ((value >> 56) as u8 | 0x80, (value >> 63) as u8);
    bytes[length - 1] &= 0x7f;
    // All ten, as that is one store or two, and then fewer.
    out.extend_from_slice(&bytes);
    out.truncate(out.len() - bytes.len() + length);
}

/// The bit of each byte that says that more follow.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Takes one number off the front of `input`; `None` if it is cut short, too long for 64 bits or
/// not in its shortest form (so that equal values have equal bytes).
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    if first < 0x80 {
        *input = rest;
        return Some(u64::from(first));
    }
    take_long(input)
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let word = input.first_chunk::<8>().map_or(MORE, |bytes| u64::from_le_bytes(*bytes));
    let ends = !word & MORE;
    if ends == 0 {
        return take_by_byte(input);
    }
    // The lowest of these bits is that of the last byte; what follows it is another number.
    let length = ends.trailing_zeros() as usize / 8 + 1;
    if bytes_of(word, length) >> (8 * (length - 1)) == 0 {
        return None;
    }
    // Eighths, quarters and halves move together.
    let mut low = bytes_of(word, length) & !MORE;
    low = low & 0x007f_007f_007f_007f | (low & 0x7f00_7f00_7f00_7f00) >> 1;
    low = low & 0x0000_3fff_0000_3fff | (low & 0x3fff_0000_3fff_0000) >> 2;
    low = low & 0x0000_0000_0fff_ffff | (low & 0x0fff_ffff_0000_0000) >> 4;
    *input = &input[length..];
    Some(low)
}

/// The lowest bytes of a word, from one to eight.
const fn bytes_of(word: u64, count: usize) -> u64 {
    word & u64::MAX >> (64 - 8 * count)
}

fn take_by_byte(input: &mut &[u8]) -> Option<u64> {
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
    fn numbers_are_groups_of_seven_bits_the_lowest_first() {
        let by_groups = |mut value: u64| {
            let mut bytes = Vec::new();
            while value >= 0x80 {
                bytes.push(value as u8 | 0x80);
                value >>= 7;
            }
            bytes.push(value as u8);
            bytes
        };
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) | 1, u64::MAX >> bit]);
        let mixed = (1..200_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (number % 64));
        for value in edges.chain(mixed) {
            let mut bytes = alloc::vec![7];
            put(&mut bytes, value);
            assert_eq!(bytes.split_off(1), by_groups(value), "{value:#x}");
            assert_eq!(bytes, [7]);
        }
    }

    /// Eight bytes at once say the same as one after the other, whatever follows the number.
    #[test]
    fn long_numbers_are_taken_as_byte_by_byte() {
        let mut prng = crate::Prng::new(9);
        for _ in 0..100_000 {
            let mut bytes = [0; 12];
            prng.fill(&mut bytes);
            let length = prng.below(12) as usize;
            bytes[..length].iter_mut().for_each(|byte| *byte |= 0x80);
            if prng.chance(1, 3) {
                bytes[length] = 0;
            }
            let bytes = &bytes[..prng.below(13) as usize];
            let (mut at_once, mut one_by_one) = (bytes, bytes);
            assert_eq!(take(&mut at_once), take_by_byte(&mut one_by_one), "{bytes:x?}");
            assert_eq!(at_once, one_by_one);
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

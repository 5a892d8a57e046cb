//! Rice coding of little-endian 16-bit words, the parameter in the first byte.
//!
//! A word is its upper bits in unary and `k` bits below; one whose unary part would have eight bits
//! or more is written as it is. If nothing is gained the bytes stand behind [`STORED`].

use onode_codec::bits::{BitReader, BitWriter};

/// In place of a parameter: not coded.
const STORED: u8 = 0x80;
/// So many ones say that the word follows.
const ESCAPE: u32 = 8;

fn words(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks(2).map(|pair| match *pair {
        [low, high] => u16::from_le_bytes([low, high]),
        [low] => u16::from(low),
        _ => 0,
    })
}

const fn word_bits(word: u16, k: u32) -> u32 {
    let high = (word >> k) as u32;
    if high < ESCAPE { high + 1 + k } else { ESCAPE + 16 }
}

/// `bytes`, coded.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let cost = |k: &u32| words(bytes).map(|word| u64::from(word_bits(word, *k))).sum::<u64>();
    let k = (0..16).min_by_key(cost).unwrap_or(0);
    if cost(&k).div_ceil(8) >= bytes.len() as u64 {
        let mut out = vec![STORED];
        out.extend_from_slice(bytes);
        return out;
    }
    let mut out = BitWriter::default();
    out.put(u64::from(k), 8);
    for word in words(bytes) {
        let high = u32::from(word >> k);
        if high < ESCAPE {
            out.put((1 << high) - 1, high + 1);
            out.put(u64::from(word), k);
        } else {
            out.put((1 << ESCAPE) - 1, ESCAPE);
            out.put(u64::from(word), 16);
        }
    }
    out.finish()
}

/// The bytes that [`encode`] wrote.
pub fn decode(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let Some((&k, rest)) = coded.split_first() else { return (length == 0).then(Vec::new) };
    if k == STORED {
        return Some(rest.to_vec());
    }
    let k = u32::from(k);
    // Every two bytes take a bit at least.
    if k >= 16 || length > rest.len() * 16 {
        return None;
    }
    let mut input = BitReader::new(rest);
    let mut out = Vec::with_capacity(length + 1);
    for _ in 0..length.div_ceil(2) {
        let high = input.take_ones(ESCAPE)?;
        let word = if high < ESCAPE { u64::from(high) << k | input.take(k)? } else { input.take(16)? };
        out.extend_from_slice(&u16::try_from(word).ok()?.to_le_bytes());
    }
    if length % 2 == 1 && out.pop() != Some(0) {
        return None;
    }
    Some(out)
}

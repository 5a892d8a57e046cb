//! Bits one after another, the least significant bit of a byte first.

use alloc::vec::Vec;

/// Collects bits.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u128,
    pending_bits: u32,
}

impl BitWriter {
    /// Appends the `bits` lowest bits of `value`; 64 at most.
    pub fn put(&mut self, value: u64, bits: u32) {
        let value = if bits >= 64 { value } else { value & ((1 << bits) - 1) };
        self.pending |= u128::from(value) << self.pending_bits;
        self.pending_bits += bits;
        while self.pending_bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    /// The bytes; the bits that fill up the last one are zero.
    pub fn finish(mut self) -> Vec<u8> {
        if self.pending_bits > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Hands out bits. Behind the end it fails.
#[derive(Clone, Copy, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits handed out.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next 64 bits or fewer, the rest zero.
    fn window(&self) -> u64 {
        let from = self.position / 8;
        let mut word = [0; 16];
        let tail = self.bytes.get(from..).unwrap_or_default();
        let length = tail.len().min(9);
        if let (Some(to), Some(tail)) = (word.get_mut(..length), tail.get(..length)) {
            to.copy_from_slice(tail);
        }
        (u128::from_le_bytes(word) >> (self.position % 8)) as u64
    }

    /// Takes `bits` bits, 64 at most.
    pub fn take(&mut self, bits: u32) -> Option<u64> {
        let window = self.window();
        self.skip(bits as usize)?;
        Some(if bits >= 64 { window } else { window & ((1 << bits) - 1) })
    }

    /// Takes ones up to `limit` of them, and the zero behind them if there are fewer.
    pub fn take_ones(&mut self, limit: u32) -> Option<u32> {
        let ones = (!self.window()).trailing_zeros().min(limit);
        self.skip(if ones < limit { ones as usize + 1 } else { ones as usize })?;
        Some(ones)
    }

    fn skip(&mut self, bits: usize) -> Option<()> {
        let position = self.position.checked_add(bits)?;
        (position <= self.bytes.len() * 8).then_some(())?;
        self.position = position;
        Some(())
    }

    /// Whether nothing but the zeros that fill up the last byte is left.
    pub fn is_finished(&self) -> bool {
        self.position.div_ceil(8) == self.bytes.len() && self.window() == 0
    }
}

/// Signed differences as small numbers: 0, -1, 1, -2, ...
pub const fn zigzag(value: u64) -> u64 {
    let signed = value as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// Takes [`zigzag`] back.
pub const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

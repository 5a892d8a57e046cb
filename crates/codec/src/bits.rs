//! Bits one after another, the least significant bit of a byte first.

use alloc::vec::Vec;

/// Collects bits.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Appends the `bits` lowest bits of `value`; 64 at most.
    #[inline]
    pub fn put(&mut self, value: u64, bits: u32) {
        if bits > 32 {
            self.put(value & u64::from(u32::MAX), 32);
            return self.put(value >> 32, bits.min(64) - 32);
        }
        // Fewer than 32 bits are pending.
        self.pending |= (value & ((1 << bits) - 1)) << self.pending_bits;
        self.pending_bits += bits;
        if self.pending_bits >= 32 {
            self.bytes.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.pending_bits -= 32;
        }
    }

    /// The bytes; the bits that fill up the last one are zero.
    pub fn finish(mut self) -> Vec<u8> {
        let rest = self.pending.to_le_bytes();
        self.bytes.extend_from_slice(rest.get(..self.pending_bits.div_ceil(8) as usize).unwrap_or_default());
        self.bytes
    }
}

/// So many bits a window has in any case.
const WINDOW_BITS: u32 = 57;

/// Hands out bits. Behind the end it fails.
#[derive(Clone, Copy, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits handed out.
    position: usize,
}

impl<'a> BitReader<'a> {
    /// A reader from the first bit on.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next 57 bits at least, those behind the end zero.
    fn window(&self) -> u64 {
        let tail = self.bytes.get(self.position / 8..).unwrap_or_default();
        let word = tail.first_chunk().map_or_else(|| Self::padded(tail), |eight| u64::from_le_bytes(*eight));
        word >> (self.position % 8)
    }

    /// Fewer than eight bytes as a number.
    #[cold]
    fn padded(tail: &[u8]) -> u64 {
        tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Takes `bits` bits, 64 at most.
    #[inline]
    pub fn take(&mut self, bits: u32) -> Option<u64> {
        if bits > WINDOW_BITS {
            let low = self.take(WINDOW_BITS)?;
            let high = self.take(bits.min(64) - WINDOW_BITS)?;
            return Some(high << WINDOW_BITS | low);
        }
        let window = self.window();
        self.skip(bits as usize)?;
        Some(window & ((1 << bits) - 1))
    }

    /// Takes ones up to `limit` of them, 64 at most, and the zero behind them if there are fewer.
    #[inline]
    pub fn take_ones(&mut self, limit: u32) -> Option<u32> {
        let ones = (!self.window()).trailing_zeros().min(limit).min(WINDOW_BITS);
        if ones == WINDOW_BITS && limit > WINDOW_BITS {
            self.skip(WINDOW_BITS as usize)?;
            return Some(WINDOW_BITS + self.take_ones(limit - WINDOW_BITS)?);
        }
        self.skip(if ones < limit { ones as usize + 1 } else { ones as usize })?;
        Some(ones)
    }

    /// Takes ones, fewer than `limit`, a zero, and as many bits as there were ones and `more`
    /// besides, all at once: the ones and the bits. `None`, with nothing taken, if that does not
    /// work in one go.
    #[inline]
    pub fn take_prefixed(&mut self, more: u32, limit: u32) -> Option<(u32, u64)> {
        let window = self.window();
        let ones = (!window).trailing_zeros();
        let bits = ones + more;
        if ones >= limit || ones + 1 + bits > WINDOW_BITS {
            return None;
        }
        self.skip((ones + 1 + bits) as usize)?;
        Some((ones, (window >> (ones + 1)) & ((1 << bits) - 1)))
    }

    #[inline]
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

//! Algebraic signatures of pages, and their parities.

use super::field::{multiply, power, times_alpha, times_alpha_2, times_alpha_3};
use super::row::PARITY_PAGES_MAX;
use core::ops::BitXor;

/// Bytes of a [`Signature`].
pub const SIGNATURE_BYTES: usize = 8;

/// Symbols of a signature.
const SYMBOLS: usize = SIGNATURE_BYTES / 2;

/// Symbols that are added up side by side: two vector registers for each symbol of the signature.
const LANES: usize = 16;

/// Bytes of a symbol for each lane.
const STRIDE: usize = 2 * LANES;

/// The 16th root of alpha: a step over a whole stride is a multiplication by alpha then. It is
/// alpha^4096, as 16 times 4096 is 1 modulo 65535, and generates all elements as alpha does.
const GAMMA: u16 = power(2, 4096);

/// `WEIGHTS[j - 1][b][l]` is gamma^(j l) alpha^b: what bit `b` of lane `l` counts for in symbol
/// `j`.
const WEIGHTS: [[[u16; LANES]; 16]; SYMBOLS - 1] = weights();

const fn weights() -> [[[u16; LANES]; 16]; SYMBOLS - 1] {
    let mut weights = [[[0; LANES]; 16]; SYMBOLS - 1];
    let mut at = 0;
    while at < (SYMBOLS - 1) * 16 * LANES {
        let (j, bit, lane) = (at / (16 * LANES), at / LANES % 16, at % LANES);
        weights[j][bit][lane] = multiply(power(GAMMA, ((j + 1) * lane) as u32), 1 << bit);
        at += 1;
    }
    weights
}

/// The algebraic signature of a page: four symbols `S_j`, `j` in `0..4`, that are the sums over its
/// symbols `d_k` of gamma^(j k) d_k.
///
/// Two pages of up to 65535 symbols (131,070 bytes) that differ in one to four symbols have
/// different signatures for certain, as any four columns of those factors are independent. Pages
/// that differ otherwise, in a random way, have the same one with a probability of 2^-64.
///
/// The signature of a sum (XOR) of pages is the sum of their signatures. Zeros at the end of a page
/// do not count, so a signature says nothing of a page's length, and that of zeros is all zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Signature([u16; SYMBOLS]);

impl Signature {
    /// The signature of a page of any length in bytes; an odd one is as if a zero followed.
    #[must_use]
    pub fn of(page: &[u8]) -> Self {
        Self::of_parts(&[page])
    }

    /// The signature of a page that lies in parts, one behind the other, each with an even number
    /// of bytes; an odd one is as if a zero followed.
    #[must_use]
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let even = |bytes: usize| bytes + bytes % 2;
        let mut sums = Sums::default();
        // From the end to the beginning, so that a symbol's factor is that of its place, however
        // long the page is. A stride that lies in several parts is gathered first.
        let mut gathered = [0; STRIDE];
        let mut begin: usize = parts.iter().map(|part| even(part.len())).sum();
        for part in parts.iter().rev() {
            begin -= even(part.len());
            let mut part = *part;
            let after = (begin + part.len()) % STRIDE;
            if after > 0 {
                let (rest, tail) = part.split_at(part.len() - after.min(part.len()));
                gathered[after - tail.len()..after].copy_from_slice(tail);
                part = rest;
                if after > tail.len() {
                    continue;
                }
                sums.fold(&gathered);
                gathered = [0; STRIDE];
            }
            let (head, strides) = part.as_rchunks();
            for stride in strides.iter().rev() {
                sums.fold(stride);
            }
            gathered[STRIDE - head.len()..].copy_from_slice(head);
        }
        sums.signature()
    }

    /// The signature as it is stored: its symbols one after the other, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIGNATURE_BYTES] {
        let mut bytes = [0; SIGNATURE_BYTES];
        for (raw, symbol) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *raw = symbol.to_le_bytes();
        }
        bytes
    }

    /// The signature that was stored so.
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIGNATURE_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Self([[a, b], [c, d], [e, f], [g, h]].map(u16::from_le_bytes))
    }
}

/// The signature of the sum of two pages.
impl BitXor for Signature {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] ^ other.0[at]))
    }
}

/// For each `j` and lane the sum of the lane's symbols up to now, those of the stride `s` times
/// alpha^(j s).
#[derive(Default)]
struct Sums([[u16; LANES]; SYMBOLS]);

impl Sums {
    /// Horner's step for the stride before those up to now.
    #[inline(always)]
    fn fold(&mut self, stride: &[u8; STRIDE]) {
        let [first, second, third, fourth] = &mut self.0;
        for (lane, raw) in stride.as_chunks().0.iter().enumerate() {
            let symbol = u16::from_le_bytes(*raw);
            first[lane] ^= symbol;
            second[lane] = times_alpha(second[lane]) ^ symbol;
            third[lane] = times_alpha_2(third[lane]) ^ symbol;
            fourth[lane] = times_alpha_3(fourth[lane]) ^ symbol;
        }
    }

    /// The sum over the lanes, each multiplied by gamma^(j l), bit by bit for all lanes at once.
    fn signature(&self) -> Signature {
        let [first, others @ ..] = &self.0;
        let mut symbols = [first.iter().fold(0, |sum, lane| sum ^ lane), 0, 0, 0];
        for ((symbol, lanes), weights) in symbols[1..].iter_mut().zip(others).zip(&WEIGHTS) {
            let mut products = [0; LANES];
            for (bit, weights) in weights.iter().enumerate() {
                for ((product, lane), weight) in products.iter_mut().zip(lanes).zip(weights) {
                    *product ^= (((lane << (15 - bit)) as i16) >> 15) as u16 & weight;
                }
            }
            *symbol = products.iter().fold(0, |sum, product| sum ^ product);
        }
        Signature(symbols)
    }
}

/// The running parities of the signatures of a row's pages, by the steps of
/// [`RowParity`](super::RowParity): what they give is the signature of its parity page.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RowSignature {
    parities: [Signature; PARITY_PAGES_MAX],
    columns: u32,
}

impl RowSignature {
    /// Takes the signature of the next column.
    pub fn push(&mut self, page: Signature) {
        let [first, second, third] = &mut self.parities;
        *first = *first ^ page;
        *second = Signature(second.0.map(times_alpha)) ^ page;
        *third = Signature(third.0.map(times_alpha_2)) ^ page;
        self.columns = self.columns.saturating_add(1);
    }

    /// Takes a column of zeros: one that was never written.
    pub fn push_missing(&mut self) {
        self.push(Signature::default());
    }

    /// How many columns came since the row began.
    #[must_use]
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// What [`Signature::of`] gives for parity page `j`, in `0..PARITY_PAGES_MAX`, of the columns
    /// up to now; all zero for any other.
    #[must_use]
    pub fn parity(&self, j: usize) -> Signature {
        self.parities.get(j).copied().unwrap_or_default()
    }

    /// Begins the next row.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

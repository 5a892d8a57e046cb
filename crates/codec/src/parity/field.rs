//! Arithmetic in GF(2^16), for one symbol and for pages of them.
//!
//! There are no tables of logarithms: those of this field take 256 KiB, which a processor's cache
//! and firmware have better uses for. What has to be quick multiplies whole pages by alpha, which
//! is a shift and a conditional XOR that compilers turn into vector instructions by themselves.

/// A symbol as it lies in a page, little-endian.
pub(super) type Raw = [u8; 2];

/// What x^16 is, modulo the polynomial 0x1100B.
const REDUCED: u16 = 0x100b;

/// How many powers alpha has: it generates all elements but zero.
pub(super) const ORDER: u32 = 65535;

/// The symbols of a page; a byte without a second is left out.
pub(super) fn symbols(bytes: &[u8]) -> &[Raw] {
    bytes.as_chunks().0
}

/// The symbols of a page, to be changed.
pub(super) fn symbols_mut(bytes: &mut [u8]) -> &mut [Raw] {
    bytes.as_chunks_mut().0
}

/// alpha `x`. The sign spread over the symbol says without a branch whether to reduce.
#[inline(always)]
pub(super) const fn times_alpha(x: u16) -> u16 {
    (x << 1) ^ (((x as i16) >> 15) as u16 & REDUCED)
}

/// alpha^2 `x`.
#[inline(always)]
pub(super) const fn times_alpha_2(x: u16) -> u16 {
    times_alpha(times_alpha(x))
}

/// alpha^3 `x`. What three shifts push out is reduced at once: it is too short to overflow again.
#[inline(always)]
pub(super) const fn times_alpha_3(x: u16) -> u16 {
    let out = x >> 13;
    ((x ^ out) << 3) ^ out ^ (out << 1) ^ (out << 12)
}

/// The product of two symbols.
pub(super) const fn multiply(a: u16, b: u16) -> u16 {
    let (mut product, mut bit) = (0, u16::BITS);
    while bit > 0 {
        bit -= 1;
        product = times_alpha(product) ^ (0u16.wrapping_sub((b >> bit) & 1) & a);
    }
    product
}

/// `base` multiplied so many times by itself; 1 for an exponent of 0.
pub(super) const fn power(base: u16, exponent: u32) -> u16 {
    let (mut product, mut square, mut rest) = (1, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            product = multiply(product, square);
        }
        square = multiply(square, square);
        rest >>= 1;
    }
    product
}

/// What multiplied by `x` is 1; 0 for 0, which has no inverse.
pub(super) const fn invert(x: u16) -> u16 {
    power(x, ORDER - 1)
}

/// Adds `by` times the symbols of one page to another, as far as both reach.
pub(super) fn add_multiple(to: &mut [Raw], of: &[Raw], by: u16) {
    if by == 1 {
        for (to, of) in to.iter_mut().zip(of) {
            *to = (u16::from_le_bytes(*to) ^ u16::from_le_bytes(*of)).to_le_bytes();
        }
        return;
    }
    // The bits of the factor as masks, the highest first: the same for all symbols.
    let masks: [u16; 16] = core::array::from_fn(|at| 0u16.wrapping_sub((by >> (15 - at)) & 1));
    for (to, of) in to.iter_mut().zip(of) {
        let of = u16::from_le_bytes(*of);
        let product = masks.iter().fold(0, |product, mask| times_alpha(product) ^ (of & mask));
        *to = (u16::from_le_bytes(*to) ^ product).to_le_bytes();
    }
}

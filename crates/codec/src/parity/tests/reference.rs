//! The definitions, computed as slowly as they read: no running step, no lanes, no vectors. It
//! shares nothing with what it judges.

use alloc::vec::Vec;

/// x^16 + x^12 + x^3 + x + 1.
const POLYNOMIAL: u32 = 0x1_100b;

/// The product without carries, then what is left of it modulo the polynomial.
pub(super) fn product(a: u16, b: u16) -> u16 {
    let mut wide = 0u32;
    for bit in 0..16 {
        if b >> bit & 1 == 1 {
            wide ^= u32::from(a) << bit;
        }
    }
    for bit in (16..31).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= POLYNOMIAL << (bit - 16);
        }
    }
    wide as u16
}

/// alpha^0 to alpha^65534.
pub(super) fn powers() -> Vec<u16> {
    let next = |last: &u16| Some(product(*last, 2));
    core::iter::successors(Some(1), next).take(65535).collect()
}

/// The symbols of a page; a last odd byte has a zero behind it.
pub(super) fn symbols(page: &[u8]) -> Vec<u16> {
    page.chunks(2).map(|raw| u16::from(raw[0]) | u16::from(raw.get(1).copied().unwrap_or(0)) << 8).collect()
}

pub(super) fn bytes(symbols: &[u16]) -> Vec<u8> {
    symbols.iter().flat_map(|symbol| [*symbol as u8, (*symbol >> 8) as u8]).collect()
}

/// Every symbol of a page times `factor`.
pub(super) fn scaled(page: &[u8], factor: u16) -> Vec<u8> {
    bytes(&symbols(page).iter().map(|symbol| product(*symbol, factor)).collect::<Vec<_>>())
}

pub(super) fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Parity page `j`: the sum over the columns `c` of alpha^(j (n - 1 - c)) D_c.
pub(super) fn parity(pages: &[Vec<u8>], j: usize, page_bytes: usize) -> Vec<u8> {
    let powers = powers();
    let mut parity = alloc::vec![0u16; page_bytes / 2];
    for (column, page) in pages.iter().enumerate() {
        let factor = powers[j * (pages.len() - 1 - column) % powers.len()];
        for (sum, symbol) in parity.iter_mut().zip(symbols(page)) {
            *sum ^= product(symbol, factor);
        }
    }
    bytes(&parity)
}

/// The symbols of a signature: for each `j` the sum over the places `k` of gamma^(j k) d_k, where
/// gamma is alpha^4096.
pub(super) fn signature(page: &[u8]) -> [u16; 4] {
    let powers = powers();
    let mut sums = [0; 4];
    for (place, symbol) in symbols(page).into_iter().enumerate() {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum ^= product(symbol, powers[4096 * j * place % powers.len()]);
        }
    }
    sums
}

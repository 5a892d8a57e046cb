//! What holds for the field, the parities and the signatures, each judged by straight sums.

mod field;
mod recover;
mod reference;
mod row;
mod signature;

use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

/// Bytes of pages: the least, odd numbers of strides, flash pages with spare areas, a large one.
const SIZES: [usize; 6] = [2, 30, 512, 2096, 4208, 65536];

/// A page of random bytes.
fn page(random: &mut Prng, bytes: usize) -> Vec<u8> {
    let mut page = vec![0; bytes];
    random.fill(&mut page);
    page
}

/// So many pages of random bytes.
fn pages(random: &mut Prng, count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| page(random, bytes)).collect()
}

/// A page cut in parts at random even places, some parts empty.
fn cut<'a>(random: &mut Prng, page: &'a [u8]) -> Vec<&'a [u8]> {
    let (mut rest, mut parts) = (page, Vec::new());
    for _ in 0..random.below(5) {
        let at = 2 * random.below(rest.len() as u64 / 2 + 1).min(if random.chance(1, 2) { 20 } else { u64::MAX });
        let (part, after) = rest.split_at(at.min(rest.len() as u64) as usize);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

//! The hash of the tables in memory: for numbers that this code hands out or that are keyed hashes already, so nobody
//! outside chooses which of them meet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Keeps neighbours together and puts others far apart.
///
/// Files that are made one after another are often used so, and their entries of a table share lines of the processor's
/// cache then. Numbers without gaps never meet in a table that holds them; with any stride a search looks at two or three
/// groups of places on average, at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

/// The golden ratio of 2^64, odd: what differs lands far apart.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// So many numbers stay together: the table looks at as many places at once.
const NEIGHBOURS: u64 = 16;
/// So many groups of neighbours, one after another, are spread without two of them meeting.
const GROUPS: u64 = 4096;
/// The bits by which the table tells apart what has the same place.
const TAG: u64 = !(u64::MAX >> 7);

/// The product, both halves of it together.
#[inline]
const fn folded(number: u64) -> u64 {
    let product = number as u128 * FACTOR as u128;
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for NumberHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let number = self.0 ^ number;
        let group = number / NEIGHBOURS;
        let place = (group.wrapping_mul(FACTOR) ^ folded(group / GROUPS)).wrapping_mul(NEIGHBOURS);
        self.0 = (place | (number % NEIGHBOURS)) & !TAG | number.wrapping_mul(FACTOR) & TAG;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        let mut hasher = NumberHasher::default();
        hasher.write_u64(number);
        hasher.finish()
    }

    /// How many groups of places a table of as many `places` looks at to insert so many numbers, on average: it tries the first
    /// free one of sixteen, then sixteen others, one, three, six times as far away.
    fn tries(places: u64, count: u32, stride: u64) -> f64 {
        let mut tries = 0;
        let mut is_taken = vec![false; places as usize];
        for number in 0..u64::from(count) {
            let (mut place, mut step) = (hash(5 + number * stride) % places, 0);
            loop {
                tries += 1;
                let free = (place..place + NEIGHBOURS).map(|place| (place % places) as usize).find(|at| !is_taken[*at]);
                if let Some(at) = free {
                    is_taken[at] = true;
                    break;
                }
                step += NEIGHBOURS;
                place += step;
            }
        }
        f64::from(tries) / f64::from(count)
    }

    #[test]
    fn neighbours_stay_together_and_differ_by_their_tags() {
        for number in (0..10_000).map(|number| number * NEIGHBOURS) {
            let places = (0..NEIGHBOURS).map(|next| hash(number + next) % 1024);
            assert!(places.eq((0..NEIGHBOURS).map(|next| hash(number) % 1024 + next)));
            let mut tags: Vec<u64> = (0..NEIGHBOURS).map(|next| hash(number + next) >> 57).collect();
            tags.sort_unstable();
            tags.dedup();
            assert!(tags.len() as u64 > NEIGHBOURS - 4, "{tags:?}");
        }
    }

    #[test]
    fn numbers_of_any_stride_are_found_soon_in_a_full_table() {
        assert!(tries(4096, 3584, 1) < 1.001);
        for stride in (1..=64).chain([89, 100, 128, 256, 1000, 1024, 4096, 15_792, 108_240, 1 << 20, 1 << 32]) {
            for (places, count) in [(4096, 3584), (1 << 16, 40_000)] {
                let tries = tries(places, count, stride);
                assert!(tries < 2.5, "{tries} groups of {places} places for a stride of {stride}");
            }
        }
    }
}

//! How often each file was handed to the kernel and not given back.
//!
//! The kernel decides how many files it remembers, so this is the one thing that grows with them: eight bytes a place in a
//! table that is between a quarter and seven eighths full. All else that is known of a file can be read again.

use crate::state::hash::NumberMap;

const COUNT_BITS: u32 = 16;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const LEAST_PLACES: usize = 64;

/// The golden ratio of 2^64, odd: neighbours land far apart.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The numbers of files with how often they were handed out.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    /// Number and count in one word; nothing is 0. Searched from the number's home on, one after another.
    places: Vec<u64>,
    taken: usize,
    /// What does not fit a word: many uses of one file, and numbers beyond any that a volume gets to.
    large: NumberMap<u64, u64>,
}

impl Lookups {
    fn home(&self, number: u64) -> usize {
        // The table has a power of two of places, at least 64.
        (number.wrapping_mul(FACTOR) >> (64 - self.places.len().trailing_zeros())) as usize
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }

    /// Where a number is, or the free place where it would be. The table has a free place.
    fn find(&self, number: u64) -> usize {
        let mut place = self.home(number);
        while self.places[place] != 0 && self.places[place] >> COUNT_BITS != number {
            place = self.next(place);
        }
        place
    }

    /// How often a file is handed out.
    pub(crate) fn of(&self, number: u64) -> u64 {
        let large = if self.large.is_empty() { None } else { self.large.get(&number) };
        match large {
            Some(count) => *count,
            None if self.places.is_empty() => 0,
            None => self.places[self.find(number)] & COUNT_MAX,
        }
    }

    /// Counts one more use.
    pub(crate) fn add(&mut self, number: u64) {
        self.set(number, self.of(number) + 1);
    }

    /// Takes `count` uses back.
    pub(crate) fn take(&mut self, number: u64, count: u64) {
        match self.of(number) {
            0 => {}
            before => self.set(number, before.saturating_sub(count)),
        }
    }

    fn set(&mut self, number: u64, count: u64) {
        if count > COUNT_MAX || number > u64::MAX >> COUNT_BITS {
            self.remove(number);
            if count > 0 {
                self.large.insert(number, count);
            } else {
                self.large.remove(&number);
            }
            return;
        }
        if !self.large.is_empty() {
            self.large.remove(&number);
        }
        if count == 0 {
            return self.remove(number);
        }
        if (self.taken + 1) * 8 > self.places.len() * 7 {
            self.resize((self.places.len() * 2).max(LEAST_PLACES));
        }
        let place = self.find(number);
        self.taken += usize::from(self.places[place] == 0);
        self.places[place] = number << COUNT_BITS | count;
    }

    fn remove(&mut self, number: u64) {
        if self.places.is_empty() || number > u64::MAX >> COUNT_BITS {
            return;
        }
        let mut hole = self.find(number);
        if self.places[hole] == 0 {
            return;
        }
        // What follows moves up, so that no search ends too early.
        let mut place = hole;
        loop {
            self.places[hole] = 0;
            loop {
                place = self.next(place);
                let word = self.places[place];
                if word == 0 {
                    self.taken -= 1;
                    if self.places.len() > LEAST_PLACES && self.taken * 4 < self.places.len() {
                        self.resize(self.places.len() / 2);
                    }
                    return;
                }
                let distance = |from: usize| place.wrapping_sub(from) & (self.places.len() - 1);
                if distance(self.home(word >> COUNT_BITS)) >= distance(hole) {
                    self.places[hole] = word;
                    hole = place;
                    break;
                }
            }
        }
    }

    fn resize(&mut self, places: usize) {
        let before = std::mem::replace(&mut self.places, vec![0; places]);
        for word in before.into_iter().filter(|word| *word != 0) {
            let place = self.find(word >> COUNT_BITS);
            self.places[place] = word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn counts_are_those_of_a_map() {
        let (mut lookups, mut model) = (Lookups::default(), HashMap::<u64, u64>::new());
        let mut random = 1_u64;
        for step in 0..200_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few numbers at first and at the end, so that the table grows and shrinks.
            let range = if step < 100_000 { 20_000 } else { 50 };
            let number = match random >> 60 {
                0 => (1 << 48) + (random >> 40) % 50,
                _ => (random >> 33) % range,
            };
            if random >> 20 & 1 == 0 {
                lookups.add(number);
                *model.entry(number).or_default() += 1;
            } else {
                let count = random >> 24 & 3;
                lookups.take(number, count);
                if let Some(known) = model.get_mut(&number) {
                    *known = known.saturating_sub(count);
                }
            }
            assert_eq!(lookups.of(number), model.get(&number).copied().unwrap_or(0), "step {step}");
        }
        for (number, count) in &model {
            assert_eq!(lookups.of(*number), *count);
            lookups.take(*number, u64::MAX);
        }
        assert_eq!((lookups.taken, lookups.places.len(), lookups.large.len()), (0, LEAST_PLACES, 0));
    }

    #[test]
    fn a_file_used_very_often_is_counted() {
        let mut lookups = Lookups::default();
        (0..70_000).for_each(|_| lookups.add(7));
        assert_eq!(lookups.of(7), 70_000);
        lookups.take(7, 60_000);
        assert_eq!((lookups.of(7), lookups.large.len()), (10_000, 0));
        lookups.take(7, 10_000);
        assert_eq!((lookups.of(7), lookups.taken), (0, 0));
    }

    #[test]
    fn a_million_files_take_sixteen_bytes_each_at_most() {
        let mut lookups = Lookups::default();
        (1..=1_000_000).for_each(|number| lookups.add(number));
        assert!(lookups.places.len() * 8 <= 17 << 20 && lookups.large.is_empty());
        assert!((1..=1_000_000).all(|number| lookups.of(number) == 1));
    }
}

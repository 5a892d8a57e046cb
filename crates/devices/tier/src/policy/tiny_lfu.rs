//! Estimated frequency: what comes stays only if it was asked for more often than what would have
//! to go.
//!
//! A small window takes everything new, so that a burst of requests to one key is served. What
//! leaves the window competes with the coldest of the rest, which is divided in what was used since
//! it came and what was not. Frequencies are counted in a sketch of few bits a key and halved from
//! time to time, so that the past is forgotten.

use super::Policy;
use super::lists::Lists;
use alloc::vec::Vec;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

const ROWS: usize = 4;
const MOST_COUNT: u8 = 15;
/// How large a key is at most in the mean, as far as counts go: 32 KiB.
const USUAL_SIZE: u64 = 8;

/// Counts of keys, none too low, few too high (a count-min sketch).
struct Sketch {
    counts: Vec<u8>,
    /// Counts of a row, a power of two.
    width: usize,
    additions: u64,
}

impl Sketch {
    fn new() -> Self {
        let width = 1 << 10;
        Self { counts: alloc::vec![0; width * ROWS], width, additions: 0 }
    }

    fn places(&self, key: u64) -> [usize; ROWS] {
        let mut word = key;
        core::array::from_fn(|row| {
            // The finalizer of splitmix64, once a row.
            word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = word;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            row * self.width + (z as usize & (self.width - 1))
        })
    }

    fn count(&self, key: u64) -> u8 {
        self.places(key).into_iter().filter_map(|place| self.counts.get(place)).min().copied().unwrap_or(0)
    }

    /// Counts a request; `entries` is how many keys there are to tell apart. After ten for each of
    /// them, or of `usual`, counts are halved.
    fn add(&mut self, key: u64, entries: usize, usual: u64) {
        self.make_wide_for(entries);
        let least = self.count(key);
        for place in self.places(key) {
            if let Some(count) = self.counts.get_mut(place)
                && *count == least
            {
                *count = (*count + 1).min(MOST_COUNT);
            }
        }
        self.additions += 1;
        if self.additions > 10 * (entries as u64).max(usual).max(64) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.additions /= 2;
        }
    }

    /// Makes room to tell so many keys apart.
    fn make_wide_for(&mut self, entries: usize) {
        if entries * 2 > self.width {
            self.widen((entries * 4).next_power_of_two());
        }
    }

    /// Counts at least `least` requests of a key that were made before.
    fn raise(&mut self, key: u64, least: u8) {
        for place in self.places(key) {
            if let Some(count) = self.counts.get_mut(place) {
                *count = (*count).max(least.min(MOST_COUNT));
            }
        }
    }

    /// Gives each row `width` counts. A key's place in a row is a rest by its width, so each count
    /// goes to all the places that its keys may have now.
    fn widen(&mut self, width: usize) {
        let rows = self.counts.chunks_exact(self.width);
        self.counts = rows.flat_map(|row| row.iter().copied().cycle().take(width)).collect();
        self.width = width;
    }
}

pub(super) struct TinyLfu {
    lists: Lists<3>,
    sketch: Sketch,
    capacity: u64,
}

impl TinyLfu {
    pub(super) fn new(capacity: u64) -> Self {
        Self { lists: Lists::default(), sketch: Sketch::new(), capacity }
    }

    /// `key` was asked for. While few large pieces fill what there is, they must not make small
    /// ones be forgotten that come in their place.
    fn asked(&mut self, key: u64) {
        self.sketch.add(key, self.lists.count(), self.capacity / USUAL_SIZE);
    }

    fn window_is_full(&self) -> bool {
        self.lists.size(WINDOW) > self.capacity / 100
    }

    /// The coldest that is not in the window.
    fn coldest(&self) -> Option<u64> {
        self.lists.front(PROBATION).or_else(|| self.lists.front(PROTECTED))
    }
}

impl Policy for TinyLfu {
    fn contains(&self, key: u64) -> bool {
        self.lists.get(key).is_some()
    }

    fn used(&self) -> u64 {
        self.lists.size_of_first(3)
    }

    fn hit(&mut self, key: u64, _now: u64) {
        self.asked(key);
        match self.lists.get(key).map(|entry| entry.queue) {
            Some(WINDOW) => self.lists.move_to(WINDOW, key),
            Some(_) => {
                self.lists.move_to(PROTECTED, key);
                while self.lists.size(PROTECTED) > self.capacity / 10 * 9
                    && let Some(oldest) = self.lists.front(PROTECTED)
                {
                    self.lists.move_to(PROBATION, oldest);
                }
            }
            None => {}
        }
    }

    fn missed(&mut self, key: u64, size: u64, _now: u64) -> bool {
        self.asked(key);
        self.used() + size <= self.capacity
            || self.coldest().is_none_or(|coldest| self.sketch.count(key) > self.sketch.count(coldest))
    }

    fn insert(&mut self, key: u64, size: u64, _now: u64) {
        self.lists.push(WINDOW, key, size, 0, 0);
        // While there is room nothing has to compete.
        while self.window_is_full()
            && self.used() <= self.capacity
            && let Some(oldest) = self.lists.front(WINDOW)
        {
            self.lists.move_to(PROBATION, oldest);
        }
    }

    fn victim(&mut self, _now: u64) -> Option<u64> {
        let newest = self.lists.front(WINDOW);
        let coldest = self.coldest();
        let goes = match (newest, coldest) {
            (Some(comes), Some(goes)) if self.window_is_full() => {
                if self.sketch.count(comes) > self.sketch.count(goes) {
                    self.lists.move_to(PROBATION, comes);
                    goes
                } else {
                    comes
                }
            }
            (newest, coldest) => coldest.or(newest)?,
        };
        self.lists.take(goes);
        Some(goes)
    }

    fn remove(&mut self, key: u64) {
        self.lists.take(key);
    }

    /// Asked for more than once of late, and more often than what goes first: in which list it
    /// waits is chance.
    fn is_hot(&self, key: u64) -> bool {
        let coldest = self.coldest().map_or(0, |coldest| self.sketch.count(coldest));
        self.contains(key) && self.sketch.count(key) > coldest.max(1)
    }

    fn heat(&self, key: u64) -> u8 {
        self.sketch.count(key)
    }

    fn least_heat(&self) -> u8 {
        self.coldest().or_else(|| self.lists.front(WINDOW)).map_or(0, |key| self.sketch.count(key))
    }

    fn warm(&mut self, key: u64, heat: u8) {
        self.sketch.make_wide_for(self.lists.count() + 1);
        self.sketch.raise(key, heat);
    }

    fn insert_warm(&mut self, key: u64, size: u64, heat: u8) {
        self.warm(key, heat);
        self.insert(key, size, 0);
        if heat > 1 && self.lists.size(PROTECTED) + size <= self.capacity / 10 * 9 {
            self.lists.move_to(PROTECTED, key);
        }
    }
}

//! Streams of requests from a seed, to compare policies with.

use onode_base::Prng;

/// What is asked for in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Few keys often, many rarely: the n-th key in proportion to 1/n.
    Zipf,
    /// Keys that are asked for again and again, between scans over keys that are not.
    ScanAndHot,
    /// The same keys in the same order, more than fit.
    Loop,
    /// A hot set that moves on.
    Moving,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Zipf, Self::ScanAndHot, Self::Loop, Self::Moving];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zipf => "zipf",
            Self::ScanAndHot => "scan + hot",
            Self::Loop => "loop",
            Self::Moving => "moving",
        }
    }

    /// The first `requests` keys for a cache that holds about `entries`.
    #[must_use]
    pub fn keys(self, entries: u64, requests: usize, seed: u64) -> Vec<u64> {
        let mut prng = Prng::new(seed);
        let entries = entries.max(4);
        match self {
            Self::Zipf => zipf(entries * 10, requests, &mut prng),
            Self::ScanAndHot => scan_and_hot(entries, requests, &mut prng),
            Self::Loop => (0..requests as u64).map(|i| i % (entries * 3 / 2)).collect(),
            Self::Moving => moving(entries, requests, &mut prng),
        }
    }
}

fn zipf(keys: u64, requests: usize, prng: &mut Prng) -> Vec<u64> {
    let mut sum = 0;
    let upto: Vec<u64> = (1..=keys)
        .map(|rank| {
            sum += (1 << 40) / rank;
            sum
        })
        .collect();
    (0..requests)
        .map(|_| {
            let at = prng.below(sum);
            upto.partition_point(|upto| *upto <= at) as u64
        })
        .collect()
}

/// Rounds of requests to hot keys, which fill four fifths of the cache, and a scan of ten times the
/// cache over keys that never come again: a backup of all of a big disk that is ten times the fast
/// one. During the scan one request of ten goes to a hot key all the same.
fn scan_and_hot(entries: u64, requests: usize, prng: &mut Prng) -> Vec<u64> {
    let hot = entries * 4 / 5;
    let mut next_cold = 1 << 40;
    let mut keys = Vec::with_capacity(requests);
    while keys.len() < requests {
        for _ in 0..entries * 4 {
            keys.push(prng.below(hot));
        }
        for i in 0..entries * 10 {
            if i % 10 == 0 {
                keys.push(prng.below(hot));
            } else {
                keys.push(next_cold);
                next_cold += 1;
            }
        }
    }
    keys.truncate(requests);
    keys
}

/// Nine requests of ten to a window of half the cache's entries, which moves by a fiftieth every
/// two times as many requests.
fn moving(entries: u64, requests: usize, prng: &mut Prng) -> Vec<u64> {
    let window = entries / 2;
    let step = (window / 50).max(1);
    (0..requests as u64)
        .map(|i| {
            let from = i / (window * 2).max(1) * step;
            if prng.chance(9, 10) { from + prng.below(window) } else { (1 << 40) + prng.below(entries * 10) }
        })
        .collect()
}

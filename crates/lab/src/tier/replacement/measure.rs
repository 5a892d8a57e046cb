//! Hit ratios of the policies on streams of requests.

use super::PolicyKind;
use super::streams::Stream;

/// Blocks of the cache that is measured.
pub const CAPACITY: u64 = 8192;

/// Requests of each stream.
pub const REQUESTS: usize = 100_000;

/// What came of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Requests.
    pub requests: u64,
    /// Those of them that found what they asked for.
    pub hits: u64,
}

impl Hits {
    /// Hits of 10,000 requests.
    #[must_use]
    pub fn per_ten_thousand(self) -> u64 {
        (self.hits * 10_000).checked_div(self.requests).unwrap_or(0)
    }
}

/// The size of the content of `key`: 1 to 16 blocks, and always the same.
fn size_of(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 | 1
}

/// Plays `requests` of `stream` from `seed` through a policy that keeps `capacity` blocks.
#[must_use]
pub fn play(kind: PolicyKind, stream: Stream, capacity: u64, requests: usize, seed: u64) -> Hits {
    let mut policy = kind.build(capacity);
    let mut hits = Hits::default();
    // Sizes are 8 blocks in the mean.
    for (now, key) in (0..).zip(stream.keys(capacity / 8, requests, seed)) {
        hits.requests += 1;
        if policy.contains(key) {
            hits.hits += 1;
            policy.hit(key, now);
        } else if policy.missed(key, size_of(key), now) {
            policy.insert(key, size_of(key), now);
            while policy.used() > capacity && policy.victim(now).is_some() {}
        }
    }
    hits
}

/// The hit ratio of a policy on a stream, the same on every machine: what the reports show.
#[must_use]
pub fn measure(kind: PolicyKind, stream: Stream) -> Hits {
    play(kind, stream, CAPACITY, REQUESTS, 1)
}

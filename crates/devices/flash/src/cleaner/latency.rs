//! How long commits waited for the cleaner: a histogram of fixed size.
//!
//! The device has no clock. The medium tells how much virtual time its operations took; one that
//! does not count gives zeros.

/// Steps for each doubling of the time.
const STEPS: u32 = 8;
/// Enough for 2^40 microseconds.
const BUCKETS: usize = 40 * STEPS as usize;

/// Times in microseconds, counted in steps of an eighth of a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyHistogram {
    counts: [u32; BUCKETS],
    longest: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], longest: 0 }
    }
}

/// The least time of a bucket: each microsecond has one below twice the steps.
const fn least(bucket: usize) -> u64 {
    let (doublings, step) = (bucket as u32 / STEPS, bucket as u64 % STEPS as u64);
    if doublings < 2 { bucket as u64 } else { (STEPS as u64 + step) << (doublings - 1) }
}

const fn bucket(microseconds: u64) -> usize {
    if microseconds < 2 * STEPS as u64 {
        return microseconds as usize;
    }
    let doublings = microseconds.ilog2() - STEPS.ilog2();
    let bucket = (doublings * STEPS) as usize + (microseconds >> doublings) as usize;
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

impl LatencyHistogram {
    /// Counts one commit that waited so long.
    pub fn count(&mut self, nanoseconds: u64) {
        let microseconds = nanoseconds / 1000;
        self.longest = self.longest.max(microseconds);
        let count = &mut self.counts[bucket(microseconds)];
        *count = count.saturating_add(1);
    }

    /// The time that at least `per_thousand` of 1,000 commits did not exceed, to an eighth; the
    /// longest for 1,000.
    #[must_use]
    pub fn percentile(&self, per_thousand: u64) -> u64 {
        let all: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let wanted = (all * per_thousand).div_ceil(1000);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if per_thousand < 1000 && seen >= wanted && seen > 0 {
                return least(bucket).min(self.longest);
            }
        }
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_and_every_time_has_one() {
        assert!((1..BUCKETS).all(|bucket| least(bucket - 1) < least(bucket)));
        for time in [0, 1, 7, 8, 23, 24, 25, 1000, 27_500, 1 << 30] {
            let found = least(bucket(time));
            assert!(found <= time && time - found <= time / 8, "{time} counts as {found}");
        }
    }

    #[test]
    fn percentiles_are_near_and_the_longest_is_exact() {
        let mut stalls = LatencyHistogram::default();
        assert_eq!(stalls.percentile(990), 0);
        for time in 1..=1000u64 {
            stalls.count(time * 1000);
        }
        assert!((440..=500).contains(&stalls.percentile(500)), "{}", stalls.percentile(500));
        assert!((870..=990).contains(&stalls.percentile(990)), "{}", stalls.percentile(990));
        assert_eq!(stalls.percentile(1000), 1000);
    }
}

//! How long single operations took, in virtual time.

use crate::report::Latency;

/// Collects latencies and gives their percentiles.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    pub(crate) fn add(&mut self, nanoseconds: u64) {
        self.0.push(nanoseconds);
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The percentiles by the nearest-rank method; all zero if nothing was collected.
    pub(crate) fn percentiles(mut self) -> Latency {
        self.0.sort_unstable();
        let rank = |share_in_1000: usize| {
            let rank = (self.0.len() * share_in_1000).div_ceil(1000).saturating_sub(1);
            self.0.get(rank).copied().unwrap_or(0) / 1000
        };
        Latency { p50: rank(500), p99: rank(990), p999: rank(999), max: rank(1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut all = Latencies::default();
        for microseconds in (1..=1000).rev() {
            all.add(microseconds * 1000);
        }
        assert_eq!(all.percentiles(), Latency { p50: 500, p99: 990, p999: 999, max: 1000 });
        assert_eq!(Latencies::default().percentiles(), Latency { p50: 0, p99: 0, p999: 0, max: 0 });
    }
}

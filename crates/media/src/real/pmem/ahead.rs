//! How far the kernel is asked to map pages before they are touched.
//!
//! A page fault for each page of new memory costs several times what a page costs in a request for
//! many. To map everything when a memory is opened would cost a program that uses a few pages more
//! than all that it does there (8 ms for 32 MiB, measured). So as much is mapped ahead as was used
//! before, within bounds.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes mapped ahead at first.
const FIRST_BYTES: u64 = 64 << 10;
/// Bytes mapped at once at most, so that nobody waits for long: some 200 us.
const MOST_BYTES: u64 = 1 << 20;

/// What was mapped ahead in this process.
pub(super) struct Ahead {
    /// Nothing below is asked for again.
    until: AtomicU64,
    step: AtomicU64,
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Self { until: AtomicU64::new(0), step: AtomicU64::new(FIRST_BYTES) }
    }

    /// What to map now that these bytes are about to be used; it may reach beyond the memory.
    #[inline]
    pub(super) fn of(&self, at: u64, length: u64) -> Option<Range<u64>> {
        let (until, end) = (self.until.load(Ordering::Relaxed), at.saturating_add(length));
        if end <= until { None } else { self.advance(until.max(at), end) }
    }

    #[cold]
    fn advance(&self, start: u64, end: u64) -> Option<Range<u64>> {
        let step = self.step.load(Ordering::Relaxed);
        self.step.store((2 * step).min(MOST_BYTES), Ordering::Relaxed);
        let to = start.saturating_add((end - start).clamp(step, MOST_BYTES));
        // The rest of something large is left to whoever touches it: that may be nobody.
        self.until.fetch_max(to.max(end), Ordering::Relaxed);
        Some(start..to)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, FIRST_BYTES, MOST_BYTES};

    #[test]
    fn as_much_is_mapped_ahead_as_was_used_and_nothing_twice() {
        let ahead = Ahead::new();
        assert_eq!(ahead.of(1000, 10), Some(1000..1000 + FIRST_BYTES));
        assert_eq!(ahead.of(1000 + FIRST_BYTES - 10, 10), None);
        assert_eq!(ahead.of(0, 10), None, "nobody goes back for a few pages");
        let next = 1000 + FIRST_BYTES;
        assert_eq!(ahead.of(next - 10, 20), Some(next..next + 2 * FIRST_BYTES));
        let mut at = 1 << 30;
        for _ in 0..10 {
            let range = ahead.of(at, 8).expect("it is new");
            at = range.end;
        }
        assert_eq!(ahead.of(at, 8), Some(at..at + MOST_BYTES));
        // Of something large the beginning, and what lies behind it is new again.
        let large = at + MOST_BYTES;
        assert_eq!(ahead.of(large, 1 << 30), Some(large..large + MOST_BYTES));
        assert_eq!(ahead.of(large + 2 * MOST_BYTES, 8), None);
        let behind = large + (1 << 30);
        assert_eq!(ahead.of(behind, 8), Some(behind..behind + MOST_BYTES));
        assert_eq!(ahead.of(u64::MAX - 8, 100), Some(u64::MAX - 8..u64::MAX));
    }
}

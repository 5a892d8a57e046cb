//! Which granules of the memory are in use. Nothing of it is on the memory: a mount learns it from
//! what lies there.

use super::format::{GRANULE_BYTES, HEAP_BEGIN, Span};
use alloc::vec;
use alloc::vec::Vec;

/// The granules behind the anchors.
pub struct Heap {
    /// A bit for each.
    used: Vec<u64>,
    count: usize,
    free: usize,
    /// Granules in front that are not for buckets.
    low: usize,
    /// From here on all are in use.
    top: usize,
}

const fn granules(bytes: u32) -> usize {
    (bytes as u64).div_ceil(GRANULE_BYTES) as usize
}

/// Bytes of the granules that `bytes` take.
pub const fn granule_bytes(bytes: u32) -> u64 {
    granules(bytes) as u64 * GRANULE_BYTES
}

impl Heap {
    /// That of a memory of `length` bytes, all of it free.
    pub fn new(length: u64) -> Self {
        let count = (length.saturating_sub(HEAP_BEGIN) / GRANULE_BYTES) as usize;
        Self { used: vec![0; count.div_ceil(64)], count, free: count, low: 0, top: count }
    }

    /// Granules in all.
    pub const fn granules(&self) -> u32 {
        self.count as u32
    }

    /// Bytes in all.
    pub const fn capacity_bytes(&self) -> u64 {
        self.count as u64 * GRANULE_BYTES
    }

    /// Bytes that are free.
    pub const fn free_bytes(&self) -> u64 {
        self.free as u64 * GRANULE_BYTES
    }

    /// Memory it takes.
    pub const fn memory_bytes(&self) -> usize {
        8 * self.used.len()
    }

    fn has(&self, index: usize) -> bool {
        self.used.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Keeps the first `bytes` for [`take_low`](Self::take_low), but no more than half of all.
    pub fn reserve(&mut self, bytes: u64) {
        let wanted = usize::try_from(bytes / GRANULE_BYTES).unwrap_or(usize::MAX);
        self.low = wanted.min(self.count / 2);
    }

    /// Bytes that are free of those kept for [`take_low`](Self::take_low), and how many are kept.
    pub fn free_low_bytes(&self) -> (u64, u64) {
        let free = (0..self.low).filter(|index| !self.has(*index)).count();
        (free as u64 * GRANULE_BYTES, self.low as u64 * GRANULE_BYTES)
    }

    /// Whether a place begins in what is kept for [`take_low`](Self::take_low).
    pub const fn is_low(&self, span: Span) -> bool {
        (span.granule as usize) < self.low
    }

    /// Takes a place of `bytes` for a bucket, as far back as there is one; `None` if no run of
    /// granules is long enough.
    pub fn take_high(&mut self, bytes: u32) -> Option<Span> {
        let count = granules(bytes);
        let (mut run, mut highest) = (0, None);
        let mut above = self.top;
        while above > self.low {
            let index = above - 1;
            // The granules of a word up to this one, itself first; as many of them as are alike at
            // once.
            let word = self.used.get(index / 64)? << (63 - index % 64);
            let most = (index % 64 + 1).min(above - self.low);
            if word >> 63 == 1 {
                (run, above) = (0, above - (word.leading_ones() as usize).min(most));
                continue;
            }
            let free = (word.leading_zeros() as usize).min(most);
            highest = highest.or(Some(above));
            if run + free >= count {
                self.top = highest.unwrap_or(self.top);
                return Some(self.taken(above + run - count, bytes));
            }
            (run, above) = (run + free, above - free);
        }
        None
    }

    /// Takes a place for what no fold can do without, as far in front as there is one.
    pub fn take_low(&mut self, bytes: u32) -> Option<Span> {
        let count = granules(bytes);
        let mut run = 0;
        for index in 0..self.count {
            run = if self.has(index) { 0 } else { run + 1 };
            if run == count {
                return Some(self.taken(index + 1 - count, bytes));
            }
        }
        None
    }

    fn taken(&mut self, granule: usize, bytes: u32) -> Span {
        let span = Span { granule: granule as u32, bytes };
        self.mark(span, true);
        span
    }

    /// Marks a place; false if it does not lie in the memory or overlaps another.
    pub fn enter(&mut self, span: Span) -> bool {
        let mut range = span.granule as usize..(span.granule as usize).saturating_add(granules(span.bytes));
        let fits = range.end <= self.count && !range.any(|index| self.has(index));
        if fits {
            self.mark(span, true);
        }
        fits
    }

    /// Whether a granule is in use.
    pub fn is_used(&self, granule: u32) -> bool {
        self.has(granule as usize)
    }

    /// Gives a place back.
    pub fn give(&mut self, span: Span) {
        self.mark(span, false);
        self.top = self.top.max(span.granule as usize + granules(span.bytes)).min(self.count);
    }

    fn mark(&mut self, span: Span, used: bool) {
        let from = span.granule as usize;
        for index in from..(from + granules(span.bytes)).min(self.count) {
            match (self.has(index), used) {
                (false, true) => self.free -= 1,
                (true, false) => self.free += 1,
                _ => continue,
            }
            if let Some(word) = self.used.get_mut(index / 64) {
                *word ^= 1 << (index % 64);
            }
        }
    }
}

#[cfg(test)]
mod tests;

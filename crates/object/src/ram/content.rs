//! The sparse bytes of one object: chunks of 4 KiB by their number; a missing chunk is a hole.
//!
//! Bytes of a chunk past the object's size are always zero, so growing never shows old bytes.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: u64 = 4096;

type Chunk = [u8; CHUNK_BYTES as usize];

/// A sparse array of bytes with a size. Clones share the chunks until one of them changes.
#[derive(Clone, Default)]
pub(super) struct SparseContent {
    size: u64,
    chunks: BTreeMap<u64, Arc<Chunk>>,
}

/// The part of chunk `number` that `start..end` covers, as positions within the chunk.
fn part(number: u64, start: u64, end: u64) -> core::ops::Range<usize> {
    let first = number * CHUNK_BYTES;
    let from = start.max(first) - first;
    let to = end.min(first + CHUNK_BYTES) - first;
    from as usize..to as usize
}

impl SparseContent {
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn allocated_bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK_BYTES
    }

    /// How many bytes a write of `length` at `offset` would allocate.
    pub(super) fn growth_bytes(&self, offset: u64, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let (first, last) = (offset / CHUNK_BYTES, (offset + length - 1) / CHUNK_BYTES);
        let present = self.chunks.range(first..=last).count() as u64;
        (last - first + 1 - present) * CHUNK_BYTES
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let count = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..count];
        buffer.fill(0);
        if count == 0 {
            return 0;
        }
        let end = offset + count as u64;
        for (&number, chunk) in self.chunks.range(offset / CHUNK_BYTES..=(end - 1) / CHUNK_BYTES) {
            let part = part(number, offset, end);
            let at = (number * CHUNK_BYTES + part.start as u64 - offset) as usize;
            buffer[at..at + part.len()].copy_from_slice(&chunk[part]);
        }
        count
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = offset + data.len() as u64;
        for number in offset / CHUNK_BYTES..=(end - 1) / CHUNK_BYTES {
            let part = part(number, offset, end);
            let at = (number * CHUNK_BYTES + part.start as u64 - offset) as usize;
            let chunk = self.chunks.entry(number).or_insert_with(|| Arc::new([0; CHUNK_BYTES as usize]));
            let length = part.len();
            Arc::make_mut(chunk)[part].copy_from_slice(&data[at..at + length]);
        }
        self.size = self.size.max(end);
    }

    pub(super) fn truncate(&mut self, size: u64) {
        if size < self.size {
            self.punch(size, u64::MAX);
        }
        self.size = size;
    }

    /// Zeroes `length` bytes from `offset` and frees the chunks that lie wholly inside, or that
    /// hold nothing else below the size.
    pub(super) fn punch(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        if offset >= end {
            return;
        }
        let range = offset / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES);
        let inside: Vec<u64> = self.chunks.range(range).map(|(&number, _)| number).collect();
        for number in inside {
            let part = part(number, offset, end);
            let last = part.end as u64 == CHUNK_BYTES || end == self.size;
            if part.start == 0 && last {
                self.chunks.remove(&number);
            } else if let Some(chunk) = self.chunks.get_mut(&number) {
                Arc::make_mut(chunk)[part].fill(0);
            }
        }
    }

    /// Gives what it has in `offset..offset + length` to `to`, holes included.
    pub(super) fn move_to(&mut self, to: &mut Self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        if offset >= end {
            return;
        }
        // First, so that a chunk which the range covers to its end is freed as a whole.
        to.size = to.size.max(end);
        to.punch(offset, end - offset);
        let numbers = offset / CHUNK_BYTES..end.div_ceil(CHUNK_BYTES);
        for (&number, chunk) in self.chunks.range(numbers) {
            let part = part(number, offset, end);
            let given = to.chunks.entry(number).or_insert_with(|| Arc::new([0; CHUNK_BYTES as usize]));
            Arc::make_mut(given)[part.clone()].copy_from_slice(&chunk[part]);
        }
        self.punch(offset, end - offset);
    }

    /// Bytes that [`move_to`](Self::move_to) may allocate more than it frees: the chunks at both
    /// ends may be divided.
    pub(super) const MOVED_GROWTH_BYTES: u64 = 2 * CHUNK_BYTES;

    pub(super) fn extents(&self, offset: u64, limit: usize) -> Vec<(u64, u64)> {
        let mut extents: Vec<(u64, u64)> = Vec::new();
        for &number in self.chunks.range(offset / CHUNK_BYTES..).map(|(number, _)| number) {
            let start = (number * CHUNK_BYTES).max(offset);
            let end = ((number + 1) * CHUNK_BYTES).min(self.size);
            if start >= end {
                break;
            }
            if let Some((last, length)) = extents.last_mut()
                && *last + *length == start
            {
                *length += end - start;
            } else if extents.len() < limit {
                extents.push((start, end - start));
            } else {
                break;
            }
        }
        extents
    }
}

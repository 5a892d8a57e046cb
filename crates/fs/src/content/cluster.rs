//! The write-clustering cache of one file (paper 1, section III.A): bytes written but not yet given to
//! the device, as ranges that neither overlap nor touch.
//!
//! Small sequential writes grow one range; a rewritten byte is held once. It knows no device and no
//! budget; the owner adds up [`DirtyRanges::bytes`].

use onode_object::Demand;
use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of a file that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct DirtyRanges {
    ranges: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
    /// Blocks that the ranges lie in, those of each for themselves.
    blocks: u64,
}

/// Blocks that a range lies in.
pub(crate) const fn blocks_of(start: u64, length: usize) -> u64 {
    if length == 0 {
        return 0;
    }
    (start + length as u64).div_ceil(Demand::BLOCK_BYTES) - start / Demand::BLOCK_BYTES
}

impl DirtyRanges {
    /// Bytes held.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Blocks that hold a byte of them, those of each range for themselves.
    pub(crate) const fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub(crate) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges in file order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.ranges.iter().map(|(start, data)| (*start, data.as_slice()))
    }

    /// Puts `data` at `offset` over what is there; returns the length of the range it is now part of.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> usize {
        if data.is_empty() {
            return 0;
        }
        let end = offset + data.len() as u64;
        // The range before, if it reaches `offset`, takes the data in; else a new one starts.
        let before = self.ranges.range(..=offset).next_back().map(|(start, held)| (*start, held.len() as u64));
        let start = match before {
            Some((start, length)) if start + length >= offset => start,
            _ => {
                self.ranges.insert(offset, Vec::with_capacity(data.len()));
                offset
            }
        };
        let tail = self.absorb_following(start, end);
        let Some(held) = self.ranges.get_mut(&start) else { return 0 };
        let at = (offset - start) as usize;
        let old_length = held.len();
        if at + data.len() <= old_length {
            held[at..at + data.len()].copy_from_slice(data);
        } else {
            held.truncate(at);
            held.extend_from_slice(data);
            held.extend_from_slice(&tail);
        }
        self.bytes += held.len() - old_length;
        self.blocks = self.blocks + blocks_of(start, held.len()) - blocks_of(start, old_length);
        held.len()
    }

    /// Takes out the ranges after `start` that begin at or before `end`; returns their bytes after it.
    fn absorb_following(&mut self, start: u64, end: u64) -> Vec<u8> {
        let mut tail = Vec::new();
        while let Some((&next, _)) = self.ranges.range(start + 1..=end).next() {
            let Some(held) = self.ranges.remove(&next) else { break };
            self.bytes -= held.len();
            self.blocks -= blocks_of(next, held.len());
            let skip = (end - next) as usize;
            if skip < held.len() {
                // Only the last range can reach past `end`.
                tail = held;
                tail.drain(..skip);
            }
        }
        tail
    }

    /// Forgets all bytes in `range`.
    pub(crate) fn discard(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.range(..range.start).next_back().map(|(start, _)| *start);
        let touched: Vec<u64> =
            first.into_iter().chain(self.ranges.range(range.clone()).map(|(start, _)| *start)).collect();
        for start in touched {
            let Some(mut held) = self.ranges.remove(&start) else { continue };
            let end = start + held.len() as u64;
            self.bytes -= held.len();
            self.blocks -= blocks_of(start, held.len());
            if end > range.end && start < range.end {
                let rest = held.split_off((range.end - start) as usize);
                self.insert(range.end, rest);
            }
            if start < range.start {
                held.truncate((range.start - start).min(held.len() as u64) as usize);
                self.insert(start, held);
            }
        }
    }

    fn insert(&mut self, start: u64, held: Vec<u8>) {
        if !held.is_empty() {
            self.bytes += held.len();
            self.blocks += blocks_of(start, held.len());
            self.ranges.insert(start, held);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        (self.bytes, self.blocks) = (0, 0);
    }

    /// Copies what is held of `offset..offset + buffer.len()` into `buffer`; returns the ranges of the
    /// buffer that are not held.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Vec<Range<usize>> {
        let end = offset + buffer.len() as u64;
        let mut gaps = Vec::new();
        let mut at = 0;
        let first = self.ranges.range(..=offset).next_back().map_or(offset, |(start, _)| *start);
        for (&start, held) in self.ranges.range(first..end) {
            let held_end = start + held.len() as u64;
            if held_end <= offset {
                continue;
            }
            let from = (start.max(offset) - offset) as usize;
            let to = (held_end.min(end) - offset) as usize;
            if from > at {
                gaps.push(at..from);
            }
            let skip = (offset + from as u64 - start) as usize;
            buffer[from..to].copy_from_slice(&held[skip..skip + (to - from)]);
            at = to;
        }
        if at < buffer.len() {
            gaps.push(at..buffer.len());
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn agrees_with_a_plain_array_of_optional_bytes() {
        for seed in 0..40 {
            let mut prng = Prng::new(seed);
            let mut model = vec![None; 300];
            let mut dirty = DirtyRanges::default();
            for step in 0..400 {
                let start = prng.below(250) as usize;
                let length = prng.below(50) as usize;
                if prng.chance(1, 4) {
                    dirty.discard(start as u64..(start + length) as u64);
                    model[start..start + length].fill(None);
                } else {
                    let data = vec![step as u8; length];
                    dirty.write(start as u64, &data);
                    model[start..start + length].fill(Some(step as u8));
                }
                let mut buffer = vec![0xee; 300];
                let gaps = dirty.read(0, &mut buffer);
                for (i, byte) in model.iter().enumerate() {
                    let gap = gaps.iter().any(|gap| gap.contains(&i));
                    assert_eq!(byte.is_none(), gap, "seed {seed} step {step} byte {i}");
                    assert!(byte.is_none_or(|byte| byte == buffer[i]), "seed {seed} step {step} byte {i}");
                }
                assert_eq!(dirty.bytes(), model.iter().flatten().count(), "seed {seed}");
                let ends: Vec<_> = dirty.iter().map(|(start, data)| (start, start + data.len() as u64)).collect();
                assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "seed {seed}: ranges overlap");
            }
        }
    }

    #[test]
    fn sequential_writes_become_one_range() {
        let mut dirty = DirtyRanges::default();
        for i in 0..100 {
            assert_eq!(dirty.write(i * 10, &[i as u8; 10]), (i as usize + 1) * 10);
        }
        assert_eq!(dirty.count(), 1);
    }
}

//! Bytes of one object that wait in memory, by offset: pieces that do not overlap.

use std::collections::BTreeMap;

/// Pieces are joined with the one before up to so many bytes.
const JOINED_BYTES: usize = 256 << 10;

/// The pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    all: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
}

impl Pieces {
    /// Bytes in them.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The pieces in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.all.iter().map(|(start, data)| (*start, data.as_slice()))
    }

    /// Pieces that reach past `from`, in order.
    fn reaching(&self, from: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let before = self.all.range(..=from).next_back().map_or(from, |(start, _)| *start);
        self.all.range(before..).map(|(start, data)| (*start, data.as_slice()))
    }

    /// Puts `data` at `offset` over what is there.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        self.discard(offset, offset + data.len() as u64);
        self.bytes += data.len();
        if let Some((start, held)) = self.all.range_mut(..offset).next_back()
            && *start + held.len() as u64 == offset
            && held.len() + data.len() <= JOINED_BYTES
        {
            held.extend_from_slice(data);
            return;
        }
        self.all.insert(offset, data.to_vec());
    }

    /// Forgets all bytes from `start` to before `end`.
    pub(crate) fn discard(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let touched: Vec<u64> = self.reaching(start).map(|(at, _)| at).take_while(|at| *at < end).collect();
        for at in touched {
            let Some(mut held) = self.all.remove(&at) else { continue };
            self.bytes -= held.len();
            let until = at + held.len() as u64;
            if until > end {
                self.insert(end, held.split_off((end - at) as usize));
            }
            if at < start {
                held.truncate((start - at).min(held.len() as u64) as usize);
                self.insert(at, held);
            } else if until <= start {
                self.insert(at, held);
            }
        }
    }

    fn insert(&mut self, at: u64, held: Vec<u8>) {
        if !held.is_empty() {
            self.bytes += held.len();
            self.all.insert(at, held);
        }
    }

    /// Copies what there is of `offset..offset + buffer.len()` into the buffer.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) {
        let end = offset + buffer.len() as u64;
        for (start, held) in self.reaching(offset).take_while(|(start, _)| *start < end) {
            let (from, until) = (start.max(offset), (start + held.len() as u64).min(end));
            if from < until {
                let piece = &held[(from - start) as usize..(until - start) as usize];
                buffer[(from - offset) as usize..(until - offset) as usize].copy_from_slice(piece);
            }
        }
    }

    /// The ranges of pieces at or after `from`, in order.
    pub(crate) fn ranges(&self, from: u64) -> impl Iterator<Item = (u64, u64)> {
        let ranges = self.reaching(from).map(move |(start, held)| (start.max(from), start + held.len() as u64));
        ranges.filter(|(start, end)| start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;

    #[test]
    fn they_are_what_a_table_of_bytes_says() {
        for seed in 0..40 {
            let mut prng = Prng::new(seed);
            let (mut pieces, mut table) = (Pieces::default(), [None; 300]);
            for step in 0..300 {
                let (start, length) = (prng.below(250), prng.below(50));
                let range = start as usize..(start + length) as usize;
                if prng.chance(1, 3) {
                    pieces.discard(start, start + length);
                    table[range].fill(None);
                } else {
                    pieces.write(start, &vec![step as u8; length as usize]);
                    table[range].fill(Some(step as u8));
                }
                assert_eq!(pieces.bytes(), table.iter().flatten().count(), "seed {seed} step {step}");
                let mut buffer = [0xee; 300];
                pieces.read(0, &mut buffer);
                let is_same = buffer.iter().zip(&table).all(|(found, byte)| *found == byte.unwrap_or(0xee));
                assert!(is_same, "seed {seed} step {step}");
                let from = prng.below(300);
                let covered: u64 = pieces.ranges(from).map(|(start, end)| end - start).sum();
                assert_eq!(covered, table[from as usize..].iter().flatten().count() as u64, "seed {seed} step {step}");
            }
        }
    }
}

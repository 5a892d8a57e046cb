//! Which bytes of a file with holes an archive has, in the four ways in which GNU tar says it.

use super::BLOCK_BYTES;
use super::records::{PaxRecord, number};
use std::ops::Range;

/// Ranges that a map may have: more is no file but an attack.
pub const RANGES_MAX: usize = 1 << 20;

/// A map that is read step by step.
#[derive(Debug, Default)]
pub struct Map(Vec<Range<u64>>);

impl Map {
    /// Adds a range; whether that is possible.
    pub fn add(&mut self, offset: u64, length: u64) -> bool {
        let Some(end) = offset.checked_add(length) else { return false };
        if self.0.last().is_some_and(|last| offset < last.end) || self.0.len() >= RANGES_MAX {
            return false;
        }
        if length > 0 {
            self.0.push(offset..end);
        }
        true
    }

    /// The ranges of a file of `size` bytes of which so many are stored; nothing if they do not
    /// fit.
    pub fn finish(self, size: u64, stored: u64) -> Option<Vec<Range<u64>>> {
        let bytes = self.0.iter().try_fold(0u64, |sum, range| sum.checked_add(range.end - range.start))?;
        let fits = self.0.last().is_none_or(|last| last.end <= size);
        (fits && bytes == stored).then_some(self.0)
    }
}

/// Whether records have a map, in formats 0.0 and 0.1.
pub fn is_in(records: &[PaxRecord]) -> bool {
    let keys = [&b"GNU.sparse.numbytes"[..], b"GNU.sparse.map"];
    records.iter().any(|record| keys.contains(&record.key.as_slice()))
}

/// The map that records have; nothing if it is none.
pub fn of_records(records: &[PaxRecord]) -> Option<Map> {
    let mut map = Map::default();
    let mut offset = None;
    for record in records {
        match record.key.as_slice() {
            b"GNU.sparse.offset" => offset = Some(record.number()?),
            b"GNU.sparse.numbytes" => map.add(offset.take()?, record.number()?).then_some(())?,
            b"GNU.sparse.map" => {
                map = Map::default();
                let numbers: Vec<&[u8]> = record.value.split(|byte| *byte == b',').collect();
                for pair in numbers.chunks(2) {
                    let [offset, length] = pair else { return None };
                    if !map.add(number(offset)?, number(length)?) {
                        return None;
                    }
                }
            }
            _ => {}
        }
    }
    Some(map)
}

/// The map before the content in format 1.0, block by block.
#[derive(Debug, Default)]
pub struct MapReader {
    text: Vec<u8>,
    numbers: Vec<u64>,
}

impl MapReader {
    /// Takes one more block; whether it was the last, and nothing if it is none.
    pub fn take(&mut self, block: &[u8; BLOCK_BYTES]) -> Option<bool> {
        for byte in block {
            if self.is_complete() {
                break;
            }
            if *byte == b'\n' {
                self.numbers.push(number(&std::mem::take(&mut self.text))?);
            } else {
                self.text.push(*byte);
            }
        }
        let is_sane = self.text.len() < 32 && self.numbers.len() <= 2 * RANGES_MAX + 1;
        is_sane.then(|| self.is_complete())
    }

    fn is_complete(&self) -> bool {
        let count = self.numbers.first().copied();
        count.is_some_and(|count| (self.numbers.len() as u64 - 1) / 2 >= count)
    }

    /// The map that it read.
    pub fn map(&self) -> Option<Map> {
        let mut map = Map::default();
        for pair in self.numbers.get(1..)?.chunks(2) {
            let [offset, length] = pair else { return None };
            if !map.add(*offset, *length) {
                return None;
            }
        }
        Some(map)
    }
}

/// A map as format 1.0 has it, filled up to whole blocks.
pub fn text(ranges: &[Range<u64>], size: u64) -> Vec<u8> {
    // The end of a file that ends with a hole is a range without bytes.
    let ends = ranges.last().is_some_and(|last| last.end == size);
    let mut text = format!("{}\n", ranges.len() + usize::from(!ends));
    for range in ranges {
        text.push_str(&format!("{}\n{}\n", range.start, range.end - range.start));
    }
    if !ends {
        text.push_str(&format!("{size}\n0\n"));
    }
    let mut text = text.into_bytes();
    text.resize(text.len().next_multiple_of(BLOCK_BYTES), 0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Option<Vec<Range<u64>>> {
        let mut reader = MapReader::default();
        for block in text.chunks(BLOCK_BYTES) {
            if reader.take(block.try_into().ok()?)? {
                return Some(reader.map()?.0);
            }
        }
        None
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a map of one range is one")]
    fn maps_come_back_as_they_were() {
        let many: Vec<_> = (0..1000).map(|i| i * 10_000..i * 10_000 + 4096).collect();
        for ranges in [vec![], vec![0..5], vec![7..100, 200..300], many] {
            assert_eq!(read(&text(&ranges, 20_000_000)), Some(ranges.clone()));
            assert_eq!(text(&ranges, 20_000_000).len() % BLOCK_BYTES, 0);
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let mut block = [0; BLOCK_BYTES];
        for wrong in ["x\n", "2\n0\n5\n3\n5\n", "1\n-1\n5\n", "1\n18446744073709551615\n5\n"] {
            block.fill(0);
            block[..wrong.len()].copy_from_slice(wrong.as_bytes());
            assert_eq!(read(&block), None, "{wrong}");
        }
        assert!(of_records(&[PaxRecord::new("GNU.sparse.map", "1,2,3")]).is_none());
        assert!(of_records(&[PaxRecord::new("GNU.sparse.numbytes", "3")]).is_none());
        let mut map = Map::default();
        assert!(map.add(0, 10) && !map.add(5, 1) && map.add(10, 0) && map.finish(9, 10).is_none());
    }
}

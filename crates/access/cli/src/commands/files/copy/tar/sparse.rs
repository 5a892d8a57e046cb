//! Which bytes of a file with holes an archive has, in the four ways in which GNU tar says it.

use super::BLOCK_BYTES;
use super::records::{PaxRecord, number};
use std::ops::Range;

/// Ranges that a map may have: more is no file but an attack.
pub const RANGES_MAX: usize = 1 << 20;

/// How the ranges of a file stand one after the other in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Each begins with a block, as GNU tar has it; the size of the member counts only their bytes.
    InBlocks,
    /// Without anything between them. So older versions of Onode wrote ranges of odd lengths, which
    /// other programs read wrongly.
    Dense,
}

impl Stored {
    /// How they stand in a member with this name in its header. GNU tar has its process's number
    /// and a directory in it, older versions of Onode have neither.
    pub fn in_member(name: &[u8]) -> Self {
        if name.starts_with(NAME_BEFORE) { Self::Dense } else { Self::InBlocks }
    }

    /// Bytes that such ranges take, but for what fills the last block up.
    pub fn bytes(self, ranges: &[Range<u64>]) -> Option<u64> {
        ranges.iter().try_fold(0u64, |before, range| {
            let begin =
                if self == Self::Dense { before } else { before.checked_next_multiple_of(BLOCK_BYTES as u64)? };
            begin.checked_add(range.end - range.start)
        })
    }

    /// Bytes that fill up what follows so many bytes of a range.
    pub const fn padding(self, length: u64) -> u64 {
        match self {
            Self::InBlocks => length.wrapping_neg() % BLOCK_BYTES as u64,
            Self::Dense => 0,
        }
    }
}

/// What older versions of Onode wrote before the name of a file with holes.
const NAME_BEFORE: &[u8] = b"GNUSparseFile.0/";
/// The same now: what follows has ranges of whole blocks.
pub const NAME_PREFIX: &[u8] = b"./GNUSparseFile.0/";

/// The ranges, widened to whole blocks of the file where they do not end with it: so there is one
/// way to read them.
pub fn whole_blocks(ranges: &[Range<u64>], size: u64) -> Vec<Range<u64>> {
    let mut whole: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let block = BLOCK_BYTES as u64;
        let start = range.start - range.start % block;
        let end = range.end.checked_next_multiple_of(block).map_or(size, |end| end.min(size));
        match whole.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => whole.push(start..end),
        }
    }
    whole
}

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

    /// The ranges of a file of `size` bytes of which the archive counts so many; nothing if they do
    /// not fit.
    pub fn finish(self, size: u64, counted: u64) -> Option<Vec<Range<u64>>> {
        let fits = self.0.last().is_none_or(|last| last.end <= size);
        (fits && Stored::Dense.bytes(&self.0)? == counted).then_some(self.0)
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
    #[expect(clippy::single_range_in_vec_init, reason = "a map of one range is one")]
    fn ranges_become_whole_blocks_and_never_more_than_the_file() {
        let whole = |ranges: &[Range<u64>]| whole_blocks(ranges, 10_001);
        assert_eq!(whole(&[0..1000, 1500..1501, 9000..10_001]), [0..1536, 8704..10_001]);
        assert_eq!(whole(&[0..512, 1024..1025]), [0..512, 1024..1536]);
        assert_eq!(whole_blocks(&[u64::MAX - 9..u64::MAX], u64::MAX), [u64::MAX - 511..u64::MAX]);
        assert_eq!(whole(&[]), []);
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "a map of one range is one")]
    fn ranges_of_gnu_tar_begin_with_blocks_and_older_ones_of_ours_do_not() {
        let [gnu, ours, older] = ["./GNUSparseFile.77/a", "./GNUSparseFile.0/a", "GNUSparseFile.0/a"]
            .map(|name| Stored::in_member(name.as_bytes()));
        assert_eq!((gnu, ours, older), (Stored::InBlocks, Stored::InBlocks, Stored::Dense));
        let ranges = [0..1000, 2000..2001, 4000..4007];
        assert_eq!((gnu.bytes(&ranges), older.bytes(&ranges)), (Some(1543), Some(1008)));
        assert_eq!((gnu.padding(1000), gnu.padding(1024), older.padding(1000)), (24, 0, 0));
        assert_eq!(gnu.bytes(&[0..u64::MAX]), Some(u64::MAX));
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

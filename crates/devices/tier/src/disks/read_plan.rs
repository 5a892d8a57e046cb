//! A batched read: runs of stored blocks on either disk, in requests that do not wait for one
//! another.

use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::space::extent::Extent;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::checksum::crc32c;
use onode_base::planted::{Bug, is_planted};
use onode_media::{BlockDev, DiskRead, IoTag, SharedDisk};

/// Blocks in a row of an object, and what was found of them.
pub struct PlannedRun {
    /// The first block of the object.
    pub at: u64,
    /// Where they lie on the big disk, and their checksums.
    pub extent: Extent,
    /// Their content, as far as it is there.
    pub bytes: Vec<u8>,
    /// Of each, whether its content is there and right.
    pub is_there: Vec<bool>,
}

/// Some of the blocks of the `which`th that is wanted, in a row on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPart {
    /// Its number.
    pub which: usize,
    /// The first block, counted from the beginning of what is wanted.
    pub from: usize,
    /// How many.
    pub count: usize,
    /// The first block on the disk.
    pub block: u64,
}

impl RunPart {
    /// The blocks, counted from the beginning of what is wanted.
    #[must_use]
    pub const fn blocks(&self) -> Range<usize> {
        self.from..self.from + self.count
    }

    /// Adds the next blocks if they lie right behind; false if they do not.
    pub fn goes_on(&mut self, next: &Self) -> bool {
        let follows = self.which == next.which
            && self.from + self.count == next.from
            && self.block + self.count as u64 == next.block;
        if follows {
            self.count += next.count;
        }
        follows
    }
}

impl PlannedRun {
    /// The blocks of an extent, which begin at block `at` of the object.
    #[must_use]
    pub fn new(at: u64, extent: Extent) -> Self {
        let blocks = extent.sums.len();
        Self { at, extent, bytes: vec![0; blocks * BLOCK_BYTES], is_there: vec![false; blocks] }
    }

    /// A block's content.
    pub fn block(&mut self, number: usize) -> Option<&mut [u8]> {
        self.bytes.get_mut(number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES)
    }

    /// Compares a block that was read with its checksum, and notes whether it matches.
    pub fn verify(&mut self, number: usize) -> bool {
        let sum = self.extent.sums.get(number).copied();
        let matches = self.block(number).is_some_and(|bytes| sum == Some(crc32c(bytes)));
        let matches = matches || is_planted(Bug::DamagedTierBlockBelieved);
        self.note(number, matches);
        matches
    }

    /// Notes whether a block is there and right.
    pub fn note(&mut self, number: usize, matches: bool) {
        if let Some(is_there) = self.is_there.get_mut(number) {
            *is_there = matches;
        }
    }

    /// What is missing, in rows on the big disk.
    #[must_use]
    pub fn missing(&self, which: usize) -> Vec<RunPart> {
        let mut parts: Vec<RunPart> = Vec::new();
        for (from, _) in self.is_there.iter().enumerate().filter(|(_, is_there)| !**is_there) {
            let next = RunPart { which, from, count: 1, block: self.extent.block + from as u64 };
            if !parts.last_mut().is_some_and(|last| last.goes_on(&next)) {
                parts.push(next);
            }
        }
        parts
    }
}

/// The requests for parts, which are in the order of what is wanted.
fn requests<'a>(wanted: &'a mut [PlannedRun], parts: &[RunPart]) -> Vec<(u64, &'a mut [u8])> {
    let mut reads = Vec::new();
    let mut next = parts.iter().peekable();
    for (which, it) in wanted.iter_mut().enumerate() {
        let (mut rest, mut at) = (it.bytes.as_mut_slice(), 0);
        while let Some(part) = next.next_if(|part| part.which == which) {
            // What lies before it was found elsewhere.
            let skip = (part.from.saturating_sub(at) * BLOCK_BYTES).min(rest.len());
            let (_, behind) = core::mem::take(&mut rest).split_at_mut(skip);
            let (own, behind) = behind.split_at_mut((part.count * BLOCK_BYTES).min(behind.len()));
            reads.push((part.block * BLOCK, own));
            (rest, at) = (behind, part.from + part.count);
        }
    }
    reads
}

/// Reads parts, which are in the order of what is wanted, all at once and beside the owner of the
/// disk. Returns those that only the owner can read.
pub fn read_beside(disk: &dyn SharedDisk, wanted: &mut [PlannedRun], parts: &[RunPart], tag: IoTag) -> Vec<RunPart> {
    let request = |(offset, out)| DiskRead { offset, out, result: Ok(()) };
    let mut reads: Vec<DiskRead<'_>> = requests(wanted, parts).into_iter().map(request).collect();
    disk.read_batch(&mut reads, tag);
    reads.iter().zip(parts).filter(|(read, _)| read.result.is_err()).map(|(_, part)| *part).collect()
}

/// Reads parts, which are in the order of what is wanted, all at once. Returns the blocks that
/// could not be read, each as its number among those wanted and within.
pub fn read_runs(
    disk: &mut dyn BlockDev,
    wanted: &mut [PlannedRun],
    parts: &[RunPart],
    tag: IoTag,
) -> Vec<(usize, usize)> {
    if parts.is_empty() {
        return Vec::new();
    }
    let mut reads = requests(wanted, parts);
    if disk.read_batch(&mut reads, tag).is_ok() {
        return Vec::new();
    }
    // A request may fail for one block of many.
    let mut unread = Vec::new();
    for ((offset, out), part) in reads.into_iter().zip(parts) {
        for (number, block) in out.chunks_exact_mut(BLOCK_BYTES).enumerate() {
            if disk.read_at(offset + number as u64 * BLOCK, block, tag).is_err() {
                unread.push((part.which, part.from + number));
            }
        }
    }
    unread
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_media::sim::disk::SimDisk;

    fn filled() -> SimDisk {
        let mut disk = SimDisk::new("disk", 64 * BLOCK);
        for block in 0..64u8 {
            disk.write_at(u64::from(block) * BLOCK, &[block; BLOCK_BYTES], IoTag::Data).expect("no fault");
        }
        disk
    }

    fn of(block: u64, blocks: u64) -> PlannedRun {
        let content: Vec<u8> = (block..block + blocks).flat_map(|block| [block as u8; BLOCK_BYTES]).collect();
        PlannedRun::new(0, Extent::of(block, 1, &content))
    }

    #[test]
    fn what_is_missing_comes_in_rows_and_lands_at_its_place() {
        let mut disk = filled();
        let mut wanted = [of(10, 4), of(30, 8)];
        wanted[1].is_there[3] = true;
        let parts: Vec<RunPart> = wanted.iter().enumerate().flat_map(|(which, it)| it.missing(which)).collect();
        let rows: Vec<(usize, usize, usize, u64)> =
            parts.iter().map(|part| (part.which, part.from, part.count, part.block)).collect();
        assert_eq!(rows, [(0, 0, 4, 10), (1, 0, 3, 30), (1, 4, 4, 34)]);
        assert_eq!(read_runs(&mut disk, &mut wanted, &parts, IoTag::Data), []);
        assert!((0..4).all(|number| wanted[0].verify(number)));
        assert!((0..8).all(|number| wanted[1].verify(number) == (number != 3)));
    }

    #[test]
    fn a_sector_that_is_lost_takes_no_other_with_it() {
        let mut disk = filled();
        disk.make_unreadable(12 * BLOCK);
        let mut wanted = [of(10, 4), of(30, 2)];
        let parts: Vec<RunPart> = wanted.iter().enumerate().flat_map(|(which, it)| it.missing(which)).collect();
        assert_eq!(read_runs(&mut disk, &mut wanted, &parts, IoTag::Data), [(0, 2)]);
        assert!([0, 1, 3].into_iter().all(|number| wanted[0].verify(number)));
        assert!((0..2).all(|number| wanted[1].verify(number)));
    }
}

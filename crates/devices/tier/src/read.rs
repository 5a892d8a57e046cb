//! Reading content: pending blocks, then stored ones, each verified against its checksum.

use crate::core::Core;
use crate::extent::Extent;
use crate::fast::Piece;
use crate::layout::{BLOCK, BLOCK_BYTES};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_media::IoTag;
use onode_object::{Error, ObjectId, Result};

impl Core {
    /// Reads into `buffer` from `offset`; returns how many bytes there were.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` with the range of the first damaged block.
    pub fn read(&mut self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let onode = self.known(object)?;
        let count = onode.size.saturating_sub(offset).min(buffer.len() as u64);
        let Some(buffer) = buffer.get_mut(..count as usize) else { return Ok(0) };
        if buffer.is_empty() {
            return Ok(0);
        }
        buffer.fill(0);
        if !onode.has_blocks {
            let inline = self.inline(object)?;
            let from = inline.get((offset as usize).min(inline.len())..).unwrap_or_default();
            buffer.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            return Ok(count as usize);
        }
        let end = offset + count;
        let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
        let size = onode.size;
        for (at, run) in self.runs(object, first, last)? {
            let bytes = self.read_run(object, at, &run, size)?;
            copy_part(buffer, offset, at * BLOCK, &bytes);
        }
        for (block, bytes) in self.pending.range(object.0, first, last) {
            copy_part(buffer, offset, block * BLOCK, bytes);
        }
        Ok(count as usize)
    }

    /// The stored parts of `first..last`, cut to that range; what lies in a row on the disk comes as one.
    fn runs(&mut self, object: ObjectId, first: u64, last: u64) -> Result<Vec<(u64, Extent)>> {
        let cut = |(at, extent): (u64, Extent)| {
            let skip = first.saturating_sub(at);
            let end = extent.blocks().min(last - at);
            (at + skip, extent.part(skip, end - skip))
        };
        let mut runs: Vec<(u64, Extent)> = Vec::new();
        for (at, extent) in self.extents(object, first, last)?.into_iter().map(cut) {
            match runs.last_mut() {
                Some((start, run)) if *start + run.blocks() == at && run.is_continued_by(&extent) => {
                    run.sums.extend(extent.sums);
                }
                _ => runs.push((at, extent)),
            }
        }
        Ok(runs)
    }

    /// The verified blocks of an extent, which begin at block `at` of the object.
    fn read_run(&mut self, object: ObjectId, at: u64, extent: &Extent, size: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; extent.sums.len() * BLOCK_BYTES];
        let have = match self.is_scrubbing {
            false => self.disks.fast.lock().read(extent, &mut bytes),
            true => Vec::new(),
        };
        let is_there = |number: usize| have.get(number).copied().unwrap_or(false);
        let mut from = 0;
        while from < extent.sums.len() {
            let same = (from..extent.sums.len()).take_while(|number| is_there(*number) == is_there(from)).count();
            if is_there(from) {
                self.figures.blocks_read_fast += same as u64;
            } else {
                let skip = from as u64;
                let run = self.read_big(object, at + skip, &extent.part(skip, same as u64), size)?;
                let place = bytes.get_mut(from * BLOCK_BYTES..(from + same) * BLOCK_BYTES);
                if let Some(place) = place {
                    place.copy_from_slice(&run);
                }
            }
            from += same;
        }
        Ok(bytes)
    }

    /// The verified blocks of an extent from the big disk.
    fn read_big(&mut self, object: ObjectId, at: u64, extent: &Extent, size: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; extent.sums.len() * BLOCK_BYTES];
        let read = self.disks.read(extent.block, &mut bytes, IoTag::Data);
        self.figures.blocks_read += extent.blocks();
        for (number, sum) in extent.sums.iter().enumerate() {
            let Some(block) = bytes.get_mut(number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES) else { break };
            let place = extent.block + number as u64;
            // A request may fail for one block of many.
            let is_read = read.is_ok() || self.disks.read(place, block, IoTag::Data).is_ok();
            if !is_read || crc32c(block) != *sum {
                self.figures.damaged_blocks += 1;
                let from = (at + number as u64) * BLOCK;
                let what = if is_read { "does not have its checksum" } else { "cannot be read" };
                let range = from..(from + BLOCK).min(size.max(from + 1));
                return Err(Error::corrupt(object, range, format!("block {place} of the big disk {what}")));
            }
        }
        if !self.options.read_only && !self.is_scrubbing && self.disks.fast.lock().is_there() {
            let class = self.onode(object)?.unwrap_or_default().hints.placement_class;
            let (block, born, blocks) = (extent.block, extent.born, extent.blocks() as u32);
            let piece = Piece { block, born, blocks, object: object.0, index: at, class };
            self.disks.fast.lock().consider(&piece, &bytes);
        }
        Ok(bytes)
    }

    /// The verified content of one stored block of an object.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn read_stored(&mut self, object: ObjectId, block: u64, extent: &Extent) -> Result<Vec<u8>> {
        self.read_run(object, block, extent, u64::MAX)
    }

    /// The ranges that hold data at or after `offset`, at most `limit`.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`.
    pub fn data_ranges(&mut self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let onode = self.known(object)?;
        let mut out: Vec<(u64, u64)> = Vec::new();
        if offset >= onode.size || limit == 0 {
            return Ok(out);
        }
        if !onode.has_blocks {
            let stored = self.inline(object)?.len() as u64;
            if stored > offset {
                out.push((offset, stored - offset));
            }
            return Ok(out);
        }
        let mut push = |from: u64, to: u64| {
            let (from, to) = (from.max(offset), to.min(onode.size));
            match out.last_mut() {
                Some((start, length)) if *start + *length == from => *length = to.saturating_sub(*start),
                _ if from < to => out.push((from, to - from)),
                _ => {}
            }
            out.len() > limit
        };
        let last = onode.size.div_ceil(BLOCK);
        let mut at = offset / BLOCK;
        while at < last {
            // A window of the object at a time, so that nothing is read that is not asked for.
            let stored = self.next_extent(object, at, last)?;
            let window = stored.as_ref().map_or(last, |(first, extent)| (first + extent.blocks()).min(last));
            let mut parts: Vec<(u64, u64)> =
                self.pending.range(object.0, at, window).map(|(it, _)| (it, it + 1)).collect();
            parts.extend(stored.map(|(first, extent)| (first.max(at), first + extent.blocks())));
            parts.sort_unstable();
            if parts.into_iter().any(|(from, to)| push(from * BLOCK, to * BLOCK)) {
                break;
            }
            at = window;
        }
        out.truncate(limit);
        Ok(out)
    }

    /// The first extent that reaches behind `at` and begins before `last`.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn next_extent(&mut self, object: ObjectId, at: u64, last: u64) -> Result<Option<(u64, Extent)>> {
        if let Some(found) = self.extents(object, at, at + 1)?.into_iter().next() {
            return Ok(Some(found));
        }
        let key = crate::node::Key::extent(object.0, at);
        let index = match self.tree.next(&mut self.io, &key)? {
            Some((key, _)) if key.object == object.0 && key.space == crate::node::Space::Extent => key.index,
            _ => return Ok(None),
        };
        if index >= last {
            return Ok(None);
        }
        Ok(self.extents(object, index, index + 1)?.into_iter().next())
    }
}

/// Copies what `bytes`, which lie at `from`, have of the part of the object that begins at `offset`.
fn copy_part(buffer: &mut [u8], offset: u64, from: u64, bytes: &[u8]) {
    let start = offset.max(from);
    let end = (offset + buffer.len() as u64).min(from + bytes.len() as u64);
    if start >= end {
        return;
    }
    let to = buffer.get_mut((start - offset) as usize..(end - offset) as usize);
    let source = bytes.get((start - from) as usize..(end - from) as usize);
    if let (Some(to), Some(source)) = (to, source) {
        to.copy_from_slice(source);
    }
}

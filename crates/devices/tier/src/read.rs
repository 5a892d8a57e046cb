//! Reading content: pending blocks, then stored ones, each verified against its checksum.

use crate::core::Core;
use crate::errors::{bug, within, within_mut};
use crate::extent::Extent;
use crate::fast::Piece;
use crate::layout::{BLOCK, BLOCK_BYTES};
use crate::pending::{Held, Logged};
use crate::wanted::{Part, Wanted, read_parts};
use alloc::format;
use alloc::vec::Vec;
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
        let mut wanted = self.wanted(object, first, last)?;
        self.fetch(object, &mut wanted, size)?;
        for it in &wanted {
            copy_part(buffer, offset, it.at * BLOCK, &it.bytes)?;
        }
        let mut logged = Vec::new();
        for (block, held) in self.pending.range(object.0, first, last) {
            match held {
                Held::Bytes(bytes) => copy_part(buffer, offset, block * BLOCK, bytes)?,
                Held::Logged(at) => logged.push((block, *at)),
            }
        }
        if !logged.is_empty() {
            let wanted: Vec<Logged> = logged.iter().map(|(_, at)| *at).collect();
            let bytes = self.disks.load(&wanted)?;
            for ((block, _), bytes) in logged.iter().zip(bytes.chunks(BLOCK_BYTES)) {
                copy_part(buffer, offset, block * BLOCK, bytes)?;
            }
        }
        Ok(count as usize)
    }

    /// The stored parts of `first..last`, cut to that range; what lies in a row on the disk comes as one.
    fn wanted(&mut self, object: ObjectId, first: u64, last: u64) -> Result<Vec<Wanted>> {
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
        Ok(runs.into_iter().map(|(at, extent)| Wanted::new(at, extent)).collect())
    }

    /// Finds all that is wanted: on the fast disk, then in what is still to be written, the rest on the big disk.
    fn fetch(&mut self, object: ObjectId, wanted: &mut [Wanted], size: u64) -> Result<()> {
        if !self.is_scrubbing {
            self.disks.fast.lock().read(wanted);
            let found = wanted.iter().flat_map(|it| &it.is_there).filter(|is_there| **is_there);
            self.figures.blocks_read_fast += found.count() as u64;
        }
        let waiting = self.disks.waiting.lock();
        wanted.iter_mut().for_each(|it| waiting.fill(it));
        let far: Vec<Vec<(usize, Logged)>> = wanted.iter().map(|it| waiting.far(it)).collect();
        drop(waiting);
        for (it, far) in wanted.iter_mut().zip(far).filter(|(_, far)| !far.is_empty()) {
            let places: Vec<Logged> = far.iter().map(|(_, at)| *at).collect();
            let bytes = self.disks.load(&places)?;
            for ((number, _), content) in far.iter().zip(bytes.chunks(BLOCK_BYTES)) {
                if let Some(to) = it.block(*number) {
                    to.copy_from_slice(content);
                }
                it.verify(*number);
            }
        }
        let missing: Vec<Part> = wanted.iter().enumerate().flat_map(|(which, it)| it.missing(which)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let unread = read_parts(self.disks.big.lock().as_mut(), wanted, &missing, IoTag::Data);
        for part in &missing {
            let it = wanted.get_mut(part.which).ok_or_else(|| bug("a part of nothing that is wanted was read"))?;
            self.figures.blocks_read += part.count as u64;
            for number in part.blocks() {
                let is_read = !unread.contains(&(part.which, number));
                if (!is_read || !it.verify(number))
                    && let Err(also) = self.rescue(it, number)
                {
                    let from = (it.at + number as u64) * BLOCK;
                    let what = if is_read { "does not have its checksum" } else { "cannot be read" };
                    let range = from..(from + BLOCK).min(size.max(from + 1));
                    let place = it.extent.block + number as u64;
                    return Err(Error::corrupt(object, range, format!("block {place} of the big disk {what}{also}")));
                }
            }
        }
        self.consider(object, wanted, &missing)
    }

    /// A block of the big disk is damaged: takes the copy on the fast disk, if there is a good one, and writes it back.
    /// The place need not change: a write that is cut leaves, of each part, what was there or what should be. A scrub that may
    /// not write reports the damage; what else there is to say of it is the error.
    fn rescue(&mut self, it: &mut Wanted, number: usize) -> core::result::Result<(), &'static str> {
        self.figures.damaged_blocks += 1;
        let place = it.extent.block + number as u64;
        let mut copy = [Wanted::new(it.at, it.extent.part(number as u64, 1))];
        self.disks.fast.lock().read(&mut copy);
        let [copy] = copy;
        let Some(block) = it.block(number).filter(|_| copy.is_there == [true]) else { return Err("") };
        block.copy_from_slice(&copy.bytes);
        let is_written = match self.options.read_only || self.read_only.is_some() {
            true => false,
            false => self.disks.write(place, block, IoTag::Data).is_ok(),
        };
        self.figures.repaired_blocks += u64::from(is_written);
        it.verify(number);
        if is_written || !self.is_scrubbing { Ok(()) } else { Err("; its copy on the fast disk is good") }
    }

    /// What had to be read from the big disk may be worth a copy.
    fn consider(&mut self, object: ObjectId, wanted: &[Wanted], read: &[Part]) -> Result<()> {
        if self.options.read_only || self.is_scrubbing || !self.disks.fast.lock().is_there() {
            return Ok(());
        }
        let class = self.onode(object)?.unwrap_or_default().hints.placement_class;
        for part in read {
            let Some(it) = wanted.get(part.which) else { continue };
            let (born, index) = (it.extent.born, it.at + part.from as u64);
            let piece = Piece { block: part.block, born, blocks: part.count as u32, object: object.0, index, class };
            let bytes = it.bytes.get(part.from * BLOCK_BYTES..(part.from + part.count) * BLOCK_BYTES);
            self.disks.fast.lock().consider(&piece, bytes.unwrap_or_default());
        }
        Ok(())
    }

    /// The verified content of one stored block of an object.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn read_stored(&mut self, object: ObjectId, block: u64, extent: &Extent) -> Result<Vec<u8>> {
        let mut wanted = [Wanted::new(block, extent.clone())];
        self.fetch(object, &mut wanted, u64::MAX)?;
        let [found] = wanted;
        Ok(found.bytes)
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
fn copy_part(buffer: &mut [u8], offset: u64, from: u64, bytes: &[u8]) -> Result<()> {
    let start = offset.max(from);
    let end = (offset + buffer.len() as u64).min(from + bytes.len() as u64);
    if start < end {
        let source = within(bytes, (start - from) as usize..(end - from) as usize)?;
        within_mut(buffer, (start - offset) as usize..(end - offset) as usize)?.copy_from_slice(source);
    }
    Ok(())
}

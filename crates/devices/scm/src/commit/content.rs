//! What a transaction does to the content of an object: writes, truncations, holes.
//!
//! A small object is one block that grows by moving. A large one grows in place where the memory
//! behind it is free, else by blocks of twice the size, so that it stays one range or a few (paper
//! 2 has a list of 512-byte pieces). Parts in between that were never written, or were punched out,
//! have no block. Bytes of a block beyond the object's size are anything; whatever makes the object
//! larger zeroes them first.

use crate::commit::change::Change;
use crate::index::extents::Extent;
use crate::log::item::Item;
use crate::medium::errors::no_space;
use onode_media::Pmem;
use onode_object::{ObjectId, Result};

/// Holes are filled in pieces that begin and end at multiples of this, or at the next extent.
const PAGE_BYTES: u64 = 4096;
/// A large object is not made larger by more than this ahead of what is written.
const MOST_AHEAD_BYTES: u64 = 64 << 20;

impl<P: Pmem> Change<'_, P> {
    pub(crate) fn write(&mut self, object: ObjectId, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset + data.len() as u64;
        if data.is_empty() {
            return Ok(());
        }
        let size = self.size(object)?;
        if offset > size {
            self.clear(object, size, offset)?;
        }
        let mut at = offset;
        while at < end {
            let rest = &data[(at - offset) as usize..];
            match self.extent_at(object, at)? {
                Some(extent) if extent.offset <= at => {
                    let count = rest.len().min((extent.end() - at) as usize);
                    let swapped = self.swap_chunks(object, extent, at, &rest[..count])?;
                    if !swapped {
                        self.write_mapped(object, extent, at, &rest[..count])?;
                        at += count as u64;
                    }
                }
                next => {
                    let hole_end = next.map_or(u64::MAX, |extent| extent.offset);
                    let count = rest.len().min(usize::try_from(hole_end - at).unwrap_or(usize::MAX));
                    at += self.fill_hole(object, at, hole_end, &rest[..count])?;
                }
            }
            // What moves or fills a block looks at how much of it counts so far.
            if at > self.size(object)? {
                self.set_size(object, at)?;
            }
        }
        Ok(())
    }

    /// The extent that holds the byte at `offset`, else the first one behind it; an object that has
    /// none is not looked for.
    pub(crate) fn extent_at(&mut self, object: ObjectId, offset: u64) -> Result<Option<Extent>> {
        Ok(if self.has_extents(object)? { self.index.extent_at(object, offset) } else { None })
    }

    /// Writes to bytes that have a block.
    fn write_mapped(&mut self, object: ObjectId, extent: Extent, offset: u64, data: &[u8]) -> Result<()> {
        let address = extent.address + (offset - extent.offset);
        let stable = self.stable(object)?;
        if self.is_fresh(address) {
            self.write_now(object, address, data)?;
            return Ok(());
        }
        let split = stable.saturating_sub(offset).min(data.len() as u64) as usize;
        let (old, new) = data.split_at(split);
        if !old.is_empty() {
            self.write_later(address, old);
        }
        if !new.is_empty() {
            self.write_now(object, address + split as u64, new)?;
        }
        Ok(())
    }

    /// Takes whole chunks that are about to be overwritten out of the map, so that their new
    /// content is written once and not twice. Whether it did.
    fn swap_chunks(&mut self, object: ObjectId, extent: Extent, offset: u64, data: &[u8]) -> Result<bool> {
        let chunk = self.store.chunk_bytes();
        if extent.length < chunk || (data.len() as u64) < chunk || self.is_fresh(extent.address) {
            return Ok(false);
        }
        let first = extent.offset + (offset - extent.offset).next_multiple_of(chunk);
        let last = self.last_cut(extent, offset + data.len() as u64);
        let stable = self.stable(object)?;
        if first >= last || first != offset || offset >= stable || !self.has_room(last - first) {
            return Ok(false);
        }
        self.cut_out(object, extent, first, last)?;
        self.lists.batch.push(&Item::NoExtent { object, offset: first, length: last - first });
        Ok(true)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.store.blocks().free_bytes() > bytes * 4 + self.store.reserve_bytes()
    }

    /// Where a cut that may reach up to `end` ends in a block of whole chunks.
    ///
    /// A rest of less than a chunk would look like a small block, and be released and recovered as
    /// one, where the memory has a block of a whole chunk. So the chunk before it stays with it.
    fn last_cut(&self, extent: Extent, end: u64) -> u64 {
        let chunk = self.store.chunk_bytes();
        if end == extent.end() {
            return end;
        }
        let last = extent.offset + (end - extent.offset) / chunk * chunk;
        if extent.end() - last < chunk { last - chunk } else { last }
    }

    /// Takes the bytes `first..last`, whole chunks of a block of whole chunks, out of the map.
    fn cut_out(&mut self, object: ObjectId, extent: Extent, first: u64, last: u64) -> Result<()> {
        self.unmap(object, extent.offset)?;
        if first > extent.offset {
            self.keep_mapped(object, extent.offset, extent.address, first - extent.offset)?;
        }
        if last < extent.end() {
            let address = extent.address + (last - extent.offset);
            self.keep_mapped(object, last, address, extent.end() - last)?;
        }
        let whole = first == extent.offset && last == extent.end();
        // The end of a block that the next extent cut short is a whole chunk all the same.
        let bytes = if whole { last - first } else { (last - first).next_multiple_of(self.store.chunk_bytes()) };
        self.give_up(extent.address + (first - extent.offset), bytes, !whole);
        Ok(())
    }

    /// Writes to bytes that have no block; returns how many of them now have one.
    fn fill_hole(&mut self, object: ObjectId, offset: u64, hole_end: u64, data: &[u8]) -> Result<u64> {
        let before = self.index.extent_before(object, offset);
        let end = offset + data.len() as u64;
        if let Some(last) = before
            && last.end() == offset
        {
            if last.offset == 0 && last.length < self.store.chunk_bytes() {
                return self.move_small(object, last, hole_end, data);
            }
            if self.extend(object, last, hole_end, end)? {
                return Ok(0);
            }
        }
        let hole_start = before.map_or(0, |extent| extent.end());
        let start = if offset == hole_start { offset } else { (offset / PAGE_BYTES * PAGE_BYTES).max(hole_start) };
        let is_only = before.is_none() && hole_end == u64::MAX && end <= self.store.chunk_bytes() / 2;
        let (start, wanted) = if is_only {
            (0, end)
        } else {
            (start, end.checked_next_multiple_of(PAGE_BYTES).unwrap_or(end).min(hole_end) - start)
        };
        let ahead = if hole_end == u64::MAX && end > self.store.chunk_bytes() && start == hole_start && start > 0 {
            start.min(MOST_AHEAD_BYTES)
        } else {
            0
        };
        let (address, length) = self.take_for(wanted, ahead, offset - start, hole_end - start)?;
        self.place_block(object, Extent { offset: start, address, length }, offset, data)
    }

    /// A block for `wanted` bytes, or for the first of them if no block is large enough; the block
    /// is used up to the length returned, which is more than `skip`.
    fn take_for(&mut self, wanted: u64, ahead: u64, skip: u64, most: u64) -> Result<(u64, u64)> {
        let ahead = if ahead > 0 && self.has_room(ahead) { ahead } else { 0 };
        let chunk = self.store.chunk_bytes();
        let mut length = wanted.max(ahead).min(most);
        loop {
            let usable = self.store.blocks().usable_bytes(length).min(most);
            // What is asked for is what is given back, also where the next extent cuts the block
            // short.
            if let Some(address) = self.take(usable) {
                return Ok((address, usable));
            }
            let next = if length > wanted { wanted } else { (length / 2).next_multiple_of(PAGE_BYTES.min(chunk)) };
            if next >= length || next <= skip {
                return Err(no_space(format!("no block of {length} bytes is left")));
            }
            length = next;
        }
    }

    /// Maps a fresh block as `block` of the object and writes what it holds of `data`, which begins
    /// at `offset`.
    fn place_block(&mut self, object: ObjectId, block: Extent, offset: u64, data: &[u8]) -> Result<u64> {
        let Extent { offset: start, address, length } = block;
        let count = data.len().min((start + length - offset) as usize);
        let written_end = offset + count as u64;
        let size = self.size(object)?;
        self.zero_now(address, offset - start)?;
        self.write_now(object, address + (offset - start), &data[..count])?;
        let shown_end = size.min(start + length);
        if shown_end > written_end {
            self.zero_now(address + (written_end - start), shown_end - written_end)?;
        }
        self.map(object, start, address, length)?;
        Ok(count as u64)
    }

    /// Moves a small object's only block to a larger one and appends to it.
    fn move_small(&mut self, object: ObjectId, old: Extent, hole_end: u64, data: &[u8]) -> Result<u64> {
        let offset = old.end();
        let end = offset + data.len() as u64;
        let chunk = self.store.chunk_bytes();
        let wanted = if end > chunk { end.next_multiple_of(PAGE_BYTES) } else { end };
        let (address, length) = self.take_for(wanted.min(hole_end), 0, offset, hole_end)?;
        let size = self.size(object)?;
        self.copy(old.address, address, old.length.min(size))?;
        let count = data.len().min((length - offset) as usize);
        if size < offset {
            self.zero_now(address + size, offset - size)?;
        }
        self.write_now(object, address + offset, &data[..count])?;
        let written_end = offset + count as u64;
        if size.min(length) > written_end {
            self.zero_now(address + written_end, size.min(length) - written_end)?;
        }
        self.unmap(object, 0)?;
        self.give_up(old.address, old.length, false);
        self.map(object, 0, address, length)?;
        Ok(count as u64)
    }

    /// Makes the block behind which the object goes on longer where it is; whether it could.
    fn extend(&mut self, object: ObjectId, last: Extent, hole_end: u64, end: u64) -> Result<bool> {
        let chunk = self.store.chunk_bytes();
        if last.length < chunk || !last.length.is_multiple_of(chunk) || hole_end != u64::MAX {
            return Ok(false);
        }
        // Its end may have been given up and wait until that is durable.
        if self.store.blocks().block_of(last.address) != Some((last.address, last.length)) {
            return Ok(false);
        }
        let wanted = (end - last.offset).next_multiple_of(chunk);
        let ahead = last.length.min(MOST_AHEAD_BYTES).next_multiple_of(chunk) + last.length;
        for length in [ahead, wanted] {
            let more = length.saturating_sub(last.length);
            if length < wanted || (length > wanted && !self.has_room(more)) || more + self.kept_back() > self.free() {
                continue;
            }
            if self.store.blocks().try_extend(last.address, last.length, length) {
                self.lists.fresh.push((last.address + last.length, more, true));
                self.zero_shown(object, last, length)?;
                self.remap(object, last.offset, last.address, last.length, length)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What an extended block holds of bytes that the object shows as a hole already becomes zeros.
    fn zero_shown(&mut self, object: ObjectId, last: Extent, length: u64) -> Result<()> {
        let shown = self.size(object)?.min(last.offset + length);
        if shown > last.end() {
            self.zero_now(last.address + last.length, shown - last.end())?;
        }
        Ok(())
    }

    fn free(&self) -> u64 {
        self.store.blocks().free_bytes()
    }

    fn kept_back(&self) -> u64 {
        self.store.reserve_bytes()
    }

    /// Zeroes what the blocks hold between `from` and `to`, which the object is about to show.
    fn clear(&mut self, object: ObjectId, from: u64, to: u64) -> Result<()> {
        let stable = self.stable(object)?;
        let mut at = from;
        while at < to {
            let Some(extent) = self.index.extent_at(object, at).filter(|extent| extent.offset < to) else { break };
            let (start, end) = (at.max(extent.offset), to.min(extent.end()));
            let address = extent.address + (start - extent.offset);
            let old = if self.is_fresh(address) { 0 } else { stable.saturating_sub(start).min(end - start) };
            self.zero_later(address, old);
            self.zero_now(address + old, end - start - old)?;
            at = end;
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, object: ObjectId, size: u64) -> Result<()> {
        let before = self.size(object)?;
        if size > before {
            self.clear(object, before, size)?;
        } else {
            self.drop_from(object, size)?;
        }
        self.set_size(object, size)
    }

    /// Gives up the blocks behind the new size.
    fn drop_from(&mut self, object: ObjectId, size: u64) -> Result<()> {
        let chunk = self.store.chunk_bytes();
        let mut cut = None;
        let mut at = size;
        while let Some(extent) = self.index.extent_at(object, at) {
            let mut first = extent.offset.max(size);
            if first > extent.offset {
                // The part that stays is whole chunks; a smaller block stays as it is.
                first = extent.offset + (first - extent.offset).next_multiple_of(chunk);
                if extent.length < chunk || first >= extent.end() {
                    at = extent.end();
                    continue;
                }
            }
            self.cut_out(object, extent, first, extent.end())?;
            cut = Some(cut.unwrap_or(first));
            at = extent.end();
        }
        if let Some(cut) = cut {
            self.lists.batch.push(&Item::NoExtent { object, offset: cut, length: u64::MAX - cut });
        }
        self.shrinks = true;
        Ok(())
    }

    pub(crate) fn punch(&mut self, object: ObjectId, offset: u64, length: u64) -> Result<()> {
        let size = self.size(object)?;
        let stop = offset.saturating_add(length).min(size);
        let chunk = self.store.chunk_bytes();
        let mut at = offset;
        while at < stop {
            let Some(extent) = self.index.extent_at(object, at).filter(|extent| extent.offset < stop) else { break };
            let (start, end) = (at.max(extent.offset), stop.min(extent.end()));
            // A hole that reaches the object's end takes what the block has behind it as well.
            let reach = if end == size { extent.end() } else { end };
            let whole = start == extent.offset && reach == extent.end();
            let (first, last) = if whole {
                (extent.offset, extent.end())
            } else if extent.length >= chunk {
                let first = extent.offset + (start - extent.offset).next_multiple_of(chunk);
                (first, self.last_cut(extent, reach))
            } else {
                (start, start)
            };
            if first < last {
                self.zero_shown_part(object, extent, start, first)?;
                self.zero_shown_part(object, extent, last, end)?;
                self.cut_out(object, extent, first, last)?;
                self.lists.batch.push(&Item::NoExtent { object, offset: first, length: last - first });
            } else {
                self.zero_shown_part(object, extent, start, end)?;
            }
            at = end;
        }
        self.shrinks = true;
        Ok(())
    }

    /// Zeroes bytes of a block that the object shows.
    fn zero_shown_part(&mut self, object: ObjectId, extent: Extent, start: u64, end: u64) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        let address = extent.address + (start - extent.offset);
        let stable = self.stable(object)?;
        let old = if self.is_fresh(address) { 0 } else { stable.saturating_sub(start).min(end - start) };
        self.zero_later(address, old);
        self.zero_now(address + old, end - start - old)?;
        Ok(())
    }
}

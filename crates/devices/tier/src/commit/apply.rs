//! Changes as they are done, live and in recovery alike.
//!
//! Stored and pending blocks of an object never overlap: a block that becomes pending loses its
//! place, which stays untouched until the next checkpoint. Bytes of the last block beyond the size
//! are zeros.

use crate::content::plan::Source;
use crate::core::Core;
use crate::index::node::{Key, KeySpace};
use crate::index::onode::{INLINE_BYTES, Onode};
use crate::log::change::Change;
use crate::medium::errors::{within, within_mut};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::space::extent::{Extent, MOST_BLOCKS};
use alloc::vec;
use alloc::vec::Vec;
use onode_object::{Error, ErrorKind, Mutation, ObjectId, Result};

impl Core {
    /// Does one change.
    ///
    /// # Errors
    /// `NotFound`, `Exists` for a change that cannot apply; `Corrupt`, `Media`.
    pub fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Plain(mutation) => self.apply_mutation(mutation),
            Change::Placed { object, first, extents } => self.apply_placed(*object, *first, extents),
        }
    }

    fn apply_mutation(&mut self, mutation: &Mutation) -> Result<()> {
        let object = mutation.object();
        if let Mutation::Create { hints, .. } = mutation {
            if self.onode(object)?.is_some() {
                return Err(Error::of(ErrorKind::Exists, object, "it was created before"));
            }
            let onode = Onode { hints: *hints, ..Onode::default() };
            self.note_class(&onode);
            self.objects += 1;
            return self.put_onode(object, &onode);
        }
        let mut onode = self.known(object)?;
        self.note_class(&onode);
        match mutation {
            Mutation::Create { .. } => Ok(()),
            Mutation::Remove { .. } => self.remove_object(object),
            Mutation::Write { offset, data, .. } => self.write(object, onode, *offset, data),
            Mutation::Truncate { size, .. } => self.truncate(object, onode, *size),
            Mutation::Punch { offset, length, .. } => self.punch(object, onode, *offset, *length),
            Mutation::SetAttribute { key, value, .. } => {
                self.tree.put(&mut self.io, Key::attribute(object.0, *key), value.clone())
            }
            Mutation::RemoveAttribute { key, .. } => {
                self.tree.remove(&mut self.io, &Key::attribute(object.0, *key)).map(|_| ())
            }
            Mutation::SetHints { hints, .. } => {
                self.pin_as_placed(object, onode.hints.placement_class, hints.placement_class);
                onode.hints = *hints;
                self.note_class(&onode);
                self.put_onode(object, &onode)
            }
            Mutation::SetAccessTime { time, .. } => {
                onode.accessed = *time;
                self.put_onode(object, &onode)
            }
        }
    }

    fn remove_object(&mut self, object: ObjectId) -> Result<()> {
        self.figures.blocks_never_written += self.pending.remove(object.0, 0, u64::MAX);
        while let Some((key, value)) = self.tree.next(&mut self.io, &Key::of(object.0, KeySpace::Onode))? {
            if key.object != object.0 {
                break;
            }
            if key.space == KeySpace::Extent {
                // Its blocks would be in use for ever.
                let extent = Extent::decode(value).filter(|extent| self.io.layout.holds(extent.block, extent.blocks()));
                let extent = extent.ok_or_else(|| Error::of(ErrorKind::Corrupt, object, "an extent is damaged"))?;
                self.give_up(&extent);
            }
            self.tree.remove(&mut self.io, &key)?;
        }
        self.objects = self.objects.saturating_sub(1);
        Ok(())
    }

    fn write(&mut self, object: ObjectId, mut onode: Onode, offset: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset + data.len() as u64;
        let size = onode.size.max(end);
        if !onode.has_blocks && size <= INLINE_BYTES {
            let mut inline = self.inline(object)?;
            inline.resize(inline.len().max(end as usize), 0);
            within_mut(&mut inline, offset as usize..end as usize)?.copy_from_slice(data);
            onode.size = size;
            self.tree.put(&mut self.io, Key::of(object.0, KeySpace::Inline), inline)?;
            return self.put_onode(object, &onode);
        }
        self.use_blocks(object, &mut onode)?;
        onode.size = size;
        let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
        let mut new = Vec::with_capacity((last - first) as usize);
        for block in first..last {
            let from = offset.max(block * BLOCK);
            let to = end.min((block + 1) * BLOCK);
            let part = within(data, (from - offset) as usize..(to - offset) as usize)?;
            if part.len() == BLOCK_BYTES {
                new.push((block, part.to_vec()));
                continue;
            }
            let mut bytes = self.block(object, block)?;
            let start = (from % BLOCK) as usize;
            within_mut(&mut bytes, start..start + part.len())?.copy_from_slice(part);
            new.push((block, bytes));
        }
        self.put_blocks(object, &mut onode, first, last, new)?;
        self.put_onode(object, &onode)
    }

    fn truncate(&mut self, object: ObjectId, mut onode: Onode, size: u64) -> Result<()> {
        if !onode.has_blocks {
            let mut inline = self.inline(object)?;
            if size > INLINE_BYTES {
                self.use_blocks(object, &mut onode)?;
            } else if (inline.len() as u64) > size {
                inline.truncate(size as usize);
                self.put_inline(object, inline)?;
            }
        } else if size < onode.size {
            let keep = size.div_ceil(BLOCK);
            self.drop_blocks(object, &mut onode, keep, u64::MAX)?;
            self.clear(object, &mut onode, size, keep * BLOCK)?;
            onode.has_blocks = size > 0;
        }
        onode.size = size;
        self.put_onode(object, &onode)
    }

    fn punch(&mut self, object: ObjectId, mut onode: Onode, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length).min(onode.size);
        if offset >= end {
            return Ok(());
        }
        if !onode.has_blocks {
            let mut inline = self.inline(object)?;
            let stored = inline.len();
            if end as usize >= stored {
                inline.truncate(offset as usize);
            } else {
                within_mut(&mut inline, offset as usize..end as usize)?.fill(0);
            }
            return self.put_inline(object, inline);
        }
        // What lies beyond the size is zeros, so the last block goes whole.
        let end = if end == onode.size { end.next_multiple_of(BLOCK) } else { end };
        let (first, last) = (offset.div_ceil(BLOCK), end / BLOCK);
        if first <= last {
            self.clear(object, &mut onode, offset, first * BLOCK)?;
            self.drop_blocks(object, &mut onode, first, last)?;
            self.clear(object, &mut onode, last * BLOCK, end)?;
        } else {
            self.clear(object, &mut onode, offset, end)?;
        }
        self.put_onode(object, &onode)
    }

    fn apply_placed(&mut self, object: ObjectId, first: u64, extents: &[Extent]) -> Result<()> {
        let mut onode = self.known(object)?;
        self.note_class(&onode);
        self.use_blocks(object, &mut onode)?;
        let count: u64 = extents.iter().map(Extent::blocks).sum();
        self.drop_blocks(object, &mut onode, first, first + count)?;
        let mut at = first;
        for extent in extents {
            self.tree.put(&mut self.io, Key::extent(object.0, at), extent.encode())?;
            at += extent.blocks();
        }
        onode.blocks += count;
        onode.size = onode.size.max(at * BLOCK);
        self.put_onode(object, &onode)
    }

    /// The content of a small object as far as it was written.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn inline(&mut self, object: ObjectId) -> Result<Vec<u8>> {
        let value = self.tree.get(&mut self.io, &Key::of(object.0, KeySpace::Inline))?;
        Ok(value.map(<[u8]>::to_vec).unwrap_or_default())
    }

    fn put_inline(&mut self, object: ObjectId, inline: Vec<u8>) -> Result<()> {
        let key = Key::of(object.0, KeySpace::Inline);
        if inline.is_empty() {
            return self.tree.remove(&mut self.io, &key).map(|_| ());
        }
        self.tree.put(&mut self.io, key, inline)
    }

    /// From now on the object's content has blocks of its own.
    fn use_blocks(&mut self, object: ObjectId, onode: &mut Onode) -> Result<()> {
        if !onode.has_blocks {
            let mut inline = self.inline(object)?;
            self.put_inline(object, Vec::new())?;
            onode.has_blocks = true;
            if !inline.is_empty() {
                inline.resize(BLOCK_BYTES, 0);
                self.pending.put(object.0, 0, inline);
                onode.blocks = 1;
                self.mark_extents(object, 0, 1)?;
            }
        }
        Ok(())
    }

    /// What a block holds now; zeros for a hole.
    fn block(&mut self, object: ObjectId, block: u64) -> Result<Vec<u8>> {
        if let Some(bytes) = self.held(object, block)? {
            return Ok(bytes);
        }
        match self.extents(object, block, block + 1)?.first() {
            Some((at, extent)) => match self.prefetched.get(&(extent.block + block - at, extent.born)) {
                Some(bytes) => Ok(bytes.clone()),
                None => self.read_stored(object, block, &extent.part(block - at, 1), Source::Any),
            },
            None => Ok(vec![0; BLOCK_BYTES]),
        }
    }

    /// Zeros bytes that lie in one block; a hole stays one.
    fn clear(&mut self, object: ObjectId, onode: &mut Onode, from: u64, to: u64) -> Result<()> {
        let block = from / BLOCK;
        let is_hole = from >= to
            || (self.pending.get(object.0, block).is_none() && self.extents(object, block, block + 1)?.is_empty());
        if is_hole {
            return Ok(());
        }
        let mut bytes = self.block(object, block)?;
        within_mut(&mut bytes, (from - block * BLOCK) as usize..(to - block * BLOCK) as usize)?.fill(0);
        self.put_blocks(object, onode, block, block + 1, vec![(block, bytes)])
    }

    fn put_blocks(
        &mut self,
        object: ObjectId,
        onode: &mut Onode,
        first: u64,
        last: u64,
        new: Vec<(u64, Vec<u8>)>,
    ) -> Result<()> {
        onode.blocks -= self.drop_extents(object, first, last)?.min(onode.blocks);
        for (block, bytes) in new {
            onode.blocks += u64::from(self.pending.put(object.0, block, bytes));
        }
        self.mark_extents(object, first, last)
    }

    /// The leaves that get the extents of pending blocks change at the checkpoint: they count as
    /// changed now, so that nothing else takes the blocks that they need.
    fn mark_extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<()> {
        for block in [first, last.saturating_sub(1)] {
            self.tree.mark(&mut self.io, &Key::extent(object.0, block))?;
        }
        Ok(())
    }

    /// Drops stored and pending blocks in `first..last`; the onode is not stored.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn drop_blocks(&mut self, object: ObjectId, onode: &mut Onode, first: u64, last: u64) -> Result<()> {
        let never_written = self.pending.remove(object.0, first, last);
        self.figures.blocks_never_written += never_written;
        let gone = never_written + self.drop_extents(object, first, last)?;
        onode.blocks = onode.blocks.saturating_sub(gone);
        Ok(())
    }

    /// The extents that lie in `first..last`, wholly or in part, with their first blocks.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<Vec<(u64, Extent)>> {
        let mut all = Vec::new();
        let mut from = Some(first.saturating_sub(MOST_BLOCKS - 1));
        while let Some(start) = from.filter(|start| *start < last) {
            let Some((key, value)) = self.tree.next(&mut self.io, &Key::extent(object.0, start))? else { break };
            if key.object != object.0 || key.space != KeySpace::Extent || key.index >= last {
                break;
            }
            let extent = Extent::decode(value).filter(|extent| self.io.layout.holds(extent.block, extent.blocks()));
            let Some(extent) = extent else {
                let range = key.index.saturating_mul(BLOCK)..last.saturating_mul(BLOCK);
                return Err(Error::corrupt(object, range, "an extent is damaged"));
            };
            from = key.index.checked_add(1);
            if key.index.saturating_add(extent.blocks()) > first {
                all.push((key.index, extent));
            }
        }
        Ok(all)
    }

    /// Takes the places of stored blocks in `first..last` away; returns how many there were.
    fn drop_extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<u64> {
        let mut gone = 0;
        for (at, extent) in self.extents(object, first, last)? {
            let skip = first.saturating_sub(at);
            let end = extent.blocks().min(last - at);
            let (left, middle) = (extent.part(0, skip), extent.part(skip, end - skip));
            let right = extent.part(end, extent.blocks() - end);
            if left.sums.is_empty() {
                self.tree.remove(&mut self.io, &Key::extent(object.0, at))?;
            } else {
                self.tree.put(&mut self.io, Key::extent(object.0, at), left.encode())?;
            }
            if !right.sums.is_empty() {
                self.tree.put(&mut self.io, Key::extent(object.0, at + end), right.encode())?;
            }
            gone += middle.blocks();
            self.give_up(&middle);
        }
        Ok(gone)
    }

    /// The blocks of an extent are not needed any more.
    fn give_up(&mut self, extent: &Extent) {
        self.tails.forget(extent.block, extent.blocks());
        self.space.give_up(extent.block, extent.blocks());
    }
}

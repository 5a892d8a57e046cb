//! Changes as they are done, live and in recovery alike.
//!
//! Stored and pending blocks of an object never overlap: a block that becomes pending loses its
//! place, which stays untouched until the next checkpoint. Bytes of the last block beyond the size
//! are zeros.

mod moved;

use crate::content::plan::Source;
use crate::content::reader::Reader;
use crate::index::onode::{INLINE_BYTES, Onode};
use crate::log::change::Change;
use crate::log::commits::Commits;
use crate::medium::errors::{within, within_mut};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::space::Space;
use crate::space::extent::Extent;
use alloc::vec;
use alloc::vec::Vec;
use moved::Handover;
use onode_object::{Error, ErrorKind, Mutation, ObjectId, Result};

/// What applying a change needs of the state, borrowed side by side.
pub struct Applier<'a> {
    /// What reads the blocks that change in part.
    pub reader: Reader<'a>,
    /// Free space.
    pub space: &'a mut Space,
    /// Which logs must have the change.
    pub commits: &'a mut Commits,
}

impl Applier<'_> {
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
            if self.reader.index.onode(object)?.is_some() {
                return Err(Error::of(ErrorKind::Exists, object, "it was created before"));
            }
            let onode = Onode { hints: *hints, ..Onode::default() };
            self.commits.note_class(onode.hints.placement_class);
            return self.reader.index.create(object, &onode);
        }
        let mut onode = self.reader.index.known(object)?;
        self.commits.note_class(onode.hints.placement_class);
        match mutation {
            Mutation::Create { .. } => Ok(()),
            Mutation::Move { offset, length, to, .. } => {
                let range = *offset..offset.saturating_add(*length);
                self.move_content(Handover { from: object, to: *to }, range)
            }
            Mutation::Remove { .. } => self.remove_object(object),
            Mutation::Write { offset, data, .. } => self.write(object, onode, *offset, data),
            Mutation::Truncate { size, .. } => self.truncate(object, onode, *size),
            Mutation::Punch { offset, length, .. } => self.punch(object, onode, *offset, *length),
            Mutation::SetAttribute { key, value, .. } => self.reader.index.put_attribute(object, *key, value.clone()),
            Mutation::RemoveAttribute { key, .. } => self.reader.index.remove_attribute(object, *key),
            Mutation::SetHints { hints, .. } => {
                let (before, after) = (onode.hints.placement_class, hints.placement_class);
                self.reader.disks.fast.lock().pin_as_placed(object, before, after);
                onode.hints = *hints;
                self.commits.note_class(onode.hints.placement_class);
                self.reader.index.put_onode(object, &onode)
            }
            Mutation::SetAccessTime { time, .. } => {
                onode.accessed = *time;
                self.reader.index.put_onode(object, &onode)
            }
        }
    }

    fn remove_object(&mut self, object: ObjectId) -> Result<()> {
        self.reader.buffers.remove(object, 0, u64::MAX);
        let mut freed = Vec::new();
        let removed = self.reader.index.remove_object(object, &mut freed);
        self.give_up_all(&freed);
        removed
    }

    fn write(&mut self, object: ObjectId, mut onode: Onode, offset: u64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset + data.len() as u64;
        let size = onode.size.max(end);
        if !onode.has_blocks && size <= INLINE_BYTES {
            let mut inline = self.reader.index.inline(object)?;
            inline.resize(inline.len().max(end as usize), 0);
            within_mut(&mut inline, offset as usize..end as usize)?.copy_from_slice(data);
            onode.size = size;
            self.reader.index.put_inline(object, inline)?;
            return self.reader.index.put_onode(object, &onode);
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
        self.reader.index.put_onode(object, &onode)
    }

    fn truncate(&mut self, object: ObjectId, mut onode: Onode, size: u64) -> Result<()> {
        if !onode.has_blocks {
            let mut inline = self.reader.index.inline(object)?;
            if size > INLINE_BYTES {
                self.use_blocks(object, &mut onode)?;
            } else if (inline.len() as u64) > size {
                inline.truncate(size as usize);
                self.reader.index.put_inline(object, inline)?;
            }
        } else if size < onode.size {
            let keep = size.div_ceil(BLOCK);
            self.drop_blocks(object, &mut onode, keep, u64::MAX)?;
            self.clear(object, &mut onode, size, keep * BLOCK)?;
            onode.has_blocks = size > 0;
        }
        onode.size = size;
        self.reader.index.put_onode(object, &onode)
    }

    fn punch(&mut self, object: ObjectId, mut onode: Onode, offset: u64, length: u64) -> Result<()> {
        let end = offset.saturating_add(length).min(onode.size);
        if offset >= end {
            return Ok(());
        }
        if !onode.has_blocks {
            let mut inline = self.reader.index.inline(object)?;
            let stored = inline.len();
            if end as usize >= stored {
                inline.truncate(offset as usize);
            } else {
                within_mut(&mut inline, offset as usize..end as usize)?.fill(0);
            }
            return self.reader.index.put_inline(object, inline);
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
        self.reader.index.put_onode(object, &onode)
    }

    fn apply_placed(&mut self, object: ObjectId, first: u64, extents: &[Extent]) -> Result<()> {
        let mut onode = self.reader.index.known(object)?;
        self.commits.note_class(onode.hints.placement_class);
        self.use_blocks(object, &mut onode)?;
        let count: u64 = extents.iter().map(Extent::blocks).sum();
        self.drop_blocks(object, &mut onode, first, first + count)?;
        self.reader.index.put_extents(object, first, extents)?;
        onode.blocks += count;
        onode.size = onode.size.max((first + count) * BLOCK);
        self.reader.index.put_onode(object, &onode)
    }

    /// From now on the object's content has blocks of its own.
    fn use_blocks(&mut self, object: ObjectId, onode: &mut Onode) -> Result<()> {
        if !onode.has_blocks {
            let mut inline = self.reader.index.inline(object)?;
            self.reader.index.put_inline(object, Vec::new())?;
            onode.has_blocks = true;
            if !inline.is_empty() {
                inline.resize(BLOCK_BYTES, 0);
                self.reader.buffers.put(object, 0, inline);
                onode.blocks = 1;
                self.reader.index.mark_extents(object, 0, 1)?;
            }
        }
        Ok(())
    }

    /// What a block holds now; zeros for a hole.
    fn block(&mut self, object: ObjectId, block: u64) -> Result<Vec<u8>> {
        if let Some(bytes) = self.reader.buffers.held(self.reader.disks, object, block)? {
            return Ok(bytes);
        }
        match self.reader.index.extents(object, block, block + 1)?.first() {
            Some((at, extent)) => match self.reader.buffers.prefetched(extent.block + block - at, extent.born) {
                Some(bytes) => Ok(bytes.clone()),
                None => self.reader.read_stored(object, block, &extent.part(block - at, 1), Source::Any),
            },
            None => Ok(vec![0; BLOCK_BYTES]),
        }
    }

    /// Zeros bytes that lie in one block; a hole stays one.
    fn clear(&mut self, object: ObjectId, onode: &mut Onode, from: u64, to: u64) -> Result<()> {
        let block = from / BLOCK;
        let is_hole = from >= to
            || (self.reader.buffers.pending().get(object.0, block).is_none()
                && self.reader.index.extents(object, block, block + 1)?.is_empty());
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
            onode.blocks += u64::from(self.reader.buffers.put(object, block, bytes));
        }
        self.reader.index.mark_extents(object, first, last)
    }

    /// Drops stored and pending blocks in `first..last`; the onode is not stored.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn drop_blocks(&mut self, object: ObjectId, onode: &mut Onode, first: u64, last: u64) -> Result<()> {
        let never_written = self.reader.buffers.remove(object, first, last);
        let gone = never_written + self.drop_extents(object, first, last)?;
        onode.blocks = onode.blocks.saturating_sub(gone);
        Ok(())
    }

    /// Takes the places of stored blocks in `first..last` away; returns how many there were.
    fn drop_extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<u64> {
        let mut freed = Vec::new();
        let dropped = self.reader.index.drop_extents(object, first, last, &mut freed);
        self.give_up_all(&freed);
        dropped.map(|()| freed.iter().map(|(_, extent)| extent.blocks()).sum())
    }

    /// The blocks of these extents are not needed any more.
    fn give_up_all(&mut self, extents: &[(u64, Extent)]) {
        for (_, extent) in extents {
            self.reader.buffers.forget_tails(extent.block, extent.blocks());
            self.space.give_up(extent.block, extent.blocks());
        }
    }
}

//! Where the content of objects lies.
//!
//! What it keeps true: the extents of an object do not overlap, and each lies where content may.

use crate::index::Index;
use crate::index::tree::Ways;
use crate::medium::layout::BLOCK;
use crate::space::extent::{Extent, MOST_BLOCKS};
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{Error, ErrorKind, ObjectId, Result};

impl Index {
    /// The extents that lie in `first..last`, wholly or in part, with their first blocks.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<Vec<(u64, Extent)>> {
        let layout = self.layout();
        let mut all = Vec::new();
        let mut from = Some(first.saturating_sub(MOST_BLOCKS - 1));
        while let Some(start) = from.filter(|start| *start < last) {
            let found = self.tree.next(&mut self.reader, &Key::extent(object, start))?;
            let Some((key, value)) = found else { break };
            if key.object != object.0 || !key.is_extent() || key.index >= last {
                break;
            }
            let extent = Extent::decode(value).filter(|extent| layout.holds(extent.block, extent.blocks()));
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

    /// The first extent that reaches behind `at` and begins before `last`.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn next_extent(&mut self, object: ObjectId, at: u64, last: u64) -> Result<Option<(u64, Extent)>> {
        if let Some(found) = self.extents(object, at, at + 1)?.into_iter().next() {
            return Ok(Some(found));
        }
        let key = Key::extent(object, at);
        let index = match self.tree.next(&mut self.reader, &key)? {
            Some((key, _)) if key.object == object.0 && key.is_extent() => key.index,
            _ => return Ok(None),
        };
        if index >= last {
            return Ok(None);
        }
        Ok(self.extents(object, index, index + 1)?.into_iter().next())
    }

    /// Stores where blocks of an object from `at` on lie.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn put_extent(&mut self, object: ObjectId, at: u64, extent: &Extent) -> Result<()> {
        self.tree.put(&mut self.reader, Key::extent(object, at), extent.encode())
    }

    /// The leaves that get the extents of pending blocks change at the checkpoint: they count as
    /// changed now, so that nothing else takes the blocks that they need.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn mark_extents(&mut self, object: ObjectId, first: u64, last: u64) -> Result<()> {
        for block in [first, last.saturating_sub(1)] {
            self.tree.mark(&mut self.reader, &Key::extent(object, block))?;
        }
        Ok(())
    }

    /// Stores where blocks of an object from `at` on lie, one extent behind the other.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn put_extents(&mut self, object: ObjectId, mut at: u64, extents: &[Extent]) -> Result<()> {
        for extent in extents {
            self.put_extent(object, at, extent)?;
            at += extent.blocks();
        }
        Ok(())
    }

    /// Takes the places of blocks in `first..last` out and hands them over, with their first
    /// blocks; also those that were taken out before an error.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn drop_extents(
        &mut self,
        object: ObjectId,
        first: u64,
        last: u64,
        freed: &mut Vec<(u64, Extent)>,
    ) -> Result<()> {
        for (at, extent) in self.extents(object, first, last)? {
            let skip = first.saturating_sub(at);
            let end = extent.blocks().min(last - at);
            let (left, middle) = (extent.part(0, skip), extent.part(skip, end - skip));
            let right = extent.part(end, extent.blocks() - end);
            if left.sums.is_empty() {
                self.tree.remove(&mut self.reader, &Key::extent(object, at))?;
            } else {
                self.put_extent(object, at, &left)?;
            }
            if !right.sums.is_empty() {
                self.put_extent(object, at + end, &right)?;
            }
            freed.push((at + skip, middle));
        }
        Ok(())
    }

    /// Takes an object out, and hands over where its content lay, as
    /// [`drop_extents`](Self::drop_extents) does.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn remove_object(&mut self, object: ObjectId, freed: &mut Vec<(u64, Extent)>) -> Result<()> {
        let layout = self.layout();
        while let Some((key, value)) = self.tree.next(&mut self.reader, &Key::onode(object))? {
            if key.object != object.0 {
                break;
            }
            if key.is_extent() {
                // Its blocks would be in use for ever.
                let extent = Extent::decode(value).filter(|extent| layout.holds(extent.block, extent.blocks()));
                let extent = extent.ok_or_else(|| Error::of(ErrorKind::Corrupt, object, "an extent is damaged"))?;
                freed.push((key.index, extent));
            }
            self.tree.remove(&mut self.reader, &key)?;
        }
        self.objects = self.objects.saturating_sub(1);
        Ok(())
    }

    /// Reads all entries of an object that goes, so that [`remove_object`](Self::remove_object)
    /// cannot fail. Nodes between the first and the last go with it.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn way_of_removal(&mut self, object: ObjectId, ways: &mut Ways) -> Result<()> {
        let mut from = Key::onode(object);
        while let Some((key, value)) = self.tree.next(&mut self.reader, &from)? {
            if key.object != object.0 {
                break;
            }
            if key.is_extent() && Extent::decode(value).is_none() {
                return Err(Error::of(ErrorKind::Corrupt, object, "an extent is damaged"));
            }
            let Some(next) = key.successor() else { break };
            from = next;
        }
        self.way(&from, true, ways)
    }
}

//! What there is: objects, their attributes, and which ranges of one hold data, stored and pending
//! blocks together.

use crate::core::Core;
use crate::index::node::{Key, KeySpace};
use crate::medium::errors::damaged;
use crate::medium::layout::BLOCK;
use crate::space::extent::Extent;
use alloc::format;
use alloc::vec::Vec;
use onode_object::{AttributeKey, ObjectId, Result};

impl Core {
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
        let key = Key::extent(object.0, at);
        let index = match self.tree.next(&mut self.io, &key)? {
            Some((key, _)) if key.object == object.0 && key.space == KeySpace::Extent => key.index,
            _ => return Ok(None),
        };
        if index >= last {
            return Ok(None);
        }
        Ok(self.extents(object, index, index + 1)?.into_iter().next())
    }

    /// The attributes of an object from `from` on, at most `limit`.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub fn attributes(
        &mut self,
        object: ObjectId,
        from: AttributeKey,
        limit: usize,
    ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.known(object)?;
        let mut out = Vec::new();
        let mut from = Some(from);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let Some((key, value)) = self.tree.next(&mut self.io, &Key::attribute(object.0, start))? else { break };
            if key.object != object.0 || key.space != KeySpace::Attribute {
                break;
            }
            out.push((key.attribute_key(), value.to_vec()));
            from = key.attribute_key().next();
        }
        Ok(out)
    }

    /// Objects from `from` on, at most `limit`.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn list(&mut self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut out = Vec::new();
        let mut from = Some(from.0);
        while let Some(start) = from.filter(|_| out.len() < limit) {
            let Some((key, _)) = self.tree.next(&mut self.io, &Key::of(start, KeySpace::Onode))? else { break };
            if key.space != KeySpace::Onode {
                // The rest of an object that has no onode: nothing that could be shown.
                let object = ObjectId(key.object);
                if key.object != start {
                    return Err(damaged(format!("{object} has content and no onode")));
                }
            } else {
                out.push(ObjectId(key.object));
            }
            from = key.object.checked_add(1);
        }
        Ok(out)
    }
}

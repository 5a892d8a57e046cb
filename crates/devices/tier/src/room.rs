//! Whether there is room for a transaction, and everything read that applying it needs.
//!
//! A checkpoint needs new blocks for all that changed while the old ones stay, so what is free must always be enough
//! for one. Estimates are upper bounds.

use crate::core::Core;
use crate::layout::{BLOCK, BLOCK_BYTES};
use crate::node::{CAPACITY, Key, Space as Part};
use crate::onode::{INLINE_BYTES, Onode};
use onode_object::validate::Stored;
use onode_object::{AttributeKey, Mutation, ObjectId, Result, Space, Transaction};

/// What a transaction may cost at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Blocks of content.
    pub blocks: u64,
    /// Bytes that the entries of the tree grow by.
    pub bytes: u64,
    /// Places of the tree that change.
    pub touches: u64,
}

/// Bytes of an extent of one block, with its key.
const EXTENT_BYTES: u64 = 42;

impl Core {
    /// Reads what applying the transaction needs, so that it cannot fail, and says what it may cost.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn prepare(&mut self, transaction: &Transaction) -> Result<Cost> {
        self.prefetched.clear();
        let mut cost = Cost::default();
        for mutation in &transaction.mutations {
            self.prepare_one(mutation, &mut cost)?;
        }
        Ok(cost)
    }

    fn prepare_one(&mut self, mutation: &Mutation, cost: &mut Cost) -> Result<()> {
        let object = mutation.object();
        let onode = self.onode(object)?.unwrap_or_default();
        self.tree.get(&mut self.io, &Key::of(object.0, Part::Inline))?;
        cost.touches += 2;
        match mutation {
            Mutation::Create { .. } => cost.bytes += 90,
            Mutation::SetHints { .. } | Mutation::SetAccessTime { .. } => cost.bytes += 40,
            Mutation::Remove { .. } => {
                cost.touches += 4;
                let mut from = Key::of(object.0, Part::Onode);
                while let Some((key, _)) = self.tree.next(&mut self.io, &from)? {
                    if key.object != object.0 {
                        break;
                    }
                    from = key;
                    match from.index.checked_add(1) {
                        Some(next) => from.index = next,
                        None => (from.kind, from.index) = (from.kind.saturating_add(1), 0),
                    }
                }
            }
            Mutation::Write { offset, data, .. } => {
                let end = offset + data.len() as u64;
                if onode.size.max(end) > INLINE_BYTES || onode.has_blocks {
                    let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
                    let blocks = last - first + 1;
                    cost.blocks += blocks;
                    cost.bytes += EXTENT_BYTES * (blocks + 2);
                    self.prefetch(object, *offset, end, first, last)?;
                } else {
                    cost.bytes += end + 60;
                }
            }
            Mutation::Truncate { size, .. } => {
                self.prefetch(object, *size, onode.size.max(*size), size / BLOCK, u64::MAX)?;
                (cost.blocks, cost.bytes) = (cost.blocks + 1, cost.bytes + 2 * EXTENT_BYTES);
            }
            Mutation::Punch { offset, length, .. } => {
                let end = offset.saturating_add(*length).min(onode.size).max(*offset);
                self.prefetch(object, *offset, end, offset / BLOCK, end.div_ceil(BLOCK))?;
                (cost.blocks, cost.bytes) = (cost.blocks + 2, cost.bytes + 4 * EXTENT_BYTES);
                cost.touches += 2;
            }
            Mutation::SetAttribute { key, value, .. } => {
                self.tree.get(&mut self.io, &Key::attribute(object.0, *key))?;
                cost.bytes += value.len() as u64 + 20;
            }
            Mutation::RemoveAttribute { key, .. } => {
                self.tree.get(&mut self.io, &Key::attribute(object.0, *key))?;
            }
        }
        Ok(())
    }

    /// Reads the nodes of the extents in `first..last`, and the blocks that `from` and `to` lie within.
    fn prefetch(&mut self, object: ObjectId, from: u64, to: u64, first: u64, last: u64) -> Result<()> {
        let extents = self.extents(object, first, last)?;
        for key in [first, last] {
            self.tree.get(&mut self.io, &Key::extent(object.0, key))?;
        }
        for edge in [from, to] {
            let block = edge / BLOCK;
            if edge.is_multiple_of(BLOCK) {
                continue;
            }
            if self.pending.get(object.0, block).is_some() {
                self.prefetch_held(object, block)?;
                continue;
            }
            let holds = |(at, extent): &&(u64, crate::extent::Extent)| (*at..at + extent.blocks()).contains(&block);
            if let Some((at, extent)) = extents.iter().find(holds) {
                let part = extent.part(block - at, 1);
                let bytes = match self.tails.get(part.block, part.born) {
                    Some(bytes) => bytes,
                    None => self.read_stored(object, block, &part)?,
                };
                self.prefetched.insert((part.block, part.born), bytes);
            }
        }
        Ok(())
    }

    /// Blocks that a checkpoint now would need at most, if `more` were applied before.
    fn needed(&self, more: &Cost) -> u64 {
        let counts = self.tree.counts();
        let path = self.tree.height() + 1;
        let pending = self.pending.count();
        let clean = counts.nodes.saturating_sub(counts.dirty);
        let touched = (more.touches + more.blocks + pending).saturating_mul(path).min(clean);
        let grown = (more.bytes + pending * EXTENT_BYTES).div_ceil(CAPACITY as u64 / 2);
        pending + counts.dirty + touched + grown + path + 2
    }

    /// Whether the transaction fits and `reserve` blocks stay free.
    #[must_use]
    pub fn fits(&self, cost: &Cost, reserve: u64) -> bool {
        self.needed(cost).saturating_add(cost.blocks).saturating_add(reserve) <= self.space.free()
    }

    /// Whether a checkpoint would make room.
    #[must_use]
    pub fn can_make_room(&self) -> bool {
        self.space.held() > 0 || self.pending.count() > 0 || self.tree.counts().dirty > 0
    }

    /// Space for users.
    #[must_use]
    pub fn user_space(&self) -> Space {
        let reserve = self.io.layout.reserve_blocks();
        // What extents take in the tree.
        let users = |blocks: u64| (blocks - blocks.div_ceil(128)) * BLOCK;
        let left = self.space.free() + self.space.held();
        let available = users(left.saturating_sub(self.needed(&Cost::default()) + reserve));
        let total = users(self.io.layout.usable_blocks().saturating_sub(reserve));
        Space { total, available: available.min(total), objects: self.objects }
    }
}

/// What [`never_needs_space`](onode_object::validate::never_needs_space) asks.
impl Stored for Core {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        Ok(self.tree.get(&mut self.io, &Key::attribute(object.0, key))?.map(<[u8]>::len))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some(onode) = self.onode(object)? else { return Ok(None) };
        let stored = stored_bytes(self, object, &onode)?;
        Ok((stored >= onode.size).then_some(onode.size))
    }
}

fn stored_bytes(core: &mut Core, object: ObjectId, onode: &Onode) -> Result<u64> {
    Ok(if onode.has_blocks { onode.blocks * BLOCK_BYTES as u64 } else { core.inline(object)?.len() as u64 })
}

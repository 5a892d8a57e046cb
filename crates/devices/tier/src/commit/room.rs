//! Whether there is room for a transaction, and everything read that applying it needs.
//!
//! A checkpoint needs new blocks for all that changed while the old ones stay, so what is free must
//! always be enough for one. Estimates are upper bounds.

use crate::content::buffers::Prefetched;
use crate::content::plan::Source;
use crate::core::Core;
use crate::index::node::{CAPACITY, Key, KeySpace};
use crate::index::onode::{INLINE_BYTES, Onode};
use crate::index::tree::Ways;
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use onode_object::validate::{Stored, never_needs_space};
use onode_object::{AttributeKey, Demand, Mutation, ObjectId, Result, Space, Transaction};

/// What a transaction may cost at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Blocks of content.
    pub blocks: u64,
    /// Those of them that are in no place of ones that are given up.
    pub new_blocks: u64,
    /// Entries of the tree that are put.
    pub puts: u64,
    /// Bytes that they grow by.
    pub bytes: u64,
    /// Content in the tree that grows, or may become blocks.
    pub grows_inline: bool,
    /// Nodes that change.
    pub ways: Ways,
}

/// Bytes of an extent of one block, with its key.
const EXTENT_BYTES: u64 = 42;

impl Core {
    /// Reads what applying the transaction needs, so that it cannot fail, and says what it may
    /// cost. Of that `given` was read already.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn prepare(&mut self, transaction: &Transaction, given: &Prefetched) -> Result<Cost> {
        self.buffers.begin(given);
        let mut cost = Cost::default();
        for mutation in &transaction.mutations {
            self.prepare_one(mutation, &mut cost)?;
        }
        Ok(cost)
    }

    fn prepare_one(&mut self, mutation: &Mutation, cost: &mut Cost) -> Result<()> {
        let object = mutation.object();
        let onode = self.index.onode(object)?.unwrap_or_default();
        let is_cut = matches!(
            mutation,
            Mutation::Remove { .. }
                | Mutation::Truncate { .. }
                | Mutation::Punch { .. }
                | Mutation::RemoveAttribute { .. }
        );
        for part in [KeySpace::Onode, KeySpace::Inline] {
            self.index.way(&Key::of(object.0, part), is_cut, &mut cost.ways)?;
        }
        cost.puts += 1;
        match mutation {
            Mutation::Create { .. } => cost.bytes += 90,
            Mutation::SetHints { .. } | Mutation::SetAccessTime { .. } => cost.bytes += 40,
            Mutation::Remove { .. } => self.index.way_of_removal(object, &mut cost.ways)?,
            Mutation::Write { offset, data, .. } => {
                let end = offset + data.len() as u64;
                if onode.size.max(end) > INLINE_BYTES || onode.has_blocks {
                    let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
                    let blocks = last - first + u64::from(!onode.has_blocks);
                    cost.blocks += blocks;
                    cost.new_blocks += blocks - self.stored_blocks(object, first, last)?.min(blocks);
                    cost.bytes += 3 * EXTENT_BYTES;
                    cost.puts += 3;
                    self.prefetch(object, *offset, end, first, last, cost)?;
                } else {
                    cost.grows_inline |= end > self.index.inline(object)?.len() as u64;
                    cost.bytes += end + 60;
                    cost.puts += 1;
                }
            }
            Mutation::Truncate { size, .. } => {
                self.prefetch(object, *size, onode.size.max(*size), size / BLOCK, u64::MAX, cost)?;
                (cost.blocks, cost.bytes) = (cost.blocks + 1, cost.bytes + 2 * EXTENT_BYTES);
                cost.puts += 2;
            }
            Mutation::Punch { offset, length, .. } => {
                let end = offset.saturating_add(*length).min(onode.size).max(*offset);
                // The last block goes whole.
                let end = if end == onode.size { end.next_multiple_of(BLOCK) } else { end };
                self.prefetch(object, *offset, end, offset / BLOCK, end.div_ceil(BLOCK), cost)?;
                (cost.blocks, cost.bytes) = (cost.blocks + 2, cost.bytes + 4 * EXTENT_BYTES);
                cost.puts += 3;
            }
            Mutation::SetAttribute { key, value, .. } => {
                let before = self.index.attribute(object, *key)?.map(<[u8]>::len);
                self.index.way(&Key::attribute(object.0, *key), false, &mut cost.ways)?;
                if before != Some(value.len()) {
                    cost.bytes += value.len() as u64 + 20;
                    cost.puts += 1;
                }
            }
            Mutation::RemoveAttribute { key, .. } => {
                self.index.way(&Key::attribute(object.0, *key), true, &mut cost.ways)?;
            }
        }
        Ok(())
    }

    /// How many blocks in `first..last` the object has, in their places or without one.
    fn stored_blocks(&mut self, object: ObjectId, first: u64, last: u64) -> Result<u64> {
        let pending = self.buffers.pending().range(object.0, first, last).count() as u64;
        let within =
            |(at, extent): &(u64, crate::space::extent::Extent)| (at + extent.blocks()).min(last) - (*at).max(first);
        Ok(pending + self.index.extents(object, first, last)?.iter().map(within).sum::<u64>())
    }

    /// Reads the nodes of the extents in `first..last`, and the blocks that `from` and `to` lie
    /// within.
    fn prefetch(&mut self, object: ObjectId, from: u64, to: u64, first: u64, last: u64, cost: &mut Cost) -> Result<()> {
        let extents = self.index.extents(object, first, last)?;
        for key in extents.first().map(|(at, _)| *at).into_iter().chain([first, last]) {
            self.index.way(&Key::extent(object.0, key), true, &mut cost.ways)?;
        }
        for edge in [from, to] {
            let block = edge / BLOCK;
            if edge.is_multiple_of(BLOCK) {
                continue;
            }
            if self.buffers.pending().get(object.0, block).is_some() {
                self.buffers.prefetch_held(&self.disks, object, block)?;
                continue;
            }
            let holds =
                |(at, extent): &&(u64, crate::space::extent::Extent)| (*at..at + extent.blocks()).contains(&block);
            if let Some((at, extent)) = extents.iter().find(holds) {
                let part = extent.part(block - at, 1);
                let is_given = self.buffers.prefetched(part.block, part.born).is_some();
                let bytes = match self.buffers.tail(part.block, part.born) {
                    _ if is_given => continue,
                    Some(bytes) => bytes,
                    None if self.index.can_miss() => return self.miss_content(object, block, part),
                    None => self.read_stored(object, block, &part, Source::Any)?,
                };
                self.buffers.prefetch(part.block, part.born, bytes);
            }
        }
        Ok(())
    }

    /// Blocks that a checkpoint now would need at most, if `more` were applied before: those of
    /// content, one for each node that changed, and those of nodes that are split. Each leaf may be
    /// split as soon as something is put into it, and again when it grew by a quarter; leaves that
    /// get the extents of pending content are among those that changed.
    fn needed(&self, more: &Cost) -> u64 {
        let path = self.index.height() + 1;
        let pending = self.buffers.pending().count() + more.blocks;
        let changed = self.index.counts().dirty + more.ways.clean();
        let leaves = changed + more.ways.leaves();
        let grown = (4 * more.bytes + 3 * EXTENT_BYTES * pending).div_ceil(CAPACITY as u64);
        let splits = (more.puts + pending).min(2 * leaves) + grown;
        pending + changed + splits + splits / 16 + path + 2
    }

    /// Whether the transaction fits and `reserve` blocks stay free.
    #[must_use]
    pub fn fits(&self, cost: &Cost, reserve: u64) -> bool {
        self.needed(cost).saturating_add(reserve) <= self.space.free()
    }

    /// Blocks that a transaction leaves free: none if it must not be refused for space, half of
    /// those kept back if it puts as much in the place of what it gives up, all of them otherwise.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn kept_from(&mut self, transaction: &Transaction, cost: &Cost) -> Result<u64> {
        let reserve = self.index.layout().reserve_blocks();
        if never_needs_space(transaction, self)? {
            return Ok(0);
        }
        if cost.new_blocks > 0 || cost.grows_inline {
            return Ok(reserve);
        }
        let is_write = |one: &Mutation| matches!(one, Mutation::Write { .. });
        let others = transaction.mutations.iter().filter(|one| !is_write(one)).cloned().collect();
        let replaces = never_needs_space(&Transaction { mutations: others }, self)?;
        Ok(if replaces { reserve / 2 } else { reserve })
    }

    /// Whether a checkpoint would make room.
    #[must_use]
    pub fn can_make_room(&self) -> bool {
        self.space.held() > 0 || self.buffers.pending().count() > 0 || self.index.counts().dirty > 0
    }

    /// Space for users.
    #[must_use]
    pub fn user_space(&self) -> Space {
        let layout = self.index.layout();
        let kept = layout.reserve_blocks() + layout.working_blocks();
        // What extents take in the tree.
        let users = |blocks: u64| (blocks - blocks.div_ceil(128)) * BLOCK;
        let left = self.space.free() + self.space.held();
        let pending = self.buffers.pending().count();
        let needed = pending + pending / 64 + self.index.counts().dirty + self.index.height() + 3;
        let available = users(left.saturating_sub(needed + kept));
        let total = users(layout.usable_blocks().saturating_sub(kept));
        Space { total, available: available.min(total), objects: self.index.objects() }
    }

    /// What must be left of that for `demand`. What lies in the tree takes up to four times its
    /// bytes, in nodes that were split just now; the nodes on the way are in what is kept back.
    #[must_use]
    pub fn space_for(demand: &Demand) -> u64 {
        const ENTRY_BYTES: u64 = 48;
        let entries = demand.entry_bytes + demand.entries * ENTRY_BYTES;
        if demand.ranges == 0 {
            return 4 * entries;
        }
        if demand.is_new && demand.object_bytes <= INLINE_BYTES {
            return 4 * (entries + demand.object_bytes + ENTRY_BYTES);
        }
        // A block for what was in the tree, and for each range but the first a node on its way.
        let blocks = demand.blocks + u64::from(!demand.is_new) + demand.ranges - 1;
        4 * (entries + EXTENT_BYTES * (demand.blocks + 2)) + blocks * BLOCK
    }
}

/// What [`never_needs_space`](onode_object::validate::never_needs_space) asks.
impl Stored for Core {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        Ok(self.index.attribute(object, key)?.map(<[u8]>::len))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some(onode) = self.index.onode(object)? else { return Ok(None) };
        let stored = stored_bytes(self, object, &onode)?;
        Ok((stored >= onode.size).then_some(onode.size))
    }
}

fn stored_bytes(core: &mut Core, object: ObjectId, onode: &Onode) -> Result<u64> {
    Ok(if onode.has_blocks { onode.blocks * BLOCK_BYTES as u64 } else { core.index.inline(object)?.len() as u64 })
}

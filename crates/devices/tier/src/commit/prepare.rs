//! Everything read that applying a transaction needs, so that it cannot fail, and what the
//! transaction may cost.
//!
//! What it keeps true: nothing is changed here. A block of content that is not in memory ends the
//! walk while that can be begun anew, and is pinned until it was read without the lock.
//!
//! What it does not do: say whether there is room, which is the business of
//! [`room`](crate::commit::room).

mod moves;

use crate::commit::room::{Cost, EXTENT_BYTES};
use crate::content::buffers::Prefetched;
use crate::content::plan::Source;
use crate::content::reader::Reader;
use crate::index::ahead::lacks;
use crate::index::onode::INLINE_BYTES;
use crate::medium::layout::BLOCK;
use crate::space::Space;
use crate::space::extent::Extent;
use core::ops::Range;
use moves::Families;
use onode_engine::Key;
use onode_object::{Mutation, ObjectId, Result, Transaction};

/// What preparing a transaction needs of the state, borrowed side by side.
pub struct Preparation<'a> {
    /// What reads nodes and blocks.
    pub reader: Reader<'a>,
    /// Where blocks are pinned that have to be read first.
    pub space: &'a mut Space,
}

impl Preparation<'_> {
    /// Reads what applying the transaction needs, so that it cannot fail, and says what it may
    /// cost. Of that `given` was read already.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn prepare(&mut self, transaction: &Transaction, given: &Prefetched) -> Result<Cost> {
        self.reader.buffers.begin(given);
        let (mut cost, mut families) = (Cost::default(), Families::default());
        for mutation in &transaction.mutations {
            self.prepare_one(mutation, &mut families, &mut cost)?;
        }
        Ok(cost)
    }

    fn prepare_one(&mut self, mutation: &Mutation, families: &mut Families, cost: &mut Cost) -> Result<()> {
        let object = mutation.object();
        let onode = self.reader.index.onode(object)?.unwrap_or_default();
        let is_cut = matches!(
            mutation,
            Mutation::Remove { .. }
                | Mutation::Truncate { .. }
                | Mutation::Punch { .. }
                | Mutation::RemoveAttribute { .. }
        );
        for key in [Key::onode(object), Key::inline(object)] {
            self.reader.index.way(&key, is_cut, &mut cost.ways)?;
        }
        // What only goes puts nothing, so no node is split for it.
        let only_goes = matches!(mutation, Mutation::Remove { .. } | Mutation::RemoveAttribute { .. });
        cost.puts += u64::from(!only_goes);
        match mutation {
            Mutation::Create { .. } => cost.bytes += 90,
            Mutation::Move { offset, length, to, .. } => {
                let range = *offset..offset.saturating_add(*length);
                self.prepare_move(families, object, range, *to, cost)?;
            }
            Mutation::SetHints { .. } | Mutation::SetAccessTime { .. } => cost.bytes += 40,
            Mutation::Remove { .. } => self.reader.index.way_of_removal(object, &mut cost.ways)?,
            Mutation::Write { offset, data, .. } => {
                let end = offset + data.len() as u64;
                if onode.size.max(end) > INLINE_BYTES || onode.has_blocks {
                    let (first, last) = (offset / BLOCK, end.div_ceil(BLOCK));
                    let blocks = last - first + u64::from(!onode.has_blocks);
                    cost.blocks += blocks;
                    cost.new_blocks += blocks - self.stored_blocks(object, first, last)?.min(blocks);
                    cost.bytes += 3 * EXTENT_BYTES;
                    cost.puts += 3;
                    self.prefetch(object, *offset..end, first..last, cost)?;
                } else {
                    cost.grows_inline |= end > self.reader.index.inline(object)?.len() as u64;
                    cost.bytes += end + 60;
                    cost.puts += 1;
                }
            }
            Mutation::Truncate { size, .. } => {
                self.prefetch(object, *size..onode.size.max(*size), size / BLOCK..u64::MAX, cost)?;
                (cost.blocks, cost.bytes) = (cost.blocks + 1, cost.bytes + 2 * EXTENT_BYTES);
                cost.puts += 2;
            }
            Mutation::Punch { offset, length, .. } => {
                let end = offset.saturating_add(*length).min(onode.size).max(*offset);
                // The last block goes whole.
                let end = if end == onode.size { end.next_multiple_of(BLOCK) } else { end };
                self.prefetch(object, *offset..end, offset / BLOCK..end.div_ceil(BLOCK), cost)?;
                (cost.blocks, cost.bytes) = (cost.blocks + 2, cost.bytes + 4 * EXTENT_BYTES);
                cost.puts += 3;
            }
            Mutation::SetAttribute { key, value, .. } => {
                let before = self.reader.index.attribute(object, *key)?.map(<[u8]>::len);
                self.reader.index.way(&Key::attribute(object, *key), false, &mut cost.ways)?;
                if before != Some(value.len()) {
                    cost.bytes += value.len() as u64 + 20;
                    cost.puts += 1;
                }
            }
            Mutation::RemoveAttribute { key, .. } => {
                self.reader.index.way(&Key::attribute(object, *key), true, &mut cost.ways)?;
            }
        }
        Ok(())
    }

    /// How many blocks in `first..last` the object has, in their places or without one.
    fn stored_blocks(&mut self, object: ObjectId, first: u64, last: u64) -> Result<u64> {
        let pending = self.reader.buffers.pending().range(object.0, first, last).count() as u64;
        let within = |(at, extent): &(u64, Extent)| (at + extent.blocks()).min(last) - (*at).max(first);
        Ok(pending + self.reader.index.extents(object, first, last)?.iter().map(within).sum::<u64>())
    }

    /// Reads the nodes of the extents in these `blocks`, and the blocks that the ends of the range
    /// of `bytes` lie within.
    fn prefetch(&mut self, object: ObjectId, bytes: Range<u64>, blocks: Range<u64>, cost: &mut Cost) -> Result<()> {
        let extents = self.reader.index.extents(object, blocks.start, blocks.end)?;
        for key in extents.first().map(|(at, _)| *at).into_iter().chain([blocks.start, blocks.end]) {
            self.reader.index.way(&Key::extent(object, key), true, &mut cost.ways)?;
        }
        for edge in [bytes.start, bytes.end] {
            let block = edge / BLOCK;
            if edge.is_multiple_of(BLOCK) {
                continue;
            }
            if self.reader.buffers.pending().get(object.0, block).is_some() {
                self.reader.buffers.prefetch_held(self.reader.disks, object, block)?;
                continue;
            }
            let holds = |(at, extent): &&(u64, Extent)| (*at..at + extent.blocks()).contains(&block);
            if let Some((at, extent)) = extents.iter().find(holds) {
                let part = extent.part(block - at, 1);
                let is_given = self.reader.buffers.prefetched(part.block, part.born).is_some();
                let bytes = match self.reader.buffers.tail(part.block, part.born) {
                    _ if is_given => continue,
                    Some(bytes) => bytes,
                    None if self.reader.index.can_miss() => return self.miss_content(object, block, part),
                    None => self.reader.read_stored(object, block, &part, Source::Any)?,
                };
                self.reader.buffers.prefetch(part.block, part.born, bytes);
            }
        }
        Ok(())
    }

    /// A block is lacking that is to be changed in part: it is read without the lock.
    ///
    /// # Errors
    /// That it is lacking.
    fn miss_content(&mut self, object: ObjectId, block: u64, extent: Extent) -> Result<()> {
        let plan = self.reader.plan_run(object, block, extent)?;
        plan.pin(self.space);
        self.reader.buffers.note_miss(plan);
        Err(lacks())
    }
}

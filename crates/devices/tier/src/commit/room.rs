//! Whether there is room for a transaction.
//!
//! A checkpoint needs new blocks for all that changed while the old ones stay, so what is free must
//! always be enough for one. Estimates are upper bounds.
//!
//! What it does not do: read what a transaction needs, see [`prepare`](crate::commit::prepare).

use crate::content::pending::Pending;
use crate::index::Index;
use crate::index::node::CAPACITY;
use crate::index::onode::INLINE_BYTES;
use crate::index::tree::Ways;
use crate::medium::layout::{BLOCK, Layout};
use crate::space::Space;
use onode_object::validate::never_needs_space;
use onode_object::{Demand, Mutation, Result, Space as UserSpace, Transaction};

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
pub const EXTENT_BYTES: u64 = 42;

impl Cost {
    /// Blocks that a transaction leaves free: none if it must not be refused for space, half of the
    /// `reserve` kept back if it puts as much in the place of what it gives up, all of them
    /// otherwise.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn kept_from(&self, reserve: u64, index: &mut Index, transaction: &Transaction) -> Result<u64> {
        if never_needs_space(transaction, index)? {
            return Ok(0);
        }
        if self.new_blocks > 0 || self.grows_inline {
            return Ok(reserve);
        }
        let is_write = |one: &Mutation| matches!(one, Mutation::Write { .. });
        let others = transaction.mutations.iter().filter(|one| !is_write(one)).cloned().collect();
        let replaces = never_needs_space(&Transaction { mutations: others }, index)?;
        Ok(if replaces { reserve / 2 } else { reserve })
    }
}

/// What there is room in, borrowed side by side.
pub struct Headroom<'a> {
    /// The tree.
    pub index: &'a Index,
    /// Free space.
    pub space: &'a Space,
    /// Content without a place.
    pub pending: &'a Pending,
}

impl Headroom<'_> {
    /// Blocks that a checkpoint now would need at most, if `more` were applied before: those of
    /// content, one for each node that changed, and those of nodes that are split. Each leaf may be
    /// split as soon as something is put into it, and again when it grew by a quarter; leaves that
    /// get the extents of pending content are among those that changed.
    fn needed(&self, more: &Cost) -> u64 {
        let path = self.index.height() + 1;
        let pending = self.pending.count() + more.blocks;
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

    /// Whether a checkpoint would make room.
    #[must_use]
    pub fn can_make_room(&self) -> bool {
        self.space.held() > 0 || self.pending.count() > 0 || self.index.counts().dirty > 0
    }

    /// Whether everything has room in a volume of this layout, which is smaller: also if the places
    /// of all content that moves are holes of a block.
    #[must_use]
    pub fn is_enough(&self, smaller: &Layout) -> bool {
        let used = self.space.used();
        let kept = smaller.reserve_blocks() + smaller.working_blocks();
        used + used / 64 + self.needed(&Cost::default()) + kept <= smaller.usable_blocks()
    }

    /// Space for users.
    #[must_use]
    pub fn user_space(&self) -> UserSpace {
        let layout = self.space.target();
        let kept = layout.reserve_blocks() + layout.working_blocks();
        // What extents take in the tree.
        let users = |blocks: u64| (blocks - blocks.div_ceil(128)) * BLOCK;
        let left = self.space.free_with_held();
        let pending = self.pending.count();
        let needed = pending + pending / 64 + self.index.counts().dirty + self.index.height() + 3;
        let available = users(left.saturating_sub(needed + kept));
        let total = users(layout.usable_blocks().saturating_sub(kept));
        UserSpace { total, available: available.min(total), objects: self.index.objects() }
    }
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

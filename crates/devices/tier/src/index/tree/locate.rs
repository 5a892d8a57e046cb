//! Entries, and which nodes on the way to them lie behind a block.

use super::edit::empty_inner;
use super::{ReadNodes, Tree, Walk};
use crate::index::node::{Child, Items};
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::Result;

/// Nodes that lie at a block or behind it.
pub struct FarNodes {
    /// That block.
    end: u64,
    /// The blocks of those on the way that was walked last.
    pub blocks: Vec<u64>,
}

impl FarNodes {
    /// None yet; no node lies behind the last block.
    #[must_use]
    pub const fn behind(end: u64) -> Self {
        Self { end, blocks: Vec::new() }
    }
}

impl Tree {
    /// The first entry at or after `from`, and the nodes on the way to it that are `far`.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn locate(&mut self, io: &mut dyn ReadNodes, from: &Key, far: &mut FarNodes) -> Result<Option<(Key, &[u8])>> {
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        far.blocks.clear();
        match self.root.as_mut() {
            Some(root) => walk.locate(root, None, from, far),
            None => Ok(None),
        }
    }
}

impl Walk<'_> {
    fn locate<'c>(
        &mut self,
        child: &'c mut Child,
        level: Option<u16>,
        from: &Key,
        far: &mut FarNodes,
    ) -> Result<Option<(Key, &'c [u8])>> {
        let block = child.block;
        let node = self.load(child, level)?;
        let below = node.level.checked_sub(1);
        let mut found = None;
        match &mut node.items {
            Items::Leaf(items) => {
                let at = items.partition_point(|(key, _)| key < from);
                found = items.get(at).map(|(key, value)| (*key, &value[..]));
            }
            Items::Inner(items) => {
                if items.is_empty() {
                    return Err(empty_inner());
                }
                let at = items.partition_point(|(at, _)| at <= from).saturating_sub(1);
                for (_, next) in items.iter_mut().skip(at) {
                    found = self.locate(next, below, from, far)?;
                    if found.is_some() {
                        break;
                    }
                }
            }
        }
        if found.is_some() && block >= far.end {
            far.blocks.push(block);
        }
        Ok(found)
    }
}

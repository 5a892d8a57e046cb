//! What changes of some entries would touch: every node on the ways to them gets a new block at the
//! next checkpoint.

use super::edit::empty_inner;
use super::{ReadNodes, Tree, Walk};
use crate::index::node::{Child, Items};
use alloc::collections::BTreeSet;
use onode_engine::Key;
use onode_object::Result;

/// The nodes on the ways to some entries, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Blocks of those that are as on the medium.
    clean: BTreeSet<u64>,
    /// Leaves, by the first key in them.
    leaves: BTreeSet<Key>,
}

impl Ways {
    /// Nodes that have to get a new block.
    #[must_use]
    pub fn clean(&self) -> u64 {
        self.clean.len() as u64
    }

    /// Leaves in which entries change.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.leaves.len() as u64
    }
}

impl Tree {
    /// Adds the nodes that change if the entry of `key` does. If it is taken away, each of them may
    /// be merged with a neighbour.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn way(&mut self, io: &mut dyn ReadNodes, key: &Key, is_removed: bool, ways: &mut Ways) -> Result<()> {
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        let Some(mut child) = self.root.as_mut() else { return Ok(()) };
        let mut level = None;
        loop {
            if child.block != 0 {
                ways.clean.insert(child.block);
            }
            let node = walk.load(child, level)?;
            level = node.level.checked_sub(1);
            match &mut node.items {
                Items::Leaf(items) => {
                    ways.leaves.extend(items.first().map(|(first, _)| *first));
                    return Ok(());
                }
                Items::Inner(items) => {
                    let at = items.partition_point(|(at, _)| at <= key).saturating_sub(1);
                    let beside = if at > 0 { at - 1 } else { at + 1 };
                    if let Some((_, beside)) = items.get(beside).filter(|(_, it)| is_removed && it.block != 0) {
                        ways.clean.insert(beside.block);
                    }
                    child = items.get_mut(at).map(|(_, next)| next).ok_or_else(empty_inner)?;
                }
            }
        }
    }

    /// The leaf that an entry of `key` belongs to will change: it counts as changed from now on.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn mark(&mut self, io: &mut dyn ReadNodes, key: &Key) -> Result<()> {
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        self.root.as_mut().map_or(Ok(()), |root| walk.mark(root, None, key))
    }
}

impl Walk<'_> {
    fn mark(&mut self, child: &mut Child, level: Option<u16>, key: &Key) -> Result<()> {
        let node = self.load(child, level)?;
        let below = node.level.checked_sub(1);
        if let Items::Inner(items) = &mut node.items {
            let at = items.partition_point(|(at, _)| at <= key).saturating_sub(1);
            let (_, next) = items.get_mut(at).ok_or_else(empty_inner)?;
            self.mark(next, below, key)?;
        }
        self.touch(child);
        Ok(())
    }
}

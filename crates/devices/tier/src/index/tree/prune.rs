//! Nodes that cannot be read are taken out of the tree, so that the rest can be changed.

use super::edit::drop_dirty;
use super::{ReadNodes, Tree, Walk};
use crate::index::node::{Child, INNER_BYTES, Items};
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{ErrorKind, Result};

/// Entries that went with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The first key that they may have had.
    pub from: Key,
    /// The first key behind them; `None` if nothing is.
    pub until: Option<Key>,
}

impl Tree {
    /// Takes out every node that is damaged or cannot be read, with all that is below it; returns
    /// what went. Nothing is written, and everything that is left can be read.
    ///
    /// # Errors
    /// `Media` if the root cannot be read: a disk that fails has lost nothing yet.
    pub fn prune(&mut self, io: &mut dyn ReadNodes) -> Result<Vec<Lost>> {
        let mut lost = Vec::new();
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        let Some(root) = self.root.as_mut() else { return Ok(lost) };
        if let Err(error) = walk.load(root, None)
            && error.kind != ErrorKind::Corrupt
        {
            return Err(error);
        }
        if !walk.prune(root, None, Lost { from: Key::default(), until: None }, &mut lost) {
            self.root = None;
        }
        // A root with a single child is none.
        while let Some(root) = self.root.as_mut()
            && let Some(Items::Inner(items)) = root.node.as_mut().map(|node| &mut node.items)
            && items.len() == 1
            && root.block == 0
        {
            self.root = items.pop().map(|(_, child)| child);
            drop_dirty(&mut self.counts);
        }
        self.visit(io, &mut |_| Ok(()))?;
        Ok(lost)
    }
}

impl Walk<'_> {
    /// Whether anything is left of `child`, whose entries lie in `range`.
    fn prune(&mut self, child: &mut Child, level: Option<u16>, range: Lost, lost: &mut Vec<Lost>) -> bool {
        let was_cached = child.node.is_some();
        let Ok(node) = self.load(child, level) else {
            lost.push(range);
            return false;
        };
        let below = node.level.checked_sub(1);
        if let Items::Inner(items) = &mut node.items {
            let before = items.len();
            let keys: Vec<Key> = items.iter().map(|(key, _)| *key).collect();
            let mut number = 0;
            items.retain_mut(|(_, next)| {
                let from = if number == 0 { range.from } else { keys.get(number).copied().unwrap_or_default() };
                let until = keys.get(number + 1).copied().or(range.until);
                number += 1;
                self.prune(next, below, Lost { from, until }, lost)
            });
            let (left, gone) = (items.len(), before - items.len());
            node.bytes -= gone * INNER_BYTES;
            if gone > 0 {
                self.touch(child);
            }
            if left == 0 {
                drop_dirty(self.counts);
                return false;
            }
        }
        if !was_cached && child.block != 0 {
            child.node = None;
            self.counts.cached -= 1;
        }
        true
    }
}

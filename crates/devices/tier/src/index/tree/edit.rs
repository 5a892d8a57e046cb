//! Changes of the tree: entries are put and removed, nodes split and merged, in memory.

use super::{Counts, ReadNodes, Tree, Walk};
use crate::index::node::{CAPACITY, Child, INNER_BYTES, Items, Node, leaf_bytes};
use crate::medium::errors::{bug, damaged};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{Error, Result};

/// Nodes with less are merged with a neighbour if both fit well into one.
const MERGE_BELOW: usize = CAPACITY / 3;
/// What a merged node may hold.
const MERGE_UP_TO: usize = CAPACITY * 3 / 4;

impl Tree {
    /// Puts a value, in place of what the key has.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn put(&mut self, io: &mut dyn ReadNodes, key: Key, value: Vec<u8>) -> Result<()> {
        if self.root.is_none() {
            self.counts.nodes += 1;
            self.counts.dirty += 1;
            self.counts.cached += 1;
        }
        let first = || Child { node: Some(Box::new(Node::leaf())), ..Child::default() };
        let root = self.root.get_or_insert_with(first);
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        let Some((right_key, right)) = walk.put(root, None, key, value)? else { return Ok(()) };
        let level = root.node.as_ref().map(|node| node.level + 1).ok_or_else(|| bug("the root is not in memory"))?;
        let left = core::mem::take(root);
        let items = Items::Inner(vec![(Key::default(), left), (right_key, right)]);
        let node = Node { level, items, bytes: 2 * INNER_BYTES, used: self.round };
        root.node = Some(Box::new(node));
        self.counts.nodes += 1;
        self.counts.dirty += 1;
        self.counts.cached += 1;
        Ok(())
    }

    /// Removes a key; says whether it was there.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn remove(&mut self, io: &mut dyn ReadNodes, key: &Key) -> Result<bool> {
        let Some(root) = self.root.as_mut() else { return Ok(false) };
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        if !walk.remove(root, None, key)? {
            return Ok(false);
        }
        loop {
            let Some(root) = self.root.as_mut() else { return Ok(true) };
            let Some(node) = root.node.as_mut() else { return Ok(true) };
            if node.count() == 0 {
                self.root = None;
            } else if let Items::Inner(items) = &mut node.items
                && items.len() == 1
            {
                self.root = items.pop().map(|(_, child)| child);
            } else {
                return Ok(true);
            }
            drop_dirty(&mut self.counts);
        }
    }
}

/// A node above the leaves has nothing below it: what should be there would be taken for never
/// written.
pub(super) fn empty_inner() -> Error {
    damaged("a node above the leaves is empty")
}

/// A node that was changed, and so has no block, goes.
pub(super) const fn drop_dirty(counts: &mut Counts) {
    counts.nodes = counts.nodes.saturating_sub(1);
    counts.dirty = counts.dirty.saturating_sub(1);
    counts.cached = counts.cached.saturating_sub(1);
}

impl Walk<'_> {
    /// The node will be changed: it gives up its block.
    pub(super) fn touch(&mut self, child: &mut Child) {
        if child.block != 0 {
            self.freed.push(child.block);
            child.block = 0;
            self.counts.dirty += 1;
        }
    }

    /// Puts an entry below `child`; returns the right half if the node had to be split.
    fn put(&mut self, child: &mut Child, level: Option<u16>, key: Key, value: Vec<u8>) -> Result<Option<(Key, Child)>> {
        let node = self.load(child, level)?;
        let below = node.level.checked_sub(1);
        let mut is_last = false;
        match &mut node.items {
            Items::Leaf(items) => {
                node.bytes += leaf_bytes(&value);
                match items.binary_search_by(|(at, _)| at.cmp(&key)) {
                    Ok(at) => {
                        let (_, old) = items.get_mut(at).ok_or_else(|| bug("an entry that was found is gone"))?;
                        node.bytes -= leaf_bytes(old);
                        *old = value;
                    }
                    Err(at) => {
                        is_last = at == items.len();
                        items.insert(at, (key, value));
                    }
                }
            }
            Items::Inner(items) => {
                let at = items.partition_point(|(at, _)| *at <= key).saturating_sub(1);
                let last = items.len().saturating_sub(1);
                // The entry must not be lost with a node that has no place for it.
                let (least, next) = items.get_mut(at).ok_or_else(empty_inner)?;
                let split = self.put(next, below, key, value)?;
                *least = (*least).min(key);
                if let Some(right) = split {
                    is_last = at == last;
                    items.insert(at + 1, right);
                    node.bytes += INNER_BYTES;
                }
            }
        }
        self.touch(child);
        self.split(child, is_last)
    }

    /// Splits a node that is too full: in the middle, or before the last entry if that came in just
    /// now, so that entries that come in order fill their nodes.
    fn split(&mut self, child: &mut Child, before_last: bool) -> Result<Option<(Key, Child)>> {
        let node = child.node.as_mut().ok_or_else(|| bug("a node that was changed is not in memory"))?;
        if node.bytes <= CAPACITY {
            return Ok(None);
        }
        if node.count() < 2 {
            return Err(bug("an entry is larger than a node"));
        }
        let no_right_half = || bug("a node was split into one");
        let (key, items, bytes) = match &mut node.items {
            Items::Leaf(items) => {
                let mut left = 0;
                let middle = items.iter().position(|(_, value)| {
                    left += leaf_bytes(value);
                    left > CAPACITY / 2
                });
                let at = if before_last { items.len() - 1 } else { middle.unwrap_or(0) };
                let right = items.split_off(at.clamp(1, items.len() - 1));
                let bytes = right.iter().map(|(_, value)| leaf_bytes(value)).sum();
                (right.first().ok_or_else(no_right_half)?.0, Items::Leaf(right), bytes)
            }
            Items::Inner(items) => {
                let at = if before_last { items.len() - 1 } else { items.len() / 2 };
                let right = items.split_off(at.clamp(1, items.len() - 1));
                (right.first().ok_or_else(no_right_half)?.0, Items::Inner(right), 0)
            }
        };
        let bytes = if bytes == 0 { items_bytes(&items) } else { bytes };
        node.bytes -= bytes;
        let right = Node { level: node.level, items, bytes, used: self.round };
        self.counts.nodes += 1;
        self.counts.dirty += 1;
        self.counts.cached += 1;
        Ok(Some((key, Child { node: Some(Box::new(right)), ..Child::default() })))
    }

    fn remove(&mut self, child: &mut Child, level: Option<u16>, key: &Key) -> Result<bool> {
        let node = self.load(child, level)?;
        let below = node.level.checked_sub(1);
        match &mut node.items {
            Items::Leaf(items) => {
                let Ok(at) = items.binary_search_by(|(at, _)| at.cmp(key)) else { return Ok(false) };
                let (_, old) = items.remove(at);
                node.bytes -= leaf_bytes(&old);
            }
            Items::Inner(items) => {
                let at = items.partition_point(|(at, _)| at <= key).saturating_sub(1);
                let (_, next) = items.get_mut(at).ok_or_else(empty_inner)?;
                if !self.remove(next, below, key)? {
                    return Ok(false);
                }
                let bytes = next.node.as_ref().map_or(CAPACITY, |node| node.bytes);
                if bytes == 0 {
                    items.remove(at);
                    drop_dirty(self.counts);
                    node.bytes -= INNER_BYTES;
                } else if bytes < MERGE_BELOW {
                    // A neighbour that cannot be read stays alone.
                    let left = if at > 0 { at - 1 } else { at };
                    if self.merge(items, left, below)? {
                        node.bytes -= INNER_BYTES;
                    }
                }
            }
        }
        self.touch(child);
        Ok(true)
    }

    /// Joins the nodes at `left` and behind it if they fit well into one.
    fn merge(&mut self, items: &mut Vec<(Key, Child)>, left: usize, level: Option<u16>) -> Result<bool> {
        let Some([(_, one), (_, two)]) = items.get_mut(left..left + 2) else { return Ok(false) };
        let (Ok(first), Ok(second)) = (self.load(one, level).map(|it| it.bytes), self.load(two, level)) else {
            return Ok(false);
        };
        if first + second.bytes > MERGE_UP_TO {
            return Ok(false);
        }
        self.touch(one);
        self.touch(two);
        let (_, gone) = items.remove(left + 1);
        let to = items.get_mut(left).and_then(|(_, stays)| stays.node.as_mut());
        // Both were loaded just now, as nodes of one level.
        let (Some(to), Some(from)) = (to, gone.node) else { return Err(bug("a node to be merged is not in memory")) };
        to.bytes += from.bytes;
        match (&mut to.items, from.items) {
            (Items::Leaf(to), Items::Leaf(from)) => to.extend(from),
            (Items::Inner(to), Items::Inner(from)) => to.extend(from),
            _ => return Err(bug("nodes of two kinds lie on one level")),
        }
        drop_dirty(self.counts);
        Ok(true)
    }
}

fn items_bytes(items: &Items) -> usize {
    match items {
        Items::Leaf(items) => items.iter().map(|(_, value)| leaf_bytes(value)).sum(),
        Items::Inner(items) => items.len() * INNER_BYTES,
    }
}

//! Nodes that changed and lie side by side share their entries, so that they take fewer blocks.
//!
//! A node that is split leaves two that are half full. What a checkpoint writes gets new blocks
//! anyway, so that is the time to make good for it: otherwise files that grew one after the other
//! would leave half of a full disk unused.

use super::edit::drop_dirty;
use super::{Counts, Tree};
use crate::index::node::{CAPACITY, Child, INNER_BYTES, Items, Node, leaf_bytes};
use crate::medium::errors::bug;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use onode_engine::Key;
use onode_object::Result;

/// What leaves are filled up to; the rest is for entries that grow.
const LEAF_UP_TO: usize = CAPACITY / 8 * 7;
/// The same for the nodes above, into which more come.
const INNER_UP_TO: usize = CAPACITY / 4 * 3;

impl Tree {
    /// Packs what has no block yet.
    ///
    /// # Errors
    /// `Bug`, after which nothing may be written.
    pub fn pack(&mut self) -> Result<()> {
        let Some(root) = self.root.as_mut() else { return Ok(()) };
        pack_below(root, &mut self.counts)?;
        loop {
            let Some(Items::Inner(items)) =
                self.root.as_mut().and_then(|root| root.node.as_mut()).map(|it| &mut it.items)
            else {
                return Ok(());
            };
            if items.len() != 1 {
                return Ok(());
            }
            self.root = items.pop().map(|(_, child)| child);
            drop_dirty(&mut self.counts);
        }
    }
}

fn pack_below(child: &mut Child, counts: &mut Counts) -> Result<()> {
    let Some(node) = child.node.as_mut().filter(|_| child.block == 0) else { return Ok(()) };
    let Items::Inner(items) = &mut node.items else { return Ok(()) };
    items.iter_mut().try_for_each(|(_, below)| pack_below(below, counts))?;
    let mut from = 0;
    while from < items.len() {
        let is_changed = |(_, child): &&(Key, Child)| child.block == 0 && child.node.is_some();
        let run = items.get(from..).unwrap_or_default().iter().take_while(is_changed).count();
        let packed = if run > 1 { pack(items, from..from + run)? } else { None };
        let left = packed.unwrap_or(run);
        for _ in left..run {
            drop_dirty(counts);
            node.bytes -= INNER_BYTES;
        }
        from += left + 1;
    }
    Ok(())
}

/// Shares out the entries of the nodes in `run` anew; how many there are then, if that is fewer.
fn pack(items: &mut Vec<(Key, Child)>, run: Range<usize>) -> Result<Option<usize>> {
    let nodes = || items.get(run.clone()).unwrap_or_default().iter().filter_map(|(_, child)| child.node.as_ref());
    let no_run = || bug("nodes to be packed are not there");
    let (level, used) = nodes().next().map(|node| (node.level, node.used)).ok_or_else(no_run)?;
    // What is taken apart here must all be put together again.
    let is_leaf = |node: &Node| matches!(node.items, Items::Leaf(_));
    if nodes().count() != run.len() || nodes().any(|node| node.level != level || is_leaf(node) != (level == 0)) {
        return Err(no_run());
    }
    let most = if level == 0 { LEAF_UP_TO } else { INNER_UP_TO };
    let mut sizes = nodes().flat_map(|node| match &node.items {
        Items::Leaf(items) => items.iter().map(|(_, value)| leaf_bytes(value)).collect::<Vec<_>>(),
        Items::Inner(items) => items.iter().map(|_| INNER_BYTES).collect(),
    });
    let (mut filled, mut count) = (usize::MAX, 0);
    sizes.by_ref().for_each(|size| {
        let fits = filled <= most && filled + size <= most;
        (filled, count) = if fits { (filled + size, count) } else { (size, count + 1) };
    });
    drop(sizes);
    if count >= run.len() {
        return Ok(None);
    }
    let least = items.get(run.start).map(|(least, _)| *least).ok_or_else(no_run)?;
    let before: Vec<Node> = items.drain(run.clone()).filter_map(|(_, child)| child.node).map(|node| *node).collect();
    let mut packed: Vec<(Key, Node)> = Vec::with_capacity(count);
    let mut put = |key: Key, size: usize, entry: PackedEntry| {
        if packed.last().is_none_or(|(_, node)| node.bytes + size > most) {
            let items = if level == 0 { Items::Leaf(Vec::new()) } else { Items::Inner(Vec::new()) };
            let key = if packed.is_empty() { least.min(key) } else { key };
            packed.push((key, Node { level, items, bytes: 0, used }));
        }
        let Some((_, node)) = packed.last_mut() else { return };
        node.bytes += size;
        match (&mut node.items, entry) {
            (Items::Leaf(to), PackedEntry::Value(value)) => to.push((key, value)),
            (Items::Inner(to), PackedEntry::Child(child)) => to.push((key, child)),
            _ => {}
        }
    };
    for node in before {
        match node.items {
            Items::Leaf(all) => {
                all.into_iter().for_each(|(key, value)| put(key, leaf_bytes(&value), PackedEntry::Value(value)));
            }
            Items::Inner(all) => {
                all.into_iter().for_each(|(key, child)| put(key, INNER_BYTES, PackedEntry::Child(child)));
            }
        }
    }
    let count = packed.len();
    let packed = packed.into_iter().map(|(key, node)| (key, Child { node: Some(Box::new(node)), ..Child::default() }));
    items.splice(run.start..run.start, packed);
    Ok(Some(count))
}

/// What stands in a node beside its key.
enum PackedEntry {
    Value(Vec<u8>),
    Child(Child),
}

//! Changed nodes get blocks, and everything below a root is visited.

use super::{ReadNodes, Tree, Walk};
use crate::index::node::{Child, Items};
use crate::medium::errors::bug;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_engine::Key;
use onode_object::Result;

/// What a visit tells of.
pub enum Visited<'a> {
    /// A node lies in this block.
    Node(u64),
    /// An entry.
    Entry(&'a Key, &'a [u8]),
}

/// A node that changed and has got a block.
#[derive(Debug)]
pub struct ChangedNode {
    /// The block.
    pub block: u64,
    /// Its checksum.
    pub crc: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Tree {
    /// Gives every changed node a block from `allocate`; returns what is to be written.
    ///
    /// # Errors
    /// Those of `allocate`.
    pub fn write_changed(&mut self, allocate: &mut dyn FnMut() -> Result<u64>) -> Result<Vec<ChangedNode>> {
        let mut out = Vec::new();
        if let Some(root) = self.root.as_mut() {
            write_changed(root, allocate, &mut out)?;
        }
        self.counts.dirty = 0;
        Ok(out)
    }

    /// Tells of every node that has a block and every entry, in order, and counts the nodes anew.
    ///
    /// # Errors
    /// If a node cannot be read; those of `each`.
    pub fn visit(&mut self, io: &mut dyn ReadNodes, each: &mut dyn FnMut(Visited<'_>) -> Result<()>) -> Result<()> {
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        let mut nodes = 0;
        if let Some(root) = self.root.as_mut() {
            walk.visit(root, None, &mut nodes, each)?;
        }
        self.counts.nodes = nodes;
        Ok(())
    }
}

fn write_changed(
    child: &mut Child,
    allocate: &mut dyn FnMut() -> Result<u64>,
    out: &mut Vec<ChangedNode>,
) -> Result<()> {
    if child.block != 0 {
        return Ok(());
    }
    // It would be written as a reference to block 0, and all below it be gone.
    let node = child.node.as_mut().ok_or_else(|| bug("a node that changed is not in memory"))?;
    if let Items::Inner(items) = &mut node.items {
        for (_, below) in items {
            write_changed(below, allocate, out)?;
        }
    }
    let bytes = node.encode();
    let crc = crc32c(&bytes);
    let block = allocate()?;
    (child.block, child.crc) = (block, crc);
    out.push(ChangedNode { block, crc, bytes });
    Ok(())
}

impl Walk<'_> {
    fn visit(
        &mut self,
        child: &mut Child,
        level: Option<u16>,
        nodes: &mut u64,
        each: &mut dyn FnMut(Visited<'_>) -> Result<()>,
    ) -> Result<()> {
        let block = child.block;
        let was_cached = child.node.is_some();
        *nodes += 1;
        if block != 0 {
            each(Visited::Node(block))?;
        }
        let node = self.load(child, level)?;
        let below = node.level.checked_sub(1);
        match &mut node.items {
            Items::Leaf(items) => items.iter().try_for_each(|(key, value)| each(Visited::Entry(key, value)))?,
            Items::Inner(items) => {
                for (_, next) in items {
                    self.visit(next, below, nodes, each)?;
                }
            }
        }
        if !was_cached {
            child.node = None;
            self.counts.cached -= 1;
        }
        Ok(())
    }
}

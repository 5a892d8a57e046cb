//! The copy-on-write B+tree that holds everything but large content.
//!
//! Nodes are changed in memory, get new blocks at the checkpoint, and keep their old ones until
//! that is durable. A reference holds the checksum of the node it names. Changed nodes stay in
//! memory until the checkpoint; what is as on the medium may be dropped by [`Tree::evict`] at any
//! time between operations.
//!
//! An operation that cannot read a node fails and changes nothing. What one operation has read, the
//! next does not read again unless something was evicted in between: so looking at everything first
//! makes a series of changes safe.

mod edit;
mod locate;
mod pack;
mod prune;
#[cfg(test)]
mod tests;
mod way;
mod write;

pub use locate::FarNodes;
pub use prune::Lost;
pub use way::Ways;
pub use write::{ChangedNode, Visited};

use crate::index::node::{Child, Items, MOST_LEVELS, Node};
use crate::medium::errors::damaged;
use crate::medium::layout::Layout;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_base::planted::{Bug, is_planted};
use onode_engine::Key;
use onode_object::Result;

/// Where nodes are read from.
pub trait ReadNodes {
    /// The block of a node, whose checksum is to be `crc`. Whether it is, is for the caller to see.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read_node(&mut self, block: u64, crc: u32) -> Result<Vec<u8>>;
    /// The division of the disk.
    fn layout(&self) -> &Layout;
}

/// Counts of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes in all.
    pub nodes: u64,
    /// Nodes changed since the last checkpoint.
    pub dirty: u64,
    /// Nodes in memory.
    pub cached: u64,
}

/// The tree.
#[derive(Debug, Default)]
pub struct Tree {
    root: Option<Child>,
    counts: Counts,
    round: u32,
    /// Blocks of nodes that were replaced since the last checkpoint.
    freed: Vec<u64>,
}

/// What a walk down changes beside nodes.
struct Walk<'a> {
    io: &'a mut dyn ReadNodes,
    counts: &'a mut Counts,
    freed: &'a mut Vec<u64>,
    round: u32,
}

impl Tree {
    /// The tree below a root that lies at `block` (0 for an empty tree).
    #[must_use]
    pub fn at(block: u64, crc: u32, nodes: u64) -> Self {
        let root = (block != 0).then_some(Child { block, crc, node: None });
        let counts = Counts { nodes, ..Counts::default() };
        Self { root, counts, round: 1, freed: Vec::new() }
    }

    /// Where the root lies and its checksum; zeros for an empty tree.
    #[must_use]
    pub fn root(&self) -> (u64, u32) {
        self.root.as_ref().map_or((0, 0), |root| (root.block, root.crc))
    }

    /// Counts now.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Levels; 0 if the tree is empty or its root was not read yet.
    #[must_use]
    pub fn height(&self) -> u64 {
        let node = self.root.as_ref().and_then(|root| root.node.as_ref());
        node.map_or(0, |node| u64::from(node.level) + 1)
    }

    /// The blocks of nodes that were replaced since this was asked last.
    pub fn take_freed(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.freed)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn get(&mut self, io: &mut dyn ReadNodes, key: &Key) -> Result<Option<&[u8]>> {
        let mut walk = Walk { io, counts: &mut self.counts, freed: &mut self.freed, round: self.round };
        let Some(mut child) = self.root.as_mut() else { return Ok(None) };
        let mut level = None;
        loop {
            let node = walk.load(child, level)?;
            level = node.level.checked_sub(1);
            match &mut node.items {
                Items::Leaf(items) => {
                    let found = items.binary_search_by(|(at, _)| at.cmp(key)).ok();
                    return Ok(found.and_then(|at| items.get(at)).map(|(_, value)| &value[..]));
                }
                Items::Inner(items) => {
                    let at = items.partition_point(|(at, _)| at <= key).saturating_sub(1);
                    child = items.get_mut(at).map(|(_, next)| next).ok_or_else(edit::empty_inner)?;
                }
            }
        }
    }

    /// The first entry at or after `from`.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn next(&mut self, io: &mut dyn ReadNodes, from: &Key) -> Result<Option<(Key, &[u8])>> {
        self.locate(io, from, &mut FarNodes::behind(u64::MAX))
    }

    /// Drops nodes that could be read again until at most `most` are in memory, as far as that
    /// goes: those first that were not used since the last time.
    pub fn evict(&mut self, most: u64) {
        for all in [false, true] {
            if self.counts.cached <= most {
                return;
            }
            if let Some(root) = self.root.as_mut() {
                drop_clean(root, self.round, all, most, &mut self.counts.cached);
            }
        }
        self.round = self.round.wrapping_add(1);
    }
}

/// Drops clean nodes below `child`; true if nothing below it is left in memory.
fn drop_clean(child: &mut Child, round: u32, all: bool, most: u64, cached: &mut u64) -> bool {
    let Some(node) = child.node.as_mut() else { return true };
    let mut bare = true;
    if let Items::Inner(items) = &mut node.items {
        for (_, below) in items {
            bare &= drop_clean(below, round, all, most, cached);
        }
    }
    if bare && child.block != 0 && *cached > most && (all || node.used != round) {
        child.node = None;
        *cached -= 1;
        return true;
    }
    false
}

impl Walk<'_> {
    /// The node that `child` names, read if it is not in memory. `level` is what it has to have.
    fn load<'c>(&mut self, child: &'c mut Child, level: Option<u16>) -> Result<&'c mut Node> {
        if child.node.is_none() {
            let (block, crc) = (child.block, child.crc);
            let bytes = self.io.read_node(block, crc)?;
            let is_sound = crc32c(&bytes) == crc || is_planted(Bug::DamagedTierNodeBelieved);
            let node = is_sound.then(|| Node::decode(&bytes, self.io.layout())).flatten();
            let fits = |node: &Node| level.map_or(node.level < MOST_LEVELS, |level| node.level == level);
            let node = node.filter(fits).ok_or_else(|| damaged(format!("the node at block {block} is damaged")))?;
            child.node = Some(Box::new(node));
            self.counts.cached += 1;
        }
        let node = child.node.as_mut().ok_or_else(|| damaged("a node is not there"))?;
        node.used = self.round;
        Ok(node)
    }
}

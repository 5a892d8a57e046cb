//! Nodes that are loaded before they are asked for, many together: a walk over the tree, or many
//! lookups, then wait for the medium once a batch and not once a node.
//!
//! It keeps true: what is loaded ahead changes nothing but what is in memory. A node that cannot be
//! read is told when it is asked for.

use super::{Child, Key, Node, NodeSource, Tree};
use crate::medium::format::BlobReference;
use alloc::vec::Vec;
use onode_object::Result;

/// So many nodes are loaded together at most.
pub(super) const NODES_TOGETHER: usize = 32;

/// A node that will be asked for: the one of `level` that has the place of `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sought {
    /// A key below it, or in it.
    pub key: Key,
    /// 0 for leaves.
    pub level: u8,
}

impl Tree {
    /// Loads what lookups of `sought`, which are in order, will ask for: first all nodes of one
    /// level, then all of the next. As many nodes as the source has room for.
    pub fn load_ahead(&self, source: &mut dyn NodeSource, sought: &[Sought]) {
        for level in (0..self.root_level).rev() {
            let mut wanted: Vec<BlobReference> = Vec::new();
            for one in sought.iter().filter(|one| one.level <= level) {
                let Ok(Some(below)) = self.written_above(source, &one.key, level) else { continue };
                if wanted.last() != Some(&below) {
                    wanted.push(below);
                }
            }
            for some in wanted.chunks(NODES_TOGETHER) {
                source.load_ahead(some, level);
            }
        }
    }

    /// Where the node of `level` was written that has the place of `key`; nothing if it was not.
    fn written_above(&self, source: &mut dyn NodeSource, key: &Key, level: u8) -> Result<Option<BlobReference>> {
        let (mut child, mut at) = (self.root, self.root_level);
        while at > level {
            let node = self.view(source, child, at)?;
            if node.len() == 0 {
                return Ok(None);
            }
            child = node.child(key)?.2;
            at -= 1;
        }
        Ok(match child {
            Child::Clean(reference) => Some(reference),
            Child::Dirty(_) => None,
        })
    }
}

/// Up to `most` children of `node` from `first` on, as far as they are written.
pub(super) fn children_from(node: &Node, first: usize, most: usize) -> Vec<BlobReference> {
    let some = first..node.len().min(first + most.min(NODES_TOGETHER));
    let children = some.filter_map(|index| Child::decode(node.value(index)).ok());
    children.filter_map(|child| if let Child::Clean(reference) = child { Some(reference) } else { None }).collect()
}

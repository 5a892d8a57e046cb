//! The nodes nearest to the root: those that most depends on.

use super::{Child, NodeSource, Tree};
use crate::medium::format::BlobReference;
use alloc::vec::Vec;

impl Tree {
    /// Where the nodes nearest to the root were written, up to `most` of them: level by level, each
    /// in the order of its keys, so that of the leaves the first ones come, which have what a host
    /// made first. What cannot be read is left out with what is below it.
    pub fn nearest_to_root(&self, source: &mut dyn NodeSource, most: usize) -> Vec<BlobReference> {
        let mut found = Vec::new();
        let mut level = self.root_level;
        let mut of_level: Vec<BlobReference> = self.written_root().into_iter().map(|(root, _)| root).collect();
        while !of_level.is_empty() && found.len() < most {
            of_level.truncate(most - found.len());
            found.extend_from_slice(&of_level);
            let Some(below) = level.checked_sub(1) else { break };
            let mut children = Vec::new();
            for reference in of_level {
                // No more are wanted than there is room for.
                if children.len() >= most - found.len() {
                    break;
                }
                let Ok(node) = source.load(reference, level) else { continue };
                let written = node.entries_from(0).filter_map(|(_, value)| match Child::decode(value) {
                    Ok(Child::Clean(child)) => Some(child),
                    _ => None,
                });
                children.extend(written);
            }
            (of_level, level) = (children, below);
        }
        found
    }
}

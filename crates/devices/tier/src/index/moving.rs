//! What of a tree lies behind a block: nodes, and content.

use crate::index::Index;
use crate::index::tree::FarNodes;
use crate::space::extent::Extent;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::{Error, ErrorKind, ObjectId, Result};

/// Entries that one walk looks at, at most: if a node is not in memory, it begins anew.
const MOST_ENTRIES: u32 = 1024;

/// Content that lies behind the end.
pub struct FarExtent {
    /// Whose it is.
    pub object: ObjectId,
    /// Its first block in the object.
    pub at: u64,
    /// Where it lies.
    pub extent: Extent,
}

/// What walks found behind the end.
#[derive(Default)]
pub struct Behind {
    /// Entries, on the ways to which all nodes are that lie there.
    pub ways: Vec<Key>,
    /// Content that lies there.
    pub extents: Vec<FarExtent>,
    /// Where the walk goes on; `None` if it is done.
    pub next: Option<Key>,
    /// Blocks of all of it, and other blocks of content that moves with them.
    pub blocks: u64,
}

impl Behind {
    /// Adds what was found next.
    pub fn extend(&mut self, more: Self) {
        self.ways.extend(more.ways);
        self.extents.extend(more.extents);
        self.next = more.next;
        self.blocks += more.blocks;
    }
}

impl Index {
    /// What lies behind block `end`, from the entry at or after `from` on: `enough` blocks or a few
    /// more, unless there are fewer or the walk was long.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn behind(&mut self, end: u64, from: Key, enough: u64) -> Result<Behind> {
        let mut found = Behind { next: Some(from), ..Behind::default() };
        let mut far = FarNodes::behind(end);
        let mut nodes = BTreeSet::new();
        for _ in 0..MOST_ENTRIES {
            let Some(from) = found.next.filter(|_| found.blocks < enough) else { break };
            let Some((key, value)) = self.tree.locate(&mut self.reader, &from, &mut far)? else {
                found.next = None;
                break;
            };
            found.next = key.successor();
            if key.is_extent() {
                let object = ObjectId(key.object);
                let damaged = || Error::of(ErrorKind::Corrupt, object, "an extent is damaged");
                let extent = Extent::decode(value).ok_or_else(damaged)?;
                if extent.block + extent.blocks() > end {
                    found.blocks += extent.blocks();
                    found.extents.push(FarExtent { object, at: key.index, extent });
                }
            }
            // Whoever changes one way changes all nodes on it, so each node counts once.
            let before = nodes.len();
            nodes.extend(far.blocks.iter().copied());
            if nodes.len() > before {
                found.ways.push(key);
                found.blocks += (nodes.len() - before) as u64;
            }
        }
        Ok(found)
    }

    /// Every node on the way to an entry changes: it gets another block at the next checkpoint.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn mark(&mut self, key: &Key) -> Result<()> {
        self.tree.mark(&mut self.reader, key)
    }

    /// Whether this content is still where it was found.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn is_still_at(&mut self, far: &FarExtent) -> Result<bool> {
        let value = self.tree.get(&mut self.reader, &Key::extent(far.object, far.at))?;
        Ok(value.and_then(Extent::decode).is_some_and(|extent| extent == far.extent))
    }
}

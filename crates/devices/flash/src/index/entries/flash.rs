//! All entries in the wandering tree on flash: the nodes that changed, and the clean ones that were
//! read.
//!
//! It keeps true: changed nodes and clean ones share the memory that is set apart for both, and a
//! node that was read is what its parent names. It knows of no memory beside the flash.

use super::EntryStore;
use crate::index::tree::{Child, Node, NodeSource, Setting, Sighting, Sought, Tree};
use crate::log::Log;
use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use crate::space::items::Owner;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::evict::Lru;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::Result;

/// How much memory the index may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a tree node.
    pub node_bytes: usize,
    /// Bytes of changed nodes at which a checkpoint is due.
    pub dirty_bytes: usize,
    /// Bytes of clean nodes.
    pub cache_bytes: usize,
}

/// The entries of the tree.
pub struct FlashEntries {
    tree: Tree,
    /// Clean nodes in memory, by location.
    nodes: Lru<u64, Arc<Node>>,
    limits: Limits,
}

/// The tree's view of the log.
struct Source<'a> {
    log: &'a mut Log,
    nodes: &'a mut Lru<u64, Arc<Node>>,
    /// What reads are for.
    tag: IoTag,
}

impl FlashEntries {
    /// Those of `tree`.
    pub fn new(tree: Tree, limits: Limits) -> Self {
        Self { tree, nodes: Lru::new(limits.cache_bytes), limits }
    }

    fn parts<'a>(&'a mut self, log: &'a mut Log, tag: IoTag) -> (&'a mut Tree, Source<'a>) {
        (&mut self.tree, Source { log, nodes: &mut self.nodes, tag })
    }

    /// Visits entries in the order of their keys from `from` on, until `visit` returns false, with
    /// reads that count as `tag`.
    pub fn scan_as(
        &mut self,
        log: &mut Log,
        from: &Key,
        tag: IoTag,
        visit: &mut dyn FnMut(&Key, &[u8]) -> bool,
    ) -> Result<()> {
        let (tree, mut source) = self.parts(log, tag);
        tree.scan(&mut source, from, visit)
    }

    /// Loads what lookups of `sought`, which are in order, will ask for, many nodes together.
    pub fn load_ahead(&mut self, log: &mut Log, sought: &[Sought], tag: IoTag) {
        let (tree, mut source) = self.parts(log, tag);
        tree.load_ahead(&mut source, sought);
    }

    /// Whether the index can be read from its root to its first entries, for a mount that wants to
    /// fail early.
    pub fn check_root(&mut self, log: &mut Log) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.get(&mut source, &Key::MIN, |_| ()).map(|_| ()).map_err(|error| {
            let what = "the index cannot be read from its root to its first entries, which nothing is found without";
            damaged(format!("{what}: {}", error.detail))
        })
    }
}

impl EntryStore for FlashEntries {
    fn get(&mut self, log: &mut Log, key: &Key, found: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.get(&mut source, key, found).map(|_| ())
    }

    fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        self.scan_as(log, from, IoTag::Index, visit)
    }

    fn at_or_before(&mut self, log: &mut Log, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.last_at_or_before(&mut source, key)
    }

    fn set(&mut self, log: &mut Log, setting: Setting<'_>) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.set(&mut source, setting)
    }

    fn remove(&mut self, log: &mut Log, key: &Key) -> Result<bool> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.remove(&mut source, key)
    }
}

/// Nodes of the tree, for the cleaner, checkpoints and repairs. None of this changes what the
/// entries say, but for a repair.
impl FlashEntries {
    /// Lets the next checkpoint write the node at `location` elsewhere, whose reverse index item
    /// has `key` and `level`; false if the tree has no node there any more.
    pub fn touch(&mut self, log: &mut Log, key: &Key, level: u8, location: u64) -> Result<bool> {
        let (tree, mut source) = self.parts(log, IoTag::Cleaning);
        tree.touch(&mut source, key, level, location)
    }

    /// Visits all nodes, with their places if they are on the medium.
    pub fn walk(
        &mut self,
        log: &mut Log,
        visit: &mut dyn FnMut(Option<BlobReference>, &Node) -> Result<()>,
    ) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Cleaning);
        tree.walk(&mut source, visit)
    }

    /// The same, past nodes that are damaged.
    pub fn survey(&mut self, log: &mut Log, visit: &mut dyn FnMut(Sighting<'_>) -> Result<()>) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.survey(&mut source, visit)
    }

    /// Where the nodes nearest to the root lie, up to `most` of them, those first that more depends
    /// on.
    pub fn nearest_to_root(&mut self, log: &mut Log, most: usize) -> Vec<BlobReference> {
        let (tree, mut source) = self.parts(log, IoTag::Anchor);
        tree.nearest_to_root(&mut source, most)
    }

    /// Takes `tree` in place of one with damaged nodes.
    pub fn replace_tree(&mut self, tree: Tree) {
        self.tree = tree;
        self.nodes.clear();
    }

    /// Writes all changed nodes. They stay in memory, as clean ones.
    pub fn write_back(&mut self, log: &mut Log) -> Result<()> {
        self.nodes.set_budget(self.limits.cache_bytes + self.limits.dirty_bytes);
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.write_back(&mut source)
    }

    /// Gives the cache of clean nodes what changed nodes leave of the memory for both.
    pub fn share_memory(&mut self) {
        let spare = self.limits.dirty_bytes.saturating_sub(self.dirty_bytes());
        self.nodes.set_budget(self.limits.cache_bytes + spare);
    }

    /// The root of the tree and its level, once everything is written.
    pub fn written_root(&self) -> Option<(BlobReference, u8)> {
        self.tree.written_root()
    }

    /// Bytes of changed nodes in memory.
    pub fn dirty_bytes(&self) -> usize {
        self.tree.dirty_bytes()
    }

    /// Changed nodes.
    pub const fn dirty_nodes(&self) -> usize {
        self.tree.dirty_nodes()
    }

    /// Bytes of clean nodes in memory.
    pub fn clean_bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// How much memory the index may take.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Other limits, which hold from the next change on.
    pub const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }
}

impl NodeSource for Source<'_> {
    fn load(&mut self, reference: BlobReference, level: u8) -> Result<Arc<Node>> {
        let location = reference.location.get();
        if let Some(node) = self.nodes.get(&location)
            && node.level() == level
        {
            return Ok(node.clone());
        }
        let bytes = self.log.read_blob(reference, self.tag)?;
        let node = decode(&bytes, level).ok_or_else(|| damaged(format!("the tree node at {location} is malformed")))?;
        let node = Arc::new(node);
        self.nodes.insert(location, node.clone(), node.memory_bytes());
        Ok(node)
    }

    fn load_ahead(&mut self, references: &[BlobReference], level: u8) {
        if !self.log.store().reads_together() {
            return;
        }
        // What is loaded is to stay until it is asked for, beside the nodes above it.
        let mut room = self.nodes.budget_bytes() / 2;
        let mut missing = Vec::new();
        for reference in references.iter().filter(|one| self.nodes.get(&one.location.get()).is_none()) {
            let Some(left) = room.checked_sub(reference.length.get() as usize) else { break };
            room = left;
            missing.push(*reference);
        }
        if missing.len() < 2 {
            return;
        }
        for (reference, bytes) in missing.iter().zip(self.log.read_blobs_ahead(&missing, self.tag)) {
            if let Some(node) = bytes.and_then(|bytes| decode(&bytes, level)) {
                let memory_bytes = node.memory_bytes();
                self.nodes.insert(reference.location.get(), Arc::new(node), memory_bytes);
            }
        }
    }

    fn release(&mut self, reference: BlobReference) {
        self.nodes.remove(&reference.location.get());
        self.log.release(reference.location.get(), u64::from(reference.length.get()));
    }

    fn store(&mut self, bytes: &[u8], level: u8, key: Key) -> Result<BlobReference> {
        self.log.write_blob(bytes, Owner::Node { key, level })
    }

    fn keep(&mut self, reference: BlobReference, node: Node) {
        let bytes = node.memory_bytes();
        self.nodes.insert(reference.location.get(), Arc::new(node), bytes);
    }
}

/// The node that `bytes` of the medium are, if they are one.
fn decode(bytes: &[u8], level: u8) -> Option<Node> {
    let is_whole = |node: &Node| level == 0 || node.entries_from(0).all(|(_, value)| is_written_child(value));
    Node::decode(bytes, level).filter(is_whole)
}

/// Whether a child reference read from the medium names a place on it, and not a slot of memory.
fn is_written_child(value: &[u8]) -> bool {
    matches!(Child::decode(value), Ok(Child::Clean(_)))
}

//! Entries in the order of their keys, and where they are kept: the wandering tree on flash has all
//! of them, and a memory beside it may answer for onodes and extents.
//!
//! It keeps true: tree and memory say the same; what the memory has no room for, or lost, is asked
//! of the tree. Changed nodes and clean ones share the memory that is set apart for both.
//!
//! It does not know what an entry means, nor what was deferred.

mod compare;

use super::bpram::{Bpram, Found, entries::Entries as Bucket, keeps};
use super::tree::{Child, Key, Node, NodeSource, Sighting, Tree};
use crate::log::Log;
use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use crate::space::items::Owner;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::evict::Lru;
use onode_media::IoTag;
use onode_object::{ObjectId, Result};

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

/// All entries.
pub struct Entries {
    tree: Tree,
    /// Clean nodes in memory, by location.
    nodes: Lru<u64, Arc<Node>>,
    /// The index of content in a memory beside the flash, if there is one.
    memory: Option<Bpram>,
    limits: Limits,
}

/// The tree's view of the log.
struct Source<'a> {
    log: &'a mut Log,
    nodes: &'a mut Lru<u64, Arc<Node>>,
    /// What reads are for.
    tag: IoTag,
}

impl Entries {
    /// Those of `tree`.
    pub fn new(tree: Tree, limits: Limits) -> Self {
        Self { tree, nodes: Lru::new(limits.cache_bytes), memory: None, limits }
    }

    fn parts<'a>(&'a mut self, log: &'a mut Log, tag: IoTag) -> (&'a mut Tree, Source<'a>) {
        (&mut self.tree, Source { log, nodes: &mut self.nodes, tag })
    }

    /// What `with` makes of the value of `key`, if there is one.
    pub fn get<T>(&mut self, log: &mut Log, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let mut with = Some(with);
        if let Some(memory) = self.memory.as_mut().filter(|_| keeps(key.kind))
            && let Found::Here(found) = memory.get(key, |value| with.take().map(|with| with(value)))
        {
            return Ok(found.flatten());
        }
        let (tree, mut source) = self.parts(log, IoTag::Index);
        let found = tree.get(&mut source, key, |value| with.take().map(|with| with(value)))?;
        Ok(found.flatten())
    }

    /// Visits entries of the kind of `from`, and perhaps others, in order of their keys from the
    /// first at or after `from`, until `visit` returns false.
    pub fn scan(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        if self.memory.is_some() && keeps(from.kind) {
            return self.scan_kept(log, from, visit);
        }
        self.scan_tree(log, from, IoTag::Index, visit)
    }

    /// Visits what the tree has from `from` on.
    pub fn scan_tree(
        &mut self,
        log: &mut Log,
        from: &Key,
        tag: IoTag,
        visit: &mut dyn FnMut(&Key, &[u8]) -> bool,
    ) -> Result<()> {
        let (tree, mut source) = self.parts(log, tag);
        tree.scan(&mut source, from, visit)
    }

    /// Visits entries that the memory answers for, wherever they are now; none without a memory.
    pub fn scan_kept(&mut self, log: &mut Log, from: &Key, visit: &mut dyn FnMut(&Key, &[u8]) -> bool) -> Result<()> {
        let Self { memory: Some(memory), tree, nodes, .. } = self else { return Ok(()) };
        let mut from = *from;
        loop {
            let (entries, next) = memory.run(&from);
            let mut goes_on = true;
            match entries {
                Some(entries) => goes_on = entries.from(&from).iter().all(|(key, value)| visit(key, value)),
                None => {
                    let mut source = Source { log, nodes, tag: IoTag::Index };
                    tree.scan(&mut source, &from, &mut |key, value| {
                        if next.is_some_and(|next| *key >= next) {
                            return false;
                        }
                        goes_on = !keeps(key.kind) || visit(key, value);
                        goes_on
                    })?;
                }
            }
            match next {
                Some(next) if goes_on => from = next,
                _ => return Ok(()),
            }
        }
    }

    /// The last entry at or before `key`, which names an extent; it need not be one.
    pub fn at_or_before(&mut self, log: &mut Log, key: &Key) -> Result<Option<(Key, Vec<u8>)>> {
        if let Some(memory) = &mut self.memory
            && let Found::Here(found) = memory.floor(key)
        {
            return Ok(found);
        }
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.last_at_or_before(&mut source, key)
    }

    /// Sets the value of `key`.
    pub fn set(&mut self, log: &mut Log, key: Key, value: &[u8]) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.insert(&mut source, key, value)?;
        if let Some(memory) = self.memory.as_mut().filter(|_| keeps(key.kind)) {
            memory.insert(key, value);
        }
        Ok(())
    }

    /// Removes `key`; true if it was there.
    pub fn remove(&mut self, log: &mut Log, key: &Key) -> Result<bool> {
        if let Some(memory) = self.memory.as_mut().filter(|_| keeps(key.kind)) {
            memory.remove(key);
        }
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.remove(&mut source, key)
    }

    /// Removes all entries of `object`.
    pub fn remove_object(&mut self, log: &mut Log, object: ObjectId) -> Result<()> {
        loop {
            let mut keys = Vec::new();
            let first = Key { object: object.0, kind: 0, index: 0 };
            self.scan_tree(log, &first, IoTag::Index, &mut |key, _| {
                let wanted = key.object == object.0 && keys.len() < 256;
                if wanted {
                    keys.push(*key);
                }
                wanted
            })?;
            if keys.is_empty() {
                return Ok(());
            }
            for key in &keys {
                if !self.remove(log, key)? {
                    return Err(damaged(format!("an entry of {object} stands in the wrong place of the index")));
                }
            }
        }
    }

    /// Whether the root can be read at all, for a mount that wants to fail early.
    pub fn check_root(&mut self, log: &mut Log) -> Result<()> {
        let (tree, mut source) = self.parts(log, IoTag::Index);
        tree.get(&mut source, &Key::MIN, |_| ())
            .map(|_| ())
            .map_err(|error| damaged(format!("the root of the index cannot be read: {}", error.detail)))
    }
}

/// Nodes of the tree, for the cleaner, checkpoints and repairs.
impl Entries {
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
}

/// The memory beside the flash.
impl Entries {
    /// What is there of it.
    pub const fn memory(&self) -> Option<&Bpram> {
        self.memory.as_ref()
    }

    /// The same, to be written.
    pub const fn memory_mut(&mut self) -> Option<&mut Bpram> {
        self.memory.as_mut()
    }

    /// From now on `memory` takes part; what it lacks is elsewhere.
    pub fn put_memory(&mut self, memory: Bpram) {
        self.memory = Some(memory);
    }

    /// Goes on without the memory: the flash has all entries.
    pub const fn take_memory(&mut self) -> Option<Bpram> {
        self.memory.take()
    }

    /// Takes over from the tree up to `limit` entries that the memory lacks, with the first of
    /// them; none if it lacks nothing, or is full.
    pub fn refill(&mut self, log: &mut Log, limit: usize) -> Result<Option<u64>> {
        let wanted = self.memory.as_ref().filter(|memory| !memory.is_full(limit / 16)).and_then(Bpram::first_elsewhere);
        let Some((first, end)) = wanted else { return Ok(None) };
        let (mut taken, mut rest) = (Bucket::default(), None);
        self.scan_tree(log, &first, IoTag::Recovery, &mut |key, value| {
            if end.is_some_and(|end| *key >= end) {
                return false;
            }
            if !keeps(key.kind) {
                return true;
            }
            if taken.len() == limit {
                rest = Some(*key);
                return false;
            }
            taken.insert(*key, value);
            true
        })?;
        let count = taken.len() as u64;
        if let Some(memory) = &mut self.memory {
            memory.fill(first, taken, rest);
        }
        Ok(Some(count))
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
        let node = Node::decode(&bytes, level)
            .filter(|node| level == 0 || node.entries_from(0).all(|(_, value)| is_written_child(value)))
            .ok_or_else(|| damaged(format!("the tree node at {location} is malformed")))?;
        let node = Arc::new(node);
        self.nodes.insert(location, node.clone(), node.memory_bytes());
        Ok(node)
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

/// Whether a child reference read from the medium names a place on it, and not a slot of memory.
fn is_written_child(value: &[u8]) -> bool {
    matches!(Child::decode(value), Ok(Child::Clean(_)))
}

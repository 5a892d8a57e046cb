//! Where things are: a B+tree in the memory from keys to words, with a search finger and an
//! existence cache in front of it.
//!
//! The index always agrees with the log, and it counts the objects that it has. What it says lies
//! at a [`Place`](crate::log::place::Place) is read there and nowhere else. Nothing of it is
//! durable or flushed: a recovery makes it anew from the log. It changes no byte of an object.

pub mod existence;
pub mod extents;
pub mod last_leaf;
pub mod node;
pub mod objects;
pub mod read;
pub mod tree;

use crate::index::existence::ExistenceCache;
use crate::index::node::{Key, NODE_BYTES, Value};
use crate::index::tree::{NoRoom, Nodes, Tree, TreeState};
use crate::space::Blocks;
use onode_media::Pmem;
use onode_object::ObjectId;
use std::sync::Arc;

impl<P: Pmem> Nodes for Blocks<P> {
    fn allocate_node(&self) -> Option<u64> {
        self.allocate(NODE_BYTES)
    }

    fn release_node(&self, address: u64) {
        self.release(address, NODE_BYTES);
    }
}

/// The index of a device.
pub(crate) struct Index<P: Pmem> {
    memory: Arc<P>,
    tree: Tree,
    existence: ExistenceCache,
    objects: u64,
}

impl<P: Pmem> Index<P> {
    /// The index that a tree of so many objects is, none of which has the id `end` or a higher one.
    pub(crate) const fn new(memory: Arc<P>, tree: Tree, objects: u64, end: u64) -> Self {
        Self { memory, tree, existence: ExistenceCache::below(end), objects }
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<Value> {
        self.tree.get(&*self.memory, key)
    }

    /// Calls `visit` for the entries from `from` on, in order, until it returns false.
    pub(crate) fn scan(&self, from: Key, visit: impl FnMut(Key, Value) -> bool) {
        self.tree.scan(&*self.memory, from, visit);
    }

    /// Sets the value of a key and returns the one before; nodes are taken from `blocks`.
    #[inline]
    pub(crate) fn insert(&mut self, blocks: &Blocks<P>, key: Key, value: Value) -> Result<Option<Value>, NoRoom> {
        self.tree.insert(&*self.memory, blocks, key, value)
    }

    /// Replaces the value of a key that is there.
    pub(crate) fn replace(&self, key: Key, value: Value) {
        self.tree.change(&*self.memory, key, |_| Some(value));
    }

    /// Removes a key and returns its value.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Value> {
        self.tree.remove(&*self.memory, key)
    }

    /// Removes entries of one object from `from` on and calls `removed` for each; where to go on,
    /// if there are more of them.
    pub(crate) fn remove_object(&mut self, from: Key, removed: impl FnMut(Key, Value)) -> Option<Key> {
        let may_be_more = self.tree.remove_object(&*self.memory, from, removed);
        may_be_more.then(|| self.tree.first_of(&*self.memory, from)).flatten()
    }

    /// Brings the nodes that are kept for the next insertions back to their usual number.
    pub(crate) fn restock(&mut self, blocks: &Blocks<P>) -> Result<(), NoRoom> {
        self.tree.restock(&*self.memory, blocks)
    }

    /// Bytes of all nodes.
    pub(crate) fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Where all nodes lie.
    pub(crate) fn node_addresses(&self) -> Vec<u64> {
        self.tree.node_addresses(&*self.memory)
    }

    /// Objects that it has.
    pub(crate) const fn objects(&self) -> u64 {
        self.objects
    }

    /// So many objects more, or fewer, are durably there with the next record.
    pub(crate) const fn count_objects(&mut self, more: i64) {
        self.objects = self.objects.saturating_add_signed(more);
    }

    /// Whether there is an object of this id.
    #[inline]
    pub(crate) fn exists(&self, object: ObjectId) -> bool {
        self.existence.exists(object, || self.get(Key::onode(object)).is_some())
    }

    /// An object may be made now.
    pub(crate) fn note_created(&self, object: ObjectId) {
        self.existence.note_created(object);
    }

    /// An object may be gone now.
    pub(crate) fn note_removed(&self, object: ObjectId) {
        self.existence.note_removed(object);
    }

    /// An object is there.
    pub(crate) fn note_found(&self, object: ObjectId) {
        self.existence.note_found(object);
    }

    /// All that is known of the existence of objects is that none has the id `end` or a higher one.
    pub(crate) const fn forget_existence(&mut self, end: u64) {
        self.existence = ExistenceCache::below(end);
    }

    /// What others have to know of the tree.
    #[inline]
    pub(crate) const fn state(&self) -> TreeState {
        self.tree.state()
    }

    /// Goes on with a tree that a recovery made.
    pub(crate) fn restart(&mut self, tree: Tree, objects: u64, end: u64) {
        (self.tree, self.objects) = (tree, objects);
        self.forget_existence(end);
    }

    /// Takes over what another process did to the index.
    pub(crate) fn set_state(&mut self, tree: &TreeState, objects: u64) {
        self.tree.set_state(tree);
        self.objects = objects;
    }
}

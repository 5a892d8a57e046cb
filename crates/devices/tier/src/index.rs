//! Where things are: onodes, small content, attributes and the places of content, in a
//! copy-on-write tree.
//!
//! What it keeps true: a change that cannot read a node changes nothing. What a change takes out of
//! the index and that lay in blocks of its own is handed to the caller, who gives the blocks up.
//!
//! What it does not do: know which blocks are free, or what content has no place yet.

pub mod ahead;
mod extents;
mod listing;
pub mod moving;
pub mod node;
pub mod onode;
pub mod tree;

use crate::index::ahead::{NodeMiss, NodeReader};
use crate::index::onode::Onode;
use crate::index::tree::{ChangedNode, Counts, Lost, Tree, Visited, Ways};
use crate::medium::layout::{BLOCK, Layout};
use alloc::vec::Vec;
use onode_engine::Key;
use onode_media::IoTag;
use onode_object::validate::{Stored, reserve};
use onode_object::{AttributeKey, Error, ErrorKind, ObjectId, Result};

/// The index of a volume.
pub struct Index {
    tree: Tree,
    reader: NodeReader,
    /// The first id that was never handed out.
    next_id: u64,
    objects: u64,
}

impl Index {
    /// The index below the root of `tree`, whose nodes `reader` reads, with so many objects.
    #[must_use]
    pub fn new(tree: Tree, reader: NodeReader, next_id: u64, objects: u64) -> Self {
        Self { tree, reader, next_id: next_id.max(ObjectId::FIRST_FREE.0), objects }
    }

    /// The division of the big disk.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.reader.layout
    }

    /// The big disk is divided so from now on.
    pub const fn set_layout(&mut self, layout: Layout) {
        self.reader.layout = layout;
    }

    /// Objects.
    #[must_use]
    pub const fn objects(&self) -> u64 {
        self.objects
    }

    /// They were counted anew.
    pub const fn set_objects(&mut self, objects: u64) {
        self.objects = objects;
    }

    /// The first id that was never handed out.
    #[must_use]
    pub const fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Hands out ids.
    ///
    /// # Errors
    /// `Invalid` if there are not so many.
    pub fn reserve_ids(&mut self, count: u64) -> Result<ObjectId> {
        let (first, next) = reserve(ObjectId(self.next_id), count)?;
        self.next_id = next.0;
        Ok(first)
    }

    /// The log says that this id was handed out.
    pub fn note_id(&mut self, object: ObjectId) {
        self.next_id = object.next_free(self.next_id);
    }

    /// Nodes, changed ones, and those in memory.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.tree.counts()
    }

    /// Levels of the tree.
    #[must_use]
    pub fn height(&self) -> u64 {
        self.tree.height()
    }

    /// Where the root lies and its checksum.
    #[must_use]
    pub fn root(&self) -> (u64, u32) {
        self.tree.root()
    }

    /// Memory for nodes that were read ahead.
    #[must_use]
    pub const fn ahead_bytes(&self) -> u64 {
        self.reader.ram_bytes()
    }

    /// Has damaged nodes written again from their copies on the fast disk from now on.
    pub const fn repair_nodes(&mut self) {
        self.reader.repairs = true;
    }

    /// Nodes that were written again.
    #[must_use]
    pub const fn repaired_nodes(&self) -> u64 {
        self.reader.repaired
    }

    /// What reads of nodes count as from now on.
    pub const fn set_tag(&mut self, tag: IoTag) {
        self.reader.tag = tag;
    }

    /// Drops nodes that could be read again, until `most` are in memory.
    pub fn evict(&mut self, most: u64) {
        self.tree.evict(most);
    }

    /// The same when there are an eighth more: looking at every file of a large volume changes
    /// nothing, and memory must not grow with it.
    pub fn shed(&mut self, most: u64) {
        if self.tree.counts().cached > most + most / 8 {
            self.tree.evict(most);
        }
    }

    /// Whether a walk that lacks a node ends, in place of reading it; what was lacking before is
    /// forgotten.
    pub const fn set_can_miss(&mut self, can_miss: bool) {
        self.reader.can_miss = can_miss;
    }

    /// Whether it does.
    #[must_use]
    pub const fn can_miss(&self) -> bool {
        self.reader.can_miss
    }

    /// What the walk that ended was lacking.
    pub const fn take_miss(&mut self) -> Option<NodeMiss> {
        self.reader.miss.take()
    }

    /// What was lacking was read, or could not be.
    pub fn give(&mut self, miss: NodeMiss, bytes: Option<Vec<u8>>) {
        self.reader.give(miss, bytes);
    }

    /// The blocks of nodes that were replaced since this was asked last.
    pub fn take_freed(&mut self) -> Vec<u64> {
        self.tree.take_freed()
    }

    /// Packs the leaves that changed.
    ///
    /// # Errors
    /// `Bug`.
    pub fn pack(&mut self) -> Result<()> {
        self.tree.pack()
    }

    /// Gives every node that changed a block from `allocate`; returns what is to be written.
    ///
    /// # Errors
    /// Those of `allocate`.
    pub fn write_changed(&mut self, allocate: &mut dyn FnMut() -> Result<u64>) -> Result<Vec<ChangedNode>> {
        self.tree.write_changed(allocate)
    }

    /// Shows every node and every entry, in order.
    ///
    /// # Errors
    /// Those of `each`; `Corrupt`, `Media`.
    pub fn visit(&mut self, each: &mut dyn FnMut(Visited<'_>) -> Result<()>) -> Result<()> {
        self.tree.visit(&mut self.reader, each)
    }

    /// Takes out what cannot be read.
    ///
    /// # Errors
    /// `Media`.
    pub fn prune(&mut self) -> Result<Vec<Lost>> {
        self.tree.prune(&mut self.reader)
    }

    /// An object's onode.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn onode(&mut self, object: ObjectId) -> Result<Option<Onode>> {
        let value = self.tree.get(&mut self.reader, &Key::onode(object))?;
        let Some(value) = value else { return Ok(None) };
        let onode = Onode::decode(value);
        onode.map(Some).ok_or_else(|| Error::of(ErrorKind::Corrupt, object, "its onode is damaged"))
    }

    /// An object's onode.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Media`.
    pub fn known(&mut self, object: ObjectId) -> Result<Onode> {
        self.onode(object)?.ok_or_else(|| Error::of(ErrorKind::NotFound, object, "there is no such object"))
    }

    /// Stores an onode.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn put_onode(&mut self, object: ObjectId, onode: &Onode) -> Result<()> {
        self.tree.put(&mut self.reader, Key::onode(object), onode.encode())
    }

    /// Stores the onode of a new object.
    ///
    /// # Errors
    /// `Exists`, `Corrupt`, `Media`.
    pub fn create(&mut self, object: ObjectId, onode: &Onode) -> Result<()> {
        self.objects += 1;
        self.put_onode(object, onode)
    }

    /// The content of a small object as far as it was written.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn inline(&mut self, object: ObjectId) -> Result<Vec<u8>> {
        let value = self.tree.get(&mut self.reader, &Key::inline(object))?;
        Ok(value.map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// Stores the content of a small object.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn put_inline(&mut self, object: ObjectId, inline: Vec<u8>) -> Result<()> {
        let key = Key::inline(object);
        if inline.is_empty() {
            return self.tree.remove(&mut self.reader, &key).map(|_| ());
        }
        self.tree.put(&mut self.reader, key, inline)
    }

    /// An attribute of an object.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn attribute(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<&[u8]>> {
        self.tree.get(&mut self.reader, &Key::attribute(object, key))
    }

    /// Stores an attribute.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn put_attribute(&mut self, object: ObjectId, key: AttributeKey, value: Vec<u8>) -> Result<()> {
        self.tree.put(&mut self.reader, Key::attribute(object, key), value)
    }

    /// Takes an attribute away, if it is there.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn remove_attribute(&mut self, object: ObjectId, key: AttributeKey) -> Result<()> {
        self.tree.remove(&mut self.reader, &Key::attribute(object, key)).map(|_| ())
    }

    /// Takes one entry out, whatever it is.
    ///
    /// # Errors
    /// `Corrupt`, `Media`.
    pub fn remove_entry(&mut self, key: &Key) -> Result<()> {
        self.tree.remove(&mut self.reader, key).map(|_| ())
    }

    /// Adds the nodes that change if an entry does; if it is taken away, neighbours may, too.
    ///
    /// # Errors
    /// If a node cannot be read.
    pub fn way(&mut self, key: &Key, is_removed: bool, ways: &mut Ways) -> Result<()> {
        self.tree.way(&mut self.reader, key, is_removed, ways)
    }
}

/// What [`never_needs_space`](onode_object::validate::never_needs_space) asks.
impl Stored for Index {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        Ok(self.attribute(object, key)?.map(<[u8]>::len))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some(onode) = self.onode(object)? else { return Ok(None) };
        let stored = if onode.has_blocks { onode.blocks * BLOCK } else { self.inline(object)?.len() as u64 };
        Ok((stored >= onode.size).then_some(onode.size))
    }
}

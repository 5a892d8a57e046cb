//! The wandering B+tree: one ordered map from keys to small values that is never updated in place.
//!
//! Changed nodes live in memory until a checkpoint writes them, children before parents, to new
//! places. The *global tree* of paper 1 holds the onodes, attributes and small objects of all
//! objects; the *local tree* of an object, its extents, is the key range of that object in the same
//! tree: it shares nodes while it is small and has nodes of its own once it is large, with one
//! root, one order of writing and one chain of checksums for all.
//!
//! The tree knows nothing of segments: [`NodeSource`] loads nodes, gives up places and takes bytes.

mod ahead;
mod nearest;
mod node;
mod pack;
mod setting;
mod walk;

pub use ahead::Sought;
pub use node::Node;
pub use setting::Setting;
pub use walk::{KeyRange, Sighting};

use crate::medium::errors::damaged;
use crate::medium::format::BlobReference;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use onode_engine::Key;
use onode_object::Result;
use zerocopy::IntoBytes;

/// Where nodes come from and go to.
pub trait NodeSource {
    /// The verified node at `reference`, which must have `level`.
    fn load(&mut self, reference: BlobReference, level: u8) -> Result<Arc<Node>>;
    /// The nodes at `references`, of `level`, will be asked for next: as many as there is room for
    /// may be read together. What cannot be read is told when it is asked for.
    fn load_ahead(&mut self, references: &[BlobReference], level: u8) {
        let _ = (references, level);
    }
    /// The bytes at `reference` are no longer part of the tree.
    fn release(&mut self, reference: BlobReference);
    /// Writes a node; `key` is a key in it.
    fn store(&mut self, bytes: &[u8], level: u8, key: Key) -> Result<BlobReference>;
    /// `node` is now at `reference`; it may be needed again soon.
    fn keep(&mut self, reference: BlobReference, node: Node);
}

/// A child as a parent names it: written at a place, or changed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// On the medium.
    Clean(BlobReference),
    /// In memory, in this slot.
    Dirty(usize),
}

/// A changed child: where it stands in its parent, and its slot in memory.
#[derive(Clone, Copy, Debug)]
struct DirtyChild {
    index: usize,
    slot: usize,
}

/// Marks a reference that stands for a slot in memory; no location is that high.
const SLOT_MARK: u64 = 1 << 63;

impl Child {
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        use zerocopy::FromBytes;
        let reference = BlobReference::read_from_bytes(bytes)
            .map_err(|_| damaged(format!("a tree node has a child reference of {} bytes", bytes.len())))?;
        let location = reference.location.get();
        Ok(if location & SLOT_MARK == 0 {
            Self::Clean(reference)
        } else {
            Self::Dirty((location & !SLOT_MARK) as usize)
        })
    }

    pub fn encode(self) -> BlobReference {
        match self {
            Self::Clean(reference) => reference,
            Self::Dirty(slot) => {
                BlobReference { location: (SLOT_MARK | slot as u64).into(), length: 0.into(), checksum: 0.into() }
            }
        }
    }
}

const _: () = assert!(onode_object::Transaction::MAX_ATTRIBUTE_BYTES <= Node::value_bytes_max(2048));

/// The tree: its root and the changed nodes.
pub struct Tree {
    root: Child,
    root_level: u8,
    slots: Vec<Option<Node>>,
    free_slots: Vec<usize>,
    node_bytes: usize,
}

/// What became of a child after a change below it.
enum Outcome {
    Fine,
    Split(Key, usize),
}

impl Tree {
    /// The most levels a tree may have; a deeper one on a medium is damage.
    pub const MAX_LEVEL: u8 = 12;

    /// An empty tree with nodes of at most `node_bytes`.
    pub fn new(node_bytes: usize) -> Self {
        Self {
            root: Child::Dirty(0),
            root_level: 0,
            slots: vec![Some(Node::new(0))],
            free_slots: Vec::new(),
            node_bytes,
        }
    }

    /// The tree whose root was written at `root`.
    pub fn open(node_bytes: usize, root: BlobReference, root_level: u8) -> Self {
        Self { root: Child::Clean(root), root_level, slots: Vec::new(), free_slots: Vec::new(), node_bytes }
    }

    /// Memory that the changed nodes take.
    pub fn dirty_bytes(&self) -> usize {
        self.slots.iter().flatten().map(Node::memory_bytes).sum()
    }

    /// Changed nodes.
    pub const fn dirty_nodes(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// The root, once everything is written.
    pub fn written_root(&self) -> Option<(BlobReference, u8)> {
        match self.root {
            Child::Clean(reference) => Some((reference, self.root_level)),
            Child::Dirty(_) => None,
        }
    }

    fn slot(&self, slot: usize) -> Result<&Node> {
        self.slots.get(slot).and_then(Option::as_ref).ok_or_else(|| damaged("a tree node names a slot of memory"))
    }

    fn slot_mut(&mut self, slot: usize) -> Result<&mut Node> {
        self.slots.get_mut(slot).and_then(Option::as_mut).ok_or_else(|| damaged("a tree node names a slot of memory"))
    }

    fn put_slot(&mut self, node: Node) -> usize {
        match self.free_slots.pop() {
            Some(slot) => {
                self.slots[slot] = Some(node);
                slot
            }
            None => {
                self.slots.push(Some(node));
                self.slots.len() - 1
            }
        }
    }

    fn take_slot(&mut self, slot: usize) -> Result<Node> {
        let node = self.slots.get_mut(slot).and_then(Option::take);
        self.free_slots.push(slot);
        node.ok_or_else(|| damaged("a tree node names a slot of memory"))
    }

    /// Makes a child changeable: loads it into a slot and gives up its place.
    fn make_dirty(&mut self, source: &mut dyn NodeSource, child: Child, level: u8) -> Result<usize> {
        match child {
            Child::Dirty(slot) => Ok(slot),
            Child::Clean(reference) => {
                let node = source.load(reference, level)?;
                source.release(reference);
                Ok(self.put_slot(Arc::try_unwrap(node).unwrap_or_else(|shared| (*shared).clone())))
            }
        }
    }

    fn make_child_dirty(&mut self, source: &mut dyn NodeSource, slot: usize, index: usize) -> Result<usize> {
        let child = Child::decode(self.slot(slot)?.value(index))?;
        self.make_this_child_dirty(source, slot, index, child)
    }

    fn make_this_child_dirty(
        &mut self,
        source: &mut dyn NodeSource,
        slot: usize,
        index: usize,
        child: Child,
    ) -> Result<usize> {
        let level = self.slot(slot)?.level().checked_sub(1).ok_or_else(|| damaged("a leaf has no children"))?;
        let child_slot = self.make_dirty(source, child, level)?;
        if child != Child::Dirty(child_slot) {
            self.slot_mut(slot)?.set_value(index, Child::Dirty(child_slot).encode().as_bytes());
        }
        Ok(child_slot)
    }

    fn make_root_dirty(&mut self, source: &mut dyn NodeSource) -> Result<usize> {
        let slot = self.make_dirty(source, self.root, self.root_level)?;
        self.root = Child::Dirty(slot);
        Ok(slot)
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, source: &mut dyn NodeSource, key: Key, value: &[u8]) -> Result<()> {
        self.set(source, Setting { key, value, replaced: &mut |_| {} })
    }

    /// Sets the value of a key.
    pub fn set(&mut self, source: &mut dyn NodeSource, mut setting: Setting<'_>) -> Result<()> {
        let root = self.make_root_dirty(source)?;
        if let Outcome::Split(separator, right) = self.set_below(source, root, &mut setting)? {
            let mut above = Node::new(self.root_level + 1);
            let first = self.slot(root)?.first_key().unwrap_or(Key::MIN);
            above.insert(first.min(separator), Child::Dirty(root).encode().as_bytes());
            above.insert(separator, Child::Dirty(right).encode().as_bytes());
            self.root_level += 1;
            self.root = Child::Dirty(self.put_slot(above));
        }
        Ok(())
    }

    fn set_below(&mut self, source: &mut dyn NodeSource, slot: usize, setting: &mut Setting<'_>) -> Result<Outcome> {
        let key = setting.key;
        let node = self.slot_mut(slot)?;
        if node.level() == 0 {
            node.set(key, setting.value, setting.replaced);
        } else {
            let (index, separator, child) = node.child(&key)?;
            let child = self.make_this_child_dirty(source, slot, index, child)?;
            // A separator is the least key below it, so that a place is found for every key.
            if key < separator {
                self.slot_mut(slot)?.replace_key(index, key);
            }
            if let Outcome::Split(separator, right) = self.set_below(source, child, setting)? {
                self.slot_mut(slot)?.insert(separator, Child::Dirty(right).encode().as_bytes());
            }
        }
        let limit = self.node_bytes;
        let node = self.slot_mut(slot)?;
        if node.encoded_bytes() <= limit {
            return Ok(Outcome::Fine);
        }
        // Keys that arrive in order leave full nodes behind; any others find room in two halves.
        let in_order = node.last_key() == Some(key);
        let keep = if in_order { limit - limit / 8 } else { node.encoded_bytes() / 2 };
        let right = node.split_after(keep);
        let separator = right.first_key().unwrap_or(key);
        let right = self.put_slot(right);
        Ok(Outcome::Split(separator, right))
    }

    /// Removes `key`; true if it was there.
    pub fn remove(&mut self, source: &mut dyn NodeSource, key: &Key) -> Result<bool> {
        if self.get(source, key, |_| ())?.is_none() {
            return Ok(false);
        }
        let root = self.make_root_dirty(source)?;
        self.remove_below(source, root, key)?;
        self.lower_root()?;
        Ok(true)
    }

    /// A root with one child gives way to it.
    fn lower_root(&mut self) -> Result<()> {
        while self.root_level > 0 {
            let Child::Dirty(slot) = self.root else { break };
            let node = self.slot(slot)?;
            if node.len() > 1 {
                break;
            }
            let child = if node.len() == 1 { Some(Child::decode(node.value(0))?) } else { None };
            self.take_slot(slot)?;
            match child {
                Some(child) => {
                    self.root = child;
                    self.root_level -= 1;
                }
                None => {
                    self.root_level = 0;
                    self.root = Child::Dirty(self.put_slot(Node::new(0)));
                }
            }
        }
        Ok(())
    }

    fn remove_below(&mut self, source: &mut dyn NodeSource, slot: usize, key: &Key) -> Result<()> {
        let node = self.slot_mut(slot)?;
        if node.level() == 0 {
            node.remove(key);
            return Ok(());
        }
        let (index, _, child) = node.child(key)?;
        let child = self.make_this_child_dirty(source, slot, index, child)?;
        self.remove_below(source, child, key)?;
        if self.slot(child)?.len() == 0 {
            self.take_slot(child)?;
            self.slot_mut(slot)?.remove_at(index);
        } else if self.slot(child)?.encoded_bytes() < self.node_bytes / 4 {
            self.merge_child(source, slot, index)?;
        }
        Ok(())
    }

    /// Joins a thin child with a neighbour if both fit well into one node.
    fn merge_child(&mut self, source: &mut dyn NodeSource, slot: usize, index: usize) -> Result<()> {
        let node = self.slot(slot)?;
        if node.len() < 2 {
            return Ok(());
        }
        let left = if index + 1 < node.len() { index } else { index - 1 };
        let other = if left == index { left + 1 } else { left };
        let level = node.level() - 1;
        let other_bytes = match Child::decode(node.value(other))? {
            Child::Dirty(slot) => self.slot(slot)?.encoded_bytes(),
            Child::Clean(reference) => source.load(reference, level)?.encoded_bytes(),
        };
        if other_bytes > self.node_bytes / 2 {
            return Ok(());
        }
        let left_slot = self.make_child_dirty(source, slot, left)?;
        let right_slot = self.make_child_dirty(source, slot, left + 1)?;
        let right = self.take_slot(right_slot)?;
        self.slot_mut(left_slot)?.append(&right);
        self.slot_mut(slot)?.remove_at(left + 1);
        Ok(())
    }

    /// Writes all changed nodes, children first.
    pub fn write_back(&mut self, source: &mut dyn NodeSource) -> Result<()> {
        if let Child::Dirty(slot) = self.root {
            self.pack_below(slot)?;
            self.lower_root()?;
        }
        if let Child::Dirty(slot) = self.root {
            self.root = Child::Clean(self.write_below(source, slot)?);
        }
        self.slots.clear();
        self.free_slots.clear();
        Ok(())
    }

    /// The changed children of the inner node in `slot`, in order. One pass finds them all.
    fn dirty_children(&self, slot: usize) -> Result<Vec<DirtyChild>> {
        let children = self.slot(slot)?.entries_from(0).map(|(_, value)| Child::decode(value)).enumerate();
        let dirty = children.filter_map(|(index, child)| match child {
            Ok(Child::Dirty(slot)) => Some(Ok(DirtyChild { index, slot })),
            Ok(Child::Clean(_)) => None,
            Err(error) => Some(Err(error)),
        });
        dirty.collect()
    }

    fn write_below(&mut self, source: &mut dyn NodeSource, slot: usize) -> Result<BlobReference> {
        let level = self.slot(slot)?.level();
        if level > 0 {
            for child in self.dirty_children(slot)? {
                let reference = self.write_below(source, child.slot)?;
                self.slot_mut(slot)?.set_value(child.index, reference.as_bytes());
            }
        }
        let node = self.slot(slot)?;
        let reference = source.store(&node.encode(), level, node.first_key().unwrap_or(Key::MIN))?;
        source.keep(reference, self.take_slot(slot)?);
        Ok(reference)
    }

    /// Makes the clean node at `location` dirty, so that the next checkpoint writes it elsewhere;
    /// false if the tree no longer has a node there. `key` and `level` are those of its reverse
    /// index item.
    pub fn touch(&mut self, source: &mut dyn NodeSource, key: &Key, level: u8, location: u64) -> Result<bool> {
        let (mut child, mut at) = (self.root, self.root_level);
        // Look first: the path must not be made dirty for nothing.
        loop {
            if at == level {
                match child {
                    Child::Clean(reference) if reference.location.get() == location => break,
                    _ => return Ok(false),
                }
            }
            if at < level || at == 0 {
                return Ok(false);
            }
            child = match child {
                Child::Dirty(slot) => self.slot(slot)?.child(key)?.2,
                Child::Clean(reference) => source.load(reference, at)?.child(key)?.2,
            };
            at -= 1;
        }
        let mut slot = self.make_root_dirty(source)?;
        for _ in level..self.root_level {
            let (index, _, child) = self.slot(slot)?.child(key)?;
            slot = self.make_this_child_dirty(source, slot, index, child)?;
        }
        Ok(true)
    }
}

impl Node {
    /// The child under which `key` belongs: its number, its separator and where it is.
    fn child(&self, key: &Key) -> Result<(usize, Key, Child)> {
        let found = self.child_for(key).ok_or_else(|| damaged("an inner tree node is empty"))?;
        Ok((found.0, found.1, Child::decode(found.2)?))
    }
}

#[cfg(test)]
mod tests;

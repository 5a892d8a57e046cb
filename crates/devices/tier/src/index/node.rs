//! A node of the tree: 4 KiB of entries in the order of their keys.

use crate::medium::bytes::{put_u16, put_u32, put_u64, take, take_u8, take_u16, take_u32, take_u64};
use crate::medium::layout::{BLOCK_BYTES, Layout};
use alloc::boxed::Box;
use alloc::vec::Vec;
use onode_object::{AttributeKey, AttributeKind};

/// What a node begins with.
const MAGIC: u32 = u32::from_le_bytes(*b"TNOD");
const HEADER_BYTES: usize = 16;
const KEY_BYTES: usize = 18;
/// Bytes for entries.
pub const CAPACITY: usize = BLOCK_BYTES - HEADER_BYTES;
/// A tree higher than this cannot be.
pub const MOST_LEVELS: u16 = 12;

/// What an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeySpace {
    /// An [`Onode`](crate::index::onode::Onode).
    #[default]
    Onode = 0,
    /// The content of a small object.
    Inline = 1,
    /// An attribute.
    Attribute = 2,
    /// An [`Extent`](crate::space::extent::Extent); the index is its first block in the object.
    Extent = 3,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The object.
    pub object: u64,
    /// What the entry is.
    pub space: KeySpace,
    /// The kind of an attribute.
    pub kind: u8,
    /// The index of an attribute or extent.
    pub index: u64,
}

impl Key {
    /// The key of something that an object has one of.
    #[must_use]
    pub const fn of(object: u64, space: KeySpace) -> Self {
        Self { object, space, kind: 0, index: 0 }
    }

    /// The key of an extent.
    #[must_use]
    pub const fn extent(object: u64, index: u64) -> Self {
        Self { object, space: KeySpace::Extent, kind: 0, index }
    }

    /// The key of an attribute.
    #[must_use]
    pub const fn attribute(object: u64, key: AttributeKey) -> Self {
        Self { object, space: KeySpace::Attribute, kind: key.kind.0, index: key.index }
    }

    /// The attribute's key.
    #[must_use]
    pub const fn attribute_key(&self) -> AttributeKey {
        AttributeKey { kind: AttributeKind(self.kind), index: self.index }
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, self.object);
        out.push(self.space as u8);
        out.push(self.kind);
        put_u64(out, self.index);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let object = take_u64(input)?;
        let space = match take_u8(input)? {
            0 => KeySpace::Onode,
            1 => KeySpace::Inline,
            2 => KeySpace::Attribute,
            3 => KeySpace::Extent,
            _ => return None,
        };
        Some(Self { object, space, kind: take_u8(input)?, index: take_u64(input)? })
    }
}

/// A reference to a node, with the node itself if it is in memory.
#[derive(Debug, Default)]
pub struct Child {
    /// Where it lies; 0 while it was changed since the last checkpoint.
    pub block: u64,
    /// The checksum of its block.
    pub crc: u32,
    /// The node.
    pub node: Option<Box<Node>>,
}

/// The entries of a node.
#[derive(Debug)]
pub enum Items {
    /// Values.
    Leaf(Vec<(Key, Vec<u8>)>),
    /// Nodes of the level below, each with the least key in it.
    Inner(Vec<(Key, Child)>),
}

/// A node in memory.
#[derive(Debug)]
pub struct Node {
    /// 0 for leaves.
    pub level: u16,
    /// Its entries.
    pub items: Items,
    /// Bytes that the entries take.
    pub bytes: usize,
    /// The round of eviction in which it was used last.
    pub used: u32,
}

/// Bytes that a value takes in a leaf.
#[must_use]
pub const fn leaf_bytes(value: &[u8]) -> usize {
    KEY_BYTES + 2 + value.len()
}

/// Bytes that a reference takes.
pub const INNER_BYTES: usize = KEY_BYTES + 12;

impl Node {
    /// An empty leaf.
    #[must_use]
    pub const fn leaf() -> Self {
        Self { level: 0, items: Items::Leaf(Vec::new()), bytes: 0, used: 0 }
    }

    /// Entries in it.
    #[must_use]
    pub const fn count(&self) -> usize {
        match &self.items {
            Items::Leaf(items) => items.len(),
            Items::Inner(items) => items.len(),
        }
    }

    /// Its block. References to nodes that have no block yet are written as 0.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_BYTES);
        put_u32(&mut out, MAGIC);
        put_u16(&mut out, self.level);
        put_u16(&mut out, self.count() as u16);
        put_u64(&mut out, self.bytes as u64);
        match &self.items {
            Items::Leaf(items) => {
                for (key, value) in items {
                    key.put(&mut out);
                    put_u16(&mut out, value.len() as u16);
                    out.extend_from_slice(value);
                }
            }
            Items::Inner(items) => {
                for (key, child) in items {
                    key.put(&mut out);
                    put_u64(&mut out, child.block);
                    put_u32(&mut out, child.crc);
                }
            }
        }
        out.resize(BLOCK_BYTES, 0);
        out
    }

    /// The node that a block holds; `None` if it is none that can be.
    #[must_use]
    pub fn decode(block: &[u8], layout: &Layout) -> Option<Self> {
        let input = &mut { block };
        if take_u32(input)? != MAGIC {
            return None;
        }
        let (level, count, bytes) = (take_u16(input)?, take_u16(input)?, take_u64(input)?);
        if level >= MOST_LEVELS || count == 0 || bytes > CAPACITY as u64 {
            return None;
        }
        let before = input.len();
        let items = if level == 0 {
            let take_entry = |input: &mut &[u8]| {
                let key = Key::take(input)?;
                let length = take_u16(input)?;
                Some((key, take(input, usize::from(length))?.to_vec()))
            };
            Items::Leaf((0..count).map(|_| take_entry(input)).collect::<Option<Vec<_>>>()?)
        } else {
            let take_child = |input: &mut &[u8]| {
                let key = Key::take(input)?;
                let child = Child { block: take_u64(input)?, crc: take_u32(input)?, node: None };
                layout.holds(child.block, 1).then_some((key, child))
            };
            Items::Inner((0..count).map(|_| take_child(input)).collect::<Option<Vec<_>>>()?)
        };
        let in_order = match &items {
            Items::Leaf(items) => items.is_sorted_by(|a, b| a.0 < b.0),
            Items::Inner(items) => items.is_sorted_by(|a, b| a.0 < b.0),
        };
        let bytes = bytes as usize;
        (in_order && before - input.len() == bytes).then_some(Self { level, items, bytes, used: 0 })
    }
}

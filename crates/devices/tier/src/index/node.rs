//! A node of the tree: 4 KiB of entries in the order of their keys.

use crate::medium::bytes::{put_u16, put_u32, put_u64, take, take_u8, take_u16, take_u32, take_u64};
use crate::medium::layout::{BLOCK_BYTES, Layout};
use alloc::boxed::Box;
use alloc::vec::Vec;
use onode_engine::Key;

/// What a node begins with.
const MAGIC: u32 = u32::from_le_bytes(*b"TNOD");
const HEADER_BYTES: usize = 16;
const KEY_BYTES: usize = 18;
/// Bytes for entries.
pub const CAPACITY: usize = BLOCK_BYTES - HEADER_BYTES;
/// A tree higher than this cannot be.
pub const MOST_LEVELS: u16 = 12;

/// How kinds of entries stand in a node: a byte for the sort of entry, and one for the kind of an
/// attribute.
mod sort {
    pub const ONODE: u8 = 0;
    pub const INLINE: u8 = 1;
    pub const ATTRIBUTE: u8 = 2;
    pub const EXTENT: u8 = 3;
}

fn put_key(out: &mut Vec<u8>, key: &Key) {
    let [kind, _] = key.kind.to_le_bytes();
    let (sort, kind) = match key.kind {
        Key::ONODE => (sort::ONODE, 0),
        Key::INLINE => (sort::INLINE, 0),
        Key::EXTENT => (sort::EXTENT, 0),
        _ => (sort::ATTRIBUTE, kind),
    };
    put_u64(out, key.object);
    out.extend_from_slice(&[sort, kind]);
    put_u64(out, key.index);
}

fn take_key(input: &mut &[u8]) -> Option<Key> {
    let object = take_u64(input)?;
    let kind = match (take_u8(input)?, take_u8(input)?) {
        (sort::ONODE, 0) => Key::ONODE,
        (sort::INLINE, 0) => Key::INLINE,
        (sort::ATTRIBUTE, kind) => Key::ATTRIBUTE + u16::from(kind),
        (sort::EXTENT, 0) => Key::EXTENT,
        _ => return None,
    };
    Some(Key { object, kind, index: take_u64(input)? })
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
                    put_key(&mut out, key);
                    put_u16(&mut out, value.len() as u16);
                    out.extend_from_slice(value);
                }
            }
            Items::Inner(items) => {
                for (key, child) in items {
                    put_key(&mut out, key);
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
                let key = take_key(input)?;
                let length = take_u16(input)?;
                Some((key, take(input, usize::from(length))?.to_vec()))
            };
            Items::Leaf((0..count).map(|_| take_entry(input)).collect::<Option<Vec<_>>>()?)
        } else {
            let take_child = |input: &mut &[u8]| {
                let key = take_key(input)?;
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

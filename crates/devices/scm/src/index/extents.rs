//! Where the bytes of an object lie: blocks of the allocator, mapped by the index.
//!
//! The extents of an object do not overlap; between them there are holes, which read as zeros.
//! Nothing is read here, and nothing changes.

use crate::index::Index;
use crate::index::node::{Key, Value};
use onode_media::Pmem;
use onode_object::ObjectId;

/// A part of an object and the block that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub offset: u64,
    pub address: u64,
    pub length: u64,
}

impl Extent {
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.length
    }
}

impl<P: Pmem> Index<P> {
    /// The extent that holds the byte at `offset`, else the first one behind it.
    pub(crate) fn extent_at(&self, object: ObjectId, offset: u64) -> Option<Extent> {
        let is_extent = |key: &Key| key.object() == object && key.is_extent();
        let extent = |(key, Value(address, length)): (Key, Value)| Extent { offset: key.index, address, length };
        let is_there = |(key, Value(_, length)): &(Key, Value)| is_extent(key) && key.index + length > offset;
        let found = self.tree.floor_or_next(&*self.memory, Key::extent(object, offset), is_there);
        found.filter(|(key, _)| is_extent(key)).map(extent)
    }

    /// The last extent that begins before `offset`.
    pub(crate) fn extent_before(&self, object: ObjectId, offset: u64) -> Option<Extent> {
        let before = Key::extent(object, offset.checked_sub(1)?);
        let (key, Value(address, length)) = self.tree.floor(&*self.memory, before)?;
        (key.object() == object && key.is_extent()).then_some(Extent { offset: key.index, address, length })
    }
}

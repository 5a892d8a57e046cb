//! Which bytes of the memory mean something after a power cut and which do not; for those who prove
//! it.
//!
//! What is in neither list is free, held, or a part of the log or of a block that nothing refers to
//! any more.

use crate::core::Core;
use crate::index::node::{Key, NODE_BYTES, Value};
use crate::log::Place;
use crate::medium::format::{AREA_START, SHARED_START, SUPERBLOCKS, SegmentHead, Superblock};
use onode_media::Pmem;
use onode_object::Result;
use std::ops::Range;

/// Parts of the memory.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Made anew by every mount: the allocator's tables and the nodes of the index.
    pub volatile: Vec<Range<u64>>,
    /// What the objects are made of: superblocks, what the log still says, and the blocks as far as
    /// objects show them.
    pub durable: Vec<Range<u64>>,
}

impl<P: Pmem> Core<P> {
    pub(crate) fn ranges(&self) -> Result<Ranges> {
        let mut ranges = Ranges::default();
        let node = |address: u64| address..address + NODE_BYTES;
        ranges.volatile.push(SHARED_START..AREA_START);
        ranges.volatile.push(self.blocks.tables());
        ranges.volatile.extend(self.tree.node_addresses(&*self.memory).into_iter().map(node));
        ranges.durable.extend(SUPERBLOCKS.map(|slot| slot..slot + Superblock::BYTES as u64));
        let head = |address: &u64| *address..*address + SegmentHead::BYTES as u64;
        ranges.durable.extend(self.log.segments.addresses(&*self.memory).iter().map(head));
        let mut entries = Vec::new();
        self.tree.scan(&*self.memory, Key::FIRST, |key, value| {
            entries.push((key, value));
            true
        });
        let mut size = 0;
        for (key, Value(first, length)) in entries {
            if key.is_onode() {
                size = self.read_onode(Place(first), key.object())?.size;
            }
            let shown = first..first + length.min(size.saturating_sub(key.index));
            if !key.is_extent() {
                ranges.durable.push(Place(first).address()..Place(first).address() + Place(first).bytes());
            } else if !self.waits_to_be_flushed(&shown) {
                ranges.durable.push(shown);
            }
        }
        Ok(ranges)
    }
}

//! Which bytes of the memory mean something after a power cut and which do not; for those who prove
//! it.
//!
//! What is in neither list is free, deferred, or a part of the log or of a block that nothing
//! refers to any more.

use crate::index::Index;
use crate::index::node::{Key, NODE_BYTES, Value};
use crate::log::place::Place;
use crate::medium::format::{AREA_START, SHARED_START, SUPERBLOCKS, SegmentHead, Superblock};
use crate::persist::Persistence;
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

/// The parts of the memory of a device.
pub(super) fn ranges<P: Pmem>(index: &Index<P>, store: &Persistence<P>) -> Result<Ranges> {
    let mut ranges = Ranges::default();
    let node = |address: u64| address..address + NODE_BYTES;
    ranges.volatile.push(SHARED_START..AREA_START);
    ranges.volatile.push(store.blocks().tables());
    ranges.volatile.extend(index.node_addresses().into_iter().map(node));
    ranges.durable.extend(SUPERBLOCKS.map(|slot| slot..slot + Superblock::BYTES as u64));
    let head = |address: &u64| *address..*address + SegmentHead::BYTES as u64;
    ranges.durable.extend(store.log().segments().addresses(store.memory()).iter().map(head));
    let mut entries = Vec::new();
    index.scan(Key::FIRST, |key, value| {
        entries.push((key, value));
        true
    });
    let mut size = 0;
    for (key, Value(first, length)) in entries {
        if key.is_onode() {
            size = index.read_onode(Place(first), key.object())?.size;
        }
        let shown = first..first + length.min(size.saturating_sub(key.index));
        if !key.is_extent() {
            ranges.durable.push(Place(first).address()..Place(first).address() + Place(first).bytes());
        } else if !store.is_unflushed(&shown) {
            ranges.durable.push(shown);
        }
    }
    Ok(ranges)
}

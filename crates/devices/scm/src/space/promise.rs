//! What data to come take of the free space at most, so that room for them can be promised.
//!
//! A free block of one size is no room for another, so only free chunks are promised: whatever size
//! is wanted, they can be cut to it. The rest is for who asks with the data in hand.

use crate::space::allocator::SMALLEST_BLOCK_BYTES;
use onode_object::Demand;

/// Items of the log, said again with the room to clean, and entries of the index in nodes that were
/// split just now: for an object's content, and for each object or attribute besides its value.
const ENTRY_BYTES: u64 = 256;
/// Content in chunks that do not follow each other has an item and an entry for each: this share of
/// its bytes.
const ENTRIES_SHARE: u64 = 16;

/// What of the promised space must be left for `demand`, in a memory with chunks of `chunk` bytes.
pub(crate) fn space_for(demand: &Demand, chunk: u64) -> u64 {
    let entries = 2 * demand.entry_bytes + ENTRY_BYTES * (demand.entries + demand.ranges);
    if demand.ranges == 0 {
        return entries;
    }
    if demand.is_new && demand.ranges == 1 && demand.object_bytes <= chunk / 2 {
        // One block, a third larger at most. Its chunk has as many as fit, which wastes a third of
        // it at most.
        return entries + ENTRY_BYTES + 2 * demand.object_bytes.max(SMALLEST_BLOCK_BYTES);
    }
    // Each range takes its pages: in small blocks, which waste a quarter of themselves and a third
    // of their chunk at most, or in whole chunks, the last of them for a part.
    let pages = demand.blocks * Demand::BLOCK_BYTES;
    let content = (3 * pages).min(pages + demand.ranges * chunk);
    // A small object moves to a larger block first.
    let moved = if demand.is_new { 0 } else { 2 * demand.object_bytes.min(chunk) };
    entries + ENTRY_BYTES + content + content / ENTRIES_SHARE + moved
}

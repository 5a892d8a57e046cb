//! How much more a device can hold, and what it may promise.
//!
//! What is kept back lets whatever frees space, and the cleaner of the log, always finish. A free
//! block of one size is no room for another, so only free chunks are promised: whatever size is
//! wanted, they can be cut to it. The rest is for who asks with the data in hand.

use crate::index::node::NODE_BYTES;
use crate::log::room::KEPT_SEGMENTS;
use crate::persist::Persistence;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Space;

impl<P: Pmem> Persistence<P> {
    /// Bytes kept back so that what frees space, and the cleaner of the log, always finish.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        if is_planted(Bug::FullScmReserveIgnored) {
            return 0;
        }
        (KEPT_SEGMENTS as u64 + 2) * self.chunk_bytes() + 32 * NODE_BYTES
    }

    /// The room of a device that has so many objects.
    pub(crate) fn room(&self, objects: u64) -> Space {
        let deferred: u64 = self.space.deferred().map(|free| free.bytes).sum();
        let kept = self.reserve_bytes() + (2 + self.log.segments_to_overwrite()) * self.chunk_bytes();
        let free = self.blocks().free_bytes() + deferred + self.log.surplus_bytes();
        // Nodes of the index, records and what allocation loses by rounding.
        let usable = |bytes: u64, kept: u64| bytes.saturating_sub(kept) / 256 * 254;
        let total = usable(self.blocks().capacity_bytes(), kept);
        let available = usable(free, self.reserve_bytes() + 2 * self.chunk_bytes() + self.log.shortage_bytes());
        Space { total, available: available.min(total), objects }
    }

    /// What may be set aside.
    pub(crate) fn promisable(&self) -> u64 {
        let chunk = self.chunk_bytes();
        let deferred = self.space.deferred().map(|free| free.bytes).filter(|bytes| bytes.is_multiple_of(chunk));
        let free = self.blocks().free_chunk_bytes() + deferred.sum::<u64>() + self.log.surplus_bytes();
        // Of each size of small blocks the last chunk may be for one block only.
        let kept = self.reserve_bytes() + (2 + self.blocks().class_count()) * chunk + self.log.shortage_bytes();
        free.saturating_sub(kept).min(self.room(0).available)
    }
}

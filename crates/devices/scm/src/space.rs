//! Where memory is free and what waits to be: blocks of the allocator, and deferred frees, which
//! durable states still refer to.
//!
//! Every block of the area is an object's, the log's, the index's, deferred, or free; nobody but
//! the owner of a block gives it back, and a block that a durable state shows only by way of a
//! deferred free. Nothing here is durable: a recovery makes it anew from the log. It does not know
//! when a record is durable: it is told.

pub mod allocator;
pub mod deferred_frees;
pub mod free_list;
pub mod promise;

use crate::medium::errors::from_media;
use crate::medium::format::{AREA_START, FEATURE_COPY, SMALLEST_BYTES, Superblock, copy_at};
use crate::medium::shared_area::Window;
use crate::space::allocator::Allocator;
use crate::space::deferred_frees::{DeferredFree, DeferredFrees};
use onode_base::ErrorKind;
use onode_media::Pmem;
use onode_object::powers::Content;
use onode_object::{Error, Result};
use std::sync::Arc;

/// The allocator of a device's memory.
pub(crate) type Blocks<P> = Allocator<Arc<P>>;

/// Bytes of the blocks and their tables on a memory of `length`.
const fn area_bytes(length: u64, chunk: u64, features: u64) -> u64 {
    let end = if features & FEATURE_COPY == 0 { length } else { copy_at(length) };
    end.saturating_sub(AREA_START) / chunk * chunk
}

/// The blocks of the device that a superblock is of. Changes nothing.
pub(crate) fn blocks_of_superblock<P: Pmem>(memory: &Arc<P>, superblock: &Superblock) -> Result<Blocks<P>> {
    let Superblock { made_length, length, chunk_bytes, features, .. } = *superblock;
    let chunk = u64::from(chunk_bytes);
    if !chunk_bytes.is_power_of_two() || !(4096..=65536).contains(&chunk_bytes) || length < SMALLEST_BYTES {
        let detail = format!("a memory of {length} bytes with chunks of {chunk_bytes}");
        return Err(Error::new(ErrorKind::Invalid, detail));
    }
    let [made_bytes, bytes] = [made_length, length].map(|length| area_bytes(length, chunk, features));
    let blocks = Allocator::attach_grown(Arc::clone(memory), AREA_START, made_bytes, bytes, chunk);
    blocks.map_err(|error| from_media("blocks", &error))
}

/// The blocks of a device, free and deferred.
pub(crate) struct Space<P: Pmem> {
    blocks: Blocks<P>,
    deferred: DeferredFrees,
}

impl<P: Pmem> Space<P> {
    /// With nothing deferred.
    pub(crate) fn new(blocks: Blocks<P>) -> Self {
        Self { blocks, deferred: DeferredFrees::default() }
    }

    /// What allocates, releases and publishes.
    #[inline]
    pub(crate) const fn blocks(&self) -> &Blocks<P> {
        &self.blocks
    }

    /// Blocks are handed out under the lease of `members` from now on.
    pub(crate) fn follow(&mut self, members: &Blocks<P>) {
        self.blocks.follow(members, true);
    }

    /// Whether the release of any block is deferred.
    #[inline]
    pub(crate) const fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Whether no more can be deferred.
    pub(crate) const fn is_deferred_full(&self) -> bool {
        self.deferred.is_full()
    }

    /// The blocks whose release is deferred.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = DeferredFree> {
        self.deferred.iter(&**self.blocks.pmem())
    }

    /// Their place in the ring.
    pub(crate) const fn deferred_window(&self) -> Window {
        self.deferred.window()
    }

    /// Takes over what other processes deferred and released.
    pub(crate) const fn set_deferred_window(&mut self, window: Window) {
        self.deferred.set_window(window);
    }

    /// A block that a record gave up waits from now on; there must be room for it.
    pub(crate) fn defer(&mut self, free: &DeferredFree) {
        self.deferred.push(&**self.blocks.pmem(), free);
    }

    /// Releases the blocks of records below `durable` whose bytes no recovery verifies.
    pub(crate) fn release_below(&mut self, durable: u64, is_unverified: impl Fn(u64, u64) -> bool) {
        self.deferred.release_below(&self.blocks, durable, is_unverified);
    }

    /// Deferred frees do not count any more: a recovery has claimed what the log names, and all
    /// else is free.
    pub(crate) const fn forget_deferred(&mut self) {
        let Window { last, .. } = self.deferred.window();
        self.deferred.set_window(Window { first: last, last });
    }

    /// That a block is one, and no object's; its length.
    pub(crate) fn check_unowned(&self, content: &Content) -> Result<u64> {
        let Content { object, address, bytes, .. } = *content;
        let invalid = |what: &str| Error::of(ErrorKind::Invalid, object, format!("block at {address}: {what}"));
        let (start, length) = self.blocks.block_of(address).ok_or_else(|| invalid("there is none"))?;
        if start != address || bytes > length {
            return Err(invalid(&format!("the block there begins at {start} and has {length} bytes")));
        }
        if self.blocks.is_published(address) != Ok(false) {
            return Err(invalid("it belongs to an object"));
        }
        Ok(length)
    }
}

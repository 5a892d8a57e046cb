//! Blocks that a thread keeps for itself: no lock, no atomic read-modify-write.
//!
//! A cache holds blocks of the own lease only, so a sweep of a dead lease never frees what another
//! process uses; a block of another lease goes straight back. Blocks in a cache are allocated as
//! far as the tables know. A second release finds that the entry of a run says so, or a mark made
//! of its address in the first 8 bytes of a small block.

use super::entry::{Entry, State};
use super::small::Releasing;
use super::{Allocator, BlockPlace, Misuse};
use onode_media::Pmem;
use std::vec::Vec;

/// Blocks of whole chunks are cached up to this many chunks.
const RUN_CHUNKS_MAX: usize = 16;
/// Bytes of the small blocks of one size that a cache holds at most, if they are more than a few.
const SMALL_BIN_BYTES: u64 = 256 << 10;
/// The same for blocks of whole chunks.
const RUN_BIN_BYTES: u64 = 1 << 20;
const BIN_BLOCKS_MAX: u64 = 128;
const BIN_BLOCKS_MIN: u64 = 2;

/// The free blocks of one size of one thread, last in, first out.
#[derive(Debug, Default)]
struct Bin {
    blocks: Vec<u64>,
    limit: usize,
}

/// Bins of small blocks, one a class, before those of blocks of whole chunks, one a number of
/// chunks.
const SMALL_BINS: usize = 32;
const BINS: usize = SMALL_BINS + RUN_CHUNKS_MAX;

/// The free blocks of one thread. [`Allocator::drain`] gives them back; a cache that is dropped
/// with blocks in it keeps them allocated until the lease is swept.
#[derive(Debug)]
pub struct ThreadCache {
    bins: [Bin; BINS],
    /// The block that was released last, if it was not handed out again, and the number of its bin,
    /// else [`NO_BIN`].
    ///
    /// It waits here and not in its bin because which bin that is says its entry in the chunk
    /// table: a program that takes and releases one block again and again would wait each time for
    /// entry, bin and block to be loaded one after the other.
    last: u64,
    last_bin: usize,
    /// State and lease of the entries whose blocks the cache takes.
    small_key: u64,
    run_key: u64,
}

const NO_BIN: usize = usize::MAX;

/// The bin of blocks of so many chunks; there is none for many.
#[inline]
const fn bin_of_run(chunks: u64) -> usize {
    (chunks as usize).wrapping_add(SMALL_BINS - 1)
}

const fn mark_of(at: u64) -> u64 {
    (at ^ 0x5bd1_e995_9d1b_58d3).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Bin {
    fn of(bytes: u64, all: u64) -> Self {
        let limit = (all / bytes.max(1)).clamp(BIN_BLOCKS_MIN, BIN_BLOCKS_MAX) as usize;
        Self { blocks: Vec::with_capacity(limit), limit }
    }
}

impl ThreadCache {
    /// A block of the bin with this number.
    #[inline]
    fn take(&mut self, number: usize) -> Option<u64> {
        if self.last_bin == number {
            self.last_bin = NO_BIN;
            return Some(self.last);
        }
        self.bins.get_mut(number)?.blocks.pop()
    }
}

impl<P: Pmem> Allocator<P> {
    /// An empty cache for one thread.
    pub fn cache(&self) -> ThreadCache {
        let table = &self.table;
        ThreadCache {
            bins: core::array::from_fn(|number| match number.checked_sub(SMALL_BINS) {
                Some(index) => Bin::of((index as u64 + 1) << table.layout.chunk_shift, RUN_BIN_BYTES),
                None => match table.classes.get(number).bytes {
                    0 => Bin::default(),
                    bytes => Bin::of(u64::from(bytes), SMALL_BIN_BYTES),
                },
            }),
            last: 0,
            last_bin: NO_BIN,
            small_key: Entry::small(0, self.lease).key(),
            run_key: Entry::head(0, self.lease).key(),
        }
    }

    /// As [`allocate`](Self::allocate), from the cache where it has a block. If there is no room,
    /// all that the cache holds is given back first.
    #[inline]
    pub fn allocate_cached(&self, cache: &mut ThreadCache, bytes: u64) -> Option<u64> {
        if let Some(class) = self.table.classes.of(bytes) {
            if let Some(at) = cache.take(class).or_else(|| self.refill_small(cache, class)) {
                self.table.pmem.store(at, 0);
                return Some(at);
            }
        } else {
            let chunks = self.table.layout.chunks_for(bytes);
            if let Some(at) = cache.take(bin_of_run(chunks)).or_else(|| self.refill_run(cache, chunks)) {
                let entry = self.table.entry_place(self.table.layout.chunk_of(at)?);
                entry.set(entry.get().with_cached(false));
                return Some(at);
            }
        }
        self.allocate_uncached(cache, bytes)
    }

    /// Larger than what a cache holds, or there is no room but perhaps in the cache.
    #[cold]
    fn allocate_uncached(&self, cache: &mut ThreadCache, bytes: u64) -> Option<u64> {
        self.allocate(bytes).or_else(|| {
            self.drain(cache);
            self.allocate(bytes)
        })
    }

    #[cold]
    fn refill_small(&self, cache: &mut ThreadCache, class: usize) -> Option<u64> {
        let bin = cache.bins.get_mut(class)?;
        let _guard = self.lock();
        self.table.allocate_small(class, self.lease, bin.limit as u64 / 2, |at| bin.blocks.push(at));
        // The lowest first: blocks that follow each other in memory are handed out one after the
        // other.
        bin.blocks.reverse();
        bin.blocks.pop()
    }

    #[cold]
    fn refill_run(&self, cache: &mut ThreadCache, chunks: u64) -> Option<u64> {
        let bin = cache.bins.get_mut(bin_of_run(chunks))?;
        let _guard = self.lock();
        for _ in 0..bin.limit / 2 {
            let Some(chunk) = self.table.allocate_run(chunks, self.lease) else { break };
            self.table.set_entry(chunk, self.table.entry(chunk).with_cached(true));
            bin.blocks.push(self.table.layout.address_of(chunk));
        }
        bin.blocks.reverse();
        bin.blocks.pop()
    }

    /// As [`try_release`](Self::try_release), to the cache where it takes the block.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn release_cached(&self, cache: &mut ThreadCache, at: u64) -> Result<(), Misuse> {
        let table = &self.table;
        let chunk = table.layout.chunk_of(at).ok_or(Misuse::OutOfArea)?;
        let place = table.entry_place(chunk);
        let entry = place.get();
        let offset = table.layout.offset_in_chunk(at);
        if entry.key() == cache.small_key {
            let class = entry.value() as usize & (SMALL_BINS - 1);
            let index = table.classes.get(class).begins(offset).ok_or(Misuse::Wild)?;
            if self.lease != 0 && table.is_published(chunk, index) {
                return Err(Misuse::Published);
            }
            let mark = mark_of(at);
            if table.pmem.load(at) == mark {
                return Err(Misuse::DoubleFree);
            }
            table.pmem.store(at, mark);
            self.keep(cache, class, at);
            return Ok(());
        }
        if entry.key() == cache.run_key && offset == 0 && (1..=RUN_CHUNKS_MAX as u64).contains(&entry.value()) {
            place.set(entry.with_cached(true));
            self.keep(cache, bin_of_run(entry.value()), at);
            return Ok(());
        }
        self.try_release(at)
    }

    /// Takes a block into the cache; the one before it goes to its bin.
    #[inline]
    fn keep(&self, cache: &mut ThreadCache, number: usize, at: u64) {
        let before = core::mem::replace(&mut cache.last, at);
        let bin = core::mem::replace(&mut cache.last_bin, number);
        if let Some(bin) = cache.bins.get_mut(bin) {
            if bin.blocks.len() >= bin.limit {
                self.drain_half(bin);
            }
            bin.blocks.push(before);
        }
    }

    /// Bytes of the block that begins at `at`, if a program has it: it is neither free, nor in the
    /// cache of a thread, nor published.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub fn check_owned(&self, at: u64) -> Result<u64, Misuse> {
        let _guard = self.lock();
        let place = self.place(at)?;
        if self.is_place_published(&place) {
            return Err(Misuse::Published);
        }
        if matches!(place, BlockPlace::Small(..)) && self.table.pmem.load(at) == mark_of(at) {
            return Err(Misuse::DoubleFree);
        }
        Ok(self.size_of(&place))
    }

    /// Gives the older half of a bin back.
    #[cold]
    fn drain_half(&self, bin: &mut Bin) {
        let half = bin.blocks.len().div_ceil(2);
        let _guard = self.lock();
        self.give_back(bin.blocks.drain(..half));
    }

    fn give_back(&self, blocks: impl Iterator<Item = u64>) {
        let table = &self.table;
        let mut releasing = Releasing::default();
        for at in blocks {
            let Some(chunk) = table.layout.chunk_of(at) else { continue };
            let entry = table.entry(chunk);
            if entry.is(State::Head) {
                table.set_entry(chunk, entry.with_cached(false));
                table.release_run(chunk);
                continue;
            }
            let class = table.classes.get(entry.value() as usize);
            let index = class.begins(table.layout.offset_in_chunk(at));
            let index = index.filter(|index| entry.is(State::Small) && table.is_allocated(chunk, *index));
            debug_assert!(index.is_some(), "the cache held {at:#x}, which is no block");
            if let Some(index) = index {
                table.release_one_of(&mut releasing, chunk, entry, index);
            }
        }
        table.finish_releasing(&mut releasing);
    }

    /// Gives all blocks of a cache back.
    pub fn drain(&self, cache: &mut ThreadCache) {
        let _guard = self.lock();
        if core::mem::replace(&mut cache.last_bin, NO_BIN) != NO_BIN {
            self.give_back(core::iter::once(cache.last));
        }
        for bin in &mut cache.bins {
            self.give_back(bin.blocks.drain(..));
        }
    }
}

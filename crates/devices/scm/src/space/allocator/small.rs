//! Blocks smaller than a chunk: bits of the two bitmaps of a chunk of one class.
//!
//! The bit of a block in the first bitmap says that it is allocated, the bit in the second that it
//! is published. A chunk with free blocks is in the list of its class and lease; a chunk without
//! allocated blocks becomes free at once.

use super::entry::{Entry, State};
use super::table::Table;
use onode_media::Pmem;

/// How many chunks of the device are looked at for one that a lease may adopt.
const ADOPTION_ATTEMPTS: usize = 4;

const fn mask_of(blocks: u64, word: u64) -> u64 {
    let left = blocks.saturating_sub(word * 64);
    if left >= 64 { u64::MAX } else { (1 << left) - 1 }
}

/// The lowest `count` of the bits.
const fn lowest(bits: u64, count: u64) -> u64 {
    if bits.count_ones() as u64 <= count {
        return bits;
    }
    let (mut left, mut rest) = (count, bits);
    while left > 0 {
        rest &= rest - 1;
        left -= 1;
    }
    bits & !rest
}

/// What releases of blocks of one chunk add up to before its counts hear of them.
#[derive(Default)]
pub(super) struct Releasing {
    chunk: u64,
    entry: Option<Entry>,
    blocks: u64,
    lowest_word: u64,
}

impl<P: Pmem> Table<P> {
    pub(super) fn is_allocated(&self, chunk: u64, index: u64) -> bool {
        self.pmem.load(self.layout.allocated(chunk, index / 64)) >> (index % 64) & 1 == 1
    }

    #[inline]
    pub(super) fn is_published(&self, chunk: u64, index: u64) -> bool {
        self.pmem.load(self.layout.published(chunk, index / 64)) >> (index % 64) & 1 == 1
    }

    /// Sets or clears bits of published blocks; others may do so with other bits of the word at the
    /// same time.
    fn mark_published(&self, chunk: u64, word: u64, bits: u64, published: bool) {
        let at = self.layout.published(chunk, word);
        let mut found = self.pmem.load(at);
        loop {
            let wanted = if published { found | bits } else { found & !bits };
            if wanted == found {
                return;
            }
            match self.pmem.compare_exchange(at, found, wanted) {
                Ok(_) => return,
                Err(other) => found = other,
            }
        }
    }

    /// Sets or clears the bit of a published block.
    pub(super) fn set_published(&self, chunk: u64, index: u64, published: bool) {
        self.mark_published(chunk, index / 64, 1 << (index % 64), published);
    }

    fn set_allocated(&self, chunk: u64, index: u64, allocated: bool) {
        let at = self.layout.allocated(chunk, index / 64);
        let bit = 1 << (index % 64);
        let found = self.pmem.load(at);
        self.pmem.store(at, if allocated { found | bit } else { found & !bit });
    }

    /// A chunk of a class with free blocks that belongs to the lease.
    fn chunk_with_free(&self, class: usize, lease: u16) -> Option<u64> {
        if let Some(chunk) = self.first(self.layout.class_head(lease, class)) {
            return Some(chunk);
        }
        if lease != 0
            && let Some(chunk) = self.adopt(class, lease)
        {
            return Some(chunk);
        }
        let chunk = self.allocate_small_chunk(class, lease)?;
        let blocks = u64::from(self.classes.get(class).blocks);
        self.set_count(chunk, blocks, 0);
        self.push(self.layout.class_head(lease, class), chunk);
        self.count_free(blocks * u64::from(self.classes.get(class).bytes), 0);
        Some(chunk)
    }

    /// A chunk of the device with free blocks that the lease may adopt.
    fn adopt(&self, class: usize, lease: u16) -> Option<u64> {
        let mut next = self.first(self.layout.class_head(0, class));
        for _ in 0..ADOPTION_ATTEMPTS {
            let chunk = next?;
            next = self.next(chunk);
            if self.belongs_or_adopted(chunk, lease) {
                return Some(chunk);
            }
        }
        None
    }

    /// Whether a chunk belongs to the lease. One of the device, all of whose blocks are published,
    /// comes to do so: a sweep of the lease would keep them.
    pub(super) fn belongs_or_adopted(&self, chunk: u64, lease: u16) -> bool {
        let entry = self.entry(chunk);
        if entry.lease() == lease {
            return true;
        }
        let volatile = (0..self.layout.bitmap_words).any(|word| {
            let allocated = self.pmem.load(self.layout.allocated(chunk, word));
            allocated & !self.pmem.load(self.layout.published(chunk, word)) != 0
        });
        if entry.lease() != 0 || volatile {
            return false;
        }
        let class = entry.value() as usize;
        let listed = self.count(chunk).0 > 0;
        if listed {
            self.unlink(self.layout.class_head(0, class), chunk);
        }
        self.set_entry(chunk, entry.with_lease(lease));
        if listed {
            self.push(self.layout.class_head(lease, class), chunk);
        }
        true
    }

    /// Allocates blocks of a class until `wanted` were handed to `take` or no chunk is left.
    pub(super) fn allocate_small(&self, class: usize, lease: u16, mut wanted: u64, mut take: impl FnMut(u64)) {
        let size = *self.classes.get(class);
        while wanted > 0 {
            let Some(chunk) = self.chunk_with_free(class, lease) else { return };
            let (mut free, mut word) = self.count(chunk);
            let mut taken = 0;
            while wanted > 0 && free > 0 && word < self.layout.bitmap_words {
                let at = self.layout.allocated(chunk, word);
                let allocated = self.pmem.load(at);
                let available = !allocated & mask_of(u64::from(size.blocks), word);
                let mut chosen = lowest(available, wanted);
                if lease == 0 {
                    self.mark_published(chunk, word, chosen, true);
                }
                self.pmem.store(at, allocated | chosen);
                let first = self.layout.address_of(chunk) + word * 64 * u64::from(size.bytes);
                if chosen == available {
                    word += 1;
                }
                let count = u64::from(chosen.count_ones());
                (wanted, free, taken) = (wanted - count, free.saturating_sub(count), taken + count);
                while chosen != 0 {
                    take(first + u64::from(chosen.trailing_zeros()) * u64::from(size.bytes));
                    chosen &= chosen - 1;
                }
            }
            if taken == 0 {
                // The count promised more than the bitmap has: a defect elsewhere; the chunk serves
                // no more.
                free = 0;
            }
            self.set_count(chunk, free, word);
            self.count_free(0, taken * u64::from(size.bytes));
            if free == 0 {
                self.unlink(self.layout.class_head(lease, class), chunk);
            }
        }
    }

    /// Frees a block that is allocated.
    pub(super) fn release_small(&self, chunk: u64, entry: Entry, index: u64) {
        let mut releasing = Releasing::default();
        self.release_one_of(&mut releasing, chunk, entry, index);
        self.finish_releasing(&mut releasing);
    }

    /// Frees a block that is allocated, as one of several: the lists hear of it when they are
    /// finished.
    pub(super) fn release_one_of(&self, releasing: &mut Releasing, chunk: u64, entry: Entry, index: u64) {
        if releasing.entry.is_none() || releasing.chunk != chunk {
            self.finish_releasing(releasing);
            *releasing = Releasing { chunk, entry: Some(entry), blocks: 0, lowest_word: u64::MAX };
        }
        self.set_published(chunk, index, false);
        self.set_allocated(chunk, index, false);
        releasing.blocks += 1;
        releasing.lowest_word = releasing.lowest_word.min(index / 64);
    }

    /// Brings counts and lists up to date with the blocks released.
    pub(super) fn finish_releasing(&self, releasing: &mut Releasing) {
        let Some(entry) = releasing.entry.take() else { return };
        let Releasing { chunk, blocks: released, lowest_word, .. } = *releasing;
        let (class, lease) = (entry.value() as usize, entry.lease());
        let size = *self.classes.get(class);
        let (free, hint) = self.count(chunk);
        let head = self.layout.class_head(lease, class);
        let all = u64::from(size.blocks);
        if free + released == all {
            if free > 0 {
                self.unlink(head, chunk);
            }
            self.count_free(0, free * u64::from(size.bytes));
            self.free_piece(chunk, 0);
            return;
        }
        self.set_count(chunk, free + released, hint.min(lowest_word));
        self.count_free(released * u64::from(size.bytes), 0);
        if free == 0 {
            self.push(head, chunk);
        }
    }

    /// Makes a block that a recovery found live; `false` if it is already.
    pub(super) fn claim_small(&self, chunk: u64, class: usize, index: u64) -> bool {
        let size = *self.classes.get(class);
        let head = self.layout.class_head(0, class);
        if self.entry(chunk).is(State::Free) {
            self.carve(chunk, chunk + 1, chunk, Some(Entry::small(class, 0)));
            self.set_count(chunk, u64::from(size.blocks), 0);
            self.push(head, chunk);
            self.count_free(u64::from(size.blocks) * u64::from(size.bytes), 0);
        }
        if self.is_allocated(chunk, index) {
            return false;
        }
        self.set_published(chunk, index, true);
        self.set_allocated(chunk, index, true);
        let (free, hint) = self.count(chunk);
        self.set_count(chunk, free.saturating_sub(1), hint);
        self.count_free(0, u64::from(size.bytes));
        if free <= 1 {
            self.unlink(head, chunk);
        }
        true
    }
}

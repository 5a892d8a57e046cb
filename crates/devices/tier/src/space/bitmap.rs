//! Which blocks are free: a bit a block in memory, and pages of them with two slots each on the big
//! disk.
//!
//! A page is written to its other slot at the checkpoint that changed it, with that checkpoint's
//! id; the superblock has a digest of all ids and checksums, so that a page that was lost or is
//! older is noticed.

use crate::medium::bytes::{put_u32, put_u64, take, take_u32, take_u64};
use crate::medium::errors::bug;
use crate::medium::layout::{BITS_PER_PAGE, BLOCK_BYTES, Layout};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_object::Result;

const MAGIC: u32 = u32::from_le_bytes(*b"TMAP");
const WORDS_PER_PAGE: usize = BITS_PER_PAGE as usize / 64;

/// What one slot of a page holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The checkpoint that wrote it.
    pub checkpoint: u64,
    /// The checksum of the page.
    pub crc: u32,
    /// Which slot.
    pub slot: u8,
}

/// The bitmap.
#[derive(Debug)]
pub struct Bitmap {
    words: Vec<u64>,
    blocks: u64,
    /// Nothing is handed out from this block on: `blocks`, unless the volume shrinks.
    bound: u64,
    /// Free blocks in front of the bound.
    free: u64,
    /// Taken blocks behind it.
    behind: u64,
    stamps: Vec<Stamp>,
    dirty: BTreeSet<u64>,
}

impl Bitmap {
    /// All free but what lies before the first free block.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let pages = layout.bitmap_pages();
        let words = vec![0; pages as usize * WORDS_PER_PAGE];
        let stamps = vec![Stamp::default(); pages as usize];
        let (blocks, dirty) = (layout.blocks, (0..pages).collect());
        let mut bitmap = Self { words, blocks, bound: blocks, free: blocks, behind: 0, stamps, dirty };
        bitmap.take(0, layout.first_free());
        layout.areas.all().iter().for_each(|area| _ = bitmap.take(area.first, area.end() - area.first));
        bitmap
    }

    /// Hands out nothing from block `bound` on; of what there is, unless that is the end.
    pub fn set_bound(&mut self, bound: u64) {
        self.bound = bound.min(self.blocks);
        self.recount();
    }

    /// Taken blocks behind the bound, areas of pages among them.
    #[must_use]
    pub const fn behind(&self) -> u64 {
        self.behind
    }

    /// Taken blocks.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.bound - self.free + self.behind
    }

    /// Has the blocks of `layout`, which is smaller, and its pages. What lies behind them is not in
    /// use, but for areas of pages that go.
    pub fn shrink(&mut self, layout: &Layout) {
        // As in a volume that was never larger, the bits of the last page behind it are zeros.
        self.release(layout.blocks, self.blocks - layout.blocks);
        let pages = layout.bitmap_pages();
        self.words.truncate(pages as usize * WORDS_PER_PAGE);
        self.stamps.truncate(pages as usize);
        self.dirty.retain(|page| *page < pages);
        self.blocks = layout.blocks;
        self.set_bound(layout.blocks);
    }

    /// Has the blocks of `layout`, which is larger, and its pages. What comes is free, but for the
    /// areas of pages.
    pub fn grow(&mut self, layout: &Layout) {
        let (had, pages) = (self.stamps.len() as u64, layout.bitmap_pages());
        self.words.resize(pages as usize * WORDS_PER_PAGE, 0);
        self.stamps.resize(pages as usize, Stamp::default());
        self.dirty.extend(had..pages);
        let before = core::mem::replace(&mut self.blocks, layout.blocks);
        self.set_bound(layout.blocks);
        for area in layout.areas.from(before) {
            self.take(area.first, area.end() - area.first);
        }
    }

    /// Free blocks that can be handed out.
    #[must_use]
    pub const fn free(&self) -> u64 {
        self.free
    }

    /// Bytes of memory.
    #[must_use]
    pub const fn ram_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Whether a block is free.
    #[must_use]
    pub fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.words.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 0)
    }

    /// Free blocks in `first..end`.
    #[must_use]
    pub fn count_free(&self, first: u64, end: u64) -> u64 {
        (first..end).filter(|block| self.is_free(*block)).count() as u64
    }

    /// Whether the same blocks are taken in `other`.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.words == other.words
    }

    /// Marks blocks as taken; returns how many of them were free.
    pub fn take(&mut self, first: u64, count: u64) -> u64 {
        self.change(first, count, true)
    }

    /// Marks blocks as free; returns how many of them were taken.
    pub fn release(&mut self, first: u64, count: u64) -> u64 {
        self.change(first, count, false)
    }

    /// Free blocks are not handed out for a while, or are again. The pages, in which they are free,
    /// do not change by that.
    pub fn lend(&mut self, first: u64, count: u64, taken: bool) {
        let dirty = core::mem::take(&mut self.dirty);
        self.change(first, count, taken);
        self.dirty = dirty;
    }

    fn change(&mut self, first: u64, count: u64, taken: bool) -> u64 {
        let end = first.saturating_add(count).min(self.blocks);
        let (mut changed, mut in_front, mut block) = (0, 0, first);
        while block < end {
            let last = end.min((block / 64 + 1) * 64);
            let Some(word) = self.words.get_mut(block as usize / 64) else {
                debug_assert!(false, "block {block} of {} has no bit", self.blocks);
                break;
            };
            let bits = u64::MAX >> (64 - (last - block)) << (block % 64);
            let differ = bits & if taken { !*word } else { *word };
            if differ != 0 {
                *word ^= differ;
                changed += u64::from(differ.count_ones());
                in_front += u64::from((differ & bits_before(self.bound, block / 64)).count_ones());
                self.dirty.insert(block / BITS_PER_PAGE);
            }
            block = last;
        }
        let behind = changed - in_front;
        if taken {
            (self.free, self.behind) = (self.free - in_front, self.behind + behind);
        } else {
            (self.free, self.behind) = (self.free + in_front, self.behind - behind);
        }
        changed
    }

    /// The first run of free blocks at or behind `from`, at most `most` long, that begins before
    /// `end`.
    #[must_use]
    pub fn find(&self, from: u64, end: u64, most: u64) -> Option<(u64, u64)> {
        let end = end.min(self.bound);
        let mut block = from;
        while block < end {
            let word = self.words.get(block as usize / 64)?;
            let rest = !word >> (block % 64);
            if rest == 0 {
                block = (block / 64 + 1) * 64;
                continue;
            }
            block += u64::from(rest.trailing_zeros());
            if block >= end {
                return None;
            }
            let mut count = 1;
            while count < most && block + count < self.bound && self.is_free(block + count) {
                count += 1;
            }
            return Some((block, count));
        }
        None
    }

    /// The pages to be written at a checkpoint, with their slots; they count as written from now
    /// on.
    ///
    /// # Errors
    /// `Bug` if a page that changed is not there: the next mount would take it for unchanged.
    pub fn checkpoint_pages(&mut self, checkpoint: u64) -> Result<Vec<(u64, u8, Vec<u8>)>> {
        let dirty = core::mem::take(&mut self.dirty);
        let mut out = Vec::with_capacity(dirty.len());
        for page in dirty {
            let missing = || bug(format!("page {page} of the bitmap is not there"));
            let stamp = self.stamps.get_mut(page as usize).ok_or_else(missing)?;
            let from = page as usize * WORDS_PER_PAGE;
            let mut bytes = Vec::with_capacity(BLOCK_BYTES);
            put_u32(&mut bytes, MAGIC);
            put_u32(&mut bytes, 0);
            put_u64(&mut bytes, page);
            put_u64(&mut bytes, checkpoint);
            put_u64(&mut bytes, 0);
            self.words.iter().skip(from).take(WORDS_PER_PAGE).for_each(|word| put_u64(&mut bytes, *word));
            let crc = crc32c(&bytes);
            if let Some(field) = bytes.get_mut(4..8) {
                field.copy_from_slice(&crc.to_le_bytes());
            }
            *stamp = Stamp { checkpoint, crc, slot: 1 - stamp.slot.min(1) };
            out.push((page, stamp.slot, bytes));
        }
        Ok(out)
    }

    /// The checksum over the state of all pages.
    #[must_use]
    pub fn digest(&self) -> u32 {
        self.stamps.iter().fold(0, |sum, stamp| {
            let sum = crc32c_append(sum, &stamp.checkpoint.to_le_bytes());
            crc32c_append(sum, &stamp.crc.to_le_bytes())
        })
    }

    /// Takes over a page as `slots` hold it at `checkpoint`; false if none does. If a slot holds
    /// something newer, of a checkpoint that was never finished, the next checkpoint replaces it.
    pub fn load(&mut self, page: u64, slots: &[&[u8]; 2], checkpoint: u64) -> bool {
        let stamps = [stamp_of(slots[0], page, 0), stamp_of(slots[1], page, 1)];
        let newest = stamps.iter().flatten().filter(|it| it.checkpoint <= checkpoint).max_by_key(|it| it.checkpoint);
        let Some(stamp) = newest.copied() else { return false };
        let input = &mut { slots[usize::from(stamp.slot.min(1))] };
        if take(input, 32).is_none() {
            return false;
        }
        let from = page as usize * WORDS_PER_PAGE;
        for word in self.words.iter_mut().skip(from).take(WORDS_PER_PAGE) {
            *word |= take_u64(input).unwrap_or(u64::MAX);
        }
        if let Some(known) = self.stamps.get_mut(page as usize) {
            *known = stamp;
        }
        if stamps.iter().flatten().all(|it| it.checkpoint <= checkpoint) {
            self.dirty.remove(&page);
        }
        true
    }

    /// Counts the free blocks anew.
    pub fn recount(&mut self) {
        let before = |end: u64| {
            let taken = |(at, word): (u64, &u64)| u64::from((word & bits_before(end, at)).count_ones());
            (0..).zip(&self.words).map(taken).sum::<u64>()
        };
        let in_front = before(self.bound);
        (self.free, self.behind) = (self.bound - in_front, before(self.blocks) - in_front);
    }
}

/// The bits of a word, by its number, that are of blocks before `bound`.
const fn bits_before(bound: u64, word: u64) -> u64 {
    match bound.saturating_sub(word * 64) {
        0 => 0,
        bits if bits < 64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}

fn stamp_of(slot: &[u8], page: u64, number: u8) -> Option<Stamp> {
    let input = &mut { slot };
    let (magic, crc) = (take_u32(input)?, take_u32(input)?);
    let (found, checkpoint) = (take_u64(input)?, take_u64(input)?);
    let sum = crc32c_append(crc32c_append(crc32c(slot.get(..4)?), &[0; 4]), slot.get(8..BLOCK_BYTES)?);
    (magic == MAGIC && sum == crc && found == page).then_some(Stamp { checkpoint, crc, slot: number })
}

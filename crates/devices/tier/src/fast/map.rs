//! Which blocks of the big disk have a copy here, and where.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

/// A copy of content in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    /// When its blocks on the big disk were allocated.
    pub born: u64,
    pub blocks: u32,
    /// The first block here.
    pub fast: u64,
    pub object: u64,
    pub pinned: bool,
    /// Somebody chose its section.
    pub placed: bool,
    /// It was made since the mount.
    pub is_new: bool,
}

/// A copy, or a part of one, that was taken out of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    /// The key under which the copy stood.
    pub key: u64,
    pub fast: u64,
    pub blocks: u32,
    pub pinned: bool,
    pub placed: bool,
}

/// Copies by the big disk's block at which they begin. No two of them share a block of either disk.
#[derive(Debug, Default)]
pub(super) struct Map {
    copies: BTreeMap<u64, Copy>,
    by_fast: BTreeMap<u64, u64>,
    by_object: BTreeSet<(u64, u64)>,
    blocks: u64,
}

impl Map {
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Blocks copied.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &Copy)> {
        self.copies.iter().map(|(block, copy)| (*block, copy))
    }

    /// The copy that holds `block`, and where that begins.
    pub fn find(&self, block: u64) -> Option<(u64, &Copy)> {
        let (first, copy) = self.copies.range(..=block).next_back()?;
        (block < first + u64::from(copy.blocks)).then_some((*first, copy))
    }

    /// Whether any of the blocks here, or on the big disk, has a copy already.
    pub fn overlaps(&self, block: u64, copy: &Copy) -> bool {
        let blocks = u64::from(copy.blocks);
        let big = self.copies.range(..block.saturating_add(blocks)).next_back();
        let fast = self.by_fast.range(..copy.fast.saturating_add(blocks)).next_back();
        big.is_some_and(|(first, copy)| first + u64::from(copy.blocks) > block)
            || fast.is_some_and(|(first, key)| {
                let length = self.copies.get(key).map_or(0, |copy| u64::from(copy.blocks));
                first + length > copy.fast
            })
    }

    /// Adds a copy of blocks that have none.
    pub fn insert(&mut self, block: u64, copy: Copy) {
        self.by_fast.insert(copy.fast, block);
        self.by_object.insert((copy.object, block));
        self.blocks += u64::from(copy.blocks);
        self.copies.insert(block, copy);
    }

    /// Takes a whole copy out.
    pub fn remove(&mut self, key: u64) -> Option<Copy> {
        let copy = self.copies.remove(&key)?;
        self.by_fast.remove(&copy.fast);
        self.by_object.remove(&(copy.object, key));
        self.blocks -= u64::from(copy.blocks);
        Some(copy)
    }

    /// Takes a range of the big disk's blocks out; what was copied together with it stays, as
    /// copies of their own. Says what went, and the keys of what is left of the copies that were
    /// cut, with their lengths.
    pub fn cut(&mut self, range: Range<u64>) -> (Vec<Gone>, Vec<(u64, u32)>) {
        let from = self.find(range.start).map_or(range.start, |(first, _)| first);
        let keys: Vec<u64> = if from < range.end {
            self.copies.range(from..range.end).map(|(key, _)| *key).collect()
        } else {
            Vec::new()
        };
        let (mut gone, mut left) = (Vec::new(), Vec::new());
        for key in keys {
            let Some(copy) = self.remove(key) else { continue };
            let end = key + u64::from(copy.blocks);
            let (cut_start, cut_end) = (range.start.max(key), range.end.min(end));
            let part =
                |start: u64, end: u64| Copy { blocks: (end - start) as u32, fast: copy.fast + (start - key), ..copy };
            let cut = part(cut_start, cut_end);
            gone.push(Gone { key, fast: cut.fast, blocks: cut.blocks, pinned: copy.pinned, placed: copy.placed });
            for (start, end) in [(key, cut_start), (cut_end, end)] {
                if start < end {
                    let rest = part(start, end);
                    left.push((start, rest.blocks));
                    self.insert(start, rest);
                }
            }
        }
        (gone, left)
    }

    /// The copies that begin in a range of blocks here.
    pub fn in_fast(&self, range: Range<u64>) -> Vec<(u64, Copy)> {
        let keys = self.by_fast.range(range).map(|(_, key)| *key);
        keys.filter_map(|key| Some((key, *self.copies.get(&key)?))).collect()
    }

    /// The copies of an object.
    pub fn of_object(&self, object: u64) -> Vec<(u64, Copy)> {
        let keys = self.by_object.range((object, 0)..=(object, u64::MAX)).map(|(_, key)| *key);
        keys.filter_map(|key| Some((key, *self.copies.get(&key)?))).collect()
    }

    /// Pins a copy, or lets it go.
    pub fn pin(&mut self, key: u64, pinned: bool) {
        if let Some(copy) = self.copies.get_mut(&key) {
            copy.pinned = pinned;
        }
    }
}

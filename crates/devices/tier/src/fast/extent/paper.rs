//! Segments and sub-segments: the allocation of paper 4, sections 3.2 and 3.3, with its errors put
//! right.
//!
//! An extent of `s` blocks has the clean segment (block 0) and segments of 1, 2, 4, ... blocks that
//! begin at their own length. In an extent larger than a threshold the last of them, its upper
//! half, is divided in the same way into sub-segments, and the segment's own bits stand for its
//! first block. Content begins at a (sub-)segment and takes whole ones; what it leaves of its last
//! one only it can use, by growing. Each has two bits: free, begins here, goes on here, or being
//! written.
//!
//! Extents with room stand in tables by the (sub-)segment at which their largest hole begins, the
//! one that waits longest first. What differs from the paper, after `research/hybrid-peers.md`, 2.2
//! and 2.3:
//! * An extent is clean when nothing of it is in use, not when its first segment is free: the
//!   paper's rule writes over files (1). That needs a count of the blocks in use.
//! * Small extents have no sub-segments; algorithm 1 marks some (2). The first block of the upper
//!   half is a unit (3).
//! * A unit is free when none of its blocks is in use, so that a file can be cut anywhere (5);
//!   growth uses the rest of its last unit (7).
//! * Content that needs whole extents needs their number rounded up, and leaves no hole if it fits
//!   exactly (8).
//! * Extents that hold something are tried before clean ones, and there is an answer when nothing
//!   fits (9); of the first of each table that fit, the one that waits longest is taken (10, 11).
//!   Tables are left and entered again at each change (12, 14); a hole across the middle is one
//!   (13).

use super::bits::Bits;
use super::{Allocate, Run};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// The extents of a section that are no larger than this have no sub-segments: 16 KiB in blocks of
/// 1 KiB.
pub const SMALL_EXTENT_BLOCKS: u32 = 16;

/// Extents that were opened last and can still be sealed, for each table.
const OPENED_PER_TABLE: usize = 64;

/// Two bits of a segment or sub-segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Free,
    /// Content begins here.
    Begins,
    /// Content that began before goes on.
    GoesOn,
}

#[derive(Debug)]
struct PaperExtent {
    units: Vec<Unit>,
    live: u32,
    /// The table that it stands in, since when, and the blocks of its hole; `None` if it is clean,
    /// full or sealed.
    listed: Option<(usize, u64, u32)>,
    is_sealed: bool,
}

/// A free range of an extent: its first unit, its first block and its length.
#[derive(Clone, Copy, Debug)]
struct Hole {
    unit: usize,
    start: u32,
    blocks: u32,
}

/// A section.
pub struct Paper {
    extent_blocks: u32,
    /// Where each unit begins, and the extent's end.
    starts: Vec<u32>,
    extents: Vec<PaperExtent>,
    clean: BTreeSet<u32>,
    /// One for each unit: extents whose largest hole begins there, by the time since when.
    tables: Vec<BTreeSet<(u64, u32)>>,
    used_bits: Bits,
    used: u64,
    /// The holes of all listed extents together.
    listed_blocks: u64,
    next_time: u64,
    opened: VecDeque<u32>,
}

impl Paper {
    /// An empty section; extents of more than `small_blocks` have sub-segments.
    #[must_use]
    pub fn new(blocks: u64, extent_blocks: u32, small_blocks: u32) -> Self {
        let extent_blocks = extent_blocks.max(1).next_power_of_two();
        let starts = unit_starts(extent_blocks, extent_blocks > small_blocks);
        let units = starts.len() - 1;
        let count = (blocks / u64::from(extent_blocks)) as u32;
        let extent = || PaperExtent { units: alloc::vec![Unit::Free; units], live: 0, listed: None, is_sealed: false };
        Self {
            extent_blocks,
            extents: (0..count).map(|_| extent()).collect(),
            clean: (0..count).collect(),
            tables: (0..units).map(|_| BTreeSet::new()).collect(),
            starts,
            used_bits: Bits::new(blocks),
            used: 0,
            listed_blocks: 0,
            next_time: 0,
            opened: VecDeque::new(),
        }
    }

    /// Bits that the states of one extent take on the disk.
    #[must_use]
    pub fn bits_per_extent(&self) -> u32 {
        (self.starts.len() as u32 - 1) * 2
    }

    /// The unit that holds a block of an extent: algorithm 1's `p` and `q`.
    fn unit_of(&self, block: u32) -> usize {
        self.starts.partition_point(|start| *start <= block).saturating_sub(1)
    }

    fn range_of(&self, unit: usize) -> core::ops::Range<u32> {
        let start = |unit: usize| self.starts.get(unit).copied().unwrap_or(self.extent_blocks);
        start(unit)..start(unit + 1)
    }

    fn first_of(&self, extent: u32) -> u64 {
        u64::from(extent) * u64::from(self.extent_blocks)
    }

    fn largest_hole(&self, extent: u32) -> Option<Hole> {
        let units = &self.extents.get(extent as usize)?.units;
        let (mut best, mut current): (Option<Hole>, Option<Hole>) = (None, None);
        for (unit, state) in units.iter().enumerate() {
            let range = self.range_of(unit);
            current = match (state, current) {
                (Unit::Free, None) => Some(Hole { unit, start: range.start, blocks: range.end - range.start }),
                (Unit::Free, Some(hole)) => Some(Hole { blocks: range.end - hole.start, ..hole }),
                (Unit::Begins | Unit::GoesOn, _) => None,
            };
            if let Some(hole) = current
                && best.is_none_or(|best| best.blocks < hole.blocks)
            {
                best = Some(hole);
            }
        }
        best
    }

    /// Puts an extent where it belongs after a change.
    fn relink(&mut self, extent: u32) {
        let hole = self.largest_hole(extent);
        let Some(state) = self.extents.get_mut(extent as usize) else { return };
        if let Some((table, since, blocks)) = state.listed.take()
            && let Some(table) = self.tables.get_mut(table)
        {
            table.remove(&(since, extent));
            self.listed_blocks -= u64::from(blocks);
        }
        if state.live == 0 {
            state.is_sealed = false;
            self.clean.insert(extent);
            return;
        }
        self.clean.remove(&extent);
        if let Some(hole) = hole.filter(|_| !state.is_sealed)
            && let Some(table) = self.tables.get_mut(hole.unit)
        {
            state.listed = Some((hole.unit, self.next_time, hole.blocks));
            self.listed_blocks += u64::from(hole.blocks);
            table.insert((self.next_time, extent));
            self.next_time += 1;
        }
    }

    /// Algorithm 1 for an allocation: marks blocks from the start of a unit on.
    fn mark(&mut self, extent: u32, start: u32, blocks: u32) -> Run {
        let units = self.unit_of(start)..=self.unit_of(start + blocks - 1);
        let run = Run { start: self.first_of(extent) + u64::from(start), blocks };
        if let Some(state) = self.extents.get_mut(extent as usize) {
            if state.live == 0 {
                self.opened.push_back(extent);
                if self.opened.len() > self.tables.len() * OPENED_PER_TABLE {
                    self.opened.pop_front();
                }
            }
            for unit in units.clone() {
                if let Some(unit_state) = state.units.get_mut(unit) {
                    *unit_state = if unit == *units.start() { Unit::Begins } else { Unit::GoesOn };
                }
            }
            state.live += blocks;
        }
        self.used += u64::from(blocks);
        for block in run.start..run.end() {
            self.used_bits.set(block, true);
        }
        run
    }

    /// An extent that holds something and has a hole of so many blocks.
    fn fitting(&self, blocks: u32) -> Option<(u32, Hole)> {
        let fits = |extent: u32| self.largest_hole(extent).filter(|hole| hole.blocks >= blocks);
        let heads = self.tables.iter().filter_map(|table| table.first());
        let oldest =
            heads.filter_map(|(since, extent)| Some((*since, *extent, fits(*extent)?))).min_by_key(|head| head.0);
        if let Some((_, extent, hole)) = oldest {
            return Some((extent, hole));
        }
        if !self.clean.is_empty() {
            return None;
        }
        // Behind the first of a table one may have room that the first has not.
        let all = self.tables.iter().flatten().map(|(_, extent)| *extent);
        all.into_iter().find_map(|extent| Some((extent, fits(extent)?)))
    }
}

/// Where units begin in an extent of a power of two blocks, and its end.
fn unit_starts(extent_blocks: u32, has_sub_segments: bool) -> Vec<u32> {
    let mut starts = alloc::vec![0];
    let mut start = 1;
    while start < extent_blocks {
        starts.push(start);
        start *= 2;
    }
    let half = extent_blocks / 2;
    if has_sub_segments && half > 1 {
        let mut start = 1;
        while start < half {
            starts.push(half + start);
            start *= 2;
        }
    }
    starts.push(extent_blocks);
    starts
}

impl Allocate for Paper {
    fn allocate(&mut self, blocks: u32) -> Option<Vec<Run>> {
        if blocks < self.extent_blocks {
            let (extent, start) = match self.fitting(blocks) {
                Some((extent, hole)) => (extent, hole.start),
                None => (*self.clean.first()?, 0),
            };
            let run = self.mark(extent, start, blocks);
            self.relink(extent);
            return Some(alloc::vec![run]);
        }
        let count = blocks.div_ceil(self.extent_blocks) as usize;
        let extents: Vec<u32> = self.clean.iter().copied().take(count).collect();
        if extents.len() < count {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut left = blocks;
        for extent in extents {
            let run = self.mark(extent, 0, left.min(self.extent_blocks));
            self.relink(extent);
            left -= run.blocks;
            match runs.last_mut() {
                Some(last) if last.end() == run.start => last.blocks += run.blocks,
                _ => runs.push(run),
            }
        }
        Some(runs)
    }

    /// The rest of the last unit, and what is free behind it.
    fn extend(&mut self, end: u64, blocks: u32) -> u32 {
        let size = u64::from(self.extent_blocks);
        let Some(before) = end.checked_sub(1).filter(|before| self.used_bits.get(*before)) else { return 0 };
        if before / size != end / size {
            return 0;
        }
        let (extent, at) = ((end / size) as u32, (end % size) as u32);
        let own = self.unit_of(at - 1);
        let mut granted = 0;
        while granted < blocks && at + granted < self.extent_blocks {
            let unit = self.unit_of(at + granted);
            let block = end + u64::from(granted);
            let Some(state) = self.extents.get_mut(extent as usize) else { break };
            let Some(unit_state) = state.units.get_mut(unit) else { break };
            if unit != own && *unit_state == Unit::Free {
                *unit_state = Unit::GoesOn;
            } else if self.used_bits.get(block) || (unit != own && *unit_state == Unit::Begins) {
                break;
            }
            self.used_bits.set(block, true);
            state.live += 1;
            self.used += 1;
            granted += 1;
        }
        self.relink(extent);
        granted
    }

    fn free(&mut self, run: Run) {
        let size = u64::from(self.extent_blocks);
        let end = run.end().min(self.blocks());
        let mut changed: BTreeSet<u32> = BTreeSet::new();
        for block in run.start..end {
            if self.used_bits.set(block, false) {
                let extent = (block / size) as u32;
                changed.insert(extent);
                self.used -= 1;
                if let Some(state) = self.extents.get_mut(extent as usize) {
                    state.live -= 1;
                }
            }
        }
        for extent in changed {
            let first = self.first_of(extent);
            for unit in 0..self.starts.len() - 1 {
                let range = self.range_of(unit);
                if self.used_bits.are_clear(first + u64::from(range.start)..first + u64::from(range.end))
                    && let Some(state) = self.extents.get_mut(extent as usize)
                    && let Some(unit_state) = state.units.get_mut(unit)
                {
                    *unit_state = Unit::Free;
                }
            }
            self.relink(extent);
        }
    }

    fn take(&mut self, run: Run) -> bool {
        let size = u64::from(self.extent_blocks);
        let fits = run.start.checked_add(u64::from(run.blocks)).is_some_and(|end| end <= self.blocks());
        if !fits || run.blocks == 0 || !self.used_bits.are_clear(run.start..run.end()) {
            return false;
        }
        let mut start = run.start;
        while start < run.end() {
            let extent = (start / size) as u32;
            let blocks = (run.end().min(self.first_of(extent + 1)) - start) as u32;
            self.mark(extent, (start % size) as u32, blocks);
            self.relink(extent);
            start += u64::from(blocks);
        }
        true
    }

    fn blocks(&self) -> u64 {
        self.extents.len() as u64 * u64::from(self.extent_blocks)
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn room(&self) -> u64 {
        self.listed_blocks + self.clean.len() as u64 * u64::from(self.extent_blocks)
    }

    fn unit_blocks(&self) -> u32 {
        self.extent_blocks
    }

    fn live(&self, unit: u32) -> u32 {
        self.extents.get(unit as usize).map_or(0, |extent| extent.live)
    }

    /// The time limit of the paper: an extent leaves the tables and comes back when it is empty.
    fn seal(&mut self, kept: usize) {
        while self.opened.len() > kept {
            let Some(extent) = self.opened.pop_front() else { return };
            if let Some(state) = self.extents.get_mut(extent as usize)
                && state.live > 0
            {
                state.is_sealed = true;
                self.relink(extent);
            }
        }
    }
}

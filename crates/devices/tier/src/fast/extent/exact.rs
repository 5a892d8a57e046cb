//! Exact runs of blocks inside open extents.
//!
//! Without stripes the best fit among the holes of extents that hold something comes first, then a
//! clean extent; only when neither has room in one piece is content divided. With stripes the unit
//! is the stripe (or the extent, if that is larger): one is open at a time and filled from its
//! first block to its last, so that it can be written in one sequential batch. What is given back
//! inside it is room again when the whole stripe is empty.

use super::bits::Bits;
use super::{Allocate, Run};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Content is not divided into more runs than this.
const MOST_RUNS: usize = 16;

/// A section.
pub struct Exact {
    used_bits: Bits,
    used: u64,
    unit_blocks: u32,
    live: Vec<u32>,
    clean: BTreeSet<u32>,
    fill: Fill,
}

enum Fill {
    /// Free runs of units that hold something, by their start and by their length.
    Holes { by_start: BTreeMap<u64, u32>, by_length: BTreeSet<(u32, u64)>, next: u32 },
    /// The unit that is being filled and its first free block.
    InOrder { open: Option<(u32, u64)>, next: u32 },
}

impl Exact {
    /// An empty section of `blocks`.
    #[must_use]
    pub fn new(blocks: u64, extent_blocks: u32, stripe_blocks: u32) -> Self {
        let unit_blocks = extent_blocks.max(stripe_blocks).max(1);
        let units = (blocks / u64::from(unit_blocks)) as u32;
        let fill = if stripe_blocks > 1 {
            Fill::InOrder { open: None, next: 0 }
        } else {
            Fill::Holes { by_start: BTreeMap::new(), by_length: BTreeSet::new(), next: 0 }
        };
        let live = alloc::vec![0; units as usize];
        Self { used_bits: Bits::new(blocks), used: 0, unit_blocks, live, clean: (0..units).collect(), fill }
    }

    fn unit_of(&self, block: u64) -> u32 {
        (block / u64::from(self.unit_blocks)) as u32
    }

    fn first_of(&self, unit: u32) -> u64 {
        u64::from(unit) * u64::from(self.unit_blocks)
    }

    /// Marks blocks of one unit as in use, or not.
    fn mark(&mut self, run: Run, in_use: bool) {
        let unit = self.unit_of(run.start);
        let changed = (run.start..run.end()).filter(|block| self.used_bits.set(*block, in_use)).count() as u32;
        let Some(live) = self.live.get_mut(unit as usize) else { return };
        if in_use {
            *live += changed;
            self.used += u64::from(changed);
        } else {
            *live -= changed;
            self.used -= u64::from(changed);
        }
        let after = *live;
        if let Fill::InOrder { open, .. } = &self.fill
            && open.is_none_or(|(open, _)| open != unit)
            && after == 0
        {
            self.clean.insert(unit);
        }
    }

    /// A clean unit, the next in the order of addresses.
    fn take_clean(&mut self) -> Option<u32> {
        let (Fill::Holes { next, .. } | Fill::InOrder { next, .. }) = &mut self.fill;
        let unit = *self.clean.range(*next..).next().or_else(|| self.clean.first())?;
        *next = unit + 1;
        self.clean.remove(&unit);
        Some(unit)
    }

    /// The next run of at most `blocks` in the order of a stripe.
    fn next_in_order(&mut self, blocks: u32) -> Option<Run> {
        let unit_blocks = u64::from(self.unit_blocks);
        let Fill::InOrder { open, .. } = &self.fill else { return None };
        let (unit, start) = match open {
            Some((unit, tail)) => (*unit, *tail),
            None => {
                let unit = self.take_clean()?;
                (unit, self.first_of(unit))
            }
        };
        let end = (u64::from(unit) + 1) * unit_blocks;
        let run = Run { start, blocks: blocks.min((end - start) as u32) };
        // Open while it is marked, so that it does not count as closed before it is full.
        if let Fill::InOrder { open, .. } = &mut self.fill {
            *open = Some((unit, run.end()));
        }
        self.mark(run, true);
        if run.end() == end {
            self.close_open();
        }
        Some(run)
    }

    /// Takes no more into the open unit.
    fn close_open(&mut self) {
        let Fill::InOrder { open, .. } = &mut self.fill else { return };
        let Some((unit, _)) = open.take() else { return };
        if self.live.get(unit as usize) == Some(&0) {
            self.clean.insert(unit);
        }
    }

    fn add_hole(&mut self, start: u64, blocks: u32) {
        if let Fill::Holes { by_start, by_length, .. } = &mut self.fill
            && blocks > 0
        {
            by_start.insert(start, blocks);
            by_length.insert((blocks, start));
        }
    }

    fn drop_hole(&mut self, start: u64) -> u32 {
        let Fill::Holes { by_start, by_length, .. } = &mut self.fill else { return 0 };
        let blocks = by_start.remove(&start).unwrap_or(0);
        by_length.remove(&(blocks, start));
        blocks
    }

    /// Takes the first `blocks` of a hole.
    fn cut_hole(&mut self, start: u64, blocks: u32) -> Run {
        Run { start, blocks: self.drop_hole(start).min(blocks) }
    }

    /// The next run of at most `blocks` from the holes and clean units.
    fn next_in_holes(&mut self, blocks: u32) -> Option<Run> {
        let Fill::Holes { by_length, .. } = &self.fill else { return None };
        let fitting = by_length.range((blocks, 0)..).next().copied();
        let largest = by_length.last().copied();
        let whole_unit = blocks >= self.unit_blocks;
        let clean = if whole_unit || fitting.is_none() { self.take_clean() } else { None };
        let (start, length) = match (fitting, clean) {
            (_, Some(unit)) => {
                let start = self.first_of(unit);
                self.add_hole(start, self.unit_blocks);
                (start, self.unit_blocks)
            }
            (Some((length, start)), None) => (start, length),
            (None, None) => largest.map(|(length, start)| (start, length))?,
        };
        let run = self.cut_hole(start, blocks);
        self.add_hole(run.end(), length - run.blocks);
        self.mark(run, true);
        Some(run)
    }

    /// Makes freed blocks of one unit a hole, together with the holes beside them, or the unit
    /// clean.
    fn open_hole(&mut self, run: Run) {
        let unit = self.unit_of(run.start);
        let (first, end) = (self.first_of(unit), self.first_of(unit + 1));
        let (mut start, mut stop) = (run.start, run.end());
        while start > first && !self.used_bits.get(start - 1) {
            start -= 1;
        }
        while stop < end && !self.used_bits.get(stop) {
            stop += 1;
        }
        let Fill::Holes { by_start, .. } = &self.fill else { return };
        let inside: Vec<u64> = by_start.range(start..stop).map(|(start, _)| *start).collect();
        for hole in inside {
            self.drop_hole(hole);
        }
        if start == first && stop == end {
            self.clean.insert(unit);
        } else {
            self.add_hole(start, (stop - start) as u32);
        }
    }

    /// The parts of a run by unit.
    fn by_unit(&self, run: Run) -> Vec<Run> {
        let mut parts = Vec::new();
        let mut start = run.start;
        while start < run.end() {
            let end = run.end().min(self.first_of(self.unit_of(start) + 1));
            parts.push(Run { start, blocks: (end - start) as u32 });
            start = end;
        }
        parts
    }
}

impl Allocate for Exact {
    fn allocate(&mut self, blocks: u32) -> Option<Vec<Run>> {
        if u64::from(blocks) > self.room() {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let next = match self.fill {
                Fill::Holes { .. } => self.next_in_holes(left),
                Fill::InOrder { .. } => self.next_in_order(left),
            };
            let Some(run) = next else {
                // As nobody asked: nothing is changed.
                runs.into_iter().for_each(|run| self.free(run));
                return None;
            };
            left -= run.blocks;
            match runs.last_mut() {
                Some(last) if last.end() == run.start => last.blocks += run.blocks,
                _ => runs.push(run),
            }
            if runs.len() > MOST_RUNS {
                runs.into_iter().for_each(|run| self.free(run));
                return None;
            }
        }
        Some(runs)
    }

    fn extend(&mut self, end: u64, blocks: u32) -> u32 {
        let Some(before) = end.checked_sub(1) else { return 0 };
        if self.unit_of(before) != self.unit_of(end) {
            return 0;
        }
        match &self.fill {
            Fill::InOrder { open, .. } => {
                if open.is_none_or(|(_, tail)| tail != end) {
                    return 0;
                }
                self.next_in_order(blocks).map_or(0, |run| run.blocks)
            }
            Fill::Holes { by_start, .. } => {
                let Some(length) = by_start.get(&end).copied() else { return 0 };
                let run = self.cut_hole(end, blocks);
                self.add_hole(run.end(), length - run.blocks);
                self.mark(run, true);
                run.blocks
            }
        }
    }

    fn free(&mut self, run: Run) {
        for part in self.by_unit(run) {
            if self.unit_of(part.start) as usize >= self.live.len() {
                return;
            }
            if self.used_bits.are_clear(part.start..part.end()) {
                continue;
            }
            self.mark(part, false);
            self.open_hole(part);
        }
    }

    fn take(&mut self, run: Run) -> bool {
        let fits = run.start.checked_add(u64::from(run.blocks)).is_some_and(|end| end <= self.blocks());
        if !fits || run.blocks == 0 || !self.used_bits.are_clear(run.start..run.end()) {
            return false;
        }
        for part in self.by_unit(run) {
            let unit = self.unit_of(part.start);
            if self.clean.remove(&unit) {
                self.add_hole(self.first_of(unit), self.unit_blocks);
            }
            if let Fill::Holes { by_start, .. } = &self.fill {
                let hole = by_start.range(..=part.start).next_back().map(|(start, _)| *start);
                if let Some(start) = hole {
                    let end = start + u64::from(self.drop_hole(start));
                    self.add_hole(start, (part.start - start) as u32);
                    self.add_hole(part.end(), (end - part.end()) as u32);
                }
            }
            self.mark(part, true);
        }
        true
    }

    fn blocks(&self) -> u64 {
        self.live.len() as u64 * u64::from(self.unit_blocks)
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn room(&self) -> u64 {
        match &self.fill {
            Fill::Holes { .. } => self.blocks() - self.used,
            Fill::InOrder { open, .. } => {
                let tail = open.map_or(0, |(unit, tail)| self.first_of(unit + 1) - tail);
                tail + self.clean.len() as u64 * u64::from(self.unit_blocks)
            }
        }
    }

    fn unit_blocks(&self) -> u32 {
        self.unit_blocks
    }

    fn live(&self, unit: u32) -> u32 {
        self.live.get(unit as usize).copied().unwrap_or(0)
    }

    fn seal(&mut self, kept: usize) {
        if kept == 0 {
            self.close_open();
        }
    }
}

//! One section at work: its blocks, the order in which its copies go, and blocks that wait for a
//! snapshot.

use super::extent::{Allocate, Run, Scheme};
use super::format::SectionPlace;
use super::map::Copy;
use crate::policy::{Build, Policy};
use crate::space::discard_queue::DiscardQueue;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

pub(super) struct Section {
    pub place: SectionPlace,
    pub allocator: Box<dyn Allocate>,
    /// Knows the copies here that somebody placed here and that are not pinned.
    placed: Box<dyn Policy>,
    /// Knows the others that are not pinned.
    others: Box<dyn Policy>,
    /// Given up; handed out again when a snapshot without them is durable.
    quarantine: Vec<Run>,
    quarantined: u64,
    /// Handed out to nobody since.
    pub discards: DiscardQueue,
    pub pinned_blocks: u64,
    /// Filled in whole stripes: the end of what was handed out last.
    tail: Option<u64>,
    in_order: bool,
    /// For each unit, the request at which it was filled last.
    filled: Vec<u64>,
}

impl Section {
    pub fn new(place: SectionPlace, stripe: u64, policy: Build) -> Self {
        let allocator = place.scheme.build(place.blocks, place.extent_blocks, stripe as u32);
        // Some room is always kept, so that the last part never holds anything for long.
        let kept = allocator.blocks() - high_water(allocator.as_ref()).min(allocator.blocks());
        let (placed, others) = (policy(kept), policy(kept));
        let units = allocator.blocks() / u64::from(allocator.unit_blocks().max(1));
        let filled = alloc::vec![0; units as usize];
        let in_order = place.scheme == Scheme::Exact && stripe > 1;
        Self {
            place,
            allocator,
            placed,
            others,
            quarantine: Vec::new(),
            quarantined: 0,
            discards: DiscardQueue::default(),
            pinned_blocks: 0,
            tail: None,
            in_order,
            filled,
        }
    }

    /// What knows the copies that somebody placed here, or the others.
    pub fn policy(&mut self, placed: bool) -> &mut dyn Policy {
        if placed { self.placed.as_mut() } else { self.others.as_mut() }
    }

    /// What goes first for content that somebody placed here, or for other content: that never
    /// drives out what was placed here.
    pub fn victim(&mut self, for_placed: bool, tick: u64) -> Option<u64> {
        let other = self.others.victim(tick);
        if for_placed { other.or_else(|| self.placed.victim(tick)) } else { other }
    }

    /// Whether a copy stays when room is made for content that somebody placed here, or for other
    /// content.
    pub fn stays(&self, key: u64, copy: &Copy, for_placed: bool) -> bool {
        match copy.placed {
            _ if copy.pinned => true,
            true => !for_placed || self.placed.is_hot(key),
            false => self.others.is_hot(key),
        }
    }

    /// Blocks of copies that nobody placed here.
    pub fn lent_blocks(&self) -> u64 {
        self.others.used()
    }

    /// How often what would go first for content that nobody placed was asked for; `None` if
    /// nothing would.
    pub fn least_heat(&self) -> Option<u8> {
        (self.others.used() > 0).then(|| self.others.least_heat())
    }

    /// How often a copy was asked for, and whether it is hot.
    pub fn heat(&self, key: u64, placed: bool) -> (u8, bool) {
        let policy = if placed { &self.placed } else { &self.others };
        (policy.heat(key), policy.is_hot(key))
    }

    /// Whether blocks of the disk lie in this section.
    pub fn holds(&self, fast: u64, blocks: u32) -> bool {
        fast >= self.place.first
            && fast.checked_add(u64::from(blocks)).is_some_and(|end| end <= self.place.first + self.allocator.blocks())
    }

    const fn run(&self, fast: u64, blocks: u32) -> Run {
        Run { start: fast - self.place.first, blocks }
    }

    /// Places for content, in its order, none of them across the border of an extent: what is used
    /// of a large piece stays and goes apart from the rest of it.
    pub fn allocate(&mut self, blocks: u32, tick: u64) -> Option<Vec<Run>> {
        let (unit, extent) = (u64::from(self.allocator.unit_blocks()), u64::from(self.place.extent_blocks));
        let mut places = Vec::new();
        for run in self.allocator.allocate(blocks)? {
            let mut start = run.start;
            while start < run.end() {
                let end = run.end().min((start / extent + 1) * extent);
                if let Some(filled) = self.filled.get_mut((start / unit) as usize) {
                    *filled = tick;
                }
                self.discards.taken(self.place.first + start, end - start);
                places.push(Run { start: self.place.first + start, blocks: (end - start) as u32 });
                start = end;
            }
        }
        self.tail = places.last().map(|run| run.end());
        Some(places)
    }

    /// Blocks of the disk are in use already.
    pub fn take(&mut self, fast: u64, blocks: u32) -> bool {
        self.holds(fast, blocks) && self.allocator.take(self.run(fast, blocks))
    }

    /// Blocks were given up.
    pub fn give_up(&mut self, fast: u64, blocks: u32) {
        if self.holds(fast, blocks) {
            self.quarantine.push(self.run(fast, blocks));
            self.quarantined += u64::from(blocks);
        }
    }

    /// A snapshot without what was given up is durable.
    pub fn release(&mut self) {
        for run in core::mem::take(&mut self.quarantine) {
            self.allocator.free(run);
            self.discards.add(self.place.first + run.start, u64::from(run.blocks));
        }
        self.quarantined = 0;
    }

    /// Whether anything waits for a snapshot.
    pub fn has_given_up(&self) -> bool {
        !self.quarantine.is_empty()
    }

    /// Blocks of the unit that is being filled: it is written when it is full. `None` where blocks
    /// are written as they come.
    pub fn open_unit(&self) -> Option<Range<u64>> {
        let tail = self.tail.filter(|_| self.in_order)?;
        let range = self.unit_range(tail);
        (tail > range.start).then_some(range)
    }

    /// The blocks of the unit that holds a block of the disk.
    pub fn unit_range(&self, fast: u64) -> Range<u64> {
        let unit = u64::from(self.allocator.unit_blocks());
        let first = self.place.first + (fast - self.place.first) / unit * unit;
        first..first + unit
    }

    /// The request at which the unit that holds a block of the disk was filled last.
    pub fn filled_at(&self, fast: u64) -> u64 {
        let unit = (fast - self.place.first) / u64::from(self.allocator.unit_blocks());
        self.filled.get(unit as usize).copied().unwrap_or(0)
    }

    /// Takes no more into the unit that is being filled.
    pub fn seal(&mut self) {
        self.allocator.seal(0);
        self.tail = None;
    }

    /// Whether whole units are filled in order, and emptied as one.
    pub const fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// Whether so many blocks have room that was not made by giving up others.
    pub fn has_room(&self, blocks: u32) -> bool {
        self.allocator.room() >= u64::from(blocks) + self.high_water()
    }

    /// Whether there is less room than there should be.
    pub fn is_short(&self) -> bool {
        self.allocator.room() < self.low_water()
    }

    /// Room that there should be at least.
    pub fn low_water(&self) -> u64 {
        (self.allocator.blocks() / 64).max(u64::from(self.allocator.unit_blocks()))
    }

    /// Room that is made at once when there is less.
    pub fn high_water(&self) -> u64 {
        high_water(self.allocator.as_ref())
    }

    /// Blocks that are in use and were not given up.
    pub fn kept_blocks(&self) -> u64 {
        self.allocator.used() - self.quarantined
    }
}

fn high_water(allocator: &dyn Allocate) -> u64 {
    (allocator.blocks() / 16).max(2 * u64::from(allocator.unit_blocks()))
}

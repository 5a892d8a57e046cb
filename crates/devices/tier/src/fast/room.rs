//! Room for copies: which of those that there are go.
//!
//! Room is made for many copies at once, because each time costs a snapshot: what was given up may
//! be overwritten only when no durable snapshot names it any more. Where holes are filled, the
//! copies go that the policy names. Where stripes are filled whole they are emptied whole: those
//! first that hold little of what is hot and were filled long ago; the hot is moved and counts as
//! new, so that it has to be used again before the next time.

use super::map::Copy;
use super::section::Section;
use super::{BLOCK, Fast};
use crate::medium::errors::from_media;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::MediaErrorKind;
use onode_media::tag::IoTag;
use onode_object::Result;

/// A stripe that could be emptied.
struct Candidate {
    blocks: Range<u64>,
    /// Blocks that would have to be moved.
    hot: u64,
    /// Blocks that would be dropped.
    cold: u64,
    age: u64,
}

impl Candidate {
    fn size(&self) -> u64 {
        self.blocks.end - self.blocks.start
    }

    /// What is gained against what it costs, and the longer for how long nobody looked.
    fn worth(&self) -> u64 {
        (self.size() - self.hot.min(self.size())) * self.age.min(1 << 40) / (self.size() + self.hot)
    }

    /// Whether it is worth being moved together.
    fn is_worthwhile(&self) -> bool {
        self.hot * 4 <= self.size() * 3
    }
}

impl Fast {
    fn room(&self, number: usize) -> u64 {
        self.sections.get(number).map_or(0, |section| section.allocator.room())
    }

    /// Makes room for `blocks` in a section, and for more at once if there was too little; false if
    /// that cannot be. Content that nobody placed there drives out nothing that somebody did.
    pub(super) fn make_room(&mut self, number: usize, blocks: u64, for_placed: bool) -> Result<bool> {
        let Some(section) = self.sections.get(number) else { return Ok(false) };
        if section.allocator.room() >= blocks + section.low_water() {
            return Ok(true);
        }
        let target = blocks + section.high_water();
        let in_order = section.is_in_order();
        // While there is enough of what was only lent, what is hot of it is moved and not dropped.
        let for_placed = for_placed && section.lent_blocks() < target;
        // What was given up already may be enough.
        self.release(number)?;
        if self.room(number) < target {
            if in_order {
                self.empty_stripes(number, target, for_placed)?;
            } else {
                self.evict_coldest(number, target, for_placed);
            }
            self.release(number)?;
        }
        Ok(self.room(number) >= blocks)
    }

    /// Makes what was given up in a section room again.
    fn release(&mut self, number: usize) -> Result<()> {
        if self.sections.get(number).is_some_and(Section::has_given_up) {
            self.snapshot()?;
        }
        Ok(())
    }

    /// Gives up the copies that the policy names until there will be room for `target` blocks.
    fn evict_coldest(&mut self, number: usize, target: u64, for_placed: bool) {
        let mut expected = self.room(number);
        let tick = self.tick;
        while expected < target
            && let Some(key) = self.sections.get_mut(number).and_then(|section| section.victim(for_placed, tick))
        {
            expected += self.evict(key);
        }
    }

    /// Gives up a copy for want of room; how many blocks it had.
    fn evict(&mut self, key: u64) -> u64 {
        self.counts.evicted += 1;
        if let Some((_, copy)) = self.map.find(key) {
            self.admission.goes(key, copy.born, copy.blocks);
        }
        self.drop_copy(key)
    }

    /// Empties stripes until there is room for `target` blocks, or nothing is left to be emptied.
    fn empty_stripes(&mut self, number: usize, target: u64, for_placed: bool) -> Result<()> {
        let mut candidates = self.candidates(number, for_placed);
        if !candidates.iter().any(Candidate::is_worthwhile) {
            // All is hot: the coldest of it goes, wherever it lies.
            self.evict_coldest(number, target, for_placed);
            candidates = self.candidates(number, for_placed);
            candidates.sort_by_key(|candidate| core::cmp::Reverse(candidate.hot));
        } else {
            candidates.retain(Candidate::is_worthwhile);
            candidates.sort_by_key(Candidate::worth);
        }
        let mut expected = self.room(number);
        while expected < target
            && let Some(candidate) = candidates.pop()
        {
            if self.room(number) < candidate.hot {
                self.release(number)?;
            }
            self.empty_stripe(number, &candidate, for_placed)?;
            expected += candidate.size();
            expected = expected.saturating_sub(candidate.hot);
        }
        Ok(())
    }

    /// The stripes of a section that hold anything and are not being filled.
    fn candidates(&self, number: usize, for_placed: bool) -> Vec<Candidate> {
        let Some(section) = self.sections.get(number) else { return Vec::new() };
        let open = section.open_unit();
        let mut all: Vec<Candidate> = Vec::new();
        for (key, copy) in self.map.in_fast(section.place.first..section.place.end()) {
            let unit = section.unit_range(copy.fast);
            if open.as_ref() == Some(&unit) {
                continue;
            }
            if all.last().is_none_or(|last| last.blocks != unit) {
                let age = self.tick - section.filled_at(unit.start).min(self.tick);
                all.push(Candidate { blocks: unit, hot: 0, cold: 0, age: age + 1 });
            }
            let Some(candidate) = all.last_mut() else { continue };
            if section.stays(key, &copy, for_placed) {
                candidate.hot += u64::from(copy.blocks);
            } else {
                candidate.cold += u64::from(copy.blocks);
            }
        }
        all
    }

    /// Gives up all copies of a stripe but the hot ones, which are moved as long as there is room.
    fn empty_stripe(&mut self, number: usize, candidate: &Candidate, for_placed: bool) -> Result<()> {
        for (key, copy) in self.map.in_fast(candidate.blocks.clone()) {
            let Some(section) = self.sections.get(number) else { break };
            let stays = section.stays(key, &copy, for_placed);
            if stays && section.allocator.room() >= u64::from(copy.blocks) {
                self.move_copy(number, key, copy)?;
            } else if !copy.pinned && (for_placed || !copy.placed) {
                self.evict(key);
            }
        }
        Ok(())
    }

    /// Moves a copy within its section. Whether its bytes are right is found out when they are
    /// read.
    fn move_copy(&mut self, number: usize, key: u64, copy: Copy) -> Result<()> {
        let mut data = alloc::vec![0; copy.blocks as usize * BLOCK as usize];
        if !self.collection.read(copy.fast, &mut data) {
            if self.collection.holds_any(copy.fast..copy.fast + u64::from(copy.blocks)) {
                self.write_collected()?;
            }
            if let Err(error) = self.disk.read_at(copy.fast * BLOCK, &mut data, IoTag::Cleaning) {
                self.counts.damaged += 1;
                self.drop_copy(key);
                let is_local = error.kind == MediaErrorKind::Uncorrectable;
                return if is_local { Ok(()) } else { Err(from_media("moving copies on the fast disk", &error)) };
            }
        }
        self.drop_copy(key);
        let tick = self.tick;
        let Some(section) = self.sections.get_mut(number) else { return Ok(()) };
        let Some(places) = section.allocate(copy.blocks, tick) else { return Ok(()) };
        let (mut block, mut rest) = (key, data.as_slice());
        for place in places {
            let (own, more) = rest.split_at(place.blocks as usize * BLOCK as usize);
            self.add(number, block, Copy { blocks: place.blocks, fast: place.start, ..copy });
            self.collection.put(place.start, own, self.now);
            self.counts.moved += u64::from(place.blocks);
            block += u64::from(place.blocks);
            rest = more;
        }
        self.write_full()
    }
}

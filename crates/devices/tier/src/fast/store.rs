//! Copies come, go and make room for others.
//!
//! Room is made for many copies at once, because each time costs a snapshot: what was given up may be overwritten only
//! when no durable snapshot names it any more. Where stripes are filled whole they are emptied whole: the policy names the
//! coldest copy, and of what lies beside it in the same stripe the hot part is moved.

use super::extent::Run;
use super::map::{Copy, Gone};
use super::piece::{Piece, Refusal};
use super::section::Section;
use super::{BLOCK, Fast};
use crate::errors::from_media;
use alloc::vec::Vec;
use core::ops::Range;
use onode_media::tag::IoTag;
use onode_object::Result;

/// Whether content was taken.
pub(super) type Taken = core::result::Result<(), Refusal>;

impl Fast {
    /// What the placement of a piece and its size say, before anything else is asked.
    pub(super) fn section_for(&self, piece: &Piece) -> core::result::Result<usize, Refusal> {
        let number = piece.section(self.sections.len()).ok_or(Refusal::Bypass)?;
        let section = self.sections.get(number).ok_or(Refusal::Away)?;
        let blocks = section.allocator.blocks();
        if piece.blocks == 0 || piece.blocks > Piece::MOST_BLOCKS || u64::from(piece.blocks) > blocks / 4 {
            return Err(Refusal::TooLarge);
        }
        let is_pinned = self.is_pinned(piece);
        if is_pinned && section.pinned_blocks + u64::from(piece.blocks) > blocks / 2 {
            return Err(Refusal::Pinned);
        }
        Ok(number)
    }

    pub(super) fn is_pinned(&self, piece: &Piece) -> bool {
        piece.placement().pinned || self.pins.contains(&piece.object)
    }

    /// Whether all of a piece has its copy.
    pub(super) fn has(&self, piece: &Piece) -> bool {
        let mut block = piece.block;
        while block < piece.end() {
            match self.map.find(block) {
                Some((first, copy)) if copy.born == piece.born => block = first + u64::from(copy.blocks),
                _ => return false,
            }
        }
        true
    }

    /// Copies a piece into its section.
    pub(super) fn store(&mut self, piece: &Piece, data: &[u8]) -> Result<Taken> {
        let number = match self.section_for(piece) {
            Ok(number) => number,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if data.len() as u64 != u64::from(piece.blocks) * BLOCK {
            return Ok(Err(Refusal::TooLarge));
        }
        if self.has(piece) {
            return Ok(Ok(()));
        }
        self.cut(piece.block..piece.end());
        let Some(places) = self.places(number, piece.blocks)? else { return Ok(Err(Refusal::Full)) };
        let pinned = self.is_pinned(piece);
        let (mut block, mut rest) = (piece.block, data);
        for place in places {
            let (own, more) = rest.split_at(place.blocks as usize * BLOCK as usize);
            let copy = Copy { born: piece.born, blocks: place.blocks, fast: place.start, object: piece.object, pinned };
            self.add(number, block, copy);
            self.collection.put(place.start, own, self.now);
            block += u64::from(place.blocks);
            rest = more;
        }
        self.admission.spend(data.len() as u64);
        self.write_full()?;
        Ok(Ok(()))
    }

    /// Places for content, with room made for it; what is free may be in pieces too small, and then more goes.
    fn places(&mut self, number: usize, blocks: u32) -> Result<Option<Vec<Run>>> {
        for times in [1, 4, 16] {
            if !self.make_room(number, u64::from(blocks) * times)? {
                continue;
            }
            let places = self.sections.get_mut(number).and_then(|section| section.allocate(blocks));
            if places.is_some() {
                return Ok(places);
            }
        }
        Ok(None)
    }

    /// Puts a copy into the map, and tells the policy.
    fn add(&mut self, number: usize, block: u64, copy: Copy) {
        let now = self.tick;
        if let Some(section) = self.sections.get_mut(number) {
            if copy.pinned {
                section.pinned_blocks += u64::from(copy.blocks);
            } else {
                section.policy.insert(block, u64::from(copy.blocks), now);
            }
        }
        self.map.insert(block, copy);
        self.is_changed = true;
    }

    pub(super) fn section_of(&mut self, fast: u64) -> Option<&mut Section> {
        self.sections.iter_mut().find(|section| section.holds(fast, 1))
    }

    /// Takes a range of the big disk's blocks out of the map; how many of them had a copy.
    pub(super) fn cut(&mut self, range: Range<u64>) -> u64 {
        let (gone, left) = self.map.cut(range);
        let blocks = gone.iter().map(|gone| u64::from(gone.blocks)).sum();
        for Gone { key, fast, blocks, pinned } in gone {
            self.is_changed = true;
            let Some(section) = self.section_of(fast) else { continue };
            section.give_up(fast, blocks);
            if pinned {
                section.pinned_blocks = section.pinned_blocks.saturating_sub(u64::from(blocks));
            } else {
                section.policy.remove(key);
            }
        }
        let now = self.tick;
        for (key, blocks) in left {
            let Some((_, copy)) = self.map.find(key) else { continue };
            let (fast, pinned) = (copy.fast, copy.pinned);
            if let Some(section) = self.section_of(fast)
                && !pinned
            {
                section.policy.insert(key, u64::from(blocks), now);
            }
        }
        blocks
    }

    /// Takes one copy out, whole.
    pub(super) fn drop_copy(&mut self, key: u64) -> u64 {
        let end = self.map.find(key).map_or(key, |(first, copy)| first + u64::from(copy.blocks));
        self.cut(key..end)
    }

    /// Writes what fills its stripes, or all if too much waits or it waits for too long.
    pub(super) fn write_full(&mut self) -> Result<()> {
        let late = self.collection.is_older_than(self.now.saturating_sub(self.settings.collect_nanoseconds));
        if late {
            return self.write_collected();
        }
        let is_much = self.collection.bytes() >= self.settings.collect_bytes;
        // Stripes wait until they are full; what fills holes, until it is much.
        let waits = |section: &Section| match section.open_unit() {
            None if !section.is_in_order() && !is_much => Some(section.place.first..section.place.end()),
            open => open,
        };
        let kept: Vec<Range<u64>> = self.sections.iter().filter_map(waits).collect();
        self.collection.write(self.disk.as_mut(), &kept)?;
        if self.collection.bytes() >= self.settings.collect_bytes {
            return self.write_collected();
        }
        Ok(())
    }

    /// Writes all that was collected.
    pub(super) fn write_collected(&mut self) -> Result<()> {
        self.collection.write(self.disk.as_mut(), &[])
    }

    /// Makes room for `blocks` in a section, and for more at once if there was too little; false if that cannot be.
    pub(super) fn make_room(&mut self, number: usize, blocks: u64) -> Result<bool> {
        let Some(section) = self.sections.get(number) else { return Ok(false) };
        if section.allocator.room() >= blocks + section.low_water() {
            return Ok(true);
        }
        let target = blocks + section.high_water();
        // What was given up already may be enough.
        let mut expected = section.allocator.room();
        if section.has_given_up() {
            self.snapshot()?;
            expected = self.sections.get(number).map_or(0, |section| section.allocator.room());
        }
        let mut tries = self.sections.get(number).map_or(0, |section| section.allocator.blocks());
        while expected < target && tries > 0 {
            let gained = self.evict(number)?;
            if gained == 0 {
                break;
            }
            expected += gained;
            tries -= 1;
        }
        if self.sections.get(number).is_some_and(Section::has_given_up) {
            self.snapshot()?;
        }
        Ok(self.sections.get(number).is_some_and(|section| section.allocator.room() >= blocks))
    }

    /// Gives up the coldest copy, or the unit that it lies in; blocks gained.
    fn evict(&mut self, number: usize) -> Result<u64> {
        let now = self.tick;
        let Some(section) = self.sections.get_mut(number) else { return Ok(0) };
        let open = section.open_unit();
        if let Some(unit) = section.nearly_empty_unit().filter(|unit| !self.map.in_fast(unit.clone()).is_empty()) {
            return self.empty_unit(number, unit);
        }
        let Some(section) = self.sections.get_mut(number) else { return Ok(0) };
        let Some(key) = section.policy.victim(now) else { return Ok(0) };
        self.counts.evicted += 1;
        let Some((_, copy)) = self.map.find(key) else { return Ok(0) };
        let (fast, blocks) = (copy.fast, copy.blocks);
        let in_order = self.sections.get(number).is_some_and(Section::is_in_order);
        let unit = self.section_of(fast).map(|section| section.unit_range(fast));
        self.drop_copy(key);
        match unit.filter(|unit| in_order && open.as_ref() != Some(unit)) {
            Some(unit) => self.empty_unit(number, unit),
            // Copies of the section that lie elsewhere, after a division anew, go one by one.
            None => Ok(u64::from(blocks)),
        }
    }

    /// Gives up all copies of a unit but the hot ones, which are moved as long as they are few and there is room.
    fn empty_unit(&mut self, number: usize, unit: Range<u64>) -> Result<u64> {
        let mut movable = (unit.end - unit.start) / 4;
        for (key, copy) in self.map.in_fast(unit.clone()) {
            let size = u64::from(copy.blocks);
            let Some(section) = self.sections.get(number) else { break };
            let is_hot = copy.pinned || section.policy.is_hot(key);
            if is_hot && (copy.pinned || size <= movable) && section.allocator.room() >= size {
                movable = movable.saturating_sub(size);
                self.move_copy(number, key, copy)?;
            } else if !copy.pinned {
                self.counts.evicted += 1;
                self.drop_copy(key);
            }
        }
        Ok(unit.end - unit.start)
    }

    /// Moves a copy within its section. Whether its bytes are right is found out when they are read.
    fn move_copy(&mut self, number: usize, key: u64, copy: Copy) -> Result<()> {
        let mut data = alloc::vec![0; copy.blocks as usize * BLOCK as usize];
        if !self.collection.read(copy.fast, &mut data) {
            if self.collection.holds_any(copy.fast..copy.fast + u64::from(copy.blocks)) {
                self.write_collected()?;
            }
            let read = self.disk.read_at(copy.fast * BLOCK, &mut data, IoTag::Cleaning);
            if let Err(error) = read {
                self.counts.damaged += 1;
                self.drop_copy(key);
                return if error.kind == onode_media::MediaErrorKind::Uncorrectable {
                    Ok(())
                } else {
                    Err(from_media("moving copies on the fast disk", &error))
                };
            }
        }
        let Some(section) = self.sections.get_mut(number) else { return Ok(()) };
        let was_hot = section.policy.is_hot(key);
        let Some(places) = section.allocate(copy.blocks) else {
            self.drop_copy(key);
            return Ok(());
        };
        self.drop_copy(key);
        let (mut block, mut rest) = (key, data.as_slice());
        for place in places {
            let (own, more) = rest.split_at(place.blocks as usize * BLOCK as usize);
            self.add(number, block, Copy { blocks: place.blocks, fast: place.start, ..copy });
            if let Some(section) = self.sections.get_mut(number).filter(|_| was_hot) {
                section.policy.hit(block, self.tick);
            }
            self.collection.put(place.start, own, self.now);
            self.counts.moved += u64::from(place.blocks);
            block += u64::from(place.blocks);
            rest = more;
        }
        Ok(())
    }
}

//! Copies come and go: content is offered, refused for a reason or stored, and given up.
//!
//! What it keeps true: a block of the big disk has one copy at most, and what is given up waits for
//! a snapshot in its section.
//!
//! What it does not do: decide what goes for want of room, or find copies.

use super::extent::Run;
use super::map::{Copy, Gone};
use super::piece::{Offered, Piece, Refusal, Wanted};
use super::section::Section;
use super::{BLOCK, Fast};
use crate::space::extent::MOST_BLOCKS;
use alloc::vec::Vec;
use core::ops::Range;
use onode_object::Result;

impl Fast {
    /// New content of a mapped class came to its home on the big disk: copies it here.
    ///
    /// # Errors
    /// `Media`: the fast disk should be given up.
    pub fn write_back(&mut self, piece: &Piece, data: &[u8]) -> Result<Offered> {
        self.begin();
        if !self.admission.affords(data.len() as u64, self.now) {
            return Ok(self.refuse(piece, Refusal::Budget));
        }
        match self.store(piece, data)? {
            Offered::Taken => {
                self.counts.written_back += u64::from(piece.blocks);
                Ok(Offered::Taken)
            }
            Offered::Refused(refusal) => Ok(self.refuse(piece, refusal)),
        }
    }

    /// Counts a refusal, and remembers it for who asks why.
    fn refuse(&mut self, piece: &Piece, refusal: Refusal) -> Offered {
        Offered::Refused(self.admission.refuse(piece, refusal))
    }

    /// Content was read from the big disk: is it worth a copy? Then [`promote`](Self::promote) it.
    ///
    /// # Errors
    /// The reason why not.
    pub fn missed(&mut self, piece: &Piece) -> core::result::Result<(), Refusal> {
        self.begin();
        self.counts.misses += 1;
        self.admit(piece).map_err(|refusal| self.admission.refuse(piece, refusal))
    }

    fn admit(&mut self, piece: &Piece) -> core::result::Result<(), Refusal> {
        let numbers = self.sections_for(piece)?;
        if self.has(piece) {
            return Err(Refusal::Held);
        }
        let (tick, placed) = (self.tick, self.is_placed(piece));
        let size = u64::from(piece.blocks);
        let (mut is_worth, mut is_free) = (false, false);
        for number in numbers {
            if let Some(section) = self.sections.get_mut(number) {
                is_worth |= section.policy(placed).missed(piece.block, size, tick);
                is_free |= section.has_room(piece.blocks) || section.least_heat() == Some(0);
            }
        }
        if self.is_pinned(piece) {
            return Ok(());
        }
        self.admission.asked(piece, is_free)?;
        if !is_worth {
            return Err(Refusal::Colder);
        }
        if !self.admission.affords(size * BLOCK, self.now) {
            return Err(Refusal::Budget);
        }
        Ok(())
    }

    /// Copies content that is on the big disk. `forced`: somebody asked for it, so that no budget
    /// holds.
    ///
    /// # Errors
    /// `Media`: the fast disk should be given up.
    pub fn promote(&mut self, piece: &Piece, data: &[u8], forced: bool) -> Result<Offered> {
        self.begin();
        if !forced && !self.admission.affords(data.len() as u64, self.now) {
            return Ok(self.refuse(piece, Refusal::Budget));
        }
        match self.store(piece, data)? {
            Offered::Taken => {
                self.counts.promoted += u64::from(piece.blocks);
                Ok(Offered::Taken)
            }
            Offered::Refused(refusal) => Ok(self.refuse(piece, refusal)),
        }
    }

    /// The sections that a piece may go to, by what its placement and its size say: the one that
    /// suits it best first.
    ///
    /// What nobody placed goes to the section of the largest extents that it fills one of (paper 4,
    /// 3.5: small extents for small files and random access, large ones for large files), and to
    /// the others as long as that one lacks room: sections lend each other what they do not use.
    fn sections_for(&self, piece: &Piece) -> core::result::Result<Vec<usize>, Refusal> {
        let number = match piece.wanted(self.sections.len()) {
            Wanted::Nowhere => return Err(Refusal::Bypass),
            Wanted::In(number) => return self.fits(number, piece).map(|()| alloc::vec![number]),
            Wanted::Anywhere => self.suits(piece),
        };
        let all = core::iter::once(number).chain((0..self.sections.len()).filter(|other| *other != number));
        let fitting: Vec<usize> = all.filter(|number| self.fits(*number, piece).is_ok()).collect();
        if fitting.is_empty() { self.fits(number, piece).map(|()| fitting) } else { Ok(fitting) }
    }

    /// The section whose extents suit a piece. Content in a row is offered in pieces, and a whole
    /// one is the beginning of more.
    fn suits(&self, piece: &Piece) -> usize {
        let blocks = if u64::from(piece.blocks) < MOST_BLOCKS { piece.blocks } else { u32::MAX };
        let extents = || self.sections.iter().map(|section| section.place.extent_blocks).enumerate();
        let filled = extents().filter(|(_, extent)| *extent <= blocks).max_by_key(|(_, extent)| *extent);
        filled.or_else(|| extents().min_by_key(|(_, extent)| *extent)).map_or(0, |(number, _)| number)
    }

    /// Whether somebody chose the section of a piece.
    fn is_placed(&self, piece: &Piece) -> bool {
        matches!(piece.wanted(self.sections.len()), Wanted::In(_))
    }

    /// Whether a section takes pieces like this one.
    fn fits(&self, number: usize, piece: &Piece) -> core::result::Result<(), Refusal> {
        let section = self.sections.get(number).ok_or(Refusal::Away)?;
        let blocks = section.allocator.blocks();
        if piece.blocks == 0 || piece.blocks > Piece::MOST_BLOCKS || u64::from(piece.blocks) > blocks / 4 {
            return Err(Refusal::TooLarge);
        }
        let is_pinned = self.is_pinned(piece);
        if is_pinned && section.pinned_blocks + u64::from(piece.blocks) > blocks / 2 {
            return Err(Refusal::Pinned);
        }
        Ok(())
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

    /// Copies a piece into the section that suits it and has room, else into the one where the
    /// coldest goes.
    pub(super) fn store(&mut self, piece: &Piece, data: &[u8]) -> Result<Offered> {
        let mut numbers = match self.sections_for(piece) {
            Ok(numbers) => numbers,
            Err(refusal) => return Ok(Offered::Refused(refusal)),
        };
        if data.len() as u64 != u64::from(piece.blocks) * BLOCK {
            return Ok(Offered::Refused(Refusal::TooLarge));
        }
        if self.has(piece) {
            return Ok(Offered::Taken);
        }
        self.cut(piece.block..piece.end());
        let (pinned, placed) = (self.is_pinned(piece), self.is_placed(piece));
        numbers.sort_by_key(|number| {
            let section = self.sections.get(*number);
            let is_full = section.is_none_or(|section| !section.has_room(piece.blocks));
            // The order of those that have room stays.
            is_full.then(|| section.and_then(Section::least_heat).map_or(u8::MAX, |heat| heat))
        });
        let mut found = None;
        for number in numbers {
            if let Some(places) = self.places(number, piece.blocks, placed)? {
                found = Some((number, places));
                break;
            }
        }
        let Some((number, places)) = found else { return Ok(Offered::Refused(Refusal::Full)) };
        let heat = self.sections.get(number).map_or(0, |section| section.heat(piece.block, placed).0);
        let (mut block, mut rest) = (piece.block, data);
        for place in places {
            let (own, more) = rest.split_at(place.blocks as usize * BLOCK as usize);
            let Run { start: fast, blocks, .. } = place;
            let copy = Copy { born: piece.born, blocks, fast, object: piece.object, pinned, placed, is_new: true };
            self.add(number, block, copy);
            if let Some(section) = self.sections.get_mut(number) {
                section.policy(placed).warm(block, heat);
            }
            self.collection.put(place.start, own, self.now);
            block += u64::from(place.blocks);
            rest = more;
        }
        self.admission.spend(data.len() as u64);
        self.write_full()?;
        Ok(Offered::Taken)
    }

    /// Places for content, with room made for it; what is free may be in pieces too small, and then
    /// more goes.
    fn places(&mut self, number: usize, blocks: u32, placed: bool) -> Result<Option<Vec<Run>>> {
        for times in [1, 4, 16] {
            if !self.make_room(number, u64::from(blocks) * times, placed)? {
                continue;
            }
            let tick = self.tick;
            let places = self.sections.get_mut(number).and_then(|section| section.allocate(blocks, tick));
            if places.is_some() {
                return Ok(places);
            }
        }
        Ok(None)
    }

    /// Puts a copy into the map, and tells the policy.
    pub(super) fn add(&mut self, number: usize, block: u64, copy: Copy) {
        let now = self.tick;
        if let Some(section) = self.sections.get_mut(number) {
            if copy.pinned {
                section.pinned_blocks += u64::from(copy.blocks);
            } else {
                section.policy(copy.placed).insert(block, u64::from(copy.blocks), now);
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
        for Gone { key, fast, blocks, pinned, placed } in gone {
            self.is_changed = true;
            let Some(section) = self.section_of(fast) else { continue };
            section.give_up(fast, blocks);
            if pinned {
                section.pinned_blocks = section.pinned_blocks.saturating_sub(u64::from(blocks));
            } else {
                section.policy(placed).remove(key);
            }
        }
        let now = self.tick;
        for (key, blocks) in left {
            let Some((_, copy)) = self.map.find(key) else { continue };
            let (fast, pinned, placed) = (copy.fast, copy.pinned, copy.placed);
            if let Some(section) = self.section_of(fast)
                && !pinned
            {
                section.policy(placed).insert(key, u64::from(blocks), now);
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
}

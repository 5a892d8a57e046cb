//! The content of one object as a view has it: what the view says lies over what the base has.
//!
//! Of each byte below the size one of these is true: the view *said* what it is (bytes in memory,
//! bytes of the hidden object, or a hole where neither has any), or the base has it (below
//! `base_end`, which a cut lowers for good), or it is a zero.

use crate::ranges::Ranges;
use crate::staged::pieces::Pieces;
use onode_object::{Mutation, ObjectDevice, ObjectId, Result};

/// Extents that a device is asked for at once.
const EXTENTS_AT_ONCE: usize = 64;

/// Where content that is too much for memory waits: an object that nobody outside sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hidden {
    /// It. An object that is new has its own number, so that nothing has to be copied later.
    pub(crate) object: ObjectId,
    /// Its size.
    pub(crate) size: u64,
}

/// The content.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) size: u64,
    pub(crate) base_end: u64,
    pub(crate) said: Ranges,
    pub(crate) pieces: Pieces,
    pub(crate) hidden: Option<Hidden>,
}

impl Content {
    /// That of an object of which the base has so many bytes.
    pub(crate) fn of(size: u64) -> Self {
        Self { size, base_end: size, said: Ranges::default(), pieces: Pieces::default(), hidden: None }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = offset + data.len() as u64;
        self.pieces.write(offset, data);
        self.said.add(offset, end);
        self.size = self.size.max(end);
    }

    /// Sets the size; returns what the hidden object has to do for it.
    pub(crate) fn truncate(&mut self, size: u64) -> Option<Mutation> {
        self.size = size;
        self.base_end = self.base_end.min(size);
        self.pieces.discard(size, u64::MAX);
        self.said.remove(size, u64::MAX);
        let hidden = self.hidden.as_mut().filter(|hidden| hidden.size > size)?;
        hidden.size = size;
        Some(Mutation::Truncate { object: hidden.object, size })
    }

    /// Makes a hole; returns what the hidden object has to do for it.
    pub(crate) fn punch(&mut self, offset: u64, length: u64) -> Option<Mutation> {
        let end = offset.saturating_add(length).min(self.size);
        if offset >= end {
            return None;
        }
        self.pieces.discard(offset, end);
        self.said.add(offset, end);
        let hidden = self.hidden.filter(|hidden| hidden.size > offset)?;
        Some(Mutation::Punch { object: hidden.object, offset, length: end - offset })
    }

    /// Reads; `base` reads what the base has of the object.
    pub(crate) fn read<D: ObjectDevice + ?Sized>(
        &self,
        offset: u64,
        buffer: &mut [u8],
        device: &D,
        base: impl Fn(u64, &mut [u8]) -> Result<usize>,
    ) -> Result<usize> {
        let length = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..length];
        buffer.fill(0);
        let end = offset + length as u64;
        let mut part = |start: u64, end: u64, read: &dyn Fn(u64, &mut [u8]) -> Result<usize>| {
            let piece = &mut buffer[(start - offset) as usize..(end - offset) as usize];
            let got = read(start, piece)?.min(piece.len());
            piece[got..].fill(0);
            Ok(())
        };
        let mut unsaid = Ranges::of(offset, end.min(self.base_end));
        for (start, end) in self.said.within(offset, end) {
            unsaid.remove(start, end);
            if let Some(hidden) = self.hidden.filter(|hidden| hidden.size > start) {
                part(start, end, &|at, piece| device.read(hidden.object, at, piece))?;
            }
        }
        for (start, end) in unsaid.iter() {
            part(start, end, &base)?;
        }
        self.pieces.read(offset, buffer);
        Ok(length)
    }

    /// The ranges with data from `offset` on, at most `limit` of them; `base` tells those of the
    /// base.
    pub(crate) fn extents<D: ObjectDevice + ?Sized>(
        &self,
        offset: u64,
        limit: usize,
        device: &D,
        base: impl Fn(u64) -> Result<Vec<(u64, u64)>>,
    ) -> Result<Vec<(u64, u64)>> {
        let mut from = offset;
        while from < self.size && limit > 0 {
            let mut found = Ranges::default();
            // Up to where all sources have told what they have.
            let mut known = self.size;
            let mut take = |extents: Vec<(u64, u64)>, counts: &Ranges, until: u64| {
                if extents.len() >= EXTENTS_AT_ONCE
                    && let Some((start, length)) = extents.last()
                {
                    known = known.min(start + length);
                }
                for (start, length) in extents {
                    let end = start.saturating_add(length).min(until);
                    counts.within(start.max(from), end).for_each(|(start, end)| found.add(start, end));
                }
            };
            if from < self.base_end {
                let mut unsaid = Ranges::of(from, self.base_end);
                self.said.within(from, self.base_end).for_each(|(start, end)| unsaid.remove(start, end));
                take(base(from)?, &unsaid, self.base_end);
            }
            if let Some(hidden) = self.hidden.filter(|hidden| hidden.size > from) {
                take(device.extents(hidden.object, from, EXTENTS_AT_ONCE)?, &self.said, self.size);
            }
            self.pieces.ranges(from).take_while(|(start, _)| *start < known).for_each(|(start, end)| {
                found.add(start, end);
            });
            let found: Vec<_> =
                found.within(from, known).map(|(start, end)| (start, end - start)).take(limit).collect();
            if !found.is_empty() || known >= self.size {
                return Ok(found);
            }
            from = known;
        }
        Ok(Vec::new())
    }

    /// Extents of the base that a device is asked for.
    pub(crate) const fn extents_at_once() -> usize {
        EXTENTS_AT_ONCE
    }
}

//! The write buffer: a log in the memory of what waits for its journal page to fill.
//!
//! A synced commit appends what its journal page gained, content and record frames, as one entry,
//! and is durable with one fence and no page of flash. The page itself is programmed once it is
//! full, as ever; from then on its entries are of no use, and their slot is used again. So the
//! buffer never has more than one page that the flash has not, and the flash alone is always a
//! whole, earlier state.
//!
//! ```text
//! +--------+--------+-- ... --+     slot = entries of one page, the first with all that it held then
//! | slot 0 | slot 1 |         |     entry = header (32 bytes) | content | frames, to a multiple of 8
//! +--------+--------+-- ... --+
//! ```
//!
//! What it keeps true:
//! * An entry counts wholly or not at all, by its checksum, and only behind the one with the number
//!   before it.
//! * The slot with the newest entry is not written to but behind it, so that a torn entry takes
//!   nothing with it.
//!
//! What it does not do: know what the bytes mean, or whether the page was programmed after all. The
//! replay does.

use super::format::Anchor;
use crate::medium::layout::SegmentPage;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::crc32c_append;
use onode_base::planted::{Bug, is_planted};
use onode_media::{Pmem, Result};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Begins an entry.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct EntryHeader {
    /// Its number, ascending by one; never 0.
    number: U64,
    /// The journal page: segment, sequence number of the segment, page.
    segment: U32,
    sequence: U32,
    page: U32,
    /// Bytes of content that follow, behind those of the entry before.
    content_bytes: U32,
    /// Bytes of record frames that follow those.
    frame_bytes: U32,
    /// CRC-32C of the volume's seed, the entry's address in 8 bytes, the fields above and the
    /// bytes.
    checksum: U32,
}
const _: () = assert!(size_of::<EntryHeader>() == HEADER_BYTES as usize);

const HEADER_BYTES: u64 = 32;
/// Slots are whole lines.
const LINE_BYTES: u64 = 64;
/// A page goes on in a second slot when the first is full; more slots spread the wear.
const SLOTS_MIN: u64 = 2;

/// Where the buffer lies in the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Its first byte.
    pub begin: u64,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// How many there are; 0 without a buffer.
    pub slots: u32,
}

impl Area {
    /// The buffer at the end of `memory_bytes` for journal pages of `page_bytes`: of about `wanted`
    /// bytes, or of as many as suit the memory. `None` if it would take more than half of the
    /// memory.
    pub fn new(memory_bytes: u64, page_bytes: usize, wanted: Option<u64>) -> Option<Self> {
        let page_bytes = page_bytes as u64;
        // A page with many small entries goes on in the next slot now and then.
        let slot_bytes = (page_bytes + page_bytes / 2 + 4 * HEADER_BYTES).next_multiple_of(LINE_BYTES);
        let slots = (wanted.unwrap_or(memory_bytes / 16) / slot_bytes).clamp(SLOTS_MIN, u64::from(u16::MAX));
        let begin = memory_bytes.checked_sub(slot_bytes * slots).filter(|begin| *begin >= memory_bytes / 2)?;
        Some(Self { begin: begin / LINE_BYTES * LINE_BYTES, slot_bytes: slot_bytes as u32, slots: slots as u32 })
    }

    /// The one that an anchor tells of, if there can be one in a memory of so many bytes.
    pub fn of_anchor(anchor: &Anchor, memory_bytes: u64) -> Option<Self> {
        let (slot_bytes, slots) = (anchor.slot_bytes.get(), anchor.slots.get());
        let area = Self { begin: anchor.buffer_begin.get(), slot_bytes, slots };
        let end = area.begin.checked_add(area.bytes()).filter(|end| *end <= memory_bytes)?;
        let is_sound = u64::from(slots) >= SLOTS_MIN && u64::from(slot_bytes) > HEADER_BYTES && end > 0;
        let is_aligned = u64::from(slot_bytes).is_multiple_of(LINE_BYTES) && area.begin.is_multiple_of(LINE_BYTES);
        (is_sound && is_aligned).then_some(area)
    }

    /// Bytes in all.
    pub const fn bytes(&self) -> u64 {
        self.slot_bytes as u64 * self.slots as u64
    }

    const fn slot(&self, slot: u32) -> u64 {
        self.begin + self.slot_bytes as u64 * slot as u64
    }
}

/// A journal page by the life of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// The segment.
    pub segment: u32,
    /// The page at which it is to be programmed.
    pub page: u32,
    /// Sequence number of the segment.
    pub sequence: u32,
}

impl PagePlace {
    /// The journal page `at` of a segment opened with `sequence`.
    #[must_use]
    pub const fn of(at: SegmentPage, sequence: u32) -> Self {
        Self { segment: at.segment, page: at.page, sequence }
    }
}

/// What the buffer holds of the journal page that it knows last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPage {
    /// The page.
    pub place: PagePlace,
    /// Its content, from the front.
    pub content: Vec<u8>,
    /// Its record frames.
    pub frames: Vec<u8>,
    /// The page of the last entry that is there behind one that is not sound any more: a cut leaves
    /// the last one torn and none behind it, so this one was durable once and what is missing
    /// before it is damage.
    pub lost: Option<PagePlace>,
}

impl HeldPage {
    /// Nothing that could be read.
    const UNREADABLE: Self = {
        Self {
            place: PagePlace { segment: u32::MAX, page: 0, sequence: 0 },
            content: Vec::new(),
            frames: Vec::new(),
            lost: None,
        }
    };
}

/// The buffer.
#[derive(Debug)]
pub struct WriteBuffer {
    area: Area,
    seed: u32,
    /// The last entry's number.
    number: u64,
    /// Its slot, and how much of that is used.
    slot: u32,
    used: u64,
    /// Its page, and how much of it the slot has: content and frames.
    place: Option<PagePlace>,
    held: (usize, usize),
}

/// An entry that was found.
struct Entry {
    number: u64,
    place: PagePlace,
    content: Vec<u8>,
    frames: Vec<u8>,
}

impl Entry {
    fn bytes(&self) -> u64 {
        entry_bytes(self.content.len(), self.frames.len())
    }
}

const fn entry_bytes(content: usize, frames: usize) -> u64 {
    (HEADER_BYTES + content as u64 + frames as u64).next_multiple_of(8)
}

fn checksum(seed: u32, at: u64, header: &EntryHeader, bytes: &[u8]) -> u32 {
    let crc = crc32c_append(seed, &at.to_le_bytes());
    crc32c_append(crc32c_append(crc, &header.as_bytes()[..HEADER_BYTES as usize - 4]), bytes)
}

impl WriteBuffer {
    /// A buffer that holds nothing.
    pub const fn new(area: Area, seed: u32) -> Self {
        Self { area, seed, number: 0, slot: 0, used: 0, place: None, held: (0, 0) }
    }

    /// The buffer in `memory`, and what it holds.
    pub fn take_up(memory: &dyn Pmem, area: Area, seed: u32) -> (Self, Option<HeldPage>) {
        let mut buffer = Self::new(area, seed);
        let first = |slot| Some((slot, buffer.entry(memory, slot, 0)?));
        let Some((slot, first)) = (0..area.slots).filter_map(first).max_by_key(|(_, entry)| entry.number) else {
            let lost = buffer.last_behind(memory);
            return (buffer, lost.map(|place| HeldPage { lost: Some(place), ..HeldPage::UNREADABLE }));
        };
        (buffer.slot, buffer.used, buffer.number) = (slot, first.bytes(), first.number);
        let mut page = HeldPage { place: first.place, content: first.content, frames: first.frames, lost: None };
        while let Some(entry) = buffer.entry(memory, slot, buffer.used) {
            if entry.number != buffer.number + 1 || entry.place != page.place {
                break;
            }
            buffer.used += entry.bytes();
            buffer.number = entry.number;
            page.content.extend_from_slice(&entry.content);
            page.frames.extend_from_slice(&entry.frames);
        }
        page.lost = buffer.last_behind(memory);
        // What follows begins a slot of its own.
        (buffer, Some(page))
    }

    /// The page of the last sound entry behind all that were found, wherever it begins.
    fn last_behind(&self, memory: &dyn Pmem) -> Option<PagePlace> {
        let starts = |slot| (0..u64::from(self.area.slot_bytes) / 8).map(move |step| (slot, 8 * step));
        let all = (0..self.area.slots).flat_map(starts);
        let behind = all.filter_map(|(slot, offset)| self.entry(memory, slot, offset));
        let last = behind.filter(|entry| entry.number > self.number).max_by_key(|entry| entry.number);
        last.map(|entry| entry.place)
    }

    fn entry(&self, memory: &dyn Pmem, slot: u32, offset: u64) -> Option<Entry> {
        let at = self.area.slot(slot) + offset;
        let left = u64::from(self.area.slot_bytes).checked_sub(offset + HEADER_BYTES)?;
        let mut header = [0; HEADER_BYTES as usize];
        memory.read(at, &mut header);
        let header = EntryHeader::read_from_bytes(&header).ok()?;
        let (content, frames) = (u64::from(header.content_bytes.get()), u64::from(header.frame_bytes.get()));
        if content + frames > left || content + frames == 0 || header.number.get() == 0 {
            return None;
        }
        let mut bytes = vec![0; (content + frames) as usize];
        memory.read(at + HEADER_BYTES, &mut bytes);
        let is_sound = checksum(self.seed, at, &header, &bytes) == header.checksum.get();
        if !is_sound && !is_planted(Bug::DamagedBesideBufferBelieved) {
            return None;
        }
        let frames = bytes.split_off(content as usize);
        let (segment, page) = (header.segment.get(), header.page.get());
        let place = PagePlace { segment, page, sequence: header.sequence.get() };
        Some(Entry { number: header.number.get(), place, content: bytes, frames })
    }

    /// Makes durable that the page at `place`, which is not programmed yet, holds `content` and
    /// `frames`. False if no slot takes them.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn keep(&mut self, memory: &dyn Pmem, place: PagePlace, content: &[u8], frames: &[u8]) -> Result<bool> {
        let (of_content, of_frames) = self.held;
        let goes_on = self.place == Some(place) && of_content <= content.len() && of_frames <= frames.len();
        if goes_on && self.held == (content.len(), frames.len()) {
            return Ok(true);
        }
        let slot_bytes = u64::from(self.area.slot_bytes);
        let more = entry_bytes(content.len().saturating_sub(of_content), frames.len().saturating_sub(of_frames));
        let (slot, used, new_content, new_frames) = if goes_on && self.used + more <= slot_bytes {
            (self.slot, self.used, &content[of_content..], &frames[of_frames..])
        } else if entry_bytes(content.len(), frames.len()) <= slot_bytes {
            ((self.slot + 1) % self.area.slots, 0, content, frames)
        } else {
            return Ok(false);
        };
        let mut header = EntryHeader {
            number: (self.number + 1).into(),
            segment: place.segment.into(),
            sequence: place.sequence.into(),
            page: place.page.into(),
            content_bytes: (new_content.len() as u32).into(),
            frame_bytes: (new_frames.len() as u32).into(),
            checksum: 0.into(),
        };
        let bytes = [new_content, new_frames].concat();
        let at = self.area.slot(slot) + used;
        header.checksum = checksum(self.seed, at, &header, &bytes).into();
        memory.write_through(at, &[header.as_bytes(), &bytes].concat());
        if !is_planted(Bug::BesideUnfenced) {
            memory.fence()?;
        }
        self.number += 1;
        (self.slot, self.used) = (slot, used + entry_bytes(new_content.len(), new_frames.len()));
        self.place = Some(place);
        self.held = (content.len(), frames.len());
        Ok(true)
    }

    /// Where it lies.
    pub const fn area(&self) -> Area {
        self.area
    }
}

#[cfg(test)]
mod tests;

//! The watermark of a NAND image: the number up to which all is durable, behind the last header
//! page.
//!
//! ```text
//! end       slot 0, 32 bytes
//! end + 32  slot 1
//! ```
//! The slots are written in turn, after the flush that makes the number true and without one of
//! their own: a torn slot leaves the other one, and a number that a failure of the host took back
//! is only lower than it could be. A slot that was written once and is not sound is told, since it
//! may have held the later number.

use super::host::HostFile;
use crate::error::Result;
use crate::nand::Watermark;
use alloc::vec::Vec;
use core::mem::size_of;
use onode_base::checksum::crc32c_append;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A slot as it stands in the file.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Slot {
    turn: U64,
    number: U64,
    reserved: [u8; 12],
    /// CRC-32C of the identity of the image and the fields above.
    checksum: U32,
}
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES as usize);

const SLOT_BYTES: u64 = 32;
const SLOTS: u64 = 2;

impl Slot {
    fn checksum(&self, uuid: &[u8; 16]) -> u32 {
        crc32c_append(crc32c_append(0, uuid), &self.as_bytes()[..SLOT_BYTES as usize - 4])
    }
}

/// A number and how often one was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Note {
    turn: u64,
    number: u64,
}

/// What stands in the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// The last of those that are sound.
    last: Option<Note>,
    /// A slot is not what was written there.
    is_damaged: bool,
}

impl Notes {
    /// Bytes behind the end of the image that the slots take.
    pub(super) const AREA_BYTES: u64 = SLOTS * SLOT_BYTES;

    /// What the medium tells its users.
    pub(super) fn watermark(self) -> Watermark {
        Watermark { number: self.last.map_or(0, |note| note.number), is_damaged: self.is_damaged }
    }

    /// Whether `number` is what was noted last, and nothing is to be healed.
    pub(super) fn has(self, number: u64) -> bool {
        !self.is_damaged && self.last.is_some_and(|note| note.number == number)
    }

    /// What was noted in a file of `bytes` whose image ends at `end`; nothing in an image of a
    /// program that knew of no notes, which ends there.
    pub(super) fn read(file: &HostFile, end: u64, uuid: &[u8; 16], bytes: u64) -> Result<Self> {
        if bytes < end + Self::AREA_BYTES {
            return Ok(Self::default());
        }
        let mut area = [0; Self::AREA_BYTES as usize];
        file.read(end, &mut area)?;
        let slots = area.chunks_exact(SLOT_BYTES as usize).filter_map(|slot| Slot::read_from_bytes(slot).ok());
        let is_sound = |slot: &Slot| slot.turn.get() > 0 && slot.checksum.get() == slot.checksum(uuid);
        let sound: Vec<Slot> = slots.filter(is_sound).collect();
        let last = sound.iter().max_by_key(|slot| slot.turn.get());
        let last = last.map(|slot| Note { turn: slot.turn.get(), number: slot.number.get() });
        // The first turn, in slot 1, leaves slot 0 as it was made.
        let is_first = last.is_some_and(|note| note.turn == 1) && area[..SLOT_BYTES as usize].iter().all(|&it| it == 0);
        Ok(Self { last, is_damaged: sound.len() < SLOTS as usize && !is_first })
    }

    /// The same at `end`, where nothing stands yet.
    pub(super) fn moved(self, file: &HostFile, end: u64, uuid: &[u8; 16]) -> Result<Self> {
        let mut moved = Self::default();
        if let Some(last) = self.last {
            moved.write(last.number, file, end, uuid)?;
        }
        Ok(Self { is_damaged: self.is_damaged, ..moved })
    }

    /// Writes `number` to the slot that does not hold the last one.
    pub(super) fn write(&mut self, number: u64, file: &HostFile, end: u64, uuid: &[u8; 16]) -> Result<()> {
        let turn = self.last.map_or(1, |last| last.turn.saturating_add(1));
        let mut slot = Slot { turn: turn.into(), number: number.into(), reserved: [0; 12], checksum: 0.into() };
        slot.checksum = slot.checksum(uuid).into();
        if self.last.is_none() {
            // What stands in the other slot is no note, or a damaged one.
            file.write(end, &[0; Self::AREA_BYTES as usize])?;
        }
        file.write(end + turn % SLOTS * SLOT_BYTES, slot.as_bytes())?;
        *self = Self { last: Some(Note { turn, number }), is_damaged: false };
        Ok(())
    }
}

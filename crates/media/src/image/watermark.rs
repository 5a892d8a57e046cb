//! The watermark of a NAND image: the number up to which all is durable, behind the last header
//! page.
//!
//! ```text
//! end       slot 0, 32 bytes
//! end + 32  slot 1
//! ```
//! The slots are written in turn, after the flush that makes the number true and without one of
//! their own: a torn slot leaves the other one, and a number that a failure of the host took back
//! is only lower than it could be.

use super::host::HostFile;
use crate::error::Result;
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
pub(super) struct Watermark {
    turn: u64,
    number: u64,
}

/// What stands in the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// Nothing was noted yet, as in an image of an older program.
    Nothing,
    /// This one last.
    Last(Watermark),
    /// Something, but no slot is sound.
    Damaged,
}

impl Watermark {
    /// Bytes behind the end of the image that the slots take.
    pub(super) const AREA_BYTES: u64 = SLOTS * SLOT_BYTES;

    /// The one that follows `last`.
    pub(super) fn after(last: Noted, number: u64) -> Self {
        let turn = if let Noted::Last(last) = last { last.turn.saturating_add(1) } else { 1 };
        Self { turn, number }
    }

    /// The number.
    pub(super) const fn number(self) -> u64 {
        self.number
    }

    /// What was noted last in a file of `bytes` whose image ends at `end`.
    pub(super) fn read(file: &HostFile, end: u64, uuid: &[u8; 16], bytes: u64) -> Result<Noted> {
        if bytes < end + Self::AREA_BYTES {
            return Ok(Noted::Nothing);
        }
        let mut slots = [0; Self::AREA_BYTES as usize];
        file.read(end, &mut slots)?;
        let sound = slots.chunks_exact(SLOT_BYTES as usize).filter_map(|slot| Slot::read_from_bytes(slot).ok());
        let sound = sound.filter(|slot| slot.turn.get() > 0 && slot.checksum.get() == slot.checksum(uuid));
        let last = sound.max_by_key(|slot| slot.turn.get());
        Ok(last.map_or(Noted::Damaged, |slot| Noted::Last(Self { turn: slot.turn.get(), number: slot.number.get() })))
    }

    /// Writes it to its slot, which is not the one before.
    pub(super) fn write(self, file: &HostFile, end: u64, uuid: &[u8; 16]) -> Result<()> {
        let (turn, number) = (self.turn.into(), self.number.into());
        let mut slot = Slot { turn, number, reserved: [0; 12], checksum: 0.into() };
        slot.checksum = slot.checksum(uuid).into();
        file.write(end + self.turn % SLOTS * SLOT_BYTES, slot.as_bytes())
    }
}

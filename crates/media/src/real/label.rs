//! The bytes that Onode puts on a device beside the pages, format version 1: the label and the list
//! of bad blocks.
//!
//! ```text
//! 0        label, 4,096 bytes
//! 4096     the label again
//! 8192     254 slots of 4,096 bytes for the list of bad blocks, used in turn
//! 1 MiB    erase block 0
//! ..       label, in the last 4,096 bytes of the device
//! ```
//! A block device tells nothing of pages and erase blocks, so the label does. Decoding trusts
//! nothing.

use crate::blockdev::SECTOR_BYTES;
use crate::error::{Error, MediaErrorKind, Result};
use crate::image::mark::is_nearly;
use crate::nand::Geometry;
use alloc::collections::BTreeSet;
use alloc::format;
use core::mem::{offset_of, size_of};
use onode_base::checksum::crc32c;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const LABEL_MAGIC: [u8; 8] = *b"ONODBLOC";
const LIST_MAGIC: [u8; 8] = *b"ONODBADB";
const VERSION: u32 = 1;
/// Copies of the label.
pub(super) const LABEL_COPIES: u64 = 2;
/// Where the slots of the list of bad blocks end and erase block 0 begins.
pub(super) const DATA_OFFSET: u64 = 1 << 20;
/// Entries that a list has room for.
pub(super) const LIST_ENTRIES: usize = 1019;

/// The label as it stands on the device.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawLabel {
    magic: [u8; 8],
    version: U32,
    label_bytes: U32,
    page_bytes: U32,
    pages_per_block: U32,
    blocks: U32,
    reserved_word: U32,
    data_offset: U64,
    uuid: [u8; 16],
    reserved: [u8; 4036],
    crc: U32,
}
const _: () = assert!(size_of::<RawLabel>() == SECTOR_BYTES);
const _: () = assert!(offset_of!(RawLabel, data_offset) == 32);
const _: () = assert!(offset_of!(RawLabel, uuid) == 40);

/// How a device is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) geometry: Geometry,
    /// Where erase block 0 begins.
    pub(super) data_offset: u64,
    pub(super) uuid: [u8; 16],
}

impl Label {
    pub(super) fn encode(&self) -> [u8; SECTOR_BYTES] {
        let mut raw = RawLabel {
            magic: LABEL_MAGIC,
            version: VERSION.into(),
            label_bytes: (SECTOR_BYTES as u32).into(),
            page_bytes: self.geometry.page_bytes.into(),
            pages_per_block: self.geometry.pages_per_block.into(),
            blocks: self.geometry.blocks.into(),
            reserved_word: 0.into(),
            data_offset: self.data_offset.into(),
            uuid: self.uuid,
            reserved: [0; 4036],
            crc: 0.into(),
        };
        raw.crc = crc32c(&raw.as_bytes()[..offset_of!(RawLabel, crc)]).into();
        zerocopy::transmute!(raw)
    }

    /// A label of which no more than some bits of the mark at its start are wrong: with that it has
    /// its checksum, which nothing else has by chance.
    pub(super) fn decode_without_mark(bytes: &[u8; SECTOR_BYTES]) -> Option<Self> {
        let mut marked = *bytes;
        let mark = marked.first_chunk_mut().filter(|mark| is_nearly(mark, &LABEL_MAGIC))?;
        *mark = LABEL_MAGIC;
        Self::decode(&marked).ok()
    }

    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`.
    pub(super) fn decode(bytes: &[u8; SECTOR_BYTES]) -> Result<Self> {
        let damaged = |what| Err(Error::new(MediaErrorKind::Damaged, what));
        let raw: &RawLabel = zerocopy::transmute_ref!(bytes);
        if raw.magic != LABEL_MAGIC {
            return Err(Error::new(MediaErrorKind::NotAnImage, "it does not begin with the label of a volume"));
        }
        let version = raw.version.get();
        if version > VERSION {
            let detail = format!("format version {version}, this program knows up to {VERSION}; use a newer one");
            return Err(Error::new(MediaErrorKind::NewerFormat, detail));
        }
        let found = crc32c(&bytes[..offset_of!(RawLabel, crc)]);
        if found != raw.crc.get() {
            return damaged(format!("checksum of the label is {found:#010x}, {:#010x} is recorded", raw.crc.get()));
        }
        let geometry = Geometry {
            page_bytes: raw.page_bytes.get(),
            spare_bytes: 0,
            pages_per_block: raw.pages_per_block.get(),
            blocks: raw.blocks.get(),
            chips: 1,
        };
        if let Err(error) = geometry.validate() {
            return damaged(format!("the label tells an impossible {}", error.detail));
        }
        let label = Self { geometry, data_offset: raw.data_offset.get(), uuid: raw.uuid };
        let has_room = label.data_offset.checked_add(geometry.bytes()).is_some();
        if !has_room || label.data_offset < DATA_OFFSET || label.encode() != *bytes {
            return damaged("the label contradicts itself".into());
        }
        Ok(label)
    }

    /// The first byte behind the last block.
    pub(super) const fn end(&self) -> u64 {
        self.data_offset + self.geometry.bytes()
    }
}

/// The list of bad blocks as it stands in a slot.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawList {
    magic: [u8; 8],
    generation: U32,
    count: U32,
    blocks: [U32; LIST_ENTRIES],
    crc: U32,
}
const _: () = assert!(size_of::<RawList>() == SECTOR_BYTES);

/// Blocks that are bad, and how often the list was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BadBlocks {
    pub(super) generation: u32,
    pub(super) blocks: BTreeSet<u32>,
}

impl BadBlocks {
    /// Where the list of this generation stands.
    pub(super) const fn offset(&self) -> u64 {
        let slots = DATA_OFFSET / SECTOR_BYTES as u64 - LABEL_COPIES;
        (LABEL_COPIES + self.generation as u64 % slots) * SECTOR_BYTES as u64
    }

    pub(super) fn encode(&self, uuid: &[u8; 16]) -> [u8; SECTOR_BYTES] {
        let mut raw = RawList {
            magic: LIST_MAGIC,
            generation: self.generation.into(),
            count: (self.blocks.len().min(LIST_ENTRIES) as u32).into(),
            blocks: [0.into(); LIST_ENTRIES],
            crc: 0.into(),
        };
        for (slot, block) in raw.blocks.iter_mut().zip(&self.blocks) {
            *slot = (*block).into();
        }
        raw.crc = checksum(uuid, raw.as_bytes()).into();
        zerocopy::transmute!(raw)
    }

    /// `None` for a slot that holds no list of this device.
    pub(super) fn decode(bytes: &[u8; SECTOR_BYTES], uuid: &[u8; 16]) -> Option<Self> {
        let raw: &RawList = zerocopy::transmute_ref!(bytes);
        let sound = raw.magic == LIST_MAGIC && raw.crc.get() == checksum(uuid, bytes);
        let blocks = sound.then(|| raw.blocks.get(..raw.count.get() as usize))??;
        Some(Self { generation: raw.generation.get(), blocks: blocks.iter().map(|block| block.get()).collect() })
    }
}

/// Over the identity of the device, too: a list of an earlier volume is none.
fn checksum(uuid: &[u8; 16], bytes: &[u8]) -> u32 {
    onode_base::checksum::crc32c_append(crc32c(uuid), &bytes[..offset_of!(RawList, crc)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Geometry = Geometry { page_bytes: 4096, spare_bytes: 0, pages_per_block: 64, blocks: 512, chips: 1 };

    fn label() -> Label {
        Label { geometry: SHAPE, data_offset: DATA_OFFSET, uuid: core::array::from_fn(|i| i as u8) }
    }

    #[test]
    fn labels_round_trip_and_no_damage_is_believed() {
        let bytes = label().encode();
        assert_eq!(Label::decode(&bytes), Ok(label()));
        assert_eq!(label().end(), (1 << 20) + (512 << 18));
        for byte in 0..SECTOR_BYTES {
            let mut damaged = bytes;
            damaged[byte] ^= 0x10;
            let kind = Label::decode(&damaged).unwrap_err().kind;
            let expected = match byte {
                0..8 => MediaErrorKind::NotAnImage,
                8..12 => MediaErrorKind::NewerFormat,
                _ => MediaErrorKind::Damaged,
            };
            assert_eq!(kind, expected, "byte {byte}");
        }
        let impossible = Label { data_offset: u64::MAX - 4095, ..label() };
        assert_eq!(Label::decode(&impossible.encode()).unwrap_err().kind, MediaErrorKind::Damaged);
    }

    #[test]
    fn lists_of_bad_blocks_belong_to_one_volume() {
        let list = BadBlocks { generation: 300, blocks: [3, 77].into() };
        let bytes = list.encode(&[1; 16]);
        assert_eq!(BadBlocks::decode(&bytes, &[1; 16]), Some(list.clone()));
        assert_eq!(BadBlocks::decode(&bytes, &[2; 16]), None);
        assert_eq!(BadBlocks::decode(&[0; SECTOR_BYTES], &[1; 16]), None);
        assert_eq!(list.offset(), (2 + 300 % 254) * 4096);
    }
}

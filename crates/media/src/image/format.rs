//! The bytes of a NAND image, format version 1.
//!
//! ```text
//! 0        header page, 4,096 bytes
//! 4096     block table, 16 bytes an erase block        rounded up to 4,096
//! ..       spare region, all spare bytes, inverted     rounded up to 4,096
//! ..       data region, all pages one after another
//! ```
//! Decoding trusts nothing: every field is checked before it is used.

use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::Geometry;
use alloc::format;
use core::mem::{offset_of, size_of};
use onode_base::checksum::crc32c;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const MAGIC: [u8; 8] = *b"ONODNAND";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 4096;
pub(super) const ENTRY_BYTES: usize = 16;
const ALIGNMENT: u64 = 4096;
const FLAG_BAD: u32 = 1;

/// The header page.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    magic: [u8; 8],
    version: U32,
    header_bytes: U32,
    page_bytes: U32,
    spare_bytes: U32,
    pages_per_block: U32,
    blocks: U32,
    chips: U32,
    entry_bytes: U32,
    table_offset: U64,
    spare_offset: U64,
    data_offset: U64,
    file_bytes: U64,
    uuid: [u8; 16],
    reserved: [u8; 4004],
    crc: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);
const _: () = assert!(offset_of!(Header, table_offset) == 40);
const _: () = assert!(offset_of!(Header, uuid) == 72);
const _: () = assert!(offset_of!(Header, crc) == 4092);

/// Where the regions of an image lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) table: u64,
    pub(super) spare: u64,
    pub(super) data: u64,
    pub(super) end: u64,
}

impl Layout {
    /// For a geometry that is valid; its bounds keep every sum below 2^56.
    pub(super) const fn of(shape: Geometry) -> Self {
        let table = HEADER_BYTES as u64;
        let spare = (table + shape.blocks as u64 * ENTRY_BYTES as u64).next_multiple_of(ALIGNMENT);
        let data = (spare + shape.pages() * shape.spare_bytes as u64).next_multiple_of(ALIGNMENT);
        Self { table, spare, data, end: data + shape.bytes() }
    }
}

impl Header {
    pub(super) fn new(shape: Geometry, uuid: [u8; 16]) -> Self {
        let layout = Layout::of(shape);
        let mut header = Self {
            magic: MAGIC,
            version: VERSION.into(),
            header_bytes: (HEADER_BYTES as u32).into(),
            page_bytes: shape.page_bytes.into(),
            spare_bytes: shape.spare_bytes.into(),
            pages_per_block: shape.pages_per_block.into(),
            blocks: shape.blocks.into(),
            chips: shape.chips.into(),
            entry_bytes: (ENTRY_BYTES as u32).into(),
            table_offset: layout.table.into(),
            spare_offset: layout.spare.into(),
            data_offset: layout.data.into(),
            file_bytes: layout.end.into(),
            uuid,
            reserved: [0; 4004],
            crc: 0.into(),
        };
        header.crc = header.checksum().into();
        header
    }

    fn checksum(&self) -> u32 {
        crc32c(&self.as_bytes()[..offset_of!(Self, crc)])
    }

    /// The shape and identity that a header page tells, if all of it holds.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Geometry, [u8; 16])> {
        let damaged = |what| Err(Error::new(MediaErrorKind::Damaged, what));
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::new(MediaErrorKind::NotAnImage, "it does not begin as a NAND image does"));
        }
        let Ok(header) = Self::ref_from_bytes(bytes) else {
            return damaged(format!("the header is cut short: {} bytes of {HEADER_BYTES}", bytes.len()));
        };
        let version = header.version.get();
        if version > VERSION {
            let detail = format!("format version {version}, this program knows up to {VERSION}; use a newer one");
            return Err(Error::new(MediaErrorKind::NewerFormat, detail));
        }
        let (found, expected) = (header.checksum(), header.crc.get());
        if found != expected {
            return damaged(format!("checksum of the header is {found:#010x}, {expected:#010x} is recorded"));
        }
        let shape = Geometry {
            page_bytes: header.page_bytes.get(),
            spare_bytes: header.spare_bytes.get(),
            pages_per_block: header.pages_per_block.get(),
            blocks: header.blocks.get(),
            chips: header.chips.get(),
        };
        if let Err(error) = shape.validate() {
            return damaged(format!("the header tells an impossible {}", error.detail));
        }
        // Everything else follows from the shape: one comparison checks offsets, sizes and reserved bytes.
        if header.as_bytes() != Self::new(shape, header.uuid).as_bytes() {
            return damaged("the header contradicts itself".into());
        }
        Ok((shape, header.uuid))
    }
}

/// An entry of the block table. All zero is a block that was never used.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
pub(super) struct TableEntry {
    erases: U32,
    written_pages: U32,
    flags: U32,
    crc: U32,
}

const _: () = assert!(size_of::<TableEntry>() == ENTRY_BYTES);
const _: () = assert!(offset_of!(TableEntry, crc) == 12);

/// What the table knows of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockState {
    pub(super) erases: u32,
    /// Pages from the start of the block that may hold something; the rest is erased.
    pub(super) written_pages: u32,
    pub(super) bad: bool,
}

impl TableEntry {
    pub(super) fn encode(block: u32, state: BlockState) -> Self {
        let mut entry = Self {
            erases: state.erases.into(),
            written_pages: state.written_pages.into(),
            flags: if state.bad { FLAG_BAD } else { 0 }.into(),
            crc: 0.into(),
        };
        entry.crc = entry.checksum(block).into();
        entry
    }

    /// `None` if the entry is damaged.
    pub(super) fn decode(&self, block: u32, shape: Geometry) -> Option<BlockState> {
        if self.as_bytes() == [0; ENTRY_BYTES] {
            return Some(BlockState::default());
        }
        let sound = self.crc.get() == self.checksum(block)
            && self.written_pages.get() <= shape.pages_per_block
            && self.flags.get() & !FLAG_BAD == 0;
        sound.then(|| BlockState {
            erases: self.erases.get(),
            written_pages: self.written_pages.get(),
            bad: self.flags.get() & FLAG_BAD != 0,
        })
    }

    /// Over the number of the block, too: an entry in the wrong place is no entry.
    fn checksum(&self, block: u32) -> u32 {
        let mut covered = [0; 16];
        covered[..4].copy_from_slice(U32::new(block).as_bytes());
        covered[4..].copy_from_slice(&self.as_bytes()[..offset_of!(Self, crc)]);
        crc32c(&covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 1024, chips: 4 };

    /// The checksums were computed by another program from `docs/format/nand-image.md` alone: if this
    /// fails, images in people's hands no longer open.
    #[test]
    fn version_1_keeps_its_bytes() {
        let uuid = core::array::from_fn(|i| i as u8);
        let header = Header::new(SHAPE, uuid);
        assert_eq!(header.crc.get(), 0x484c_4f05);
        assert_eq!(Header::decode(header.as_bytes()), Ok((SHAPE, uuid)));
        assert_eq!(Layout::of(SHAPE), Layout { table: 4096, spare: 20480, data: 4214784, end: 138432512 });

        let state = BlockState { erases: 5, written_pages: 7, bad: true };
        let entry = TableEntry::encode(3, state);
        assert_eq!(entry.as_bytes()[..12], [5, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(entry.crc.get(), 0x8222_d155);
        assert_eq!(entry.decode(3, SHAPE), Some(state));
        assert_eq!(entry.decode(4, SHAPE), None);
    }

    #[test]
    fn entries_out_of_bounds_are_damaged_in_spite_of_their_checksum() {
        let too_many = BlockState { written_pages: 65, ..BlockState::default() };
        assert_eq!(TableEntry::encode(0, too_many).decode(0, SHAPE), None);
        let mut unknown_flag = TableEntry::encode(0, BlockState::default());
        unknown_flag.flags = 2.into();
        unknown_flag.crc = unknown_flag.checksum(0).into();
        assert_eq!(unknown_flag.decode(0, SHAPE), None);
    }
}

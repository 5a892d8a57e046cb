//! The bytes of a NAND image, format version 2.
//!
//! ```text
//! 0        header page, 4,096 bytes
//! 4096     block table, 16 bytes an erase block        rounded up to 4,096
//! ..       erase blocks: pages, then their spare bytes, inverted; each rounded up to 4,096
//! ..       block table as it was at the last flush     rounded up to 4,096
//! ..       header page again
//! ```
//! In version 1 the spare bytes of all pages are one region behind the table, the pages of all
//! blocks another one, and there are no copies. Version 3 is an image of version 2 that grew:
//! behind all that stands there follow a table, the blocks that came, and both copies; what was the
//! table before and its copies are of no use any more. Version 4 is an image that shrank, too: its
//! first blocks are where they were, and both copies follow the last of them.
//!
//! Decoding trusts nothing: every field is checked before it is used.

use super::mark::is_nearly;
use super::watermark::Notes;
use crate::error::{Error, MediaErrorKind, Result};
use crate::nand::Geometry;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::{offset_of, size_of};
use onode_base::checksum::crc32c;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) const MAGIC: [u8; 8] = *b"ONODNAND";
/// The version of images that have the blocks with which they were made.
const VERSION: u32 = 2;
/// The version without copies at the end.
const VERSION_WITHOUT_COPIES: u32 = 1;
/// The version of images that grew.
pub(super) const VERSION_GROWN: u32 = 3;
/// The version of images that shrank, the last that is known.
pub(super) const VERSION_SHRUNK: u32 = 4;
/// So often an image can grow or shrink.
const STEPS_MAX: usize = 256;
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
    /// Zero in version 1, as the next one.
    copy_offset: U64,
    block_stride: U64,
    /// How often the image grew or shrank, and how many blocks it had before each time.
    steps: U32,
    blocks_before: [U32; STEPS_MAX],
    reserved: [u8; 2960],
    crc: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);
const _: () = assert!(offset_of!(Header, table_offset) == 40);
const _: () = assert!(offset_of!(Header, uuid) == 72);
const _: () = assert!(offset_of!(Header, crc) == 4092);

/// What a header tells of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageShape {
    pub(super) geometry: Geometry,
    pub(super) uuid: [u8; 16],
    /// How many blocks it had before it grew or shrank, each time.
    blocks_before: Vec<u32>,
    pub(super) layout: Layout,
}

impl ImageShape {
    /// Of a new image.
    pub(super) fn of_new(geometry: Geometry, uuid: [u8; 16]) -> Self {
        Self::of_version(geometry, uuid, VERSION, Vec::new())
    }

    fn of_version(geometry: Geometry, uuid: [u8; 16], version: u32, blocks_before: Vec<u32>) -> Self {
        let with = |blocks: u32| Geometry { blocks, ..geometry };
        let mut sizes = blocks_before.iter().copied().chain([geometry.blocks]).map(with);
        let made = sizes.next().unwrap_or(geometry);
        let made = if version == VERSION_WITHOUT_COPIES { Layout::without_copies(made) } else { Layout::of(made) };
        let layout = sizes.fold(made, |layout, shape| layout.resized(&shape));
        Self { geometry, uuid, blocks_before, layout }
    }

    /// The image when it has grown to `geometry`, which has more blocks.
    ///
    /// # Errors
    /// `Invalid` if it cannot grow.
    pub(super) fn grown(&self, geometry: Geometry) -> Result<Self> {
        let cannot = |why| Err(Error::new(MediaErrorKind::Invalid, why));
        if self.version() == VERSION_WITHOUT_COPIES {
            return cannot(String::from("an image of format version 1 cannot grow; copy the files to a new one"));
        }
        if self.blocks_before.len() >= STEPS_MAX {
            let why = format!("the image has grown or shrunk {STEPS_MAX} times; copy the files to a new one");
            return cannot(why);
        }
        Ok(self.resized(geometry))
    }

    /// The image when it has shrunk to `geometry`, which has fewer blocks; nothing if its copies
    /// have no room among the blocks that go, or the image cannot tell.
    pub(super) fn shrunk(&self, geometry: Geometry) -> Option<Self> {
        let old = self.layout.copies.filter(|_| self.blocks_before.len() < STEPS_MAX)?;
        let shrunk = self.resized(geometry);
        (shrunk.layout.end + Notes::AREA_BYTES <= old.table).then_some(shrunk)
    }

    fn resized(&self, geometry: Geometry) -> Self {
        let blocks_before = self.blocks_before.iter().copied().chain([self.geometry.blocks]).collect();
        Self { geometry, blocks_before, layout: self.layout.resized(&geometry), ..self.clone() }
    }

    /// Whether it has ever shrunk.
    pub(super) fn has_shrunk(&self) -> bool {
        self.version() == VERSION_SHRUNK
    }

    fn version(&self) -> u32 {
        let sizes = self.blocks_before.iter().chain([&self.geometry.blocks]);
        match (self.layout.copies, self.blocks_before.is_empty()) {
            (None, _) => VERSION_WITHOUT_COPIES,
            (Some(_), true) => VERSION,
            (Some(_), false) if sizes.is_sorted() => VERSION_GROWN,
            (Some(_), false) => VERSION_SHRUNK,
        }
    }
}

/// Blocks that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    /// Its first block.
    first: u32,
    /// The spare bytes of that block.
    spare: u64,
    /// The pages of that block.
    data: u64,
}

/// Where things are in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) table: u64,
    blocks: u32,
    /// Those, one region more for each time that the image grew and did not shrink again.
    regions: Vec<Region>,
    /// From the pages of a block to those of the next one.
    pub(super) data_stride: u64,
    /// From the spare bytes of a block to those of the next one.
    pub(super) spare_stride: u64,
    /// The copies of table and header, in images that have them.
    pub(super) copies: Option<Copies>,
    pub(super) end: u64,
}

/// What stands at the end of an image, too: whatever becomes of its start, the blocks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) table: u64,
    pub(super) header: u64,
}

impl Layout {
    /// Of a new image with a geometry that is valid; its bounds keep every sum below 2^57.
    pub(super) fn of(shape: Geometry) -> Self {
        let stride = stride(&shape);
        let (regions, copies) = (Vec::new(), None);
        let none = Self { table: 0, blocks: 0, regions, data_stride: stride, spare_stride: stride, copies, end: 0 };
        none.followed_by(HEADER_BYTES as u64, &shape)
    }

    /// Of an image of version 1.
    fn without_copies(shape: Geometry) -> Self {
        let table = HEADER_BYTES as u64;
        let spare = (table + shape.blocks as u64 * ENTRY_BYTES as u64).next_multiple_of(ALIGNMENT);
        let data = (spare + shape.pages() * shape.spare_bytes as u64).next_multiple_of(ALIGNMENT);
        let spare_stride = shape.pages_per_block as u64 * shape.spare_bytes as u64;
        let (data_stride, end) = (block_bytes(&shape), data + shape.bytes());
        let regions = vec![Region { first: 0, spare, data }];
        Self { table, blocks: shape.blocks, regions, data_stride, spare_stride, copies: None, end }
    }

    /// The image when it has grown to `shape`: all that is new stands behind what it is now, so
    /// that either is whole until the header page at the start says which of both counts. Or when
    /// it has shrunk to that: the copies follow the last block.
    fn resized(&self, shape: &Geometry) -> Self {
        if shape.blocks > self.blocks {
            return self.followed_by((self.end + Notes::AREA_BYTES).next_multiple_of(ALIGNMENT), shape);
        }
        let regions = self.regions.iter().copied().filter(|region| region.first < shape.blocks).collect();
        let kept = Self { blocks: shape.blocks, regions, ..self.clone() };
        let Region { first, data, .. } = kept.region(shape.blocks.saturating_sub(1));
        let behind = data + u64::from(shape.blocks - first) * self.data_stride;
        if self.table < behind {
            return kept.with_copies(behind, shape);
        }
        // A table that came with growth is among what goes, and moves, unless it is in the way of
        // that: then the copies follow it.
        let moved = Self { table: behind, ..kept.clone() }.with_copies(behind + table_bytes(shape.blocks), shape);
        if moved.end + Notes::AREA_BYTES <= self.table {
            return moved;
        }
        kept.with_copies(self.table + table_bytes(self.blocks), shape)
    }

    /// With copies from `table` on.
    fn with_copies(self, table: u64, shape: &Geometry) -> Self {
        let copies = Copies { table, header: table + table_bytes(shape.blocks) };
        Self { copies: Some(copies), end: copies.header + HEADER_BYTES as u64, ..self }
    }

    /// With a table for `shape` from `table` on, the blocks that are not there yet and the copies.
    fn followed_by(&self, table: u64, shape: &Geometry) -> Self {
        let first = self.blocks;
        let data = table + table_bytes(shape.blocks);
        let region = Region { first, spare: data + block_bytes(shape), data };
        let regions = self.regions.iter().copied().chain([region]).collect();
        let copy = data + u64::from(shape.blocks - first) * self.data_stride;
        Self { table, blocks: shape.blocks, regions, ..*self }.with_copies(copy, shape)
    }

    /// With the first block elsewhere.
    #[cfg(test)]
    pub(super) fn with_first_block(&self, data: u64, spare: u64) -> Self {
        Self { regions: vec![Region { first: 0, spare, data }], ..self.clone() }
    }

    /// The region that holds `block`.
    fn region(&self, block: u32) -> Region {
        let holds = |region: &&Region| region.first <= block;
        self.regions.iter().rev().find(holds).copied().unwrap_or(Region { first: 0, spare: 0, data: 0 })
    }

    /// Where the data of page `index` of `block` lies.
    pub(super) fn data(&self, shape: &Geometry, block: u32, index: u32) -> u64 {
        let Region { first, data, .. } = self.region(block);
        data + u64::from(block - first) * self.data_stride + u64::from(index) * u64::from(shape.page_bytes)
    }

    /// Where its spare bytes lie.
    pub(super) fn spare(&self, shape: &Geometry, block: u32, index: u32) -> u64 {
        let Region { first, spare, .. } = self.region(block);
        spare + u64::from(block - first) * self.spare_stride + u64::from(index) * u64::from(shape.spare_bytes)
    }
}

const fn table_bytes(blocks: u32) -> u64 {
    (blocks as u64 * ENTRY_BYTES as u64).next_multiple_of(ALIGNMENT)
}

const fn block_bytes(shape: &Geometry) -> u64 {
    shape.pages_per_block as u64 * shape.page_bytes as u64
}

/// From one block to the next, with its spare bytes.
const fn stride(shape: &Geometry) -> u64 {
    let spare_bytes = shape.pages_per_block as u64 * shape.spare_bytes as u64;
    (block_bytes(shape) + spare_bytes).next_multiple_of(ALIGNMENT)
}

impl Header {
    pub(super) fn new(image: &ImageShape) -> Self {
        let ImageShape { geometry: shape, uuid, blocks_before, layout } = image;
        let stride = if layout.copies.is_some() { layout.data_stride } else { 0 };
        let mut steps = [0.into(); STEPS_MAX];
        for (slot, blocks) in steps.iter_mut().zip(blocks_before) {
            *slot = U32::new(*blocks);
        }
        let mut header = Self {
            magic: MAGIC,
            version: image.version().into(),
            header_bytes: (HEADER_BYTES as u32).into(),
            page_bytes: shape.page_bytes.into(),
            spare_bytes: shape.spare_bytes.into(),
            pages_per_block: shape.pages_per_block.into(),
            blocks: shape.blocks.into(),
            chips: shape.chips.into(),
            entry_bytes: (ENTRY_BYTES as u32).into(),
            table_offset: layout.table.into(),
            spare_offset: layout.spare(shape, 0, 0).into(),
            data_offset: layout.data(shape, 0, 0).into(),
            file_bytes: layout.end.into(),
            uuid: *uuid,
            copy_offset: layout.copies.map_or(0, |copies| copies.table).into(),
            block_stride: stride.into(),
            steps: (blocks_before.len() as u32).into(),
            blocks_before: steps,
            reserved: [0; 2960],
            crc: 0.into(),
        };
        header.crc = header.checksum().into();
        header
    }

    fn checksum(&self) -> u32 {
        crc32c(&self.as_bytes()[..offset_of!(Self, crc)])
    }

    /// What a header page tells of which no more than some bits of the mark at its start are wrong:
    /// with that it has its checksum, which no other file has by chance.
    pub(super) fn decode_without_mark(bytes: &[u8]) -> Option<ImageShape> {
        let mut marked = bytes.to_vec();
        let mark = marked.first_chunk_mut().filter(|mark| is_nearly(mark, &MAGIC))?;
        *mark = MAGIC;
        Self::decode(&marked).ok()
    }

    /// The shape, identity and layout that a header page tells, if all of it holds.
    ///
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`.
    pub(super) fn decode(bytes: &[u8]) -> Result<ImageShape> {
        let damaged = |what| Err(Error::new(MediaErrorKind::Damaged, what));
        if !bytes.starts_with(&MAGIC) {
            return Err(Error::new(MediaErrorKind::NotAnImage, "it does not begin as a NAND image does"));
        }
        let Ok(header) = Self::ref_from_bytes(bytes) else {
            return damaged(format!("the header is cut short: {} bytes of {HEADER_BYTES}", bytes.len()));
        };
        let version = header.version.get();
        if version > VERSION_SHRUNK {
            let detail =
                format!("format version {version}, this program knows up to {VERSION_SHRUNK}; use a newer one");
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
        let steps = header.blocks_before.iter().take(header.steps.get() as usize);
        let blocks_before: Vec<u32> = steps.map(|blocks| blocks.get()).collect();
        let sizes: Vec<u32> = blocks_before.iter().copied().chain([shape.blocks]).collect();
        // Everything else follows from the shape: one comparison checks offsets, sizes and reserved
        // bytes.
        let differ = sizes.windows(2).all(|pair| pair[0] != pair[1]);
        let is_possible = |blocks: &u32| Geometry { blocks: *blocks, ..shape }.validate().is_ok();
        if differ && sizes.iter().all(is_possible) {
            let image = ImageShape::of_version(shape, header.uuid, version, blocks_before);
            if header.as_bytes() == Self::new(&image).as_bytes() {
                return Ok(image);
            }
        }
        damaged("the header contradicts itself".into())
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

    fn with(blocks: u32) -> Geometry {
        Geometry { blocks, ..SHAPE }
    }

    /// The checksums were computed by another program from `docs/format/nand-image.md` alone: if
    /// this fails, images in people's hands no longer open.
    #[test]
    fn version_1_keeps_its_bytes() {
        let uuid = core::array::from_fn(|i| i as u8);
        let image = ImageShape::of_version(SHAPE, uuid, 1, Vec::new());
        let header = Header::new(&image);
        assert_eq!(header.crc.get(), 0x484c_4f05);
        let layout = Layout {
            table: 4096,
            blocks: 1024,
            regions: vec![Region { first: 0, spare: 20480, data: 4214784 }],
            data_stride: 131072,
            spare_stride: 4096,
            copies: None,
            end: 138432512,
        };
        assert_eq!(image.layout, layout);
        assert_eq!(Header::decode(header.as_bytes()), Ok(image));

        let state = BlockState { erases: 5, written_pages: 7, bad: true };
        let entry = TableEntry::encode(3, state);
        assert_eq!(entry.as_bytes()[..12], [5, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(entry.crc.get(), 0x8222_d155);
        assert_eq!(entry.decode(3, SHAPE), Some(state));
        assert_eq!(entry.decode(4, SHAPE), None);
    }

    #[test]
    fn version_2_keeps_its_bytes() {
        let uuid = core::array::from_fn(|i| i as u8);
        let header = Header::new(&ImageShape::of_new(SHAPE, uuid));
        assert_eq!(header.crc.get(), 0x0bd7_ef2d);
        let layout = Layout {
            table: 4096,
            blocks: 1024,
            regions: vec![Region { first: 0, spare: 151552, data: 20480 }],
            data_stride: 135168,
            spare_stride: 135168,
            copies: Some(Copies { table: 138432512, header: 138448896 }),
            end: 138452992,
        };
        let image = Header::decode(header.as_bytes()).unwrap();
        assert_eq!((image.geometry, image.uuid, &image.layout), (SHAPE, uuid, &layout));
        assert_eq!(layout.data(&SHAPE, 1023, 63), 138432512 - 4096 - 2048);
        assert_eq!(layout.spare(&SHAPE, 1023, 63), 138432512 - 64);
    }

    /// By hand from `docs/format/nand-image.md`: 135,168 bytes a block.
    #[test]
    fn version_3_has_what_came_behind_what_was_there() {
        let made = ImageShape::of_new(SHAPE, [7; 16]);
        let grown = made.grown(with(1030)).unwrap();
        // Behind the watermark, 64 bytes from 138,452,992 on, rounded up.
        assert_eq!(grown.layout.table, 138_457_088);
        assert_eq!(grown.layout.data(&SHAPE, 1023, 63), made.layout.data(&SHAPE, 1023, 63));
        assert_eq!(grown.layout.data(&SHAPE, 1024, 1), 138_457_088 + 20_480 + 2048);
        assert_eq!(grown.layout.spare(&SHAPE, 1029, 0), 138_457_088 + 20_480 + 5 * 135_168 + 131_072);
        let copy = 138_457_088 + 20_480 + 6 * 135_168;
        assert_eq!(grown.layout.copies, Some(Copies { table: copy, header: copy + 20_480 }));
        let twice = grown.grown(with(2000)).unwrap();
        assert_eq!(twice.layout.data(&SHAPE, 1029, 0), grown.layout.data(&SHAPE, 1029, 0));
        for image in [grown, twice] {
            assert_eq!(Header::decode(Header::new(&image).as_bytes()), Ok(image));
        }
    }

    #[test]
    fn an_image_does_not_grow_for_ever() {
        assert!(ImageShape::of_version(SHAPE, [7; 16], 1, Vec::new()).grown(with(2000)).is_err());
        let mut image = ImageShape::of_new(SHAPE, [7; 16]);
        for blocks in (1025..).take(STEPS_MAX) {
            image = image.grown(with(blocks)).unwrap();
        }
        assert_eq!(Header::decode(Header::new(&image).as_bytes()).as_ref(), Ok(&image));
        assert_eq!(image.grown(with(5000)).unwrap_err().kind, MediaErrorKind::Invalid);
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

//! The bytes of the partition table, format version 1.
//!
//! ```text
//! 0        header, 128 bytes
//! 4096     header again
//! 8192     list of spaces of the first header, entries of 64 bytes; it may move
//! 12288    list of spaces of the second header
//! ```
//! Header and list count only together: the header has the checksum of the list. Decoding trusts
//! nothing.

use crate::layout::{ENTRY_BYTES, HEADER_BYTES, PAGE_BYTES, SPACES_MAX};
use crate::table::{Kind, SpaceInfo, Table};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem::{offset_of, size_of};
use onode_base::checksum::crc32c;
use onode_media::error::{Error, MediaErrorKind, Result};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a region begins with.
pub const MAGIC: [u8; 8] = *b"ONODESPC";
const VERSION: u32 = 1;
const READ_ONLY: u32 = 1;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U32,
    header_bytes: U32,
    uuid: [u8; 16],
    generation: U64,
    length: U64,
    alignment: U64,
    fresh_from: U64,
    next_id: U64,
    lists: [U64; 2],
    list_bytes: U64,
    spaces: U32,
    list_crc: U32,
    reserved: [u8; 20],
    crc: U32,
}
const _: () = assert!(size_of::<RawHeader>() == HEADER_BYTES);
const _: () = assert!(offset_of!(RawHeader, crc) == 124);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawEntry {
    name: [u8; 32],
    kind: U32,
    flags: U32,
    id: U64,
    start: U64,
    length: U64,
}
const _: () = assert!(size_of::<RawEntry>() == ENTRY_BYTES);

const fn kind_number(kind: Kind) -> u32 {
    match kind {
        Kind::Boot => 1,
        Kind::Memory => 2,
        Kind::FileSystem => 3,
        Kind::Manager => 4,
    }
}

/// A header that is one, with the list still to be read.
#[derive(Debug)]
pub(super) struct Header {
    /// The table without its spaces.
    table: Table,
    spaces: u32,
    list_crc: u32,
}

/// The bytes of the header and of the list.
pub(super) fn encode(table: &Table) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let mut list = Vec::with_capacity(table.spaces.len() * ENTRY_BYTES);
    for space in &table.spaces {
        let mut name = [0; 32];
        for (to, from) in name.iter_mut().zip(space.name.bytes()) {
            *to = from;
        }
        let entry = RawEntry {
            name,
            kind: kind_number(space.kind).into(),
            flags: u32::from(space.read_only).into(),
            id: space.id.into(),
            start: space.start.into(),
            length: space.length.into(),
        };
        list.extend_from_slice(entry.as_bytes());
    }
    let mut raw = RawHeader {
        magic: MAGIC,
        version: VERSION.into(),
        header_bytes: (HEADER_BYTES as u32).into(),
        uuid: table.uuid,
        generation: table.generation.into(),
        length: table.length.into(),
        alignment: table.alignment.into(),
        fresh_from: table.fresh_from.into(),
        next_id: table.next_id.into(),
        lists: table.lists.map(U64::new),
        list_bytes: table.list_bytes.into(),
        spaces: (table.spaces.len() as u32).into(),
        list_crc: crc32c(&list).into(),
        reserved: [0; 20],
        crc: 0.into(),
    };
    raw.crc = crc32c(&raw.as_bytes()[..offset_of!(RawHeader, crc)]).into();
    (zerocopy::transmute!(raw), list)
}

fn damaged(what: impl Into<String>) -> Error {
    Error::new(MediaErrorKind::Damaged, what)
}

impl Header {
    /// # Errors
    /// `NotAnImage`, `NewerFormat`, `Damaged`.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES], memory_bytes: u64) -> Result<Self> {
        let raw: &RawHeader = zerocopy::transmute_ref!(bytes);
        if raw.magic != MAGIC {
            return Err(Error::new(MediaErrorKind::NotAnImage, "it has no table of spaces"));
        }
        let version = raw.version.get();
        if version > VERSION {
            let detail =
                format!("table of spaces version {version}, this program knows up to {VERSION}; use a newer one");
            return Err(Error::new(MediaErrorKind::NewerFormat, detail));
        }
        let found = crc32c(&bytes[..offset_of!(RawHeader, crc)]);
        if found != raw.crc.get() {
            return Err(damaged(format!("checksum of a header is {found:#010x}, {:#010x} is recorded", raw.crc.get())));
        }
        let length = raw.length.get();
        if length > memory_bytes {
            return Err(damaged(format!(
                "the region has {length} bytes by its header, the memory {memory_bytes}: it was cut short"
            )));
        }
        let table = Table {
            uuid: raw.uuid,
            generation: raw.generation.get(),
            length,
            alignment: raw.alignment.get(),
            fresh_from: raw.fresh_from.get(),
            next_id: raw.next_id.get(),
            lists: raw.lists.map(U64::get),
            list_bytes: raw.list_bytes.get(),
            spaces: Vec::new(),
        };
        let header = Self { table, spaces: raw.spaces.get(), list_crc: raw.list_crc.get() };
        let has_room = header.list_length() as u64 <= header.table.list_bytes && header.spaces <= SPACES_MAX;
        let pages = header.table.lists.iter().chain([&header.table.list_bytes, &length]);
        let whole = pages.into_iter().all(|bytes| bytes.is_multiple_of(PAGE_BYTES));
        if version == 0
            || !has_room
            || !whole
            || raw.header_bytes.get() != HEADER_BYTES as u32
            || raw.reserved != [0; 20]
        {
            return Err(damaged("a header contradicts itself"));
        }
        match header.table.contradiction() {
            Some(what) => Err(damaged(what)),
            None => Ok(header),
        }
    }

    pub(super) const fn list_length(&self) -> usize {
        (self.spaces as usize).saturating_mul(ENTRY_BYTES)
    }

    /// Where the list lies that belongs to the copy of this number; inside of the memory.
    pub(super) fn list_at(&self, copy: usize) -> u64 {
        self.table.lists[copy % 2]
    }

    /// # Errors
    /// `Damaged`.
    pub(super) fn decode_list(mut self, list: &[u8]) -> Result<Table> {
        let found = crc32c(list);
        if found != self.list_crc {
            return Err(damaged(format!(
                "checksum of a list of spaces is {found:#010x}, {:#010x} is recorded",
                self.list_crc
            )));
        }
        for bytes in list.chunks_exact(ENTRY_BYTES) {
            let Ok(raw) = RawEntry::read_from_bytes(bytes) else { continue };
            let kind = Kind::ALL.into_iter().find(|kind| kind_number(*kind) == raw.kind.get());
            let end = raw.name.iter().position(|byte| *byte == 0).unwrap_or(raw.name.len());
            let name = core::str::from_utf8(&raw.name[..end]).ok();
            let (Some(kind), Some(name), 0..=READ_ONLY) = (kind, name, raw.flags.get()) else {
                return Err(damaged("an entry of the list of spaces has a kind, a name or flags that there are not"));
            };
            self.table.spaces.push(SpaceInfo {
                id: raw.id.get(),
                name: name.into(),
                kind,
                read_only: raw.flags.get() & READ_ONLY != 0,
                start: raw.start.get(),
                length: raw.length.get(),
            });
        }
        match self.table.contradiction() {
            Some(what) => Err(damaged(what)),
            None => Ok(self.table),
        }
    }
}

//! Everything that the index puts into the memory. `docs/format/flash-scm.md` describes it byte by
//! byte.
//!
//! ```text
//! +--------+--------+-------------------------------------------+
//! | slot 0 | slot 1 | heap of blobs, in granules of 16 bytes     | write buffer, if there is one
//! +--------+--------+-------------------------------------------+
//!
//! blob = header (12 bytes) | bytes
//! ```
//!
//! The slot that is sound and has the higher fold counts; its blob *body* says the rest.

use super::buffer::Area;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of an anchor slot.
pub const ANCHOR_MAGIC: [u8; 8] = *b"ONODEBP\x01";
/// Where the slots lie: each is a line.
pub const SLOTS: [u64; 2] = [0, 64];
/// Where the heap begins.
pub const HEAP_BEGIN: u64 = 128;
/// Bytes of a granule.
pub const GRANULE_BYTES: u64 = 16;
/// The most bytes of a bucket, its header included.
pub const BUCKET_BYTES_MAX: usize = 512;

/// One line that makes a fold count.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Anchor {
    /// [`ANCHOR_MAGIC`].
    pub magic: [u8; 8],
    /// The volume.
    pub uuid: [u8; 16],
    /// Number of the fold, ascending by one.
    pub fold: U32,
    /// Granule of the body.
    pub body_granule: U32,
    /// Bytes of the body, its header included.
    pub body_bytes: U32,
    /// Where the write buffer begins, and the heap ends.
    pub buffer_begin: U64,
    /// Bytes of a slot of the write buffer.
    pub slot_bytes: U32,
    /// How many slots it has; 0 without one.
    pub slots: U32,
    /// Zero.
    pub reserved: [u8; 8],
    /// CRC-32C of the fields above.
    pub checksum: U32,
}
const _: () = assert!(size_of::<Anchor>() == 64);

/// Begins a blob.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BlobHeader {
    /// A [`BlobKind`]; 0 for none.
    pub kind: u8,
    /// [`BLOB_MARK`].
    pub mark: u8,
    /// Bytes that follow.
    pub length: U16,
    /// The fold that wrote it.
    pub fold: U32,
    /// CRC-32C of volume seed, granule, the fields above and the bytes.
    pub checksum: U32,
}
const _: () = assert!(size_of::<BlobHeader>() == 12);

/// In every blob's header.
pub const BLOB_MARK: u8 = 0xb7;

/// What a blob is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlobKind {
    /// Entries.
    Bucket = 1,
    /// The key from which on entries are elsewhere.
    Elsewhere = 2,
    /// A piece of the segment table.
    Piece = 3,
    /// What an anchor names.
    Body = 4,
}

impl BlobKind {
    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Bucket,
            2 => Self::Elsewhere,
            3 => Self::Piece,
            4 => Self::Body,
            _ => return None,
        })
    }
}

/// Begins a body: the places that the fold gave up and the superblock follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BodyHeader {
    /// Sum of the checksums of all blobs but the body, modulo 2^64.
    pub sum: U64,
    /// How many blobs there are beside the body.
    pub blobs: U32,
    /// How many places the fold gave up; 4 bytes each follow, a granule.
    pub given_up: U32,
    /// 1 if the volume was closed.
    pub closed: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// Bytes of a page of the flash: the unit of what buckets say.
    pub unit: U32,
}
const _: () = assert!(size_of::<BodyHeader>() == 24);

/// A place in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its first granule.
    pub granule: u32,
    /// Bytes, header included.
    pub bytes: u32,
}

impl Span {
    /// Its address in the memory.
    pub const fn address(self) -> u64 {
        HEAP_BEGIN + self.granule as u64 * GRANULE_BYTES
    }
}

/// A blob as it is known: where it lies, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its place.
    pub span: Span,
    /// Its checksum.
    pub checksum: u32,
}

/// A sound blob.
pub struct Blob {
    /// What it is.
    pub kind: BlobKind,
    /// The fold that wrote it.
    pub fold: u32,
    /// Where it lies.
    pub at: Stored,
    /// What it holds.
    pub bytes: Vec<u8>,
}

fn checksum(seed: u32, granule: u32, header: &BlobHeader, bytes: &[u8]) -> u32 {
    let crc = crc32c_append(seed, &granule.to_le_bytes());
    crc32c_append(crc32c_append(crc, &header.as_bytes()[..8]), bytes)
}

/// A blob ready to be written at `at`, and its checksum.
pub fn seal_blob(seed: u32, at: Span, kind: BlobKind, fold: u32, bytes: &[u8]) -> (Vec<u8>, u32) {
    let mut header = BlobHeader {
        kind: kind as u8,
        mark: BLOB_MARK,
        length: (bytes.len() as u16).into(),
        fold: fold.into(),
        checksum: 0.into(),
    };
    let crc = checksum(seed, at.granule, &header, bytes);
    header.checksum = crc.into();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(bytes);
    (out, crc)
}

/// Whether the header of a blob, sound or not, may begin at `granule`.
pub fn may_be_blob(memory: &dyn Pmem, granule: u32) -> bool {
    let [kind, mark, ..] = memory.load(Span { granule, bytes: 0 }.address()).to_le_bytes();
    mark == BLOB_MARK && BlobKind::from_byte(kind).is_some()
}

/// The blob that begins at `granule`, if a sound one does.
pub fn blob_at(memory: &dyn Pmem, seed: u32, granule: u32) -> Option<Blob> {
    let address = Span { granule, bytes: 0 }.address();
    let mut header = [0; size_of::<BlobHeader>()];
    if address + header.len() as u64 > memory.length() {
        return None;
    }
    memory.read(address, &mut header);
    let header = BlobHeader::read_from_bytes(&header).ok()?;
    let kind = BlobKind::from_byte(header.kind).filter(|_| header.mark == BLOB_MARK)?;
    let length = u32::from(header.length.get());
    let begin = address + size_of::<BlobHeader>() as u64;
    if begin + u64::from(length) > memory.length() {
        return None;
    }
    let mut bytes = vec![0; length as usize];
    memory.read(begin, &mut bytes);
    let is_believed = is_planted(Bug::DamagedBesideBlobBelieved);
    let crc = if is_believed { header.checksum.get() } else { checksum(seed, granule, &header, &bytes) };
    if crc != header.checksum.get() {
        return None;
    }
    Some(Blob {
        kind,
        fold: header.fold.get(),
        at: Stored { span: Span { granule, bytes: length + size_of::<BlobHeader>() as u32 }, checksum: crc },
        bytes,
    })
}

/// The blob at `at`, if it is still the same.
pub fn read_blob(memory: &dyn Pmem, seed: u32, at: Stored) -> Option<Blob> {
    blob_at(memory, seed, at.span.granule).filter(|blob| blob.at == at)
}

/// An anchor ready to be stored.
pub fn seal_anchor(uuid: [u8; 16], fold: u32, body: Span, buffer: Area) -> [u8; 64] {
    let mut anchor = Anchor {
        magic: ANCHOR_MAGIC,
        uuid,
        fold: fold.into(),
        body_granule: body.granule.into(),
        body_bytes: body.bytes.into(),
        buffer_begin: buffer.begin.into(),
        slot_bytes: buffer.slot_bytes.into(),
        slots: buffer.slots.into(),
        reserved: [0; 8],
        checksum: 0.into(),
    };
    anchor.checksum = crc32c(&anchor.as_bytes()[..60]).into();
    let mut out = [0; 64];
    out.copy_from_slice(anchor.as_bytes());
    out
}

/// The anchors that are sound, each with its slot, the newest first.
pub fn read_anchors(memory: &dyn Pmem) -> Vec<(usize, Anchor)> {
    let mut found = Vec::new();
    for (slot, &address) in SLOTS.iter().enumerate() {
        let mut line = [0; 64];
        if address + 64 > memory.length() {
            continue;
        }
        memory.read(address, &mut line);
        let Ok(anchor) = Anchor::read_from_bytes(&line) else { continue };
        if anchor.magic == ANCHOR_MAGIC && anchor.checksum.get() == crc32c(&line[..60]) {
            found.push((slot, anchor));
        }
    }
    found.sort_by_key(|(_, anchor)| core::cmp::Reverse(anchor.fold.get()));
    found
}

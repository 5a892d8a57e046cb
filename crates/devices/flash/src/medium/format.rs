//! Everything that the flash device puts on a medium, in one place. `docs/format/flash.md`
//! describes it byte by byte.
//!
//! ```text
//! +-------------+-----------+-----------+-- ... --+-----------+--------+-------------+
//! | superblocks | segment 0 | segment 1 |         | segment n | unused | superblocks |
//! +-------------+-----------+-----------+-- ... --+-----------+--------+-------------+
//!
//! page      = payload ................................. | trailer (16 bytes, in the spare if it fits)
//! payload   = content from the front ... | free | ... commit record frames up to the end
//!             (in a journal page up to the end of what is left in the spare)
//! segment   = pages of one stream, then its summary
//! ```
//!
//! All numbers are little-endian. Fields named `reserved` are zero and checked to be zero.

use alloc::vec::Vec;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of every superblock.
pub const SUPERBLOCK_MAGIC: [u8; 8] = *b"ONODEFL\x01";
/// Incompatible changes raise the major number: older code refuses the medium.
pub const FORMAT_MAJOR: u16 = 2;
/// Compatible additions raise the minor number: the newest.
pub const FORMAT_MINOR: u16 = 9;
/// The minor number of volumes with parity whose objects do not choose it.
pub const FORMAT_MINOR_PARITY: u16 = 8;
/// The minor number of volumes without parity.
pub const FORMAT_MINOR_PLAIN: u16 = 7;
/// Incompatible feature: segments may belong to streams beyond the first four.
pub const FEATURE_CLASSES: u32 = 1;
/// Incompatible feature: journal pages go on in the spare area, and records name the bytes of an
/// attribute that changed.
pub const FEATURE_COMPACT_RECORDS: u32 = 4;
/// Incompatible feature: objects may have access times, and segments hold a log of them.
pub const FEATURE_ACCESS_TIMES: u32 = 8;
/// Incompatible feature: the journal holds copies of pages of content that were not full.
pub const FEATURE_WAITING_PAGES: u32 = 16;
/// Incompatible feature: the index of content is in a memory beside the flash too, which has to
/// know of every change.
pub const FEATURE_MEMORY: u32 = 32;
/// Incompatible feature: changes wait to be applied to the tree; a reference to them follows those
/// to the segment table.
pub const FEATURE_DEFERRED: u32 = 64;
/// Incompatible feature: superblocks stand at both ends of the medium.
pub const FEATURE_FAR_SUPERBLOCKS: u32 = 128;
/// Incompatible features: how many pages of each row hold parity, in two bits.
pub const FEATURE_PARITY: u32 = 256 | 512;
/// Incompatible feature: objects may have versions, between which content moves: who cleans a
/// segment looks for content among all relatives of the object that it was written to.
pub const FEATURE_VERSIONS: u32 = 1024;
/// Incompatible feature: superblocks stand in two blocks at each end they stand at, although so
/// large a medium would have more of them: the volume has grown.
pub const FEATURE_FEW_SUPERBLOCKS: u32 = 2048;
/// Incompatible feature: superblocks stand in three blocks at each end, with others to stand in for
/// bad ones at the far end, although so small a medium would have fewer of them: the volume was
/// made larger than it is.
pub const FEATURE_MANY_SUPERBLOCKS: u32 = 4096;
/// Incompatible features that say where superblocks stand.
pub const FEATURES_OF_SUPERBLOCKS: u32 = FEATURE_FAR_SUPERBLOCKS | FEATURE_FEW_SUPERBLOCKS | FEATURE_MANY_SUPERBLOCKS;
/// Incompatible feature: objects choose how many pages of parity the rows with their whole pages
/// have, up to those of [`FEATURE_PARITY`].
pub const FEATURE_PARITY_CHOSEN: u32 = 8192;
/// The number for content that wishes no other, a number of two bits.
pub const FEATURE_USUAL_PARITY: u32 = 16384 | 32768;
/// All incompatible features that this code knows.
pub const FEATURES_KNOWN: u32 = FEATURE_CLASSES
    | FEATURE_COMPACT_RECORDS
    | FEATURE_ACCESS_TIMES
    | FEATURE_WAITING_PAGES
    | FEATURE_MEMORY
    | FEATURE_DEFERRED
    | FEATURE_PARITY
    | FEATURE_VERSIONS
    | FEATURE_PARITY_CHOSEN
    | FEATURE_USUAL_PARITY
    | FEATURES_OF_SUPERBLOCKS;

/// Pages of parity in a row of a volume with these incompatible features.
#[must_use]
pub const fn parity_of_features(features: u32) -> u8 {
    ((features & FEATURE_PARITY) >> FEATURE_PARITY.trailing_zeros()) as u8
}

/// The incompatible features of a volume with so many pages of parity in a row.
#[must_use]
pub const fn features_of_parity(parity_pages: u32) -> u32 {
    parity_pages << FEATURE_PARITY.trailing_zeros() & FEATURE_PARITY
}

/// Pages of parity in a row of content that wishes no other number, on a volume with these
/// incompatible features; nothing where objects do not choose.
#[must_use]
pub const fn chosen_parity_of_features(features: u32) -> Option<u8> {
    if features & FEATURE_PARITY_CHOSEN == 0 {
        return None;
    }
    Some(((features & FEATURE_USUAL_PARITY) >> FEATURE_USUAL_PARITY.trailing_zeros()) as u8)
}

/// The incompatible features of a volume where objects choose their parity, if they do.
#[must_use]
pub const fn features_of_chosen_parity(usual: Option<u8>) -> u32 {
    match usual {
        Some(usual) => {
            FEATURE_PARITY_CHOSEN | ((usual as u32) << FEATURE_USUAL_PARITY.trailing_zeros() & FEATURE_USUAL_PARITY)
        }
        None => 0,
    }
}

/// Compatible features: the wear policy that was chosen, one of these. None is set if none was
/// chosen.
pub const FEATURE_WEAR_OFF: u32 = 1;
/// See [`FEATURE_WEAR_OFF`].
pub const FEATURE_WEAR_DYNAMIC: u32 = 2;
/// See [`FEATURE_WEAR_OFF`].
pub const FEATURE_WEAR_STATIC: u32 = 4;
/// Compatible feature: the write buffer of the memory beside the flash may have commits that were
/// promised to be durable and that the flash lacks.
pub const FEATURE_BUFFERED: u32 = 8;
/// Compatible feature: [`SavedPage`]s follow the references.
pub const FEATURE_SAVED_PAGES: u32 = 16;
/// Compatible feature: content may have another parity than its object wishes, and is to move.
pub const FEATURE_PARITY_PENDING: u32 = 32;
/// Bytes of an entry in the log of access times: object and time.
pub const ACCESS_ENTRY_BYTES: usize = 16;
/// First bytes of every segment summary.
pub const SUMMARY_MAGIC: [u8; 4] = *b"OSUM";

/// Ends every page. In the spare area where 16 bytes of it are to be had, else in the last 16 bytes
/// of the page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PageTrailer {
    /// CRC-32C of volume seed, page address, the fields below and the payload.
    pub checksum: U32,
    /// Sequence number of the segment (or of the superblock).
    pub sequence: U32,
    /// Bytes of commit record frames at the end of the payload.
    pub record_bytes: U16,
    /// What the page holds: a [`PageKind`].
    pub kind: u8,
    /// [`PAGE_FLUSHED`], or nothing.
    pub flags: u8,
    /// Bytes before the frames that repeat the frames of earlier pages.
    pub echo_bytes: U16,
    /// Bytes behind the trailer, in the spare area, with which the payload of a journal page goes
    /// on.
    pub spare_bytes: u8,
    /// Zero.
    pub reserved: u8,
}
const _: () = assert!(size_of::<PageTrailer>() == 16);

/// Flag of a journal page: every journal page before it, and all content that they place, had been
/// flushed when it was programmed. Media that keep order do not need it.
pub const PAGE_FLUSHED: u8 = 1;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// A superblock.
    Superblock = 1,
    /// Commit records and packed content.
    Journal = 2,
    /// Content of objects.
    Data = 3,
    /// Content moved by the cleaner.
    Cold = 4,
    /// Tree nodes and pieces of the segment table.
    Index = 5,
    /// A segment summary.
    Summary = 6,
    /// Access times.
    Atime = 7,
    /// A copy of a page of the index, behind the superblock of a closed volume.
    Saved = 8,
    /// Parity of a row of pages: its columns stand for record bytes, its number for echo bytes.
    Parity = 9,
}

impl PageKind {
    /// The kind a byte stands for.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Superblock,
            2 => Self::Journal,
            3 => Self::Data,
            4 => Self::Cold,
            5 => Self::Index,
            6 => Self::Summary,
            7 => Self::Atime,
            8 => Self::Saved,
            9 => Self::Parity,
            _ => return None,
        })
    }
}

/// Where a tree node or a piece of the segment table lies, and the checksum of what must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BlobReference {
    /// Byte address in the payload space of all segments; [`NOWHERE`] for none.
    pub location: U64,
    /// Length in bytes.
    pub length: U32,
    /// CRC-32C of those bytes.
    pub checksum: U32,
}
const _: () = assert!(size_of::<BlobReference>() == 16);

/// In the reverse index, deferred changes stand as this piece of the segment table: like one, only
/// a checkpoint moves them.
pub const DEFERRED_PIECE: u32 = u32::MAX;

/// The location of nothing.
pub const NOWHERE: u64 = u64::MAX;

/// The fixed part of a superblock; `table_pieces` [`BlobReference`]s follow it, and with
/// [`FEATURE_DEFERRED`] one more.
///
/// A superblock is one page. It is written at every checkpoint, at both ends of the medium into the
/// superblock blocks in turn, and is never rewritten in place. The valid one with the highest
/// `generation` counts.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Superblock {
    /// [`SUPERBLOCK_MAGIC`].
    pub magic: [u8; 8],
    /// [`FORMAT_MAJOR`].
    pub major: U16,
    /// [`FORMAT_MINOR`] or, where nothing of it is used, [`FORMAT_MINOR_PLAIN`].
    pub minor: U16,
    /// Features without which the medium cannot be used at all.
    pub incompatible: U32,
    /// Features without which it can only be read.
    pub read_only_compatible: U32,
    /// Features that may be ignored.
    pub compatible: U32,
    /// The volume.
    pub uuid: [u8; 16],
    /// Geometry: data bytes of a page.
    pub page_bytes: U32,
    /// Geometry: pages of an erase block.
    pub pages_per_block: U32,
    /// Geometry: erase blocks.
    pub blocks: U32,
    /// Geometry: chips.
    pub chips: U16,
    /// Erase blocks of a segment.
    pub blocks_per_segment: U16,
    /// Number of this superblock, ascending by one.
    pub generation: U32,
    /// Generation of the first superblock that describes this checkpoint. If it is smaller than
    /// `generation`, an earlier copy is known to be complete on the medium.
    pub checkpoint_generation: U32,
    /// Root of the tree.
    pub root: BlobReference,
    /// Level of the root; leaves have level 0.
    pub root_level: u8,
    /// One more than the placement policy's number; 0 if none was chosen.
    pub placement: u8,
    /// 1 if nothing follows in the journal.
    pub clean: u8,
    /// One more than the victim policy's number; 0 if none was chosen.
    pub victim: u8,
    /// Pieces of the segment table that follow.
    pub table_pieces: U32,
    /// Where the journal goes on: segment.
    pub journal_segment: U32,
    /// Where the journal goes on: page of the segment.
    pub journal_page: U32,
    /// Where the journal goes on: sequence number of that segment.
    pub journal_sequence: U32,
    /// The journal segment after that one.
    pub journal_next_segment: U32,
    /// The sequence number reserved for it.
    pub journal_next_sequence: U32,
    /// The next sequence number that no segment has had.
    pub next_sequence: U32,
    /// The next object id that no object has had.
    pub next_object: U64,
    /// Commits so far.
    pub transaction: U64,
    /// Objects that exist.
    pub objects: U64,
    /// Extents that exist.
    pub extents: U64,
}
const _: () = assert!(size_of::<Superblock>() == 144);

/// Where a copy of a page with the root of the tree or with pieces of the segment table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SavedPage {
    /// Address of the page, counted from the start of the medium.
    pub page: U64,
    /// Address of its copy.
    pub copy: U64,
    /// Sequence number of the page.
    pub sequence: U32,
}
const _: () = assert!(size_of::<SavedPage>() == 20);

/// What follows a superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// To the pieces of the segment table.
    pub pieces: Vec<BlobReference>,
    /// To deferred changes.
    pub deferred: Option<BlobReference>,
    /// Copies of pages.
    pub saved: Vec<SavedPage>,
}

impl References {
    /// Bytes before the first [`SavedPage`]: how many there are.
    pub const SAVED_HEADER_BYTES: usize = size_of::<U32>();

    /// As they follow the superblock.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.pieces.as_bytes().to_vec();
        bytes.extend_from_slice(self.deferred.as_slice().as_bytes());
        if !self.saved.is_empty() {
            bytes.extend_from_slice(U32::new(self.saved.len() as u32).as_bytes());
            bytes.extend_from_slice(self.saved.as_bytes());
        }
        bytes
    }
}

impl Superblock {
    /// What stands in `after`, the bytes behind it.
    #[must_use]
    pub fn references(&self, after: &[u8]) -> Option<References> {
        let pieces = self.table_pieces.get() as usize;
        let all = pieces.checked_add(usize::from(self.incompatible.get() & FEATURE_DEFERRED != 0))?;
        let (bytes, after) = after.split_at_checked(all.checked_mul(size_of::<BlobReference>())?)?;
        let (pieces, deferred) = <[BlobReference]>::ref_from_bytes(bytes).ok()?.split_at_checked(pieces)?;
        let mut saved = Vec::new();
        if self.compatible.get() & FEATURE_SAVED_PAGES != 0 {
            let (count, after) = U32::read_from_prefix(after).ok()?;
            let bytes = after.get(..(count.get() as usize).checked_mul(size_of::<SavedPage>())?)?;
            saved.extend_from_slice(<[SavedPage]>::ref_from_bytes(bytes).ok()?);
        }
        Some(References { pieces: pieces.to_vec(), deferred: deferred.first().copied(), saved })
    }
}

/// `summary_page` of a segment without a summary.
pub const NO_SUMMARY: u16 = u16::MAX;

/// Starts a segment summary; `item_bytes` bytes of items follow (see `items.rs`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SummaryHeader {
    /// [`SUMMARY_MAGIC`].
    pub magic: [u8; 4],
    /// Sequence number of the segment.
    pub sequence: U32,
    /// Commits so far when it was sealed: the age of the segment.
    pub transaction: U64,
    /// Bytes referred to when it was sealed.
    pub live_bytes: U32,
    /// Items in the reverse index.
    pub items: U32,
    /// Bytes of those items.
    pub item_bytes: U32,
    /// CRC-32C of those bytes.
    pub checksum: U32,
}
const _: () = assert!(size_of::<SummaryHeader>() == 32);

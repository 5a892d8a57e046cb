//! The structures on the memory, byte by byte (`docs/format/scm.md`).
//!
//! Everything durable is little-endian and carries a CRC-32C. A structure that does not check out
//! is `None` here; what that means is for those who asked to say.

use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};
use onode_engine::{Fault, Numbered};
use onode_media::pmem::LINE_BYTES;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Where the two superblocks stand.
pub(crate) const SUPERBLOCKS: [u64; 2] = [0, 4096];
/// What the processes that use the device tell each other, up to the blocks.
pub(crate) const SHARED_START: u64 = 8 << 10;
/// Where the blocks begin, and with them the allocator's tables.
pub(crate) const AREA_START: u64 = 64 << 10;
/// The smallest memory that a device is made on.
pub const SMALLEST_BYTES: u64 = 256 << 10;
/// The format that this code writes.
pub const FORMAT_VERSION: u32 = 1;

const SUPERBLOCK_MAGIC: u64 = u64::from_le_bytes(*b"onodescm");
const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"OLOG");

/// Bytes of the log's records lie from here on in a segment.
pub(crate) const FIRST_RECORD: u64 = LINE_BYTES;
/// Bytes of a record before its items.
pub(crate) const RECORD_HEADER: u64 = 12;
/// Bytes before a record where it is made: its checksum begins with its number, which stands there
/// and where the checksum is going to be.
pub(crate) const RECORD_FRONT: u64 = 4;

/// What is true of the whole device; the valid one of the two with the higher generation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RawSuperblock {
    magic: U64,
    version: U32,
    crc: U32,
    generation: U64,
    uuid: [u8; 16],
    incompatible: U64,
    length: U64,
    chunk_bytes: U32,
    flags: U32,
    session: U64,
    tail: U64,
    tail_sequence: U64,
    next_id: U64,
    accepted: U64,
    made_length: U64,
    reserved: [u8; 16],
}
const _: () = assert!(size_of::<RawSuperblock>() == 128);

/// The volume was closed in order: everything up to the log's end is durable.
const CLOSED: u32 = 1;
/// Blocks are named by the words of slots, too.
pub(crate) const FEATURE_SLOTS: u64 = 1;
/// The last page of the memory is a copy of the superblock.
pub(crate) const FEATURE_COPY: u64 = 2;
/// Objects may have versions, whose ids are behind those of tables.
pub(crate) const FEATURE_VERSIONS: u64 = 4;
/// One process at a time uses the device, and maps none of its objects.
pub(crate) const FEATURE_EXCLUSIVE: u64 = 8;
const FEATURES: u64 = FEATURE_SLOTS | FEATURE_COPY | FEATURE_VERSIONS | FEATURE_EXCLUSIVE;
const PAGE_BYTES: u64 = 4096;

/// Where the copy of the superblock lies in a memory of `length`: far from the others, behind the
/// blocks.
pub(crate) const fn copy_at(length: u64) -> u64 {
    (length / PAGE_BYTES).saturating_sub(1) * PAGE_BYTES
}

/// A superblock in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    /// Counts superblocks written.
    pub generation: u64,
    /// The device's unique number.
    pub uuid: [u8; 16],
    /// What somebody has to know of to use it.
    pub features: u64,
    /// Bytes of the memory.
    pub length: u64,
    /// Bytes that it had when the device was made: the blocks begin behind tables for so many.
    pub made_length: u64,
    /// Bytes of a chunk of the allocator, and of a segment of the log.
    pub chunk_bytes: u32,
    /// Closed in order.
    pub closed: bool,
    /// Counts mounts that could write.
    pub session: u64,
    /// The oldest segment of the log.
    pub tail: u64,
    /// Its number.
    pub tail_sequence: u64,
    /// No object had this id or a higher one when the superblock was written.
    pub next_id: u64,
    /// Records below this number are durable with everything that they stand for: a recovery checks
    /// none of that.
    pub accepted: u64,
}

impl Numbered for Superblock {
    fn number(&self) -> u64 {
        self.generation
    }
}

impl Superblock {
    /// Bytes on the memory.
    pub(crate) const BYTES: usize = size_of::<RawSuperblock>();

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut raw = RawSuperblock {
            magic: SUPERBLOCK_MAGIC.into(),
            version: FORMAT_VERSION.into(),
            crc: 0.into(),
            generation: self.generation.into(),
            uuid: self.uuid,
            incompatible: self.features.into(),
            length: self.length.into(),
            chunk_bytes: self.chunk_bytes.into(),
            flags: (if self.closed { CLOSED } else { 0 }).into(),
            session: self.session.into(),
            tail: self.tail.into(),
            tail_sequence: self.tail_sequence.into(),
            next_id: self.next_id.into(),
            accepted: self.accepted.into(),
            made_length: self.made_length.into(),
            reserved: [0; 16],
        };
        raw.crc = crc32c(raw.as_bytes()).into();
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, Fault> {
        let Ok(mut raw) = RawSuperblock::read_from_bytes(bytes) else { return Err(Fault::Foreign) };
        if raw.magic.get() != SUPERBLOCK_MAGIC {
            return Err(Fault::Foreign);
        }
        let crc = raw.crc.get();
        raw.crc = 0.into();
        if crc32c(raw.as_bytes()) != crc {
            return Err(Fault::Damaged);
        }
        if raw.version.get() > FORMAT_VERSION || raw.incompatible.get() & !FEATURES != 0 {
            return Err(Fault::Newer(raw.version.get()));
        }
        Ok(Self {
            generation: raw.generation.get(),
            uuid: raw.uuid,
            features: raw.incompatible.get(),
            length: raw.length.get(),
            chunk_bytes: raw.chunk_bytes.get(),
            closed: raw.flags.get() & CLOSED != 0,
            session: raw.session.get(),
            tail: raw.tail.get(),
            tail_sequence: raw.tail_sequence.get(),
            next_id: raw.next_id.get(),
            accepted: raw.accepted.get(),
            made_length: raw.made_length.get(),
        })
    }
}

/// The first line of a segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawSegment {
    magic: U32,
    crc: U32,
    sequence: U64,
    first_record: U64,
    next: U64,
    session: U64,
    salt: U64,
    tail_sequence: U64,
    reserved: [u8; 8],
}
const _: () = assert!(size_of::<RawSegment>() as u64 == FIRST_RECORD);

/// The head of a segment in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    /// Its number; the next one's is higher by one.
    pub sequence: u64,
    /// The number of its first record.
    pub first_record: u64,
    /// Where the next segment is going to be.
    pub next: u64,
    /// The session that opened it.
    pub session: u64,
    /// The number of the oldest segment then; 0 from programs that did not tell.
    pub tail_sequence: u64,
}

impl SegmentHead {
    /// Bytes on the memory.
    pub(crate) const BYTES: usize = size_of::<RawSegment>();

    pub(crate) fn encode(&self, salt: u64) -> [u8; Self::BYTES] {
        let mut raw = RawSegment {
            magic: SEGMENT_MAGIC.into(),
            crc: 0.into(),
            sequence: self.sequence.into(),
            first_record: self.first_record.into(),
            next: self.next.into(),
            session: self.session.into(),
            salt: salt.into(),
            tail_sequence: self.tail_sequence.into(),
            reserved: [0; 8],
        };
        raw.crc = crc32c(raw.as_bytes()).into();
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    /// The head that `bytes` are, if they are one of the device with this salt.
    pub(crate) fn decode(bytes: &[u8; Self::BYTES], salt: u64) -> Option<Self> {
        let mut raw = RawSegment::read_from_bytes(bytes).ok()?;
        let crc = raw.crc.get();
        raw.crc = 0.into();
        let is_ours = raw.magic.get() == SEGMENT_MAGIC && raw.salt.get() == salt && crc32c(raw.as_bytes()) == crc;
        is_ours.then_some(Self {
            sequence: raw.sequence.get(),
            first_record: raw.first_record.get(),
            next: raw.next.get(),
            session: raw.session.get(),
            tail_sequence: raw.tail_sequence.get(),
        })
    }
}

/// What stands before the items of a record. A record begins on a line of its own and is whole
/// lines, so that no line is flushed twice and one fence makes all of it durable; the checksum says
/// whether it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    /// Its number; the next one's is higher by one.
    pub sequence: u64,
    /// Bytes with this head and its items, without the rest of the last line.
    pub bytes: u32,
    /// The transaction goes on in the next record.
    pub more: bool,
    /// All records before this one less so many were durable when it was written.
    pub unfenced: u16,
    /// Changes in place of all records before this one less so many were durable when it was
    /// written.
    pub unapplied: u16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawRecord {
    crc: U32,
    bytes: U16,
    /// The low half-word of the number; the checksum covers all of it.
    sequence: U16,
    /// The highest bit is [`RecordHead::more`].
    unfenced: U16,
    unapplied: U16,
}
const _: () = assert!(size_of::<RawRecord>() as u64 == RECORD_HEADER && RECORD_FRONT + 4 == 8);

const MORE: u16 = 1 << 15;

impl RecordHead {
    /// The most that [`RecordHead::unfenced`] can be.
    pub(crate) const MOST_UNFENCED: u16 = MORE - 1;

    /// Writes the head to the front of a record behind [`RECORD_FRONT`] bytes, which holds the
    /// items already and is shorter than 64 KiB.
    pub(crate) fn seal(&self, framed: &mut [u8], key: u32) {
        let raw = RawRecord {
            crc: 0.into(),
            bytes: (self.bytes as u16).into(),
            sequence: (self.sequence as u16).into(),
            unfenced: (self.unfenced | if self.more { MORE } else { 0 }).into(),
            unapplied: self.unapplied.into(),
        };
        const FRONT: usize = RECORD_FRONT as usize;
        let Some(framed) = framed.get_mut(..FRONT + self.bytes as usize) else { return };
        if let Some(head) = framed.get_mut(FRONT..FRONT + RECORD_HEADER as usize) {
            head.copy_from_slice(raw.as_bytes());
            framed[..8].copy_from_slice(&self.sequence.to_le_bytes());
            let crc = crc32c_append(key, framed);
            framed[FRONT..8].copy_from_slice(&crc.to_le_bytes());
        }
    }

    /// The head at the front of `record`, not verified, of a record near the one of number `near`;
    /// `None` if its length cannot be.
    pub(crate) fn peek(record: &[u8], near: u64) -> Option<Self> {
        let raw = RawRecord::read_from_prefix(record).ok()?.0;
        let bytes = u32::from(raw.bytes.get());
        let distance = raw.sequence.get().wrapping_sub(near as u16).cast_signed();
        (u64::from(bytes) >= RECORD_HEADER).then_some(Self {
            sequence: near.wrapping_add_signed(i64::from(distance)),
            bytes,
            more: raw.unfenced.get() & MORE != 0,
            unfenced: raw.unfenced.get() & !MORE,
            unapplied: raw.unapplied.get(),
        })
    }

    /// Whether the whole record is what was sealed with this head and this key.
    pub(crate) fn is_sound(&self, record: &[u8], key: u32) -> bool {
        match record.split_first_chunk::<4>() {
            Some(_) if is_planted(Bug::DamagedScmRecordBelieved) => true,
            Some((crc, rest)) => checksum_of(rest, self.sequence, key) == u32::from_le_bytes(*crc),
            None => false,
        }
    }
}

fn checksum_of(record: &[u8], sequence: u64, key: u32) -> u32 {
    crc32c_append(crc32c_append(key, &sequence.to_le_bytes()), record)
}

/// What the checksums of records begin with: records of another device or another session do not
/// check out.
pub(crate) fn record_key(salt: u64, session: u64) -> u32 {
    let session = if is_planted(Bug::ScmOldSessionAccepted) { 0 } else { session };
    crc32c_append(crc32c(&salt.to_le_bytes()), &session.to_le_bytes())
}

/// What tells structures of this device from those of others.
pub(crate) fn salt_of(uuid: &[u8; 16]) -> u64 {
    let (mut low, mut high) = ([0; 8], [0; 8]);
    low.copy_from_slice(&uuid[..8]);
    high.copy_from_slice(&uuid[8..]);
    u64::from_le_bytes(low) ^ u64::from_le_bytes(high).rotate_left(17)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_come_back_and_damage_is_seen() {
        let superblock = Superblock {
            generation: 7,
            uuid: [3; 16],
            features: FEATURE_SLOTS,
            length: 1 << 30,
            made_length: 1 << 29,
            chunk_bytes: 65536,
            closed: true,
            session: 9,
            tail: 1 << 20,
            tail_sequence: 5,
            next_id: 99,
            accepted: 17,
        };
        let mut bytes = superblock.encode();
        assert_eq!(Superblock::decode(&bytes), Ok(superblock));
        for bit in [8 * 8, 8 * 12, 8 * 127] {
            bytes[bit / 8] ^= 1;
            assert_eq!(Superblock::decode(&bytes), Err(Fault::Damaged));
            bytes[bit / 8] ^= 1;
        }
        assert_eq!(Superblock::decode(&[0; 128]), Err(Fault::Foreign));

        let head = SegmentHead { sequence: 3, first_record: 17, next: 1 << 17, session: 2, tail_sequence: 1 };
        let bytes = head.encode(42);
        assert_eq!(SegmentHead::decode(&bytes, 42), Some(head));
        assert_eq!(SegmentHead::decode(&bytes, 43), None);

        let mut framed = [0; 68];
        framed[16..26].copy_from_slice(b"some items");
        let sequence = (7 << 40) + 4;
        let head = RecordHead { sequence, bytes: 22, more: true, unfenced: 1, unapplied: 2 };
        head.seal(&mut framed, 1);
        let record = &mut framed[4..];
        for near in [sequence - 30_000, sequence, sequence + 30_000] {
            assert_eq!(RecordHead::peek(record, near), Some(head));
        }
        assert!(head.is_sound(&record[..22], 1) && !head.is_sound(&record[..22], 2));
        // A record of so long ago has the same number in its head, and another checksum.
        let other = RecordHead::peek(record, sequence + (1 << 16)).unwrap();
        assert!(other.sequence == sequence + (1 << 16) && !other.is_sound(&record[..22], 1));
        record[17] ^= 4;
        assert!(!head.is_sound(&record[..22], 1));
    }
}

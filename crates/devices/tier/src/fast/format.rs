//! What lies on the fast disk beside content and log: superblocks and snapshots of the map.
//!
//! ```text
//! block 0      1      ring_first      slot_first                       sections
//! [super A][super B] .. [log ring ..] [snapshot A ..][snapshot B ..] [section 0 ..][section 1 ..]
//! ```
//!
//! A superblock ends with the checksum of what is before it. A snapshot is a block with the
//! checksum of the entries behind it. Of two the one with the higher sequence counts, if it is
//! sound. Numbers are little-endian.

mod superblocks;

use super::extent::Scheme;
use crate::medium::bytes::{
    put_u16, put_u32, put_u64, sealed_body, take, take_array, take_u8, take_u16, take_u32, take_u64,
};
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::checksum::crc32c;
use onode_engine::Fault;
use onode_media::blockdev::SECTOR_BYTES;

/// What a superblock of a fast disk begins with.
pub const MAGIC: [u8; 8] = *b"ONODFAST";
/// What a snapshot begins with.
pub const SNAPSHOT_MAGIC: [u8; 8] = *b"ONODFMAP";
/// The format that this version writes and reads.
pub const VERSION: u32 = 1;
/// Most sections.
pub const MOST_SECTIONS: usize = 64;
/// The longest name of a section.
pub const NAME_BYTES: usize = 32;
/// Bytes of an entry of a snapshot.
pub const ENTRY_BYTES: u64 = 32;

/// How a disk is divided; all in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// The disk.
    pub blocks: u64,
    /// What writes are collected for.
    pub stripe: u64,
    /// Where the log ring begins.
    pub ring_first: u64,
    /// Its length.
    pub ring_blocks: u64,
    /// Where the snapshots begin.
    pub slot_first: u64,
    /// The length of each of the two.
    pub slot_blocks: u64,
    /// The sections, in the order of addresses.
    pub sections: Vec<SectionPlace>,
}

/// Where a section lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionPlace {
    /// Its name.
    pub name: String,
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u64,
    /// Blocks of an extent.
    pub extent_blocks: u32,
    /// How it is filled.
    pub scheme: Scheme,
}

impl SectionPlace {
    /// The block behind the last.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.blocks)
    }
}

impl Division {
    /// The first block behind the snapshots.
    pub const fn sections_first(&self) -> u64 {
        self.slot_first.saturating_add(self.slot_blocks.saturating_mul(2))
    }

    /// Whether all parts lie in order on a disk of `disk_blocks`.
    pub fn is_sound(&self, disk_blocks: u64) -> bool {
        let mut end = self.sections_first();
        let in_order = self.sections.iter().all(|section| {
            let fits = section.first >= end && section.end() <= self.blocks && section.blocks > 0;
            end = section.end();
            fits && section.extent_blocks.is_power_of_two() && section.extent_blocks <= 1 << 16
        });
        in_order
            && !self.sections.is_empty()
            && self.blocks <= disk_blocks
            && self.stripe.is_power_of_two()
            && self.stripe <= 1 << 18
            && self.ring_first >= 2
            && self.ring_blocks > 0
            && self.slot_blocks > 1
            && self.ring_first.checked_add(self.ring_blocks).is_some_and(|end| end <= self.slot_first)
            && self.sections_first() <= self.blocks
    }
}

/// The content of a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastSuperblock {
    /// The volume's number.
    pub volume: [u8; 16],
    /// The disk's own.
    pub own: [u8; 16],
    /// Superblocks written so far.
    pub sequence: u64,
    /// The session in which the disk joined last.
    pub session: u64,
    /// How it is divided.
    pub division: Division,
}

impl FastSuperblock {
    /// Its block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SECTOR_BYTES);
        out.extend_from_slice(&MAGIC);
        put_u32(&mut out, VERSION);
        put_u32(&mut out, self.division.sections.len() as u32);
        out.extend_from_slice(&self.volume);
        out.extend_from_slice(&self.own);
        let division = &self.division;
        for number in [
            self.sequence,
            self.session,
            division.blocks,
            division.stripe,
            division.ring_first,
            division.ring_blocks,
            division.slot_first,
            division.slot_blocks,
        ] {
            put_u64(&mut out, number);
        }
        for section in &division.sections {
            put_u64(&mut out, section.first);
            put_u64(&mut out, section.blocks);
            put_u32(&mut out, section.extent_blocks);
            out.push(section.scheme as u8);
            out.push(section.name.len() as u8);
            out.extend_from_slice(section.name.as_bytes());
        }
        out.resize(SECTOR_BYTES - 4, 0);
        let sum = crc32c(&out);
        put_u32(&mut out, sum);
        out
    }

    /// What `block` says of a disk of so many blocks.
    ///
    /// # Errors
    /// Why it is no superblock of this version.
    pub fn decode(block: &[u8], disk_blocks: u64) -> core::result::Result<Self, Fault> {
        let (body, version) = sealed_body(block, MAGIC)?;
        if version != VERSION {
            return Err(Fault::Newer(version));
        }
        Self::decode_body(body, disk_blocks).ok_or(Fault::Damaged)
    }

    /// What follows the version.
    fn decode_body(body: &[u8], disk_blocks: u64) -> Option<Self> {
        let input = &mut { body };
        let count = take_u32(input)? as usize;
        let (volume, own) = (take_array(input)?, take_array(input)?);
        let (sequence, session) = (take_u64(input)?, take_u64(input)?);
        let mut division = Division {
            blocks: take_u64(input)?,
            stripe: take_u64(input)?,
            ring_first: take_u64(input)?,
            ring_blocks: take_u64(input)?,
            slot_first: take_u64(input)?,
            slot_blocks: take_u64(input)?,
            sections: Vec::new(),
        };
        if count > MOST_SECTIONS {
            return None;
        }
        for _ in 0..count {
            division.sections.push(take_section(input)?);
        }
        division.is_sound(disk_blocks).then_some(Self { volume, own, sequence, session, division })
    }
}

fn take_section(input: &mut &[u8]) -> Option<SectionPlace> {
    let (first, blocks) = (take_u64(input)?, take_u64(input)?);
    let extent_blocks = take_u32(input)?;
    let scheme = Scheme::from_byte(take_u8(input)?)?;
    let length = take_u8(input)?;
    let name = String::from(core::str::from_utf8(take(input, usize::from(length))?).ok()?);
    Some(SectionPlace { name, first, blocks, extent_blocks, scheme })
}

/// The first block of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The disk's own number: what an earlier user of the disk left is not taken for a snapshot.
    pub own: [u8; 16],
    /// Snapshots written so far.
    pub sequence: u64,
    /// Entries behind it.
    pub entries: u64,
    /// Their checksum.
    pub crc: u32,
}

impl SnapshotHead {
    /// Its block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SECTOR_BYTES);
        out.extend_from_slice(&SNAPSHOT_MAGIC);
        put_u32(&mut out, VERSION);
        put_u32(&mut out, self.crc);
        out.extend_from_slice(&self.own);
        put_u64(&mut out, self.sequence);
        put_u64(&mut out, self.entries);
        let sum = crc32c(&out);
        put_u32(&mut out, sum);
        out.resize(SECTOR_BYTES, 0);
        out
    }

    /// What `block` says; `None` if it is none.
    pub fn decode(block: &[u8]) -> Option<Self> {
        let (body, mut rest) = block.split_at_checked(48)?;
        if crc32c(body) != take_u32(&mut rest)? {
            return None;
        }
        let input = &mut body.strip_prefix(&SNAPSHOT_MAGIC)?;
        if take_u32(input)? != VERSION {
            return None;
        }
        let crc = take_u32(input)?;
        Some(Self { own: take_array(input)?, sequence: take_u64(input)?, entries: take_u64(input)?, crc })
    }
}

/// One entry of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// The first block on the big disk, below 2^48.
    pub block: u64,
    /// When it was born.
    pub born: u64,
    /// The first block here, below 2^40.
    pub fast: u64,
    /// How many.
    pub blocks: u16,
    /// Whether it stays until it is given up on purpose.
    pub pinned: bool,
    /// Whether somebody chose its section.
    pub placed: bool,
    /// How often it was asked for of late.
    pub heat: u8,
    /// The object.
    pub object: u64,
}

impl MapEntry {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.block.to_le_bytes().get(..6).unwrap_or_default());
        put_u16(out, self.blocks);
        put_u64(out, self.born);
        out.extend_from_slice(self.fast.to_le_bytes().get(..5).unwrap_or_default());
        out.extend_from_slice(&[u8::from(self.pinned) | u8::from(self.placed) << 1, self.heat, 0]);
        put_u64(out, self.object);
    }

    /// Takes one off the front.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let block = take_array::<6>(input)?;
        let blocks = take_u16(input)?;
        let born = take_u64(input)?;
        let fast = take_array::<5>(input)?;
        let [flags, heat, _] = take_array::<3>(input)?;
        let object = take_u64(input)?;
        let wide = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (pinned, placed) = (flags & 1 != 0, flags & 2 != 0);
        Some(Self { block: wide(&block), born, fast: wide(&fast), blocks, pinned, placed, heat, object })
    }
}

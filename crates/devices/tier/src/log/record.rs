//! A record of the log: the transactions of one group, chained to the record before.
//!
//! What it keeps true: a header has a checksum of its own, which begins with the number of the
//! volume. So what a header says can be believed although its payload is torn, and content that
//! looks like a header, of another volume say, is none. Records of format 1 have only the checksum
//! of the whole record.

use crate::medium::bytes::{put_u32, put_u64, take_u32, take_u64};
use crate::medium::layout::{BLOCK, BLOCK_BYTES};
use crate::medium::superblock::SEALED_HEADERS;
use alloc::vec::Vec;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_base::planted::{Bug, is_planted};

const MAGIC: u32 = u32::from_le_bytes(*b"TLOG");
/// Bytes before the payload.
pub const HEADER_BYTES: usize = 56;
/// What the checksum of the header covers: all but the checksum of the record, and itself.
const SEALED: core::ops::Range<usize> = 8..HEADER_BYTES - 4;
/// What the checksum of the record has in the place of that of the header. With the right one there
/// it would be the same for every header: a checksum behind what it covers takes that out again.
const NO_SEAL: [u8; 4] = [0; 4];

/// How the headers of a log are checked by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seal(Option<u32>);

impl Seal {
    /// Headers are not checked by themselves.
    pub const NONE: Self = Self(None);

    /// In the log of the volume of this number, whose superblock has this version.
    #[must_use]
    pub fn of(volume: &[u8; 16], version: u32) -> Self {
        Self((version >= SEALED_HEADERS).then(|| crc32c(volume)))
    }

    /// Whether a header can be believed without the rest of its record.
    #[must_use]
    pub const fn is_there(self) -> bool {
        self.0.is_some()
    }

    /// The checksum of the header at the front of a block; 0 if it has none.
    fn sum(self, block: &[u8]) -> u32 {
        self.0.map_or(0, |seed| crc32c_append(seed, block.get(SEALED).unwrap_or_default()))
    }
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Its number: one more than that of the record before.
    pub sequence: u64,
    /// The session that wrote it.
    pub session: u64,
    /// The last record known to be durable on the fast disk when this one was made.
    pub fast_durable: u64,
    /// The last record known to be durable on the big disk when this one was made.
    pub big_durable: u64,
    /// The checksum of the record before.
    pub chain: u32,
    /// Bytes of payload.
    pub length: u32,
    /// Transactions in it.
    pub transactions: u32,
    /// Its own checksum.
    pub crc: u32,
}

/// Blocks that a record with so much payload takes.
#[must_use]
pub const fn blocks_of(payload: usize) -> u64 {
    (HEADER_BYTES as u64 + payload as u64).div_ceil(BLOCK)
}

/// The record, padded to whole blocks, and its checksum.
#[must_use]
pub fn encode(header: &Header, payload: &[u8], seal: Seal) -> (Vec<u8>, u32) {
    let mut out = Vec::with_capacity(blocks_of(payload.len()) as usize * BLOCK_BYTES);
    put_u32(&mut out, MAGIC);
    put_u32(&mut out, 0);
    for number in [header.sequence, header.session, header.fast_durable, header.big_durable] {
        put_u64(&mut out, number);
    }
    for number in [header.chain, payload.len() as u32, header.transactions] {
        put_u32(&mut out, number);
    }
    let sum = sum_of_header(&out);
    let own = seal.sum(&out);
    put_u32(&mut out, own);
    out.extend_from_slice(payload);
    let sum = crc32c_append(sum, payload);
    if let Some(field) = out.get_mut(4..8) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
    out.resize(blocks_of(payload.len()) as usize * BLOCK_BYTES, 0);
    (out, sum)
}

/// The header at the front of a block; `None` if none is there, or one with another seal. The
/// checksum of the record is not looked at yet.
#[must_use]
pub fn header(block: &[u8], seal: Seal) -> Option<Header> {
    let input = &mut { block };
    if take_u32(input)? != MAGIC {
        return None;
    }
    let crc = take_u32(input)?;
    let (sequence, session) = (take_u64(input)?, take_u64(input)?);
    let (fast_durable, big_durable) = (take_u64(input)?, take_u64(input)?);
    let (chain, length, transactions) = (take_u32(input)?, take_u32(input)?, take_u32(input)?);
    if seal.is_there() && take_u32(input)? != seal.sum(block) {
        return None;
    }
    Some(Header { sequence, session, fast_durable, big_durable, chain, length, transactions, crc })
}

/// Blocks of a record that are looked at together.
const PIECE_BLOCKS: u64 = 64;

/// Whether the record that begins with `block` has its checksum. `read` reads more blocks of it,
/// counted from its first; it is never in memory as a whole.
pub fn is_sound(header: &Header, block: &[u8], read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> bool {
    let end = HEADER_BYTES + header.length as usize;
    let mut sum = sum_of_header(block);
    sum = crc32c_append(sum, block.get(HEADER_BYTES..end.min(BLOCK_BYTES)).unwrap_or_default());
    let blocks = blocks_of(header.length as usize);
    let (mut at, mut piece) = (1, Vec::new());
    while at < blocks {
        piece.resize(PIECE_BLOCKS.min(blocks - at) as usize * BLOCK_BYTES, 0);
        if !read(at, &mut piece) {
            return false;
        }
        let covered = (end - at as usize * BLOCK_BYTES).min(piece.len());
        sum = crc32c_append(sum, piece.get(..covered).unwrap_or_default());
        at += PIECE_BLOCKS;
    }
    sum == header.crc || is_planted(Bug::DamagedTierRecordBelieved)
}

/// The payload of a whole record; `None` if the checksum is wrong.
#[must_use]
pub fn payload<'a>(header: &Header, record: &'a [u8]) -> Option<&'a [u8]> {
    let payload = record.get(HEADER_BYTES..HEADER_BYTES + header.length as usize)?;
    let sum = crc32c_append(sum_of_header(record), payload);
    (sum == header.crc || is_planted(Bug::DamagedTierRecordBelieved)).then_some(payload)
}

/// The part of the checksum of a record that its header has.
fn sum_of_header(block: &[u8]) -> u32 {
    crc32c_append(crc32c(block.get(SEALED).unwrap_or_default()), &NO_SEAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_says_is_in_the_checksum_of_its_record() {
        for seal in [Seal::NONE, Seal::of(&[7; 16], SEALED_HEADERS)] {
            let sum = |header: Header| encode(&header, b"the same payload", seal).1;
            let first = Header { sequence: 5, chain: 1, ..Header::default() };
            assert_ne!(sum(first), sum(Header { chain: 2, ..first }), "{seal:?}");
            assert_ne!(sum(first), sum(Header { sequence: 6, ..first }), "{seal:?}");
            assert_eq!(sum(first), encode(&first, b"the same payload", Seal::NONE).1, "format 1 has the same");
            let (bytes, crc) = encode(&first, b"the same payload", seal);
            let header = header(&bytes, seal).expect("it has its seal");
            assert_eq!((header.crc, payload(&header, &bytes)), (crc, Some(&b"the same payload"[..])));
            assert!(is_sound(&header, &bytes, &mut |_, _| false));
        }
    }
}

//! The bucket: a sorted run of records as bytes that are checked and decoded each bucket on its
//! own.
//!
//! ```text
//! 0   checksum     u32   CRC-32C of everything behind it
//! 4   length       u16   bytes of the bucket, this header included
//! 6   coder        u8    how the rest is coded
//! 7   records      u8    number of records less one
//! 8   generation   u48   the caller's; tells which of two buckets is the newer
//! 14  first object, first page    LEB128 each
//!     page bits (7 bits), page shift (5 bits), then what the coder wrote
//! ```
//!
//! `docs/format/bpram.md` has all of it.

use crate::bits::{BitReader, BitWriter};
use crate::coding::{Coded, Source};
use crate::rans;
use crate::record::{Key, Record};
use crate::tables::{RECORD_SETS, SYMBOLS};
use crate::tokens::{Assembly, BUCKET_RUNS_MAX, CLASSES, Token, TokenSource, best_page_shift, tokens_of};
use alloc::vec::Vec;
use core::fmt;
use onode_base::checksum::crc32c;
use onode_base::varint;

/// The most bytes of a bucket.
pub const BUCKET_BYTES_MAX: usize = 512;
/// The most records of a bucket.
pub const BUCKET_RECORDS_MAX: usize = 256;

const FIXED_BYTES: usize = 14;
const GENERATION_BITS: u32 = 48;
const PAGE_BITS_BITS: u32 = 7;
const PAGE_SHIFT_BITS: u32 = 5;
/// Both.
const FIXED_BITS: u32 = PAGE_BITS_BITS + PAGE_SHIFT_BITS;

/// Why records are not one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// They do not fit. Fewer records will, or a record that was [cut](Record::cut).
    TooLarge {
        /// Bytes they would take; `usize::MAX` if there are too many records or runs.
        bytes: usize,
    },
    /// There are none, they are not in order, or a record is not [sound](Record::is_sound) or
    /// reaches into the next.
    Unsound,
    /// The generation has more than 48 bits.
    Generation,
}

/// Why bytes are not a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Shorter than it says, or than a header.
    Truncated,
    /// The checksum is another.
    Checksum,
    /// The checksum is right and the content is impossible, or of a newer coder.
    Content,
}

/// What a bucket says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketHeader {
    /// Its bytes.
    pub bytes: usize,
    /// Number of records.
    pub records: usize,
    /// The number it was encoded with.
    pub generation: u64,
    /// Key of the first record. The last one is below the first of the next bucket.
    pub first: Key,
    coder: u8,
    body: usize,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => write!(f, "the records take {bytes} bytes, a bucket has {BUCKET_BYTES_MAX}"),
            Self::Unsound => f.write_str("the records are not in order, or one of them makes no sense"),
            Self::Generation => write!(f, "a generation has {GENERATION_BITS} bits at most"),
        }
    }
}

impl core::error::Error for EncodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the bucket is cut short",
            Self::Checksum => "the checksum of the bucket is wrong",
            Self::Content => "the content of the bucket makes no sense",
        })
    }
}

impl core::error::Error for DecodeError {}

/// Records on their way to bytes.
struct Prepared {
    first: Key,
    page_shift: u32,
    page_bits: u32,
    tokens: Vec<Token>,
    body: Coded,
    bytes: usize,
}

fn prepare(records: &[Record]) -> Result<Prepared, EncodeError> {
    let first = records.first().ok_or(EncodeError::Unsound)?.key();
    let ordered = |pair: &[Record]| match pair {
        [a, b] => a.key() < b.key() && (a.object != b.object || a.runs.last().is_none_or(|run| run.end() <= b.page)),
        _ => true,
    };
    if !records.windows(2).all(ordered) || !records.iter().all(Record::is_sound) {
        return Err(EncodeError::Unsound);
    }
    let runs: usize = records.iter().map(|record| record.runs.len()).sum();
    if records.len() > BUCKET_RECORDS_MAX || runs > BUCKET_RUNS_MAX {
        return Err(EncodeError::TooLarge { bytes: usize::MAX });
    }
    let homes = records.iter().filter_map(|record| record.head.as_ref()?.home);
    let pages = records.iter().flat_map(|record| &record.runs).map(|run| run.end_at() - 1).chain(homes);
    let page_bits = 64 - pages.max().unwrap_or(0).leading_zeros();
    let page_shift = best_page_shift(records);
    let tokens = tokens_of(records, first, page_shift, page_bits);
    let mut key = Vec::with_capacity(20);
    put_key(&mut key, first);
    let (body, body_bytes) = Coded::shorter(&tokens, FIXED_BITS, RECORD_SETS);
    let bytes = FIXED_BYTES + key.len() + body_bytes;
    Ok(Prepared { first, page_shift, page_bits, tokens, body, bytes })
}

fn put_key(out: &mut Vec<u8>, key: Key) {
    varint::put(out, key.object);
    varint::put(out, key.page);
}

/// The bytes that [`encode_bucket`] would return, which may be more than a bucket can have.
///
/// # Errors
/// [`EncodeError::Unsound`]; [`EncodeError::TooLarge`] for too many records or runs.
pub fn bucket_bytes(records: &[Record]) -> Result<usize, EncodeError> {
    prepare(records).map(|prepared| prepared.bytes)
}

/// `records` as one bucket.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_bucket(records: &[Record], generation: u64) -> Result<Vec<u8>, EncodeError> {
    match prepare(records)?.encode(records.len(), generation, BUCKET_BYTES_MAX)? {
        Encoded::Bucket(bucket) => Ok(bucket),
        Encoded::TooLong(bytes) => Err(EncodeError::TooLarge { bytes }),
    }
}

/// The bucket of these records if it takes at most `bytes_max`; else the bytes that it would take.
///
/// # Errors
/// See [`EncodeError`].
pub fn encode_within(records: &[Record], generation: u64, bytes_max: usize) -> Result<Encoded, EncodeError> {
    prepare(records)?.encode(records.len(), generation, bytes_max)
}

/// What became of records that were to fit a limit.
pub enum Encoded {
    /// They fit: the bucket.
    Bucket(Vec<u8>),
    /// They would take so many bytes.
    TooLong(usize),
}

impl Prepared {
    /// The bucket, or what it would have if that is more than `limit`.
    fn encode(self, records: usize, generation: u64, limit: usize) -> Result<Encoded, EncodeError> {
        if generation >> GENERATION_BITS != 0 {
            return Err(EncodeError::Generation);
        }
        let Self { first, page_shift, page_bits, tokens, body, bytes } = self;
        if bytes > limit {
            return Ok(Encoded::TooLong(bytes));
        }
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(bytes as u16).to_le_bytes());
        out.push(body.coder());
        out.push((records - 1) as u8);
        out.extend_from_slice(&generation.to_le_bytes()[..6]);
        put_key(&mut out, first);
        let mut bits = BitWriter::default();
        bits.put(u64::from(page_bits), PAGE_BITS_BITS);
        bits.put(u64::from(page_shift), PAGE_SHIFT_BITS);
        out.extend_from_slice(&body.bytes(&tokens, bits));
        debug_assert_eq!(out.len(), bytes);
        let checksum = crc32c(&out[4..]).to_le_bytes();
        out[..4].copy_from_slice(&checksum);
        Ok(Encoded::Bucket(out))
    }
}

/// Checks the bucket at the front of `bytes`, which may go on behind it, and reads its header.
///
/// # Errors
/// See [`DecodeError`].
pub fn peek_bucket(bytes: &[u8]) -> Result<BucketHeader, DecodeError> {
    let (fixed, _) = bytes.split_first_chunk::<FIXED_BYTES>().ok_or(DecodeError::Truncated)?;
    let &[c0, c1, c2, c3, l0, l1, coder, records, g0, g1, g2, g3, g4, g5] = fixed;
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    if !(FIXED_BYTES..=BUCKET_BYTES_MAX).contains(&length) {
        return Err(DecodeError::Truncated);
    }
    let bucket = bytes.get(..length).ok_or(DecodeError::Truncated)?;
    if bucket.get(4..).map(crc32c) != Some(u32::from_le_bytes([c0, c1, c2, c3])) {
        return Err(DecodeError::Checksum);
    }
    let mut rest = bucket.get(FIXED_BYTES..).ok_or(DecodeError::Truncated)?;
    let mut number = || varint::take(&mut rest).ok_or(DecodeError::Content);
    let first = Key { object: number()?, page: number()? };
    Ok(BucketHeader {
        bytes: length,
        records: usize::from(records) + 1,
        generation: u64::from_le_bytes([g0, g1, g2, g3, g4, g5, 0, 0]),
        first,
        coder,
        body: length - rest.len(),
    })
}

/// Decodes records up to the end or until `stop` says so.
fn decode(bytes: &[u8], stop: impl FnMut(Record) -> bool) -> Result<(), DecodeError> {
    let header = peek_bucket(bytes)?;
    let body = bytes.get(header.body..header.bytes).ok_or(DecodeError::Truncated)?;
    let mut input = BitReader::new(body);
    let mut number = |bits| input.take(bits).map(|value| value as u32).ok_or(DecodeError::Content);
    let (page_bits, page_shift) = (number(PAGE_BITS_BITS)?, number(PAGE_SHIFT_BITS)?);
    if page_bits > 64 {
        return Err(DecodeError::Content);
    }
    let assembly = Assembly::new(header.first, page_shift, page_bits);
    let decoded = match Source::new(header.coder, body, input, FIXED_BITS, RECORD_SETS) {
        Some(Source::Golomb(source)) => take_records(&header, source, assembly, stop),
        Some(Source::Rans(source)) => take_records(&header, source, assembly, stop),
        None => None,
    };
    decoded.ok_or(DecodeError::Content)
}

/// Takes the records that `header` announces; `None` if what `source` has makes no sense.
fn take_records(
    header: &BucketHeader,
    mut source: impl TokenSource,
    mut assembly: Assembly,
    mut stop: impl FnMut(Record) -> bool,
) -> Option<()> {
    let mut last: Option<(Key, u64)> = None;
    for index in 0..header.records {
        let record = assembly.take(&mut source)?;
        let key = record.key();
        let in_order = match last {
            None => key == header.first,
            Some((last, end)) => last < key && (last.object != key.object || end <= key.page),
        };
        if !in_order || (index + 1 == header.records && !source.is_finished()) {
            return None;
        }
        last = Some((key, record.runs.last().map_or(record.page, |run| run.end())));
        if stop(record) {
            break;
        }
    }
    Some(())
}

/// The records of the bucket at the front of `bytes`.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode_bucket(bytes: &[u8]) -> Result<Vec<Record>, DecodeError> {
    let mut records = Vec::new();
    decode(bytes, |record| {
        records.push(record);
        false
    })?;
    Ok(records)
}

/// The record in which `key.page` of `key.object` has its place: the last one of the object that
/// begins there or before. Decodes no further than it must.
///
/// # Errors
/// See [`DecodeError`].
pub fn find_in_bucket(bytes: &[u8], key: Key) -> Result<Option<Record>, DecodeError> {
    let mut found = None;
    decode(bytes, |record| {
        let beyond = record.key() > key;
        if !beyond && record.object == key.object {
            found = Some(record);
        }
        beyond
    })?;
    Ok(found)
}

/// Counts for the static tables: adds how often each symbol of each class occurs in the bucket of
/// `records`.
///
/// # Errors
/// As [`encode_bucket`].
pub fn count_symbols(records: &[Record], counts: &mut SymbolCounts) -> Result<(), EncodeError> {
    let Prepared { tokens, .. } = prepare(records)?;
    rans::count(&tokens, counts);
    Ok(())
}

/// How often each symbol of each class of tokens occurs.
pub type SymbolCounts = [[u64; SYMBOLS]; CLASSES];

//! Records of the journal: their bytes, and the frames in which they lie at the ends of pages.
//!
//! A record is cut into frames so that it can go on in the next page; a page holds the frames of
//! any number of records. Content never stands in a record: a write is logged as the places to
//! which its bytes went.

mod changes;

pub use changes::{Changes, encoded, encoded_mutation};

use crate::log::patch::Patch;
use crate::medium::errors::damaged;
use crate::medium::layout::PARITY_PAGES_MAX;
use crate::policy::Stream;
use alloc::format;
use alloc::vec::Vec;
use onode_base::varint;
use onode_object::wire::mutation;
use onode_object::{AttributeKey, Mutation, ObjectId, Result};

/// A run of bytes on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Payload address.
    pub location: u64,
    /// Length in bytes.
    pub length: u32,
}

/// Runs join up to this length, so that one damaged reference or one move stays small.
pub const EXTENT_BYTES_MAX: u32 = 1 << 24;

/// One change as the journal knows it: the unit of `apply`, live and in replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A mutation that carries no content.
    Mutation(Mutation),
    /// Content of `object` from `offset` on now lies in `pieces`.
    Place {
        /// The object.
        object: ObjectId,
        /// First byte.
        offset: u64,
        /// Where the bytes are, in order.
        pieces: Vec<Piece>,
    },
    /// A part of an attribute of `object` changed.
    Patch {
        /// The object.
        object: ObjectId,
        /// The attribute.
        key: AttributeKey,
        /// What of it.
        patch: Patch,
    },
}

/// A record of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A transaction.
    Commit {
        /// Its number, ascending by one.
        transaction: u64,
        /// What it does.
        changes: Vec<Change>,
    },
    /// A segment was opened for content or access times; what later records place in it carries
    /// this sequence number.
    Opened {
        /// The segment.
        segment: u32,
        /// Its sequence number.
        sequence: u32,
        /// Times it has been erased.
        erases: u32,
        /// What fills it: access times, content of an unusual parity, or any other content, which
        /// is read as that of the first class.
        stream: Stream,
    },
    /// Begins every journal segment: where the journal goes on after it.
    Chain {
        /// The next journal segment.
        segment: u32,
        /// Its sequence number.
        sequence: u32,
    },
    /// A copy of a page of content that was not full yet when the journal page with it was
    /// programmed. It is never cut into frames.
    Waiting {
        /// Payload address at which the page begins.
        location: u64,
        /// What it holds so far.
        bytes: Vec<u8>,
    },
    /// Every journal page before that at `before`, and all content that they place, had been
    /// flushed when the page with this record was programmed: pages after those were programmed
    /// while the flush went on, so no page could say it of all before itself. To programs that do
    /// not know it, it is a copy of nothing. It is never cut into frames.
    Flushed {
        /// Payload address of the first journal page that the flush did not cover.
        before: u64,
    },
}

const COMMIT: u8 = 1;
const OPENED: u8 = 2;
const CHAIN: u8 = 3;
const OPENED_ATIME: u8 = 4;
const WAITING: u8 = 5;
const OPENED_WITH_PARITY: u8 = 6;
const CHANGE_MUTATION: u8 = 0;
const CHANGE_PLACE: u8 = 1;
const CHANGE_PATCH: u8 = 2;

impl Record {
    /// The record as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Commit { transaction, changes } => {
                let mut all = Changes::new();
                changes.iter().for_each(|change| all.push(change));
                return all.record(*transaction);
            }
            Self::Opened { segment, sequence, erases, stream } => {
                match stream.wished_parity() {
                    Some(parity) => out.extend([OPENED_WITH_PARITY, parity]),
                    None => out.push(if *stream == Stream::Atime { OPENED_ATIME } else { OPENED }),
                }
                for value in [segment, sequence, erases] {
                    varint::put(&mut out, u64::from(*value));
                }
            }
            Self::Chain { segment, sequence } => {
                out.push(CHAIN);
                varint::put(&mut out, u64::from(*segment));
                varint::put(&mut out, u64::from(*sequence));
            }
            Self::Waiting { location, bytes } => {
                out.push(WAITING);
                varint::put(&mut out, *location);
                varint::put_bytes(&mut out, bytes);
            }
            Self::Flushed { before } => {
                out.push(WAITING);
                varint::put(&mut out, *before);
                varint::put_bytes(&mut out, &[]);
            }
        }
        out
    }

    /// The record behind `bytes`.
    ///
    /// # Errors
    /// `Corrupt` if they are none; the pages were verified, so this means a wrong writer.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        take_record(bytes).ok_or_else(|| damaged(format!("a journal record of {} bytes makes no sense", bytes.len())))
    }
}

fn put_mutation(out: &mut Vec<u8>, one: &Mutation) {
    out.push(CHANGE_MUTATION);
    mutation::put(out, one);
}

fn put_change(out: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Mutation(one) => put_mutation(out, one),
        Change::Place { object, offset, pieces } => {
            out.push(CHANGE_PLACE);
            varint::put(out, object.0);
            varint::put(out, *offset);
            varint::put(out, pieces.len() as u64);
            for piece in pieces {
                varint::put(out, piece.location);
                varint::put(out, u64::from(piece.length));
            }
        }
        Change::Patch { object, key, patch } => {
            out.push(CHANGE_PATCH);
            varint::put(out, object.0);
            mutation::put_key(out, *key);
            varint::put(out, u64::from(patch.prefix));
            varint::put(out, u64::from(patch.suffix));
            varint::put_bytes(out, &patch.middle);
        }
    }
}

fn take_u32(input: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(input)?).ok()
}

fn take_count(input: &mut &[u8]) -> Option<usize> {
    usize::try_from(varint::take(input)?).ok().filter(|&count| count <= input.len())
}

fn take_opened(input: &mut &[u8], stream: Stream) -> Option<Record> {
    Some(Record::Opened { segment: take_u32(input)?, sequence: take_u32(input)?, erases: take_u32(input)?, stream })
}

fn take_record(mut bytes: &[u8]) -> Option<Record> {
    let (&kind, rest) = bytes.split_first()?;
    bytes = rest;
    let input = &mut bytes;
    let record = match kind {
        COMMIT => {
            let transaction = varint::take(input)?;
            let count = take_count(input)?;
            let mut changes = Vec::with_capacity(count);
            for _ in 0..count {
                changes.push(take_change(input)?);
            }
            Record::Commit { transaction, changes }
        }
        OPENED => take_opened(input, Stream::Data)?,
        OPENED_ATIME => take_opened(input, Stream::Atime)?,
        OPENED_WITH_PARITY => {
            let (&parity, rest) = input.split_first().filter(|(parity, _)| u32::from(**parity) <= PARITY_PAGES_MAX)?;
            *input = rest;
            take_opened(input, Stream::of_parity(parity))?
        }
        CHAIN => Record::Chain { segment: take_u32(input)?, sequence: take_u32(input)? },
        WAITING => match (varint::take(input)?, varint::take_bytes(input)?) {
            (before, []) => Record::Flushed { before },
            (location, bytes) => Record::Waiting { location, bytes: bytes.to_vec() },
        },
        _ => return None,
    };
    input.is_empty().then_some(record)
}

fn take_change(input: &mut &[u8]) -> Option<Change> {
    let (&tag, rest) = input.split_first()?;
    *input = rest;
    match tag {
        CHANGE_MUTATION => mutation::take(input).map(Change::Mutation),
        CHANGE_PLACE => {
            let object = ObjectId(varint::take(input)?);
            let offset = varint::take(input)?;
            let count = take_count(input)?;
            let mut pieces = Vec::with_capacity(count);
            let mut end = offset;
            for _ in 0..count {
                let piece = Piece { location: varint::take(input)?, length: take_u32(input)? };
                end = end.checked_add(u64::from(piece.length)).filter(|&end| end <= i64::MAX as u64)?;
                pieces.push(piece);
            }
            Some(Change::Place { object, offset, pieces })
        }
        CHANGE_PATCH => {
            let object = ObjectId(varint::take(input)?);
            let key = mutation::take_key(input)?;
            let (prefix, suffix) = (take_u32(input)?, take_u32(input)?);
            let patch = Patch { prefix, suffix, middle: varint::take_bytes(input)?.to_vec() };
            Some(Change::Patch { object, key, patch })
        }
        _ => None,
    }
}

/// Bytes before the content of a frame: flags, length.
pub const FRAME_HEADER_BYTES: usize = 3;
const FIRST: u8 = 1;
const LAST: u8 = 2;

/// Appends as much of `rest` as fits `room` bytes as one frame. `first` says whether `rest` begins
/// a record. Returns how many bytes it took, `None` if not even one fits.
pub fn put_frame(out: &mut Vec<u8>, rest: &[u8], first: bool, room: usize) -> Option<usize> {
    let space = room.checked_sub(FRAME_HEADER_BYTES).filter(|&space| space > 0)?;
    let taken = rest.len().min(space).min(usize::from(u16::MAX));
    let last = if taken == rest.len() { LAST } else { 0 };
    out.push(last | if first { FIRST } else { 0 });
    out.extend_from_slice(&(taken as u16).to_le_bytes());
    out.extend_from_slice(&rest[..taken]);
    Some(taken)
}

/// The record at the front of a page's frames, if it is whole there.
pub fn first_record(frames: &[u8]) -> Option<Record> {
    let (&[flags, low, high], rest) = frames.split_first_chunk::<FRAME_HEADER_BYTES>()?;
    let content = rest.get(..usize::from(u16::from_le_bytes([low, high])))?;
    if flags == FIRST | LAST { take_record(content) } else { None }
}

/// What a page with these frames says to have been flushed: all journal pages before this payload
/// address. Only records that are whole in the page are looked at.
pub fn flushed_before(mut frames: &[u8]) -> Option<u64> {
    while let Some((&[flags, low, high], rest)) = frames.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let (content, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        if flags == FIRST | LAST
            && let Some(Record::Flushed { before }) = take_record(content)
        {
            return Some(before);
        }
        frames = rest;
    }
    None
}

/// Puts the frames of page after page together to records.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    partial: Option<Vec<u8>>,
}

impl Assembler {
    /// Takes the record bytes of the next page and hands every record that they complete to
    /// `complete`.
    ///
    /// # Errors
    /// `Corrupt` if frames do not fit together, and what `complete` returns.
    pub fn page(&mut self, mut bytes: &[u8], complete: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        while !bytes.is_empty() {
            let Some((&[flags, low, high], rest)) = bytes.split_first_chunk::<3>() else {
                return Err(damaged("a journal frame is cut short"));
            };
            let length = usize::from(u16::from_le_bytes([low, high]));
            if length > rest.len() || flags > (FIRST | LAST) {
                return Err(damaged("a journal frame is longer than its page"));
            }
            let (content, rest) = rest.split_at(length);
            bytes = rest;
            if self.partial.is_some() && flags & FIRST != 0 {
                // A record that goes on in a new segment has the one that names the segment after
                // that between its frames.
                if flags & LAST == 0 {
                    return Err(damaged("a journal record begins inside another"));
                }
                complete(Record::decode(content)?)?;
                continue;
            }
            if flags & FIRST != 0 {
                self.partial = Some(Vec::new());
            }
            let Some(partial) = &mut self.partial else {
                return Err(damaged("a journal frame continues a record that never began"));
            };
            partial.extend_from_slice(content);
            if flags & LAST != 0 {
                let whole = self.partial.take().unwrap_or_default();
                complete(Record::decode(&whole)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

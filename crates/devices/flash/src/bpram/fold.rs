//! Folds: what changed goes to new places, then one line makes it count.

use super::entries::{self, Entries};
use super::format::{BUCKET_BYTES_MAX, BlobHeader, BlobKind, BodyHeader, SLOTS, Span, Stored, seal_anchor, seal_blob};
use super::{Bpram, Bucket, Piece};
use crate::errors::from_media;
use crate::segments::SegmentTable;
use crate::tree::Key;
use alloc::sync::Arc;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_object::{Error, Result};
use zerocopy::IntoBytes;

/// Bytes of a bucket's entries.
const CONTENT_BYTES_MAX: usize = BUCKET_BYTES_MAX - size_of::<BlobHeader>();
/// A changed bucket with less is joined with the next one,
const JOINED_BELOW: usize = CONTENT_BYTES_MAX * 3 / 8;
/// if both together have no more than this.
const JOINED_MAX: usize = CONTENT_BYTES_MAX * 3 / 4;

/// A bucket of fewer entries is not divided further.
const PARTS_MIN: usize = 4;

/// Bytes that a blob takes beside its content at most, to the end of a granule.
const BLOB_SLACK: usize = 48;
/// Bytes for the places that a fold gives up, and for some marks.
const RESERVE_SLACK: u64 = 1024;

/// What an anchor says beside the buckets.
pub struct Moment {
    /// The volume.
    pub uuid: [u8; 16],
    /// The newest superblock.
    pub superblock: Vec<u8>,
    /// Nothing follows it.
    pub closed: bool,
}

impl Bpram {
    /// Writes everything that changed, as it belongs to the checkpoint of `moment`.
    ///
    /// # Errors
    /// `NoSpace` if the memory has no room even for less than everything, and its own. What counts then is not known.
    pub fn fold(&mut self, moment: &Moment, table: &SegmentTable) -> Result<()> {
        self.tidy();
        let mut given_up = core::mem::take(&mut self.given_up);
        let mut pieces = Vec::new();
        for (number, of) in table.pieces().iter().enumerate() {
            let known = self.pieces.get(number).copied().flatten();
            if known.is_none_or(|piece| piece.of != *of) {
                given_up.extend(known.map(|piece| piece.at));
                pieces.push((number, *of, table.encode_piece(number)));
            }
        }
        // Twice, because the new ones are written while the old ones count.
        let written: usize = pieces.iter().map(|(.., bytes)| bytes.len() + BLOB_SLACK).sum();
        self.heap.reserve(2 * (self.table_bytes().max(written as u64) + self.body_bytes()) + RESERVE_SLACK);
        for (number, of, bytes) in pieces {
            let at = self.put(BlobKind::Piece, number as u32, &bytes).ok_or_else(too_small)?;
            if self.pieces.len() <= number {
                self.pieces.resize(number + 1, None);
            }
            self.pieces[number] = Some(Piece { at, of });
        }
        for (first, entries) in core::mem::take(&mut self.changed) {
            given_up.extend(self.bucket(&first).at);
            for (first, entries) in divided(first, Arc::unwrap_or_clone(entries)) {
                self.put_bucket(first, entries);
            }
        }
        let unmarked: Vec<Key> =
            self.buckets.iter().filter(|(_, one)| one.elsewhere && one.at.is_none()).map(|(first, _)| *first).collect();
        for first in unmarked {
            let mut bytes = Vec::new();
            entries::put_key(&mut bytes, &first);
            let at = self.put(BlobKind::Elsewhere, 0, &bytes).ok_or_else(too_small)?;
            self.buckets.insert(first, Bucket { at: Some(at), elsewhere: true });
        }
        self.anchor(moment, &given_up)
    }

    /// Writes an anchor for `moment` with the buckets as they were.
    ///
    /// # Errors
    /// As [`fold`](Self::fold).
    pub fn repeat(&mut self, moment: &Moment) -> Result<()> {
        self.anchor(moment, &[])
    }

    /// Drops changed buckets without entries and joins those with few.
    fn tidy(&mut self) {
        let firsts: Vec<Key> = self.changed.keys().copied().collect();
        for first in firsts {
            let Some(entries) = self.changed.get(&first).cloned() else { continue };
            if entries.len() == 0 && first != Key::MIN {
                self.drop_bucket(&first);
                continue;
            }
            let length = entries::encode(&first, &entries).len();
            let next = self.after(&first).filter(|next| length < JOINED_BELOW && !self.bucket(next).elsewhere);
            let Some(next) = next else { continue };
            let Some(right) = self.run(&next).0 else { continue };
            let mut joined = (*entries).clone();
            joined.append((*right).clone());
            if entries::encode(&first, &joined).len() <= JOINED_MAX {
                self.drop_bucket(&next);
                self.changed.insert(first, Arc::new(joined));
            }
        }
    }

    fn drop_bucket(&mut self, first: &Key) {
        self.changed.remove(first);
        self.cache.remove(first);
        self.given_up.extend(self.buckets.remove(first).and_then(|bucket| bucket.at));
    }

    /// Writes a bucket, in parts if free places are short. What has no place at all is elsewhere.
    fn put_bucket(&mut self, first: Key, mut entries: Entries) {
        let at = self.put(BlobKind::Bucket, 0, &entries::encode(&first, &entries));
        let right = if at.is_none() { entries.split_off(entries.len() / 2) } else { Entries::default() };
        match right.first().filter(|_| entries.len() >= PARTS_MIN) {
            Some(middle) => {
                self.put_bucket(first, entries);
                self.put_bucket(middle, right);
            }
            None => {
                self.buckets.insert(first, Bucket { at, elsewhere: at.is_none() });
            }
        }
    }

    /// Writes a blob; `None` if it has no place.
    fn put(&mut self, kind: BlobKind, number: u32, bytes: &[u8]) -> Option<Stored> {
        let length = u32::try_from(bytes.len()).ok().filter(|&length| length <= u32::from(u16::MAX))?;
        let length = length + size_of::<BlobHeader>() as u32;
        let is_bucket = kind == BlobKind::Bucket;
        let span = if is_bucket { self.heap.take_high(length) } else { self.heap.take_low(length) }?;
        let (blob, checksum) = seal_blob(self.seed, span, kind, self.fold + 1, number, bytes);
        self.memory.write_through(span.address(), &blob);
        self.sum = self.sum.wrapping_add(u64::from(checksum));
        self.blobs += 1;
        Some(Stored { span, checksum })
    }

    /// Makes everything that was put count in place of `given_up`.
    fn anchor(&mut self, moment: &Moment, given_up: &[Stored]) -> Result<()> {
        for one in given_up {
            self.sum = self.sum.wrapping_sub(u64::from(one.checksum));
            self.blobs -= 1;
        }
        let given_up: Vec<Span> = given_up.iter().map(|one| one.span).chain(self.body).collect();
        let header = BodyHeader {
            sum: self.sum.into(),
            blobs: self.blobs.into(),
            given_up: (given_up.len() as u32).into(),
            closed: moment.closed.into(),
            reserved: [0; 7],
        };
        let mut bytes = header.as_bytes().to_vec();
        given_up.iter().for_each(|span| bytes.extend_from_slice(&span.granule.to_le_bytes()));
        bytes.extend_from_slice(&moment.superblock);
        if bytes.len() > usize::from(u16::MAX) {
            return Err(too_small());
        }
        let span = self.heap.take_low((bytes.len() + size_of::<BlobHeader>()) as u32).ok_or_else(too_small)?;
        let fold = self.fold + 1;
        let (body, _) = seal_blob(self.seed, span, BlobKind::Body, fold, 0, &bytes);
        self.memory.write_through(span.address(), &body);
        self.memory.fence().map_err(|error| from_media("fence", &error))?;
        let slot = 1 - self.slot;
        self.memory.write(SLOTS[slot], &seal_anchor(moment.uuid, fold, span));
        self.memory.flush(SLOTS[slot], 64);
        self.memory.fence().map_err(|error| from_media("fence", &error))?;
        // Durable with the next fence, and done again by a mount before that.
        for span in given_up {
            self.memory.store(span.address(), 0);
            self.memory.flush(span.address(), 8);
            self.heap.give(span);
        }
        (self.slot, self.fold, self.body, self.is_closed) = (slot, fold, Some(span), moment.closed);
        Ok(())
    }

    /// Makes sure that nothing here is believed any more, as far as the memory still works.
    pub fn abandon(&mut self) {
        for slot in SLOTS {
            self.memory.zero(slot, 64);
            self.memory.flush(slot, 64);
        }
        // The flash has moved on too far for either anchor; this only tells sooner.
        let _ = self.memory.fence();
    }
}

/// `entries` in parts that fit buckets, each with the key at which it begins; at least one.
fn divided(first: Key, entries: Entries) -> Vec<(Key, Entries)> {
    let length = entries::encode(&first, &entries).len();
    if length <= CONTENT_BYTES_MAX || entries.len() < 2 {
        return alloc::vec![(first, entries)];
    }
    let parts = length.div_ceil(CONTENT_BYTES_MAX * 7 / 8).max(2);
    let each = entries.len().div_ceil(parts).max(1);
    let (mut left, mut begin, mut all) = (entries, first, Vec::new());
    while left.len() > 0 {
        let rest = left.split_off(each);
        let next = rest.first();
        all.extend(divided(begin, left));
        (left, begin) = (rest, next.unwrap_or(begin));
    }
    all
}

fn too_small() -> Error {
    Error::new(ErrorKind::NoSpace, "the memory beside the flash has no room for its index")
}

//! Folds: what changed goes to new places, then one line makes it count.

use super::cut::{CONTENT_BYTES_MAX, Part, cut, cut_into};
use super::entries;
use super::format::{BUCKET_BYTES_MAX, BlobHeader, BlobKind, BodyHeader, SLOTS, Span, Stored, seal_anchor, seal_blob};
use super::{Bpram, Bucket, TablePiece};
use crate::medium::errors::from_media;
use crate::medium::layout::Layout;
use crate::space::segments::SegmentTable;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_base::varint;
use onode_codec::exact::Entry;
use onode_engine::Key;
use onode_object::{Error, Result};
use zerocopy::IntoBytes;

/// Buckets with less look for a neighbour to join.
const SPARSE: usize = CONTENT_BYTES_MAX / 2;
/// Buckets that would have less than half of this left are not tried.
const MARGIN: usize = 48;
/// So many neighbours that did not change are coded anew to save a bucket.
const NEIGHBOURS_MAX: usize = 4;
/// So many neighbours that changed are coded anew together: bounds the memory of it.
const TOGETHER_MAX: usize = 16;

/// A bucket of fewer entries is not divided further.
const PARTS_MIN: usize = 4;

/// Bytes that a blob takes beside its content at most, to the end of a granule.
const BLOB_SLACK: usize = 48;
/// Bytes for the places that a fold gives up, and for some marks.
const RESERVE_SLACK: u64 = 1024;
/// Bytes that the mark of a range takes whose entries are elsewhere.
const MARK_BYTES: u64 = 32;

/// What an anchor says beside the buckets.
pub struct Moment {
    /// The volume.
    pub uuid: [u8; 16],
    /// The newest superblock.
    pub superblock: Vec<u8>,
    /// Nothing follows it.
    pub closed: bool,
    /// Division of the flash.
    pub layout: Layout,
    /// What has no place in the memory is on flash alone; otherwise it is refused.
    pub spills: bool,
}

/// Neighbours of changed buckets, in order.
#[derive(Default)]
struct Window {
    before: Vec<Key>,
    behind: Vec<Key>,
}

impl Window {
    const fn len(&self) -> usize {
        self.before.len() + self.behind.len()
    }
}

/// Neighbours that are coded anew together.
struct Together {
    /// Their keys, in order.
    firsts: Vec<Key>,
    items: Vec<Entry>,
}

impl Bpram {
    /// Writes everything that changed, as it belongs to the checkpoint of `moment`.
    ///
    /// # Errors
    /// `NoSpace` if the memory has no room even for less than everything, and its own. What counts
    /// then is not known.
    pub fn fold(&mut self, moment: &Moment, table: &SegmentTable) -> Result<()> {
        let mut given_up = core::mem::take(&mut self.given_up);
        let mut pieces = Vec::new();
        for (number, of) in table.pieces().iter().enumerate() {
            let known = self.pieces.get(number).copied().flatten();
            if known.is_none_or(|piece| piece.of != *of) {
                given_up.extend(known.map(|piece| piece.at));
                let mut bytes = Vec::new();
                varint::put(&mut bytes, number as u64);
                bytes.extend_from_slice(&table.pack_piece(number, &moment.layout));
                pieces.push((number, *of, bytes));
            }
        }
        // Twice, because the new ones are written while the old ones count.
        let written: usize = pieces.iter().map(|(.., bytes)| bytes.len() + BLOB_SLACK).sum();
        let fixed = self.table_bytes().max(written as u64) + self.body_bytes();
        let marks = if moment.spills { self.marks() } else { 0 };
        self.heap.reserve(2 * fixed + RESERVE_SLACK + MARK_BYTES * marks);
        for (number, of, bytes) in pieces {
            let at = self.put(BlobKind::Piece, &bytes).ok_or_else(too_small)?;
            if self.pieces.len() <= number {
                self.pieces.resize(number + 1, None);
            }
            self.pieces[number] = Some(TablePiece { at, of });
        }
        let mut written = None;
        while let Some(first) = self.changed.keys().next().copied() {
            written = self.put_changed(first, written);
        }
        // Where what is too much is refused, little is elsewhere, and comes back when there is
        // room.
        if moment.spills {
            self.clear_low();
            self.join_elsewhere();
        }
        given_up.append(&mut self.given_up);
        let unmarked: Vec<Key> =
            self.buckets.iter().filter(|(_, one)| one.elsewhere && one.at.is_none()).map(|(first, _)| *first).collect();
        for first in unmarked {
            let mut bytes = Vec::new();
            entries::put_key(&mut bytes, &first, self.unit);
            let at = self.put(BlobKind::Elsewhere, &bytes).ok_or_else(too_small)?;
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

    /// Gives up buckets that lie where only what no fold can do without is to lie, if little is
    /// free there: what was kept for that grew since they came. Their places are free for the next
    /// fold.
    fn clear_low(&mut self) {
        let (mut free, kept) = self.heap.free_low_bytes();
        if free >= kept / 2 {
            return;
        }
        let mut in_the_way = Vec::new();
        for (first, one) in self.buckets.iter().filter(|(_, one)| !one.elsewhere) {
            let Some(at) = one.at.filter(|at| free < kept / 2 && self.heap.is_low(at.span)) else { continue };
            free += u64::from(at.span.bytes);
            in_the_way.push((*first, at));
        }
        for (first, at) in in_the_way {
            self.cache.remove(&first);
            self.given_up.push(at);
            self.buckets.insert(first, Bucket { at: None, elsewhere: true });
        }
    }

    /// How many ranges are elsewhere.
    fn marks(&self) -> u64 {
        self.buckets.values().filter(|one| one.elsewhere).count() as u64
    }

    /// Ranges that are elsewhere right behind others become part of them: marks for each would fill
    /// a memory that is full already.
    fn join_elsewhere(&mut self) {
        let mut is_behind = false;
        let joins = |(first, one): (&Key, &Bucket)| {
            let joins = is_behind && one.elsewhere;
            is_behind = one.elsewhere;
            joins.then_some(*first)
        };
        let joined: Vec<Key> = self.buckets.iter().filter_map(joins).collect();
        for first in joined {
            self.given_up.extend(self.buckets.remove(&first).and_then(|one| one.at));
        }
    }

    /// Takes out the changed bucket at `first` and changed ones behind it, and writes what comes in
    /// their place. Neighbours up to `written` have been written just now; returns up to where they
    /// are then.
    fn put_changed(&mut self, first: Key, written: Option<Key>) -> Option<Key> {
        let Together { mut firsts, items } = self.take_neighbours(first);
        let mut parts = cut(first, &items, self.unit);
        let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
        let all;
        if parts.len() > firsts.len() || bytes < SPARSE * parts.len() {
            // Full neighbours are better divided by one more than one of them by two.
            if let Some(window) = self.window(&firsts, written, bytes, parts.len())
                && let Some(together) = self.with_window(&window, &items)
            {
                all = together;
                let first = window.before.first().copied().unwrap_or(first);
                let joined = cut_into(first, &all, self.unit, NEIGHBOURS_MAX + 2);
                if joined.len() < parts.len() + window.len() {
                    parts = joined;
                    firsts.extend(window.before.into_iter().chain(window.behind));
                }
            }
        }
        for first in firsts {
            self.cache.remove(&first);
            self.given_up.extend(self.buckets.remove(&first).and_then(|bucket| bucket.at));
        }
        // What the bucket before covers as well.
        parts.retain(|part| !part.items.is_empty() || part.first == Key::MIN);
        let last = parts.last().map(|part| part.first);
        parts.into_iter().for_each(|part| self.put_part(part));
        last.or(written)
    }

    /// Takes out the changed bucket at `first` and those that changed right behind it.
    fn take_neighbours(&mut self, first: Key) -> Together {
        let mut together = Together { firsts: Vec::new(), items: Vec::new() };
        let mut next = Some(first);
        while let Some(first) = next.filter(|_| together.firsts.len() < TOGETHER_MAX) {
            let Some(entries) = self.changed.remove(&first) else { break };
            next = self.after(&first);
            together.items.extend(entries.items());
            together.firsts.push(first);
        }
        together
    }

    /// The fewest neighbours of the buckets at `firsts` that did not change and which, coded anew
    /// together with their `parts` of so many bytes, should take a bucket less than they all do.
    fn window(&self, firsts: &[Key], written: Option<Key>, bytes: usize, parts: usize) -> Option<Window> {
        let still = |key: &Key| {
            let bucket = self.bucket(key);
            let is_still = !bucket.elsewhere && !self.changed.contains_key(key);
            bucket.at.filter(|_| is_still).map(|at| (*key, at.span.bytes as usize - size_of::<BlobHeader>()))
        };
        let (from, to) = (firsts.first()?, firsts.last()?);
        let before = self.buckets.range(..from).rev().map(|(key, _)| key);
        let before = before.take_while(|key| written.is_none_or(|written| **key > written));
        let mut before = before.map_while(still).take(NEIGHBOURS_MAX).peekable();
        let behind = self.buckets.range((Excluded(*to), Unbounded)).map(|(key, _)| key);
        let mut behind = behind.map_while(still).take(NEIGHBOURS_MAX).peekable();
        let (mut window, mut bytes) = (Window::default(), bytes);
        // The new places are taken before the old ones are free.
        let wanted = self.fold_bytes() + ((parts + NEIGHBOURS_MAX) * BUCKET_BYTES_MAX) as u64;
        let most = if self.room() > wanted { NEIGHBOURS_MAX } else { 1 };
        while window.len() < most {
            let one = before.peek().map(|(_, bytes)| *bytes);
            let other = behind.peek().map(|(_, bytes)| *bytes);
            let is_before = match (one, other) {
                (None, None) => return None,
                (Some(one), Some(other)) => one <= other,
                (one, _) => one.is_some(),
            };
            let (key, more) = if is_before { before.next() } else { behind.next() }?;
            if is_before { &mut window.before } else { &mut window.behind }.push(key);
            bytes += more;
            let all = parts + window.len() - 1;
            if bytes + MARGIN * all / 2 <= all * CONTENT_BYTES_MAX {
                window.before.reverse();
                return Some(window);
            }
        }
        None
    }

    /// The entries of a window with `items` in it; `None` if some are elsewhere.
    fn with_window(&mut self, window: &Window, items: &[Entry]) -> Option<Vec<Entry>> {
        let mut all = Vec::new();
        for key in &window.before {
            all.extend(self.load(key)?.items());
        }
        all.extend_from_slice(items);
        for key in &window.behind {
            all.extend(self.load(key)?.items());
        }
        Some(all)
    }

    /// Writes a bucket, in smaller ones if free places are short. What has no place at all is
    /// elsewhere.
    fn put_part(&mut self, part: Part<'_>) {
        let Part { first, items, bytes } = part;
        debug_assert!(bytes.is_empty() || entries::decode(&bytes, self.unit).is_some(), "a bucket cannot be read back");
        let at = if bytes.is_empty() { None } else { self.put(BlobKind::Bucket, &bytes) };
        let middle = items.len() / 2;
        match items.get(middle).filter(|_| at.is_none() && middle >= PARTS_MIN) {
            Some(entry) => {
                let right = entries::key_of(entry);
                for (first, items) in [(first, &items[..middle]), (right, &items[middle..])] {
                    let bytes = entries::encode(&first, items, self.unit).unwrap_or_default();
                    self.put_part(Part { first, items, bytes });
                }
            }
            None => {
                self.buckets.insert(first, Bucket { at, elsewhere: at.is_none() });
            }
        }
    }

    /// Writes a blob; `None` if it has no place.
    fn put(&mut self, kind: BlobKind, bytes: &[u8]) -> Option<Stored> {
        let length = u32::try_from(bytes.len()).ok().filter(|&length| length <= u32::from(u16::MAX))?;
        let length = length + size_of::<BlobHeader>() as u32;
        let span = match kind {
            BlobKind::Bucket => self.heap.take_high(length),
            // Where a bucket has no place there may be one for a mark.
            BlobKind::Elsewhere => self.heap.take_high(length).or_else(|| self.heap.take_low(length)),
            BlobKind::Piece | BlobKind::Body => self.heap.take_low(length),
        }?;
        let (blob, checksum) = seal_blob(self.seed, span, kind, self.fold + 1, bytes);
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
            reserved: [0; 3],
            unit: self.unit.into(),
        };
        let mut bytes = header.as_bytes().to_vec();
        given_up.iter().for_each(|span| bytes.extend_from_slice(&span.granule.to_le_bytes()));
        bytes.extend_from_slice(&moment.superblock);
        if bytes.len() > usize::from(u16::MAX) {
            return Err(too_small());
        }
        let span = self.heap.take_low((bytes.len() + size_of::<BlobHeader>()) as u32).ok_or_else(too_small)?;
        let fold = self.fold + 1;
        let (body, _) = seal_blob(self.seed, span, BlobKind::Body, fold, &bytes);
        self.memory.write_through(span.address(), &body);
        if !is_planted(Bug::BesideAnchorFirst) {
            self.memory.fence().map_err(|error| from_media("fence", &error))?;
        }
        let slot = 1 - self.slot;
        self.memory.write(SLOTS[slot], &seal_anchor(moment.uuid, fold, span, self.buffer_area()));
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

fn too_small() -> Error {
    Error::new(ErrorKind::NoSpace, "the memory beside the flash has no room for its index")
}

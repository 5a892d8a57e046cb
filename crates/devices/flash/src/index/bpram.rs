//! The index of objects' content in a small byte-addressable persistent RAM (BPRAM, paper 3): every
//! onode and every extent, in compressed *buckets* that are found without reading a page of flash.
//!
//! The memory is a second, faster home of what the flash holds as well: the wandering tree and the
//! journal on flash stay complete. So a memory that is torn, wiped, worn out or lost costs time and
//! never a file, and a bucket that cannot be read or has no room is *elsewhere*: its range of keys
//! is asked of the tree.
//!
//! The buckets divide the space of keys. Those that changed stay in memory until a *fold* writes
//! all of them to new places and then, with one line, the anchor that makes them count: a fold
//! belongs to a checkpoint of the flash, and a mount goes on from it as from a superblock.
//!
//! What it keeps true:
//! * A fold happens wholly or not at all; until its anchor is durable, nothing that the one before
//!   needs is touched.
//! * No byte is believed without a checksum bound to the volume and to its place.
//!
//! A write buffer ([`buffer`]) may be set apart at the end of the memory.
//!
//! What it does not do: hold attributes (names, inodes), which are packed in the tree's nodes on
//! flash.

pub mod buffer;
mod cut;
pub mod entries;
mod fold;
pub mod format;
mod heap;
pub mod mount;
pub mod waiting;

use crate::medium::format::BlobReference;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use buffer::{Area, PagePlace, WriteBuffer};
use entries::BucketEntries;
pub use fold::Moment;
use format::{Span, Stored};
use heap::Heap;
use onode_base::evict::Lru;
use onode_engine::Key;
use onode_media::Pmem;

/// Memory for buckets that were decoded and did not change, in bytes.
const CACHE_BYTES: usize = 256 << 10;

/// Entries of a changed bucket in memory beyond which it is divided.
const ENTRIES_MAX: usize = 512;

/// A bucket: the entries from its key up to the key of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    /// Where it lies; `None` if it was never written.
    at: Option<Stored>,
    /// Its entries are asked of the tree.
    elsewhere: bool,
}

/// A piece of the segment table in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TablePiece {
    at: Stored,
    /// The piece on flash that it repeats.
    of: BlobReference,
}

/// What the memory holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All of it.
    pub capacity: u64,
    /// The anchors.
    pub anchor_bytes: u64,
    /// What they name: the newest superblock.
    pub body_bytes: u64,
    /// Buckets with entries.
    pub bucket_bytes: u64,
    /// How many.
    pub buckets: u64,
    /// Marks of ranges of keys that are asked of the tree on flash.
    pub elsewhere_bytes: u64,
    /// How many.
    pub elsewhere: u64,
    /// Pieces of the segment table.
    pub piece_bytes: u64,
    /// The write buffer.
    pub log_bytes: u64,
    /// Nothing.
    pub free_bytes: u64,
}

/// What is found in a bucket.
pub enum Lookup<T> {
    /// This, which may be nothing.
    Here(Option<T>),
    /// The tree has to be asked.
    Elsewhere,
}

/// The index in the memory.
pub struct Bpram {
    memory: Box<dyn Pmem>,
    /// The volume's part of checksums.
    seed: u32,
    /// Bytes of a page of the flash.
    unit: u32,
    heap: Heap,
    /// The slot of the anchor that counts.
    slot: usize,
    /// Its number.
    fold: u32,
    /// What it names beside the buckets.
    body: Option<Span>,
    /// Sum of the checksums of all blobs but the body, and how many they are.
    sum: u64,
    blobs: u32,
    buckets: BTreeMap<Key, Bucket>,
    pieces: Vec<Option<TablePiece>>,
    /// Entries of buckets that changed since the last fold.
    changed: BTreeMap<Key, Arc<BucketEntries>>,
    /// Blobs that no bucket has any more.
    given_up: Vec<Stored>,
    cache: Lru<Key, Arc<BucketEntries>>,
    /// What waits for its page of flash, if the memory has room set apart for that.
    buffer: Option<WriteBuffer>,
    /// The volume was closed with this anchor.
    is_closed: bool,
}

/// Whether the memory keeps entries of this kind.
pub const fn keeps(kind: u16) -> bool {
    kind == Key::ONODE || kind == Key::EXTENT
}

impl Bpram {
    /// Whether the volume was closed with the anchor that counts.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The key of the bucket that `key` belongs to.
    fn home(&self, key: &Key) -> Key {
        self.buckets.range(..=*key).next_back().map_or(Key::MIN, |(first, _)| *first)
    }

    fn bucket(&self, first: &Key) -> Bucket {
        self.buckets.get(first).copied().unwrap_or_default()
    }

    /// The key of the bucket after that of `first`.
    fn after(&self, first: &Key) -> Option<Key> {
        use core::ops::Bound::{Excluded, Unbounded};
        self.buckets.range((Excluded(*first), Unbounded)).next().map(|(key, _)| *key)
    }

    /// Loads the entries of an unchanged bucket; `None` if they are elsewhere.
    fn load(&mut self, first: &Key) -> Option<Arc<BucketEntries>> {
        let bucket = self.bucket(first);
        if bucket.elsewhere {
            return None;
        }
        if let Some(entries) = self.cache.get(first) {
            return Some(entries.clone());
        }
        let entries = match bucket.at {
            None => BucketEntries::default(),
            Some(at) => {
                let read = format::read_blob(&*self.memory, self.seed, at);
                let read = read.filter(|blob| blob.kind == format::BlobKind::Bucket);
                match read.and_then(|blob| entries::decode(&blob.bytes, self.unit)).filter(|(key, _)| key == first) {
                    Some((_, entries)) => entries,
                    None => {
                        // What the memory lost, the tree has.
                        self.given_up.push(at);
                        self.buckets.insert(*first, Bucket { at: None, elsewhere: true });
                        return None;
                    }
                }
            }
        };
        let entries = Arc::new(entries);
        self.cache.insert(*first, entries.clone(), entries.memory_bytes());
        Some(entries)
    }

    /// What `with` makes of the value of `key`.
    pub fn get<T>(&mut self, key: &Key, with: impl FnOnce(&[u8]) -> T) -> Lookup<T> {
        let first = self.home(key);
        if let Some(entries) = self.changed.get(&first) {
            return Lookup::Here(entries.get(key).map(with));
        }
        match self.load(&first) {
            Some(entries) => Lookup::Here(entries.get(key).map(with)),
            None => Lookup::Elsewhere,
        }
    }

    /// The last entry at or before `key`.
    pub fn floor(&mut self, key: &Key) -> Lookup<(Key, Vec<u8>)> {
        let mut first = self.home(key);
        loop {
            let found = match self.changed.get(&first) {
                Some(entries) => entries.floor(key),
                None => match self.load(&first) {
                    Some(entries) => entries.floor(key),
                    None => return Lookup::Elsewhere,
                },
            };
            let before = self.buckets.range(..first).next_back().map(|(key, _)| *key);
            match (found, before) {
                (None, Some(before)) => first = before,
                (found, _) => return Lookup::Here(found),
            }
        }
    }

    /// The entries of the bucket that `from` belongs to, from `from` on, and where the next bucket
    /// begins. `None` for entries that are elsewhere.
    pub fn run(&mut self, from: &Key) -> (Option<Arc<BucketEntries>>, Option<Key>) {
        let first = self.home(from);
        let next = self.after(&first);
        let entries = match self.changed.get(&first) {
            Some(entries) => Some(entries.clone()),
            None => self.load(&first),
        };
        (entries, next)
    }

    /// The entries of the bucket of `key`, to be changed; `None` if they are elsewhere.
    fn change(&mut self, key: &Key) -> Option<(Key, &mut BucketEntries)> {
        let first = self.home(key);
        if !self.changed.contains_key(&first) {
            let entries = self.load(&first)?;
            self.cache.remove(&first);
            self.changed.insert(first, entries);
        }
        self.changed.get_mut(&first).map(|entries| (first, Arc::make_mut(entries)))
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: Key, value: &[u8]) {
        let Some((first, entries)) = self.change(&key) else { return };
        let in_order = entries.insert(key, value);
        if entries.len() > ENTRIES_MAX {
            // Keys that arrive in order leave full buckets behind.
            let keep = if in_order { ENTRIES_MAX } else { ENTRIES_MAX / 2 };
            let right = entries.split_off(keep);
            self.put_right(first, right);
        }
    }

    /// Enters a bucket that was divided from that of `left`.
    fn put_right(&mut self, left: Key, right: BucketEntries) {
        let Some(first) = right.first() else { return };
        debug_assert!(first > left, "a bucket begins before the one that it was divided from");
        self.buckets.entry(left).or_default();
        self.buckets.insert(first, Bucket::default());
        self.changed.insert(first, Arc::new(right));
    }

    /// Removes `key`.
    pub fn remove(&mut self, key: &Key) {
        if let Some((_, entries)) = self.change(key) {
            entries.remove(key);
        }
    }

    /// Bytes that the changed buckets take in memory.
    pub fn changed_bytes(&self) -> usize {
        self.changed.values().map(|entries| entries.memory_bytes()).sum()
    }

    /// Memory that the index takes in the device.
    pub fn memory_bytes(&self) -> usize {
        self.changed_bytes()
            + self.cache.bytes()
            + self.buckets.len() * (size_of::<Key>() + size_of::<Bucket>())
            + self.heap.memory_bytes()
    }

    /// Bytes that the new places of a fold may take.
    fn fold_bytes(&self) -> u64 {
        self.changed.len() as u64 * format::BUCKET_BYTES_MAX as u64
    }

    fn table_bytes(&self) -> u64 {
        self.pieces.iter().flatten().map(|piece| heap::granule_bytes(piece.at.span.bytes)).sum()
    }

    fn body_bytes(&self) -> u64 {
        self.body.map_or(0, |span| heap::granule_bytes(span.bytes))
    }

    /// Bytes that are free beside what a fold takes for the segment table and what its anchor
    /// names.
    fn room(&self) -> u64 {
        self.heap.free_bytes().saturating_sub(self.table_bytes() + 2 * self.body_bytes())
    }

    /// Whether the changed buckets should be folded: the new places are taken before the old ones
    /// are given up. Where entries may stay on flash alone, a memory without room is no reason for
    /// folds after every few changes.
    pub fn fold_is_due(&self, spills: bool) -> bool {
        let (room, least) = (self.room(), self.heap.capacity_bytes() / 16);
        2 * self.fold_bytes() > room.max(least) && !(spills && room < least)
    }

    /// Bytes that more entries may take before the memory counts as full, and those that entries
    /// take now.
    pub fn entry_room(&self) -> (u64, u64) {
        let capacity = self.heap.capacity_bytes();
        let kept = (8 * format::BUCKET_BYTES_MAX as u64).min(capacity / 4);
        (self.room().saturating_sub(kept), capacity.saturating_sub(self.heap.free_bytes()))
    }

    /// Whether the memory is so full that what `changes` more buckets hold may have no place.
    pub fn is_full(&self, changes: usize) -> bool {
        let wanted = (changes as u64 + 2) * format::BUCKET_BYTES_MAX as u64;
        self.room() < self.fold_bytes() + wanted
    }

    fn buffer_area(&self) -> Area {
        self.buffer.as_ref().map_or(Area::default(), WriteBuffer::area)
    }

    /// Whether there is a write buffer.
    pub const fn has_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// Makes durable what waits for the journal page at `place`. False if the buffer does not take
    /// it.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn keep(&mut self, place: PagePlace, content: &[u8], frames: &[u8]) -> onode_media::Result<bool> {
        let Some(buffer) = &mut self.buffer else { return Ok(false) };
        buffer.keep(&*self.memory, place, content, frames)
    }

    /// What the memory holds.
    pub fn usage(&self) -> MemoryUse {
        let bytes = |at: Stored| heap::granule_bytes(at.span.bytes);
        let of = |elsewhere| self.buckets.values().filter(move |bucket| bucket.elsewhere == elsewhere);
        let stored = |elsewhere| of(elsewhere).filter_map(|bucket| bucket.at).map(bytes).sum();
        MemoryUse {
            capacity: self.memory.length(),
            anchor_bytes: format::HEAP_BEGIN,
            body_bytes: self.body_bytes(),
            bucket_bytes: stored(false),
            buckets: of(false).count() as u64,
            elsewhere_bytes: stored(true),
            elsewhere: of(true).count() as u64,
            piece_bytes: self.table_bytes(),
            log_bytes: self.buffer_area().bytes(),
            free_bytes: self.heap.free_bytes(),
        }
    }
}

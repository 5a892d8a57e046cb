//! Taking up what a memory holds, and making one anew.

use super::buffer::{Area, HeldPage, WriteBuffer};
use super::entries::take_key;
use super::format::{Blob, BlobKind, BodyHeader, HEAP_BEGIN, Span, blob_at, may_be_blob, read_anchors};
use super::heap::Heap;
use super::{Bpram, Bucket, CACHE_BYTES, TablePiece};
use crate::medium::errors::from_media;
use crate::medium::page;
use crate::medium::ring::{Found, Turn, parse_superblock};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use onode_base::ErrorKind;
use onode_base::evict::Lru;
use onode_base::varint;
use onode_engine::Key;
use onode_media::Pmem;
use onode_object::{Error, Result};
use zerocopy::FromBytes;

/// The least memory.
pub const BYTES_MIN: u64 = 8 << 10;

/// So many superblocks a memory is ahead of the flash at most: those that a cut hit.
const AHEAD_MAX: u32 = 2;

/// The number of the superblock that the newest anchor in `memory` is of, if there is a sound one.
#[must_use]
pub fn superblock_of(memory: &dyn Pmem) -> Option<u32> {
    let (_, anchor) = read_anchors(memory).first().copied()?;
    let body = blob_at(memory, page::volume_seed(&anchor.uuid), anchor.body_granule.get())?;
    let (header, rest) = BodyHeader::read_from_prefix(&body.bytes).ok()?;
    let superblock = rest.get((header.given_up.get() as usize).checked_mul(4)?..)?;
    parse_superblock(superblock).map(|(superblock, _)| superblock.generation.get())
}

/// The superblock of which `memory` is, if it is that of the volume `uuid` as it was used last: it
/// stands where the flash does, at the superblock `generation`, or ahead of it. The memory goes
/// first, and a cut may have taken the last superblocks from the flash.
pub fn standing_with(memory: &dyn Pmem, uuid: &[u8; 16], generation: u32) -> Option<u32> {
    let is_ours = read_anchors(memory).first().is_some_and(|(_, anchor)| anchor.uuid == *uuid);
    superblock_of(memory).filter(|known| is_ours && known.wrapping_sub(generation) <= AHEAD_MAX)
}

/// A memory that was taken up.
pub struct Opened {
    /// The index.
    pub bpram: Bpram,
    /// The newest superblock that it knows; where that lies the flash tells.
    pub found: Found,
    /// The segment table, piece by piece.
    pub table: Vec<Vec<u8>>,
    /// What its write buffer holds.
    pub held: Option<HeldPage>,
}

/// Whether `memory` is that of another volume than `uuid`.
pub fn is_of_another(memory: &dyn Pmem, uuid: &[u8; 16]) -> bool {
    read_anchors(memory).first().is_some_and(|(_, anchor)| anchor.uuid != *uuid)
}

/// Whether `memory` has the write buffer that its anchor tells of: one that was cut short has lost
/// it.
pub fn has_write_buffer(memory: &dyn Pmem) -> bool {
    read_anchors(memory).first().is_some_and(|(_, anchor)| Area::of_anchor(anchor, memory.length()).is_some())
}

/// What the write buffer in `memory` holds for the volume `uuid`, whatever became of the rest of
/// the memory.
pub fn held_in(memory: &dyn Pmem, uuid: &[u8; 16]) -> Option<HeldPage> {
    let anchors = read_anchors(memory).into_iter().filter(|(_, anchor)| anchor.uuid == *uuid);
    let mut areas = anchors.filter_map(|(_, anchor)| Area::of_anchor(&anchor, memory.length()));
    areas.find_map(|area| WriteBuffer::take_up(memory, area, page::volume_seed(uuid)).1)
}

/// A memory that holds no index, and why.
pub struct Refused {
    /// The memory.
    pub memory: Box<dyn Pmem>,
    /// Why, in words.
    pub why: String,
}

impl Bpram {
    /// An empty index in `memory` for a flash with pages of `unit` bytes, all of whose entries are
    /// elsewhere. Whatever it held is gone.
    ///
    /// # Errors
    /// `Invalid` if it is too small, and its own.
    pub fn blank(memory: Box<dyn Pmem>, uuid: &[u8; 16], unit: u32, buffer: Option<Area>) -> Result<Self> {
        if memory.length() < BYTES_MIN {
            let detail = format!("{} bytes of memory are too few, at least {BYTES_MIN} are needed", memory.length());
            return Err(Error::new(ErrorKind::Invalid, detail));
        }
        // The anchors first: a cut must not leave them without what they name.
        for part in [(0, HEAP_BEGIN), (HEAP_BEGIN, memory.length() - HEAP_BEGIN)] {
            memory.zero(part.0, part.1);
            memory.flush(part.0, part.1);
            memory.fence().map_err(|error| from_media("wipe the memory", &error))?;
        }
        let mut bpram = Self::new(memory, uuid, buffer.unwrap_or_default());
        bpram.unit = unit;
        bpram.buckets.insert(Key::MIN, Bucket { at: None, elsewhere: true });
        Ok(bpram)
    }

    /// Nothing has to be asked elsewhere, because there is nothing.
    pub fn begin_empty(&mut self) {
        self.buckets.insert(Key::MIN, Bucket::default());
    }

    fn new(memory: Box<dyn Pmem>, uuid: &[u8; 16], buffer: Area) -> Self {
        let seed = page::volume_seed(uuid);
        let heap_end = if buffer.slots == 0 { memory.length() } else { buffer.begin };
        Self {
            seed,
            unit: 0,
            heap: Heap::new(heap_end),
            buffer: (buffer.slots > 0).then(|| WriteBuffer::new(buffer, seed)),
            memory,
            slot: 1,
            fold: 0,
            body: None,
            sum: 0,
            blobs: 0,
            buckets: BTreeMap::new(),
            pieces: Vec::new(),
            changed: BTreeMap::new(),
            given_up: Vec::new(),
            cache: Lru::new(CACHE_BYTES),
            is_closed: false,
        }
    }

    /// Takes up what `memory` holds. `writable` says whether what an interrupted fold left may be
    /// cleared away.
    ///
    /// # Errors
    /// The memory, if it holds no whole index.
    pub fn open(memory: Box<dyn Pmem>, writable: bool) -> core::result::Result<Opened, Refused> {
        let anchors = read_anchors(&*memory);
        let Some((slot, anchor)) = anchors.first().copied() else {
            return Err(Refused { memory, why: "it holds no index".into() });
        };
        let area = Area::of_anchor(&anchor, memory.length());
        let (buffer, held) =
            match area.map(|area| WriteBuffer::take_up(&*memory, area, page::volume_seed(&anchor.uuid))) {
                Some((buffer, held)) => (Some(buffer), held),
                None => (None, None),
            };
        if anchor.slots.get() > 0 && area.is_none() {
            return Err(Refused { memory, why: "its end with the write buffer is cut off".into() });
        }
        let mut bpram = Self::new(memory, &anchor.uuid, area.unwrap_or_default());
        bpram.buffer = buffer;
        (bpram.slot, bpram.fold) = (slot, anchor.fold.get());
        match bpram.take_up(anchor.body_granule.get(), writable) {
            Some((found, table)) if found.superblock.uuid == anchor.uuid => Ok(Opened { bpram, found, table, held }),
            _ => Err(Refused { memory: bpram.memory, why: "it is damaged".into() }),
        }
    }

    /// The memory, not to be used as it is.
    pub fn refused(self, why: &str) -> Refused {
        Refused { memory: self.memory, why: why.into() }
    }

    fn take_up(&mut self, body: u32, writable: bool) -> Option<(Found, Vec<Vec<u8>>)> {
        let body = blob_at(&*self.memory, self.seed, body).filter(|blob| blob.kind == BlobKind::Body)?;
        let body = Some(body).filter(|body| body.fold == self.fold && self.heap.enter(body.at.span))?;
        self.body = Some(body.at.span);
        let (header, rest) = BodyHeader::read_from_prefix(&body.bytes).ok()?;
        let given_up = rest.get(..(header.given_up.get() as usize).checked_mul(4)?)?;
        let superblock = &rest[given_up.len()..];
        let given_up: BTreeSet<u32> =
            given_up.chunks_exact(4).map(|one| u32::from_le_bytes([one[0], one[1], one[2], one[3]])).collect();
        let (superblock, references) = parse_superblock(superblock)?;
        self.is_closed = header.closed == 1;
        self.unit = Some(header.unit.get()).filter(|unit| *unit > 0)?;
        let mut table = alloc::vec![None; references.pieces.len()];
        self.pieces.resize(references.pieces.len(), None);
        // What an interrupted fold left, whole or torn.
        let mut left_over = Vec::new();
        let mut granule = 0;
        while granule < self.heap.granules() {
            if !may_be_blob(&*self.memory, granule) {
                granule += 1;
                continue;
            }
            let blob = blob_at(&*self.memory, self.seed, granule);
            let is_body = self.body.is_some_and(|span| span.granule == granule);
            let counts = |blob: &Blob| blob.fold <= self.fold && (is_body || blob.kind != BlobKind::Body);
            let Some(blob) = blob.filter(|blob| counts(blob) && !given_up.contains(&granule)) else {
                left_over.push(granule);
                granule += 1;
                continue;
            };
            granule += (super::heap::granule_bytes(blob.at.span.bytes) / super::format::GRANULE_BYTES) as u32;
            if is_body {
                continue;
            }
            if !self.heap.enter(blob.at.span) {
                return None;
            }
            self.sum = self.sum.wrapping_add(u64::from(blob.at.checksum));
            self.blobs += 1;
            match blob.kind {
                BlobKind::Bucket | BlobKind::Elsewhere => {
                    let bucket = Bucket { at: Some(blob.at), elsewhere: blob.kind == BlobKind::Elsewhere };
                    let first = take_key(&mut &blob.bytes[..], self.unit)?;
                    if self.buckets.insert(first, bucket).is_some() {
                        return None;
                    }
                }
                BlobKind::Piece => {
                    let mut packed = &blob.bytes[..];
                    let number = usize::try_from(varint::take(&mut packed)?).ok()?;
                    *self.pieces.get_mut(number)? =
                        Some(TablePiece { at: blob.at, of: *references.pieces.get(number)? });
                    *table.get_mut(number)? = Some(packed.to_vec());
                }
                BlobKind::Body => return None,
            }
        }
        if (self.sum, self.blobs) != (header.sum.get(), header.blobs.get()) {
            return None;
        }
        if writable {
            self.clear(&left_over);
        }
        let table = table.into_iter().collect::<Option<Vec<_>>>()?;
        let turns = [Turn::NONE; 2];
        Some((Found { superblock, references, block: u32::MAX, turns }, table))
    }

    /// Clears the headers of blobs that were given up, and those that a fold which never counted
    /// left, before a coming one takes its number. Torn blobs too: what is torn again at the same
    /// place could make one of them whole. Durable before that fold is: it fences first.
    fn clear(&self, left_over: &[u32]) {
        for &granule in left_over.iter().filter(|granule| !self.heap.is_used(**granule)) {
            let at = Span { granule, bytes: 0 }.address();
            self.memory.store(at, 0);
            self.memory.flush(at, 8);
        }
    }

    /// Enters `entries` as all there are from `first`, whose bucket was elsewhere, until before
    /// `rest`, from where on they still are.
    pub fn fill(&mut self, first: Key, entries: super::BucketEntries, rest: Option<Key>) {
        let bucket = self.bucket(&first);
        self.given_up.extend(bucket.at);
        self.buckets.insert(first, Bucket::default());
        if let Some(rest) = rest {
            self.buckets.insert(rest, Bucket { at: None, elsewhere: true });
        }
        self.changed.insert(first, alloc::sync::Arc::new(entries));
    }

    /// The first range of keys whose entries are elsewhere: its beginning and its end.
    pub fn first_elsewhere(&self) -> Option<(Key, Option<Key>)> {
        let (first, _) = self.buckets.iter().find(|(_, bucket)| bucket.elsewhere)?;
        Some((*first, self.after(first)))
    }
}

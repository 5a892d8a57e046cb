//! Blocks of 32 bytes up to the whole area, without headers, in shared memory (paper 2, section
//! IV).
//!
//! The area is cut in chunks. A block of whole chunks is a run of them, found by a buddy (`runs`);
//! smaller blocks share a chunk with others of their class (`small`). What each chunk is says an
//! 8-byte entry of the chunk table (`entry`), and every change takes effect with a single store to
//! it: whoever dies at any store leaves a table from which the rest is made anew (`rebuild`).
//! Nothing is ever flushed: allocation and release cost no flush and no fence, and a recovery
//! begins with [`reset`](Allocator::reset) and claims what the log names.
//!
//! All shared state lies in the region, so that several processes can use it; each has a lease
//! (`lease`). Threads go through a [`ThreadCache`] and seldom meet at the lock (`lock`).
//!
//! It does not touch the content of a block but for its first 8 bytes while it is free or just
//! handed out, keeps nothing durable, and reads no clock.

mod cache;
mod class;
mod entry;
mod layout;
mod lease;
pub(crate) mod lock;
mod rebuild;
pub(crate) mod reconcile;
mod runs;
mod small;
mod table;
#[cfg(test)]
mod tests;

pub use cache::ThreadCache;
pub use class::Classes;
pub use layout::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};

use core::fmt;
use entry::State;
use layout::Layout;
use onode_media::{Error, MediaErrorKind, Pmem, Result};
use std::string::String;
use table::Table;

/// The smallest block in bytes.
pub const SMALLEST_BLOCK_BYTES: u64 = 32;

/// A process that may hold a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number, less than 2^24.
    pub id: u64,
    /// When it was started, less than 2^40 of whatever unit: tells it from a later one with the
    /// same number.
    pub started: u64,
}

/// Why a block cannot be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// It does not lie within the chunks of the area.
    OutOfArea,
    /// No block of this size begins there.
    Misaligned,
    /// Its chunk has blocks of another size.
    OtherClass,
    /// A part of it was claimed before: two owners.
    Overlap,
}

/// Why an address cannot be released, published or the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// It does not lie within the chunks of the area.
    OutOfArea,
    /// No block begins there.
    Wild,
    /// The block there is free already.
    DoubleFree,
    /// The block belongs to a durable object.
    Published,
}

/// The allocator of one area of a memory.
pub struct Allocator<P: Pmem> {
    table: Table<P>,
    /// Whose the blocks are that it hands out.
    lease: u16,
    /// In whose name the lock is held.
    member: u16,
    /// What the lock says meanwhile.
    holder_word: u64,
    has_joined: bool,
    judge: Option<lease::Judge>,
}

/// The place of a block that begins at an address.
enum BlockPlace {
    /// Chunk, its entry, index of the block.
    Small(u64, entry::Entry, u64),
    /// The first chunk.
    Run(u64),
}

impl<P: Pmem> Allocator<P> {
    /// What the side tables at the start of an area of `area_bytes` take.
    pub fn table_bytes(area_bytes: u64, chunk_bytes: u64) -> u64 {
        layout::table_bytes(area_bytes, chunk_bytes)
    }

    /// The allocator of the `bytes` at `start`, with chunks of `chunk_bytes`. Changes nothing.
    ///
    /// # Errors
    /// `OutOfRange` if the area does not lie in the memory or the numbers are no layout.
    pub fn attach(pmem: P, start: u64, bytes: u64, chunk_bytes: u64) -> Result<Self> {
        Self::attach_with(pmem, start, bytes, chunk_bytes, Classes::default())
    }

    /// As [`attach`](Self::attach), with a choice of classes; all users of an area make the same.
    ///
    /// # Errors
    /// As there.
    pub fn attach_with(pmem: P, start: u64, bytes: u64, chunk_bytes: u64, classes: Classes) -> Result<Self> {
        Self::attach_layout(pmem, Layout::of(start, bytes, bytes, chunk_bytes), start, bytes, classes)
    }

    /// The allocator of an area that had `made_bytes` at first and has `bytes` now. Its blocks lie
    /// where they lay; its tables do not, so everybody who uses it has to attach anew, and somebody
    /// [`reset`](Self::reset)s it.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_grown(pmem: P, start: u64, made_bytes: u64, bytes: u64, chunk_bytes: u64) -> Result<Self> {
        Self::attach_layout(pmem, Layout::of(start, made_bytes, bytes, chunk_bytes), start, bytes, Classes::default())
    }

    fn attach_layout(
        pmem: P,
        layout: core::result::Result<Layout, &'static str>,
        start: u64,
        bytes: u64,
        classes: Classes,
    ) -> Result<Self> {
        let layout = layout
            .map_err(|why| Error::new(MediaErrorKind::OutOfRange, std::format!("{why}; {bytes} bytes at {start}")))?;
        if layout.area_end() > pmem.length() {
            let detail = std::format!("the area ends at {}, the memory at {}", layout.area_end(), pmem.length());
            return Err(Error::new(MediaErrorKind::OutOfRange, detail));
        }
        let (table, holder_word) = (Table::new(pmem, layout, classes), lock::holder_word(0, 0));
        Ok(Self { table, lease: 0, member: 0, holder_word, has_joined: false, judge: None })
    }

    /// The memory.
    pub const fn pmem(&self) -> &P {
        &self.table.pmem
    }

    /// Makes everything free: the format, and the begin of a recovery. Nobody else may use the area
    /// meanwhile.
    pub fn reset(&self) {
        let (at, bytes) = self.table.layout.tables();
        self.table.pmem.zero(at, bytes);
        self.table.tile_free();
    }

    /// Makes a block that a recovery found live: `bytes` as once requested or rounded up. It
    /// belongs to the device and is published.
    ///
    /// # Errors
    /// If there can be no such block, or it has an owner already; nothing changes then. Any numbers
    /// are allowed.
    pub fn claim(&self, at: u64, bytes: u64) -> core::result::Result<(), Claim> {
        let _guard = self.lock();
        self.table.claim(at, bytes)
    }

    /// A block of at least `bytes`, if there is room. Its first 8 bytes are zero, the others are
    /// what they were.
    pub fn allocate(&self, bytes: u64) -> Option<u64> {
        let table = &self.table;
        let _guard = self.lock();
        match table.classes.of(bytes) {
            Some(class) => {
                let mut block = None;
                table.allocate_small(class, self.lease, 1, |at| block = Some(at));
                block.inspect(|at| table.pmem.store(*at, 0))
            }
            None => table
                .allocate_run(table.layout.chunks_for(bytes), self.lease)
                .map(|chunk| table.layout.address_of(chunk)),
        }
    }

    /// The block that begins at an address; the lock is held.
    fn place(&self, at: u64) -> core::result::Result<BlockPlace, Misuse> {
        let table = &self.table;
        let chunk = table.layout.chunk_of(at).ok_or(Misuse::OutOfArea)?;
        let offset = at - table.layout.address_of(chunk);
        let entry = table.entry(chunk);
        match entry.state() {
            Some(State::Small) => {
                let index = table.classes.get(entry.value() as usize).begins(offset).ok_or(Misuse::Wild)?;
                let allocated = table.is_allocated(chunk, index);
                if allocated { Ok(BlockPlace::Small(chunk, entry, index)) } else { Err(Misuse::DoubleFree) }
            }
            Some(State::Head) if offset == 0 && entry.cached() => Err(Misuse::DoubleFree),
            Some(State::Head) if offset == 0 => Ok(BlockPlace::Run(chunk)),
            Some(State::Free) if table.piece_of(chunk).1.is(State::Free) => Err(Misuse::DoubleFree),
            Some(State::Head | State::Further | State::Free) | None => Err(Misuse::Wild),
        }
    }

    /// Releases the block of `bytes` (as requested or rounded up) at `at`, published or not.
    ///
    /// # Panics
    /// In debug builds if there is no such block; release builds leave everything as it is then.
    pub fn release(&self, at: u64, bytes: u64) {
        let _guard = self.lock();
        let released = self.place(at).map(|place| {
            let size = self.size_of(&place);
            debug_assert_eq!(self.usable_bytes(bytes), size, "the block at {at:#x} has another size");
            self.release_place(&place);
        });
        debug_assert_eq!(released, Ok(()), "no block at {at:#x} can be released");
    }

    /// Releases the block at `at` if it is one and not published.
    ///
    /// # Errors
    /// What is wrong with the address; nothing changes then.
    pub fn try_release(&self, at: u64) -> core::result::Result<(), Misuse> {
        let _guard = self.lock();
        let place = self.place(at)?;
        if self.lease != 0 && self.is_place_published(&place) {
            return Err(Misuse::Published);
        }
        self.release_place(&place);
        Ok(())
    }

    fn size_of(&self, place: &BlockPlace) -> u64 {
        match place {
            BlockPlace::Small(_, entry, _) => u64::from(self.table.classes.get(entry.value() as usize).bytes),
            BlockPlace::Run(chunk) => self.table.entry(*chunk).value() << self.table.layout.chunk_shift,
        }
    }

    fn is_place_published(&self, place: &BlockPlace) -> bool {
        match place {
            BlockPlace::Small(chunk, _, index) => self.table.is_published(*chunk, *index),
            BlockPlace::Run(chunk) => self.table.entry(*chunk).published(),
        }
    }

    fn release_place(&self, place: &BlockPlace) {
        match place {
            BlockPlace::Small(chunk, entry, index) => self.table.release_small(*chunk, *entry, *index),
            BlockPlace::Run(chunk) => self.table.release_run(*chunk),
        }
    }

    /// Releases whole chunks at either end or in the middle of a block of whole chunks; what lies
    /// behind them becomes a block of its own.
    ///
    /// # Panics
    /// In debug builds if this is no run of chunks within one block; release builds leave
    /// everything as it is then.
    pub fn release_part(&self, at: u64, bytes: u64) {
        let table = &self.table;
        let _guard = self.lock();
        let chunk_bytes = table.layout.chunk_bytes();
        let part = table.layout.chunk_of(at).filter(|_| bytes > 0).and_then(|from| {
            let to = from + bytes / chunk_bytes;
            let owner = self.owner_of(from)?;
            let whole = at == table.layout.address_of(from) && bytes.is_multiple_of(chunk_bytes);
            (whole && to <= owner + table.entry(owner).value()).then_some((owner, from, to))
        });
        debug_assert!(part.is_some(), "no part of a block: {bytes} bytes at {at:#x}");
        if let Some((owner, from, to)) = part {
            table.release_run_part(owner, from, to);
        }
    }

    /// The head of the block of whole chunks that a chunk lies in.
    fn owner_of(&self, chunk: u64) -> Option<u64> {
        let table = &self.table;
        let (first, entry) = table.piece_of(chunk);
        let owner = match entry.state()? {
            State::Head => first,
            State::Further => first.checked_sub(entry.value())?,
            State::Free | State::Small => return None,
        };
        let head = table.entry(owner);
        (head.is(State::Head) && !head.cached() && chunk - owner < head.value()).then_some(owner)
    }

    /// Lengthens the block of `bytes` at `at` to `new_bytes` where it is, if it has the room or
    /// what is behind it is free.
    pub fn try_extend(&self, at: u64, bytes: u64, new_bytes: u64) -> bool {
        if self.usable_bytes(new_bytes) <= self.usable_bytes(bytes) {
            return true;
        }
        let _guard = self.lock();
        match self.place(at) {
            Ok(BlockPlace::Run(chunk)) => self.table.extend_run(chunk, self.table.layout.chunks_for(new_bytes)),
            Ok(BlockPlace::Small(..)) | Err(_) => false,
        }
    }

    /// What a request is rounded up to.
    pub fn usable_bytes(&self, bytes: u64) -> u64 {
        match self.table.classes.of(bytes) {
            Some(class) => u64::from(self.table.classes.get(class).bytes),
            None => self.table.layout.chunks_for(bytes).saturating_mul(self.table.layout.chunk_bytes()),
        }
    }

    fn find_block(&self, address: u64) -> Option<(u64, u64)> {
        let table = &self.table;
        let chunk = table.layout.chunk_of(address)?;
        let entry = table.entry(chunk);
        let start = table.layout.address_of(chunk);
        if entry.is(State::Small) {
            let class = table.classes.get(entry.value() as usize);
            let index = class.index(address - start);
            let live = index < u64::from(class.blocks) && table.is_allocated(chunk, index);
            return live.then(|| (start + index * u64::from(class.bytes), u64::from(class.bytes)));
        }
        let owner = self.owner_of(chunk)?;
        Some((table.layout.address_of(owner), table.entry(owner).value() << table.layout.chunk_shift))
    }

    /// Start and size of the live block that an address lies in. One smaller than a chunk in the
    /// cache of a thread counts as live.
    pub fn block_of(&self, address: u64) -> Option<(u64, u64)> {
        self.find_block(address).or_else(|| {
            // Another thread may have been at it just now.
            let _guard = self.lock();
            self.find_block(address)
        })
    }

    /// Makes the block that begins at `at` one that outlives the lease under which it was handed
    /// out.
    ///
    /// # Errors
    /// If there is no such block.
    pub fn publish(&self, at: u64) -> core::result::Result<(), Misuse> {
        let _guard = self.lock();
        self.publish_place(&self.place(at)?);
        Ok(())
    }

    /// With the lock held.
    fn publish_place(&self, place: &BlockPlace) {
        match *place {
            BlockPlace::Small(chunk, _, index) => self.table.set_published(chunk, index, true),
            BlockPlace::Run(chunk) => self.table.set_entry(chunk, self.table.entry(chunk).with_published(true)),
        }
    }

    /// Publishes the block that begins at `at` if nobody has published it and `accepts` its bytes;
    /// whether it did.
    ///
    /// # Errors
    /// If there is no such block.
    pub fn publish_if(&self, at: u64, accepts: impl FnOnce(u64) -> bool) -> core::result::Result<bool, Misuse> {
        let _guard = self.lock();
        let place = self.place(at)?;
        if self.is_place_published(&place) || !accepts(self.size_of(&place)) {
            return Ok(false);
        }
        self.publish_place(&place);
        Ok(true)
    }

    /// Makes a published block volatile again, so that it dies with the own lease. `false` if it
    /// stays as it is: a block smaller than a chunk among volatile ones of another lease, whose
    /// sweep would free it. Such a block is released or copied instead.
    ///
    /// # Errors
    /// If there is no such block.
    pub fn unpublish(&self, at: u64) -> core::result::Result<bool, Misuse> {
        let _guard = self.lock();
        match self.place(at)? {
            BlockPlace::Small(chunk, _, index) => {
                if !self.table.belongs_or_adopted(chunk, self.lease) {
                    return Ok(false);
                }
                self.table.set_published(chunk, index, false);
            }
            BlockPlace::Run(chunk) => {
                let entry = self.table.entry(chunk);
                self.table.set_entry(chunk, entry.with_published(false).with_lease(self.lease));
            }
        }
        Ok(true)
    }

    /// Whether [`unpublish`](Self::unpublish) can make the block that begins at `at` volatile.
    ///
    /// # Errors
    /// If there is no such block.
    pub fn can_unpublish(&self, at: u64) -> core::result::Result<bool, Misuse> {
        let _guard = self.lock();
        Ok(match self.place(at)? {
            BlockPlace::Small(chunk, ..) => self.table.belongs_or_adopted(chunk, self.lease),
            BlockPlace::Run(_) => true,
        })
    }

    /// Whether the block that begins at `at` is published.
    ///
    /// # Errors
    /// If there is no such block.
    pub fn is_published(&self, at: u64) -> core::result::Result<bool, Misuse> {
        let _guard = self.lock();
        Ok(self.is_place_published(&self.place(at)?))
    }

    /// Bytes that no block and no cache of a thread has.
    pub fn free_bytes(&self) -> u64 {
        let _guard = self.lock();
        self.table.free_bytes()
    }

    /// Whether there are at least `bytes` of them. Only who finds too few waits for others: while
    /// counts are made anew after the death of a process they are too low.
    pub(crate) fn has_free(&self, bytes: u64) -> bool {
        self.table.free_bytes() >= bytes || self.free_bytes() >= bytes
    }

    /// Where blocks lie.
    pub(crate) fn area(&self) -> core::ops::Range<u64> {
        self.table.layout.data..self.table.layout.end
    }

    /// Where the side tables lie.
    pub fn tables(&self) -> core::ops::Range<u64> {
        let (start, bytes) = self.table.layout.tables();
        start..start + bytes
    }

    /// Bytes of all chunks.
    pub fn capacity_bytes(&self) -> u64 {
        self.table.layout.chunks << self.table.layout.chunk_shift
    }

    /// Bytes at the ends of chunks that are too few for another block of the chunk's class. Walks
    /// over all pieces.
    pub fn unusable_bytes(&self) -> u64 {
        let table = &self.table;
        let _guard = self.lock();
        let (mut at, mut bytes) = (0, 0);
        while at < table.layout.chunks {
            let entry = table.entry(at);
            if entry.is(entry::State::Small) {
                let class = table.classes.get(entry.value() as usize);
                bytes += table.layout.chunk_bytes() - u64::from(class.bytes) * u64::from(class.blocks);
            }
            at += entry.chunks();
        }
        bytes
    }

    /// The largest block that could be had now. Walks over all pieces.
    pub fn largest_free(&self) -> u64 {
        let table = &self.table;
        let _guard = self.lock();
        let mut largest = 0;
        table.free_rows(|_, chunks| {
            largest = largest.max(chunks);
            false
        });
        if largest > 0 {
            return largest << table.layout.chunk_shift;
        }
        let classes = (0..class::CLASSES_MAX).rev();
        let first = |class: &usize| table.first(table.layout.class_head(self.lease, *class)).is_some();
        classes.into_iter().find(first).map_or(0, |class| u64::from(table.classes.get(class).bytes))
    }

    /// Bytes of the chunks that are free as a whole. Walks over all pieces.
    pub(crate) fn free_chunk_bytes(&self) -> u64 {
        let table = &self.table;
        let _guard = self.lock();
        let mut free = 0;
        table.free_rows(|_, chunks| {
            free += chunks;
            false
        });
        free << table.layout.chunk_shift
    }

    /// How many sizes of blocks smaller than a chunk there are.
    pub(crate) fn class_count(&self) -> u64 {
        (0..class::CLASSES_MAX).filter(|class| self.table.classes.get(*class).blocks > 0).count() as u64
    }

    /// Proves that table, bitmaps, lists and counts agree.
    ///
    /// # Errors
    /// The first disagreement in words.
    pub fn check(&self) -> core::result::Result<(), String> {
        let _guard = self.lock();
        self.table.check()
    }
}

impl<P: Pmem> fmt::Debug for Allocator<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocator")
            .field("layout", &self.table.layout)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

//! The device behind its lock: memory, blocks, index and log, and what is true of all of them.

use crate::commit::doubt::Doubted;
use crate::commit::mode::{Mode, Unflushed};
use crate::commit::scratch::Scratch;
use crate::index::known::Known;
use crate::index::node::{Key, NODE_BYTES, Value};
use crate::index::tree::{Nodes, Tree};
use crate::log::item::{Item, Objects, Onode};
use crate::log::{Log, Place};
use crate::medium::errors::from_media;
use crate::medium::format::{FEATURE_COPY, SUPERBLOCKS, Superblock, copy_at};
use crate::recover::loss::Losses;
use crate::share::shared::Words;
use crate::space::allocator::Allocator;
use crate::space::held::HeldBlocks;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_media::{Domain, Pmem};
use onode_object::{Error, ObjectId, Result};
use std::sync::Arc;

/// The allocator of a device's memory.
pub(crate) type Blocks<P> = Allocator<Arc<P>>;

/// What the device did since it was opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub commits: u64,
    pub fences: u64,
    pub bytes_written: u64,
    pub bytes_logged: u64,
    pub bytes_moved: u64,
    pub segments_cleaned: u64,
    pub put_in_place: u64,
}

pub(crate) struct Core<P: Pmem> {
    pub memory: Arc<P>,
    pub blocks: Blocks<P>,
    pub tree: Tree,
    pub log: Log,
    pub superblock: Superblock,
    /// Blocks that durable states still refer to.
    pub held: HeldBlocks,
    /// What a recovery would check now.
    pub doubted: Doubted,
    /// No record before this number, if it is not durable yet, has taken bytes away from an object.
    pub last_shrink: u64,
    /// The last record that put bytes in place and took bytes away, perhaps the same.
    pub last_put_and_shrink: u64,
    /// Bytes of the items in the log that still say something.
    pub live_log_bytes: u64,
    /// Lists for the next transaction, if none has them.
    pub scratch: Option<Box<Scratch>>,
    /// What content is worth.
    pub mode: Mode,
    /// Content that a sync flushes.
    pub unflushed: Unflushed,
    /// The last record that put bytes in place, or a later one.
    pub last_put: u64,
    pub next_id: u64,
    /// What this process knows of objects besides.
    pub known: Known,
    pub objects: u64,
    /// Transactions of all processes.
    pub commits: u64,
    /// How often a process died at its turn and another made everything anew.
    pub recoveries: u64,
    /// Whether anything failed, in whatever process, so that nothing may change any more: 0 or 1.
    pub failures: u64,
    /// The words as this process knows them, and how often any process changed them.
    pub left: Words,
    pub changes: u64,
    /// How often it was found that others had committed something.
    pub others_commits: u64,
    /// Another process flushed what no fence has covered yet.
    pub has_foreign: bool,
    /// Why nothing may change any more.
    pub read_only: Option<String>,
    /// What was missing or damaged when it was opened.
    pub losses: Losses,
    /// The log is read as far as it is sound: what was lost in it is consented to.
    pub salvages: bool,
    pub counters: Counters,
}

impl<P: Pmem> Nodes for Blocks<P> {
    fn allocate_node(&self) -> Option<u64> {
        self.allocate(NODE_BYTES)
    }

    fn release_node(&self, address: u64) {
        self.release(address, NODE_BYTES);
    }
}

/// What an extent counts as in the log.
pub(crate) const EXTENT_ITEM_BYTES: u64 = 16;

/// The bytes in the log that an entry of the index keeps alive.
pub(crate) const fn log_bytes(key: &Key, value: Value) -> u64 {
    if key.is_extent() { EXTENT_ITEM_BYTES } else { Place(value.0).bytes() }
}

impl<P: Pmem> Core<P> {
    pub(crate) const fn chunk_bytes(&self) -> u64 {
        self.superblock.chunk_bytes as u64
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match &self.read_only {
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why.clone())),
            None => Ok(()),
        }
    }

    /// Nothing may change any more: what is in memory may be ahead of what is durable.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        self.failures = 1;
        if self.read_only.is_none() {
            self.read_only = Some(format!("a failure before: {error}"));
        }
        error
    }

    /// Makes every record so far durable, and what was put in place before.
    pub(crate) fn fence(&mut self) -> Result<()> {
        self.counters.fences += 1;
        if std::mem::take(&mut self.has_foreign) && self.fences_are_dear() {
            // A sync takes with it only what was flushed here.
            self.memory.flush(0, self.memory.length());
        }
        if let Err(error) = self.memory.fence() {
            return Err(self.fail(from_media("making changes durable", &error)));
        }
        self.log.note_fence();
        self.log.leave_mark(&*self.memory);
        self.doubted.settle_below(&*self.memory, self.log.doubted_from);
        self.release_held();
        Ok(())
    }

    /// The item at a place of the log, which recovery or commit has verified.
    pub(crate) fn read_item<R>(&self, place: Place, object: ObjectId, with: impl FnOnce(Item<'_>) -> R) -> Result<R> {
        let mut small = [0; 256];
        let mut large = Vec::new();
        let bytes = place.bytes() as usize;
        let buffer = if bytes <= small.len() {
            &mut small[..bytes]
        } else {
            large.resize(bytes, 0);
            &mut large[..]
        };
        self.memory.read(place.address(), buffer);
        match Item::decode(&mut &*buffer, &mut Objects::only(object)) {
            Some(item) => Ok(with(item)),
            None => Err(Error::of(ErrorKind::Corrupt, object, format!("log item at byte {}", place.address()))),
        }
    }

    /// The onode at a place of the log.
    pub(crate) fn read_onode(&self, place: Place, object: ObjectId) -> Result<Onode> {
        let found = self.read_item(place, object, |item| match item {
            Item::Onode(_, onode) => Some(onode),
            _ => None,
        })?;
        let wrong = || Error::of(ErrorKind::Corrupt, object, format!("no onode at byte {}", place.address()));
        found.ok_or_else(wrong)
    }

    /// The onode of an object, and the bytes of its blocks.
    pub(crate) fn onode(&self, object: ObjectId) -> Result<(Onode, u64)> {
        self.onode_at(object).map(|(onode, _, allocated)| (onode, allocated))
    }

    /// The same with the place of its item.
    pub(crate) fn onode_at(&self, object: ObjectId) -> Result<(Onode, Place, u64)> {
        match self.tree.get(&*self.memory, Key::onode(object)) {
            Some(Value(place, allocated)) => Ok((self.read_onode(Place(place), object)?, Place(place), allocated)),
            None => Err(Error::of(ErrorKind::NotFound, object, "there is no such object")),
        }
    }

    /// Writes the superblock, durable on return.
    pub(crate) fn write_superblock(&mut self, closed: bool) -> Result<()> {
        self.superblock.generation += 1;
        self.superblock.closed = closed;
        self.superblock.session = self.log.session();
        self.superblock.tail = self.log.segments.first;
        self.superblock.tail_sequence = self.log.tail_sequence;
        self.superblock.next_id = self.next_id;
        self.superblock.accepted = self.log.fenced.min(self.log.applied);
        store_superblock(&*self.memory, &self.superblock);
        if closed {
            store_copy(&*self.memory, &self.superblock);
        }
        self.fence()?;
        self.doubted.settle_below(&*self.memory, self.superblock.accepted);
        self.release_held();
        Ok(())
    }

    /// Chunks kept back so that what frees space, and the cleaner of the log, always finish.
    pub(crate) fn reserve_bytes(&self) -> u64 {
        if is_planted(Bug::FullScmReserveIgnored) {
            return 0;
        }
        (KEPT_SEGMENTS as u64 + 2) * self.chunk_bytes() + 32 * NODE_BYTES
    }

    /// Whether a fence is a sync of a file.
    pub(crate) fn fences_are_dear(&self) -> bool {
        self.memory.domain() == Domain::Sync
    }
}

/// Writes a superblock over the older one; durable after a fence.
pub(crate) fn store_superblock<P: Pmem + ?Sized>(memory: &P, superblock: &Superblock) {
    let slot = SUPERBLOCKS[(superblock.generation % 2) as usize];
    memory.write_through(slot, &superblock.encode());
}

/// Writes the copy that lies far from both; durable after a fence.
pub(crate) fn store_copy<P: Pmem + ?Sized>(memory: &P, superblock: &Superblock) {
    if superblock.features & FEATURE_COPY != 0 {
        memory.write_through(copy_at(superblock.length), &superblock.encode());
    }
}

/// Segments of the log in store that only what frees space may use.
pub(crate) const KEPT_SEGMENTS: usize = 4;

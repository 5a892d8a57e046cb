//! The device as its users see it: the object interface, in front of the parts behind their locks.
//!
//! Every call takes the locks, asks the parts, and believes nothing that was read of a memory that
//! failed meanwhile. Nothing is decided here.

pub mod exclusive;
pub mod guard;
pub mod health;
pub mod lost;
pub mod map;
pub mod open;
pub mod options;
pub mod ranges;
pub mod share;
pub mod verify;

use crate::core::Core;
use crate::device::ranges::Ranges;
use crate::medium::slot::{inner_id, inner_transaction, outer_error, outer_id};
use crate::persist::Written;
use crate::persist::mode::Mode;
use crate::share::process_lock::ProcessLock;
use crate::share::readers::Readers;
use crate::space::allocator::Allocator;
use crate::space::blocks_of_superblock;
use crate::space::promise::space_for;
use onode_base::sync::{Mutex, rank};
use onode_media::Pmem;
use onode_object::powers::{Inspect, Inspection, MapObjects, SegmentInfo, Share};
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Health, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result,
    Space, SyncScope, Transaction,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is copied under the locks: to let go of them costs as much.
const MOST_UNDER_LOCK_BYTES: usize = 4096;

/// A device on byte-addressable memory.
pub struct ScmDevice<P: Pmem> {
    lock: ProcessLock<P>,
    core: Mutex<Core<P>, rank::MemoryState>,
    readers: Readers,
    memory: Arc<P>,
    mode: Mode,
    /// As the superblock says: whoever asks takes no lock.
    exclusive: AtomicBool,
    domain: &'static str,
    chunk_bytes: u64,
}

impl<P: Pmem> ScmDevice<P> {
    /// An allocator of blocks of the same memory, for a heap: under the lease of this process if it
    /// has [joined](Self::join), else without one.
    ///
    /// # Errors
    /// `Invalid`, which cannot be.
    pub fn blocks(&self) -> Result<Allocator<Arc<P>>> {
        let core = self.lock();
        let mut blocks = blocks_of_superblock(core.memory(), core.store().superblock())?;
        blocks.follow(self.lock.members(), false);
        Ok(blocks)
    }

    /// The memory that addresses of blocks are counted in.
    pub fn memory(&self) -> Arc<P> {
        Arc::clone(&self.memory)
    }

    /// Whether blocks, index and log agree with each other; for tests.
    ///
    /// # Errors
    /// What does not agree.
    pub fn verify(&self) -> std::result::Result<(), String> {
        let core = self.lock();
        verify::verify(core.index(), core.store())
    }

    /// Which bytes of the memory a power cut may take and which it may not; for tests.
    ///
    /// # Errors
    /// `Corrupt` if the log cannot be read.
    pub fn ranges(&self) -> Result<Ranges> {
        let core = self.lock();
        ranges::ranges(core.index(), core.store())
    }
}

impl<P: Pmem> ObjectDevice for ScmDevice<P> {
    fn info(&self) -> DeviceInfo {
        let core = self.lock();
        let superblock = core.store().superblock();
        let (length, chunk) = (superblock.length, superblock.chunk_bytes);
        DeviceInfo {
            kind: "scm",
            uuid: superblock.uuid,
            summary: format!(
                "memory of {} KiB, chunks of {} KiB, stores made durable by: {}{}",
                length >> 10,
                chunk >> 10,
                self.domain,
                if self.is_exclusive() { ", used by one process at a time" } else { "" }
            ),
            read_only: core.store().latch().why().map(str::to_owned),
            transaction_bytes: (length / 8).clamp(64 << 10, 8 << 20) as usize,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.lock_sound()?;
        core.store().latch().check()?;
        core.store_mut().reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let transaction = inner_transaction(transaction);
        self.lock_sound()?.commit(&transaction, durability).map_err(outer_error)
    }

    fn check_commit(&self, transaction: &Transaction) -> Result<()> {
        let transaction = inner_transaction(transaction.clone());
        self.lock_sound()?.check_commit(&transaction).map_err(outer_error)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        let mut core = self.lock_sound()?;
        if core.store().latch().why().is_some() || !core.store().has_unsynced() {
            return core.store().latch().check();
        }
        core.store_mut().sync()
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let object = inner_id(object);
        let core = self.lock_sound()?;
        let plan = self.believe(core.index().plan_read(object, offset, buffer.len()))?;
        if plan.bytes() <= MOST_UNDER_LOCK_BYTES || !core.ends() {
            plan.copy(&*self.memory, buffer);
            return self.believe(Ok(plan.bytes()));
        }
        let reading = self.readers.begin(&*self.memory);
        drop(core);
        plan.copy(&*self.memory, buffer);
        if reading.end(&*self.memory) {
            return self.believe(Ok(plan.bytes()));
        }
        // Another process changed something meanwhile.
        let core = self.lock_sound()?;
        let plan = self.believe(core.index().plan_read(object, offset, buffer.len()))?;
        plan.copy(&*self.memory, buffer);
        self.believe(Ok(plan.bytes()))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let found = self.lock_sound()?.index().attribute(inner_id(object), key);
        self.believe(found)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let found = self.lock_sound()?.index().attributes(inner_id(object), from, limit);
        self.believe(found)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let found = self.lock_sound()?.index().onode(inner_id(object));
        let (onode, allocated) = self.believe(found)?;
        Ok(ObjectStat { size: onode.size, allocated, hints: onode.hints, accessed: onode.accessed })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        // A version that there cannot be has those behind it that there can.
        let from = if from.is_version() && inner_id(from) == ObjectId(0) { ObjectId(u64::MAX) } else { inner_id(from) };
        let found = self.lock_sound()?.index().list(from, limit);
        self.believe(Ok(found.into_iter().map(outer_id).collect()))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let found = self.lock_sound()?.index().shown_extents(inner_id(object), offset, limit);
        self.believe(found)
    }

    /// Blocks are larger than what is written, and set aside ahead of it.
    fn extents_are_exact(&self) -> bool {
        false
    }

    fn space(&self) -> Space {
        self.lock().room()
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        space_for(demand, self.chunk_bytes)
    }

    fn promisable(&self) -> u64 {
        let core = self.lock();
        // Where others make files, too, nothing is kept back, and their blocks cannot be set aside.
        if self.lock.members().has_others() { core.room().available } else { core.store().promisable() }
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.lock_sound()?.maintain(budget)
    }

    fn close(&self) -> Result<()> {
        let mut core = self.lock_sound()?;
        if core.store().latch().why().is_some() {
            return Ok(());
        }
        core.store_mut().sync()?;
        core.sweep_dead();
        if self.lock.members().has_others() {
            return Ok(());
        }
        core.store_mut().write_superblock(true)
    }

    fn health(&self) -> Health {
        match self.condition_of_memory() {
            // To ask the index is to touch the memory.
            Some(condition) => Health::new(vec![condition]),
            None => health::health(&self.lock()),
        }
    }

    fn map_objects(&self) -> Option<&dyn MapObjects> {
        (!self.is_exclusive()).then_some(self as &dyn MapObjects)
    }

    fn share(&self) -> Option<&dyn Share> {
        (self.lock.members().member() != 0).then_some(self as &dyn Share)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

impl<P: Pmem> Inspect for ScmDevice<P> {
    fn counters(&self) -> Vec<(String, u64)> {
        let core = self.lock();
        let store = core.store();
        let Written { commits, fences, content_bytes, log_bytes, put_in_place } = store.written();
        [
            ("commits", commits),
            ("fences", fences),
            ("bytes_written", content_bytes),
            ("bytes_logged", log_bytes),
            ("bytes_put_in_place", put_in_place),
            ("bytes_moved", core.cleaner().bytes_moved()),
            ("segments_cleaned", core.cleaner().segments_cleaned()),
            ("log_bytes", store.log().bytes()),
            ("log_bytes_needed", store.log().live_bytes()),
            ("index_bytes", core.index().bytes()),
            ("free_bytes", store.blocks().free_bytes()),
            ("capacity_bytes", store.blocks().capacity_bytes()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn inspection(&self) -> Inspection {
        let core = self.lock();
        let written = core.store().written();
        Inspection {
            bytes_written: written.content_bytes + written.put_in_place,
            bytes_moved: core.cleaner().bytes_moved(),
            segments_cleaned: core.cleaner().segments_cleaned(),
            ..Inspection::default()
        }
    }
}

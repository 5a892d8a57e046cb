//! The object device: the core behind a lock.

pub mod health;
pub mod open;
pub mod ranges;

use crate::commit::mode::Mode;
use crate::commit::slot::{FIRST_TABLE, first_slot, words_of};
use crate::core::{Core, Counters};
use crate::device::open::blocks_of_superblock;
use crate::device::ranges::Ranges;
use crate::index::node::{Key, Value};
use crate::log::Place;
use crate::log::item::{Item, Onode};
use crate::share::turn::{Guard, Turn};
use crate::space::allocator::Allocator;
use crate::space::promise::space_for;
use onode_base::ErrorKind;
use onode_base::sync::Mutex;
use onode_media::Pmem;
use onode_object::powers::{Inspect, Inspection, MapObjects, SegmentInfo, Share};
use onode_object::validate;
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Error, Health, Maintenance, ObjectDevice, ObjectId, ObjectStat,
    Result, Space, SyncScope, Transaction,
};
use std::sync::Arc;

/// How to make a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions {
    /// Its unique number.
    pub uuid: [u8; 16],
    /// Bytes of a chunk of the allocator and of a segment of the log, a power of two from 4 KiB to
    /// 64 KiB; by the size of the memory if `None`.
    pub chunk_bytes: Option<u32>,
    /// What content is worth until it is opened the next time.
    pub mode: Mode,
}

/// How to open a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountOptions {
    /// Accept no changes. The memory is written to all the same, because the index lives in it;
    /// hand in a private copy.
    pub read_only: bool,
    /// Mount although the medium holds less than was promised; otherwise that is refused as `Loss`,
    /// and nothing is changed.
    pub accept_loss: bool,
    /// What content is worth.
    pub mode: Mode,
}

/// A device on byte-addressable memory.
pub struct ScmDevice<P: Pmem> {
    pub(crate) turn: Turn<P>,
    pub(crate) core: Mutex<Core<P>>,
    pub(crate) memory: Arc<P>,
    pub(crate) mode: Mode,
    pub(crate) domain: &'static str,
    pub(crate) chunk_bytes: u64,
}

impl<P: Pmem> ScmDevice<P> {
    /// The device, when it is this thread's turn.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, P, impl std::ops::DerefMut<Target = Core<P>> + '_> {
        if self.turn.is_mine() {
            return Guard::new(self.core.lock(), &self.turn, false);
        }
        let broken = self.turn.take();
        let mut core = self.core.lock();
        if self.memory.failure().is_none() {
            core.arrive(broken);
        }
        Guard::new(core, &self.turn, true)
    }

    /// An allocator of blocks of the same memory, for a heap: under the lease of this process if it
    /// has [joined](Self::join), else without one.
    ///
    /// # Errors
    /// `Invalid`, which cannot be.
    pub fn blocks(&self) -> Result<Allocator<Arc<P>>> {
        let core = self.lock();
        let mut blocks = blocks_of_superblock(&core.memory, &core.superblock)?;
        blocks.follow(&self.turn.members, false);
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
        self.lock().verify()
    }

    /// Which bytes of the memory a power cut may take and which it may not; for tests.
    ///
    /// # Errors
    /// `Corrupt` if the log cannot be read.
    pub fn ranges(&self) -> Result<Ranges> {
        self.lock().ranges()
    }
}

impl<P: Pmem> Core<P> {
    pub(crate) fn find_onode(&self, object: ObjectId) -> Result<Option<(Onode, u64)>> {
        match self.onode(object) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn require(&self, object: ObjectId) -> Result<()> {
        match self.tree.get(&*self.memory, Key::onode(object)) {
            Some(_) => Ok(()),
            None => Err(Error::of(ErrorKind::NotFound, object, "there is no such object")),
        }
    }

    fn value_at(&self, place: Place, object: ObjectId) -> Result<Vec<u8>> {
        let value = self.read_item(place, object, |item| match item {
            Item::Attribute(_, _, value) => Some(value.to_vec()),
            _ => None,
        })?;
        value.ok_or_else(|| Error::of(ErrorKind::Corrupt, object, format!("no attribute at byte {}", place.address())))
    }

    pub(crate) fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        match self.tree.get(&*self.memory, Key::attribute(object, key)) {
            Some(Value(place, _)) => self.value_at(Place(place), object).map(Some),
            None => Ok(None),
        }
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let (onode, _) = self.onode(object)?;
        let count = usize::try_from(onode.size.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let end = offset + count as u64;
        let mut at = offset;
        while at < end {
            let rest = &mut buffer[(at - offset) as usize..count];
            match self.extent_at(object, at).filter(|extent| extent.offset < end) {
                Some(extent) if extent.offset <= at => {
                    let part = rest.len().min((extent.end() - at) as usize);
                    self.memory.read(extent.address + (at - extent.offset), &mut rest[..part]);
                    at += part as u64;
                }
                next => {
                    let hole_end = next.map_or(end, |extent| extent.offset);
                    rest[..(hole_end - at) as usize].fill(0);
                    at = hole_end;
                }
            }
        }
        Ok(count)
    }

    pub(crate) fn space(&self) -> Space {
        let held: u64 = self.held.iter(&*self.memory).map(|held| held.bytes).sum();
        let kept = self.reserve_bytes() + (2 + self.segments_to_overwrite()) * self.chunk_bytes();
        let free = self.blocks.free_bytes() + held + self.log_surplus_bytes();
        // Nodes of the index, records and what allocation loses by rounding.
        let usable = |bytes: u64, kept: u64| bytes.saturating_sub(kept) / 256 * 254;
        let total = usable(self.blocks.capacity_bytes(), kept);
        let available = usable(free, self.reserve_bytes() + 2 * self.chunk_bytes() + self.log_shortage_bytes());
        Space { total, available: available.min(total), objects: self.objects }
    }

    fn verify(&self) -> std::result::Result<(), String> {
        self.blocks.check()?;
        let (mut objects, mut live) = (0, 0);
        let mut entries = Vec::new();
        self.tree.scan(&*self.memory, Key::FIRST, |key, value| {
            entries.push((key, value));
            true
        });
        let mut mapped = 0;
        for (key, value) in &entries {
            objects += u64::from(key.is_onode() && key.object < FIRST_TABLE);
            live += crate::core::log_bytes(key, *value);
            if key.is_extent() {
                mapped += self.blocks.usable_bytes(value.1);
                if key.object >= FIRST_TABLE {
                    let blocks = words_of(&*self.memory, value.0, first_slot(key.index));
                    let blocks = blocks.filter_map(|(_, word)| word.block(self.chunk_bytes()));
                    mapped += blocks.map(|(_, length)| self.blocks.usable_bytes(length)).sum::<u64>();
                }
            }
        }
        if objects != self.objects {
            return Err(format!("{objects} objects are in the index, {} are counted", self.objects));
        }
        if live != self.live_log_bytes {
            return Err(format!("{live} bytes of the log are needed, {} are counted", self.live_log_bytes));
        }
        let held: u64 = self.held.iter(&*self.memory).map(|held| self.blocks.usable_bytes(held.bytes)).sum();
        let used = mapped + held + self.log.bytes() + self.tree.bytes();
        let free = self.blocks.free_bytes() + self.blocks.unusable_bytes();
        let capacity = self.blocks.capacity_bytes();
        if used + free != capacity {
            return Err(format!(
                "{mapped} bytes mapped, {held} held, {} of the log, {} of the index and {free} free are not {capacity}",
                self.log.bytes(),
                self.tree.bytes(),
            ));
        }
        Ok(())
    }
}

impl<P: Pmem> ObjectDevice for ScmDevice<P> {
    fn info(&self) -> DeviceInfo {
        let core = self.lock();
        let (length, chunk) = (core.superblock.length, core.superblock.chunk_bytes);
        DeviceInfo {
            kind: "scm",
            uuid: core.superblock.uuid,
            summary: format!(
                "memory of {} KiB, chunks of {} KiB, stores made durable by: {}",
                length >> 10,
                chunk >> 10,
                self.domain
            ),
            read_only: core.read_only.clone(),
            transaction_bytes: (length / 8).clamp(64 << 10, 8 << 20) as usize,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        let (first, next) = validate::reserve(ObjectId(core.next_id), count)?;
        core.next_id = next.0;
        Ok(first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.lock_sound()?.commit(&transaction, durability)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        let mut core = self.lock_sound()?;
        if core.read_only.is_some() || core.log.fenced == core.log.sequence && core.unflushed.is_empty() {
            return core.check_writable();
        }
        core.flush_content();
        core.fence()
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = self.lock_sound()?.read(object, offset, buffer);
        self.believe(read)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let core = self.lock_sound()?;
        self.believe(match core.tree.get_or_neighbour(&*core.memory, Key::attribute(object, key)) {
            Ok(Value(place, _)) => core.value_at(Place(place), object).map(Some),
            // What has entries is there.
            Err(true) => Ok(None),
            Err(false) => core.require(object).map(|()| None),
        })
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let core = self.lock_sound()?;
        self.believe(core.require(object))?;
        let mut places = Vec::new();
        if limit > 0 {
            core.tree.scan(&*core.memory, Key::attribute(object, from), |key, value| {
                let attribute = key.as_attribute().filter(|_| key.object() == object);
                places.extend(attribute.map(|attribute| (attribute, Place(value.0))));
                attribute.is_some() && places.len() < limit
            });
        }
        self.believe(places.into_iter().map(|(key, place)| Ok((key, core.value_at(place, object)?))).collect())
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let found = self.lock_sound()?.onode(object);
        let (onode, allocated) = self.believe(found)?;
        Ok(ObjectStat { size: onode.size, allocated, hints: onode.hints, accessed: onode.accessed })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let core = self.lock_sound()?;
        let mut found = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next.filter(|_| found.len() < limit) {
            next = None;
            core.tree.scan(&*core.memory, Key::onode(from), |key, _| {
                if key.object < FIRST_TABLE {
                    found.push(key.object());
                    next = Some(ObjectId(key.object + 1));
                }
                false
            });
        }
        self.believe(Ok(found))
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let core = self.lock_sound()?;
        let (onode, _) = self.believe(core.onode(object))?;
        let mut found = Vec::new();
        let mut at = offset;
        while found.len() < limit && at < onode.size {
            let Some(extent) = core.extent_at(object, at).filter(|extent| extent.offset < onode.size) else { break };
            let start = extent.offset.max(at);
            found.push((start, extent.end().min(onode.size) - start));
            at = extent.end();
        }
        self.believe(Ok(found))
    }

    fn space(&self) -> Space {
        self.lock().space()
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        space_for(demand, self.chunk_bytes)
    }

    fn promisable(&self) -> u64 {
        let core = self.lock();
        // Where others make files, too, nothing is kept back, and their blocks cannot be set aside.
        if self.turn.members.has_others() { core.space().available } else { core.promisable() }
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        let mut core = self.lock_sound()?;
        core.check_writable()?;
        core.sweep_dead();
        // Nobody waits now, and a heap may be short of what transactions gave up.
        if budget > 0 && !core.held.is_empty() {
            core.release_all_held()?;
        }
        let mut done = 0;
        while done < budget && core.log_surplus_bytes() > 4 * core.chunk_bytes() && core.clean_segment()? {
            done += 1;
        }
        Ok(Maintenance { done, more: done == budget && budget > 0 })
    }

    fn close(&self) -> Result<()> {
        let mut core = self.lock_sound()?;
        if core.read_only.is_some() {
            return Ok(());
        }
        core.flush_content();
        core.fence()?;
        core.sweep_dead();
        if self.turn.members.has_others() {
            return Ok(());
        }
        core.write_superblock(true)
    }

    fn health(&self) -> Health {
        match self.condition_of_memory() {
            // To ask the index is to touch the memory.
            Some(condition) => Health { conditions: vec![condition] },
            None => self.lock().health(),
        }
    }

    fn map_objects(&self) -> Option<&dyn MapObjects> {
        Some(self)
    }

    fn share(&self) -> Option<&dyn Share> {
        (self.turn.members.member() != 0).then_some(self as &dyn Share)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

impl<P: Pmem> Inspect for ScmDevice<P> {
    fn counters(&self) -> Vec<(String, u64)> {
        let core = self.lock();
        let Counters { commits, fences, bytes_written, bytes_logged, bytes_moved, segments_cleaned, put_in_place } =
            core.counters;
        [
            ("commits", commits),
            ("fences", fences),
            ("bytes_written", bytes_written),
            ("bytes_logged", bytes_logged),
            ("bytes_put_in_place", put_in_place),
            ("bytes_moved", bytes_moved),
            ("segments_cleaned", segments_cleaned),
            ("log_bytes", core.log.bytes()),
            ("log_bytes_needed", core.live_log_bytes),
            ("index_bytes", core.tree.bytes()),
            ("free_bytes", core.blocks.free_bytes()),
            ("capacity_bytes", core.blocks.capacity_bytes()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn segments(&self) -> Vec<SegmentInfo> {
        Vec::new()
    }

    fn inspection(&self) -> Inspection {
        let core = self.lock();
        Inspection {
            bytes_written: core.counters.bytes_written + core.counters.put_in_place,
            bytes_moved: core.counters.bytes_moved,
            segments_cleaned: core.counters.segments_cleaned,
            ..Inspection::default()
        }
    }
}

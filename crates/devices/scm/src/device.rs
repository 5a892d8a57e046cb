//! The object device: the core behind a lock.

use crate::allocator::Allocator;
use crate::core::{Core, Counters, KEPT_SEGMENTS, store_superblock};
use crate::doubt::Doubted;
use crate::errors::{damaged, from_media, no_space};
use crate::format::{AREA_START, FORMAT_VERSION, NoSuperblock, SMALLEST_BYTES, SUPERBLOCKS, Superblock, salt_of};
use crate::item::{Item, Onode};
use crate::log::{Log, Place, Start};
use crate::node::{Key, Value};
use crate::ranges::Ranges;
use crate::recover::{claim, recover};
use crate::tree::Tree;
use onode_base::ErrorKind;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::Mutex;
use onode_media::Pmem;
use onode_object::powers::{Inspect, Inspection, MapObjects, SegmentInfo};
use onode_object::validate;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result, Space,
    SyncScope, Transaction,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// How to make a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormatOptions {
    /// Its unique number.
    pub uuid: [u8; 16],
    /// Bytes of a chunk of the allocator and of a segment of the log, a power of two from 4 KiB to 64 KiB; by the size of
    /// the memory if `None`.
    pub chunk_bytes: Option<u32>,
}

/// How to open a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct MountOptions {
    /// Accept no changes. The memory is written to all the same, because the index lives in it; hand in a private copy.
    pub read_only: bool,
}

/// A device on byte-addressable memory.
pub struct ScmDevice<P: Pmem> {
    core: Mutex<Core<P>>,
    domain: &'static str,
}

const fn usual_chunk_bytes(length: u64) -> u32 {
    if length < 4 << 20 {
        4 << 10
    } else if length < 64 << 20 {
        16 << 10
    } else {
        64 << 10
    }
}

/// Bytes of the blocks and their tables on a memory of `length`.
const fn area_bytes(length: u64, chunk: u64) -> u64 {
    length.saturating_sub(AREA_START) / chunk * chunk
}

fn blocks_of<P: Pmem>(memory: &Arc<P>, made_length: u64, length: u64, chunk_bytes: u32) -> Result<Allocator<Arc<P>>> {
    let chunk = u64::from(chunk_bytes);
    if !chunk_bytes.is_power_of_two() || !(4096..=65536).contains(&chunk_bytes) || length < SMALLEST_BYTES {
        let detail = format!("a memory of {length} bytes with chunks of {chunk_bytes}");
        return Err(Error::new(ErrorKind::Invalid, detail));
    }
    let (made_bytes, bytes) = (area_bytes(made_length, chunk), area_bytes(length, chunk));
    let blocks = Allocator::attach_grown(Arc::clone(memory), AREA_START, made_bytes, bytes, chunk);
    blocks.map_err(|error| from_media("blocks", &error))
}

impl<P: Pmem> ScmDevice<P> {
    /// Makes an empty device on `memory`; what was there is gone.
    ///
    /// # Errors
    /// `Invalid` for a memory that is too small; `Media`.
    pub fn format(memory: P, options: &FormatOptions) -> Result<Self> {
        let memory = Arc::new(memory);
        let length = memory.length();
        let chunk_bytes = options.chunk_bytes.unwrap_or(usual_chunk_bytes(length));
        let blocks = blocks_of(&memory, length, length, chunk_bytes)?;
        for slot in SUPERBLOCKS {
            memory.write_through(slot, &[0; Superblock::BYTES]);
        }
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        blocks.reset();
        let chunk = u64::from(chunk_bytes);
        let mut chunks = Vec::new();
        for _ in 0..KEPT_SEGMENTS + 2 {
            chunks.push(blocks.allocate(chunk).ok_or_else(|| no_space("the memory is too small for a log"))?);
        }
        let tree = Tree::new(&*memory, &blocks)?;
        let superblock = Superblock {
            generation: 0,
            uuid: options.uuid,
            length,
            made_length: length,
            chunk_bytes,
            closed: false,
            session: 1,
            tail: 0,
            tail_sequence: 1,
            next_id: ObjectId::FIRST_FREE.0,
            accepted: 0,
        };
        let first = chunks.pop().unwrap_or_default();
        let start = Start {
            salt: salt_of(&options.uuid),
            session: 1,
            segment_bytes: chunk,
            tail_sequence: 1,
            first,
            sequence: 1,
        };
        let log = Log::start(&*memory, &start, VecDeque::new(), chunks);
        let log = log.ok_or_else(|| no_space("the memory is too small for a log"))?;
        memory.fence().map_err(|error| from_media("making the device", &error))?;
        Self::ready(memory, blocks, tree, log, superblock, |core| {
            core.write_superblock(false)?;
            core.write_superblock(false)
        })
    }

    /// Opens the device on `memory`, after whatever happened to it. If the memory is longer than it was, so is the device
    /// from now on; a read-only mount leaves that to the next.
    ///
    /// # Errors
    /// `Invalid` if there is none, or one of a newer format; `Corrupt` if what it needs is damaged; `Media`.
    pub fn mount(memory: P, options: &MountOptions) -> Result<Self> {
        let memory = Arc::new(memory);
        let mut superblock = newest_superblock(&*memory)?;
        if superblock.length > memory.length() {
            let (length, there) = (superblock.length, memory.length());
            return Err(damaged(format!("the device has {length} bytes, the memory only {there}: it was cut short")));
        }
        let mut blocks = blocks_of(&memory, superblock.made_length, superblock.length, superblock.chunk_bytes)?;
        if !options.read_only && superblock.length < memory.length() {
            // What is added is free, and what is there stays where it is. Less than the tables need is no gain.
            let longer = blocks_of(&memory, superblock.made_length, memory.length(), superblock.chunk_bytes)?;
            if longer.capacity_bytes() > blocks.capacity_bytes() {
                superblock.length = memory.length();
                blocks = longer;
            }
        }
        let chunk = u64::from(superblock.chunk_bytes);
        let area_end = AREA_START + area_bytes(superblock.length, chunk);
        let recovered = recover(&*memory, &superblock, AREA_START..area_end, options.read_only)?;
        let next = recovered.scan.segments.last().map_or(0, |(_, head)| head.next);
        superblock.session += u64::from(!is_planted(Bug::ScmSessionNotCounted));
        if !options.read_only {
            // What the last records stand for is there now and need not stay as it is. Whatever is written from here on,
            // be it a node of the index, may take its place.
            superblock.generation += 1;
            superblock.closed = false;
            superblock.next_id = recovered.next_id;
            superblock.accepted = recovered.scan.end();
            store_superblock(&*memory, &superblock);
            memory.fence().map_err(|error| from_media("recovering", &error))?;
        }
        blocks.reset();
        claim(&blocks, &recovered, next, chunk)?;
        let start = Start {
            salt: salt_of(&superblock.uuid),
            session: superblock.session,
            segment_bytes: chunk,
            tail_sequence: superblock.tail_sequence,
            first: next,
            sequence: recovered.scan.end(),
        };
        let tree = Tree::build(&*memory, &blocks, recovered.entries.iter().copied())?;
        let mut spare = Vec::new();
        while spare.len() < KEPT_SEGMENTS + 1 {
            let Some(address) = blocks.allocate(chunk) else { break };
            spare.push(address);
        }
        let segments = recovered.scan.segments.iter().map(|(address, _)| *address).collect();
        let log = Log::start(&*memory, &start, segments, spare);
        let log = log.ok_or_else(|| no_space("no room is left for the log"))?;
        Self::ready(memory, blocks, tree, log, superblock, |core| {
            core.next_id = recovered.next_id;
            core.objects = recovered.objects;
            core.live_log_bytes = recovered.live_log_bytes;
            if options.read_only {
                core.read_only = Some("it is mounted read-only".to_owned());
            }
            Ok(())
        })
    }

    fn ready(
        memory: Arc<P>,
        blocks: Allocator<Arc<P>>,
        tree: Tree,
        log: Log,
        superblock: Superblock,
        finish: impl FnOnce(&mut Core<P>) -> Result<()>,
    ) -> Result<Self> {
        let domain = memory.domain().name();
        let mut core = Core {
            memory,
            blocks,
            tree,
            log,
            superblock,
            held: VecDeque::new(),
            doubted: Doubted::default(),
            last_shrink: 0,
            last_put_and_shrink: 0,
            live_log_bytes: 0,
            next_id: superblock.next_id,
            objects: 0,
            read_only: None,
            counters: Counters::default(),
        };
        finish(&mut core)?;
        Ok(Self { core: Mutex::new(core), domain })
    }

    pub(crate) fn lock(&self) -> impl std::ops::DerefMut<Target = Core<P>> + '_ {
        self.core.lock()
    }

    /// An allocator of blocks of the same memory, for a heap. It has no lease yet.
    ///
    /// # Errors
    /// `Invalid`, which cannot be.
    pub fn blocks(&self) -> Result<Allocator<Arc<P>>> {
        let core = self.core.lock();
        let superblock = &core.superblock;
        blocks_of(&core.memory, superblock.made_length, superblock.length, superblock.chunk_bytes)
    }

    /// The memory that addresses of blocks are counted in.
    pub fn memory(&self) -> Arc<P> {
        Arc::clone(&self.core.lock().memory)
    }

    /// Whether blocks, index and log agree with each other; for tests.
    ///
    /// # Errors
    /// What does not agree.
    pub fn verify(&self) -> std::result::Result<(), String> {
        self.core.lock().verify()
    }

    /// Which bytes of the memory a power cut may take and which it may not; for tests.
    ///
    /// # Errors
    /// `Corrupt` if the log cannot be read.
    pub fn ranges(&self) -> Result<Ranges> {
        self.core.lock().ranges()
    }
}

fn newest_superblock<P: Pmem + ?Sized>(memory: &P) -> Result<Superblock> {
    let mut newest: Option<Superblock> = None;
    let mut trouble = NoSuperblock::Foreign;
    if memory.length() < SMALLEST_BYTES {
        return Err(Error::new(ErrorKind::Invalid, "there is no device on this memory"));
    }
    for slot in SUPERBLOCKS {
        let mut bytes = [0; Superblock::BYTES];
        memory.read(slot, &mut bytes);
        match Superblock::decode(&bytes) {
            Ok(found) if newest.is_none_or(|newest| found.generation > newest.generation) => newest = Some(found),
            Ok(_) | Err(NoSuperblock::Foreign) => {}
            Err(worse) => trouble = worse,
        }
    }
    match (newest, trouble) {
        (_, NoSuperblock::Newer(version)) => {
            let detail = format!("the device has format {version}, this program knows formats up to {FORMAT_VERSION}");
            Err(Error::new(ErrorKind::Invalid, detail))
        }
        (Some(newest), _) => Ok(newest),
        (None, NoSuperblock::Damaged) => Err(damaged("both superblocks are damaged")),
        (None, NoSuperblock::Foreign) => Err(Error::new(ErrorKind::Invalid, "there is no device on this memory")),
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

    fn space(&self) -> Space {
        let held: u64 = self.held.iter().map(|held| held.bytes).sum();
        let kept = self.reserve_bytes() + 2 * self.chunk_bytes();
        let free = self.blocks.free_bytes() + held + self.log_surplus_bytes();
        // Nodes of the index, records and what allocation loses by rounding.
        let usable = |bytes: u64| bytes.saturating_sub(kept) / 256 * 254;
        let total = usable(self.blocks.capacity_bytes());
        Space { total, available: usable(free).min(total), objects: self.objects }
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
            objects += u64::from(key.is_onode());
            live += crate::core::log_bytes(key, *value);
            if key.is_extent() {
                mapped += self.blocks.usable_bytes(value.1);
            }
        }
        if objects != self.objects {
            return Err(format!("{objects} objects are in the index, {} are counted", self.objects));
        }
        if live != self.live_log_bytes {
            return Err(format!("{live} bytes of the log are needed, {} are counted", self.live_log_bytes));
        }
        let held: u64 = self.held.iter().map(|held| self.blocks.usable_bytes(held.bytes)).sum();
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
        let core = self.core.lock();
        let (length, chunk) = (core.superblock.length, core.superblock.chunk_bytes);
        DeviceInfo {
            kind: "scm",
            uuid: core.superblock.uuid,
            summary: format!("memory of {length} bytes, chunks of {chunk}, stores made durable by: {}", self.domain),
            read_only: core.read_only.clone(),
            transaction_bytes: (length / 8).clamp(64 << 10, 8 << 20) as usize,
        }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        let mut core = self.core.lock();
        core.check_writable()?;
        let (first, next) = validate::reserve(ObjectId(core.next_id), count)?;
        core.next_id = next.0;
        Ok(first)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.core.lock().commit(&transaction, durability)
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        let mut core = self.core.lock();
        if core.log.fenced == core.log.sequence || core.read_only.is_some() {
            return core.check_writable();
        }
        core.fence()
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.core.lock().read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        let core = self.core.lock();
        let value = core.attribute(object, key)?;
        if value.is_none() {
            core.require(object)?;
        }
        Ok(value)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let core = self.core.lock();
        core.require(object)?;
        let mut places = Vec::new();
        if limit > 0 {
            core.tree.scan(&*core.memory, Key::attribute(object, from), |key, value| {
                let attribute = key.as_attribute().filter(|_| key.object() == object);
                places.extend(attribute.map(|attribute| (attribute, Place(value.0))));
                attribute.is_some() && places.len() < limit
            });
        }
        places.into_iter().map(|(key, place)| Ok((key, core.value_at(place, object)?))).collect()
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let (onode, allocated) = self.core.lock().onode(object)?;
        Ok(ObjectStat { size: onode.size, allocated, hints: onode.hints, accessed: onode.accessed })
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let core = self.core.lock();
        let mut found = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next.filter(|_| found.len() < limit) {
            next = None;
            core.tree.scan(&*core.memory, Key::onode(from), |key, _| {
                found.push(key.object());
                next = key.object.checked_add(1).map(ObjectId);
                false
            });
        }
        Ok(found)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        let core = self.core.lock();
        let (onode, _) = core.onode(object)?;
        let mut found = Vec::new();
        let mut at = offset;
        while found.len() < limit && at < onode.size {
            let Some(extent) = core.extent_at(object, at).filter(|extent| extent.offset < onode.size) else { break };
            let start = extent.offset.max(at);
            found.push((start, extent.end().min(onode.size) - start));
            at = extent.end();
        }
        Ok(found)
    }

    fn space(&self) -> Space {
        self.core.lock().space()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        let mut core = self.core.lock();
        core.check_writable()?;
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
        let mut core = self.core.lock();
        if core.read_only.is_some() {
            return Ok(());
        }
        core.fence()?;
        core.write_superblock(true)
    }

    fn map_objects(&self) -> Option<&dyn MapObjects> {
        Some(self)
    }

    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
}

impl<P: Pmem> Inspect for ScmDevice<P> {
    fn counters(&self) -> Vec<(String, u64)> {
        let core = self.core.lock();
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
        let core = self.core.lock();
        Inspection {
            bytes_written: core.counters.bytes_written + core.counters.put_in_place,
            bytes_moved: core.counters.bytes_moved,
            segments_cleaned: core.counters.segments_cleaned,
            ..Inspection::default()
        }
    }
}

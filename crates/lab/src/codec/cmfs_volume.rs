//! The file system of paper 3 in virtual time: a chip in the manner of YAFFS whose metadata is kept
//! in a small persistent RAM the paper's way (`metadata=cmfs`).
//!
//! Objects are coded one by one with hybrid coding, the device record with LZO. What was modified
//! is coded again every five seconds, and the validity marker tells whether that has happened since
//! the last write. A mount believes a valid RAM, recovers one that is behind by comparing the
//! sequence number of every block, and scans the chip if what it holds cannot be decoded.
//!
//! What it does not do: names, content, sizes; keep the headers of removed objects for a scan that
//! follows their cleaning, which finds old pages again; and it is no device: `flash+scm` keeps its
//! index in buckets, and the figures of the codecs say why.

use super::chip::{Chip, Operations, PAGE_BYTES, PAGES_PER_BLOCK};
use super::population::Files;
use crate::codec::compared::bytewise::ByteCoder;
use crate::codec::compared::cmfs::{Block, BlockState, Device, Hybrid, Object, ValidityMarker};
use onode_media::sim::pmem::options::PmemLatency;
use std::collections::{BTreeMap, BTreeSet};

/// Table 1 of the paper, and 25 ns for each byte on the way to a chip.
const READ_NS: u64 = 15_000;
const PROGRAM_NS: u64 = 200_000;
const ERASE_NS: u64 = 2_000_000;
const BYTE_NS: u64 = 25;
const SPARE_BYTES: u64 = 64;
/// Eighty cycles of the paper's processor (806 MHz) to code or decode a byte: an assumption.
const CODE_BYTE_NS: u64 = 100;
/// So often the RAM is brought up to date.
const UPDATE_NS: u64 = 5_000_000_000;
/// Bytes of the validity marker.
const MARKER_BYTES: u64 = 8;
const MEMORY: PmemLatency = PmemLatency::FERAM;

/// Virtual time by what it is spent on, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The chip.
    pub nand: u64,
    /// Loads from the RAM.
    pub memory_read: u64,
    /// Stores to it.
    pub memory_write: u64,
    /// Coding.
    pub coding: u64,
    /// Decoding.
    pub decoding: u64,
}

impl Spent {
    /// All of it.
    pub const fn sum(&self) -> u64 {
        self.nand + self.memory_read + self.memory_write + self.coding + self.decoding
    }
}

/// What the persistent RAM holds.
#[derive(Clone, Debug, Default)]
struct Memory {
    marker: ValidityMarker,
    /// Length before and after coding, and the bytes.
    device: (usize, Vec<u8>),
    objects: BTreeMap<u32, (usize, Vec<u8>)>,
}

/// Which way a mount went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The RAM was valid.
    Valid,
    /// It was behind: blocks that changed were scanned.
    Recovered,
    /// It could not be decoded: all blocks were.
    Scanned,
}

/// A mount.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// Which way.
    pub way: Way,
    /// What it took.
    pub spent: Spent,
    /// Blocks that were scanned.
    pub blocks: u64,
    /// Pages of the chip that were read, spare areas alone included.
    pub reads: u64,
    /// The objects by id.
    objects: BTreeMap<u32, Object>,
    /// Those of which a scanned page spoke.
    changed: BTreeSet<u32>,
}

/// The volume.
pub struct CmfsVolume {
    /// The chip.
    pub chip: Chip,
    /// Without a RAM it is the plain file system.
    memory: Option<Memory>,
    removed: BTreeSet<u32>,
    seen: Operations,
    /// Virtual time since it was made, in nanoseconds.
    pub clock: u64,
    next_update: u64,
    /// What the updates so far took.
    pub updates: Spent,
}

const fn load_ns(bytes: u64) -> u64 {
    bytes.div_ceil(MEMORY.access_bytes) * MEMORY.load_nanoseconds
}

const fn store_ns(bytes: u64) -> u64 {
    bytes.div_ceil(MEMORY.access_bytes) * MEMORY.store_nanoseconds
}

impl CmfsVolume {
    /// An empty one on `blocks` blocks; with a RAM beside them, or without as the file system that
    /// it was made from.
    pub fn new(blocks: u32, has_memory: bool) -> Self {
        let chip = Chip::new(blocks);
        let mut volume = Self {
            seen: chip.operations,
            chip,
            memory: has_memory.then(Memory::default),
            removed: BTreeSet::new(),
            clock: 0,
            next_update: UPDATE_NS,
            updates: Spent::default(),
        };
        volume.update();
        volume
    }

    /// A page was written: the RAM is behind until the next update.
    fn written(&mut self) {
        let Operations { reads, programs, erases } = self.chip.operations;
        let page_ns = PAGE_BYTES * BYTE_NS;
        self.clock += (reads - self.seen.reads) * (READ_NS + page_ns)
            + (programs - self.seen.programs) * (PROGRAM_NS + page_ns)
            + (erases - self.seen.erases) * ERASE_NS;
        let is_erased = erases != self.seen.erases;
        self.seen = self.chip.operations;
        let Some(memory) = &mut self.memory else { return };
        if memory.marker.data {
            memory.marker.data = false;
            self.clock += store_ns(MARKER_BYTES);
        }
        // The header that says that an object is gone must not be erased before the RAM knows it:
        // the paper leaves that open.
        if is_erased || self.clock >= self.next_update {
            self.update();
        }
    }

    /// Codes what was modified, as it happens every five seconds.
    pub fn update(&mut self) {
        let Some(memory) = &mut self.memory else { return };
        let mut spent = Spent::default();
        let mut store = |raw: usize, bytes: &[u8]| {
            spent.coding += raw as u64 * CODE_BYTE_NS;
            spent.memory_write += store_ns(bytes.len() as u64);
        };
        for number in std::mem::take(&mut self.removed) {
            memory.objects.remove(&number);
        }
        for number in std::mem::take(&mut self.chip.touched) {
            let Some(Some(file)) = self.chip.objects.get(number as usize) else { continue };
            if let Some(coded) = Hybrid::Plain.encode(&file.object) {
                let raw = file.object.raw_bytes();
                store(raw, &coded);
                memory.objects.insert(number, (raw, coded));
            }
        }
        let raw = Device { partition: [0; 10], blocks: self.chip.blocks.clone() }.encode();
        let coded = ByteCoder::Lzo.encode(&raw);
        store(raw.len(), &coded);
        memory.device = (raw.len(), coded);
        spent.memory_write += store_ns(MARKER_BYTES);
        memory.marker = ValidityMarker { records: true, data: true };
        self.clock += spent.sum();
        self.updates.coding += spent.coding;
        self.updates.memory_write += spent.memory_write;
        self.next_update = self.clock + UPDATE_NS;
    }

    /// The power goes, in the middle of an update if `is_torn`.
    pub fn tear(&mut self, is_torn: bool) {
        if let Some(memory) = self.memory.as_mut().filter(|_| is_torn) {
            memory.marker.records = false;
        }
    }

    /// Mounts what chip and RAM hold now, which changes neither.
    pub fn mount(&self) -> Mounted {
        let mut mounted = Mounted {
            way: Way::Scanned,
            spent: Spent { nand: READ_NS + PAGE_BYTES * BYTE_NS, ..Spent::default() },
            blocks: 0,
            // The superblock.
            reads: 1,
            objects: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        let known = self.decode(&mut mounted);
        let blocks = known.unwrap_or_else(|| vec![Block::default(); self.chip.blocks.len()]);
        if mounted.way == Way::Valid {
            return mounted;
        }
        let mut area: Vec<(u32, usize)> = Vec::new();
        for (number, (known, now)) in blocks.iter().zip(&self.chip.blocks).enumerate() {
            // The sequence number stands in every block's first page.
            mounted.read_spare();
            let is_same = known.sequence == now.sequence && known.state != BlockState::Allocating;
            if now.sequence != 0 && !is_same {
                area.push((now.sequence, number));
            }
        }
        area.sort_unstable();
        for (_, block) in area {
            mounted.scan(&self.chip, block);
        }
        self.bring_up_to_date(&mut mounted);
        mounted
    }

    /// What it takes to code what the scanned blocks changed, and the device record.
    fn bring_up_to_date(&self, mounted: &mut Mounted) {
        let changed = std::mem::take(&mut mounted.changed);
        let objects = changed.iter().filter_map(|id| mounted.objects.get(id));
        let coded = objects.filter_map(|object| Some((object.raw_bytes(), Hybrid::Plain.encode(object)?.len())));
        let raw = Device { partition: [0; 10], blocks: self.chip.blocks.clone() }.encode();
        let device = (raw.len(), ByteCoder::Lzo.encode(&raw).len());
        let (mut coding, mut memory_write) = (0, store_ns(MARKER_BYTES));
        for (raw, bytes) in coded.chain([device]) {
            coding += raw as u64 * CODE_BYTE_NS;
            memory_write += store_ns(bytes as u64);
        }
        mounted.spent.coding += coding;
        mounted.spent.memory_write += memory_write;
    }

    /// The RAM's objects and blocks, if it can be decoded.
    fn decode(&self, mounted: &mut Mounted) -> Option<Vec<Block>> {
        let memory = self.memory.as_ref()?;
        mounted.spent.memory_read += load_ns(MARKER_BYTES);
        if !memory.marker.records {
            return None;
        }
        let (raw, coded) = &memory.device;
        let mut spent = Spent::default();
        let mut load = |raw: usize, bytes: &[u8]| {
            spent.memory_read += load_ns(bytes.len() as u64);
            spent.decoding += raw as u64 * CODE_BYTE_NS;
        };
        load(*raw, coded);
        let device = Device::decode(&ByteCoder::Lzo.decode(coded, *raw)?)?;
        let mut objects = BTreeMap::new();
        for (raw, coded) in memory.objects.values() {
            load(*raw, coded);
            let object = Hybrid::Plain.decode(coded)?;
            objects.insert(object.id, object);
        }
        mounted.spent.memory_read += spent.memory_read;
        mounted.spent.decoding += spent.decoding;
        mounted.objects = objects;
        mounted.way = if memory.marker.data { Way::Valid } else { Way::Recovered };
        Some(device.blocks)
    }

    /// Whether `mounted` has exactly the objects that there are.
    pub fn agrees(&self, mounted: &Mounted) -> bool {
        let objects = self.chip.objects.iter().flatten().map(|file| &file.object).filter(|object| object.header != 0);
        let found = mounted.objects.values().filter(|object| object.header != 0);
        objects.collect::<Vec<_>>() == found.collect::<Vec<_>>()
    }
}

impl Mounted {
    const fn read_spare(&mut self) {
        self.reads += 1;
        self.spent.nand += READ_NS + SPARE_BYTES * BYTE_NS;
    }

    /// Takes over what the pages of `block` say, up to the first one that was never written.
    fn scan(&mut self, chip: &Chip, block: usize) {
        self.blocks += 1;
        let first = block * PAGES_PER_BLOCK as usize;
        let tags = chip.tags.get(first..first + PAGES_PER_BLOCK as usize).unwrap_or_default();
        for (page, tag) in (first as u32..).zip(tags) {
            self.read_spare();
            let Some(tag) = tag else {
                // Page 0 of the chip stands for none and is never written.
                if page == 0 {
                    continue;
                }
                break;
            };
            if tag.is_gone {
                self.objects.remove(&tag.id);
                continue;
            }
            self.changed.insert(tag.id);
            let object = self.objects.entry(tag.id).or_default();
            match (&tag.header, tag.chunk.checked_sub(1)) {
                (Some(header), _) => {
                    self.reads += 1;
                    self.spent.nand += READ_NS + PAGE_BYTES * BYTE_NS;
                    let pages = std::mem::take(&mut object.pages);
                    *object = Object { pages, header: page, ..header.clone() };
                }
                (None, Some(chunk)) => {
                    let chunk = chunk as usize;
                    if object.pages.len() <= chunk {
                        object.pages.resize(chunk + 1, 0);
                    }
                    object.pages[chunk] = page;
                }
                (None, None) => {}
            }
        }
    }
}

impl Files for CmfsVolume {
    fn pages(&self) -> u64 {
        self.chip.pages()
    }

    fn used(&self) -> u64 {
        self.chip.used
    }

    fn create(&mut self, parent: u32, kind: u8) -> u32 {
        let object = self.chip.create(parent, kind);
        self.written();
        object
    }

    fn look(&self, object: u32) -> (u32, u64, u64) {
        self.chip.look(object)
    }

    fn write_pages(&mut self, object: u32, page: u32, count: u32) {
        for page in page..page + count {
            self.chip.write_pages(object, page, 1);
            self.written();
        }
    }

    fn close(&mut self, object: u32, bytes: u64) {
        self.chip.close(object, bytes);
        self.written();
    }

    fn remove(&mut self, object: u32) {
        self.chip.note_removal(object);
        self.chip.remove(object);
        self.removed.insert(object);
        self.written();
    }
}

//! The media on which workloads run: small, so that a crash state costs little, and different in
//! all that a format depends on: pages of 512 bytes to 16 KiB, erase blocks of 8 to 256 pages, with
//! and without spare areas.

use onode_media::{Domain, Geometry};
use onode_object::Acknowledge;
use onode_scm::Mode;

/// A named shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Its name in replay lines.
    pub name: &'static str,
    /// The geometry.
    pub geometry: Geometry,
    /// Erase blocks of a segment, if not the default.
    pub blocks_per_segment: Option<u16>,
    /// Pages of parity in each row.
    pub parity_pages: u8,
    /// If objects choose, what those have that wish nothing.
    pub chosen_parity: Option<u8>,
}

/// A chip with pages of `page` bytes and `spare` ones, and `blocks` of so many `pages`.
const fn shape(name: &'static str, page: u32, spare: u32, pages: u32, blocks: u32) -> Shape {
    let geometry = Geometry { page_bytes: page, spare_bytes: spare, pages_per_block: pages, blocks, chips: 1 };
    Shape { name, geometry, blocks_per_segment: None, parity_pages: 0, chosen_parity: None }
}

/// Two chips, whose blocks make segments of two.
const fn two_chips() -> Shape {
    let one = shape("chips", 512, 32, 8, 128);
    Shape { blocks_per_segment: Some(2), geometry: Geometry { chips: 2, ..one.geometry }, ..one }
}

/// A chip whose segments have so many `blocks`, of which each row has `parity` pages of parity.
const fn with_parity(one: Shape, blocks: u16, parity: u8) -> Shape {
    Shape { blocks_per_segment: Some(blocks), parity_pages: parity, ..one }
}

/// A chip on which objects choose their parity; `usual` have those that wish nothing.
const fn with_choice(one: Shape, usual: u8) -> Shape {
    Shape { chosen_parity: Some(usual), ..one }
}

/// All shapes.
pub const SHAPES: [Shape; 13] = [
    shape("tiny", 512, 0, 8, 64),
    shape("spare", 512, 64, 8, 100),
    two_chips(),
    shape("nandsim", 2048, 64, 16, 64),
    shape("portable", 2048, 10, 64, 32),
    shape("wide", 4096, 0, 32, 32),
    shape("long", 512, 16, 256, 24),
    shape("large", 16384, 128, 16, 32),
    shape("huge", 16384, 0, 256, 24),
    with_parity(shape("parity", 512, 64, 4, 240), 4, 1),
    with_parity(shape("parity-bare", 512, 0, 4, 320), 5, 2),
    with_choice(with_parity(shape("parity-chosen", 512, 64, 4, 320), 5, 2), 0),
    with_choice(with_parity(shape("parity-wished", 512, 0, 4, 480), 6, 3), 1),
];

/// The shape of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<Shape> {
    SHAPES.iter().find(|shape| shape.name == name).copied()
}

/// A named shape of byte-addressable memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryShape {
    /// Its name in replay lines.
    pub name: &'static str,
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes of a chunk of the device on it.
    pub chunk_bytes: u32,
    /// What makes stores durable.
    pub domain: Domain,
    /// What content is worth.
    pub mode: Mode,
}

const fn memory(name: &'static str, bytes: u64, chunk_bytes: u32, domain: Domain) -> MemoryShape {
    MemoryShape { name, bytes, chunk_bytes, domain, mode: Mode::Atomic }
}

/// All shapes of byte-addressable memory. Where nothing is flushed a cut is the end of a process
/// and not of the power: nothing else is promised in the mode `mem`.
pub const MEMORY_SHAPES: [MemoryShape; 7] = [
    memory("scm-4k", 256 << 10, 4 << 10, Domain::Flush),
    memory("scm-16k", 1 << 20, 16 << 10, Domain::Flush),
    memory("scm-fence", 384 << 10, 4 << 10, Domain::Fence),
    memory("scm-sync", 512 << 10, 8 << 10, Domain::Sync),
    MemoryShape { mode: Mode::Sync, ..memory("scm-mode-sync", 256 << 10, 4 << 10, Domain::Flush) },
    MemoryShape { mode: Mode::Meta, ..memory("scm-mode-meta", 256 << 10, 4 << 10, Domain::Flush) },
    MemoryShape { mode: Mode::Mem, ..memory("scm-mode-mem", 256 << 10, 4 << 10, Domain::Fence) },
];

impl MemoryShape {
    /// Whether runs of this level are made on it. What a mode means for content is a matter of
    /// calls that are durable at their return; else they are the same.
    #[must_use]
    pub fn has_level(&self, level: &str) -> bool {
        self.mode == Mode::Atomic || level == "through"
    }
}

/// The shape of memory of that name.
#[must_use]
pub fn memory_by_name(name: &str) -> Option<MemoryShape> {
    MEMORY_SHAPES.iter().find(|shape| shape.name == name).copied()
}

/// A named pair of disks.
#[derive(Clone, Copy, Debug)]
pub struct DisksShape {
    /// Its name in replay lines.
    pub name: &'static str,
    /// Bytes of the big disk.
    pub big_bytes: u64,
    /// Bytes of the fast disk; 0 for none.
    pub fast_bytes: u64,
    /// Bytes of the log on each.
    pub log_bytes: u64,
    /// Bytes left out in the log of the big disk behind what was waited for.
    pub log_gap_bytes: u64,
    /// When durable commits return.
    pub acknowledge: Acknowledge,
}

/// All pairs of disks.
pub const DISKS_SHAPES: [DisksShape; 5] = [
    DisksShape {
        name: "tier-alone",
        big_bytes: 2 << 20,
        fast_bytes: 0,
        log_bytes: 128 << 10,
        log_gap_bytes: 12 << 10,
        acknowledge: Acknowledge::Safe,
    },
    TIER_SAFE,
    DisksShape { name: "tier-short-log", big_bytes: 4 << 20, log_bytes: 64 << 10, log_gap_bytes: 0, ..TIER_SAFE },
    DisksShape { name: "tier-either", acknowledge: Acknowledge::Either, ..TIER_SAFE },
    DisksShape { name: "tier-big", acknowledge: Acknowledge::Big, ..TIER_SAFE },
];

const TIER_SAFE: DisksShape = DisksShape {
    name: "tier-safe",
    big_bytes: 3 << 20,
    fast_bytes: 1 << 20,
    log_bytes: 128 << 10,
    log_gap_bytes: 8 << 10,
    acknowledge: Acknowledge::Safe,
};

/// The pair of disks of that name.
#[must_use]
pub fn disks_by_name(name: &str) -> Option<DisksShape> {
    DISKS_SHAPES.iter().find(|shape| shape.name == name).copied()
}

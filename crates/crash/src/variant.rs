//! The options under which a run works: every shape meets every set of options as seeds go by.
//!
//! A replay line names shape and seed, and with them the options.

use crate::geometry::{SHAPES, Shape};
use onode_flash::policy::{Placement, VictimPolicy, WearPolicy};
use onode_flash::{FormatOptions, MountOptions};
use onode_fs::Inodes;

/// A set of options of the flash device.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name in reports.
    pub name: &'static str,
    placement: Placement,
    victim: VictimPolicy,
    wear: WearPolicy,
    extents: bool,
    small_object_buffer: bool,
    /// Where the file system on it keeps its inodes.
    pub inodes: Inodes,
}

const USUAL: Variant = Variant {
    name: "usual",
    placement: Placement::UserCleaner,
    victim: VictimPolicy::CostBenefit,
    wear: WearPolicy::Dynamic,
    extents: true,
    small_object_buffer: true,
    inodes: Inodes::Embedded,
};

/// All sets.
pub const VARIANTS: [Variant; 11] = [
    USUAL,
    Variant { name: "pages", extents: false, ..USUAL },
    Variant { name: "lifespan", placement: Placement::Lifespan, victim: VictimPolicy::CostAgeTimes, ..USUAL },
    Variant { name: "padded", small_object_buffer: false, ..USUAL },
    Variant { name: "hints", placement: Placement::Hints, victim: VictimPolicy::Greedy, ..USUAL },
    Variant { name: "age-chain", placement: Placement::AgeChain, victim: VictimPolicy::Fifo, ..USUAL },
    Variant { name: "combined", placement: Placement::Combined, victim: VictimPolicy::Greedy, ..USUAL },
    Variant { name: "separate", inodes: Inodes::Separate, ..USUAL },
    Variant {
        name: "bare",
        placement: Placement::Split,
        extents: false,
        small_object_buffer: false,
        inodes: Inodes::Separate,
        ..USUAL
    },
    Variant { name: "levelled", wear: WearPolicy::Static, ..USUAL },
    Variant { name: "in-turn", placement: Placement::Split, wear: WearPolicy::Off, ..USUAL },
];

/// The options of runs on `shape` with `seed`.
#[must_use]
pub fn of(shape: &Shape, seed: u64) -> &'static Variant {
    let number = SHAPES.iter().position(|one| one.name == shape.name).unwrap_or(0);
    &VARIANTS[(seed as usize).wrapping_add(number) % VARIANTS.len()]
}

impl Variant {
    /// Options under which every read goes to the medium: what a cache remembers proves nothing.
    #[must_use]
    pub fn mount_options(&self, read_only: bool) -> MountOptions {
        MountOptions {
            read_only,
            node_cache_bytes: 0,
            page_cache_bytes: 0,
            extents: self.extents,
            small_object_buffer: self.small_object_buffer,
            ..MountOptions::default()
        }
    }

    /// Options of a new volume.
    #[must_use]
    pub fn format_options(&self, shape: &Shape) -> FormatOptions {
        FormatOptions {
            uuid: *b"crash explorer  ",
            blocks_per_segment: shape.blocks_per_segment,
            placement: Some(self.placement),
            victim: Some(self.victim),
            wear: Some(self.wear),
        }
    }
}

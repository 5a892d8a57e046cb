//! The options under which a run works: every shape meets every set of options as seeds go by.
//!
//! Every second run works under one of the named sets, the others under the next set of a matrix:
//! every placement with every setting of the switches of index and inodes. A replay line names
//! workload, shape and seed, and with them the options.

use crate::kind::geometry::{SHAPES, Shape};
use onode_flash::policy::{Placement, VictimPolicy, WearPolicy};
use onode_flash::{FormatOptions, MountOptions, Policies};
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
    pending_access_times: usize,
}

const USUAL: Variant = Variant {
    name: "usual",
    placement: Placement::UserCleaner,
    victim: VictimPolicy::CostBenefit,
    wear: WearPolicy::Dynamic,
    extents: true,
    small_object_buffer: true,
    inodes: Inodes::Embedded,
    pending_access_times: 1024,
};

/// The named sets.
pub const VARIANTS: [Variant; 12] = [
    USUAL,
    Variant { name: "pages", extents: false, ..USUAL },
    Variant { name: "split+atime", placement: Placement::SplitAtime, pending_access_times: 3, ..USUAL },
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

/// Switches that a set of the matrix has on or off: extents, small-object buffer, embedded inodes.
const SWITCHES: usize = 8;

/// The options of runs of `workload` on `shape` with `seed`.
#[must_use]
pub fn of(shape: &Shape, workload: &str, seed: u64) -> Variant {
    let number = SHAPES.iter().position(|one| one.name == shape.name).unwrap_or(0);
    // Workloads begin at different sets: most have one run on a shape in a round.
    let begin = workload.bytes().map(usize::from).sum::<usize>();
    let turn = (seed as usize).wrapping_add(number).wrapping_add(begin) % (1 << 20);
    if turn.is_multiple_of(2) { VARIANTS[turn / 2 % VARIANTS.len()] } else { of_matrix(turn / 2) }
}

/// Set `number` of all placements with all settings of the switches; victims and wear policies take
/// turns.
fn of_matrix(number: usize) -> Variant {
    let placements = Placement::ALL;
    let (placement, round) = (placements[number % placements.len()], number / placements.len());
    let switches = round % SWITCHES;
    Variant {
        name: "matrix",
        placement,
        victim: VictimPolicy::ALL[(number + round) % VictimPolicy::ALL.len()],
        wear: WearPolicy::ALL[(number + round) % WearPolicy::ALL.len()],
        extents: switches & 1 == 0,
        small_object_buffer: switches & 2 == 0,
        inodes: if switches & 4 == 0 { Inodes::Embedded } else { Inodes::Separate },
        ..USUAL
    }
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
            pending_access_times: self.pending_access_times,
            ..MountOptions::default()
        }
    }

    /// Options of a new volume.
    #[must_use]
    pub fn format_options(&self, shape: &Shape) -> FormatOptions {
        FormatOptions {
            uuid: *b"crash explorer  ",
            blocks: None,
            blocks_per_segment: shape.blocks_per_segment,
            parity_pages: shape.parity_pages,
            chosen_parity: shape.chosen_parity,
            policies: Policies { placement: Some(self.placement), victim: Some(self.victim), wear: Some(self.wear) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_shape_meets_every_set() {
        for shape in SHAPES {
            let mut named = BTreeSet::new();
            let mut matrix = BTreeSet::new();
            for seed in 0..2 * (8 * SWITCHES) as u64 {
                let one = of(&shape, "pair", seed);
                if one.name != "matrix" {
                    named.insert(one.name);
                }
                let separate = one.inodes == Inodes::Separate;
                matrix.insert((one.placement, one.extents, one.small_object_buffer, separate));
            }
            assert_eq!(named.len(), VARIANTS.len());
            let placements = Placement::ALL.len();
            assert_eq!(matrix.len(), placements * SWITCHES, "{}", shape.name);
        }
    }
}

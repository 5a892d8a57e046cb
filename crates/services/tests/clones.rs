//! Clones of snapshots over each kind of device that can have them.

use crate::common::clones::{Cloned, run};
use crate::common::pool::{Mounted, Pooled, Ram};
use crate::{flash, tier};

const BYTES: u64 = 24 << 20;

/// With room for what a volume with snapshots keeps free, and for what tells of objects.
const fn with_reserve(bytes: u64) -> u64 {
    bytes + bytes / 16 + (64 << 10)
}

onode_object::conformance!(of_memory, |bytes| Cloned::over(Ram::holding(with_reserve(bytes))));
onode_object::conformance!(of_flash, |bytes| {
    Cloned::over(flash::Flash::holding(flash::SMALL, with_reserve(bytes)))
});
onode_object::conformance!(of_two_disks, |bytes| {
    Cloned::over(tier::Pair::with(with_reserve(bytes), 12 << 20, onode_tier::MountOptions::default()))
});

#[test]
fn histories_over_memory() {
    for seed in 1..=6 {
        run(Ram::holding(BYTES), seed, 1_500);
    }
}

#[test]
fn histories_over_flash() {
    for seed in 1..=3 {
        run(flash::Flash::holding(flash::SMALL, BYTES), seed, 1_200);
    }
}

#[test]
fn histories_over_two_disks() {
    for seed in 1..=3 {
        run(tier::Pair::with(BYTES, 12 << 20, onode_tier::MountOptions::default()), seed, 1_200);
    }
}

#[test]
fn histories_over_a_pool() {
    let members = || vec![Mounted::new(Ram::holding(BYTES)), Mounted::new(Ram::holding(BYTES))];
    for seed in 1..=3 {
        run(Pooled::new(members()), seed, 1_200);
    }
}

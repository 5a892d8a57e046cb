//! Snapshots over each kind of device that can have them.

mod common;
#[path = "../../devices/flash/tests/common/mod.rs"]
mod flash;
#[path = "../../devices/tier/tests/common/mod.rs"]
mod tier;

use common::pool::{Mounted, Pooled, Ram};
use common::snapshots::run;

const BYTES: u64 = 24 << 20;

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

//! The suite that every device runs, over pools of devices of every kind, across cuts of power, and
//! with services above them.

use crate::common::pool::{Mounted, Pooled, Ram};
use crate::{flash, scm, tier};
use std::sync::Arc;

/// What tells which changes there were takes some room.
const fn with_record(bytes: u64) -> u64 {
    bytes + (32 << 10)
}

fn ram(bytes: u64) -> Arc<Mounted> {
    Mounted::new(Ram::holding(with_record(bytes)))
}

fn on_flash(bytes: u64) -> Arc<Mounted> {
    Mounted::new(flash::Flash::holding(flash::SMALL, with_record(bytes)))
}

fn on_scm(bytes: u64) -> Arc<Mounted> {
    Mounted::new(scm::Scm::holding(4 << 10, with_record(bytes)))
}

fn on_disks(bytes: u64) -> Arc<Mounted> {
    Mounted::new(tier::Pair::with(with_record(bytes), 12 << 20, onode_tier::MountOptions::default()))
}

onode_object::conformance!(ram_and_ram, |bytes| Pooled::new(vec![ram(bytes), ram(bytes)]));
onode_object::conformance!(one_ram, |bytes| Pooled::new(vec![ram(bytes)]));
onode_object::conformance!(flash_and_flash, |bytes| Pooled::new(vec![on_flash(bytes), on_flash(bytes)]));
onode_object::conformance!(flash_and_scm, |bytes| Pooled::new(vec![on_flash(bytes), on_scm(bytes)]));
onode_object::conformance!(disks_and_ram, |bytes| Pooled::new(vec![on_disks(bytes), ram(bytes)]));
onode_object::conformance!(three, |bytes| Pooled::new(vec![ram(bytes), on_flash(bytes), on_scm(bytes)]));

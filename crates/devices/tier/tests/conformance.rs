//! The conformance suite on volumes of several shapes.

use crate::common::{Alone, Pair};
use onode_object::Acknowledge;
use onode_tier::MountOptions;

onode_object::conformance!(big_disk_alone, |bytes| Alone::holding(bytes, 1 << 20));
onode_object::conformance!(a_small_log, |bytes| Alone::holding(bytes, 64 << 10));
onode_object::conformance!(little_memory, |bytes| {
    let options = MountOptions {
        node_cache_bytes: 0,
        pending_bytes: 64 << 10,
        place_above_bytes: 8 << 10,
        ..MountOptions::default()
    };
    Alone::with(bytes, 256 << 10, options)
});
onode_object::conformance!(two_disks, |bytes| Pair::with(bytes, 12 << 20, MountOptions::default()));
onode_object::conformance!(two_disks_and_either_is_enough, |bytes| {
    let options = MountOptions {
        acknowledge: Acknowledge::Either,
        node_cache_bytes: 64 << 10,
        place_above_bytes: 16 << 10,
        either_bytes: 40 << 10,
        ..MountOptions::default()
    };
    Pair::with(bytes, 6 << 20, options)
});

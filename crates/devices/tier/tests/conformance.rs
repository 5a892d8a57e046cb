//! The conformance suite on volumes of several shapes.

mod common;

use common::Alone;
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

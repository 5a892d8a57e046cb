//! Any bytes as a bucket of records and as entries to the byte: no panic, no absurd amounts of
//! memory, and what decodes encodes again.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/codec/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

fuzz_target!(|bytes: &[u8]| {
    common::survive(bytes);
    common::survive_exact(bytes);
});

//! Any bytes as the map and the frames of a compressed object: every call answers, none panics, and
//! the object can be removed.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/services/tests/common/hostile.rs"]
mod hostile;

fuzz_target!(|bytes: &[u8]| hostile::survive(bytes));

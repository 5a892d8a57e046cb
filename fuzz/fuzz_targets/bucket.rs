//! Any bytes as a bucket of records, as entries to the byte, and as whatever the coders of paper 3 read: no panic, no absurd amounts of memory,
//! and what decodes encodes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onode_codec::bytewise::ByteCoder;
use onode_codec::cmfs::{Device, Hybrid, Object};
use onode_codec::decode_blocks;

#[path = "../../crates/codec/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

fuzz_target!(|bytes: &[u8]| {
    common::survive(bytes);
    common::survive_exact(bytes);
    for coder in ByteCoder::ALL {
        for length in [0, bytes.len(), 2 * bytes.len() + 1] {
            if let Some(decoded) = coder.decode(bytes, length) {
                assert_eq!(coder.decode(&coder.encode(&decoded), length), Some(decoded));
            }
        }
    }
    for object in [Object::decode(bytes), Hybrid::Plain.decode(bytes), Hybrid::Coded.decode(bytes)].into_iter().flatten() {
        assert_eq!(object.encode().and_then(|raw| Object::decode(&raw)), Some(object));
    }
    let _ = Device::decode(bytes);
    let _ = decode_blocks(bytes, bytes.len());
});

//! Any bytes as changes to a small flash image, checksums set right again: mount, read, write,
//! check, dump and repair, without a panic, an endless loop or absurd amounts of memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onode_media::{Geometry, SimNand};
use std::sync::LazyLock;

#[allow(dead_code, reason = "it uses a part")]
#[path = "../../crates/devices/flash/tests/common/mod.rs"]
mod common;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 96, chips: 1 };
static SOUND: LazyLock<SimNand> = LazyLock::new(|| common::hostile::volume(SHAPE).with(|nand| nand.clone()));

fuzz_target!(|bytes: &[u8]| common::hostile::survive(&SOUND, bytes));

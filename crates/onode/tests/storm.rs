//! Random sequences on volumes that are nearly full, with snapshots and clones, beside a model:
//! what `write` accepted is never refused later, whatever is removed, overwritten or kept
//! meanwhile; files, snapshots and clones hold what the model says, also after an orderly end; a
//! process that dies loses nothing that was synced; the checker finds nothing, and what is removed
//! leaves nothing behind.
//!
//! Each sequence follows from its seed: `ONODE_STORM_SEED` runs one alone, `ONODE_STORM_SEEDS` so
//! many (8 of each kind if not given), `ONODE_STORM_STEPS` steps of each (1,500 if not given);
//! `ONODE_STORM_CLONES` is how many clones there are at a time (at most two if not given), and
//! `ONODE_STORM_TELLS` tells every step.

mod end;
mod hand;
mod luck;
mod model;
mod names;
mod size;
mod states;
mod together;
mod tree;
mod whole;

use onode::Compression;
use whole::Storm;

/// States since the last sync that are remembered; then there is one.
const HISTORY: usize = 250;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// A kind of volume; `DIR` in `spec` stands for the folder and `NEW` for the settings
/// to make it with.
struct Kind {
    name: &'static str,
    spec: &'static str,
    settings: &'static str,
    /// Bytes of a write at most.
    longest: u64,
    compression: Compression,
    is_encrypted: bool,
    /// Of an encrypted one.
    is_authenticated: bool,
    /// Of an encrypted one: all files are in a directory with a key.
    has_key: bool,
    /// How many sequences are run, unless somebody says otherwise.
    seeds: u64,
}

/// Runs sequences on volumes of a kind.
fn storms(kind: &Kind) {
    let steps = setting("ONODE_STORM_STEPS").unwrap_or(1_500);
    let seeds = match setting("ONODE_STORM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + setting("ONODE_STORM_SEEDS").unwrap_or(kind.seeds),
    };
    let (mut refused, mut limited, count) = (0, 0, seeds.end - seeds.start);
    for seed in seeds {
        let mut storm = Storm::new(kind, seed);
        for step in 0..steps {
            storm.luck.what = format!("{}, ONODE_STORM_SEED={seed}, step {step}", kind.name);
            storm.step();
        }
        storm.end();
        refused += u64::from(storm.luck.refused > 0);
        limited += u64::from(storm.luck.limited > 0);
    }
    assert!(count < 8 || refused > count / 2, "{}: {refused} of {count} were ever full", kind.name);
    assert!(count < 8 || limited > 0 || kind.name.contains("memory"), "{}: no limit was ever reached", kind.name);
}

/// A small chip.
const FLASH: Kind = Kind {
    name: "storm-flash",
    spec: "flash:DIR/disk.img,NEW",
    settings: "size=8M,page=2K,pages-per-block=16",
    longest: 300_000,
    compression: Compression::Never,
    is_encrypted: false,
    is_authenticated: false,
    has_key: false,
    seeds: 8,
};

const DISKS: Kind = Kind {
    name: "storm-tier",
    spec: "tier:DIR/fast,DIR/big,NEW",
    settings: "size=24M,fast-size=8M",
    longest: 1_500_000,
    ..FLASH
};

#[test]
fn flash() {
    storms(&FLASH);
}

#[test]
fn compressed_flash() {
    storms(&Kind { name: "storm-compressed", compression: Compression::Fast, ..FLASH });
}

#[test]
fn encrypted_flash() {
    crate::agent::provide();
    storms(&Kind { name: "storm-encrypted", is_encrypted: true, ..FLASH });
}

#[test]
fn authenticated_flash() {
    crate::agent::provide();
    storms(&Kind { name: "storm-authenticated", is_encrypted: true, is_authenticated: true, seeds: 3, ..FLASH });
}

/// Among what happens is that the key is locked, and unlocked again.
#[test]
fn flash_with_a_key_of_a_directory() {
    crate::agent::provide();
    let compression = Compression::Fast;
    storms(&Kind { name: "storm-keyed", compression, is_encrypted: true, has_key: true, seeds: 4, ..FLASH });
}

#[test]
fn flash_beside_memory() {
    storms(&Kind { name: "storm-beside", spec: "flash+scm:DIR/disk.img,DIR/disk.index,NEW", ..FLASH });
}

/// Users write to several streams, and each may open a segment.
#[test]
fn flash_with_streams_by_age() {
    let places = ["sepbit", "lifespan", "hints"];
    let settings = ["sepbit", "lifespan", "hints"]
        .map(|place| format!("size=8M,page=4K,pages-per-block=16,parity=2,placement={place}"));
    let _ = places;
    for settings in settings {
        storms(&Kind { name: "storm-streams", settings: settings.leak(), longest: 60_000, seeds: 4, ..FLASH });
    }
}

#[test]
fn memory() {
    storms(&Kind { name: "storm-memory", spec: "scm:DIR/heap,NEW", settings: "size=4M", ..FLASH });
}

/// With snapshots and clones, which a memory that processes share cannot have.
#[test]
fn exclusive_memory() {
    storms(&Kind { name: "storm-exclusive", spec: "scm:DIR/heap,NEW", settings: "size=6M,exclusive=on", ..FLASH });
}

#[test]
fn two_disks() {
    storms(&DISKS);
}

#[test]
fn compressed_disks() {
    storms(&Kind { name: "storm-compressed-tier", compression: Compression::Fast, ..DISKS });
}

#[test]
fn a_pool() {
    storms(&Kind { name: "storm-pool", spec: "pool:flash:DIR/one.img,NEW+flash:DIR/two.img,NEW", ..FLASH });
}

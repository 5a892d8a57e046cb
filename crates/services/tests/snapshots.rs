//! Snapshots over each kind of device that can have them.

mod common;
#[path = "../../devices/flash/tests/common/mod.rs"]
mod flash;
#[path = "../../devices/tier/tests/common/mod.rs"]
mod tier;

use common::pool::{Mounted, Pooled, Ram};
use common::snapshots::run;
use onode_base::{Prng, Timestamp};
use onode_media::Nand;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};
use onode_services::Versioned;

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

/// Pages that were programmed and read so far.
fn pages(nand: &flash::Shared) -> [u64; 2] {
    let counts = nand.with(|nand| nand.counters().map(|counters| counters.total()).unwrap_or_default());
    [counts.programs, counts.reads]
}

/// What overwriting one eighth of 16 MiB and an attribute of each of 64 objects costs, in pages, if
/// there is a snapshot before every `period`th round.
fn overwritten(period: Option<u64>) -> [u64; 2] {
    let (objects, object_bytes) = (64, 256_u64 << 10);
    let mut flash = flash::Flash::holding(flash::LARGE, 96 << 20);
    let versioned = Versioned::open(std::sync::Arc::new(flash.device.take().unwrap())).unwrap().unwrap();
    let first = versioned.reserve_ids(objects).unwrap().0;
    let key = AttributeKey::new(AttributeKind::INODE, 0);
    for object in (first..first + objects).map(ObjectId) {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, vec![7; object_bytes as usize]);
        transaction.set_attribute(object, key, vec![1; 24]);
        versioned.commit(transaction, Durability::Buffered).unwrap();
    }
    versioned.sync(SyncScope::All).unwrap();
    let before = pages(&flash.nand);
    let mut prng = Prng::new(1);
    for round in 0..8 {
        if period.is_some_and(|period| round % period == 0) {
            versioned.take(&format!("round {round}"), Timestamp::default()).unwrap();
        }
        for object in (first..first + objects).map(ObjectId) {
            let mut transaction = Transaction::new();
            for _ in 0..8 {
                let data = vec![round as u8; 4096];
                transaction.write(object, prng.below(object_bytes / 4096) * 4096, data);
            }
            transaction.set_attribute(object, key, vec![round as u8; 24]);
            versioned.commit(transaction, Durability::Buffered).unwrap();
        }
        versioned.sync(SyncScope::All).unwrap();
    }
    versioned.close().unwrap();
    let after = pages(&flash.nand);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn flash_keeps_what_is_overwritten_without_copies() {
    let [without, _] = overwritten(None);
    assert!(without > 4_000, "{without} pages of 4 KiB for 16 MiB");
    for period in [8, 2, 1] {
        let [programs, reads] = overwritten(Some(period));
        println!("a snapshot every {period} rounds: {programs} pages programmed, {without} without; {reads} read");
        assert!(programs * 10 <= without * 11, "{programs} pages programmed, {without} without a snapshot");
    }
}

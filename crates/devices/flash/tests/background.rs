//! What background cleaning costs: it is there so that commits wait less, and must not wear the
//! medium out for that.

use crate::common::{Flash, Shared};
use onode_base::{ErrorKind, Prng};
use onode_media::{Geometry, Nand, SimOptions};
use onode_object::conformance::Harness;
use onode_object::{Durability, Hints, ObjectId, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 256, chips: 1 };
const PIECE_BYTES: u64 = 100_000;

/// A volume of which `share` of a hundred is one large object, and a small one beside it.
fn filled(share: u64) -> (Flash, ObjectId, u64, ObjectId) {
    let chip = Flash::on(Shared::with_options(SHAPE, SimOptions::default()));
    let large = chip.device().reserve_ids(2).unwrap();
    let small = ObjectId(large.0 + 1);
    let mut transaction = Transaction::new();
    transaction.create(large, Hints::default()).create(small, Hints::default());
    chip.device().commit(transaction, Durability::Durable).unwrap();
    let (mut size, wanted) = (0, chip.device().space().available * share / 100);
    while size < wanted {
        let mut transaction = Transaction::new();
        transaction.write(large, size, vec![7; PIECE_BYTES as usize]);
        match chip.device().commit(transaction, Durability::Buffered) {
            Ok(()) => size += PIECE_BYTES,
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                break;
            }
        }
    }
    (chip, large, size, small)
}

/// What a mount does once a second.
fn background(chip: &Flash) {
    (0..32).take_while(|_| chip.device().maintain(4).unwrap().more).for_each(drop);
}

/// Pages programmed for so many synced writes, all of them in a small object or all over the large
/// one, with background work after each or without any.
fn programs(share: u64, is_small: bool, commits: u64, works: bool) -> u64 {
    let (chip, large, size, small) = filled(share);
    let (object, within, bytes) = if is_small { (small, 400_000, 1000) } else { (large, size, 4096) };
    for _ in 0..20 {
        background(&chip);
    }
    let count = || chip.nand.with(|nand| nand.counters().unwrap().total().programs);
    let before = count();
    let mut prng = Prng::new(share);
    for commit in 0..commits {
        let mut transaction = Transaction::new();
        transaction.write(object, prng.below(within / bytes) * bytes, vec![commit as u8; bytes as usize]);
        chip.device().commit(transaction, Durability::Durable).unwrap();
        if works {
            background(&chip);
        }
    }
    count() - before
}

#[test]
fn background_work_costs_little_wear() {
    // Where little is rewritten segments empty themselves if one waits: most is to be lost there.
    for (share, is_small, commits, most) in [(70, true, 2000, 1.1), (90, true, 3000, 1.5), (97, true, 3000, 1.5)]
        .into_iter()
        .chain([(70, false, 8000, 1.2), (85, false, 8000, 1.1)])
    {
        let (without, with) = (programs(share, is_small, commits, false), programs(share, is_small, commits, true));
        let what = if is_small { "a small object" } else { "all of it" };
        println!("{share} % full, {commits} commits within {what}: {without} programs, with background work {with}");
        assert!(with as f64 <= most * without as f64, "{share} % full: {with} programs, {without} without");
    }
}

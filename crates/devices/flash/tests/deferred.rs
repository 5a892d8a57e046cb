//! Changes that a mount takes over from the journal without applying them: few reads wherever they
//! lie, nothing lost by a second cut, nothing counted twice.

use crate::common::{Flash, SMALL, Shared};
use onode_base::Prng;
use onode_flash::check::{CheckOptions, check};
use onode_media::{Geometry, Nand as _};
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectId, Transaction};
use std::collections::BTreeMap;

const PIECE: usize = 4096;
const INODE: AttributeKey = AttributeKey { kind: AttributeKind::INODE, index: 0 };

/// What each object holds: a byte for each piece, and its attribute.
type Expected = BTreeMap<ObjectId, (Vec<u8>, Vec<u8>)>;

fn create(flash: &Flash, pieces: usize, expected: &mut Expected, durability: Durability) {
    let object = flash.device().reserve_ids(1).unwrap();
    let byte = object.0 as u8;
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    transaction.write(object, 0, vec![byte; pieces * PIECE]);
    transaction.set_attribute(object, INODE, vec![byte; 60]);
    flash.device().commit(transaction, durability).unwrap();
    expected.insert(object, (vec![byte; pieces], vec![byte; 60]));
}

/// A durable change somewhere: a piece and the attribute, or an object that comes or goes.
fn step(flash: &Flash, prng: &mut Prng, expected: &mut Expected) {
    let chosen = *expected.keys().nth(prng.below(expected.len() as u64) as usize).unwrap();
    let mut transaction = Transaction::new();
    match prng.below(10) {
        0 => return create(flash, 1, expected, Durability::Durable),
        1 if expected.len() > 20 => {
            transaction.remove(chosen);
            expected.remove(&chosen);
        }
        _ => {
            let (pieces, attribute) = expected.get_mut(&chosen).unwrap();
            let piece = prng.below(pieces.len() as u64) as usize;
            let byte = prng.next_u64() as u8;
            pieces[piece] = byte;
            let at = prng.below(60) as usize;
            attribute[at] = byte;
            transaction.write(chosen, (piece * PIECE) as u64, vec![byte; PIECE]);
            transaction.set_attribute(chosen, INODE, attribute.clone());
        }
    }
    flash.device().commit(transaction, Durability::Durable).unwrap();
}

fn verify(flash: &Flash, expected: &Expected) {
    let device = flash.device();
    assert_eq!(device.space().objects, expected.len() as u64);
    for (object, (pieces, attribute)) in expected {
        assert_eq!(device.attribute(*object, INODE).unwrap().as_ref(), Some(attribute), "{object}");
        let mut found = vec![0; pieces.len() * PIECE];
        assert_eq!(device.read(*object, 0, &mut found).unwrap(), found.len());
        let same = found.chunks(PIECE).zip(pieces).all(|(found, byte)| found.iter().all(|one| one == byte));
        assert!(same, "{object} differs");
    }
    assert!(device.list(ObjectId(0), expected.len() + 9).unwrap().iter().eq(expected.keys()));
}

fn check_all(nand: &Shared) {
    let report = check(&mut nand.with(|nand| nand.clone()), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
}

/// A volume with objects all over the index.
fn filled(objects: usize, pieces: usize) -> (Flash, Expected) {
    let shape = Geometry { blocks: 512, ..SMALL };
    let mut flash = Flash::on(Shared::new(shape));
    let mut expected = Expected::new();
    for _ in 0..objects {
        create(&flash, pieces, &mut expected, Durability::Buffered);
    }
    flash.reopen();
    (flash, expected)
}

fn reads_of_mount(flash: &mut Flash) -> u64 {
    flash.device = None;
    flash.nand.with(|nand| nand.reset_counters());
    flash.mount();
    flash.nand.with(|nand| nand.counters().unwrap().total().reads)
}

#[test]
fn a_mount_reads_few_nodes_wherever_pieces_were_rewritten() {
    let (mut flash, mut expected) = filled(1500, 4);
    let mut prng = Prng::new(5);
    for round in 0..4 {
        for _ in 0..100 + 40 * round {
            step(&flash, &mut prng, &mut expected);
        }
        let reads = reads_of_mount(&mut flash);
        eprintln!("round {round}: {reads} reads");
        assert!(reads <= 64, "{reads} reads in round {round}");
        check_all(&flash.nand);
        verify(&flash, &expected);
        flash.reopen();
        check_all(&flash.nand);
    }
}

#[test]
fn cuts_right_after_a_mount_lose_nothing() {
    let (mut flash, mut expected) = filled(120, 2);
    let mut prng = Prng::new(6);
    for round in 0..30 {
        for _ in 0..prng.below(60) {
            step(&flash, &mut prng, &mut expected);
        }
        // Some mounts are cut before anything is settled, some after a part of it.
        for _ in 0..prng.below(4) {
            flash.mount();
            check_all(&flash.nand);
            if prng.chance(1, 3) {
                step(&flash, &mut prng, &mut expected);
            }
            if prng.chance(1, 4) {
                flash.device().maintain(1).unwrap();
            }
        }
        if round % 3 == 0 {
            flash.mount();
            verify(&flash, &expected);
        }
        if round % 5 == 0 {
            flash.reopen();
            check_all(&flash.nand);
        }
    }
    flash.reopen();
    verify(&flash, &expected);
    check_all(&flash.nand);
}

#[test]
fn a_full_volume_gets_its_space_back() {
    let (mut flash, mut expected) = filled(40, 2);
    let available = |flash: &Flash| flash.device().space().available;
    while available(&flash) > 3 << 20 {
        create(&flash, 64, &mut expected, Durability::Buffered);
    }
    let mut prng = Prng::new(7);
    for _ in 0..6 {
        for _ in 0..200 {
            step(&flash, &mut prng, &mut expected);
        }
        let before = available(&flash);
        flash.mount();
        // What was replaced is given back when it is needed, at the latest.
        flash.device().maintain(1000).unwrap();
        let after = available(&flash);
        assert!(after + (1 << 20) >= before, "{before} bytes before, {after} after");
    }
    verify(&flash, &expected);
    flash.reopen();
    check_all(&flash.nand);
}

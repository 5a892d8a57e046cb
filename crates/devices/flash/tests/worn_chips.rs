//! Chips that are not perfect: blocks bad from the factory, blocks that wear out, programs that
//! fail, bits that flip.

use crate::common::{Flash, Shared};
use onode_base::ErrorKind;
use onode_flash::{FlashDevice, MountOptions};
use onode_media::sim::{BitErrors, FactoryBad};
use onode_media::{Fault, Geometry, Nand, OperationKind, SimOptions};
use onode_object::conformance::{Harness, differential};
use onode_object::{Durability, Hints, ObjectId, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 160, chips: 1 };

fn worn(shape: Geometry, options: SimOptions) -> Flash {
    Flash::on(Shared::with_options(shape, options))
}

#[test]
fn random_histories_on_chips_with_blocks_bad_from_the_factory() {
    for seed in 1..6 {
        let make = |bytes: u64| {
            let blocks = (bytes * 3 / (2048 * 32) + 160) as u32;
            let options = SimOptions { factory_bad: FactoryBad::PerThousand(40), seed, ..SimOptions::default() };
            Box::new(worn(Geometry { blocks, ..SHAPE }, options)) as Box<dyn Harness>
        };
        differential(&make, seed, 1000, true);
    }
}

#[test]
fn a_superblock_block_may_be_bad() {
    let bad = FactoryBad::List(vec![onode_media::BlockAddress(1), onode_media::BlockAddress(2)]);
    let mut chip = worn(SHAPE, SimOptions { factory_bad: bad, ..SimOptions::default() });
    let object = fill(&chip, 300, 1000);
    chip.mount();
    expect(&chip, object, 300, 1000);
}

/// Blocks that refuse to be erased are retired; nothing that was acknowledged is lost.
#[test]
fn blocks_that_wear_out_are_retired_without_loss() {
    let mut chip = worn(SHAPE, SimOptions::default());
    let object = fill(&chip, 200, 1000);
    chip.nand.with(|nand| {
        for nth in [25u64, 60, 61, 100, 140] {
            nand.faults_mut().add(Fault::once(OperationKind::Erase, nth));
        }
    });
    for round in 0..30 {
        overwrite(&chip, object, 200, 1000, round);
    }
    assert_eq!(chip.device().info().read_only, None);
    let bad = (0..160).filter(|&block| chip.nand.with(|nand| nand.is_bad(onode_media::BlockAddress(block)).unwrap()));
    assert_eq!(bad.count(), 5);
    chip.mount();
    expect_round(&chip, object, 200, 1000, 29);
}

/// Worn to death, the device becomes read-only or full, and everything acknowledged stays readable.
#[test]
fn a_device_worn_to_death_keeps_what_was_acknowledged() {
    let mut chip = worn(SHAPE, SimOptions { endurance: Some(12), ..SimOptions::default() });
    let object = fill(&chip, 100, 4096);
    let mut acknowledged = None;
    for round in 0..2000 {
        let data = vec![round as u8; 100 * 4096];
        let mut transaction = Transaction::new();
        transaction.write(object, 0, data);
        match chip.device().commit(transaction, Durability::Durable) {
            Ok(()) => acknowledged = Some(round as u8),
            Err(error) => {
                assert!(
                    matches!(error.kind, ErrorKind::NoSpace | ErrorKind::ReadOnly | ErrorKind::Media),
                    "round {round}: {error}"
                );
                break;
            }
        }
    }
    let acknowledged = acknowledged.unwrap();
    chip.device = None;
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    chip.device = Some(FlashDevice::mount(chip.nand.clone(), &options).unwrap());
    let mut bytes = vec![0; 100 * 4096];
    assert_eq!(chip.device().read(object, 0, &mut bytes).unwrap(), bytes.len());
    let (first, same) = (bytes[0], bytes.iter().all(|&byte| byte == bytes[0]));
    assert!(same && (first == acknowledged || first == acknowledged.wrapping_add(1)), "{first}, not {acknowledged}");
}

#[test]
fn correctable_bit_errors_go_unnoticed() {
    let bits = BitErrors { per_billion_bits: 20_000, correctable_bits: 8, ..BitErrors::default() };
    let mut chip = worn(SHAPE, SimOptions { bit_errors: Some(bits), seed: 3, ..SimOptions::default() });
    let object = fill(&chip, 300, 1000);
    chip.mount();
    expect(&chip, object, 300, 1000);
    assert!(chip.nand.with(|nand| nand.counters().unwrap().corrected_bits) > 0);
}

fn fill(chip: &Flash, count: u64, bytes: usize) -> ObjectId {
    let object = chip.device().reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    chip.device().commit(transaction, Durability::Durable).unwrap();
    overwrite(chip, object, count, bytes, 0);
    object
}

fn overwrite(chip: &Flash, object: ObjectId, count: u64, bytes: usize, round: u64) {
    for number in 0..count {
        let mut transaction = Transaction::new();
        transaction.write(object, number * bytes as u64, vec![(number + round) as u8; bytes]);
        chip.device().commit(transaction, Durability::Durable).unwrap();
    }
}

fn expect(chip: &Flash, object: ObjectId, count: u64, bytes: usize) {
    expect_round(chip, object, count, bytes, 0);
}

fn expect_round(chip: &Flash, object: ObjectId, count: u64, bytes: usize, round: u64) {
    let mut found = vec![0; bytes];
    for number in 0..count {
        let length = chip.device().read(object, number * bytes as u64, &mut found).unwrap();
        assert_eq!(length, bytes);
        assert!(found.iter().all(|&byte| byte == (number + round) as u8), "part {number}");
    }
}

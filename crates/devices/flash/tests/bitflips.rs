//! Blocks whose bits flip more with every read: what lies there moves before it is lost.

use crate::common::{Flash, Shared, counter};
use onode_base::ErrorKind;
use onode_flash::MountOptions;
use onode_media::sim::BitErrors;
use onode_media::{Geometry, Nand, SimOptions};
use onode_object::conformance::Harness;
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 32, blocks: 96, chips: 1 };
const OBJECTS: u64 = 40;
const BYTES: usize = 9000;

/// 2,400 reads of a block make its worst page unreadable, 7,200 its best.
fn disturbed() -> Flash {
    let bit_errors = Some(BitErrors { correctable_bits: 8, reads_per_bit: 400, ..BitErrors::default() });
    let nand = Shared::with_options(SHAPE, SimOptions { bit_errors, seed: 1, ..SimOptions::default() });
    let mut chip = Flash::on(nand);
    // So reads come to the chip.
    chip.options = MountOptions { page_cache_bytes: 0, node_cache_bytes: 8192, ..MountOptions::default() };
    chip.mount();
    chip
}

fn content(object: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    onode_base::Prng::new(object).fill(&mut bytes);
    bytes
}

fn fill(chip: &Flash) -> Vec<ObjectId> {
    let first = chip.device().reserve_ids(OBJECTS).unwrap().0;
    let objects: Vec<_> = (first..first + OBJECTS).map(ObjectId).collect();
    for &object in &objects {
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default()).write(object, 0, content(object.0));
        chip.device().commit(transaction, Durability::Durable).unwrap();
    }
    objects
}

/// Reads everything once; false if something cannot be read.
fn reads_well(device: &dyn ObjectDevice, objects: &[ObjectId]) -> bool {
    objects.iter().all(|object| {
        let mut bytes = vec![0; BYTES];
        match device.read(*object, 0, &mut bytes) {
            Ok(read) => {
                assert!(read == BYTES && bytes == content(object.0), "{object}");
                true
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                false
            }
        }
    })
}

fn refreshed(device: &dyn ObjectDevice) -> u64 {
    counter(device, "segments_refreshed")
}

fn work_in_background(device: &dyn ObjectDevice) {
    while device.maintain(4).unwrap().more {}
}

#[test]
fn what_is_read_again_and_again_moves_before_it_is_lost() {
    let (mut kept, mut lost) = (disturbed(), disturbed());
    let (of_kept, of_lost) = (fill(&kept), fill(&lost));
    let erases = |chip: &Flash| chip.nand.with(|nand| nand.counters().unwrap().total().erases);
    let before = erases(&kept);
    let mut lost_in = None;
    for round in 0..1000 {
        assert!(reads_well(kept.device(), &of_kept), "round {round}");
        work_in_background(kept.device());
        if lost_in.is_none() && !reads_well(lost.device(), &of_lost) {
            lost_in = Some(round);
        }
    }
    let (moved, erased) = (refreshed(kept.device()), erases(&kept) - before);
    let lost_in = lost_in.expect("without background work something is lost");
    println!("1,000 rounds of reads: {moved} segments refreshed, {erased} erases; without, lost in round {lost_in}");
    assert!(moved > 10, "{moved} segments were refreshed");
    // A round reads each page once or twice: 37 rounds and more between two refreshes of a segment.
    assert!(erased < 40 * 400 / 37, "{erased} erases");
    kept.mount();
    assert!(reads_well(kept.device(), &of_kept));
    assert!(kept.device().health().conditions.is_empty(), "{:?}", kept.device().health());
    lost.mount();
}

/// Reads of one object disturb the pages beside it, of objects that nobody reads.
#[test]
fn what_nobody_reads_is_refreshed_too() {
    let chip = disturbed();
    let objects = fill(&chip);
    for round in 0..6_000 {
        // By turns one of each block is read.
        assert!(reads_well(chip.device(), &objects[7 * (round % 6)..][..1]), "what is read is there");
        (0..150).for_each(|_| _ = chip.device().maintain(4).unwrap());
    }
    assert!(reads_well(chip.device(), &objects), "what was not read is there");
    let passes = counter(chip.device(), "patrols");
    println!("{} segments refreshed in {passes} passes of the patrol", refreshed(chip.device()));
    assert!(passes > 5 && refreshed(chip.device()) > 5);
}

#[test]
fn what_is_mounted_again_and_again_can_be_mounted() {
    let mut chip = disturbed();
    let objects = fill(&chip);
    for _ in 0..12_000 {
        chip.mount();
        work_in_background(chip.device());
    }
    assert!(reads_well(chip.device(), &objects));
}

#[test]
fn a_volume_that_takes_no_changes_tells_that_bits_flip() {
    let mut chip = disturbed();
    let objects = fill(&chip);
    chip.options.read_only = true;
    chip.mount();
    let told = |chip: &Flash| chip.device().health().conditions.iter().any(|one| one.code == "bits-flip");
    let mut rounds = 0..1000;
    let found = rounds.find(|_| {
        assert!(reads_well(chip.device(), &objects), "it is told before anything is lost");
        told(&chip)
    });
    assert!(found.is_some());
    chip.options.read_only = false;
    chip.mount();
    while refreshed(chip.device()) == 0 {
        assert!(reads_well(chip.device(), &objects));
        work_in_background(chip.device());
    }
    assert!(!told(&chip));
}

#[test]
fn a_full_volume_is_refreshed_too() {
    let chip = disturbed();
    let objects = fill(&chip);
    let filler = chip.device().reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(filler, Hints::default());
    chip.device().commit(transaction, Durability::Durable).unwrap();
    for bytes in [9000, 1000, 10] {
        for number in 0.. {
            let mut transaction = Transaction::new();
            transaction.write(filler, ((bytes as u64) << 24) + number * bytes as u64, vec![1; bytes]);
            if let Err(error) = chip.device().commit(transaction, Durability::Durable) {
                assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
                break;
            }
        }
    }
    for round in 0..500 {
        assert!(reads_well(chip.device(), &objects), "round {round}");
        work_in_background(chip.device());
    }
    assert!(refreshed(chip.device()) > 3, "{} segments were refreshed", refreshed(chip.device()));
}

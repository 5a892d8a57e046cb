//! Programs and erases that fail: the content goes elsewhere, the block is retired, nothing that
//! was acknowledged is lost, and the device stays writable as long as there are blocks left.

use crate::common::{Flash, LARGE, STRIPED, Shared, TINY};
use onode_base::Prng;
use onode_flash::{CheckOptions, FlashDevice, MountOptions, Policies, check};
use onode_media::{BlockAddress, Fault, Geometry, Nand, OperationKind, SimOptions};
use onode_object::conformance::{Harness, differential};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, Transaction};

/// Small, so that a run of every kind of operation is short.
const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 16, blocks: 132, chips: 1 };
const NO_CACHES: MountOptions = MountOptions {
    accept_loss: false,
    read_only: false,
    node_cache_bytes: 0,
    dirty_node_bytes: None,
    page_cache_bytes: 0,
    write_buffer_bytes: 4096,
    checkpoint_pages: None,
    checkpoint_bytes: None,
    clean_ahead: None,
    policies: Policies { placement: None, victim: None, wear: None },
    extents: true,
    pending_access_times: 1024,
    small_object_buffer: true,
};

/// Objects and what they hold.
type Contents = Vec<(ObjectId, Vec<u8>)>;

fn object(device: &FlashDevice) -> ObjectId {
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Buffered).unwrap();
    object
}

/// Commits of all sizes, some of them durable, until every stream has gone through several segments
/// and the cleaner has worked.
fn work(device: &FlashDevice, rounds: u64) -> Contents {
    let mut prng = Prng::new(7);
    let mut all: Contents = (0..8).map(|_| (object(device), vec![0; 9000])).collect();
    for (object, content) in &all {
        let mut transaction = Transaction::new();
        transaction.write(*object, 0, content.clone());
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    for round in 0..rounds {
        let mut transaction = Transaction::new();
        for _ in 0..1 + prng.below(3) {
            let (object, content) = &mut all[prng.below(8) as usize];
            let length = [30, 500, 1100, 2600, 5000][prng.below(5) as usize];
            let offset = prng.below(9000 - length) as usize;
            let mut data = vec![0; length as usize];
            prng.fill(&mut data);
            content[offset..offset + length as usize].copy_from_slice(&data);
            transaction.write(*object, offset as u64, data);
        }
        let durable = prng.chance(1, 2);
        device.commit(transaction, if durable { Durability::Durable } else { Durability::Buffered }).unwrap();
        if round % 40 == 39 {
            device.maintain(1).unwrap();
        }
    }
    device.sync(onode_object::SyncScope::All).unwrap();
    all
}

fn expect(device: &FlashDevice, contents: &Contents, what: &str) {
    for (object, content) in contents {
        let mut found = vec![0; content.len()];
        let length = device.read(*object, 0, &mut found).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(length == found.len() && found == *content, "{what}: {object} differs");
    }
}

fn chip(faults: Vec<Fault>) -> Flash {
    let nand = Shared::with_options(SHAPE, SimOptions { faults, ..SimOptions::default() });
    let mut chip = Flash::on(nand);
    chip.options = NO_CACHES;
    chip.mount();
    chip
}

fn bad_blocks(chip: &Flash) -> usize {
    let bad = |block: &u32| chip.nand.with(|nand| nand.is_bad(BlockAddress(*block)).unwrap());
    (0..chip.nand.geometry().blocks).filter(bad).count()
}

/// Runs the workload with `faults`; checks what is there at its end, after a crash, after a close.
fn survives(faults: Vec<Fault>, rounds: u64) {
    let what = format!("{faults:?}");
    let mut chip = chip(faults);
    let contents = work(chip.device.as_ref().unwrap(), rounds);
    assert_eq!(chip.device().info().read_only, None, "{what}");
    expect(chip.device.as_ref().unwrap(), &contents, &what);
    chip.mount();
    assert_eq!(chip.device().info().read_only, None, "{what}");
    expect(chip.device.as_ref().unwrap(), &contents, &what);
    chip.reopen();
    expect(chip.device.as_ref().unwrap(), &contents, &what);
    chip.device().close().unwrap();
    let report = chip.nand.with(|nand| check(nand, &CheckOptions::default(), &mut |_, _| ()));
    let worse = report.findings.iter().filter(|one| one.severity > onode_flash::check::Severity::Warning);
    assert_eq!(worse.count(), 0, "{what}: {:#?}", report.findings);
}

/// Operations of a run without faults, from after the format on.
fn operations(kind: OperationKind, rounds: u64) -> std::ops::Range<u64> {
    let chip = chip(Vec::new());
    let seen = || chip.nand.with(|nand| nand.faults_mut().seen(kind));
    let start = seen();
    work(chip.device.as_ref().unwrap(), rounds);
    chip.device().close().unwrap();
    start..seen()
}

#[test]
fn one_failed_program_anywhere_loses_nothing() {
    for nth in operations(OperationKind::Program, 60) {
        survives(vec![Fault::once(OperationKind::Program, nth)], 60);
    }
}

#[test]
fn failures_in_a_row_anywhere_lose_nothing() {
    for nth in operations(OperationKind::Program, 40) {
        survives((nth..nth + 3).map(|nth| Fault::once(OperationKind::Program, nth)).collect(), 40);
    }
}

#[test]
fn one_failed_erase_anywhere_loses_nothing() {
    for nth in operations(OperationKind::Erase, 300) {
        survives(vec![Fault::once(OperationKind::Erase, nth)], 300);
    }
}

/// Each failure costs one block, which is marked, and its segment; no more.
#[test]
fn the_block_of_a_failed_program_is_retired() {
    let faults = [200, 300, 400, 550, 700].map(|nth| Fault::once(OperationKind::Program, nth)).to_vec();
    let mut chip = chip(faults);
    let total = chip.device().space().total;
    let contents = work(chip.device.as_ref().unwrap(), 300);
    assert_eq!(bad_blocks(&chip), 5);
    let lost = total - chip.device().space().total;
    let segment = chip.device().inspect().unwrap().segments()[0].capacity_bytes;
    assert!(lost <= 5 * segment, "{lost} bytes are lost to 5 segments of {segment}");
    chip.reopen();
    expect(chip.device.as_ref().unwrap(), &contents, "after the close");
    let counters = chip.device().inspect().unwrap().counters();
    assert!(counters.contains(&("segments_bad".into(), 5)) && counters.contains(&("segments_failing".into(), 0)));
}

/// Random histories with crashes, on chips of several shapes some of whose programs and erases
/// fail.
#[test]
fn random_histories_on_failing_chips() {
    for (shape, name) in [(TINY, "tiny"), (SHAPE, "spare"), (STRIPED, "striped"), (LARGE, "large")] {
        for seed in 1..5 {
            let make = |bytes: u64| {
                let block = u64::from(shape.page_bytes * shape.pages_per_block);
                let blocks = (bytes * 3 / block + 200) as u32;
                let mut prng = Prng::new(seed);
                let mut faults: Vec<Fault> =
                    (0..12).map(|_| Fault::once(OperationKind::Program, 40 + prng.below(4000))).collect();
                faults.extend((0..4).map(|_| Fault::once(OperationKind::Erase, 10 + prng.below(100))));
                let geometry = Geometry { blocks: blocks.next_multiple_of(shape.chips), ..shape };
                let options = SimOptions { faults, ..SimOptions::default() };
                Box::new(Flash::on(Shared::with_options(geometry, options))) as Box<dyn Harness>
            };
            eprintln!("{name}, seed {seed}");
            differential(&make, seed, 800, true);
        }
    }
}

/// Programs fail more and more often, until the device has to give up: everything acknowledged as
/// durable stays readable, in memory and after a mount.
#[test]
fn a_chip_that_dies_keeps_what_was_acknowledged() {
    for seed in 1..20 {
        let mut prng = Prng::new(seed);
        let mut at = 100;
        let faults = (0..400).map(|n| {
            at += 1 + prng.below(400 / (1 + n / 20));
            Fault::once(OperationKind::Program, at)
        });
        let mut chip = chip(faults.collect());
        let device = chip.device.as_ref().unwrap();
        let object = object(device);
        let mut acknowledged = 0;
        let error = loop {
            let mut transaction = Transaction::new();
            transaction.write(object, 0, vec![(acknowledged + 1) as u8; 20_000]);
            match device.commit(transaction, Durability::Durable) {
                Ok(()) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        assert!(acknowledged > 10, "seed {seed}: {error}");
        let shown = |chip: &Flash| {
            let mut bytes = vec![0; 20_000];
            assert_eq!(chip.device().read(object, 0, &mut bytes).unwrap(), bytes.len(), "seed {seed}");
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "seed {seed}");
            bytes[0]
        };
        // The write that failed half-way may show.
        let possible = [acknowledged as u8, (acknowledged + 1) as u8];
        assert!(possible.contains(&shown(&chip)), "seed {seed}: {} of {acknowledged}, {error}", shown(&chip));
        chip.mount();
        assert!(possible.contains(&shown(&chip)), "seed {seed}: {} of {acknowledged}, {error}", shown(&chip));
    }
}

/// A medium that refuses every program is no heap of bad blocks: no block is marked for it.
#[test]
fn a_medium_that_refuses_everything_turns_the_device_read_only() {
    let mut chip = chip(Vec::new());
    let contents = work(chip.device.as_ref().unwrap(), 30);
    let seen = chip.nand.with(|nand| nand.faults_mut().seen(OperationKind::Program));
    chip.nand.with(|nand| nand.faults_mut().add(Fault::forever(OperationKind::Program, seen)));
    let mut transaction = Transaction::new();
    transaction.write(contents[0].0, 0, vec![1; 3000]);
    let error = chip.device().commit(transaction, Durability::Durable).unwrap_err();
    assert_eq!(error.kind, onode_base::ErrorKind::Media, "{error}");
    assert!(chip.device().info().read_only.unwrap().contains("program failed"));
    let mut transaction = Transaction::new();
    transaction.remove(contents[0].0);
    let refused = chip.device().commit(transaction, Durability::Durable).unwrap_err();
    assert_eq!(refused.kind, onode_base::ErrorKind::ReadOnly);
    assert_eq!(bad_blocks(&chip), 0);
    chip.nand.with(|nand| nand.faults_mut().clear());
    chip.mount();
    expect(chip.device.as_ref().unwrap(), &contents, "after the mount");
}

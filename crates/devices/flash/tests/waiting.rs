//! Content that waits for its page to fill: what it saves, and that a cut takes none of it.

use crate::common::{Flash, Shared};
use onode_base::Prng;
use onode_flash::check::{CheckOptions, check};
use onode_flash::{FlashDevice, MountOptions};
use onode_media::{Geometry, Nand as _};
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};

/// 4 KiB take two pages and 32 bytes.
const PLAIN: Geometry = Geometry { page_bytes: 2048, spare_bytes: 0, pages_per_block: 64, blocks: 0, chips: 1 };
const PIECE: usize = 4096;

fn create(flash: &Flash) -> ObjectId {
    let object = flash.device().reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    flash.device().commit(transaction, Durability::Durable).unwrap();
    object
}

fn write(flash: &Flash, object: ObjectId, offset: u64, bytes: &[u8]) {
    let mut transaction = Transaction::new();
    transaction.write(object, offset, bytes.to_vec());
    flash.device().commit(transaction, Durability::Durable).unwrap();
}

fn expect(device: &FlashDevice, object: ObjectId, expected: &[u8]) {
    let mut found = vec![0; expected.len()];
    assert_eq!(device.read(object, 0, &mut found).unwrap(), expected.len());
    assert!(found == expected, "{object} differs");
}

#[test]
fn a_synced_write_of_two_pages_costs_three_programs_and_one_extent() {
    let flash = Flash::holding(PLAIN, 8 << 20);
    let object = create(&flash);
    let programs = || flash.nand.with(|nand| nand.counters().unwrap().total().programs);
    let (begin, mut threes) = (programs(), 0);
    for i in 0..500u64 {
        let before = programs();
        write(&flash, object, i * 2 * PIECE as u64, &[i as u8; PIECE]);
        threes += u64::from(programs() - before == 3);
    }
    // One in fifty fills a page more; checkpoints come every 18 journal pages.
    assert!(threes >= 440, "{threes} of 500");
    assert!(programs() - begin <= 1800, "{} programs", programs() - begin);
    let device = flash.device();
    let runs = (0..500).filter(|i| device.extents(object, i * 2 * PIECE as u64, 1).unwrap()[0].1 == PIECE as u64);
    assert!(runs.count() >= 480);
}

/// Cuts after synced writes of all lengths with other commits between them; some mounts only read,
/// and some recoveries are followed by another cut at once.
#[test]
fn a_cut_takes_nothing_that_waits() {
    let mut prng = Prng::new(11);
    let mut flash = Flash::holding(PLAIN, 8 << 20);
    let object = create(&flash);
    let mut expected = vec![0; 200 * PIECE];
    write(&flash, object, 0, &expected);
    for round in 0..60 {
        for _ in 0..1 + prng.below(6) {
            let length = PIECE / 2 + prng.below(PIECE as u64) as usize + 32;
            let length = if prng.chance(2, 3) { PIECE } else { length };
            let at = prng.below((expected.len() - length) as u64) as usize;
            expected[at..at + length].fill(prng.next_u64() as u8);
            write(&flash, object, at as u64, &expected[at..at + length]);
            for _ in 0..prng.below(3) {
                // Other records, and the same copy again.
                let mut transaction = Transaction::new();
                transaction.set_attribute(object, AttributeKey::new(AttributeKind::INODE, 0), vec![round as u8; 60]);
                flash.device().commit(transaction, Durability::Durable).unwrap();
            }
        }
        let mut image = flash.nand.with(|nand| nand.clone());
        let report = check(&mut image, &CheckOptions { data: true, ..CheckOptions::default() }, &mut |_, _| {});
        assert!(report.is_sound(), "round {round}: {:?}", report.findings);
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        let looked_at = FlashDevice::mount(Shared::holding(image), &read_only).unwrap();
        expect(&looked_at, object, &expected);
        for _ in 0..=prng.below(2) {
            flash.mount();
            expect(flash.device.as_ref().unwrap(), object, &expected);
        }
    }
}

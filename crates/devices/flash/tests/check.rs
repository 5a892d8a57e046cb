//! A check finds nothing on sound volumes, whatever they went through, and counts what is there.

use crate::common::{Flash, SMALL, STRIPED, Shared, TINY};
use onode_base::Prng;
use onode_flash::check::{CheckOptions, JournalEnd, Report, check};
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, SimNand};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};

fn check_all(nand: &Shared) -> Report {
    let mut copy: SimNand = nand.with(|nand| nand.clone());
    let mut last = (0, 0);
    let report = check(&mut copy, &CheckOptions::default(), &mut |done, total| {
        assert!(done <= total);
        last = (done, total);
    });
    assert_eq!(last.0, last.1, "the check ends at its total");
    report
}

/// One random transaction over the objects 64..96.
fn step(device: &FlashDevice, prng: &mut Prng) {
    let mut transaction = Transaction::new();
    let objects = device.list(ObjectId(0), 100).unwrap();
    for _ in 0..1 + prng.below(4) {
        let Some(&object) = objects.get(prng.below(objects.len() as u64) as usize) else { break };
        match prng.below(8) {
            0..=2 => {
                let most = if prng.chance(1, 4) { 9000 } else { 300 };
                let mut data = vec![0; prng.below(most) as usize];
                prng.fill(&mut data);
                transaction.write(object, prng.below(20_000), data);
            }
            3 => {
                transaction.truncate(object, prng.below(20_000));
            }
            4 => {
                transaction.punch(object, prng.below(20_000), prng.below(9000));
            }
            5 | 6 => {
                let key = AttributeKey::new(AttributeKind(40), prng.below(20));
                transaction.set_attribute(object, key, vec![7; prng.below(600) as usize]);
            }
            _ => {
                transaction.remove_attribute(object, AttributeKey::new(AttributeKind(40), prng.below(20)));
            }
        }
    }
    if objects.len() < 32 && prng.chance(1, 3) {
        let object = device.reserve_ids(1).unwrap();
        transaction.create(object, Hints::default()).write(object, 0, vec![1; prng.below(5000) as usize]);
    }
    device.commit(transaction, Durability::Buffered).unwrap();
    if objects.len() > 4 && prng.chance(1, 6) {
        let mut transaction = Transaction::new();
        transaction.remove(objects[prng.below(objects.len() as u64) as usize]);
        device.commit(transaction, Durability::Durable).unwrap();
    } else if prng.chance(1, 4) {
        device.sync(SyncScope::All).unwrap();
    }
}

fn never_a_finding_on(shape: Geometry, steps: u32, seed: u64) {
    let mut prng = Prng::new(seed);
    let mut flash = Flash::holding(shape, 500_000);
    for round in 0..steps {
        for _ in 0..prng.below(12) {
            step(flash.device.as_ref().unwrap(), &mut prng);
        }
        match prng.below(6) {
            0 => {
                let device = flash.device.as_ref().unwrap();
                device.close().unwrap();
                let report = check_all(&flash.nand);
                assert_eq!(report.findings, [], "closed, seed {seed} round {round}");
                assert!(report.clean && report.journal_records == 0);
                flash.mount();
            }
            1 => flash.mount(),
            2 => {
                flash.device.as_ref().unwrap().maintain(3).unwrap();
            }
            _ => {}
        }
        let report = check_all(&flash.nand);
        assert_eq!(report.findings, [], "seed {seed} round {round}");
        // What the check found is what a mount finds.
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let copy = flash.nand.with(|nand| nand.clone());
        let device = FlashDevice::mount(copy, &options).unwrap();
        let objects = device.list(ObjectId(0), 1000).unwrap();
        assert_eq!(report.objects, objects.len() as u64);
        let bytes: u64 = objects.iter().map(|&object| device.stat(object).unwrap().allocated).sum();
        assert_eq!((report.content_bytes, report.bytes_verified), (bytes, bytes), "seed {seed} round {round}");
        assert_ne!(report.journal_end, JournalEnd::Damaged);
    }
}

#[test]
fn sound_volumes_of_small_pages_have_no_findings() {
    never_a_finding_on(TINY, 60, 1);
    never_a_finding_on(TINY, 60, 2);
}

#[test]
fn sound_volumes_of_large_pages_have_no_findings() {
    never_a_finding_on(SMALL, 60, 3);
}

#[test]
fn sound_volumes_on_several_chips_have_no_findings() {
    never_a_finding_on(STRIPED, 60, 4);
}

#[test]
fn an_empty_volume_has_no_findings_and_no_objects() {
    let nand = Shared::new(Geometry { blocks: 256, ..TINY });
    FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let report = check_all(&nand);
    assert_eq!(report.findings, []);
    assert_eq!((report.objects, report.extents, report.superblocks, report.nodes), (0, 0, 2, 1));
}

//! Repairs of volumes whose index is damaged: what an older checkpoint has, with the journal behind
//! it, is not given up, and nothing is shown that never was.

use crate::common::Shared;
use crate::common::patched::Patched;
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, FindingKind, Severity, check};
use onode_flash::repair::Action;
use onode_flash::{FlashDevice, FormatOptions, MountOptions, RepairOptions, repair};
use onode_media::{Geometry, PageAddress, SimNand};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};
use std::collections::BTreeMap;

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 8, blocks: 512, chips: 1 };
const CAREFUL: RepairOptions = RepairOptions { drop_damaged: false, without_memory: false };
const DROP: RepairOptions = RepairOptions { drop_damaged: true, without_memory: false };

/// The length of each object; all its bytes are the low ones of its number.
type Lengths = BTreeMap<ObjectId, usize>;

fn write(device: &FlashDevice, lengths: &mut Lengths, object: ObjectId, length: usize) {
    let mut transaction = Transaction::new();
    if !lengths.contains_key(&object) {
        transaction.create(object, Hints::default());
        // So that there are many nodes.
        for index in 0..2 {
            transaction.set_attribute(object, AttributeKey::new(AttributeKind(40), index), vec![1; 100]);
        }
    }
    transaction.write(object, 0, vec![object.0 as u8; length]);
    device.commit(transaction, Durability::Durable).unwrap();
    let known = lengths.entry(object).or_default();
    *known = length.max(*known);
}

/// The pages that have nodes of the newest index, of which there is no copy, and no content.
fn pages_with_nodes(nand: &SimNand) -> Vec<PageAddress> {
    let mut pages = Patched::new(nand).programmed();
    pages.retain(|&page| {
        let report = check(&mut damaged(nand, &[page]), &CheckOptions::default(), &mut |_, _| ());
        let has = |kind| report.findings.iter().any(|finding| finding.kind == kind);
        has(FindingKind::NodeUnreadable) && !has(FindingKind::ContentUnreadable)
    });
    pages
}

/// The medium with damaged pages.
fn damaged(nand: &SimNand, pages: &[PageAddress]) -> Shared<Patched> {
    let mut medium = Patched::new(nand);
    for page in pages {
        medium.patch(*page, (vec![0x55; SHAPE.page_bytes as usize], vec![0x55; SHAPE.spare_bytes as usize]));
    }
    Shared::holding(medium)
}

/// What a check finds that is more than a warning.
fn errors(medium: &Shared<Patched>) -> usize {
    let report = check(&mut medium.clone(), &CheckOptions::default(), &mut |_, _| ());
    report.findings.iter().filter(|finding| finding.severity != Severity::Warning).count()
}

/// The objects of a volume, and that none of them shows anything but its own bytes and zeros.
fn objects_of(medium: &Shared<Patched>) -> Lengths {
    let device = FlashDevice::mount(medium.clone(), &MountOptions::default()).unwrap();
    let objects = device.list(ObjectId(0), 10_000).unwrap();
    let with_length = |object: ObjectId| {
        let mut bytes = vec![0; 10_000];
        let length = device.read(object, 0, &mut bytes).unwrap();
        assert!(bytes[..length].iter().all(|&byte| byte == object.0 as u8 || byte == 0), "{object} has foreign bytes");
        (object, bytes[..length].iter().filter(|&&byte| byte != 0).count())
    };
    objects.into_iter().map(with_length).collect()
}

/// A closed volume whose last checkpoint wrote every node of the index.
fn closed() -> (SimNand, Lengths) {
    let nand = Shared::new(SHAPE);
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let mut lengths = Lengths::new();
    for object in 64..200 {
        device.reserve_ids(1).unwrap();
        write(&device, &mut lengths, ObjectId(object), 300 + object as usize);
    }
    let mut transaction = Transaction::new();
    for object in lengths.keys() {
        transaction.set_attribute(*object, AttributeKey::new(AttributeKind(40), 2), vec![2]);
    }
    device.commit(transaction, Durability::Durable).unwrap();
    device.close().unwrap();
    (nand.with(|nand| nand.clone()), lengths)
}

#[test]
fn a_damaged_node_that_the_last_checkpoint_wrote_costs_a_closed_volume_nothing() {
    let (nand, lengths) = closed();
    let pages = pages_with_nodes(&nand);
    assert!(pages.len() > 5, "{} pages", pages.len());
    for page in pages {
        let medium = damaged(&nand, &[page]);
        let actions = repair(medium.clone(), &CAREFUL).unwrap().actions;
        assert!(actions.iter().any(|one| matches!(one, Action::OlderCheckpoint { commits: 0, .. })), "{actions:?}");
        assert!(actions.iter().all(|action| !action.is_loss()), "page {}: {actions:?}", page.0);
        assert_eq!(errors(&medium), 0, "page {}", page.0);
        assert_eq!(objects_of(&medium), lengths, "page {}", page.0);
    }
}

#[test]
fn all_nodes_that_the_last_checkpoint_wrote_may_be_damaged() {
    let (nand, lengths) = closed();
    let medium = damaged(&nand, &pages_with_nodes(&nand));
    let actions = repair(medium.clone(), &CAREFUL).unwrap().actions;
    assert!(actions.iter().any(|action| matches!(action, Action::OlderCheckpoint { commits: 0, .. })), "{actions:?}");
    assert_eq!(objects_of(&medium), lengths);
}

/// A volume whose segments were all used several times, so that older checkpoints name places where
/// something else is now.
fn busy(seed: u64) -> (SimNand, Lengths) {
    let nand = Shared::new(Geometry { blocks: 96, ..SHAPE });
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let (mut lengths, mut prng) = (Lengths::new(), Prng::new(seed));
    device.reserve_ids(60).unwrap();
    for round in 0..700 {
        let object = ObjectId(64 + prng.below(60));
        write(&device, &mut lengths, object, 1 + prng.below(1500) as usize);
        if round % 20 == 0 {
            device.maintain(4).unwrap();
        }
    }
    if seed.is_multiple_of(2) {
        device.close().unwrap();
    }
    drop(device);
    (nand.with(|nand| nand.clone()), lengths)
}

#[test]
fn what_a_repair_goes_back_to_is_what_was() {
    let (mut older, mut dropped) = (0, 0);
    for seed in 0..6 {
        let (nand, lengths) = busy(seed);
        let (pages, programmed) = (pages_with_nodes(&nand), Patched::new(&nand).programmed());
        let mut prng = Prng::new(seed);
        for _ in 0..24 {
            let count = 1 + prng.below(6);
            let mut chosen: Vec<_> = (0..count).map(|_| pages[prng.below(pages.len() as u64) as usize]).collect();
            // Of the journal or anything else, too.
            let others = if prng.below(2) == 0 { 0 } else { 1 + prng.below(40) };
            chosen.extend((0..others).map(|_| programmed[prng.below(programmed.len() as u64) as usize]));
            let medium = damaged(&nand, &chosen);
            let actions = match repair(medium.clone(), &DROP) {
                Ok(repaired) => repaired.actions,
                Err(error) => {
                    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                    continue;
                }
            };
            older += actions.iter().filter(|one| matches!(one, Action::OlderCheckpoint { .. })).count();
            dropped += actions.iter().filter(|one| matches!(one, Action::NodeDropped { .. })).count();
            assert_eq!(errors(&medium), 0, "seed {seed}, {chosen:?}: {actions:?}");
            let found = objects_of(&medium);
            if actions.iter().all(|action| !action.is_loss()) {
                assert_eq!(found, lengths, "seed {seed}, {chosen:?}: {actions:?}");
            }
        }
    }
    assert!(older > 0 && dropped > 0, "{older} went back, {dropped} dropped nodes");
}

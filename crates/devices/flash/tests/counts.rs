//! Claims about cost, counted in page operations.

use crate::common::{Flash, SMALL};
use onode_flash::{FlashDevice, MountOptions};
use onode_media::{Nand, OperationCounts};
use onode_object::conformance::Harness;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectId, Transaction};

fn counts(flash: &Flash) -> OperationCounts {
    flash.nand.with(|nand| nand.counters().map(|counters| counters.total()).unwrap_or_default())
}

fn object(flash: &Flash) -> ObjectId {
    let object = flash.device().reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    flash.device().commit(transaction, Durability::Durable).unwrap();
    object
}

fn durable(flash: &Flash, fill: impl FnOnce(&mut Transaction)) -> u64 {
    let before = counts(flash).programs;
    let mut transaction = Transaction::new();
    fill(&mut transaction);
    flash.device().commit(transaction, Durability::Durable).unwrap();
    counts(flash).programs - before
}

/// Durable commits whose payload fits a page cost one page program; checkpoints, which come every
/// 18 journal pages on so small a volume, add the rest.
#[test]
fn a_synced_operation_that_fits_a_page_costs_one_program() {
    let flash = Flash::holding(SMALL, 8 << 20);
    let object = object(&flash);
    let key = AttributeKey::new(AttributeKind::INODE, 0);
    let costs: Vec<u64> = (0..2000u64)
        .map(|i| {
            durable(&flash, |t| {
                t.set_attribute(object, key, vec![i as u8; 60]).write(object, i * 500, vec![i as u8; 500]);
            })
        })
        .collect();
    let ones = costs.iter().filter(|&&cost| cost == 1).count();
    assert!(ones >= 1850, "only {ones} of 2000 commits cost one program");
    let total: u64 = costs.iter().sum();
    assert!(total <= 2400, "{total} programs for 2000 commits");
}

/// 4 KiB on 2 KiB pages: two whole pages, the record in the spare area of the second.
#[test]
fn a_synced_write_of_two_pages_costs_two_programs() {
    let flash = Flash::holding(SMALL, 8 << 20);
    let object = object(&flash);
    durable(&flash, |t| {
        t.write(object, 0, vec![1; 4096]);
    });
    let costs: Vec<u64> = (1..100u64)
        .map(|i| {
            durable(&flash, |t| {
                t.write(object, i * 4096, vec![1; 4096]);
            })
        })
        .collect();
    assert_eq!(costs.iter().min(), Some(&2));
    assert!(costs.iter().filter(|&&cost| cost == 2).count() >= 85, "{costs:?}");
}

/// A volume that was closed mounts with a handful of reads and not one program, however full it is.
#[test]
fn a_clean_mount_reads_a_few_pages_and_writes_none() {
    let mut reads = Vec::new();
    for fill in [1u64, 30, 90] {
        let mut flash = Flash::holding(SMALL, 16 << 20);
        for i in 0..fill * 20 {
            let object = object(&flash);
            durable(&flash, |t| {
                t.write(object, 0, vec![i as u8; 7000]);
            });
        }
        flash.device().close().unwrap();
        flash.device = None;
        let before = counts(&flash);
        flash.device = Some(FlashDevice::mount(flash.nand.clone(), &MountOptions::default()).unwrap());
        let after = counts(&flash);
        assert_eq!((after.programs, after.erases), (before.programs, before.erases));
        reads.push(after.reads - before.reads);
    }
    assert!(reads.iter().all(|&reads| reads <= 24), "{reads:?} page reads");
}

/// After a cut only the journal since the last checkpoint is read.
#[test]
fn a_mount_after_a_cut_reads_what_was_logged_since_the_checkpoint() {
    let mut flash = Flash::holding(SMALL, 8 << 20);
    flash.options.checkpoint_pages = Some(64);
    flash.reopen();
    let object = object(&flash);
    for i in 0..1000u64 {
        durable(&flash, |t| {
            t.write(object, i * 100, vec![i as u8; 100]);
        });
    }
    flash.device = None;
    let before = counts(&flash);
    flash.mount();
    let reads = counts(&flash).reads - before.reads;
    assert!(reads <= 64 + 40, "{reads} page reads");
    let mut bytes = vec![0; 100_000];
    assert_eq!(flash.device().read(object, 0, &mut bytes).unwrap(), 100_000);
    assert!(bytes.chunks(100).zip(0u64..).all(|(part, i)| part.iter().all(|&byte| byte == i as u8)));
}

/// Wear-aware allocation: rewriting one object for long uses all segments.
#[test]
fn erases_spread_over_the_medium() {
    let flash = Flash::holding(SMALL, 2 << 20);
    let object = object(&flash);
    for i in 0..3000u64 {
        durable(&flash, |t| {
            t.write(object, (i % 16) * 8192, vec![i as u8; 8192]);
        });
    }
    let wear = flash.nand.with(|nand| nand.wear());
    let mean = wear.total / u64::from(flash.nand.geometry().blocks);
    assert!(mean >= 3, "too little was written to say anything: {wear:?}");
    assert!(u64::from(wear.most) <= mean * 2 + 4, "mean {mean}, {wear:?}");
}

/// The inode's new times go with it, and the pages that repeat records for the next mount are few.
#[test]
fn synced_rewrites_with_new_times_cost_two_programs_each() {
    let flash = Flash::holding(SMALL, 64 << 20);
    let object = object(&flash);
    let inode = AttributeKey::new(AttributeKind::INODE, 0);
    let mut costs = Vec::new();
    for i in 1..400u64 {
        let mut value = vec![7; 24];
        value[12..19].copy_from_slice(&(i * 1_000_003).to_le_bytes()[..7]);
        costs.push(durable(&flash, |t| {
            t.write(object, i * 7919 % 5000 * 4096, vec![1; 4096]).set_attribute(object, inode, value);
        }));
    }
    let total: u64 = costs.iter().sum();
    assert!(total <= 2 * 399 * 105 / 100, "{total} programs for 399 commits: {costs:?}");
}

//! What a mount reads, counted: flat in how full a volume is and in its size, clean or after a cut.

use crate::common::{Flash, Shared};
use onode_base::Prng;
use onode_flash::{FlashDevice, MountOptions};
use onode_media::{Geometry, Nand as _};
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, Transaction};

/// Pages of 2 KiB in blocks of 128 KiB, as in paper 1.
fn shape(blocks: u32) -> Geometry {
    Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks, chips: 1 }
}

fn put(device: &FlashDevice, object: ObjectId, create: bool, bytes: usize, durability: Durability) {
    let mut transaction = Transaction::new();
    if create {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, 0, vec![object.0 as u8; bytes]);
    transaction.set_attribute(object, AttributeKey::new(AttributeKind::INODE, 0), vec![7; 20]);
    device.commit(transaction, durability).unwrap();
}

/// Reads of a mount: clean; and the most of several, each after a cut somewhere in a run of synced
/// writes, creations and removals.
fn reads(blocks: u32, fill_percent: u64) -> (u64, u64) {
    let mut flash = Flash::on(Shared::new(shape(blocks)));
    let device = flash.device.take().unwrap();
    let total = device.space().available;
    let mut objects = Vec::new();
    while device.space().available > total / 100 * (100 - fill_percent) {
        let object = device.reserve_ids(1).unwrap();
        put(&device, object, true, 5000, Durability::Buffered);
        objects.push(object);
    }
    device.close().unwrap();
    drop(device);
    let mount = |flash: &Flash| {
        let before = flash.nand.with(|nand| nand.counters().unwrap().total().reads);
        let device = FlashDevice::mount(flash.nand.clone(), &MountOptions::default()).unwrap();
        (device, flash.nand.with(|nand| nand.counters().unwrap().total().reads) - before)
    };
    let (mut device, clean) = mount(&flash);
    let (mut most, mut young) = (0, Vec::new());
    let mut prng = Prng::new(u64::from(blocks) + fill_percent);
    for _ in 0..6 {
        for _ in 0..900 + prng.below(600) {
            // Files come and go, as in the churn that the peers were measured with.
            if young.len() > 200 {
                let mut transaction = Transaction::new();
                transaction.remove(young.swap_remove(prng.below(200) as usize));
                device.commit(transaction, Durability::Durable).unwrap();
            } else {
                let object = device.reserve_ids(1).unwrap();
                put(&device, object, true, 500 + prng.below(9500) as usize, Durability::Durable);
                young.push(object);
            }
        }
        drop(device);
        flash.nand.with(|nand| nand.reset_counters());
        let reads;
        (device, reads) = mount(&flash);
        most = most.max(reads);
    }
    (clean, most)
}

/// Reads and programs of the first synced 4 KiB after a mount, in an object that was there before.
fn first_write(flash: &Flash, object: ObjectId) -> (u64, u64) {
    let device = FlashDevice::mount(flash.nand.clone(), &MountOptions::default()).unwrap();
    let total = |nand: &Shared| nand.with(|nand| nand.counters().unwrap().total());
    let before = total(&flash.nand);
    let mut transaction = Transaction::new();
    transaction.write(object, 0, vec![9; 4096]);
    device.commit(transaction, Durability::Durable).unwrap();
    let after = total(&flash.nand);
    let mut found = vec![0; 4096];
    assert_eq!(device.read(object, 0, &mut found).unwrap(), 4096);
    assert_eq!(found, vec![9; 4096]);
    (after.reads - before.reads, after.programs - before.programs)
}

#[test]
fn nothing_is_scanned_for_the_first_write() {
    for (blocks, fill_percent) in [(1024, 10), (1024, 90), (65536, 2)] {
        let mut flash = Flash::on(Shared::new(shape(blocks)));
        let device = flash.device.take().unwrap();
        let total = device.space().available;
        let mut objects = Vec::new();
        while device.space().available > total / 100 * (100 - fill_percent) {
            let object = device.reserve_ids(1).unwrap();
            put(&device, object, true, 8192, Durability::Buffered);
            objects.push(object);
        }
        // Free space lies in many places, none of which a mount may have to look for.
        for object in objects.iter().skip(1).step_by(3) {
            let mut transaction = Transaction::new();
            transaction.remove(*object);
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.close().unwrap();
        drop(device);
        // The first mount is of a clean volume, the others follow a cut.
        for (number, object) in objects.iter().step_by(objects.len() / 9 * 3).enumerate() {
            let (reads, programs) = first_write(&flash, *object);
            let what = format!("{blocks} blocks, {fill_percent} % full, write {number}");
            eprintln!("{what}: {reads} reads, {programs} programs");
            // A superblock at either end of the medium, the content and its record.
            assert!(reads <= 8 && programs <= 4, "{what}: {reads} reads, {programs} programs");
        }
    }
}

#[test]
fn mounts_read_few_pages_however_full_the_volume() {
    for (blocks, fill_percent) in [(1024, 10), (1024, 50), (1024, 90), (65536, 2)] {
        let (clean, cut) = reads(blocks, fill_percent);
        eprintln!("{} MiB, {fill_percent} % full: {clean} clean, {cut} after a cut", blocks / 8);
        assert!(clean <= 20 && cut <= 64, "{blocks} blocks, {fill_percent} % full: {clean} clean, {cut} after a cut");
    }
}

//! Chips work side by side: a large write is divided over them, which virtual time shows.

use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, SimNand, SimOptions};
use onode_object::{Durability, Hints, ObjectDevice, SyncScope, Transaction};

const TOTAL: u64 = 24 << 20;
const PART: u64 = 256 << 10;

fn virtual_nanoseconds(device: &FlashDevice) -> u64 {
    let counters = device.inspect().unwrap().counters();
    counters.iter().find(|(name, _)| name == "nand.virtual_nanoseconds").unwrap().1
}

/// Virtual time of writing a large object in order, durable at the end.
fn write(chips: u32) -> u64 {
    let shape = Geometry { page_bytes: 2048, spare_bytes: 64, pages_per_block: 64, blocks: 512, chips };
    let nand = SimNand::new(shape, SimOptions::default()).unwrap();
    let device = FlashDevice::format(nand, &FormatOptions::default(), &MountOptions::default()).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default());
    device.commit(transaction, Durability::Buffered).unwrap();
    let begin = virtual_nanoseconds(&device);
    for part in 0..TOTAL / PART {
        let mut transaction = Transaction::new();
        transaction.write(object, part * PART, vec![part as u8; PART as usize]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    device.sync(SyncScope::All).unwrap();
    let written = virtual_nanoseconds(&device) - begin;
    let mut found = vec![0; PART as usize];
    for part in 0..TOTAL / PART {
        assert_eq!(device.read(object, part * PART, &mut found).unwrap(), PART as usize);
        assert!(found.iter().all(|&byte| byte == part as u8));
    }
    written
}

#[test]
fn eight_chips_write_seven_times_as_fast_as_one() {
    let (one, eight) = (write(1), write(8));
    println!("one chip {one} ns, eight {eight} ns");
    assert!(one >= 7 * eight, "one chip {one} ns, eight {eight} ns");
}

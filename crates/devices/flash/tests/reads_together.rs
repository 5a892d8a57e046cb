//! What a check, a scrub and the cleaner read, they ask for together: all chips of a NAND work.
//!
//! Programs and erases take no time here, so that virtual time is that of waiting for reads.

use crate::common::Shared;
use onode_base::Prng;
use onode_flash::{CheckOptions, FlashDevice, FormatOptions, MountOptions, check};
use onode_media::{Geometry, IoTag, Nand, SimOptions, sim::LatencyTable};
use onode_object::powers::Scrub;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};

const CHIPS: u32 = 16;
const READ: u64 = 100_000;
const OBJECTS: u64 = 3_500;
const PIECE: usize = 4_000;
const NAMES: u64 = 5_000;

fn chips(spare_bytes: u32) -> Shared {
    let shape = Geometry { page_bytes: 4096, spare_bytes, pages_per_block: 8, blocks: 48 * CHIPS, chips: CHIPS };
    let latency = LatencyTable { read_nanoseconds: READ, program_nanoseconds: 0, erase_nanoseconds: 0 };
    Shared::with_options(shape, SimOptions { latency, ..SimOptions::default() })
}

/// A volume of small objects, which were written in random order.
fn filled(nand: &Shared, format: &FormatOptions) -> (FlashDevice, ObjectId) {
    let options = MountOptions { node_cache_bytes: 256 << 10, ..MountOptions::default() };
    let device = FlashDevice::format(nand.clone(), format, &options).unwrap();
    let first = device.reserve_ids(OBJECTS).unwrap();
    // In an order of their own: 1,117 and the number of objects have no divisor in common.
    for turn in 0..OBJECTS {
        let number = turn * 1_117 % OBJECTS;
        write(&device, ObjectId(first.0 + number), number as u8);
    }
    device.sync(SyncScope::All).unwrap();
    (device, first)
}

fn write(device: &FlashDevice, object: ObjectId, byte: u8) {
    let mut transaction = Transaction::new();
    if device.stat(object).is_err() {
        transaction.create(object, Hints::default());
    }
    transaction.write(object, 0, vec![byte; PIECE]);
    device.commit(transaction, Durability::Buffered).unwrap();
}

/// How many reads were under way at a time on average while `work` went on, and how many they were.
fn together(nand: &Shared, what: &str, work: impl FnOnce()) -> f64 {
    let state = |nand: &Shared| nand.with(|nand| (nand.now_nanoseconds(), nand.counters().unwrap().total().reads));
    let (begun, before) = state(nand);
    work();
    let (end, reads) = state(nand);
    let waited = (end - begun).max(1);
    let together = ((reads - before) * READ) as f64 / waited as f64;
    println!("{what}: {} reads in {} us, {together:.1} at a time", reads - before, waited / 1000);
    together
}

#[test]
fn a_check_asks_for_many_pages_at_a_time() {
    let nand = chips(64);
    let (device, _) = filled(&nand, &FormatOptions::default());
    device.close().unwrap();
    for data in [false, true] {
        let at_a_time = together(&nand, &format!("check, data {data}"), || {
            let options = CheckOptions { data, ..CheckOptions::default() };
            assert!(check(&mut nand.clone(), &options, &mut |_, _| {}).is_sound());
        });
        assert!(at_a_time >= if data { 8.0 } else { 2.0 }, "{at_a_time} pages at a time");
    }
}

#[test]
fn a_scrub_asks_for_many_pages_at_a_time() {
    for parity_pages in [0, 1] {
        let nand = chips(64);
        let format = FormatOptions { parity_pages, ..FormatOptions::default() };
        let (device, first) = filled(&nand, &format);
        device.close().unwrap();
        let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
        let at_a_time = together(&nand, &format!("scrub of objects, {parity_pages} pages of parity"), || {
            let mut from = first;
            while let Some(next) = Scrub::scrub(&device, from, 64).unwrap().next {
                from = next;
            }
        });
        assert!(at_a_time >= 4.0, "{at_a_time} pages at a time");
        if parity_pages > 0 {
            let at_a_time = together(&nand, "scrub of rows", || {
                let mut from = 0;
                while let Some(next) = device.scrub_groups(from, 64).unwrap().next {
                    from = next;
                }
            });
            assert!(at_a_time >= 8.0, "{at_a_time} pages at a time");
        }
    }
}

#[test]
fn a_list_asks_for_more_nodes_the_further_it_goes() {
    let nand = chips(64);
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let directory = device.reserve_ids(1).unwrap();
    let key = |name: u64| AttributeKey::new(AttributeKind::FIRST_FREE, name);
    let mut transaction = Transaction::new();
    transaction.create(directory, Hints::default());
    for name in 0..NAMES {
        transaction.set_attribute(directory, key(name), vec![name as u8; 40]);
    }
    device.commit(transaction, Durability::Durable).unwrap();
    device.close().unwrap();
    for (limit, least) in [(1, 1.0), (256, 1.5), (NAMES as usize, 4.0)] {
        let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
        let at_a_time = together(&nand, &format!("{NAMES} names, {limit} a call"), || {
            let mut from = 0;
            while from < NAMES {
                let found = device.attributes(directory, key(from), limit).unwrap();
                assert_eq!(found.len(), limit.min((NAMES - from) as usize));
                from += found.len() as u64;
            }
        });
        assert!(at_a_time >= least, "{at_a_time} pages at a time");
    }
}

#[test]
fn the_cleaner_asks_for_many_pages_at_a_time() {
    let nand = chips(64);
    let (device, first) = filled(&nand, &FormatOptions::default());
    let mut prng = Prng::new(11);
    let cleaning = |nand: &Shared| nand.with(|nand| nand.counters().unwrap().of(IoTag::Cleaning).reads);
    let before = cleaning(&nand);
    let at_a_time = together(&nand, "rewriting in random order", || {
        for turn in 0..4 * OBJECTS {
            write(&device, ObjectId(first.0 + prng.below(OBJECTS)), turn as u8);
        }
        device.sync(SyncScope::All).unwrap();
    });
    println!("of them {} by the cleaner", cleaning(&nand) - before);
    assert!(at_a_time >= 4.0, "{at_a_time} pages at a time");
}

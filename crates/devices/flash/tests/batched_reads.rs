//! Reads of many places of a medium, which are asked for together.

use crate::common::patched::Patched;
use crate::common::{LARGE, SMALL, STRIPED, Shared, TINY};
use onode_base::Prng;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Counters, Geometry, IoTag, Nand, SimOptions, sim::LatencyTable};
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};

const PIECE: usize = 4096;
const PIECES: usize = 96;

/// The bytes of one piece: each says whose it is.
fn piece(number: usize) -> Vec<u8> {
    let mut bytes = vec![0; PIECE];
    Prng::new(number as u64).fill(&mut bytes);
    bytes
}

/// A volume with an object whose pieces lie in an order of their own, each beside another object's.
fn scattered(nand: &Shared, format: &FormatOptions) -> (FlashDevice, ObjectId) {
    // Nothing is kept in memory but what is being read.
    let options = MountOptions { page_cache_bytes: 64 << 10, ..MountOptions::default() };
    let device = FlashDevice::format(nand.clone(), format, &options).unwrap();
    let object = device.reserve_ids(2).unwrap();
    let other = ObjectId(object.0 + 1);
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).create(other, Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    for turn in 0..PIECES {
        let number = turn * 37 % PIECES;
        let mut transaction = Transaction::new();
        transaction.write(object, (number * PIECE) as u64, piece(number));
        transaction.write(other, (turn * PIECE) as u64, vec![turn as u8; PIECE]);
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    device.sync(SyncScope::All).unwrap();
    (device, object)
}

fn reads(nand: &Shared) -> u64 {
    nand.with(|nand| nand.counters()).map_or(0, |counters: Counters| counters.of(IoTag::Data).reads)
}

#[test]
fn what_is_scattered_is_read_whole_and_each_page_once() {
    for shape in [TINY, SMALL, LARGE, STRIPED] {
        let shape = Geometry { blocks: (64 << 20) / (shape.page_bytes * shape.pages_per_block), ..shape };
        for parity_pages in [0, 1] {
            if parity_pages > 0 && shape.spare_bytes < 32 {
                continue;
            }
            let nand = Shared::new(shape);
            let blocks = (parity_pages > 0).then_some(8);
            let format = FormatOptions { parity_pages, blocks_per_segment: blocks, ..FormatOptions::default() };
            let (device, object) = scattered(&nand, &format);
            for (offset, length) in [(0, PIECES * PIECE), (1, 200_000), (5000, 7), (100_000, 100_001)] {
                let before = reads(&nand);
                let mut buffer = vec![0; length];
                assert_eq!(device.read(object, offset as u64, &mut buffer).unwrap(), length);
                let right: Vec<u8> = (0..PIECES).flat_map(piece).skip(offset).take(length).collect();
                assert!(buffer == right, "{shape:?}, {length} bytes from {offset}");
                // A page of which the piece before has a part may be read for either.
                let pages = reads(&nand) - before;
                let most = 2 + (length / PIECE + 2) * (PIECE.div_ceil(shape.page_bytes as usize) + 1);
                assert!(pages as usize <= most, "{shape:?}: {pages} pages for {length} bytes, at most {most}");
            }
        }
    }
}

#[test]
fn a_damaged_page_costs_its_own_range_alone() {
    for shape in [TINY, LARGE] {
        let nand = Shared::new(Geometry { blocks: (64 << 20) / (shape.page_bytes * shape.pages_per_block), ..shape });
        let (device, object) = scattered(&nand, &FormatOptions::default());
        device.close().unwrap();
        let mut chip = nand.with(|nand| Patched::new(nand));
        let middle = &piece(50)[2000..2100];
        let has_it = |chip: &mut Patched, page| chip.page(page).0.windows(100).any(|bytes| bytes == middle);
        let pages = chip.programmed();
        let damaged = pages.into_iter().find(|page| has_it(&mut chip, *page)).unwrap();
        let (mut data, spare) = chip.page(damaged);
        data[shape.page_bytes as usize / 2] ^= 1;
        chip.patch(damaged, (data, spare));
        let chip = Shared::holding(chip);
        let device = FlashDevice::mount(chip, &MountOptions::default()).unwrap();

        let sound: Vec<u8> = (0..PIECES).flat_map(piece).collect();
        let mut buffer = vec![0; sound.len()];
        let error = device.read(object, 0, &mut buffer).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        let range = error.range.unwrap();
        let within = (50 * PIECE) as u64..(51 * PIECE) as u64;
        assert!(range.contains(&(within.start + 2050)) && range.end - range.start <= u64::from(shape.page_bytes));
        for part in [0..range.start, range.end..sound.len() as u64] {
            let mut buffer = vec![0; (part.end - part.start) as usize];
            device.read(object, part.start, &mut buffer).unwrap();
            assert!(buffer[..] == sound[part.start as usize..part.end as usize]);
        }
    }
}

/// The time of a read on a NAND of 16 chips: large reads at once, and in calls of one page.
#[test]
fn one_large_read_uses_all_chips() {
    let shape = Geometry { page_bytes: 4096, spare_bytes: 64, pages_per_block: 64, blocks: 512, chips: 16 };
    let latency = LatencyTable { read_nanoseconds: 100_000, ..LatencyTable::default() };
    let nand = Shared::with_options(shape, SimOptions { latency, ..SimOptions::default() });
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 1 << 20]);
    device.commit(transaction, Durability::Durable).unwrap();
    let time = |bytes: usize| {
        let begun = nand.with(|nand| nand.now_nanoseconds());
        let mut buffer = vec![0; bytes];
        for offset in (0..1 << 20).step_by(bytes) {
            assert_eq!(device.read(object, offset, &mut buffer).unwrap(), bytes);
        }
        nand.with(|nand| nand.now_nanoseconds()) - begun
    };
    let (together, alone) = (time(1 << 20), time(4096));
    println!("1 MiB from 16 chips of 100 us: {} us together, {} us page by page", together / 1000, alone / 1000);
    assert!(alone >= 12 * together, "{alone} ns page by page, {together} ns together");
}

//! Objects that choose how many lost pages of a row they outlive (paper 1, III.C): each has the
//! rows that it wishes, whatever moves it; what is left of a volume with lost blocks is what
//! wished so; and space is promised for the most that may be wished.

use crate::common::patched::Patched;
use crate::common::{Shared, counter, held};
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, check};
use onode_flash::layout::Layout;
use onode_flash::{FlashDevice, FormatOptions, MountOptions};
use onode_media::{Geometry, PageAddress, SimNand};
use onode_object::{Demand, Durability, Hints, ObjectDevice, ObjectId, ParityChoice, SyncScope, Transaction};
use std::collections::BTreeMap;

const SPARE: Geometry = Geometry { page_bytes: 512, spare_bytes: 64, pages_per_block: 8, blocks: 832, chips: 1 };
const BARE: Geometry = Geometry { spare_bytes: 0, ..SPARE };
const BLOCKS: u16 = 8;

/// Every wish: nothing said, none, and each number.
const WISHES: [u8; 5] = [0, Hints::NO_PARITY, 1, 2, 3];

type Held = BTreeMap<ObjectId, (u8, Vec<u8>)>;

fn format(most: u8, usual: u8) -> FormatOptions {
    FormatOptions {
        blocks_per_segment: Some(BLOCKS),
        parity_pages: most,
        chosen_parity: Some(usual),
        ..FormatOptions::default()
    }
}

fn wish(parity_pages: u8) -> Hints {
    Hints { parity_pages, ..Hints::default() }
}

/// The pages of parity that a wish comes to.
fn granted(wish: u8, most: u8, usual: u8) -> u32 {
    match wish {
        0 => usual.into(),
        Hints::NO_PARITY => 0,
        wish => wish.min(most).into(),
    }
}

/// Writes objects of every wish, over and over, with cleaning; some wishes change on the way.
fn work(device: &FlashDevice, held: &mut Held, rounds: u64, seed: u64) {
    let mut prng = Prng::new(seed);
    for round in 0..rounds {
        let mut transaction = Transaction::new();
        let object = if held.len() < 25 {
            let object = device.reserve_ids(1).unwrap();
            let wished = WISHES[held.len() % WISHES.len()];
            transaction.create(object, wish(wished));
            held.insert(object, (wished, Vec::new()));
            object
        } else {
            *held.keys().nth(prng.below(held.len() as u64) as usize).unwrap()
        };
        let (wished, content) = held.get_mut(&object).unwrap();
        if round % 9 == 8 {
            *wished = WISHES[prng.below(5) as usize];
            transaction.set_hints(object, wish(*wished));
        }
        let mut data = vec![0; 1 + prng.below(7000) as usize];
        prng.fill(&mut data);
        let offset = prng.below(9000) as usize;
        content.resize(content.len().max(offset + data.len()), 0);
        content[offset..offset + data.len()].copy_from_slice(&data);
        transaction.write(object, offset as u64, data);
        let durability = if prng.chance(1, 3) { Durability::Durable } else { Durability::Buffered };
        device.commit(transaction, durability).unwrap();
        if round % 50 == 49 {
            device.maintain(3).unwrap();
            device.rearrange(3).unwrap();
        }
    }
    device.sync(SyncScope::All).unwrap();
}

fn verify(device: &FlashDevice, held: &Held) {
    for (&object, (_, content)) in held {
        let mut bytes = vec![0; content.len() + 1];
        assert_eq!(device.read(object, 0, &mut bytes), Ok(content.len()), "{object}");
        assert!(bytes[..content.len()] == content[..], "{object}");
    }
}

/// Moves what is to move, and sees that nothing is left.
fn settle(device: &FlashDevice, held: &Held) {
    while device.maintain(8).unwrap().more | device.rearrange(8).unwrap().more {}
    assert_eq!(counter(device, "parity_pending"), 0);
    for &object in held.keys() {
        assert_eq!(device.other_parity(object), Ok(0), "{object}");
    }
}

fn is_sound(nand: &mut (impl onode_media::Nand + Clone)) {
    let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| ());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn content_has_the_parity_that_it_wishes_through_cleaning_crashes_and_changed_wishes() {
    let mut cleaned = 0;
    for (shape, most, usual, seed) in [(SPARE, 2, 0, 1), (BARE, 3, 1, 2), (SPARE, 1, 1, 3), (BARE, 3, 3, 4)] {
        let nand = Shared::new(shape);
        let options = MountOptions::default();
        let mut device = FlashDevice::format(nand.clone(), &format(most, usual), &options).unwrap();
        assert_eq!(device.parity(), Some(ParityChoice { most, usual }));
        let mut held = Held::new();
        for session in 0..4 {
            work(&device, &mut held, 400, seed * 10 + session);
            if session % 2 == 0 {
                device.close().unwrap();
                is_sound(&mut nand.clone());
            }
            drop(device);
            device = FlashDevice::mount(nand.clone(), &options).unwrap();
            verify(&device, &held);
            settle(&device, &held);
            is_sound(&mut nand.clone());
        }
        cleaned += counter(&device, "segments_cleaned");
    }
    assert!(cleaned > 0, "nothing was cleaned");
}

#[test]
fn a_changed_wish_moves_what_is_there_and_a_crash_forgets_none() {
    let nand = Shared::new(SPARE);
    let options = MountOptions::default();
    let device = FlashDevice::format(nand.clone(), &format(2, 0), &options).unwrap();
    let mut held = Held::new();
    let mut transaction = Transaction::new();
    let object = device.reserve_ids(1).unwrap();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 60_000]);
    device.commit(transaction, Durability::Durable).unwrap();
    held.insert(object, (2, vec![7; 60_000]));
    device.close().unwrap();
    let mut transaction = Transaction::new();
    transaction.set_hints(object, wish(2));
    device.commit(transaction, Durability::Durable).unwrap();
    assert!(device.other_parity(object).unwrap() > 50_000);
    let why = device.decisions(object).unwrap().pop().unwrap();
    assert!(why.matter == "parity" && why.choice == "2 of 8 pages" && why.why.contains("move in the background"));
    drop(device);
    // Once from the journal, once from the superblock that the recovery from that wrote.
    for crash in 1..=2 {
        let device = device_at(&nand);
        assert_eq!(counter(&device, "parity_pending"), 1, "crash {crash}");
        assert!(device.other_parity(object).unwrap() > 50_000);
    }
    let device = device_at(&nand);
    settle(&device, &held);
    assert!(counter(&device, "parity_moved_bytes") > 50_000);
    device.close().unwrap();
    verify(&device, &held);
    is_sound(&mut nand.clone());
    assert_eq!(counter(&device_at(&nand), "parity_pending"), 0);
}

/// A command that sets a hint without a mount is over when the volume is closed.
#[test]
fn who_closes_the_volume_moves_what_is_left() {
    let nand = Shared::new(SPARE);
    let device = FlashDevice::format(nand.clone(), &format(2, 0), &MountOptions::default()).unwrap();
    let object = device.reserve_ids(1).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(object, Hints::default()).write(object, 0, vec![7; 60_000]);
    device.commit(transaction, Durability::Buffered).unwrap();
    let mut transaction = Transaction::new();
    transaction.set_hints(object, wish(1));
    device.commit(transaction, Durability::Buffered).unwrap();
    device.close().unwrap();
    drop(device);
    let device = device_at(&nand);
    assert_eq!((counter(&device, "parity_pending"), device.other_parity(object)), (0, Ok(0)));
    is_sound(&mut nand.clone());
}

/// A wish that there is no room for is told, and fulfilled when there is some.
#[test]
fn a_wish_waits_for_room_and_health_tells() {
    let nand = Shared::new(SPARE);
    let device = FlashDevice::format(nand.clone(), &format(2, 0), &MountOptions::default()).unwrap();
    let mut all = held::Held::new();
    fill(&device, 0, 0, &mut all);
    let objects: Vec<_> = all.keys().copied().collect();
    let waits = |device: &FlashDevice| device.health().conditions.iter().any(|one| one.code == "parity-waits");
    assert!(!waits(&device));
    for object in objects.iter().take(objects.len() / 2) {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, wish(2));
        device.commit(transaction, Durability::Buffered).unwrap();
    }
    for _ in 0..2000 {
        device.maintain(4).unwrap();
        device.rearrange(4).unwrap();
    }
    let left =
        |device: &FlashDevice| objects.iter().map(|object| device.other_parity(*object).unwrap_or(0)).sum::<u64>();
    assert!(waits(&device) && left(&device) > 0, "there is no room for all of it");
    held::verify(&device, &all);
    for object in objects.iter().skip(objects.len() / 2) {
        let mut transaction = Transaction::new();
        transaction.remove(*object);
        device.commit(transaction, Durability::Buffered).unwrap();
        all.remove(object);
    }
    while left(&device) > 0 {
        device.maintain(8).unwrap();
        device.rearrange(8).unwrap();
    }
    assert!(!waits(&device) && counter(&device, "parity_pending") == 0);
    held::closes_whole(&device, &nand, &all);
}

fn device_at(nand: &Shared) -> FlashDevice {
    FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap()
}

/// A chip that lost `lost` blocks of every segment.
fn without_blocks(nand: &SimNand, layout: &Layout, lost: u32, prng: &mut Prng) -> Patched {
    let (shape, mut medium) = (layout.geometry, Patched::new(nand));
    for segment in 0..layout.segments {
        let mut blocks: Vec<_> = layout.blocks(segment).collect();
        for _ in 0..lost {
            let block = blocks.swap_remove(prng.below(blocks.len() as u64) as usize);
            let first = shape.first_page(block).0;
            for page in first..first + u64::from(shape.pages_per_block) {
                medium.patch(PageAddress(page), (vec![0; 512], vec![0; shape.spare_bytes as usize]));
            }
        }
    }
    medium
}

#[test]
fn who_wished_so_outlives_as_many_lost_blocks_of_each_segment() {
    for (shape, most, usual) in [(SPARE, 3, 0), (BARE, 2, 1)] {
        let nand = Shared::new(shape);
        let device = FlashDevice::format(nand.clone(), &format(most, usual), &MountOptions::default()).unwrap();
        let mut held = Held::new();
        work(&device, &mut held, 300, 5);
        settle(&device, &held);
        device.close().unwrap();
        drop(device);
        let layout = Layout::new(shape, BLOCKS).unwrap().with_records_in_spare().with_parity(most).unwrap();
        let now = nand.with(|nand| nand.clone());
        let mut prng = Prng::new(6);
        for lost in 1..=u32::from(most) {
            let medium = without_blocks(&now, &layout, lost, &mut prng);
            let options = MountOptions { read_only: true, ..MountOptions::default() };
            let device = FlashDevice::mount(medium, &options).unwrap();
            let mut losses = 0;
            for (&object, (wished, content)) in &held {
                let mut bytes = vec![0; content.len()];
                let read = device.read(object, 0, &mut bytes);
                if granted(*wished, most, usual) >= lost {
                    assert_eq!(read, Ok(content.len()), "{object} wished {wished}, {lost} blocks are lost");
                    assert!(bytes == *content);
                } else {
                    match read {
                        Ok(_) => assert!(bytes == *content),
                        Err(ref error) => assert_eq!(error.kind, ErrorKind::Corrupt),
                    }
                    losses += u32::from(read.is_err());
                }
                // Names and sizes have the most there is.
                assert_eq!(device.stat(object).unwrap().size, content.len() as u64);
            }
            assert!(losses > 3, "{losses} objects lost something: the test shows nothing");
        }
    }
}

#[test]
fn a_full_volume_keeps_its_promise_whatever_is_wished() {
    for (most, usual) in [(2, 0), (3, 3), (3, 1)] {
        for wished in WISHES {
            let nand = Shared::new(SPARE);
            let device = FlashDevice::format(nand.clone(), &format(most, usual), &MountOptions::default()).unwrap();
            let mut all = held::Held::new();
            // Half of it as it is usual, the rest as it is wished, both of it rewritten meanwhile.
            let half = device.space().available / 2;
            fill(&device, 0, half, &mut all);
            let promised = device.space().available;
            let written = fill(&device, wished, 0, &mut all);
            let demand = Demand { bytes: written + 20_000, ..Demand::default() };
            let needed = device.space_for(&demand);
            assert!(needed >= promised, "{written} bytes of {promised} went in, {wished} is wished");
            held::verify(&device, &all);
            let objects: Vec<_> = all.keys().copied().collect();
            for object in objects.iter().step_by(3) {
                let content = vec![9; all[object].len()];
                let mut transaction = Transaction::new();
                transaction.write(*object, 0, content.clone());
                device.commit(transaction, Durability::Buffered).unwrap();
                all.insert(*object, content);
            }
            for object in objects.iter().step_by(2) {
                let mut transaction = Transaction::new();
                transaction.remove(*object);
                device.commit(transaction, Durability::Buffered).unwrap();
                all.remove(object);
            }
            while device.maintain(8).unwrap().more | device.rearrange(8).unwrap().more {}
            held::closes_whole(&device, &nand, &all);
        }
    }
}

/// Makes objects with a wish until only `left` bytes are available, or nothing is taken any more;
/// returns how many bytes they have.
fn fill(device: &FlashDevice, wished: u8, left: u64, held: &mut held::Held) -> u64 {
    let mut written = 0;
    while device.space().available > left {
        let object = device.reserve_ids(1).unwrap();
        let content = vec![object.0 as u8; 8000];
        let mut transaction = Transaction::new();
        transaction.create(object, wish(wished)).write(object, 0, content.clone());
        match device.commit(transaction, Durability::Buffered) {
            Ok(()) => held.insert(object, content),
            Err(error) if error.kind == ErrorKind::NoSpace => break,
            Err(error) => panic!("{error}"),
        };
        written += 8000;
    }
    written
}

/// Less parity than the most is space that can be used.
#[test]
fn what_wishes_none_takes_the_room_of_none() {
    let filled = |options: &FormatOptions, wished| {
        let nand = Shared::new(SPARE);
        let device = FlashDevice::format(nand, options, &MountOptions::default()).unwrap();
        fill(&device, wished, 0, &mut held::Held::new())
    };
    let none = filled(&format(2, 0), 0);
    assert_eq!(none, filled(&format(2, 2), Hints::NO_PARITY));
    let two = filled(&format(2, 0), 2);
    let plain = FormatOptions { chosen_parity: None, ..format(2, 0) };
    assert!(none * 6 > two * 8 * 95 / 100, "{none} bytes without parity, {two} with two of eight pages");
    let all = filled(&plain, 0);
    assert!(two * 100 > all * 88, "{two} bytes where two are wished, {all} where all have two");
}

#[test]
fn content_without_parity_costs_none() {
    let parity_programs = |options: &FormatOptions, wished| {
        let nand = SimNand::new(SPARE, onode_media::SimOptions::default()).unwrap();
        let device = FlashDevice::format(nand, options, &MountOptions::default()).unwrap();
        fill(&device, wished, device.space().available / 2, &mut held::Held::new());
        device.sync(SyncScope::All).unwrap();
        let counters = device.inspect().unwrap().counters();
        // What never happened is not told.
        let of = |name: &str| counters.iter().find(|(one, _)| one == name).map_or(0, |(_, count)| *count);
        (of("parity.programs"), of("data.programs"))
    };
    let (parity, data) = parity_programs(&format(3, 0), 0);
    assert!(parity * 20 < data, "{parity} pages of parity beside {data} of content that wishes none");
    let (parity, data) = parity_programs(&format(3, 0), 3);
    // Three for five pages of content.
    assert!(parity * 100 > data * 58 && parity * 100 < data * 75, "{parity} pages of parity for {data} of content");
}

#[test]
fn a_volume_with_chosen_parity_grows_and_shrinks() {
    let medium = 1600;
    let format = FormatOptions { blocks: Some(832), ..format(2, 1) };
    let nand = Shared::new(Geometry { blocks: medium, ..SPARE });
    let device = FlashDevice::format(nand.clone(), &format, &MountOptions::default()).unwrap();
    let mut all = held::Held::new();
    for wished in WISHES {
        fill(&device, wished, device.space().available * 5 / 6, &mut all);
    }
    let resize = device.resizing().unwrap();
    let block = u64::from(SPARE.page_bytes * SPARE.pages_per_block);
    resize.grow(u64::from(medium) * block).unwrap();
    for wished in WISHES {
        fill(&device, wished, device.space().available * 5 / 6, &mut all);
    }
    held::closes_whole(&device, &nand, &all);
}

#[test]
fn impossible_choices_are_refused() {
    for (most, usual) in [(0, 0), (1, 2), (2, 3), (4, 0)] {
        let refused = FlashDevice::format(Shared::new(SPARE), &format(most, usual), &MountOptions::default());
        assert_eq!(refused.err().map(|error| error.kind), Some(ErrorKind::Invalid), "{usual}-{most}");
    }
}

//! Wear levelling on the device: what it reaches, what it costs, and that it never costs space or
//! content.

use crate::common::{self, Flash, Shared, counter};
use onode_base::{ErrorKind, Prng};
use onode_flash::check::{CheckOptions, check};
use onode_flash::policy::{Placement, WearPolicy};
use onode_flash::{FlashDevice, FormatOptions, MountOptions, Policies};
use onode_media::{Geometry, Nand};
use onode_object::powers::{Inspection, WearSpread};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, SyncScope, Transaction};

const SHAPE: Geometry = Geometry { page_bytes: 512, spare_bytes: 16, pages_per_block: 16, blocks: 260, chips: 1 };
const PIECE: u64 = 1024;
const OBJECT_BYTES: u64 = 16 << 10;

fn device(nand: &Shared, placement: Placement, wear: WearPolicy) -> FlashDevice {
    let policies = Policies { placement: Some(placement), wear: Some(wear), ..Policies::default() };
    let format = FormatOptions { policies, ..FormatOptions::default() };
    FlashDevice::format(nand.clone(), &format, &MountOptions::default()).unwrap()
}

fn look(device: &FlashDevice) -> Inspection {
    device.inspect().unwrap().inspection()
}

fn programs(nand: &Shared) -> u64 {
    nand.with(|nand| nand.counters().unwrap().total().programs)
}

/// Byte `at` of `object` after it was written in turn `turn`.
fn byte(object: u64, at: u64, turn: u64) -> u8 {
    (object * 31 + at * 7 + turn * 131) as u8
}

/// A volume filled to `percent`, of whose objects only the first few change.
struct Skewed {
    objects: u64,
    changing: u64,
    /// Turn in which each piece of the changing objects was last written.
    turns: Vec<u64>,
    prng: Prng,
    turn: u64,
}

impl Skewed {
    fn fill(device: &FlashDevice, percent: u64, changing: u64) -> Self {
        let objects = device.space().available * percent / 100 / OBJECT_BYTES;
        for number in 0..objects {
            let object = device.reserve_ids(1).unwrap();
            assert_eq!(object, ObjectId(ObjectId::FIRST_FREE.0 + number));
            let mut transaction = Transaction::new();
            transaction.create(object, Hints::default());
            transaction.write(object, 0, (0..OBJECT_BYTES).map(|at| byte(number, at % PIECE, 0)).collect::<Vec<_>>());
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.sync(SyncScope::All).unwrap();
        let turns = vec![0; (changing * OBJECT_BYTES / PIECE) as usize];
        Self { objects, changing, turns, prng: Prng::new(7), turn: 0 }
    }

    fn rewrite(&mut self, device: &FlashDevice, count: u64) {
        for _ in 0..count {
            self.turn += 1;
            let piece = self.prng.below(self.turns.len() as u64);
            let (object, offset) = (piece * PIECE / OBJECT_BYTES, piece * PIECE % OBJECT_BYTES);
            let mut transaction = Transaction::new();
            let content: Vec<u8> = (0..PIECE).map(|at| byte(object, at, self.turn)).collect();
            transaction.write(ObjectId(ObjectId::FIRST_FREE.0 + object), offset, content);
            device.commit(transaction, Durability::Buffered).unwrap();
            self.turns[piece as usize] = self.turn;
        }
        device.sync(SyncScope::All).unwrap();
    }

    fn expect(&self, device: &FlashDevice, what: &str) {
        let mut found = vec![0; OBJECT_BYTES as usize];
        for number in 0..self.objects {
            device.read(ObjectId(ObjectId::FIRST_FREE.0 + number), 0, &mut found).unwrap();
            for (index, piece) in (0..).zip(found.chunks(PIECE as usize)) {
                let pieces = OBJECT_BYTES / PIECE;
                let turn = if number < self.changing { self.turns[(number * pieces + index) as usize] } else { 0 };
                let expected = (0..).zip(piece).all(|(at, &one)| one == byte(number, at, turn));
                assert!(expected, "{what}: object {number}, piece {index}");
            }
        }
    }
}

fn expect_sound(nand: &Shared, what: &str) {
    let report = check(&mut nand.clone(), &CheckOptions::default(), &mut |_, _| {});
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
}

/// Wear and programs after long rewriting of a tenth of a volume of which 72 % are filled.
fn worn(placement: Placement, wear: WearPolicy) -> (WearSpread, u64) {
    let nand = Shared::new(SHAPE);
    let device = device(&nand, placement, wear);
    let mut work = Skewed::fill(&device, 72, 12);
    work.rewrite(&device, 50_000);
    let what = format!("{} with {}", placement.name(), wear.name());
    work.expect(&device, &what);
    let spread = look(&device).wear_spread().unwrap();
    println!("{what}: {spread:?}, {} programs, {} levelled", programs(&nand), counter(&device, "segments_levelled"));
    assert_eq!(counter(&device, "segments_levelled") > 0, wear == WearPolicy::Static, "{what}");
    let programs = programs(&nand);
    device.close().unwrap();
    expect_sound(&nand, &what);
    (spread, programs)
}

#[test]
fn static_levelling_brings_wear_together_at_little_cost() {
    for placement in [Placement::UserCleaner, Placement::Lifespan] {
        let (off, programs_off) = worn(placement, WearPolicy::Off);
        let (dynamic, _) = worn(placement, WearPolicy::Dynamic);
        let (levelled, programs_static) = worn(placement, WearPolicy::Static);
        let ratio = |wear: WearSpread| f64::from(wear.max) / wear.mean;
        let what = placement.name();
        assert!(ratio(off) >= 1.5 && ratio(dynamic) >= 1.5, "{what}: {off:?}, {dynamic:?}: the load is not skewed");
        assert!(ratio(levelled) <= 1.2, "{what}: {levelled:?}");
        let more = programs_static as f64 / programs_off as f64;
        assert!(more <= 1.05, "{what}: {programs_static} programs against {programs_off}");
    }
}

#[test]
fn a_nearly_full_volume_is_levelled_and_loses_no_space() {
    for placement in [Placement::Combined, Placement::Split, Placement::UserCleaner, Placement::Hints] {
        let nand = Shared::new(SHAPE);
        let device = device(&nand, placement, WearPolicy::Static);
        let empty = device.space();
        let mut work = Skewed::fill(&device, 93, 10);
        let full = device.space().available;
        for _ in 0..20 {
            // Every commit is expected to have room.
            work.rewrite(&device, 1500);
            assert_eq!(device.space().total, empty.total, "{}", placement.name());
            device.maintain(1).unwrap();
        }
        let left = device.space().available;
        assert!(left + empty.total / 100 >= full, "{}: {left} bytes are left of {full}", placement.name());
        let levelled = counter(&device, "segments_levelled");
        let spread = look(&device).wear_spread().unwrap();
        println!("{}: {levelled} levelled, {spread:?}", placement.name());
        // In one log for everything all content goes round, so that nothing is left to be levelled.
        let is_level = placement == Placement::Combined && f64::from(spread.max) <= 1.1 * spread.mean;
        assert!(levelled > 0 || is_level, "{}: {spread:?}", placement.name());
        work.expect(&device, placement.name());
        for number in 0..work.objects {
            let mut transaction = Transaction::new();
            transaction.remove(ObjectId(ObjectId::FIRST_FREE.0 + number));
            device.commit(transaction, Durability::Buffered).unwrap();
        }
        device.close().unwrap();
        let emptied = device.space();
        assert!(emptied.available + empty.total / 50 >= empty.available, "{emptied:?} against {empty:?}");
        expect_sound(&nand, placement.name());
    }
}

#[test]
fn a_full_volume_refuses_and_goes_on() {
    for wear in WearPolicy::ALL {
        let nand = Shared::new(SHAPE);
        let device = device(&nand, Placement::UserCleaner, wear);
        let mut work = Skewed::fill(&device, 50, 6);
        work.rewrite(&device, 4000);
        let filler = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(filler, Hints::default());
        device.commit(transaction, Durability::Durable).unwrap();
        let mut written = 0;
        let refused = loop {
            let mut transaction = Transaction::new();
            transaction.write(filler, written, vec![1; 4096]);
            match device.commit(transaction, Durability::Durable) {
                Ok(()) => written += 4096,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind, ErrorKind::NoSpace, "{}: {refused:?}", wear.name());
        let mut transaction = Transaction::new();
        transaction.truncate(filler, written / 4);
        device.commit(transaction, Durability::Durable).unwrap();
        work.rewrite(&device, 2000);
        work.expect(&device, wear.name());
        device.close().unwrap();
        expect_sound(&nand, wear.name());
    }
}

#[test]
fn cuts_in_the_midst_of_levelling_lose_nothing() {
    for placement in [Placement::UserCleaner, Placement::SepBit, Placement::Combined] {
        let nand = Shared::new(SHAPE);
        let mut device = device(&nand, placement, WearPolicy::Static);
        let mut work = Skewed::fill(&device, 70, 8);
        let mut prng = Prng::new(11);
        let mut levelled = 0;
        for cut in 0..60 {
            work.rewrite(&device, 100 + prng.below(400));
            levelled += counter(&device, "bytes_levelled");
            // No close: the mount replays.
            drop(device);
            device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
            if cut % 10 == 9 {
                work.expect(&device, &format!("{} after cut {cut}", placement.name()));
            }
        }
        assert!(levelled > 0 || placement == Placement::Combined, "{}", placement.name());
        device.close().unwrap();
        expect_sound(&nand, placement.name());
    }
}

#[test]
fn the_policy_is_kept_until_a_mount_says_another() {
    let wear = |device: &FlashDevice| {
        let policies = look(device).policies;
        policies.into_iter().find(|(what, _)| what == "wear").unwrap().1
    };
    let nand = Shared::new(SHAPE);
    let device = FlashDevice::format(nand.clone(), &FormatOptions::default(), &MountOptions::default()).unwrap();
    assert_eq!(wear(&device), "dynamic");
    drop(device);
    for policy in [WearPolicy::Static, WearPolicy::Off, WearPolicy::Dynamic] {
        let policies = Policies { wear: Some(policy), ..Policies::default() };
        let options = MountOptions { policies, ..MountOptions::default() };
        let device = FlashDevice::mount(nand.clone(), &options).unwrap();
        assert_eq!(wear(&device), policy.name());
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        transaction.create(object, Hints::default());
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        for _ in 0..2 {
            let device = FlashDevice::mount(nand.clone(), &MountOptions::default()).unwrap();
            assert_eq!(wear(&device), policy.name());
        }
    }
}

#[test]
fn the_object_that_changes_most_is_named() {
    let nand = Shared::new(SHAPE);
    let device = device(&nand, Placement::UserCleaner, WearPolicy::Dynamic);
    let mut work = Skewed::fill(&device, 70, 1);
    work.rewrite(&device, 3000);
    let costliest = look(&device).costliest;
    let most = costliest.first().unwrap();
    assert_eq!(most.object, ObjectId::FIRST_FREE.0);
    let written = 3000 * PIECE / 512;
    assert!(most.pages >= written && most.pages - most.over <= 2 * written, "{most:?} for {written} pages");
    assert!(costliest.len() == 32 && costliest[1].pages < most.pages / 4, "{costliest:?}");
}

#[test]
fn every_policy_conforms() {
    for wear in [WearPolicy::Static, WearPolicy::Off] {
        let policies = Policies { wear: Some(wear), ..Policies::default() };
        let options = MountOptions { policies, write_buffer_bytes: 2048, ..MountOptions::default() };
        let make = |bytes: u64| -> Box<dyn onode_object::conformance::Harness> {
            Box::new(Flash::with(common::SMALL, bytes, options))
        };
        onode_object::conformance::run("", &make).assert_passed(wear.name());
    }
}

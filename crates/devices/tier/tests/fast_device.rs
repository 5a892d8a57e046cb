//! The fast disk under a whole volume: what it costs inside, what it gains, and moving objects on
//! purpose.

use onode_base::Prng;
use onode_base::clock::ManualClock;
use onode_media::blockdev::BlockDev;
use onode_media::sim::disk::ftl::LogBlock;
use onode_media::sim::disk::hdd::{Hdd, HddOptions};
use onode_media::sim::disk::ssd::{Ssd, SsdOptions};
use onode_media::sim::disk::{HostClock, SimDisk};
use onode_object::powers::Place;
use onode_object::{Durability, ErrorKind, Hints, ObjectDevice, ObjectId, ObjectKind, Placement, Target, Transaction};
use onode_tier::fast::{FastOptions, FastSettings, SectionOptions};
use onode_tier::{FormatOptions, MountOptions, NewFast, TierDevice};
use std::sync::Arc;

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;

/// A solid-state disk with a layer that maps blocks, all of it written once before.
fn used_ssd(bytes: u64, clock: &HostClock) -> SimDisk {
    let layer = LogBlock::new(bytes / BLOCK, 64, 3);
    let mut disk = SimDisk::with_model("ssd", bytes, Box::new(Ssd::new(SsdOptions::iodrive(), Box::new(layer))), clock);
    disk.zero(0, bytes).expect("no fault");
    disk.discard(0, bytes).expect("no fault");
    disk.flush().expect("no fault");
    disk
}

/// A volume on both disks.
fn format(
    fast: SimDisk,
    big: SimDisk,
    ring_bytes: u64,
    sections: Vec<SectionOptions>,
    mount: &MountOptions,
) -> TierDevice {
    let options = FastOptions { ring_bytes, sections, ..FastOptions::default() };
    let fast = NewFast { disk: Box::new(fast), uuid: [3; 16], options };
    TierDevice::format(Box::new(big), Some(fast), &log_of(ring_bytes), mount).expect("format")
}

fn log_of(bytes: u64) -> FormatOptions {
    FormatOptions { log_bytes: Some(bytes), ..FormatOptions::default() }
}

fn one_section() -> Vec<SectionOptions> {
    vec![SectionOptions::new("all", 1, 64 << 10)]
}

fn hints(placement: Placement) -> Hints {
    Hints { kind: ObjectKind::Data, placement_class: placement.to_class(), ..Hints::default() }
}

fn content(object: u64, bytes: u64) -> Vec<u8> {
    let mut content = vec![0; bytes as usize];
    Prng::new(object).fill(&mut content);
    content
}

/// Makes objects of `bytes` each.
fn create(device: &TierDevice, count: u64, bytes: u64, hints: Hints) -> Vec<ObjectId> {
    let first = device.reserve_ids(count).expect("ids");
    let objects: Vec<ObjectId> = (first.0..first.0 + count).map(ObjectId).collect();
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.create(*object, hints);
        transaction.write(*object, 0, content(object.0, bytes));
        device.commit(transaction, Durability::Buffered).expect("room");
    }
    device.sync(onode_object::SyncScope::All).expect("no fault");
    objects
}

fn check(device: &TierDevice, object: ObjectId, bytes: u64) {
    let mut found = vec![0; bytes as usize];
    assert_eq!(device.read(object, 0, &mut found).expect("sound"), bytes as usize);
    assert_eq!(found, content(object.0, bytes));
}

fn model_count(disk: &SimDisk, name: &str) -> u64 {
    disk.model_counters().into_iter().find(|(own, _)| *own == name).map(|(_, count)| count).expect("a count")
}

#[test]
fn synced_writes_of_4_kib_at_random_cost_a_tenth_more_pages_at_most() {
    let disk = used_ssd(64 * MIB, &HostClock::default());
    let big = SimDisk::new("big", 96 * MIB);
    let device = format(disk.clone(), big, 2 * MIB, one_section(), &MountOptions::default());
    let object = create(&device, 1, 24 * MIB, hints(Placement::default()))[0];
    device.close().expect("no fault");
    let before = (model_count(&disk, "pages written"), model_count(&disk, "pages programmed"));
    let mut prng = Prng::new(1);
    let writes = 6000;
    for number in 0..writes {
        let mut transaction = Transaction::new();
        transaction.write(object, prng.below(24 * MIB / BLOCK) * BLOCK, content(number, BLOCK));
        device.commit(transaction, Durability::Durable).expect("room");
    }
    device.close().expect("no fault");
    let written = model_count(&disk, "pages written") - before.0;
    let programmed = model_count(&disk, "pages programmed") - before.1;
    println!("{writes} writes: {written} pages written, {programmed} programmed");
    assert!(written >= writes, "every write is in the log: {written}");
    assert!(programmed * 100 <= written * 110, "{programmed} pages programmed for {written}");
}

const BIG: u64 = 160 * MIB;
const FILE: u64 = 16 << 10;

/// Eight of ten reads go to a tenth of the objects; nanoseconds of the reads of those, and how many
/// there were.
fn read_hot(device: &TierDevice, objects: &[ObjectId], clock: &HostClock, prng: &mut Prng, reads: u64) -> (u64, u64) {
    let (mut nanoseconds, mut hot) = (0, 0);
    let mut buffer = vec![0; FILE as usize];
    for _ in 0..reads {
        let is_hot = prng.chance(8, 10);
        let number = prng.below(objects.len() as u64 / 10) * 10;
        let number = if is_hot { number } else { number + 1 + prng.below(9) };
        let before = clock.now();
        device.read(objects[number as usize], 0, &mut buffer).expect("sound");
        if is_hot {
            hot += 1;
            nanoseconds += clock.now() - before;
        }
    }
    (nanoseconds, hot)
}

#[test]
fn a_hot_set_is_read_nearly_as_fast_as_with_all_on_the_solid_state_disk() {
    let files = BIG * 6 / 10 / FILE;
    let bypass = hints(Placement { target: Target::Bypass, ..Placement::default() });
    let clock = HostClock::default();
    let alone = TierDevice::format(Box::new(used_ssd(BIG, &clock)), None, &log_of(MIB), &MountOptions::default());
    let alone = alone.expect("format");
    let objects = create(&alone, files, FILE, bypass);
    alone.close().expect("no fault");
    let (nanoseconds, hot) = read_hot(&alone, &objects, &clock, &mut Prng::new(5), 4000);
    let wanted = nanoseconds / hot;
    drop(alone);

    let clock = HostClock::default();
    let big = SimDisk::with_model("hdd", BIG, Box::new(Hdd::new(HddOptions::seagate_750())), &clock);
    let device = format(used_ssd(BIG / 10, &clock), big, MIB, one_section(), &MountOptions::default());
    // Nothing is copied when it is written: reads alone bring the hot set.
    let objects = create(&device, files, FILE, bypass);
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(Placement::default()));
        device.commit(transaction, Durability::Buffered).expect("room");
    }
    device.close().expect("no fault");
    let mut prng = Prng::new(6);
    read_hot(&device, &objects, &clock, &mut prng, 60_000);
    let (nanoseconds, hot) = read_hot(&device, &objects, &clock, &mut prng, 20_000);
    let percent = wanted * hot * 100 / nanoseconds;
    println!(
        "{percent} % of the throughput with all on the solid-state disk: {wanted} ns there, {} ns",
        nanoseconds / hot
    );
    assert!(percent >= 90, "{percent} % of the throughput with all on the solid-state disk");
    objects.iter().step_by(97).for_each(|object| check(&device, *object, FILE));
}

/// Nanoseconds to read an object of 32 MiB in requests of 1 MiB.
fn read_in_a_row(device: &TierDevice, object: ObjectId, clock: &HostClock) -> u64 {
    let before = clock.now();
    let mut buffer = vec![0; MIB as usize];
    for part in 0..32 {
        device.read(object, part * MIB, &mut buffer).expect("sound");
    }
    clock.now() - before
}

#[test]
fn a_large_file_is_read_in_a_row_as_fast_as_from_the_solid_state_disk_alone() {
    let clock = HostClock::default();
    let ssd = Box::new(used_ssd(64 * MIB, &clock));
    let alone = TierDevice::format(ssd, None, &log_of(2 * MIB), &MountOptions::default()).expect("format");
    let object = create(&alone, 1, 32 * MIB, hints(Placement::default()))[0];
    alone.close().expect("no fault");
    let wanted = read_in_a_row(&alone, object, &clock);
    drop(alone);

    let clock = HostClock::default();
    let big = SimDisk::with_model("hdd", 64 * MIB, Box::new(Hdd::new(HddOptions::seagate_750())), &clock);
    let sections = vec![SectionOptions::new("large", 1, 1 << 20)];
    let device = format(used_ssd(64 * MIB, &clock), big, 2 * MIB, sections, &MountOptions::default());
    let object = create(&device, 1, 32 * MIB, hints(Placement::default()))[0];
    device.close().expect("no fault");
    let found = read_in_a_row(&device, object, &clock);
    println!("{} MB/s, alone {} MB/s", 32_000 * MIB / found, 32_000 * MIB / wanted);
    assert!(wanted * 100 >= found * 95, "{found} ns, from the solid-state disk alone {wanted}");
}

struct Pair {
    fast: SimDisk,
    big: SimDisk,
    device: TierDevice,
}

fn pair() -> Pair {
    pair_with(FastSettings::default())
}

fn pair_with(settings: FastSettings) -> Pair {
    let (fast, big) = (SimDisk::new("fast", 16 * MIB), SimDisk::new("big", 64 * MIB));
    let sections = vec![SectionOptions::new("small", 1, 16 << 10), SectionOptions::new("large", 1, 256 << 10)];
    let mount = MountOptions { fast: settings, ..MountOptions::default() };
    let device = format(fast.clone(), big.clone(), 512 << 10, sections, &mount);
    Pair { fast, big, device }
}

fn in_section(number: u8) -> Placement {
    Placement { target: Target::Section(number), ..Placement::default() }
}

fn data_bytes(disk: &SimDisk) -> (u64, u64) {
    let of = disk.counters().expect("it counts").of(onode_media::IoTag::Data);
    (of.bytes_read, of.bytes_written)
}

#[test]
fn a_directory_is_remapped_without_copying_a_byte() {
    let Pair { fast, big, device } = pair();
    let objects = create(&device, 100, 32 << 10, hints(in_section(0)));
    device.close().expect("no fault");
    let before = device.why(objects[0]).expect("known");
    assert_eq!((before.section.as_deref(), before.fast_bytes), (Some("small"), 32 << 10));
    fast.reset_counters();
    big.reset_counters();
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(in_section(1)));
        device.commit(transaction, Durability::Buffered).expect("room");
    }
    device.close().expect("no fault");
    assert_eq!((data_bytes(&fast).0, data_bytes(&big)), (0, (0, 0)), "nothing is read, nothing written");
    assert!(data_bytes(&fast).1 <= 4 * BLOCK, "{:?}: nodes of the tree that changed", data_bytes(&fast));
    let after = device.why(objects[0]).expect("known");
    assert_eq!((after.section.as_deref(), after.fast_bytes), (Some("large"), 32 << 10), "the old copies still serve");
    assert!(after.reasons.iter().all(|reason| reason.contains("`small`")), "{:?}", after.reasons);
    // What is written from now on goes to the new section.
    let mut transaction = Transaction::new();
    transaction.write(objects[0], 0, content(objects[0].0, 32 << 10));
    device.commit(transaction, Durability::Durable).expect("room");
    device.close().expect("no fault");
    let after = device.why(objects[0]).expect("known");
    assert!(after.reasons.iter().all(|reason| reason.contains("`large`")), "{:?}", after.reasons);
    objects.iter().for_each(|object| check(&device, *object, 32 << 10));
    device.verify().expect("sound");
}

#[test]
fn what_is_promoted_is_there_when_the_call_returns_and_gone_when_demoted() {
    let Pair { fast, big, device } = pair();
    let bypass = Placement { target: Target::Bypass, ..Placement::default() };
    let object = create(&device, 1, 200 << 10, hints(bypass))[0];
    let refused = device.promote(object, true).expect_err("it bypasses");
    assert_eq!(refused.kind, ErrorKind::Invalid);
    let mut transaction = Transaction::new();
    transaction.set_hints(object, hints(in_section(1)));
    device.commit(transaction, Durability::Durable).expect("room");
    let moved = device.promote(object, true).expect("there is room");
    assert_eq!((moved.bytes, moved.waiting), (200 << 10, 0));
    assert_eq!(device.promote(object, true).expect("there").bytes, 0, "a second time there is nothing to do");
    big.reset_counters();
    check(&device, object, 200 << 10);
    assert_eq!(data_bytes(&big), (0, 0), "it is read from the fast disk");
    assert_eq!(device.demote(object).expect("known").bytes, 200 << 10);
    assert_eq!(device.why(object).expect("known").fast_bytes, 0);
    check(&device, object, 200 << 10);
    // In the background: on the list first, copied by maintenance.
    let moved = device.promote(object, false).expect("there is room");
    assert_eq!((moved.bytes, moved.waiting), (0, 200 << 10));
    while device.maintain(4).expect("no fault").more {}
    assert_eq!(device.why(object).expect("known").fast_bytes, 200 << 10);
    // Larger than its section, it is refused before anything is copied.
    let large = create(&device, 1, 12 * MIB, hints(bypass))[0];
    let mut transaction = Transaction::new();
    transaction.set_hints(large, hints(in_section(0)));
    device.commit(transaction, Durability::Durable).expect("room");
    fast.reset_counters();
    for waits in [true, false] {
        assert_eq!(device.promote(large, waits).expect_err("too large").kind, ErrorKind::NoSpace);
    }
    assert_eq!(data_bytes(&fast).1, 0);
    assert_eq!(device.promote(ObjectId(1 << 40), true).expect_err("no such object").kind, ErrorKind::NotFound);
}

#[test]
fn what_is_read_twice_in_one_large_request_is_copied() {
    let Pair { big, device, .. } = pair();
    let bypass = Placement { target: Target::Bypass, ..Placement::default() };
    let object = create(&device, 1, 3 * MIB, hints(bypass))[0];
    device.sync(onode_object::SyncScope::All).expect("no fault");
    let reasons = device.why(object).expect("known").reasons;
    let of_ranges = reasons.iter().filter(|reason| reason.starts_with("bytes"));
    assert!(of_ranges.clone().count() > 1, "{reasons:?}");
    assert!(of_ranges.clone().all(|reason| reason.contains("bypasses")), "{reasons:?}");
    let mut transaction = Transaction::new();
    transaction.set_hints(object, hints(in_section(0)));
    device.commit(transaction, Durability::Durable).expect("room");
    device.close().expect("no fault");
    let copied = || device.why(object).expect("known").fast_bytes;
    check(&device, object, 3 * MIB);
    assert_eq!(copied(), 0, "it was asked for once");
    check(&device, object, 3 * MIB);
    assert_eq!(copied(), 3 * MIB);
    big.reset_counters();
    check(&device, object, 3 * MIB);
    assert_eq!(data_bytes(&big), (0, 0));
}

#[test]
fn moves_in_the_background_keep_to_the_budget_of_the_day() {
    const DAY: u64 = 86_400_000_000_000;
    // Four objects, and nodes of the tree.
    let daily_bytes = Some((512 + 64) << 10);
    let Pair { device, .. } = pair_with(FastSettings { daily_bytes, ..FastSettings::default() });
    let clock = Arc::new(ManualClock::at(DAY * 20_000));
    device.set_clock(clock.clone());
    let bypass = Placement { target: Target::Bypass, ..Placement::default() };
    let objects = create(&device, 10, 128 << 10, hints(bypass));
    device.close().expect("no fault");
    for object in &objects {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(in_section(0)));
        device.commit(transaction, Durability::Durable).expect("room");
        device.promote(*object, false).expect("it goes on the list");
    }
    let copied = || objects.iter().map(|object| device.why(*object).expect("known").fast_bytes).sum::<u64>();
    for day in 1..3 {
        while device.maintain(3).expect("no fault").more {}
        assert_eq!(copied(), day * (512 << 10), "day {day}");
        clock.advance(DAY);
    }
    // Who waits for it does not wait for tomorrow.
    while device.maintain(3).expect("no fault").more {}
    let bytes = device.promote(objects[9], true).expect("there is room").bytes;
    assert_eq!((bytes, copied()), (0, 10 * (128 << 10)), "the third day had enough for the last two");
    let more = create(&device, 10, 128 << 10, hints(bypass));
    for object in &more {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(in_section(0)));
        device.commit(transaction, Durability::Durable).expect("room");
        assert_eq!(device.promote(*object, true).expect("there is room").bytes, 128 << 10);
    }
}

#[test]
fn pinned_objects_stay_while_others_come_and_go() {
    let Pair { device, .. } = pair();
    let pinned = Placement { pinned: true, ..in_section(0) };
    let by_placement = create(&device, 4, 64 << 10, hints(pinned));
    let by_hand = create(&device, 4, 64 << 10, hints(in_section(0)));
    device.close().expect("no fault");
    by_hand.iter().for_each(|object| device.pin(*object, true).expect("known"));
    // A placement that is changed pins what is there.
    let later = create(&device, 4, 64 << 10, hints(in_section(0)));
    device.close().expect("no fault");
    for object in &later {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(pinned));
        device.commit(transaction, Durability::Durable).expect("room");
    }
    let others = create(&device, 300, 64 << 10, hints(in_section(0)));
    device.close().expect("no fault");
    for object in by_placement.iter().chain(&by_hand).chain(&later) {
        let found = device.why(*object).expect("known");
        assert_eq!(found.fast_bytes, 64 << 10, "{:?}", found.reasons);
        assert!(found.reasons.iter().any(|reason| reason.contains("pinned")), "{:?}", found.reasons);
    }
    let kept = others.iter().filter(|object| device.why(**object).expect("known").fast_bytes > 0).count();
    assert!(kept < others.len(), "some had to go");
    // Let go, they go.
    by_hand.iter().for_each(|object| device.pin(*object, false).expect("known"));
    for object in &later {
        let mut transaction = Transaction::new();
        transaction.set_hints(*object, hints(in_section(0)));
        device.commit(transaction, Durability::Durable).expect("room");
    }
    create(&device, 300, 64 << 10, hints(in_section(0)));
    device.close().expect("no fault");
    let left = by_hand.iter().chain(&later).map(|object| device.why(*object).expect("known").fast_bytes);
    assert!(left.sum::<u64>() < 4 * (64 << 10));
    assert_eq!(device.pin(ObjectId(1 << 40), true).expect_err("no such object").kind, ErrorKind::NotFound);
}

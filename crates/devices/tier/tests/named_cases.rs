//! Failures that other tiered systems had, by the numbers of `research/reliability.md`: 33 to 37,
//! 41 and 46.

use crate::common::{Pair, new_fast};
use onode_base::checksum::crc32c;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::sim::disk::log::DiskLog;
use onode_media::{BlockDev, IoTag};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Placement, Target, Transaction};
use onode_tier::{MountOptions, TierDevice};

const OBJECT: ObjectId = ObjectId(7);
const BYTES: usize = 20_000;

fn either() -> MountOptions {
    MountOptions { acknowledge: Acknowledge::Either, ..MountOptions::default() }
}

fn pair(options: MountOptions) -> Pair {
    let pair = Pair::with(8 << 20, 4 << 20, options);
    let mut transaction = Transaction::new();
    transaction.create(OBJECT, Hints::default());
    device(&pair).commit(transaction, Durability::Durable).unwrap();
    pair
}

fn device(pair: &Pair) -> &TierDevice {
    pair.device.as_ref().unwrap()
}

fn write(device: &TierDevice, byte: u8) {
    let mut transaction = Transaction::new();
    transaction.write(OBJECT, 0, vec![byte; BYTES]);
    device.commit(transaction, Durability::Durable).unwrap();
}

#[track_caller]
fn expect(device: &TierDevice, byte: u8) {
    let mut found = vec![!byte; BYTES];
    device.read(OBJECT, 0, &mut found).unwrap();
    let wrong = found.iter().find(|it| **it != byte);
    assert_eq!(wrong, None, "instead of {byte}");
}

fn counter(device: &TierDevice, name: &str) -> u64 {
    let counters = device.inspect().unwrap().counters();
    counters.into_iter().find(|(known, _)| known == name).map_or(0, |(_, count)| count)
}

/// The disk after the power was cut with nothing of its cache saved, or as it is.
fn copy(disk: &SimDisk, with_cache: bool) -> SimDisk {
    let content = disk.content().after_cut(|_, _| with_cache);
    SimDisk::from_content(disk.name(), disk.bytes(), content)
}

fn both(fast: &SimDisk, big: &SimDisk, options: &MountOptions) -> TierDevice {
    TierDevice::mount(Box::new(big.clone()), Some(Box::new(fast.clone())), options).unwrap()
}

/// Who goes on without the fast disk where changes wait for that alone consents to their loss.
fn alone(big: &SimDisk, options: &MountOptions) -> TierDevice {
    let accept_loss = options.accept_loss || options.acknowledge == Acknowledge::Either;
    let options = MountOptions { accept_loss, ..options.clone() };
    TierDevice::mount(Box::new(big.clone()), None, &options).unwrap()
}

/// Moves what is pending to its home, and promotes it.
fn settle(device: &TierDevice) {
    device.close().unwrap();
    device.place().unwrap().promote(OBJECT, true).unwrap();
}

/// bcache: an upgrade lost what only the cache had. A version that is not known changes nothing on
/// either disk.
#[test]
fn case_33_a_format_that_is_not_known_is_left_alone() {
    let pair = pair(either());
    write(device(&pair), 3);
    let (fast, big) = (copy(&pair.fast, false), copy(&pair.big, false));
    let patch = |disk: &SimDisk, version: u8, place: usize| {
        let mut disk = disk.clone();
        for block in 0..2 {
            let mut bytes = vec![0; 4096];
            disk.read_at(block * 4096, &mut bytes, IoTag::Anchor).unwrap();
            bytes[place] = version;
            let sum = crc32c(&bytes[..4092]).to_le_bytes();
            bytes[4092..].copy_from_slice(&sum);
            disk.write_at(block * 4096, &bytes, IoTag::Anchor).unwrap();
        }
    };
    patch(&big, 9, 8);
    let refused = TierDevice::mount(Box::new(big.clone()), Some(Box::new(fast.clone())), &either()).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::NotSupported);
    assert!(refused.detail.contains("format 9"), "{refused}");
    let refused = TierDevice::mount(Box::new(big.clone()), None, &either()).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::NotSupported);
    patch(&big, 1, 8);
    let device = both(&fast, &big, &either());
    expect(&device, 3);
    assert!(counter(&device, "log.recovered_from_fast") > 0, "only the fast disk had it");
}

/// EnhanceIO: a cache that comes back after the backing disk was changed must not win, in no order
/// of mounts, and not in a read-only one.
#[test]
fn case_34_a_fast_disk_that_comes_back_is_older() {
    for with_earlier_copy in [false, true] {
        let pair = pair(MountOptions::default());
        write(device(&pair), 1);
        settle(device(&pair));
        let earlier = copy(&pair.fast, true);
        write(device(&pair), 2);
        settle(device(&pair));
        let fast = if with_earlier_copy { earlier } else { copy(&pair.fast, true) };
        let big = copy(&pair.big, true);
        let options = MountOptions::default();
        let without = alone(&big, &options);
        expect(&without, 2);
        write(&without, 3);
        without.close().unwrap();
        drop(without);
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        expect(&both(&fast, &big, &read_only), 3);
        for _ in 0..3 {
            let device = both(&fast, &big, &options);
            expect(&device, 3);
            device.verify().unwrap();
            drop(device);
            expect(&alone(&big, &options), 3);
        }
    }
}

/// dm-writeboost: filling the cache by a read raced a write.
#[test]
fn case_35_copies_made_by_reading_never_outlive_a_write() {
    let pair = pair(MountOptions::default());
    let device = device(&pair);
    for byte in 1..60 {
        write(device, byte);
        if byte % 3 == 0 {
            device.close().unwrap();
        }
        for _ in 0..3 {
            expect(device, byte);
        }
        let _ = device.place().unwrap().promote(OBJECT, byte % 2 == 0);
        device.maintain(8).unwrap();
        expect(device, byte);
    }
    assert!(counter(device, "fast.blocks_read") > 0, "nothing was ever read from a copy");
}

/// bcachefs: a wiped cache disk. Safe loses nothing; a wiped disk is refused with advice, never
/// taken for an empty one.
#[test]
fn case_36_a_wiped_fast_disk() {
    for options in [MountOptions::default(), either()] {
        let pair = pair(options.clone());
        write(device(&pair), 1);
        device(&pair).maintain(1).unwrap();
        write(device(&pair), 2);
        let wiped = SimDisk::new("fast", pair.fast.bytes());
        let big = copy(&pair.big, false);
        let refused = TierDevice::mount(Box::new(big.clone()), Some(Box::new(wiped.clone())), &options).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::WrongPart);
        assert!(refused.detail.contains("attach"), "{refused}");
        let is_safe = options.acknowledge != Acknowledge::Either;
        expect(&alone(&big, &options), if is_safe { 2 } else { 1 });
        let new = TierDevice::attach(Box::new(big), new_fast(&wiped), &options).unwrap();
        expect(&new, if is_safe { 2 } else { 1 });
        write(&new, 9);
        expect(&new, 9);
        assert!(new.has_fast());
        // What only the fast disk had is told when it comes back.
        if !is_safe {
            let (fast, big) = (copy(&pair.fast, false), copy(&pair.big, false));
            drop(alone(&big, &options));
            let back = both(&fast, &big, &options);
            assert_eq!(counter(&back, "log.dropped_of_fast"), 1, "{:?}", back.reports());
            expect(&back, 1);
        }
    }
}

/// bcachefs: an evacuation that was interrupted left two extents on one block.
#[test]
fn case_37_moves_are_cut_anywhere() {
    let pair = pair(MountOptions::default());
    write(device(&pair), 1);
    settle(device(&pair));
    let before = [&pair.fast, &pair.big].map(|disk| disk.content().settled());
    let log = DiskLog::default();
    pair.fast.record(&log, 0);
    pair.big.record(&log, 1);
    let place = device(&pair).place().unwrap();
    for round in 0..4u8 {
        place.demote(OBJECT).unwrap();
        let target = if round % 2 == 0 { Target::Section(1) } else { Target::Section(0) };
        let placement_class = Placement { target, ..Placement::default() }.to_class();
        let mut transaction = Transaction::new();
        transaction.set_hints(OBJECT, Hints { placement_class, ..Hints::default() });
        device(&pair).commit(transaction, Durability::Durable).unwrap();
        place.promote(OBJECT, true).unwrap();
        device(&pair).close().unwrap();
    }
    let events = log.events();
    assert!(events.len() > 20, "only {} requests", events.len());
    let [mut fast, mut big] = before;
    for at in 0..=events.len() {
        let fast_left = SimDisk::from_content("fast", pair.fast.bytes(), fast.after_cut(|_, piece| piece % 3 == 0));
        let big_left = SimDisk::from_content("big", pair.big.bytes(), big.after_cut(|_, piece| piece % 2 == 0));
        let device = both(&fast_left, &big_left, &MountOptions::default());
        device.verify().unwrap();
        expect(&device, 1);
        device.place().unwrap().promote(OBJECT, true).unwrap();
        expect(&device, 1);
        let Some(event) = events.get(at) else { break };
        event.operation.apply(if event.disk == 0 { &mut fast } else { &mut big });
    }
}

/// The paper's own: the fast disk has it and the big one does not (flag 10), and the log wraps over
/// what one of them lacks.
#[test]
fn case_41_the_big_disk_lags_and_the_log_wraps() {
    let pair = pair(either());
    for byte in 1..100 {
        write(device(&pair), byte);
        let (fast, big) = (copy(&pair.fast, false), copy(&pair.big, false));
        let device = both(&fast, &big, &either());
        expect(&device, byte);
        assert_eq!(device.reports(), Vec::<String>::new());
        drop(device);
        // From then on the big disk has it, too.
        expect(&alone(&big, &either()), byte);
    }
    let ring = 256 << 10;
    assert!(counter(device(&pair), "log.bytes") > 2 * ring, "the log did not wrap");
}

/// The paper's own: both logs differ.
#[test]
fn case_41_both_logs_differ() {
    let pair = pair(either());
    device(&pair).maintain(1).unwrap();
    write(device(&pair), 1);
    // The fast disk is away for a while, with what only it had.
    let (fast, big) = (copy(&pair.fast, false), copy(&pair.big, false));
    // What that is nobody knows without it: whoever goes on consents to the loss.
    let without = alone(&big, &MountOptions { accept_loss: true, ..MountOptions::default() });
    write(&without, 2);
    drop(without);
    let device = both(&fast, &big, &MountOptions::default());
    expect(&device, 2);
    assert_eq!(counter(&device, "log.dropped_of_fast"), 1);
    assert!(device.reports().iter().any(|report| report.contains("dropped")), "{:?}", device.reports());
    drop(device);
    // It is told once.
    assert_eq!(both(&fast, &big, &MountOptions::default()).reports(), Vec::<String>::new());
}

/// A fast disk that says that it has flushed and has not: found out, reported, and nothing is lost
/// in class safe.
#[test]
fn case_46_a_fast_disk_that_lies_about_flushes() {
    let pair = pair(MountOptions::default());
    device(&pair).close().unwrap();
    let mut lying: Cached = pair.fast.content().settled();
    let log = DiskLog::default();
    pair.fast.record(&log, 0);
    for byte in 1..5 {
        write(device(&pair), byte);
    }
    for event in log.events() {
        if !event.operation.is_flush() {
            event.operation.apply(&mut lying);
        }
    }
    let fast = SimDisk::from_content("fast", pair.fast.bytes(), lying.after_cut(|_, _| false));
    let big = copy(&pair.big, false);
    let device = both(&fast, &big, &MountOptions::default());
    expect(&device, 4);
    assert_eq!(counter(&device, "disks_lying"), 1, "{:?}", device.reports());
    device.verify().unwrap();
}

/// A fast disk that goes back to what it was some time ago, with and without a checkpoint in
/// between.
#[test]
fn case_46_a_fast_disk_that_rolls_back() {
    for with_checkpoint in [false, true] {
        let pair = pair(MountOptions::default());
        write(device(&pair), 1);
        settle(device(&pair));
        let earlier = copy(&pair.fast, true);
        // Of the last record nobody can tell whether the fast disk had it before the power was cut.
        write(device(&pair), 9);
        write(device(&pair), 2);
        if with_checkpoint {
            settle(device(&pair));
        }
        let device = both(&earlier, &copy(&pair.big, false), &MountOptions::default());
        expect(&device, 2);
        assert_eq!(counter(&device, "disks_lying"), 1, "{:?}", device.reports());
        device.verify().unwrap();
    }
}

/// A big disk that goes back to what it was: the fast disk brings the records that it lacks, if
/// they still follow.
#[test]
fn case_46_a_big_disk_that_rolls_back() {
    let pair = pair(MountOptions::default());
    device(&pair).close().unwrap();
    write(device(&pair), 1);
    let earlier = copy(&pair.big, false);
    for byte in 2..5 {
        write(device(&pair), byte);
    }
    let device = both(&copy(&pair.fast, false), &earlier, &MountOptions::default());
    expect(&device, 4);
    assert_eq!(counter(&device, "disks_lying"), 1, "{:?}", device.reports());
    device.verify().unwrap();
}

/// A fast disk that fails while it is used is left away, and nobody who waits gets an error.
#[test]
fn a_fast_disk_that_fails_is_left_away() {
    for options in [MountOptions::default(), either()] {
        let pair = pair(options.clone());
        write(device(&pair), 1);
        pair.fast.unplug();
        write(device(&pair), 2);
        expect(device(&pair), 2);
        assert!(!device(&pair).has_fast());
        assert!(device(&pair).reports().iter().any(|report| report.contains("away")));
        device(&pair).close().unwrap();
        expect(&alone(&copy(&pair.big, false), &options), 2);
    }
}

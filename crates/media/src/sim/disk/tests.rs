//! The models against the figures of the disks that they stand for, and what a power cut leaves.

use super::cache::Cached;
use super::ftl::{LogBlock, PageMap, Translation};
use super::hdd::{Hdd, HddOptions};
use super::log::DiskLog;
use super::model::DiskModel;
use super::ssd::{Ssd, SsdOptions};
use super::{HostClock, SimDisk};
use crate::blockdev::BlockDev;
use crate::error::MediaErrorKind;
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

fn within(what: &str, found: u64, wanted: u64, percent: u64) {
    let off = found.abs_diff(wanted);
    assert!(off * 100 <= wanted * percent, "{what}: {found}, {wanted} expected");
}

fn hdd() -> Hdd {
    Hdd::new(HddOptions::seagate_750())
}

/// Requests at random over the whole disk, each after the one before; per 1,000 seconds.
fn random_per_1000_seconds(model: &mut dyn DiskModel, bytes: u64, length: u64, write: bool) -> u64 {
    let (mut prng, mut now, count) = (Prng::new(7), 0, 2000);
    for _ in 0..count {
        let offset = prng.below(bytes / length) * length;
        now = if write {
            model.write(now, offset, length);
            model.flush(now)
        } else {
            model.read(now, offset, length)
        };
    }
    count * 1000 * SECOND / now
}

/// Megabytes a second of requests one after another.
fn sequential_rate(model: &mut dyn DiskModel, from: u64, length: u64, count: u64, write: bool) -> u64 {
    let mut now = 0;
    for i in 0..count {
        let offset = from + i * length;
        now = if write { model.write(now, offset, length) } else { model.read(now, offset, length) };
    }
    let end = if write { model.flush(now) } else { now };
    length * count * SECOND / end / 1_000_000
}

#[test]
fn a_hard_disk_has_the_figures_of_its_class() {
    let bytes = HddOptions::seagate_750().sectors * 512;
    within("random 4K reads", random_per_1000_seconds(&mut hdd(), bytes, 4 * KIB, false), 78_600, 3);
    within("random 4K writes", random_per_1000_seconds(&mut hdd(), bytes, 4 * KIB, true), 73_300, 3);
    within(
        "512K reads at random",
        random_per_1000_seconds(&mut hdd(), bytes, 512 * KIB, false) * 512 / 1_000_000,
        27,
        10,
    );
    within("outer rate, reads", sequential_rate(&mut hdd(), 0, 128 * KIB, 2000, false), 105, 3);
    within("outer rate, writes", sequential_rate(&mut hdd(), 0, 128 * KIB, 2000, true), 105, 3);
    within("inner rate", sequential_rate(&mut hdd(), bytes - 300 * MIB, 128 * KIB, 2000, false), 53, 8);
}

#[test]
fn a_synced_append_loses_a_turn() {
    let (mut model, mut now, count) = (hdd(), 0, 1000);
    for i in 0..count {
        now = model.write(now, i * 4 * KIB, 4 * KIB);
        now = model.flush(now);
    }
    within("appends a second", count * SECOND / now, 120, 4);
}

fn iodrive(layer: impl Translation + 'static) -> Ssd {
    Ssd::new(SsdOptions::iodrive(), Box::new(layer))
}

#[test]
fn a_solid_state_disk_has_the_figures_of_the_papers() {
    let pages = GIB / (4 * KIB);
    let mut read = iodrive(PageMap::new(pages, 64, 25, 25));
    within("a small read", read.read(0, 0, 4 * KIB) / 1000, 51, 3);
    let rate = |write| sequential_rate(&mut iodrive(PageMap::new(pages, 64, 25, 25)), 0, MIB, 400, write);
    within("reads", rate(false), 760, 6);
    within("writes", rate(true), 540, 6);
}

/// A gigabyte filled in order, then as much again in writes of `length` at random places; write
/// amplification in hundredths and blocks erased.
fn amplification(layer: &mut dyn Translation, length: u64, shift: u64) -> (u64, u64) {
    let (all, each) = (GIB / (4 * KIB), length / (4 * KIB));
    for page in 0..all {
        layer.write(page);
    }
    let mut prng = Prng::new(3);
    let mut work = super::ftl::Work::default();
    for _ in 0..all / each {
        let first = prng.below(all / each) * each + shift;
        (first..first + each).filter(|page| *page < all).for_each(|page| work += layer.write(page));
    }
    (work.programs * 100 / work.asked, work.erases)
}

#[test]
fn collecting_and_aligning_pays_on_a_layer_that_maps_blocks() {
    let pages = GIB / (4 * KIB);
    let log = |length, shift| amplification(&mut LogBlock::new(pages, 64, 3), length, shift);
    let (random, erases) = log(4 * KIB, 0);
    within("4K at random, hundredths", random, 2310, 10);
    within("its erases", erases, 94_420, 10);
    within("16K at random", log(16 * KIB, 0).0, 1160, 10);
    within("64K at random", log(64 * KIB, 0).0, 450, 10);
    assert_eq!(log(256 * KIB, 0), (100, 4096), "aligned to blocks nothing is copied");
    within("512K not aligned", log(512 * KIB, 16).0, 190, 10);
}

#[test]
fn it_pays_little_on_a_layer_that_maps_pages() {
    let pages = GIB / (4 * KIB);
    let map = |length| amplification(&mut PageMap::new(pages, 64, 25, 25), length, 0).0;
    within("4K at random, hundredths", map(4 * KIB), 233, 10);
    within("256K aligned", map(256 * KIB), 219, 10);
    within("512K aligned", map(512 * KIB), 203, 10);
}

#[test]
fn pages_given_up_cost_nothing_to_clean() {
    let pages = 64 * MIB / (4 * KIB);
    let mut layer = PageMap::new(pages, 64, 25, 25);
    let mut work = super::ftl::Work::default();
    for _ in 0..4 {
        (0..pages).for_each(|page| work += layer.write(page));
        (0..pages).for_each(|page| layer.discard(page));
    }
    assert_eq!(work.copies(), 0);
}

#[test]
fn what_one_disk_does_while_another_works_takes_no_time() {
    let clock = HostClock::default();
    let mut one = SimDisk::with_model("one", GIB, Box::new(hdd()), &clock);
    let mut other = SimDisk::with_model("other", GIB, Box::new(hdd()), &clock);
    let block = vec![1; 4096];
    one.write_at(500 * MIB, &block, IoTag::Data).unwrap();
    other.write_at(500 * MIB, &block, IoTag::Data).unwrap();
    one.flush().unwrap();
    let alone = clock.now();
    other.flush().unwrap();
    assert_eq!(clock.now(), alone);
    assert!(alone > 0);
}

#[test]
fn what_another_thread_waits_for_takes_no_time() {
    let clock = HostClock::default();
    let mut disk = SimDisk::with_model("disk", GIB, Box::new(hdd()), &clock);
    let mut block = vec![0; 4096];
    let (read, done) = clock.beside(|| disk.read_at(500 * MIB, &mut block, IoTag::Data));
    read.unwrap();
    assert!(clock.now() == 0 && done > 0);
    // The disk is busy until then all the same.
    disk.read_at(0, &mut block, IoTag::Data).unwrap();
    assert!(clock.now() > done);
}

fn sector(byte: u8) -> Vec<u8> {
    vec![byte; 4096]
}

fn byte_at(content: &Cached, offset: u64) -> u8 {
    let mut out = vec![0; 4096];
    content.read(offset / 4096 * 4096, &mut out);
    out[(offset % 4096) as usize]
}

#[test]
fn a_cut_keeps_any_of_what_was_not_flushed_and_all_that_was() {
    let mut disk = SimDisk::new("disk", MIB);
    disk.write_at(0, &sector(1), IoTag::Data).unwrap();
    disk.flush().unwrap();
    disk.write_at(0, &sector(2), IoTag::Data).unwrap();
    disk.write_at(8192, &sector(3), IoTag::Data).unwrap();
    disk.write_at(0, &sector(4), IoTag::Data).unwrap();
    let content = disk.content();
    assert_eq!(content.pending().len(), 3);
    let nothing = content.after_cut(|_, _| false);
    assert_eq!((byte_at(&nothing, 0), byte_at(&nothing, 8192)), (1, 0));
    let later_only = content.after_cut(|write, _| write > 0);
    assert_eq!((byte_at(&later_only, 0), byte_at(&later_only, 8192)), (4, 3));
    // The second write to a sector may be lost where the first was not, each 512 bytes by
    // themselves.
    let torn = content.after_cut(|write, piece| write == 0 && piece == 1 || write == 2 && piece == 0);
    assert_eq!((byte_at(&torn, 0), byte_at(&torn, 512), byte_at(&torn, 1024)), (4, 2, 1));
    assert!(torn.pending().is_empty());
}

#[test]
fn a_discard_that_is_not_flushed_may_come_back() {
    let mut disk = SimDisk::new("disk", MIB);
    disk.write_at(0, &sector(1), IoTag::Data).unwrap();
    disk.flush().unwrap();
    disk.discard(0, 4096).unwrap();
    assert_eq!(byte_at(&disk.content(), 0), 0);
    assert_eq!(byte_at(&disk.content().after_cut(|_, _| false), 0), 1);
    assert_eq!(byte_at(&disk.content().after_cut(|_, _| true), 0), 0);
    disk.flush().unwrap();
    assert_eq!(byte_at(&disk.content().after_cut(|_, _| false), 0), 0);
}

#[test]
fn a_failed_flush_loses_what_it_should_have_kept() {
    let mut disk = SimDisk::new("disk", MIB);
    disk.write_at(0, &sector(5), IoTag::Data).unwrap();
    disk.fail_flush_after(0);
    assert_eq!(disk.flush().unwrap_err().kind, MediaErrorKind::Host);
    disk.flush().unwrap();
    let mut out = sector(0);
    disk.read_at(0, &mut out, IoTag::Data).unwrap();
    assert_eq!(out, sector(5), "programs go on seeing it");
    assert_eq!(byte_at(&disk.content().after_cut(|_, _| true), 0), 0, "and the power takes it");
}

#[test]
fn faults_come_when_they_are_due() {
    let mut disk = SimDisk::new("disk", MIB);
    disk.fail_write_after(1);
    disk.write_at(0, &sector(1), IoTag::Data).unwrap();
    assert_eq!(disk.write_at(0, &sector(2), IoTag::Data).unwrap_err().kind, MediaErrorKind::ProgramFailed);
    disk.write_at(0, &sector(3), IoTag::Data).unwrap();
    disk.make_unreadable(0);
    let mut out = sector(0);
    assert_eq!(disk.read_at(0, &mut out, IoTag::Data).unwrap_err().kind, MediaErrorKind::Uncorrectable);
    disk.write_at(0, &sector(4), IoTag::Data).unwrap();
    disk.read_at(0, &mut out, IoTag::Data).unwrap();
    assert_eq!(out, sector(4));
    assert_eq!(disk.read_at(MIB, &mut out, IoTag::Data).unwrap_err().kind, MediaErrorKind::OutOfRange);
    assert_eq!(disk.read_at(512, &mut out, IoTag::Data).unwrap_err().kind, MediaErrorKind::OutOfRange);
    disk.unplug();
    assert_eq!(disk.flush().unwrap_err().kind, MediaErrorKind::Host);
}

#[test]
fn a_log_of_two_disks_plays_again() {
    let log = DiskLog::default();
    let mut disks = [SimDisk::new("fast", MIB), SimDisk::new("big", MIB)];
    for (number, disk) in disks.iter().enumerate() {
        disk.record(&log, number);
    }
    let mut prng = Prng::new(9);
    for step in 0..200 {
        let disk = &mut disks[prng.below(2) as usize];
        let at = prng.below(64) * 4096;
        match prng.below(8) {
            0 => disk.flush().unwrap(),
            1 => disk.discard(at, 4096).unwrap(),
            _ => disk.write_at(at, &sector(step as u8), IoTag::Data).unwrap(),
        }
    }
    let mut again = [Cached::default(), Cached::default()];
    assert_eq!(log.mark(), log.events().len());
    for event in log.events() {
        event.operation.apply(&mut again[event.disk]);
    }
    for (disk, again) in disks.iter().zip(&again) {
        assert_eq!(disk.content().pending().len(), again.pending().len());
        for survivors in 0..3 {
            let keep = |write: usize, piece: u64| (write as u64 + piece) % 3 >= survivors;
            let (one, other) = (disk.content().after_cut(keep), again.after_cut(keep));
            assert!((0..MIB / 512).all(|piece| byte_at(&one, piece * 512) == byte_at(&other, piece * 512)));
        }
    }
}

#[test]
fn a_flush_that_was_begun_covers_what_was_written_before_and_promises_nothing_until_it_is_done() {
    let clock = HostClock::default();
    let mut disk = SimDisk::with_model("disk", MIB, Box::new(Hdd::new(HddOptions::seagate_750())), &clock);
    disk.write_at(0, &sector(1), IoTag::Data).unwrap();
    disk.begin_flush().unwrap();
    assert!(disk.is_busy() && !disk.flush_is_done().unwrap());
    disk.write_at(8192, &sector(2), IoTag::Data).unwrap();
    let content = disk.content().after_cut(|_, _| false);
    assert_eq!(byte_at(&content, 0), 0, "it counted as durable too early");
    clock.wait(1_000_000_000);
    assert!(disk.flush_is_done().unwrap() && !disk.is_busy());
    let content = disk.content().after_cut(|_, _| false);
    assert_eq!((byte_at(&content, 0), byte_at(&content, 8192)), (1, 0), "of the two only the first was covered");
    assert!(disk.flush_is_done().unwrap(), "no flush is under way");
}

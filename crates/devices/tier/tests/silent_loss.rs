//! What was acknowledged is there, or a mount says what is missing and asks: damage of superblocks,
//! disks that are away, new or from before, copies that rot.

use crate::common::gate::Gated;
use crate::common::{Pair, cut, new_fast, small_division};
use onode_base::Prng;
use onode_base::checksum::{crc32c, crc32c_append};
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::powers::{Place, Scrub};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, NewFast, TierDevice};
use std::collections::BTreeMap;

const FILES: u64 = 40;

fn either() -> MountOptions {
    MountOptions { acknowledge: Acknowledge::Either, ..MountOptions::default() }
}

fn consenting() -> MountOptions {
    MountOptions { accept_loss: true, ..either() }
}

fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 3000 + number as usize];
    Prng::new(number).fill(&mut bytes);
    bytes
}

/// Both disks as a crash leaves them, all files acknowledged by the fast disk alone; or closed in
/// order.
fn filled(options: MountOptions, closes: bool) -> (SimDisk, SimDisk) {
    let pair = Pair::with(8 << 20, 8 << 20, options);
    let device = pair.device.as_ref().unwrap();
    for number in 0..FILES {
        let mut transaction = Transaction::new();
        transaction.create(ObjectId(10 + number), Hints::default());
        transaction.write(ObjectId(10 + number), 0, content(number));
        device.commit(transaction, Durability::Durable).unwrap();
    }
    if closes {
        device.close().unwrap();
    }
    let copy =
        |disk: &SimDisk| SimDisk::from_content(disk.name(), disk.bytes(), disk.content().after_cut(|_, _| closes));
    (copy(&pair.fast), copy(&pair.big))
}

fn mount(fast: Option<&SimDisk>, big: &SimDisk, options: &MountOptions) -> onode_object::Result<TierDevice> {
    let fast = fast.map(|fast| Box::new(fast.clone()) as Box<dyn BlockDev>);
    TierDevice::mount(Box::new(big.clone()), fast, options)
}

fn copy(disk: &SimDisk) -> SimDisk {
    SimDisk::from_content(disk.name(), disk.bytes(), disk.content().settled())
}

fn damage(disk: &mut SimDisk, block: u64) {
    damage_byte(disk, block, 50);
}

fn damage_byte(disk: &mut SimDisk, block: u64, byte: usize) {
    let mut bytes = vec![0; 4096];
    disk.read_at(block * 4096, &mut bytes, IoTag::Check).unwrap();
    bytes[byte] ^= 0x55;
    disk.write_at(block * 4096, &bytes, IoTag::Check).unwrap();
    disk.flush().unwrap();
}

fn bytes(disk: &SimDisk) -> Vec<u8> {
    let mut bytes = vec![0; disk.bytes() as usize];
    disk.clone().read_at(0, &mut bytes, IoTag::Check).unwrap();
    bytes
}

fn assert_all(device: &TierDevice) {
    for number in 0..FILES {
        let expected = content(number);
        let mut found = vec![0; expected.len() + 1];
        let length = device.read(ObjectId(10 + number), 0, &mut found).unwrap();
        assert_eq!(found[..length], expected, "file {number}");
    }
    device.verify().unwrap();
}

fn refused(mounted: onode_object::Result<TierDevice>) -> String {
    let Err(error) = mounted else { panic!("it was mounted with less than there was") };
    assert_eq!(error.kind, ErrorKind::Loss, "{error}");
    error.detail
}

#[test]
fn a_damaged_superblock_of_the_fast_disk_loses_nothing() {
    for blocks in [&[0][..], &[1], &[0, 1]] {
        for options in [either(), MountOptions::default()] {
            let (mut fast, big) = filled(options.clone(), false);
            blocks.iter().for_each(|block| damage(&mut fast, *block));
            let device = mount(Some(&fast), &big, &options).unwrap();
            assert!(device.has_fast(), "{blocks:?}");
            assert_all(&device);
            device.close().unwrap();
            drop(device);
            // And they are whole again.
            let device = mount(Some(&fast), &big, &options).unwrap();
            assert_eq!(device.reports(), Vec::<String>::new());
            assert_all(&device);
        }
    }
}

#[test]
fn an_old_superblock_does_not_hide_the_log_behind_it() {
    // As a version did that wrote one of both at a join.
    let (fast, big) = filled(either(), true);
    let mut old = vec![0; 4096];
    fast.clone().read_at(0, &mut old, IoTag::Check).unwrap();
    let device = mount(Some(&fast), &big, &either()).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(ObjectId(60), Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    drop(device);
    let mut prng = Prng::new(1);
    let (mut fast, big) = (cut(&fast, &mut prng), cut(&big, &mut prng));
    fast.write_at(0, &old, IoTag::Check).unwrap();
    damage(&mut fast, 1);
    let device = mount(Some(&fast), &big, &either()).unwrap();
    device.stat(ObjectId(60)).unwrap();
    assert_all(&device);
}

#[test]
fn what_only_the_fast_disk_has_is_not_given_up_unasked() {
    let (fast, big) = filled(either(), false);
    let before = bytes(&big);
    // Left away, replaced, empty, or with everything damaged that could show whose it is.
    assert!(refused(mount(None, &big, &either())).contains("acknowledged"));
    let read_only = MountOptions { read_only: true, ..either() };
    refused(mount(None, &big, &read_only));
    let blank = SimDisk::new("new", 8 << 20);
    refused(TierDevice::attach(Box::new(big.clone()), new_fast(&blank), &either()));
    assert!(bytes(&blank).iter().all(|byte| *byte == 0), "the new disk was written to before anybody consented");
    let mut ruined = copy(&fast);
    ruined.zero(0, 3 << 20).unwrap();
    assert!(mount(Some(&ruined), &big, &either()).is_err());
    assert_eq!(bytes(&big), before, "a mount that was refused has changed something");
    // It is all there with the fast disk.
    assert_all(&mount(Some(&copy(&fast)), &copy(&big), &either()).unwrap());
    // With consent it goes on, and says so.
    let device = mount(None, &big, &consenting()).unwrap();
    let told: Vec<_> = device.health().conditions.iter().map(|told| told.code.to_string()).collect();
    assert!(told.contains(&"loss-accepted".to_owned()), "{told:?}");
    drop(device);
    // It is asked once.
    mount(None, &big, &either()).unwrap();
}

#[test]
fn a_fast_disk_from_before_is_not_taken_for_the_one_that_took_part() {
    let (fast, big) = filled(either(), true);
    let earlier = copy(&fast);
    let device = mount(Some(&fast), &big, &either()).unwrap();
    let mut transaction = Transaction::new();
    transaction.create(ObjectId(60), Hints::default());
    device.commit(transaction, Durability::Durable).unwrap();
    drop(device);
    let mut prng = Prng::new(1);
    let big = cut(&big, &mut prng);
    refused(mount(Some(&earlier), &big, &either()));
    let device = mount(Some(&earlier), &big, &consenting()).unwrap();
    assert_all(&device);
}

#[test]
fn a_volume_that_was_closed_needs_no_fast_disk() {
    for options in [either(), MountOptions::default()] {
        let (_, big) = filled(options.clone(), true);
        assert_all(&mount(None, &copy(&big), &options).unwrap());
        let blank = SimDisk::new("new", 8 << 20);
        assert_all(&TierDevice::attach(Box::new(big.clone()), new_fast(&blank), &options).unwrap());
    }
    // Nor does one whose changes waited for both disks.
    let (_, big) = filled(MountOptions::default(), false);
    assert_all(&mount(None, &big, &MountOptions::default()).unwrap());
}

#[test]
fn zeros_over_the_start_are_not_the_end() {
    for options in [either(), MountOptions::default()] {
        let (fast, mut big) = filled(options.clone(), true);
        // Superblocks, log and bitmap; content begins behind them.
        big.zero(0, 256 << 10).unwrap();
        let device = mount(Some(&fast), &big, &options).unwrap();
        assert!(device.reports().iter().any(|report| report.contains("at the start")), "{:?}", device.reports());
        assert_all(&device);
        device.close().unwrap();
        drop(device);
        let device = mount(Some(&fast), &big, &options).unwrap();
        assert_eq!(device.reports(), Vec::<String>::new());
        assert_all(&device);
    }
    // Not closed: what the last checkpoint has may be old, and whoever mounts is asked.
    let (fast, mut big) = filled(MountOptions::default(), false);
    big.zero(0, 256 << 10).unwrap();
    refused(mount(Some(&fast), &big, &MountOptions::default()));
}

#[test]
fn a_new_fast_disk_is_divided_as_the_one_before() {
    let (_, mut big) = filled(either(), true);
    let options = TierDevice::division_of_fast(&mut big).unwrap().unwrap();
    let names = |options: &onode_tier::fast::FastOptions| {
        options.sections.iter().map(|it| (it.name.clone(), it.extent_bytes, it.scheme)).collect::<Vec<_>>()
    };
    let expected = small_division();
    assert_eq!((options.ring_bytes, options.stripe_bytes), (expected.ring_bytes, expected.stripe_bytes));
    assert_eq!(names(&options), names(&expected));
    let new = NewFast { disk: Box::new(SimDisk::new("new", 8 << 20)), uuid: [9; 16], options };
    let device = TierDevice::attach(Box::new(big), new, &either()).unwrap();
    let sizes: Vec<u64> = device.division().iter().map(|section| section.bytes).collect();
    assert!(sizes[0].abs_diff(sizes[1]) <= 128 << 10, "{sizes:?}");
}

/// A pair with copies of 300 blocks, all of which rot.
fn rotten() -> (SimDisk, SimDisk) {
    let pair = Pair::with(8 << 20, 8 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    let mut transaction = Transaction::new();
    transaction.create(ObjectId(10), Hints::default());
    let mut long = vec![0; 300 * 4096];
    Prng::new(7).fill(&mut long);
    transaction.write(ObjectId(10), 0, long.clone());
    device.commit(transaction, Durability::Durable).unwrap();
    device.close().unwrap();
    device.promote(ObjectId(10), true).unwrap();
    device.close().unwrap();
    let (mut fast, big) = (copy(&pair.fast), copy(&pair.big));
    let mut rotted = 0;
    for block in 0..fast.bytes() / 4096 {
        let mut bytes = vec![0; 4096];
        fast.read_at(block * 4096, &mut bytes, IoTag::Check).unwrap();
        if long.chunks(4096).any(|chunk| chunk == bytes) {
            damage(&mut fast, block);
            rotted += 1;
        }
    }
    assert!(rotted >= 200, "only {rotted} copies");
    (fast, big)
}

#[test]
fn rotten_copies_are_healed_and_the_disk_is_kept() {
    let (fast, big) = rotten();
    for round in 0..2 {
        let device = mount(Some(&fast), &big, &MountOptions::default()).unwrap();
        let mut bytes = vec![0; 300 * 4096];
        assert_eq!(device.read(ObjectId(10), 0, &mut bytes).unwrap(), bytes.len());
        assert!(device.has_fast(), "given up in session {round}: {:?}", device.reports());
        assert_eq!(device.damaged_copies() > 0, round == 0, "session {round}: {} copies", device.damaged_copies());
        device.close().unwrap();
    }
}

#[test]
fn a_scrub_reads_the_copies_too() {
    let (fast, big) = rotten();
    let read_only = MountOptions { read_only: true, ..MountOptions::default() };
    let device = mount(Some(&fast), &big, &read_only).unwrap();
    let report = Scrub::scrub(&device, ObjectId(0), 100).unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert!(device.damaged_copies() >= 200, "{} copies", device.damaged_copies());
    assert!(device.health().conditions.iter().any(|told| told.code == "copies-damaged"));
}

/// A disk that is out of order shows no records: that must not be taken for the end of its log.
#[test]
fn a_log_that_cannot_be_read_to_its_end_is_not_taken_for_a_short_one() {
    let (fast, big) = filled(either(), false);
    let failing = |disk: &SimDisk, bytes: std::ops::Range<u64>| {
        let gated = Gated::new(disk);
        gated.gate.fail(bytes);
        gated
    };
    // The first blocks of both logs can be read; the last record stands behind them.
    let mounted =
        TierDevice::mount(Box::new(copy(&big)), Some(Box::new(failing(&fast, 24 * 4096..68 * 4096))), &either());
    assert_eq!(mounted.err().unwrap().kind, ErrorKind::Loss);
    let (_, big) = filled(MountOptions::default(), false);
    let before = bytes(&big);
    let mounted = TierDevice::mount(Box::new(failing(&big, 20 * 4096..66 * 4096)), None, &MountOptions::default());
    assert_eq!(mounted.err().unwrap().kind, ErrorKind::Media);
    assert!(bytes(&big) == before, "nothing was changed");
    assert_all(&mount(None, &big, &MountOptions::default()).unwrap());
}

/// The blocks of a disk in which records of the log begin, by their numbers.
fn records(disk: &SimDisk) -> BTreeMap<u64, u64> {
    let bytes = bytes(disk);
    let blocks = (0..).zip(bytes.chunks(4096)).filter(|(_, block)| block.starts_with(b"TLOG"));
    blocks.map(|(number, block)| (u64::from_le_bytes(block[8..16].try_into().unwrap()), number)).collect()
}

/// A byte of the payload.
const PAYLOAD: usize = 1000;

#[test]
fn the_header_of_a_torn_record_tells_that_the_one_before_is_lost() {
    let (fast, big) = filled(either(), false);
    let records = records(&fast);
    let mut newest = records.iter().rev().map(|(number, block)| (*number, *block));
    let ((last, torn), (before, lost)) = (newest.next().unwrap(), newest.next().unwrap());
    assert_eq!(last, before + 1);
    // It may have been on its way: nothing was promised.
    let mut one = copy(&fast);
    damage_byte(&mut one, torn, PAYLOAD);
    let device = mount(Some(&one), &copy(&big), &either()).unwrap();
    assert_eq!(device.reports(), Vec::<String>::new());
    drop(device);
    // But it was made when the one before was durable.
    let mut two = copy(&fast);
    damage_byte(&mut two, torn, PAYLOAD);
    damage_byte(&mut two, lost, PAYLOAD);
    let before = bytes(&big);
    assert!(refused(mount(Some(&two), &big, &either())).contains(&format!("up to number {}", last - 1)));
    let read_only = MountOptions { read_only: true, ..either() };
    refused(mount(Some(&two), &big, &read_only));
    assert_eq!(bytes(&big), before, "a mount that was refused has changed something");
    let device = mount(Some(&two), &big, &consenting()).unwrap();
    assert!(device.health().conditions.iter().any(|told| told.code == "loss-accepted"));
    device.verify().unwrap();
    drop(device);
    // It is asked once.
    mount(Some(&two), &big, &either()).unwrap();
}

#[test]
fn content_that_looks_like_a_header_proves_nothing() {
    let (fast, big) = filled(either(), false);
    let records = records(&fast);
    let (last, block) = records.last_key_value().map(|(number, block)| (*number, *block)).unwrap();
    let header = bytes(&fast)[block as usize * 4096..][..4096].to_vec();
    let sealed = |volume: [u8; 16]| {
        let mut header = header.clone();
        header[8..16].copy_from_slice(&(last + 100).to_le_bytes());
        header[24..32].copy_from_slice(&(last + 99).to_le_bytes());
        let sum = crc32c_append(crc32c(&volume), &header[8..52]);
        header[52..56].copy_from_slice(&sum.to_le_bytes());
        // Behind the end of what was written.
        let mut disk = copy(&fast);
        disk.write_at((block + 5) * 4096, &header, IoTag::Check).unwrap();
        disk.flush().unwrap();
        disk
    };
    let own: [u8; 16] = bytes(&big)[16..32].try_into().unwrap();
    // Of another volume, and, to see that it stands where it is looked for, of this one.
    assert_all(&mount(Some(&sealed([7; 16])), &copy(&big), &either()).unwrap());
    refused(mount(Some(&sealed(own)), &copy(&big), &either()));
}

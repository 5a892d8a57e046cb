//! Every block of both disks, damaged in every way, of volumes that were closed and of such that
//! were cut: no panic, and nothing is lost in silence. A mount is refused, or what is read is
//! right, or an error, or a report says that something is missing.

use crate::common::Pair;
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_media::{BlockDev, IoTag};
use onode_object::powers::{Place, Scrub};
use onode_object::{Acknowledge, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

const FILES: u64 = 30;
const BLOCK: u64 = 4096;

fn content(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; [300, 900, 5000, 70_000][number as usize % 4]];
    Prng::new(number).fill(&mut bytes);
    bytes
}

fn object(number: u64) -> ObjectId {
    ObjectId(10 + number)
}

/// Both disks of a volume with files, half of which were there at a checkpoint and have copies.
fn disks(acknowledge: Acknowledge, closes: bool) -> [SimDisk; 2] {
    let options = MountOptions { acknowledge, ..MountOptions::default() };
    let pair = Pair::with(4 << 20, 4 << 20, options);
    let device = pair.device.as_ref().unwrap();
    for number in 0..FILES {
        let mut transaction = Transaction::new();
        transaction.create(object(number), Hints::default());
        transaction.write(object(number), 0, content(number));
        device.commit(transaction, Durability::Durable).unwrap();
        if number == FILES / 2 {
            device.close().unwrap();
            (0..number).for_each(|number| _ = device.promote(object(number), true).unwrap());
            device.close().unwrap();
        }
    }
    if closes {
        device.close().unwrap();
    }
    [&pair.fast, &pair.big].map(|disk| {
        let left = disk.content().after_cut(|_, _| closes);
        SimDisk::from_content(disk.name(), disk.bytes(), left)
    })
}

fn copy(disk: &SimDisk) -> SimDisk {
    SimDisk::from_content(disk.name(), disk.bytes(), disk.content().settled())
}

fn read(disk: &SimDisk, block: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    disk.clone().read_at(block * BLOCK, &mut bytes, IoTag::Check).unwrap();
    bytes
}

/// A bit, a block of zeros, a block of which one half is another one's, or one that cannot be read.
fn damage(disk: &mut SimDisk, block: u64, way: u64, draw: &mut Prng) {
    let mut bytes = read(disk, block);
    match way {
        0 => bytes[draw.below(BLOCK) as usize] ^= 1 << draw.below(8),
        1 => bytes.fill(0),
        2 => bytes[..2048].copy_from_slice(&read(disk, (block + 1) % (disk.bytes() / BLOCK))[2048..]),
        _ => return disk.make_unreadable(block * BLOCK),
    }
    disk.write_at(block * BLOCK, &bytes, IoTag::Check).unwrap();
    disk.flush().unwrap();
}

#[derive(Debug, Default)]
struct Outcomes {
    refused: u64,
    right: u64,
    errors: u64,
    told: u64,
    last_lost: u64,
}

/// Mounts both disks and reads everything.
fn look(fast: &SimDisk, big: &SimDisk, options: &MountOptions, what: &str, outcomes: &mut Outcomes) {
    let mounted = TierDevice::mount(Box::new(big.clone()), Some(Box::new(fast.clone())), options);
    let device = match mounted {
        Err(error) => {
            let known =
                [ErrorKind::Corrupt, ErrorKind::Invalid, ErrorKind::WrongPart, ErrorKind::Loss, ErrorKind::Media];
            assert!(known.contains(&error.kind), "{what}: {error}");
            outcomes.refused += 1;
            return;
        }
        Ok(device) => device,
    };
    let (mut missing, mut failed) = (Vec::new(), 0);
    for number in 0..FILES {
        let expected = content(number);
        let mut found = vec![0; expected.len() + 1];
        match device.read(object(number), 0, &mut found) {
            Ok(length) => {
                assert!(found[..length] == expected, "{what}: file {number} has other bytes, {length} of them")
            }
            Err(error) if error.kind == ErrorKind::NotFound => missing.push(number),
            Err(error) => {
                assert!([ErrorKind::Corrupt, ErrorKind::Media].contains(&error.kind), "{what}: {error}");
                failed += 1;
            }
        }
    }
    // That the very last change was acknowledged is nowhere but in its own record.
    if missing == [FILES - 1] && options.acknowledge == Acknowledge::Either {
        outcomes.last_lost += 1;
    } else if !missing.is_empty() {
        assert!(!device.reports().is_empty(), "{what}: files {missing:?} are gone without a word");
        outcomes.told += 1;
    } else if failed > 0 {
        let scrubbed = Scrub::scrub(&device, ObjectId(0), 1000);
        assert!(scrubbed.map_or(true, |report| !report.damaged.is_empty()), "{what}: a scrub finds nothing");
        outcomes.errors += 1;
    } else {
        outcomes.right += 1;
    }
    let _ = device.close();
}

fn explore(acknowledge: Acknowledge, closes: bool) {
    let options = MountOptions { acknowledge, ..MountOptions::default() };
    let disks = disks(acknowledge, closes);
    let mut draw = Prng::new(u64::from(closes) + 2 * acknowledge as u64);
    let mut outcomes = Outcomes::default();
    let mut images = 0;
    for (which, name) in ["fast", "big"].into_iter().enumerate() {
        for block in 0..disks[which].bytes() / BLOCK {
            if block > 1 && read(&disks[which], block).iter().all(|byte| *byte == 0) {
                continue;
            }
            for way in 0..4 {
                // Of the content itself a part is enough.
                if block > 80 && way != draw.below(4) {
                    continue;
                }
                let [mut fast, mut big] = [copy(&disks[0]), copy(&disks[1])];
                damage(if which == 0 { &mut fast } else { &mut big }, block, way, &mut draw);
                let state = if closes { "closed" } else { "cut" };
                let what = format!("{acknowledge:?}, {state}: block {block} of the {name} disk in way {way}");
                look(&fast, &big, &options, &what, &mut outcomes);
                images += 1;
            }
        }
    }
    println!("{acknowledge:?}, closed {closes}: {images} images: {outcomes:?}");
    assert!(images > 200 && outcomes.right > images / 3, "{images} images: {outcomes:?}");
}

#[test]
fn of_a_closed_volume() {
    explore(Acknowledge::Safe, true);
    explore(Acknowledge::Either, true);
}

#[test]
fn of_a_volume_that_was_cut() {
    explore(Acknowledge::Safe, false);
    explore(Acknowledge::Either, false);
}

/// Disks that lost their beginning, their end, or are too short.
#[test]
fn of_large_parts() {
    for (acknowledge, closes) in [
        (Acknowledge::Safe, true),
        (Acknowledge::Either, true),
        (Acknowledge::Safe, false),
        (Acknowledge::Either, false),
    ] {
        let options = MountOptions { acknowledge, ..MountOptions::default() };
        let disks = disks(acknowledge, closes);
        let mut outcomes = Outcomes::default();
        for which in 0..2 {
            let bytes = disks[which].bytes();
            for (from, length) in [
                (0, 8192),
                (0, 64 << 10),
                (0, 1 << 20),
                (0, bytes),
                (bytes - (1 << 20), 1 << 20),
                (bytes / 2, 256 << 10),
            ] {
                let mut both = [copy(&disks[0]), copy(&disks[1])];
                both[which].zero(from, length).unwrap();
                both[which].flush().unwrap();
                let what = format!("{acknowledge:?}, closed {closes}: {length} zeros from {from} on of disk {which}");
                look(&both[0], &both[1], &options, &what, &mut outcomes);
            }
        }
        println!("{acknowledge:?}, closed {closes}: {outcomes:?}");
    }
}

//! Damage of what lies on the big disk: everything is found out or made good, and nothing panics.

use crate::common::{Alone, Pair};
use onode_base::Prng;
use onode_media::sim::disk::SimDisk;
use onode_media::sim::disk::cache::Cached;
use onode_media::{BlockDev, IoTag};
use onode_object::conformance::{Tree, dump};
use onode_object::{AttributeKey, AttributeKind, Durability, ErrorKind, Hints, ObjectDevice, ObjectId, Transaction};
use onode_tier::{MountOptions, TierDevice};

/// Objects of every sort, some only in the log. The last record changes nothing that can be seen:
/// of it nobody can tell a damaged one from one that was never finished.
fn fill(device: &TierDevice) {
    for round in 0..24u64 {
        let object = device.reserve_ids(1).unwrap();
        let mut transaction = Transaction::new();
        let length = [40, 900, 3_000, 30_000][round as usize % 4];
        transaction.create(object, Hints::default()).write(object, round % 3 * 700, vec![round as u8; length]);
        transaction.set_attribute(object, AttributeKey::new(AttributeKind(40), round), vec![2; 300]);
        device.commit(transaction, Durability::Durable).unwrap();
        if round == 18 {
            device.close().unwrap();
        }
    }
    let mut last = Transaction::new();
    last.set_access_time(ObjectId(64), 0);
    device.commit(last, Durability::Durable).unwrap();
}

/// Does everything that can be done; returns what is there, if all of it can be read.
fn use_it(device: &TierDevice) -> Option<Tree> {
    let tree = dump(device).ok();
    let _ = device.verify();
    let _ = device.scrub().unwrap().scrub(ObjectId(0), 100);
    let _ = device.inspect().unwrap().inspection();
    let _ = device.space();
    for object in [ObjectId(64), ObjectId(70), ObjectId(83)] {
        let mut transaction = Transaction::new();
        transaction.write(object, 100, vec![8; 9_000]).truncate(object, 700);
        let _ = device.commit(transaction, Durability::Durable);
        let mut transaction = Transaction::new();
        transaction.remove(object);
        let _ = device.commit(transaction, Durability::Durable);
        let _ = device.place().unwrap().why(object);
    }
    let _ = device.maintain(4);
    let _ = device.close();
    tree
}

/// Flips a bit of a byte.
fn flipped(content: &Cached, bytes: u64, at: u64) -> SimDisk {
    let mut disk = SimDisk::from_content("big", bytes, content.clone());
    let sector = at / 4096 * 4096;
    let mut block = vec![0; 4096];
    disk.read_at(sector, &mut block, IoTag::Check).unwrap();
    block[(at - sector) as usize] ^= 1 << (at % 8);
    disk.write_at(sector, &block, IoTag::Check).unwrap();
    disk
}

/// The bytes of the disk that are worth flipping: every fifth of the headers and every 409th of
/// what follows, in blocks that hold anything.
fn places(disk: &SimDisk) -> Vec<u64> {
    let mut disk = disk.clone();
    let mut all = Vec::new();
    let mut block = vec![0; 4096];
    for sector in (0..disk.bytes()).step_by(4096) {
        disk.read_at(sector, &mut block, IoTag::Check).unwrap();
        if block.iter().any(|byte| *byte != 0) {
            all.extend(
                (0..4096).filter(|at| *at < 40 && at % 5 == 0 || at % 409 == 0 || *at == 4095).map(|at| sector + at),
            );
        }
    }
    all
}

#[test]
fn every_flip_is_found_out_or_made_good() {
    let alone = Alone::holding(4 << 20, 1 << 20);
    fill(alone.device.as_ref().unwrap());
    let content = alone.big.content().settled();
    let truth = dump(alone.device.as_ref().unwrap()).unwrap();
    let places = places(&alone.big);
    assert!(places.len() > 1_000, "only {} places", places.len());
    let mut outcomes = [0; 4];
    for at in places {
        let disk = flipped(&content, alone.big.bytes(), at);
        let outcome = match TierDevice::mount(Box::new(disk), None, &MountOptions::default()) {
            Err(error) if error.kind == ErrorKind::Loss => {
                // Less is there than was durable: with consent, and told.
                let consenting = MountOptions { accept_loss: true, ..MountOptions::default() };
                let disk = flipped(&content, alone.big.bytes(), at);
                let device = TierDevice::mount(Box::new(disk), None, &consenting).unwrap();
                assert!(!device.reports().is_empty(), "byte {at}");
                2
            }
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Invalid), "byte {at}: {error}");
                0
            }
            Ok(device) => {
                let reports = device.reports();
                match use_it(&device) {
                    None => 1,
                    Some(_) if !reports.is_empty() => 2,
                    Some(tree) => {
                        assert_eq!(tree.difference(&truth), None, "byte {at}");
                        3
                    }
                }
            }
        };
        outcomes[outcome] += 1;
    }
    println!(
        "refused {}, told when read {}, told at the mount {}, made good {}",
        outcomes[0], outcomes[1], outcomes[2], outcomes[3]
    );
    assert!(outcomes[1..].iter().all(|count| *count > 0), "{outcomes:?}");
}

/// With the fast disk there, damage of the big disk's log costs nothing.
#[test]
fn the_fast_disk_makes_a_damaged_log_good() {
    let pair = Pair::with(4 << 20, 4 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    fill(device);
    let truth = dump(device).unwrap();
    let (big, fast) = (pair.big.content().settled(), pair.fast.content().settled());
    let mut prng = Prng::new(5);
    for _ in 0..60 {
        let at = 2 * 4096 + prng.below(256 << 10);
        let disk = flipped(&big, pair.big.bytes(), at);
        let fast = SimDisk::from_content("fast", pair.fast.bytes(), fast.clone());
        let device = TierDevice::mount(Box::new(disk), Some(Box::new(fast)), &MountOptions::default()).unwrap();
        assert_eq!(dump(&device).unwrap().difference(&truth), None, "byte {at}");
    }
}

/// Whatever is on the fast disk, what is read is right.
#[test]
fn nothing_on_the_fast_disk_can_give_wrong_bytes() {
    let pair = Pair::with(4 << 20, 4 << 20, MountOptions::default());
    let device = pair.device.as_ref().unwrap();
    fill(device);
    device.close().unwrap();
    for object in device.list(ObjectId(0), 100).unwrap() {
        device.place().unwrap().promote(object, true).unwrap();
    }
    device.close().unwrap();
    let truth = dump(device).unwrap();
    let (big, fast) = (pair.big.content().settled(), pair.fast.content().settled());
    let mut prng = Prng::new(6);
    for round in 0..150 {
        let mut disk = SimDisk::from_content("fast", pair.fast.bytes(), fast.clone());
        for _ in 0..1 << (round % 8) {
            let sector = prng.below(disk.bytes() / 4096) * 4096;
            let mut block = vec![0; 4096];
            disk.read_at(sector, &mut block, IoTag::Check).unwrap();
            let at = prng.below(4096) as usize;
            block[at] ^= 1 << prng.below(8);
            disk.write_at(sector, &block, IoTag::Check).unwrap();
        }
        let big = SimDisk::from_content("big", pair.big.bytes(), big.clone());
        let device = TierDevice::mount(Box::new(big), Some(Box::new(disk)), &MountOptions::default()).unwrap();
        assert_eq!(dump(&device).unwrap().difference(&truth), None, "round {round}");
        device.verify().unwrap();
    }
}

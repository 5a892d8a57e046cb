//! Disks one behind another read as one that has the same bytes, are durable as one, and take
//! another one while somebody reads.

use super::JoinedDisk;
use super::label::{DiskLabel, LABEL_BYTES};
use crate::blockdev::{BlockDev, DiskRead};
use crate::error::MediaErrorKind;
use crate::sim::disk::SimDisk;
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use onode_base::Prng;

const SECTOR: u64 = 4096;
const TAG: IoTag = IoTag::Data;

fn disk(name: &str, sectors: u64) -> SimDisk {
    SimDisk::new(name, sectors * SECTOR)
}

/// A disk with so many sectors behind its label.
fn labelled(name: &str, sectors: u64) -> SimDisk {
    disk(name, LABEL_BYTES / SECTOR + sectors)
}

/// Disks of 5, 3 and 9 sectors.
fn three() -> ([SimDisk; 3], JoinedDisk) {
    let disks = [disk("a", 5), labelled("b", 3), labelled("c", 9)];
    let mut all = JoinedDisk::new(Box::new(disks[0].clone()));
    all.join(Box::new(disks[1].clone()), [5; 16]).unwrap();
    all.join(Box::new(disks[2].clone()), [5; 16]).unwrap();
    (disks, all)
}

fn bytes(seed: u64, sectors: u64) -> Vec<u8> {
    let mut bytes = vec![0; (sectors * SECTOR) as usize];
    Prng::new(seed).fill(&mut bytes);
    bytes
}

#[test]
fn disks_say_where_they_belong() {
    let (mut disks, _) = three();
    let labels = disks.each_mut().map(|disk| DiskLabel::read(disk).unwrap());
    let label = |number, start| Some(DiskLabel { uuid: [5; 16], number, start: start * SECTOR });
    assert_eq!(labels, [None, label(1, 5), label(2, 8)]);
}

#[test]
fn any_request_does_what_it_does_on_one_disk() {
    let (_, mut all) = three();
    assert_eq!(all.bytes(), 17 * SECTOR);
    let mut model = vec![0; 17 * SECTOR as usize];
    let mut draw = Prng::new(1);
    for turn in 0..2000 {
        let first = draw.below(17);
        let count = 1 + draw.below(17 - first);
        let range = (first * SECTOR) as usize..((first + count) * SECTOR) as usize;
        match draw.below(6) {
            0 => {
                let bytes = bytes(turn, count);
                all.write_at(first * SECTOR, &bytes, TAG).unwrap();
                model[range].copy_from_slice(&bytes);
            }
            1 => {
                let bytes = bytes(turn, count);
                all.post_write(first * SECTOR, &bytes, TAG).unwrap();
                model[range].copy_from_slice(&bytes);
            }
            2 => {
                all.zero(first * SECTOR, count * SECTOR).unwrap();
                model[range].fill(0);
            }
            3 => {
                let mut out = vec![1; range.len()];
                all.read_at(first * SECTOR, &mut out, TAG).unwrap();
                assert!(out == model[range], "turn {turn}");
            }
            4 => {
                let (mut one, mut other) = (vec![1; range.len()], vec![1; SECTOR as usize]);
                let last = draw.below(17);
                all.read_batch(&mut [(first * SECTOR, &mut one), (last * SECTOR, &mut other)], TAG).unwrap();
                assert!(one == model[range], "turn {turn}");
                assert!(other == model[(last * SECTOR) as usize..((last + 1) * SECTOR) as usize], "turn {turn}");
            }
            _ => {
                let shared = all.shared().unwrap();
                let (mut one, mut other, mut lone) =
                    (vec![1; range.len()], vec![1; SECTOR as usize], vec![1; range.len()]);
                let last = draw.below(17);
                shared.read_at(first * SECTOR, &mut lone, TAG).unwrap();
                let mut reads = [(first, &mut one), (last, &mut other)].map(|(at, out)| DiskRead {
                    offset: at * SECTOR,
                    out: &mut out[..],
                    result: Ok(()),
                });
                shared.read_batch(&mut reads, TAG);
                assert!(reads.iter().all(|read| read.result.is_ok()));
                assert!(one == model[range.clone()] && lone == model[range], "turn {turn}");
                assert!(other == model[(last * SECTOR) as usize..((last + 1) * SECTOR) as usize], "turn {turn}");
            }
        }
    }
    assert!(all.counters().unwrap().total().writes > 0);
}

#[test]
fn a_flush_makes_durable_what_is_on_any_disk() {
    for is_shared in [false, true] {
        let (disks, mut all) = three();
        all.write_at(0, &bytes(7, 17), TAG).unwrap();
        if is_shared {
            all.shared().unwrap().flush().unwrap()
        } else {
            all.flush().unwrap()
        }
        for disk in disks {
            assert!(disk.content().pending().is_empty());
        }
    }
}

#[test]
fn a_flush_that_fails_on_one_disk_fails() {
    for failing in 0..3 {
        let (disks, mut all) = three();
        all.write_at(0, &bytes(7, 17), TAG).unwrap();
        disks[failing].fail_flush_after(0);
        assert_eq!(all.flush().unwrap_err().kind, MediaErrorKind::Host);
    }
}

#[test]
fn one_that_comes_is_read_by_who_reads_already() {
    let (_, mut all) = three();
    let reader = all.shared().unwrap();
    let mut out = vec![0; SECTOR as usize];
    all.write_at(16 * SECTOR, &bytes(1, 1), TAG).unwrap();
    all.join(Box::new(labelled("d", 2)), [5; 16]).unwrap();
    all.write_at(17 * SECTOR, &bytes(2, 2), TAG).unwrap();
    reader.read_at(16 * SECTOR, &mut out, TAG).unwrap();
    assert!(out == bytes(1, 1));
    reader.read_at(18 * SECTOR, &mut out, TAG).unwrap();
    assert!(out == bytes(2, 2)[SECTOR as usize..]);
    assert_eq!(all.name(), "a+b+c+d");
}

#[test]
fn a_disk_ends_where_the_next_one_begins() {
    let mut all = JoinedDisk::new(Box::new(disk("a", 8)));
    assert_eq!(all.push(Box::new(labelled("b", 3)), 9 * SECTOR).unwrap_err().kind, MediaErrorKind::OutOfRange);
    assert_eq!(all.push(Box::new(labelled("b", 0)), 5 * SECTOR).unwrap_err().kind, MediaErrorKind::OutOfRange);
    all.push(Box::new(labelled("b", 3)), 5 * SECTOR).unwrap();
    assert_eq!(all.bytes(), 8 * SECTOR);
    let mut out = vec![0; SECTOR as usize];
    assert_eq!(all.read_at(8 * SECTOR, &mut out, TAG).unwrap_err().kind, MediaErrorKind::OutOfRange);
    let beginnings: Vec<_> = all.disks().collect();
    assert_eq!(beginnings, [("a", 0), ("b", 5 * SECTOR)]);
}

#[test]
fn a_label_is_read_from_either_copy() {
    let label = DiskLabel { uuid: [5; 16], number: 2, start: 77 << 20 };
    for damaged in [None, Some(0), Some(LABEL_BYTES - SECTOR)] {
        let mut disk = labelled("b", 3);
        assert_eq!(DiskLabel::read(&mut disk), Ok(None));
        label.write(&mut disk).unwrap();
        if let Some(place) = damaged {
            disk.write_at(place, &bytes(9, 1), TAG).unwrap();
        }
        assert_eq!(DiskLabel::read(&mut disk), Ok(Some(label)));
        if damaged == Some(0) {
            disk.make_unreadable(0);
            assert_eq!(DiskLabel::read(&mut disk), Ok(Some(label)));
        }
        DiskLabel::wipe(&mut disk).unwrap();
        assert_eq!(DiskLabel::read(&mut disk), Ok(None));
    }
    // A disk too small for one has none.
    assert_eq!(DiskLabel::read(&mut disk("tiny", 1)), Ok(None));
}

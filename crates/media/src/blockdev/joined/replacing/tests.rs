//! A disk that takes the place of another one has everything that was flushed, and until then the
//! old one has, whatever is written meanwhile and whenever power goes.

use super::super::JoinedDisk;
use super::super::label::{BEING_COPIED_TO, DiskLabel, LABEL_BYTES};
use crate::blockdev::BlockDev;
use crate::blockdev::replace::{ReplaceDisk, Replacement};
use crate::error::MediaErrorKind;
use crate::sim::disk::SimDisk;
use crate::tag::IoTag;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use onode_base::Prng;

const SECTOR: u64 = 4096;
const TAG: IoTag = IoTag::Data;
const UUID: [u8; 16] = [5; 16];
/// Sectors of the first disk, and of all.
const FIRST: u64 = 20;
const ALL: u64 = 50;

fn disk(name: &str, sectors: u64) -> SimDisk {
    SimDisk::new(name, sectors * SECTOR)
}

/// Two disks, of which the second has a label.
fn two() -> ([SimDisk; 2], JoinedDisk) {
    let disks = [disk("a", FIRST), disk("b", LABEL_BYTES / SECTOR + ALL - FIRST)];
    let mut all = JoinedDisk::new(Box::new(disks[0].clone()));
    all.join(Box::new(disks[1].clone()), UUID).unwrap();
    (disks, all)
}

/// As superblocks lie: two at the start, and one at the end of the whole.
fn last() -> Vec<Range<u64>> {
    [0, 1, ALL - 1].map(|sector| sector * SECTOR..(sector + 1) * SECTOR).to_vec()
}

fn replacement(old: &str, new: &SimDisk) -> Replacement {
    Replacement { old: old.to_string(), new: Box::new(new.clone()), uuid: UUID, bytes: ALL * SECTOR, last: last() }
}

fn bytes(seed: u64, sectors: u64) -> Vec<u8> {
    let mut bytes = vec![0; (sectors * SECTOR) as usize];
    Prng::new(seed).fill(&mut bytes);
    bytes
}

/// What a disk of the volume holds, without its label.
fn content(disk: &mut SimDisk, which: usize) -> Vec<u8> {
    let (skip, sectors) = if which == 0 { (0, FIRST) } else { (LABEL_BYTES, ALL - FIRST) };
    let mut out = vec![0; (sectors * SECTOR) as usize];
    disk.read_at(skip, &mut out, TAG).unwrap();
    out
}

/// Whether the disk says that it is part `which` of the volume: its first sector in these tests is
/// the superblock.
fn is_part(disk: &mut SimDisk, which: usize) -> bool {
    if which > 0 {
        return matches!(DiskLabel::read(disk), Ok(Some(label)) if label.number == 1);
    }
    let mut sector = vec![0; SECTOR as usize];
    disk.read_at(0, &mut sector, TAG).unwrap();
    let is_copied_to = matches!(DiskLabel::read(disk), Ok(Some(label)) if label.number == BEING_COPIED_TO);
    !is_copied_to && sector.iter().any(|byte| *byte != 0)
}

/// What power leaves of a disk.
fn cut(disk: &SimDisk, draw: &mut Prng) -> SimDisk {
    let content = disk.content().after_cut(|_, _| draw.below(2) == 0);
    SimDisk::from_content(disk.name(), disk.bytes(), content)
}

/// One history: a disk is replaced while writes go on, and power goes at one of its steps. True if
/// it had not come to its last step before.
fn history(which: usize, seed: u64, cut_at: u64) -> bool {
    let draw = &mut Prng::new(seed);
    let (disks, mut all) = two();
    let new = disk("new", disks[which].bytes() / SECTOR + draw.below(3));
    let mut model = bytes(seed, ALL);
    all.write_at(0, &model, TAG).unwrap();
    all.flush().unwrap();
    let mut durable = model.clone();
    // What was written since the last flush may be either.
    let mut dirty = vec![false; ALL as usize];
    all.begin(replacement(["a", "b"][which], &new)).unwrap();
    let (mut to_copy, mut is_finished) = (None::<Range<u64>>, None);
    for step in 0..cut_at {
        match draw.below(5) {
            0 | 1 => {
                if let Some(range) = to_copy.take() {
                    all.copy(range).unwrap();
                } else if let Some(range) = all.advance(SECTOR * (1 + draw.below(4))).unwrap() {
                    // Others write in between.
                    to_copy = Some(range);
                } else {
                    // The new disk may fail on its last steps.
                    match draw.below(3) {
                        0 => new.fail_flush_after(draw.below(6)),
                        1 => new.fail_write_after(draw.below(6)),
                        _ => {}
                    }
                    is_finished = Some(all.finish().is_ok());
                    break;
                }
            }
            2 | 3 => {
                let first = draw.below(ALL);
                let count = 1 + draw.below((ALL - first).min(6));
                let range = (first * SECTOR) as usize..((first + count) * SECTOR) as usize;
                match draw.below(4) {
                    // The first sector would pass for none of the volume.
                    0 if first > 0 => {
                        all.zero(first * SECTOR, count * SECTOR).unwrap();
                        model[range].fill(0);
                    }
                    1 => {
                        let bytes = bytes(seed ^ step << 8, count);
                        all.post_write(first * SECTOR, &bytes, TAG).unwrap();
                        model[range].copy_from_slice(&bytes);
                    }
                    _ => {
                        let bytes = bytes(seed ^ step << 8, count);
                        all.write_at(first * SECTOR, &bytes, TAG).unwrap();
                        model[range].copy_from_slice(&bytes);
                    }
                }
                (first..first + count).for_each(|sector| dirty[sector as usize] = true);
            }
            _ => {
                all.flush().unwrap();
                durable.clone_from(&model);
                dirty.fill(false);
            }
        }
        let mut out = vec![0; model.len()];
        all.read_at(0, &mut out, TAG).unwrap();
        assert!(out == model, "{which} {seed} {cut_at}: step {step}");
    }
    let [mut old, mut new] = [cut(&disks[which], draw), cut(&new, draw)];
    let begin = if which == 0 { 0 } else { FIRST };
    let parts = [is_part(&mut old, which), is_part(&mut new, which)];
    assert!(parts.contains(&true), "{which} {seed} {cut_at}: no disk is a part");
    assert!(is_finished.is_some() || !parts[1], "{which} {seed} {cut_at}: a part of a copy passes for the volume");
    assert!(is_finished != Some(true) || parts[1], "{which} {seed} {cut_at}: the new disk is no part");
    for (mut disk, _) in [old, new].into_iter().zip(parts).filter(|(_, is_part)| *is_part) {
        for (number, sector) in content(&mut disk, which).chunks(SECTOR as usize).enumerate() {
            let at = begin as usize + number;
            let range = at * SECTOR as usize..(at + 1) * SECTOR as usize;
            assert!(
                dirty[at] || sector == &durable[range],
                "{which} {seed} {cut_at}: sector {at} of {} is lost",
                disk.name()
            );
        }
    }
    is_finished.is_none()
}

#[test]
fn a_cut_at_any_step_leaves_a_disk_with_everything() {
    let mut over = 0;
    for which in 0..2 {
        for seed in 0..60 {
            let mut cut_at = 1;
            while history(which, seed, cut_at) && cut_at < 400 {
                cut_at += 1 + cut_at / 8;
            }
            over += u32::from(cut_at < 400);
        }
    }
    assert_eq!(over, 120, "each of them is over some time");
}

#[test]
fn a_replaced_disk_is_used_and_the_old_one_forgets() {
    for which in 0..2 {
        let (mut disks, mut all) = two();
        let mut model = bytes(1, ALL);
        all.write_at(0, &model, TAG).unwrap();
        let reader = all.shared().unwrap();
        let new = disk("new", disks[which].bytes() / SECTOR);
        let names = [["new", "b"], ["a", "new"]][which];
        all.begin(replacement(["a", "b"][which], &new)).unwrap();
        assert_eq!(all.grow(99 * SECTOR).unwrap_err().kind, MediaErrorKind::Invalid);
        assert_eq!(all.join(Box::new(disk("c", 600)), UUID).unwrap_err().kind, MediaErrorKind::Invalid);
        while let Some(range) = all.advance(1 << 20).unwrap() {
            all.copy(range).unwrap();
        }
        let progress = all.progress().unwrap();
        assert_eq!((progress.done, progress.unreadable), (progress.total, 0));
        let former = all.finish().unwrap();
        assert_eq!(former.unreadable(), 0);
        former.wipe().unwrap();
        assert!(!is_part(&mut disks[which], which) && is_part(&mut new.clone(), which));
        assert_eq!(all.disk_names(), names);
        assert_eq!(all.name(), names.join("+"));
        assert_eq!(all.progress(), None);
        let first = (FIRST - 2) * SECTOR;
        all.write_at(first, &bytes(2, 4), TAG).unwrap();
        model[first as usize..][..4 * SECTOR as usize].copy_from_slice(&bytes(2, 4));
        let mut out = vec![0; model.len()];
        reader.read_at(0, &mut out, TAG).unwrap();
        assert!(out == model);
    }
}

#[test]
fn who_writes_is_not_told_of_the_new_disk() {
    let (disks, mut all) = two();
    let model = bytes(1, ALL);
    all.write_at(0, &model, TAG).unwrap();
    let new = disk("new", disks[0].bytes() / SECTOR);
    all.begin(replacement("a", &new)).unwrap();
    let range = all.advance(1 << 20).unwrap().unwrap();
    all.copy(range).unwrap();
    new.unplug();
    all.write_at(5 * SECTOR, &bytes(2, 1), TAG).unwrap();
    assert!(all.advance(1 << 20).is_err());
    assert_eq!(all.advance(1 << 20).unwrap_err().kind, MediaErrorKind::Invalid);
    let mut out = vec![0; SECTOR as usize];
    all.read_at(5 * SECTOR, &mut out, TAG).unwrap();
    assert!(out == bytes(2, 1));
    assert_eq!(all.disk_names(), ["a", "b"]);
    // Another one takes the place all the same.
    let new = disk("better", disks[0].bytes() / SECTOR);
    all.begin(replacement("a", &new)).unwrap();
    while let Some(range) = all.advance(1 << 20).unwrap() {
        all.copy(range).unwrap();
    }
    all.finish().unwrap();
    assert_eq!(all.disk_names(), ["better", "b"]);
}

#[test]
fn what_cannot_be_read_is_zeros_and_counted() {
    let (disks, mut all) = two();
    let model = bytes(1, ALL);
    all.write_at(0, &model, TAG).unwrap();
    let mut new = disk("new", disks[1].bytes() / SECTOR);
    new.write_at(0, &vec![7; new.bytes() as usize], TAG).unwrap();
    disks[1].make_unreadable(LABEL_BYTES + 3 * SECTOR);
    all.begin(replacement("b", &new)).unwrap();
    while let Some(range) = all.advance(1 << 20).unwrap() {
        all.copy(range).unwrap();
    }
    assert_eq!(all.finish().unwrap().unreadable(), SECTOR);
    let mut out = vec![1; 3 * SECTOR as usize];
    all.read_at((FIRST + 2) * SECTOR, &mut out, TAG).unwrap();
    let (before, rest) = out.split_at(SECTOR as usize);
    let (unread, behind) = rest.split_at(SECTOR as usize);
    let of_model = |sector: u64| &model[(sector * SECTOR) as usize..][..SECTOR as usize];
    assert!(before == of_model(FIRST + 2) && behind == of_model(FIRST + 4));
    assert!(unread.iter().all(|byte| *byte == 0));
}

#[test]
fn a_disk_that_cannot_be_used_is_refused() {
    let (disks, mut all) = two();
    let wrong = all.begin(replacement("c", &disk("new", 99))).unwrap_err();
    assert_eq!(wrong.kind, MediaErrorKind::NotFound);
    let small = all.begin(replacement("a", &disk("new", FIRST - 1))).unwrap_err();
    assert_eq!(small.kind, MediaErrorKind::OutOfRange);
    assert_eq!(all.advance(1).unwrap_err().kind, MediaErrorKind::Invalid);
    // Who gives up leaves the old disk, and a new one that says what it was for.
    let mut new = disk("new", disks[0].bytes() / SECTOR);
    all.begin(replacement("a", &new)).unwrap();
    all.stop();
    assert_eq!(all.progress(), None);
    let label = DiskLabel::read(&mut new).unwrap().unwrap();
    assert_eq!((label.uuid, label.number), (UUID, BEING_COPIED_TO));
    assert_eq!(all.disk_names(), ["a", "b"]);
}

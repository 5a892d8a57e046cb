//! Snapshots of volumes: full ones, and ones that cannot have any.

use crate::common::Folder;
use onode::{Class, MountOptions, Snapshots, Spec, Volume};
use onode_fs::Caller;
use std::collections::BTreeMap;

const FILE_BYTES: usize = 200_000;

fn content(file: u64, round: u8) -> Vec<u8> {
    let mut state = file * 256 + u64::from(round);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..FILE_BYTES).map(|_| next()).collect()
}

/// Fills a volume before and after a snapshot. What was accepted is there, then and now, and room
/// comes back when the snapshot goes.
fn filled(spec: &str) {
    let volume = Volume::open_or_create(spec).unwrap();
    let write = |file: u64, round: u8| volume.write(format!("/{file}"), content(file, round));
    let mut old = BTreeMap::new();
    let half = volume.device().space().available / 2;
    for file in 0..half / FILE_BYTES as u64 {
        write(file, 1).unwrap();
        old.insert(file, 1);
    }
    let snapshots = volume.snapshots().unwrap();
    let snapshot = snapshots.take("half").unwrap();
    let mut now = old.clone();
    let mut refused = 0;
    for (file, round) in (0..400).map(|file| (file, 2)) {
        match write(file, round) {
            Ok(()) => _ = now.insert(file, round),
            // What was there is gone, or in part there: a file is made empty before it is written.
            Err(error) => {
                assert_eq!(error.class, Class::VolumeFull, "{error}");
                now.remove(&file);
                refused += 1;
            }
        }
    }
    assert!(refused > 10 && now.values().any(|round| *round == 2), "{refused} of 400 were refused");
    volume.files().sync().unwrap();
    let check = |now: &BTreeMap<u64, u8>, when: &str| {
        for (file, round) in now {
            assert!(volume.read(format!("/{file}")).unwrap() == content(*file, *round), "{when}: {file}");
        }
    };
    check(&now, "full");
    let then = snapshots.files(snapshot.generation).unwrap();
    for (file, round) in &old {
        let found = then.lookup(onode::InodeNumber::ROOT, file.to_string().as_bytes()).unwrap();
        let mut bytes = vec![0; FILE_BYTES + 1];
        assert_eq!(then.read(found.inode, 0, &mut bytes).unwrap(), FILE_BYTES);
        assert!(bytes[..FILE_BYTES] == content(*file, *round), "{file} in the snapshot");
    }
    drop(then);
    // What came after the snapshot goes whatever it keeps.
    let new: Vec<_> = now.keys().copied().filter(|file| !old.contains_key(file)).collect();
    for file in new {
        volume.remove_all(format!("/{file}")).unwrap();
        now.remove(&file);
    }
    snapshots.delete("half").unwrap();
    while snapshots.clean(64).unwrap() {}
    assert!(!snapshots.is_cleaning());
    check(&now, "cleaned");
    for file in 1_000..1_010 {
        write(file, 3).unwrap();
    }
    volume.files().sync().unwrap();
    volume.close().unwrap();
}

#[test]
fn a_full_flash_keeps_what_it_accepted() {
    let folder = Folder::new("snapshots-flash");
    filled(&format!("flash:{},size=24M", folder.path().join("disk.img").display()));
}

#[test]
fn a_full_pair_of_disks_keeps_what_it_accepted() {
    let folder = Folder::new("snapshots-tier");
    let (fast, big) = (folder.path().join("fast.img"), folder.path().join("big.img"));
    filled(&format!("tier:{},{},fast-size=8M,size=32M", fast.display(), big.display()));
}

/// Deletes one of three snapshots on a volume that is full: there is room for what goes from it to
/// the one before, in many pieces.
fn deleted_while_full(text: &str) {
    let volume = Volume::open_or_create(text).unwrap();
    let files = volume.files();
    let first = content(0, 1);
    volume.write("/large", &first).unwrap();
    let large = files.lookup(onode::InodeNumber::ROOT, b"large").unwrap().inode;
    let overwrite = |offset: u64| files.write(&Caller::root(), large, offset, &[0x55; 50]).map(drop).unwrap();
    let snapshots = volume.snapshots().unwrap();
    let one = snapshots.take("one").unwrap();
    overwrite(100);
    snapshots.take("two").unwrap();
    // What is kept lies in many pieces: each takes space where it goes.
    (0..first.len() as u64 - 50).step_by(200).for_each(overwrite);
    snapshots.take("three").unwrap();
    let mut bytes = FILE_BYTES;
    for file in 0..10_000 {
        let part = &content(file, 2)[..bytes];
        match volume.write(format!("/{file}"), part) {
            Ok(()) => files.sync().unwrap(),
            Err(error) if error.class == Class::VolumeFull && bytes > 10 => bytes /= 2,
            Err(error) if error.class == Class::VolumeFull => break,
            Err(error) => panic!("{error}"),
        }
    }
    snapshots.delete("two").unwrap();
    while snapshots.clean(64).unwrap() {}
    let then = snapshots.files(one.generation).unwrap();
    assert!(then.read_file(b"/large").unwrap() == first, "the first snapshot");
    drop(then);
    volume.close().unwrap();
}

#[test]
fn a_snapshot_between_others_goes_from_a_full_flash() {
    let folder = Folder::new("snapshots-between-flash");
    deleted_while_full(&format!("flash:{},size=2M", folder.path().join("disk.img").display()));
}

#[test]
fn a_snapshot_between_others_goes_from_a_full_pair_of_disks() {
    let folder = Folder::new("snapshots-between-tier");
    let (fast, big) = (folder.path().join("fast.img"), folder.path().join("big.img"));
    deleted_while_full(&format!("tier:{},{},fast-size=8M,size=16M", fast.display(), big.display()));
}

#[test]
fn a_memory_has_none() {
    let volume = Volume::open_or_create("scm:sim,size=16M").unwrap();
    assert!(volume.snapshots().is_none());
    let why = Snapshots::lacking(volume.spec(), String::new());
    assert!(why.to_string().contains("processes share") && format!("{why:?}").contains("exclusive=on"), "{why:?}");
    volume.close().unwrap();
}

#[test]
fn a_snapshot_is_opened_for_reading_and_by_its_name_only() {
    let folder = Folder::new("snapshots-open");
    let text = format!("flash:{},size=8M", folder.path().join("disk.img").display());
    let volume = Volume::open_or_create(&text).unwrap();
    volume.write("/a", "then").unwrap();
    volume.snapshots().unwrap().take("one").unwrap();
    volume.write("/a", "now").unwrap();
    volume.close().unwrap();
    drop(volume);
    let spec = Spec::parse(&text).unwrap();
    for _ in 0..2 {
        let then = Volume::open_state(&spec, "one", reading()).unwrap();
        assert_eq!(then.read("/a").unwrap(), b"then");
        assert_eq!(then.write("/a", "x").unwrap_err().class, Class::ReadOnly);
        assert!(then.snapshots().is_none() && then.transactions().is_none());
        then.close().unwrap();
        drop(then);
        let missing = Volume::open_state(&spec, "two", reading());
        assert_eq!(missing.unwrap_err().class, Class::NotFound);
        let changed = Volume::open_state(&spec, "one", MountOptions::default());
        assert_eq!(changed.unwrap_err().class, Class::Usage, "a snapshot does not change");
    }
}

fn reading() -> MountOptions {
    MountOptions { read_only: true, ..MountOptions::default() }
}

/// Where a member with large units has zeros of a block, one with smaller ones has a hole, and has
/// to keep it as well. Which member is asked goes by the number of the file.
#[test]
fn a_snapshot_of_members_of_two_kinds_has_its_holes_on_each() {
    const FILES: u64 = 4;
    let folder = Folder::new("snapshots-mixed");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let flash = format!("flash:{}", path("flash.img"));
    let tier = format!("tier:{},{}", path("fast.img"), path("big.img"));
    let volume = Volume::open_or_create(&format!("pool:{flash},size=24M+{tier},fast-size=8M,size=24M")).unwrap();
    let (files, root) = (volume.files(), Caller::root());
    let holes = [(5_000, 9_000), (40_100, 100), (90_000, 500)];
    let inodes: Vec<_> = (0..FILES)
        .map(|file| {
            let name = file.to_string();
            volume.write(format!("/{name}"), content(file, 1)).unwrap();
            let inode = files.lookup(onode::InodeNumber::ROOT, name.as_bytes()).unwrap().inode;
            for (offset, length) in holes {
                files.allocate(&root, inode, offset, length, onode_fs::Allocate::PunchHole).unwrap();
            }
            inode
        })
        .collect();
    for (name, round) in [("one", 2), ("two", 3)] {
        volume.snapshots().unwrap().take(name).unwrap();
        for (file, inode) in (0..).zip(&inodes) {
            files.write(&root, *inode, 0, &content(file, round)).unwrap();
        }
        files.sync().unwrap();
    }
    volume.close().unwrap();
    drop(volume);
    for spec in [format!("pool:{flash}+{tier}"), flash, tier] {
        let spec = Spec::parse(&spec).unwrap();
        for (name, round) in [("one", 1), ("two", 2)] {
            let state = Volume::open_state(&spec, name, reading()).unwrap();
            for file in 0..FILES {
                let mut expected = content(file, round);
                if round == 1 {
                    holes.iter().for_each(|(from, length)| expected[*from as usize..][..*length as usize].fill(0));
                }
                let found = state.read(format!("/{file}")).unwrap();
                let first = found.iter().zip(&expected).position(|(one, other)| one != other);
                assert_eq!((found.len(), first), (FILE_BYTES, None), "{file} in {name} of {spec}");
            }
            state.close().unwrap();
        }
    }
}

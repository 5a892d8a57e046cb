//! Directories large and in motion.

use crate::common::*;
use onode_base::Prng;
use onode_fs::*;
use std::collections::{BTreeMap, BTreeSet};

/// Reads `count` names from `cursor` on; returns where to go on.
fn some_names(fs: &FileSystem, directory: InodeNumber, cursor: u64, count: usize) -> (Vec<String>, u64) {
    let (mut names, mut next) = (Vec::new(), cursor);
    fs.read_directory(directory, cursor, &mut |entry| {
        if names.len() == count {
            return false;
        }
        names.push(String::from_utf8(entry.name.clone()).unwrap());
        next = entry.cursor;
        true
    })
    .unwrap();
    (names, next)
}

#[test]
fn a_hundred_thousand_names() {
    // An inode object takes 4 KiB of the device in memory.
    let count = if INODES == Inodes::Separate { 40_000 } else { 100_000 };
    let volume = Volume::of_size(256 << 20);
    let fs = volume.mount_with(Options { cached_inodes: 1000, ..Options::default() });
    let directory = mkdir(&fs, ROOT, "large");
    for i in 0..count {
        let file = fs.create(&root(), directory, format!("file {i}").as_bytes(), 0o644).unwrap();
        fs.forget(file.inode, 1);
    }
    assert!(fs.statistics().cached_inodes < 1100, "clean inodes nobody uses are let go");
    assert!(fs.statistics().name_cache_bytes <= fs.options().name_cache_bytes as u64);
    assert_eq!(fs.attributes(directory).unwrap().size, count);
    let mut seen = BTreeSet::new();
    let mut cursor = 2;
    loop {
        let (names, next) = some_names(&fs, directory, cursor, 1000);
        if names.is_empty() {
            break;
        }
        assert!(next < 1 << 63);
        cursor = next;
        for name in names {
            assert!(seen.insert(name));
        }
    }
    assert_eq!(seen.len() as u64, count);
    for i in 0..count {
        fs.unlink(directory, format!("file {i}").as_bytes()).unwrap();
    }
    fs.remove_directory(ROOT, b"large").unwrap();
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(1, 0));
}

#[test]
fn iteration_with_concurrent_remove_and_create() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (_volume, fs) = mounted();
        let stays: BTreeSet<String> = (0..100).map(|i| format!("stays {i}")).collect();
        for name in stays.iter().cloned().chain((0..100).map(|i| format!("goes {i}"))) {
            create(&fs, ROOT, &name);
        }
        let (mut cursor, mut goes, mut seen) = (2, 0, BTreeMap::new());
        loop {
            let (names, next) = some_names(&fs, ROOT, cursor, 1 + prng.below(9) as usize);
            if names.is_empty() {
                break;
            }
            cursor = next;
            for name in names {
                *seen.entry(name).or_insert(0) += 1;
            }
            for _ in 0..prng.below(10) {
                if goes < 100 {
                    fs.unlink(ROOT, format!("goes {goes}").as_bytes()).unwrap();
                    goes += 1;
                }
            }
            create(&fs, ROOT, &format!("comes {}", seen.len()));
            assert!(seen.len() < 1000, "seed {seed}: the iteration ends");
        }
        assert!(seen.values().all(|count| *count == 1), "seed {seed}: no name twice");
        assert!(stays.iter().all(|name| seen.contains_key(name)), "seed {seed}: what stays is seen");
    }
}

#[test]
fn the_dots_come_first_and_have_cursors_of_their_own() {
    let (_volume, fs) = mounted();
    let directory = mkdir(&fs, ROOT, "d");
    create(&fs, directory, "f");
    let (names, _) = some_names(&fs, directory, 0, 10);
    assert_eq!(names, [".", "..", "f"]);
    assert_eq!(some_names(&fs, directory, 0, 1), (vec![".".into()], 1));
    assert_eq!(some_names(&fs, directory, 1, 1), (vec!["..".into()], 2));
    assert_eq!(some_names(&fs, directory, 2, 1).0, ["f"]);
}

#[test]
fn plus_counts_a_lookup_for_what_was_taken_and_no_more() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount_with(Options { opens_are_counted: false, ..Options::default() });
    for i in 0..10 {
        let file = create(&fs, ROOT, &format!("{i}"));
        fs.forget(file, 1);
    }
    let mut taken = Vec::new();
    fs.read_directory_plus(ROOT, 2, &mut |entry| {
        assert_eq!(entry.attributes.unwrap().inode, entry.inode);
        if taken.len() == 4 {
            return false;
        }
        taken.push(entry.inode);
        true
    })
    .unwrap();
    for i in 0..10 {
        fs.unlink(ROOT, format!("{i}").as_bytes()).unwrap();
    }
    // The four that were taken are in use; the others are gone.
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(5, 0));
    for inode in taken {
        fs.forget(inode, 1);
    }
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(1, 0));
}

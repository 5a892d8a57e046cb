//! `onode resize`: images and mounts that become larger or smaller, and what is told of those that
//! cannot.

use crate::common::{Expect, Place, has_fuse};
use std::fs;
use std::path::Path;

/// Fills a file with bytes that tell their place.
fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index / 251) as u8 ^ (index as u8).wrapping_mul(3) ^ seed).collect()
}

fn put(place: &Place, spec: &Path, name: &str, bytes: &[u8]) {
    let file = place.path(name);
    fs::write(&file, bytes).expect("write");
    onode!("put", spec, &file, format!("/{name}")).succeeds();
}

fn holds(place: &Place, spec: &Path, name: &str, bytes: &[u8]) {
    let back = place.path("back");
    let _ = fs::remove_file(&back);
    onode!("get", spec, format!("/{name}"), &back).succeeds();
    assert!(fs::read(&back).expect("read") == bytes, "{name}");
}

#[test]
fn an_image_that_is_full_takes_more_after_it_was_resized() {
    let place = Place::new("resize");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "8M").succeeds();
    let (first, second) = (pattern(5 << 20, 1), pattern(20 << 20, 2));
    put(&place, &image, "first", &first);
    fs::write(place.path("second"), &second).expect("write");
    onode!("put", &image, place.path("second"), "/second").fails(15);
    let _ = onode!("rm", &image, "/second").output();

    let told = onode!("resize", "-n", &image, "40M").succeeds();
    assert!(told.contains("would become 40"), "{told}");
    assert!(onode!("resize", &image).succeeds().contains("as before"));
    let told = onode!("--json", "resize", &image, "40M").succeeds();
    assert!(told.contains("\"bytes\": 41943040") && told.contains("\"before\": 8388608"), "{told}");
    put(&place, &image, "second", &second);
    holds(&place, &image, "first", &first);
    holds(&place, &image, "second", &second);
    onode!("check", &image).succeeds();
    onode!("resize", &image, "+24M").succeeds();
    onode!("check", &image).succeeds();
    assert!(onode!("info", &image).succeeds().contains(" 512 blocks"), "the new size");
    holds(&place, &image, "second", &second);

    let error = onode!("resize", &image, "16M").fails(19);
    assert!(error.contains("what is in it needs about") && error.contains("remove files"), "{error}");
    let error = onode!("resize", &image, "+128K").fails(19);
    assert!(error.contains("next size"), "{error}");
    onode!("resize", &image, "much").fails(2);
    onode!("resize", place.path("none.img"), "1G").fails(20);
}

#[test]
fn a_full_volume_that_cannot_become_smaller_says_what_is_in_it_and_what_to_do() {
    let place = Place::new("resize-full");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "16M").succeeds();
    fs::write(place.path("large"), pattern(20 << 20, 1)).expect("write");
    onode!("put", &image, place.path("large"), "/large").fails(15);
    let refused = |target: &Path| {
        let error = onode!("resize", target, "12M").fails(19);
        for part in ["bytes are in use", "the least size", "16M", "remove files or snapshots", "onode resize"] {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    refused(&image);
    if has_fuse() {
        let directory = place.directory("mnt");
        onode!("mount", &image, &directory).succeeds();
        refused(&directory);
        crate::common::unmount(&directory);
    }
    onode!("rm", &image, "/large").succeeds();
    onode!("resize", &image, "12M").succeeds();
}

#[test]
fn a_mounted_volume_grows_under_load() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("resize-mounted");
    let directory = place.directory("mnt");
    let path = |name| place.path(name).display().to_string();
    let disks = format!("tier:{},{},fast-size=8M", path("fast.img"), path("big.img"));
    for spec in [path("disk.img"), format!("flash:{},direct", path("raw.img")), disks] {
        onode!("mkfs", &spec, "--size", "16M").succeeds();
        onode!("mount", &spec, &directory).succeeds();
        let bytes = pattern(6 << 20, 3);
        fs::write(directory.join("before"), &bytes).expect("room");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..20 {
                    fs::write(directory.join(format!("file-{}", round % 4)), pattern(300_000, round)).expect("room");
                }
            });
            for size in ["24M", "80M"] {
                onode!("resize", &directory, size).succeeds();
            }
            writer.join().expect("a writer that found room");
        });
        let big = pattern(48 << 20, 4);
        fs::write(directory.join("after"), &big).expect("room");
        let error = onode!("resize", &directory, "1M").fails(19);
        assert!(error.contains("what is in it needs") && error.contains("remove files"), "{error}");
        // By the name of its image, too.
        let told = onode!("resize", "-n", &spec).succeeds();
        assert!(told.contains("80"), "{told}");
        onode!("umount", &directory).succeeds();
        onode!("check", &spec).succeeds();
        onode!("mount", &spec, &directory).succeeds();
        assert!(fs::read(directory.join("before")).expect("read") == bytes);
        assert!(fs::read(directory.join("after")).expect("read") == big);
        assert!(fs::read(directory.join("file-3")).expect("read") == pattern(300_000, 19));
        onode!("umount", &directory).succeeds();
    }
}

#[test]
fn an_image_becomes_shorter_and_keeps_its_files() {
    let place = Place::new("resize-smaller");
    let image = place.path("disk.img");
    let raw = format!("flash:{}", place.path("raw.img").display());
    for (spec, file) in [(image.display().to_string(), "disk.img"), (raw, "raw.img")] {
        let spec = Path::new(&spec);
        onode!("mkfs", spec, "--size", "64M").succeeds();
        let bytes = || fs::metadata(place.path(file)).expect("an image").len();
        let (first, second) = (pattern(30 << 20, 1), pattern(5 << 20, 2));
        put(&place, spec, "first", &first);
        put(&place, spec, "second", &second);
        let error = onode!("resize", spec, "16M").fails(19);
        assert!(error.contains("what is in it needs about") && error.contains("remove files"), "{error}");
        onode!("rm", spec, "/first").succeeds();
        let told = onode!("resize", "-n", spec, "-48M").succeeds();
        assert!(told.contains("would become 16") && told.contains("has room in"), "{told}");
        let before = bytes();
        let told = onode!("resize", spec, "16M").succeeds();
        assert!(told.contains("16.0 MiB, 64.0 MiB before"), "{told}");
        assert!(bytes() < before && bytes() < 20 << 20, "{} of {before}", bytes());
        onode!("check", spec).succeeds();
        holds(&place, spec, "second", &second);
        let told = onode!("--json", "resize", spec, "least").succeeds();
        assert!(told.contains("\"before\": 16777216") && bytes() < 12 << 20, "{told}");
        onode!("check", spec).succeeds();
        holds(&place, spec, "second", &second);
        onode!("resize", spec, "+64M").succeeds();
        put(&place, spec, "first", &first);
        onode!("check", spec).succeeds();
        holds(&place, spec, "first", &first);
        holds(&place, spec, "second", &second);
    }
}

#[test]
fn a_mounted_volume_becomes_smaller_under_load() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("resize-smaller-mounted");
    let directory = place.directory("mnt");
    let path = |name| place.path(name).display().to_string();
    let beside = format!("flash+scm:{},{}", path("flash.img"), path("memory"));
    for spec in [path("disk.img"), format!("flash:{},direct", path("raw.img")), beside] {
        onode!("mkfs", &spec, "--size", "96M").succeeds();
        onode!("mount", &spec, &directory).succeeds();
        let kept = pattern(6 << 20, 3);
        fs::write(directory.join("gone"), pattern(50 << 20, 9)).expect("room");
        fs::write(directory.join("kept"), &kept).expect("room");
        let error = onode!("resize", &directory, "32M").fails(19);
        assert!(error.contains("what is in it needs"), "{error}");
        fs::remove_file(directory.join("gone")).expect("a file");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..30 {
                    fs::write(directory.join(format!("file-{}", round % 4)), pattern(300_000, round)).expect("room");
                }
            });
            for size in ["64M", "-24M", "32M"] {
                onode!("resize", &directory, size).succeeds();
            }
            writer.join().expect("a writer that found room");
        });
        let told = onode!("resize", "-n", &directory).succeeds();
        assert!(told.contains("32.0 MiB"), "{told}");
        assert!(fs::read(directory.join("kept")).expect("read") == kept);
        onode!("umount", &directory).succeeds();
        onode!("check", &spec).succeeds();
        onode!("mount", &spec, &directory).succeeds();
        assert!(fs::read(directory.join("kept")).expect("read") == kept);
        assert!(fs::read(directory.join("file-1")).expect("read") == pattern(300_000, 29));
        onode!("umount", &directory).succeeds();
    }
}

/// A memory beside the flash is filled anew, and takes part as before.
#[test]
fn flash_grows_under_its_memory() {
    let place = Place::new("resize-beside");
    let beside = format!("flash+scm:{},{}", place.path("flash").display(), place.path("beside").display());
    onode!("mkfs", &beside, "--size", "16M").succeeds();
    let bytes = pattern(9 << 20, 1);
    put(&place, Path::new(&beside), "first", &bytes);
    onode!("resize", &beside, "32M").succeeds();
    onode!("check", &beside).succeeds();
    put(&place, Path::new(&beside), "second", &bytes);
    if has_fuse() {
        let directory = place.directory("mnt");
        onode!("mount", &beside, &directory).succeeds();
        onode!("resize", &directory, "64M").succeeds();
        let health = onode!("health", &directory).output().expect("a command");
        let health = String::from_utf8_lossy(&health.stdout).into_owned();
        assert!(health.contains("memory-rebuilt") && !health.contains("memory-given-up"), "{health}");
        fs::write(directory.join("third"), pattern(30 << 20, 3)).expect("room");
        onode!("umount", &directory).succeeds();
        holds(&place, Path::new(&beside), "third", &pattern(30 << 20, 3));
    }
    onode!("check", &beside).succeeds();
    holds(&place, Path::new(&beside), "first", &bytes);
    holds(&place, Path::new(&beside), "second", &bytes);
}

/// The big disk is what grows; the fast one may be away meanwhile, and comes back.
#[test]
fn two_disks_grow_with_the_big_one() {
    let place = Place::new("resize-disks");
    let (fast, big) = (place.path("fast.img"), place.path("big.img"));
    let both = format!("tier:{},{}", fast.display(), big.display());
    onode!("mkfs", format!("{both},size=16M,fast-size=8M")).succeeds();
    let (first, second) = (pattern(8 << 20, 1), pattern(150 << 20, 2));
    put(&place, Path::new(&both), "first", &first);
    let told = onode!("--json", "resize", "-n", &both, "+1G").succeeds();
    assert!(told.contains("\"bytes\": 1090519040") && told.contains("\"before\": 16777216"), "{told}");
    onode!("resize", &both, "80M").succeeds();
    // Beyond the blocks that one page of the bitmap tells of.
    onode!("resize", &both, "200M").succeeds();
    assert_eq!(fs::metadata(&big).expect("an image").len(), 200 << 20);
    put(&place, Path::new(&both), "second", &second);
    onode!("check", &both).succeeds();
    let alone = format!("{both},fast=none");
    onode!("resize", &alone, "300M").succeeds();
    for spec in [&alone, &both] {
        holds(&place, Path::new(spec), "first", &first);
        holds(&place, Path::new(spec), "second", &second);
        onode!("check", spec).succeeds();
    }
    assert!(onode!("info", &both).succeeds().contains("300 MiB"), "the new size");
    // A disk that became longer by itself, as a partition does.
    fs::File::options().write(true).open(&big).expect("an image").set_len(400 << 20).expect("longer");
    onode!("check", &both).succeeds();
    assert!(onode!("resize", "-n", &both).succeeds().contains("would become 400"));
    onode!("resize", &both).succeeds();
    onode!("check", &both).succeeds();
    assert!(onode!("resize", &both, "+4K").fails(19).contains("next size"));
}

/// The big disk becomes shorter with its volume, with its fast disk and without.
#[test]
fn two_disks_shrink_with_the_big_one() {
    let place = Place::new("resize-disks-smaller");
    let (fast, big) = (place.path("fast.img"), place.path("big.img"));
    let both = format!("tier:{},{}", fast.display(), big.display());
    let bytes = || fs::metadata(&big).expect("an image").len();
    onode!("mkfs", format!("{both},size=128M,fast-size=8M")).succeeds();
    // Its bitmap has pages in what comes.
    onode!("resize", &both, "256M").succeeds();
    let (first, second) = (pattern(60 << 20, 1), pattern(20 << 20, 2));
    put(&place, Path::new(&both), "first", &first);
    put(&place, Path::new(&both), "second", &second);
    let error = onode!("resize", &both, "64M").fails(19);
    assert!(error.contains("what is in it needs about") && error.contains("remove files"), "{error}");
    onode!("rm", &both, "/first").succeeds();
    let told = onode!("resize", "-n", &both, "64M").succeeds();
    assert!(told.contains("would become 64") && told.contains("has room in"), "{told}");
    let told = onode!("resize", &both, "64M").succeeds();
    assert!(told.contains("64.0 MiB, 256.0 MiB before") && bytes() == 64 << 20, "{told}");
    onode!("check", &both).succeeds();
    let alone = format!("{both},fast=none");
    onode!("--json", "resize", &alone, "least").succeeds();
    assert!(bytes() < 32 << 20, "{}", bytes());
    for spec in [&alone, &both] {
        holds(&place, Path::new(spec), "second", &second);
        onode!("check", spec).succeeds();
    }
    onode!("resize", &both, "256M").succeeds();
    put(&place, Path::new(&both), "first", &first);
    onode!("check", &both).succeeds();
    if has_fuse() {
        let directory = place.directory("mnt");
        onode!("mount", &both, &directory).succeeds();
        fs::remove_file(directory.join("first")).expect("removed");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..20 {
                    fs::write(directory.join(format!("file-{}", round % 4)), pattern(300_000, round)).expect("room");
                }
            });
            onode!("resize", &directory, "-192M").succeeds();
            writer.join().expect("a writer that found room");
        });
        assert_eq!(bytes(), 64 << 20);
        onode!("umount", &directory).succeeds();
        onode!("check", &both).succeeds();
        holds(&place, Path::new(&both), "second", &second);
        holds(&place, Path::new(&both), "file-3", &pattern(300_000, 19));
    }
}

/// Every member gets the new size, and has everything.
#[test]
fn a_pool_grows_and_shrinks_with_all_its_members() {
    let place = Place::new("resize-pool");
    let path = |name| place.path(name).display().to_string();
    let flashes = format!("pool:flash:{},size=32M+flash:{},size=48M", path("one.img"), path("two.img"));
    let spec = Path::new(&flashes);
    onode!("mkfs", spec).succeeds();
    let (first, second) = (pattern(20 << 20, 1), pattern(30 << 20, 2));
    put(&place, spec, "first", &first);
    let told = onode!("--json", "resize", spec, "64M").succeeds();
    assert!(told.contains("\"before\": 33554432") && told.contains("\"bytes\": 67108864"), "{told}");
    put(&place, spec, "second", &second);
    onode!("check", spec).succeeds();
    assert!(onode!("resize", spec, "16M").fails(19).contains("what is in it needs about"));
    onode!("rm", spec, "/second").succeeds();
    if has_fuse() {
        let directory = place.directory("mnt");
        onode!("mount", spec, &directory).succeeds();
        onode!("resize", &directory, "40M").succeeds();
        assert!(fs::read(directory.join("first")).expect("read") == first);
        onode!("umount", &directory).succeeds();
    } else {
        onode!("resize", spec, "40M").succeeds();
    }
    for name in ["one.img", "two.img"] {
        assert!(fs::metadata(place.path(name)).expect("an image").len() < 44 << 20, "{name}");
    }
    onode!("check", spec).succeeds();
    holds(&place, spec, "first", &first);
    // Not without one of them: it would come back with another size.
    fs::rename(place.path("two.img"), place.path("away")).expect("a file");
    let error = onode!("resize", spec, "64M").output().expect("a command");
    assert!(!error.status.success(), "{error:?}");
    fs::rename(place.path("away"), place.path("two.img")).expect("a file");
    holds(&place, spec, "first", &first);

    let mixed = format!("pool:flash:{},size=16M+scm:{},size=16M", path("flash.img"), path("memory"));
    onode!("mkfs", &mixed).succeeds();
    assert!(onode!("resize", &mixed, "32M").fails(2).contains("does not become larger"));
}

#[test]
fn services_and_snapshots_grow_and_shrink_with_their_volume() {
    let place = Place::new("resize-services");
    let image = place.path("sealed.img");
    let key = place.path("key");
    fs::write(&key, [7; 64]).expect("write");
    onode!("mkfs", &image, "--size", "16M", "--parity", "1", "--encrypt", "--key-file", &key).succeeds();
    let file = place.path("file");
    fs::write(&file, pattern(3 << 20, 5)).expect("write");
    onode!("put", "--key-file", &key, &image, &file, "/file").succeeds();
    onode!("snapshot", "--key-file", &key, "create", &image, "old").succeeds();
    onode!("resize", "--key-file", &key, &image, "64M").succeeds();
    fs::write(&file, pattern(30 << 20, 6)).expect("write");
    onode!("put", "--key-file", &key, &image, &file, "/file").succeeds();
    onode!("check", "--key-file", &key, &image).succeeds();
    let back = place.path("back");
    let old = format!("{}@old", image.display());
    let shows_old = || {
        let _ = fs::remove_file(&back);
        onode!("get", "--key-file", &key, &old, "/file", &back).succeeds();
        assert!(fs::read(&back).expect("read") == pattern(3 << 20, 5));
    };
    shows_old();
    onode!("rm", "--key-file", &key, &image, "/file").succeeds();
    onode!("resize", "--key-file", &key, &image, "least").succeeds();
    assert!(fs::metadata(&image).expect("an image").len() < 24 << 20);
    onode!("check", "--key-file", &key, &image).succeeds();
    shows_old();
    onode!("resize", &image, "80M").fails(24);
}

#[test]
fn what_has_one_size_says_what_to_do() {
    let place = Place::new("resize-refused");
    let memory = format!("scm:{}", place.path("memory").display());
    onode!("mkfs", &memory, "--size", "16M").succeeds();
    let error = onode!("resize", &memory, "32M").fails(2);
    assert!(error.contains("does not become larger") && error.contains("spaces resize"), "{error}");
    let flash = place.path("short.img");
    onode!("mkfs", &flash, "--size", "8M").succeeds();
    let error = onode!("resize", &flash, "1T").fails(1);
    assert!(error.contains("at most") && error.contains("make a new one"), "{error}");
    assert!(onode!("resize", "-n", &flash).succeeds().contains("8.0 MiB"));
    let plain = place.directory("plain");
    onode!("resize", &plain, "1G").fails(17);
}

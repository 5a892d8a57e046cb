//! Streams from one volume to another, mounted or not, of every kind; and going back to a snapshot.

use crate::common::{Expect, Place, bytes, has_fuse, is_root};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// A directory of the host with files of all sorts.
fn sample(place: &Place) -> PathBuf {
    let root = place.directory("sample");
    let at = |name: &str| root.join(name);
    fs::create_dir_all(at("a/b")).expect("directories");
    fs::write(at("a/large"), bytes(1, 3_000_000)).expect("content");
    fs::write(at("a/b/small"), b"small").expect("content");
    fs::write(at("gone"), bytes(3, 50_000)).expect("content");
    let holes = fs::File::create(at("holes")).expect("a file");
    holes.set_len(5_000_000).expect("a size");
    std::os::unix::fs::FileExt::write_at(&holes, b"middle", 2_000_000).expect("content");
    fs::hard_link(at("a/large"), at("a/b/other name")).expect("a hard link");
    symlink("a/b", at("link")).expect("a symbolic link");
    root
}

/// Names, contents, links, times.
type Tree = Vec<(String, Vec<u8>, u64, i64)>;

/// What a directory of an image holds.
fn tree(place: &Place, image: &str, key: &[&str]) -> Tree {
    let out = place.directory("out").join("all");
    let _ = fs::remove_dir_all(&out);
    onode!("get", "-a", image, "/", &out).args(key).succeeds();
    let mut all = Vec::new();
    let mut next = vec![out.clone()];
    while let Some(path) = next.pop() {
        let found = fs::symlink_metadata(&path).expect("metadata");
        let name = path.strip_prefix(&out).expect("below").display().to_string();
        let content = if found.is_dir() {
            next.extend(fs::read_dir(&path).expect("a list").map(|entry| entry.expect("an entry").path()));
            Vec::new()
        } else if found.is_symlink() {
            fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).expect("content")
        };
        all.push((name, content, found.nlink(), found.mtime_nsec()));
    }
    all.sort();
    all
}

fn sent(json: &str) -> u64 {
    let told: Value = serde_json::from_str(json).expect("JSON");
    told["bytes"].as_u64().expect("a number")
}

/// Changes some files of an image with the files of [`sample`].
fn change(place: &Place, image: &str) {
    let mut large = bytes(1, 3_000_000);
    large[1_000_000..1_010_000].fill(0xaa);
    let large = place.file("changed", &large);
    onode!("put", image, &large, "/a/large").succeeds();
    onode!("rm", image, "/gone").succeeds();
    onode!("mv", image, "/a/b/small", "/small").succeeds();
    onode!("mkdir", image, "/new").succeeds();
    onode!("put", image, place.file("more", b"more"), "/new/more").succeeds();
}

#[test]
fn a_volume_goes_from_flash_to_two_disks_to_memory() {
    let place = Place::new("send-kinds");
    let flash = place.path("flash.img").display().to_string();
    let tier = format!("tier:{},{}", place.path("fast.img").display(), place.path("big.img").display());
    let memory = format!("scm:{}", place.path("memory").display());
    let stream = |name: &str| place.path(name);
    let root = sample(&place);
    onode!("mkfs", &flash, "--size", "64M", "--label", "source").succeeds();
    onode!("put", "-a", &flash, root.join("a"), root.join("gone"), root.join("holes"), root.join("link"), "/")
        .succeeds();
    onode!("snapshot", "create", &flash, "one").succeeds();
    let whole = sent(&onode!("--json", "send", &flash, "one", "-o", stream("one")).succeeds());
    assert!(whole < 4_000_000, "{whole} bytes: holes are not sent");
    let one = tree(&place, &flash, &[]);
    change(&place, &flash);
    onode!("snapshot", "create", &flash, "two").succeeds();
    let two = tree(&place, &flash, &[]);
    assert_ne!(one, two);
    let changed = sent(&onode!("--json", "send", &flash, "two", "--from", "one", "-o", stream("two")).succeeds());
    assert!(changed * 2 < whole * 3, "{changed} of {whole} bytes, of which one file was written anew");

    onode!("mkfs", format!("{tier},fast-size=16M,size=96M"), "--label", "replica").succeeds();
    assert!(onode!("receive", &tier, stream("one")).succeeds().contains("`one`"));
    assert_eq!(tree(&place, &tier, &[]), one);
    onode!("receive", &tier, stream("two")).succeeds();
    assert_eq!(tree(&place, &tier, &[]), two);
    assert_eq!(tree(&place, &format!("{tier}@one"), &[]), one);
    onode!("check", &tier).succeeds();
    assert_eq!(onode!("label", &tier).succeeds().trim(), "replica");
    let uuid = |image: &str| -> Value {
        let told: Value = serde_json::from_str(&onode!("--json", "info", image).succeeds()).expect("JSON");
        told["uuid"].clone()
    };
    assert_ne!(uuid(&flash), uuid(&tier));

    // A memory has no snapshots; what it was given is known until somebody changes it.
    onode!("send", &tier, "one", "-o", stream("again")).succeeds();
    onode!("mkfs", format!("{memory},size=64M")).succeeds();
    onode!("receive", &memory, stream("again")).succeeds();
    assert_eq!(tree(&place, &memory, &[]), one);
    onode!("send", &tier, "two", "--from", "one", "-o", stream("again")).succeeds();
    onode!("receive", &memory, stream("again")).succeeds();
    assert_eq!(tree(&place, &memory, &[]), two);
    onode!("check", &memory).succeeds();
    onode!("mkdir", &memory, "/mine").succeeds();
    assert!(onode!("receive", &memory, stream("again")).fails(20).contains("one"));
    // And back, as it is: the image is made with it.
    onode!("send", &memory, "-o", stream("back")).succeeds();
    let back = place.path("back.img").display().to_string();
    onode!("receive", &back, stream("back"), "--name", "from memory").succeeds();
    assert!(onode!("ls", &back).succeeds().contains("mine"));
    assert!(onode!("ls", format!("{back}@from memory")).succeeds().contains("mine"));
    onode!("check", &back).succeeds();
}

#[test]
fn what_a_copy_keeps_of_its_own_is_no_change() {
    let place = Place::new("send-own");
    let (flash, copy) = (place.path("flash.img").display().to_string(), place.path("copy.img").display().to_string());
    onode!("mkfs", &flash, "--size", "16M").succeeds();
    onode!("mkfs", &copy, "--size", "16M").succeeds();
    onode!("put", &flash, place.file("a", b"one"), "/a").succeeds();
    onode!("snapshot", "create", &flash, "one").succeeds();
    onode!("send", &flash, "one", "-o", place.path("one")).succeeds();
    onode!("receive", &copy, place.path("one")).succeeds();
    for (number, change) in
        [vec!["label", &copy, "x"], vec!["scrub", &copy], vec!["tune", &copy, "mount-options=noatime"]]
            .into_iter()
            .enumerate()
    {
        onode!().args(change).succeeds();
        let (before, after) =
            (if number == 0 { "one".into() } else { format!("s{number}") }, format!("s{}", number + 1));
        onode!("put", &flash, place.file("a", after.as_bytes()), "/a").succeeds();
        onode!("snapshot", "create", &flash, &after).succeeds();
        onode!("send", &flash, &after, "--from", &before, "-o", place.path(&after)).succeeds();
        onode!("receive", &copy, place.path(&after)).succeeds();
        assert_eq!(tree(&place, &copy, &[]), tree(&place, &flash, &[]));
    }
    assert!(onode!("label", &copy).succeeds().contains('x'));
}

#[test]
fn a_stream_goes_to_an_encrypted_volume_with_compression() {
    let place = Place::new("send-encrypted");
    let (flash, vault) = (place.path("flash.img").display().to_string(), place.path("vault.img").display().to_string());
    let key = place.file("key", &[7; 64]).display().to_string();
    let key = ["--key-file", key.as_str()];
    let text = "the quick brown fox ".repeat(50_000);
    onode!("put", &flash, place.file("text", text.as_bytes()), "/text").fails(20);
    onode!("mkfs", &flash, "--size", "32M").succeeds();
    onode!("put", &flash, place.file("text", text.as_bytes()), "/text").succeeds();
    onode!("snapshot", "create", &flash, "one").succeeds();
    onode!("send", &flash, "one", "-o", place.path("one")).succeeds();
    onode!("mkfs", &vault, "--size", "32M", "--encrypt").args(key).succeeds();
    onode!("receive", &vault, place.path("one"), "--compress", "fast").args(key).succeeds();
    assert_eq!(tree(&place, &vault, &key), tree(&place, &flash, &[]));
    onode!("check", &vault).args(key).succeeds();
    let raw = fs::read(&vault).expect("the image");
    assert!(!raw.windows(20).any(|part| part == b"the quick brown fox "), "nothing is readable");
    onode!("snapshot", "create", &vault, "two").args(key).succeeds();
    onode!("send", &vault, "two", "--from", "one", "-o", place.path("two")).args(key).succeeds();
    onode!("put", &flash, place.file("mine", b"mine"), "/mine").succeeds();
    assert!(onode!("receive", &flash, place.path("two")).fails(25).contains("has changed since"));
    onode!("receive", "--rollback", &flash, place.path("two")).succeeds();
    assert_eq!(tree(&place, &vault, &key), tree(&place, &flash, &[]));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let place = Place::new("send-refused");
    let (source, replica) =
        (place.path("source.img").display().to_string(), place.path("replica.img").display().to_string());
    let root = sample(&place);
    onode!("mkfs", &source, "--size", "64M").succeeds();
    onode!("put", "-a", &source, root.join("a"), root.join("gone"), "/").succeeds();
    onode!("snapshot", "create", &source, "one").succeeds();
    change(&place, &source);
    onode!("snapshot", "create", &source, "two").succeeds();
    let (one, two) = (place.path("one"), place.path("two"));
    onode!("send", &source, "one", "-o", &one).succeeds();
    onode!("send", &source, "two", "--from", "one", "-o", &two).succeeds();
    assert!(onode!("send", &source, "one", "--from", "two", "-o", &two).fails(2).contains("earlier"));
    assert!(onode!("send", &source, "three", "-o", place.path("three")).fails(20).contains("three"));
    assert!(!place.path("three").exists());
    // What is no stream makes no image.
    onode!("receive", &replica, place.file("text", b"no stream")).fails(11);
    assert!(!Path::new(&replica).exists());
    onode!("receive", &replica, &two).fails(20);
    // A stream that is cut short: nobody takes its part for a volume.
    let all = fs::read(&one).expect("the stream");
    let half = place.file("half", &all[..all.len() / 2]);
    assert!(onode!("receive", &replica, &half).fails(11).contains("before its end"));
    let error = onode!("ls", &replica).fails(11);
    assert!(error.contains("onode receive"), "{error}");
    onode!("mkdir", &replica, "/x").fails(11);
    onode!("receive", &replica, &two).fails(21);
    onode!("receive", &replica, &one).succeeds();
    assert!(onode!("receive", &replica, &one).fails(21).contains("already"));
    let before = tree(&place, &replica, &[]);
    // The same of what changed: the volume goes back when somebody uses it.
    let all = fs::read(&two).expect("the stream");
    let half = place.file("half", &all[..all.len() - 100]);
    onode!("receive", &replica, &half).fails(11);
    let error = onode!("ls", &replica).fails(11);
    assert!(error.contains("rollback"), "{error}");
    assert_eq!(tree(&place, &format!("{replica}@one"), &[]), before);
    onode!("mkdir", &replica, "/x").succeeds();
    onode!("rm", "-r", &replica, "/x").succeeds();
    onode!("check", &replica).succeeds();
    onode!("receive", &replica, &half).fails(25);
    onode!("snapshot", "rollback", &replica, "one").succeeds();
    assert_eq!(tree(&place, &replica, &[]), before);
    onode!("receive", &replica, &half).fails(11);
    onode!("receive", &replica, &two).succeeds();
    assert_eq!(tree(&place, &replica, &[]), tree(&place, &source, &[]));
    onode!("check", &replica).succeeds();
    // All files for a volume that has some.
    onode!("send", &source, "two", "-o", place.path("whole")).succeeds();
    onode!("receive", &replica, place.path("whole")).fails(21);
    onode!("snapshot", "delete", &replica, "two").succeeds();
    assert!(onode!("receive", &replica, place.path("whole")).fails(21).contains("not empty"));
}

#[test]
fn a_volume_goes_back_to_a_snapshot() {
    let place = Place::new("send-rollback");
    let image = place.path("disk.img").display().to_string();
    let root = sample(&place);
    onode!("mkfs", &image, "--size", "64M").succeeds();
    onode!("put", "-a", &image, root.join("a"), root.join("gone"), root.join("holes"), "/").succeeds();
    onode!("snapshot", "create", &image, "one").succeeds();
    let one = tree(&place, &image, &[]);
    change(&place, &image);
    onode!("snapshot", "create", &image, "two").succeeds();
    let two = tree(&place, &image, &[]);
    onode!("rm", "-r", &image, "/a").succeeds();
    for (name, expected) in [("one", &one), ("two", &two), ("one", &one)] {
        assert!(onode!("snapshot", "rollback", &image, name).succeeds().contains("changes"), "{name}");
        assert_eq!(&tree(&place, &image, &[]), expected, "{name}");
        onode!("check", &image).succeeds();
        assert!(onode!("snapshot", "rollback", &image, name).succeeds().contains("nothing had changed"));
    }
    assert_eq!(tree(&place, &format!("{image}@two"), &[]), two);
    assert!(onode!("info", &image).succeeds().contains("2, the last one is `two`"));
    assert!(onode!("snapshot", "rollback", &image, "three").fails(20).contains("three"));
}

#[test]
fn a_mounted_volume_sends_while_it_is_used() {
    if !has_fuse() || !is_root() {
        return;
    }
    let place = Place::new("send-mounted");
    let image = place.path("disk.img").display().to_string();
    let replica = place.path("replica.img").display().to_string();
    let directory = place.directory("mnt");
    onode!("mkfs", &image, "--size", "64M").succeeds();
    onode!("mount", &image, &directory).succeeds();
    fs::write(directory.join("large"), bytes(5, 8 << 20)).expect("content");
    assert!(onode!("send", &directory, "-o", place.path("none")).fails(2).contains("snapshot"));
    onode!("snapshot", "create", &directory, "one").succeeds();
    fs::write(directory.join("large"), bytes(6, 8 << 20)).expect("content");
    // The image and its mount are the same.
    onode!("send", &image, "one", "-o", place.path("one")).succeeds();
    onode!("receive", &replica, place.path("one")).succeeds();
    assert!(onode!("receive", &image, place.path("one")).fails(13).contains("mounted at"));
    assert!(onode!("snapshot", "rollback", &directory, "one").fails(13).contains("umount"));
    onode!("snapshot", "create", &directory, "two").succeeds();
    fs::remove_file(directory.join("large")).expect("removed");
    let (sender, receiver) = (place.path("two"), place.path("copy"));
    onode!("send", &directory, "two", "--from", "one", "-o", &sender).succeeds();
    onode!("receive", &replica, &sender).succeeds();
    onode!("get", &replica, "/large", &receiver).succeeds();
    assert!(fs::read(&receiver).expect("content") == bytes(6, 8 << 20));
    onode!("get", format!("{replica}@one"), "/large", place.path("old")).succeeds();
    assert!(fs::read(place.path("old")).expect("content") == bytes(5, 8 << 20));
    onode!("umount", &directory).succeeds();
    onode!("check", &replica).succeeds();
}

#[test]
fn a_replica_without_room_goes_back() {
    let place = Place::new("send-full");
    let source = place.path("source.img").display().to_string();
    let replica = place.path("replica.img").display().to_string();
    onode!("mkfs", &source, "--size", "64M").succeeds();
    onode!("put", &source, place.file("first", &bytes(1, 4_000_000)), "/first").succeeds();
    onode!("put", &source, place.file("second", &bytes(2, 4_000_000)), "/second").succeeds();
    onode!("snapshot", "create", &source, "one").succeeds();
    onode!("send", &source, "one", "-o", place.path("one")).succeeds();
    onode!("mkfs", &replica, "--size", "24M").succeeds();
    onode!("receive", &replica, place.path("one")).succeeds();
    let before = tree(&place, &replica, &[]);
    // Old files change before new ones come, of which there are too many.
    onode!("put", &source, place.file("first", &bytes(3, 4_000_000)), "/first").succeeds();
    for number in 0..8 {
        onode!("put", &source, place.file("more", &bytes(9 + number, 3_000_000)), format!("/more{number}")).succeeds();
    }
    onode!("snapshot", "create", &source, "two").succeeds();
    onode!("send", &source, "two", "--from", "one", "-o", place.path("two")).succeeds();
    onode!("receive", &replica, place.path("two")).fails(15);
    // The next change of it goes back first.
    onode!("mkdir", &replica, "/mine").succeeds();
    onode!("rm", "-r", &replica, "/mine").succeeds();
    let after: Vec<_> = tree(&place, &replica, &[]).into_iter().filter(|one| !one.0.is_empty()).collect();
    assert!(after == before.into_iter().filter(|one| !one.0.is_empty()).collect::<Vec<_>>());
    onode!("check", &replica).succeeds();
}

/// Two states of a volume, each with a snapshot, of 4 and 7 MB that have nothing in common.
fn two_states(place: &Place, size: &str) -> (String, Tree) {
    let image = place.path("disk.img").display().to_string();
    onode!("mkfs", &image, "--size", size).succeeds();
    onode!("put", &image, place.file("first", &bytes(1, 4_000_000)), "/first").succeeds();
    onode!("snapshot", "create", &image, "one").succeeds();
    let one = tree(place, &image, &[]);
    onode!("put", &image, place.file("first", &bytes(2, 4_000_000)), "/first").succeeds();
    onode!("put", &image, place.file("second", &bytes(3, 3_000_000)), "/second").succeeds();
    onode!("snapshot", "create", &image, "two").succeeds();
    (image, one)
}

#[test]
fn a_volume_goes_back_only_if_there_is_room_for_it() {
    let place = Place::new("roll-back-no-room");
    let (image, one) = two_states(&place, "16M");
    let before = tree(&place, &image, &[]);
    // All that there is now is kept, and what there was has to be there a second time.
    let refused = onode!("snapshot", "rollback", &image, "one").fails(15);
    assert!(
        refused.contains("nothing was changed: delete later snapshots") && refused.contains("3.8 MiB"),
        "{refused}"
    );
    assert!(tree(&place, &image, &[]) == before);
    onode!("check", &image).succeeds();
    onode!("snapshot", "delete", &image, "two").succeeds();
    // What nothing but the files of now shows makes room as it goes, also where there is none.
    let more = place.file("more", &bytes(4, 100_000));
    let mut number = 0;
    while onode!("put", &image, &more, format!("/more{number}")).output().expect("it runs").status.success() {
        number += 1;
    }
    onode!("snapshot", "rollback", &image, "one").succeeds();
    assert!(tree(&place, &image, &[]) == one);
    onode!("check", &image).succeeds();
}

#[test]
fn a_volume_without_room_to_go_back_takes_some_and_goes_on() {
    let place = Place::new("roll-back-full");
    let (image, one) = two_states(&place, "16M");
    // It is not looked which parts of a file have changed since the last snapshot: all of this one
    // is taken for what makes room, though none of it does.
    onode!("chmod", &image, "600", "/first").succeeds();
    let refused = onode!("snapshot", "rollback", &image, "one").fails(15);
    assert!(refused.contains("delete other snapshots"), "{refused}");
    onode!("ls", &image, "/").fails(11);
    assert!(onode!("snapshot", "list", &image).succeeds().contains("two"));
    onode!("snapshot", "delete", &image, "one").fails(13);
    let whole = fs::read(&image).expect("the image");
    onode!("snapshot", "delete", &image, "two").succeeds();
    onode!("snapshot", "rollback", &image, "one").succeeds();
    assert!(tree(&place, &image, &[]) == one);
    onode!("check", &image).succeeds();
    // The other way: the volume becomes larger, and the next who opens it ends what was begun.
    fs::write(&image, whole).expect("the image as it was");
    onode!("resize", &image, "+8M").succeeds();
    onode!("mkdir", &image, "/new").succeeds();
    onode!("rm", "-r", &image, "/new").succeeds();
    let after: Vec<_> = tree(&place, &image, &[]).into_iter().filter(|one| !one.0.is_empty()).collect();
    assert!(after == one.into_iter().filter(|one| !one.0.is_empty()).collect::<Vec<_>>());
    onode!("get", format!("{image}@two"), "/second", place.path("kept")).succeeds();
    assert!(fs::read(place.path("kept")).expect("content") == bytes(3, 3_000_000));
    onode!("check", &image).succeeds();
}

#[test]
fn a_repair_of_a_part_of_a_stream_drops_nothing() {
    let place = Place::new("send-repair");
    let (source, stream, image) = (place.image("source.img"), place.path("stream"), place.path("replica.img"));
    let replica = format!("flash:{}", image.display());
    let content = bytes(5, 12_000_000);
    onode!("put", &source, place.file("f", &content), "/f").succeeds();
    onode!("snapshot", "create", &source, "one").succeeds();
    onode!("send", &source, "one", "-o", &stream).succeeds();
    let all = fs::read(&stream).expect("the stream");
    onode!("receive", format!("{replica},size=64M"), place.file("half", &all[..all.len() / 2])).fails(11);
    let mut damaged = fs::read(&image).expect("an image");
    let at = damaged.windows(64).position(|window| window == &content[300_000..300_064]).expect("the content");
    damaged[at..at + 4].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(&image, &damaged).expect("damage");
    for flags in [&["--drop-damaged"][..], &["--drop-damaged", "--accept-loss"]] {
        let said = onode!("repair", &replica).args(flags).fails(4);
        assert!(said.contains("did not come to its end") && said.contains("onode receive"), "{said}");
        assert!(fs::read(&image).expect("an image") == damaged, "a repair that was refused changed the image");
    }
}

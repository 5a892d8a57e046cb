//! Clones: on a mount, mounted alone, and in an image, of every kind of volume that can have some.

use crate::common::{Expect, Place, bytes, has_fuse, wait_until};
use crate::snapshot::{available, on_encrypted_flash, on_exclusive_memory, on_flash, on_two_disks, tree};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

/// Exit code of what somebody needs.
const IN_USE: i32 = 13;

/// Name, snapshot and bytes of its own of each.
fn listed(text: &str) -> Vec<(String, String, u64)> {
    let told: Value = serde_json::from_str(text).expect("JSON");
    let all = told["clones"].as_array().expect("a list");
    let text = |one: &Value, key: &str| one[key].as_str().expect("a text").to_owned();
    all.iter().map(|one| (text(one, "name"), text(one, "base"), one["own_bytes"].as_u64().expect("bytes"))).collect()
}

#[test]
fn a_clone_of_an_image_is_changed_by_its_name() {
    let place = Place::new("clone-image");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "16M").succeeds();
    let (old, new) = (place.file("old", b"old"), place.file("new", &bytes(7, 300_000)));
    onode!("put", &image, &old, "/file").succeeds();
    assert_eq!(onode!("clone", "list", &image).succeeds(), "no clones\n");
    onode!("snapshot", "create", &image, "monday").succeeds();
    onode!("clone", "create", &image, "work", "--from", "monday").succeeds();
    onode!("clone", "create", &image, "try").succeeds();
    let at = |name: &str| format!("{}@{name}", image.display());
    onode!("put", at("work"), &new, "/file").succeeds();
    onode!("put", at("work"), &old, "/more").succeeds();
    onode!("rm", at("try"), "/file").succeeds();
    onode!("mkdir", at("try"), "/made").succeeds();
    assert_eq!(onode!("cat", &image, "/file").succeeds(), "old");
    assert_eq!(onode!("cat", at("monday"), "/file").succeeds(), "old");
    assert_eq!(onode!("ls", at("work")).succeeds(), "file\nmore\n");
    assert_eq!(onode!("ls", at("try")).succeeds(), "made\n");
    let out = place.path("out");
    onode!("get", at("work"), "/file", &out).succeeds();
    assert_eq!(fs::read(&out).expect("content"), bytes(7, 300_000));
    assert!(onode!("check", &image).succeeds().contains("the files of 2 clones"));
    let told = onode!("check", at("work")).succeeds();
    assert!(told.contains("@work: clean") && told.contains(" 2 files"), "{told}");
    let told = onode!("--json", "check", at("monday")).succeeds();
    assert!(told.contains("\"files\": 1") && told.contains("\"clean\": true"), "{told}");
    onode!("check", at("none")).fails(8);
    let all = listed(&onode!("--json", "clone", "list", &image).succeeds());
    let named: Vec<_> = all.iter().map(|(name, base, _)| (name.as_str(), base.as_str())).collect();
    assert_eq!(named, [("work", "monday"), ("try", "try.base")]);
    assert!((300_000..400_000).contains(&all[0].2) && all[1].2 < 50_000, "{all:?}");

    // What cannot be is refused, and changes nothing.
    assert!(onode!("rm", at("monday"), "/file").fails(2).contains("clone create"), "it says what to do");
    assert!(onode!("ls", at("none")).fails(20).contains("none"));
    assert!(onode!("clone", "create", &image, "work").fails(21).contains("of that name"));
    assert!(onode!("clone", "create", &image, "monday").fails(21).contains("of that name"));
    onode!("snapshot", "create", &image, "work").fails(21);
    onode!("clone", "create", &image, "x", "--from", "tuesday").fails(20);
    onode!("clone", "create", &image, "a/b").fails(2);
    onode!("clone", "create", &image, "x", "--from", "work").fails(20);
    onode!("clone", "delete", &image, "none").fails(20);
    let error = onode!("snapshot", "delete", &image, "monday").fails(IN_USE);
    assert!(error.contains("clone `work`") && error.contains("onode clone delete"), "{error}");
    assert_eq!(listed(&onode!("--json", "clone", "list", &image).succeeds()), all);

    onode!("clone", "delete", &image, "work", "try").succeeds();
    onode!("snapshot", "delete", &image, "monday").succeeds();
    assert_eq!(onode!("snapshot", "list", &image).succeeds(), "no snapshots\n");
    assert_eq!(onode!("cat", &image, "/file").succeeds(), "old");
    onode!("check", &image).succeeds();
}

#[test]
fn a_memory_has_no_clones_and_says_so() {
    let place = Place::new("clone-memory");
    let memory = format!("scm:{}", place.path("memory").display());
    onode!("mkfs", format!("{memory},size=16M")).succeeds();
    let error = onode!("clone", "create", &memory, "one").fails(2);
    assert!(error.contains("storage-class memory"), "{error}");
}

/// Makes clones of a mounted volume, changes them and it, and looks at all.
fn mounted(place: &Place, spec: &str, options: &[&str]) {
    let directory = place.directory("mnt");
    onode!("mount", spec, &directory).args(options).succeeds();
    let at = |name: &str| directory.join(name);
    fs::create_dir_all(at("a/b")).expect("directories");
    fs::write(at("a/changed"), bytes(1, 300_000)).expect("content");
    fs::write(at("a/b/gone"), bytes(2, 50_000)).expect("content");
    fs::write(at("cut"), bytes(3, 90_000)).expect("content");
    let before = tree(&directory);
    // Not synced: it is in the clones all the same.
    fs::create_dir(at(".clones/one")).expect("a clone");
    onode!("snapshot", "create", &directory, "monday").succeeds();
    onode!("clone", "create", &directory, "two", "--from", "monday").succeeds();
    let mut changed = bytes(1, 300_000);
    changed[70_000..70_100].fill(0xaa);
    let change = |root: &Path, word: &str| {
        let file = fs::OpenOptions::new().read(true).write(true).open(root.join("a/changed")).expect("open");
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xaa; 100], 70_000).expect("written");
        file.sync_all().expect("synced");
        fs::remove_file(root.join("a/b/gone")).expect("removed");
        fs::OpenOptions::new().write(true).open(root.join("cut")).and_then(|file| file.set_len(10_001)).expect("cut");
        fs::rename(root.join("a/b"), root.join("b")).expect("renamed");
        fs::write(root.join("b/new"), word).expect("content");
        fs::hard_link(root.join("b/new"), root.join("link")).expect("linked");
        fs::set_permissions(root.join("cut"), fs::Permissions::from_mode(0o600)).expect("changed");
        assert_eq!(fs::read(root.join("a/changed")).expect("content"), changed, "{word}");
        assert_eq!(fs::metadata(root.join("link")).expect("there").nlink(), 2, "{word}");
    };
    change(&at(".clones/one"), "the first");
    let one = tree(&at(".clones/one"));
    assert_eq!((tree(&directory), tree(&at(".clones/two"))), (before.clone(), before.clone()));
    change(&directory, "the volume");
    let now = tree(&directory);
    assert!(one != now && now != before);
    fs::remove_dir_all(at(".clones/two/a")).expect("removed");
    let two = tree(&at(".clones/two"));
    let check = |when: &str| {
        assert_eq!(tree(&at(".clones/one")), one, "{when}: one");
        assert_eq!(tree(&at(".clones/two")), two, "{when}: two");
        assert_eq!(tree(&at(".snapshots/monday")), before, "{when}: the snapshot");
        assert_eq!(tree(&directory), now, "{when}: now");
    };
    check("at once");
    assert!(!fs::read_dir(&directory).expect("a list").any(|one| one.expect("an entry").file_name() == ".clones"));
    let errno = |outcome: std::io::Result<()>| outcome.expect_err("refused").raw_os_error();
    assert_eq!(errno(fs::rename(at(".clones/one/cut"), at("cut"))), Some(18), "EXDEV");
    assert_eq!(errno(fs::hard_link(at(".clones/one/cut"), at("new"))), Some(18), "EXDEV");
    assert_eq!(errno(fs::remove_dir(at(".snapshots/monday"))), Some(16), "EBUSY: a clone stands on it");
    assert!(fs::write(at(".clones/file"), b"x").is_err() && fs::rename(at(".clones/one"), at(".clones/1")).is_err());
    onode!("umount", &directory).succeeds();
    onode!("mount", spec, &directory).args(options).succeeds();
    check("after a remount");
    let all = listed(&onode!("--json", "clone", "list", &directory).succeeds());
    assert_eq!(all.iter().map(|one| one.1.as_str()).collect::<Vec<_>>(), ["one.base", "monday"]);
    let own = all[1].2;
    fs::write(at(".clones/two/unsynced"), bytes(8, 200_000)).expect("content");
    let all = listed(&onode!("--json", "clone", "list", &directory).succeeds());
    assert!(all[1].2 >= own + 200_000, "what is not synced counts, too: {all:?}, {own} before");
    fs::remove_file(at(".clones/two/unsynced")).expect("removed");
    onode!("umount", &directory).succeeds();

    // Alone, as a volume like others.
    onode!("mount", spec, &directory, "-o", "clone=one").args(options).succeeds();
    assert_eq!(tree(&directory), one);
    fs::write(at("alone"), bytes(9, 100_000)).expect("content");
    assert!(fs::create_dir(at(".clones/three")).is_err());
    onode!("umount", &directory).succeeds();
    onode!("mount", spec, &directory, "-o", "snapshot=monday").args(options).succeeds();
    assert_eq!(tree(&directory), before);
    assert_eq!(errno(fs::write(at("alone"), b"x")), Some(30), "EROFS");
    onode!("umount", &directory).succeeds();
    assert!(onode!("mount", spec, &directory, "-o", "clone=none").args(options).fails(20).contains("none"));

    onode!("mount", spec, &directory).args(options).succeeds();
    assert_eq!(fs::read(at(".clones/one/alone")).expect("content"), bytes(9, 100_000));
    // A file that is open there is gone with its clone.
    let open = fs::File::open(at(".clones/one/alone")).expect("open");
    onode!("clone", "delete", &directory, "one").succeeds();
    drop(open);
    assert!(fs::metadata(at(".clones/one")).is_err());
    fs::remove_dir(at(".clones/two")).expect("deleted");
    onode!("snapshot", "delete", &directory, "monday").succeeds();
    assert_eq!(fs::read_dir(at(".snapshots")).expect("a list").count(), 0);
    assert_eq!(tree(&directory), now);
    onode!("umount", &directory).succeeds();
}

#[test]
fn clones_of_a_mounted_flash() {
    on_flash("clone-flash", mounted);
}

#[test]
fn clones_of_two_mounted_disks_with_compression() {
    on_two_disks("clone-tier", "compress=fast,writeback", mounted);
}

#[test]
fn clones_of_a_mounted_memory() {
    on_exclusive_memory("clone-exclusive", mounted);
}

#[test]
fn clones_of_a_mounted_encrypted_volume_need_no_other_key() {
    on_encrypted_flash("clone-encrypted", mounted);
}

#[test]
fn what_a_deleted_clone_had_is_given_back() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("clone-space");
    let (image, directory) = (place.path("disk.img"), place.directory("mnt"));
    onode!("mkfs", &image, "--size", "32M").succeeds();
    onode!("mount", &image, &directory).succeeds();
    onode!("clone", "create", &directory, "one").succeeds();
    fs::write(directory.join(".clones/one/large"), bytes(5, 12 << 20)).expect("content");
    wait_until("the space is used", || available(&directory) < 20 << 20);
    onode!("clone", "delete", &directory, "one").succeeds();
    wait_until("the space is there", || available(&directory) > 24 << 20);
    onode!("umount", &directory).succeeds();
}

/// The attribute that tells what a clone was made of is as long as the name of a snapshot may be.
#[test]
fn a_clone_of_a_snapshot_with_a_long_name_is_listed() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("clone-long");
    let (image, directory, long) = (place.path("disk.img"), place.directory("mnt"), "x".repeat(255));
    onode!("mkfs", &image, "--size", "16M").succeeds();
    onode!("mount", &image, &directory).succeeds();
    onode!("snapshot", "create", &directory, &long).succeeds();
    onode!("clone", "create", &directory, "one", "--from", &long).succeeds();
    let all = listed(&onode!("--json", "clone", "list", &directory).succeeds());
    assert_eq!(all.iter().map(|one| (&one.0[..], &one.1[..])).collect::<Vec<_>>(), [("one", &long[..])]);
    onode!("umount", &directory).succeeds();
}

/// The server is killed: what was synced in a clone is there, and nothing of it anywhere else.
#[test]
fn what_was_synced_in_a_clone_survives_its_server() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("clone-killed");
    let (image, directory) = (place.path("disk.img"), place.directory("mnt"));
    onode!("mkfs", &image, "--size", "32M").succeeds();
    let server = crate::common::Running::up(&directory, &image);
    fs::write(directory.join("file"), bytes(1, 100_000)).expect("content");
    fs::create_dir(directory.join(".clones/one")).expect("a clone");
    let path = directory.join(".clones/one/file");
    fs::write(&path, bytes(2, 120_000)).expect("content");
    fs::File::open(&path).and_then(|file| file.sync_all()).expect("synced");
    server.signal("KILL");
    drop(server.end());
    wait_until("the mount is gone", || Command::new("umount").arg("-l").arg(&directory).status().is_ok());
    let at = format!("{}@one", image.display());
    let out = place.path("out");
    onode!("get", &at, "/file", &out).succeeds();
    assert_eq!(fs::read(&out).expect("content"), bytes(2, 120_000));
    fs::remove_file(&out).expect("removed");
    onode!("get", &image, "/file", &out).succeeds();
    assert_eq!(fs::read(&out).expect("content"), bytes(1, 100_000));
    onode!("check", &image).succeeds();
}

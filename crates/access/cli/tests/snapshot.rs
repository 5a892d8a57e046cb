//! Snapshots: on a mount and in an image, of every kind of volume that can have some.

use crate::common::{Expect, Place, bytes, has_fuse, wait_until};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

fn names(text: &str) -> Vec<String> {
    let told: Value = serde_json::from_str(text).expect("JSON");
    let all = told["snapshots"].as_array().expect("a list");
    all.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

/// What a file or a directory below holds, by name.
pub fn tree(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut next = vec![root.to_owned()];
    while let Some(path) = next.pop() {
        let found = fs::symlink_metadata(&path).expect("metadata");
        let name = path.strip_prefix(root).expect("below").display().to_string();
        if found.is_dir() {
            next.extend(fs::read_dir(&path).expect("a list").map(|entry| entry.expect("an entry").path()));
            all.push((name, Vec::new()));
        } else if found.is_symlink() {
            all.push((name, fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()));
        } else {
            all.push((name, fs::read(&path).expect("content")));
        }
    }
    all.sort();
    all
}

#[test]
fn a_snapshot_of_an_image_is_read_by_its_name() {
    let place = Place::new("snapshot-image");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "16M").succeeds();
    let (old, new) = (place.file("old", b"old"), place.file("new", &bytes(7, 300_000)));
    onode!("put", &image, &old, "/file").succeeds();
    assert_eq!(onode!("snapshot", "list", &image).succeeds(), "no snapshots\n");
    onode!("snapshot", "create", &image, "first").succeeds();
    onode!("put", &image, &new, "/file").succeeds();
    onode!("snapshot", "create", &image, "second").succeeds();
    onode!("rm", &image, "/file").succeeds();
    assert_eq!(names(&onode!("--json", "snapshot", "list", &image).succeeds()), ["first", "second"]);
    let at = |name: &str| format!("{}@{name}", image.display());
    assert_eq!(onode!("cat", at("first"), "/file").succeeds(), "old");
    let out = place.path("out");
    onode!("get", at("second"), "/file", &out).succeeds();
    assert_eq!(fs::read(&out).expect("content"), bytes(7, 300_000));
    assert_eq!(onode!("ls", &image).succeeds(), "");
    onode!("check", &image).succeeds();
    // What cannot be is refused, and changes nothing.
    assert!(onode!("rm", at("first"), "/file").fails(2).contains("does not change"));
    assert!(onode!("ls", at("third")).fails(20).contains("third"));
    assert!(onode!("snapshot", "create", &image, "first").fails(21).contains("already"));
    onode!("snapshot", "create", &image, "a/b").fails(2);
    onode!("snapshot", "create", &image, &"x".repeat(256)).fails(2);
    onode!("snapshot", "delete", &image, "third").fails(20);
    assert_eq!(names(&onode!("--json", "snapshot", "list", &image).succeeds()), ["first", "second"]);
    // The one before needs of the one that goes what it does not have itself.
    onode!("snapshot", "delete", &image, "second").succeeds();
    assert_eq!(onode!("cat", at("first"), "/file").succeeds(), "old");
    onode!("snapshot", "delete", &image, "first").succeeds();
    assert_eq!(onode!("snapshot", "list", &image).succeeds(), "no snapshots\n");
    onode!("check", &image).succeeds();
}

#[test]
fn what_snapshots_keep_is_not_counted_as_files() {
    let place = Place::new("snapshot-count");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "32M").succeeds();
    let source = place.directory("source");
    let fill = |seed: u32| {
        (0..40).for_each(|file| fs::write(source.join(file.to_string()), bytes(seed + file, 9_000)).expect("content"))
    };
    let files = |target: &Path| {
        let told: Value = serde_json::from_str(&onode!("--json", "df", target).succeeds()).expect("JSON");
        told[0]["files"].as_u64().expect("a number")
    };
    fill(1);
    onode!("put", "-r", &image, &source, "/").succeeds();
    let before = files(&image);
    for (name, seed) in [("one", 100), ("two", 200)] {
        onode!("snapshot", "create", &image, name).succeeds();
        fill(seed);
        onode!("put", "-r", &image, &source, "/").succeeds();
        assert_eq!(files(&image), before, "{name}");
    }
    onode!("rm", &image, "/source/7").succeeds();
    assert_eq!(files(&image), before - 1);
    onode!("snapshot", "delete", &image, "one").succeeds();
    assert_eq!(files(&image), before - 1);
    if !has_fuse() {
        return;
    }
    let directory = place.directory("mnt");
    onode!("mount", &image, &directory).succeeds();
    assert_eq!(files(&directory), before - 1);
    fs::create_dir(directory.join(".snapshots/three")).expect("a snapshot");
    fs::remove_dir_all(directory.join("source")).expect("removed");
    fs::write(directory.join("new"), b"new").expect("content");
    assert_eq!(files(&directory), 2);
    onode!("snapshot", "delete", &directory, "two", "three").succeeds();
    assert_eq!(files(&directory), 2);
    onode!("umount", &directory).succeeds();
    assert_eq!(files(&image), 2);
}

#[test]
fn a_memory_has_no_snapshots_and_says_so() {
    let place = Place::new("snapshot-memory");
    let memory = format!("scm:{}", place.path("memory").display());
    onode!("mkfs", format!("{memory},size=16M")).succeeds();
    let error = onode!("snapshot", "create", &memory, "one").fails(2);
    assert!(error.contains("storage-class memory"), "{error}");
}

/// Takes a snapshot of a mounted volume, changes everything, and looks at both.
fn mounted(place: &Place, spec: &str, options: &[&str]) {
    let directory = place.directory("mnt");
    onode!("mount", spec, &directory).args(options).succeeds();
    let at = |name: &str| directory.join(name);
    fs::create_dir_all(at("a/b")).expect("directories");
    fs::write(at("a/kept"), bytes(1, 100_000)).expect("content");
    fs::write(at("a/b/changed"), bytes(2, 200_000)).expect("content");
    fs::write(at("gone"), bytes(3, 50_000)).expect("content");
    fs::write(at("cut"), bytes(4, 90_000)).expect("content");
    symlink("a/kept", at("link")).expect("a link");
    let before = tree(&directory);
    // Not synced: it is in the snapshot all the same.
    fs::create_dir(at(".snapshots/one")).expect("a snapshot");
    let mut changed = bytes(2, 200_000);
    changed[70_000..70_100].fill(0xaa);
    fs::write(at("a/b/changed"), changed).expect("content");
    fs::remove_file(at("gone")).expect("removed");
    fs::OpenOptions::new().write(true).open(at("cut")).and_then(|file| file.set_len(10_001)).expect("cut");
    fs::rename(at("a/b"), at("b")).expect("renamed");
    fs::remove_file(at("link")).expect("removed");
    fs::write(at("new"), b"new").expect("content");
    let between = tree(&directory);
    onode!("snapshot", "create", &directory, "two").succeeds();
    fs::remove_dir_all(at("a")).expect("removed");
    let after = tree(&directory);
    let check = |when: &str| {
        assert_eq!(tree(&at(".snapshots/one")), before, "{when}: one");
        assert_eq!(tree(&at(".snapshots/two")), between, "{when}: two");
        assert_eq!(tree(&directory), after, "{when}: now");
    };
    check("at once");
    assert!(!fs::read_dir(&directory).expect("a list").any(|one| one.expect("an entry").file_name() == ".snapshots"));
    let refused = |outcome: std::io::Result<()>| outcome.expect_err("refused").raw_os_error();
    assert_eq!(refused(fs::write(at(".snapshots/one/gone"), b"x")), Some(libc_erofs()));
    assert_eq!(refused(fs::remove_file(at(".snapshots/one/gone"))), Some(libc_erofs()));
    assert!(fs::rename(at(".snapshots/one/gone"), at("back")).is_err());
    assert!(fs::write(at(".snapshots/file"), b"x").is_err());
    fs::copy(at(".snapshots/one/gone"), at("back")).expect("brought back");
    assert_eq!(fs::read(at("back")).expect("content"), bytes(3, 50_000));
    fs::remove_file(at("back")).expect("removed");
    onode!("umount", &directory).succeeds();
    onode!("mount", spec, &directory).args(options).succeeds();
    check("after a remount");
    // A file that is open there is gone with its snapshot.
    let open = fs::File::open(at(".snapshots/two/new")).expect("open");
    assert_eq!(names(&onode!("--json", "snapshot", "list", &directory).succeeds()), ["one", "two"]);
    onode!("snapshot", "delete", &directory, "two").succeeds();
    drop(open);
    assert!(fs::metadata(at(".snapshots/two")).is_err());
    assert_eq!(tree(&at(".snapshots/one")), before, "with the second one gone");
    fs::remove_dir(at(".snapshots/one")).expect("deleted");
    assert_eq!(tree(&directory), after);
    onode!("umount", &directory).succeeds();
}

/// `EROFS`.
const fn libc_erofs() -> i32 {
    30
}

/// A volume for a test: its spec, and options for a mount of it.
type OfMounted = fn(&Place, &str, &[&str]);

/// Has a test use flash, and checks it then.
pub fn on_flash(name: &str, test: OfMounted) {
    if !has_fuse() {
        return;
    }
    let place = Place::new(name);
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "32M").succeeds();
    test(&place, &image.display().to_string(), &[]);
    onode!("check", &image).succeeds();
}

/// The same with two disks, mounted with options.
pub fn on_two_disks(name: &str, options: &str, test: OfMounted) {
    if !has_fuse() {
        return;
    }
    let place = Place::new(name);
    let spec = format!("tier:{},{}", place.path("fast.img").display(), place.path("big.img").display());
    onode!("mkfs", format!("{spec},fast-size=16M,size=64M")).succeeds();
    test(&place, &spec, &["-o", options]);
    onode!("check", &spec).succeeds();
}

/// The same with a memory that one process at a time uses.
pub fn on_exclusive_memory(name: &str, test: OfMounted) {
    if !has_fuse() {
        return;
    }
    let place = Place::new(name);
    let spec = format!("scm:{}", place.path("memory").display());
    onode!("mkfs", format!("{spec},size=64M,exclusive=on")).succeeds();
    test(&place, &spec, &[]);
    onode!("check", &spec).succeeds();
}

/// The same with flash that is encrypted.
pub fn on_encrypted_flash(name: &str, test: OfMounted) {
    if !has_fuse() {
        return;
    }
    let place = Place::new(name);
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 64]));
    onode!("mkfs", &image, "--size", "32M", "--encrypt", "--key-file", &key).succeeds();
    let key_file = key.display().to_string();
    test(&place, &image.display().to_string(), &["--key-file", &key_file]);
    onode!("check", &image, "--key-file", &key).succeeds();
}

/// Bytes that are left on a mount.
pub fn available(directory: &Path) -> u64 {
    let told: Value = serde_json::from_str(&onode!("--json", "df", directory).succeeds()).expect("JSON");
    told[0]["available_bytes"].as_u64().expect("a number")
}

#[test]
fn snapshots_of_a_mounted_flash() {
    on_flash("snapshot-flash", mounted);
}

#[test]
fn snapshots_of_two_mounted_disks_with_compression() {
    on_two_disks("snapshot-tier", "compress=fast", mounted);
}

#[test]
fn snapshots_of_a_mounted_memory() {
    on_exclusive_memory("snapshot-exclusive", mounted);
}

#[test]
fn snapshots_of_a_mounted_encrypted_volume_need_no_other_key() {
    on_encrypted_flash("snapshot-encrypted", mounted);
}

#[test]
fn what_a_deleted_snapshot_kept_is_given_back() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("snapshot-space");
    let (image, directory) = (place.path("disk.img"), place.directory("mnt"));
    onode!("mkfs", &image, "--size", "32M").succeeds();
    onode!("mount", &image, &directory).succeeds();
    fs::write(directory.join("large"), bytes(5, 12 << 20)).expect("content");
    onode!("snapshot", "create", &directory, "one").succeeds();
    fs::remove_file(directory.join("large")).expect("removed");
    let left = available(&directory);
    assert!(left < 20 << 20, "{left}");
    onode!("snapshot", "delete", &directory, "one").succeeds();
    wait_until("the space is there", || available(&directory) > 24 << 20);
    onode!("umount", &directory).succeeds();
}

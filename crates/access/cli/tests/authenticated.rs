//! Authenticated volumes as people use them: made, noted, and refused where something older stands
//! in the place of what was stored last.

use crate::common::{Expect, Place, has_fuse, is_clear, unmount};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Damage that a check has found.
const DAMAGED: i32 = 4;
const REPAIRED: i32 = 1;
const REFUSED: i32 = 11;
const BLOCK: usize = 4096;

struct Made {
    image: PathBuf,
    key: PathBuf,
    spec: String,
}

/// An authenticated volume of a kind with some settings.
fn made(place: &Place, kind: &str, settings: &str) -> Made {
    let (image, key) = (place.path(&format!("{kind}.img")), place.file("key", &[7; 32]));
    let spec = format!("{kind}:{}", image.display());
    onode!("mkfs", "--encrypt", "--authenticate", "--key-file", &key, format!("{spec},{settings}")).succeeds();
    Made { image, key, spec }
}

impl Made {
    fn put(&self, place: &Place, name: &str, text: &str) {
        let file = place.file("plain", text.as_bytes());
        onode!("--key-file", &self.key, "put", &self.spec, file, name).succeeds();
    }

    fn anchor(&self) -> String {
        onode!("--key-file", &self.key, "key", "anchor", &self.spec).succeeds().trim().to_owned()
    }
}

#[test]
fn a_mounted_volume_tells_its_anchor_too() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("anchored-mount");
    let made = made(&place, "flash", "size=16M");
    let mount = place.directory("mnt");
    onode!("--key-file", &made.key, "mount", &made.spec, &mount).succeeds();
    fs::write(mount.join("a"), "one").expect("write");
    let noted = onode!("key", "anchor", &mount).succeeds().trim().to_owned();
    // What was noted is on the medium: a copy of now is no older one.
    let copy = place.path("copy.img");
    fs::copy(&made.image, &copy).expect("a copy");
    assert_eq!(onode!("key", "anchor", &made.spec).succeeds().trim(), noted);
    fs::write(mount.join("a"), "two").expect("write");
    let later = onode!("key", "anchor", &mount).succeeds().trim().to_owned();
    assert_ne!(later, noted);
    unmount(&mount);
    let cat = |image: &Path, anchor: &str| {
        let mut command = onode!("--key-file", &made.key, "--expect-anchor", anchor);
        command.args([Path::new("cat"), image, Path::new("/a")]);
        command
    };
    assert_eq!(cat(&copy, &noted).succeeds(), "one");
    cat(&copy, &later).fails(REFUSED);
    assert_eq!(cat(&made.image, &later).succeeds(), "two");
    let plain = place.image("plain.img");
    onode!("mount", &plain, &mount).succeeds();
    is_clear(&onode!("key", "anchor", &mount).fails(2), "authenticated");
    unmount(&mount);
}

#[test]
fn an_older_copy_is_refused_where_an_anchor_is_expected() {
    let place = Place::new("anchored");
    let made = made(&place, "flash", "size=16M");
    made.put(&place, "/a", "one");
    let first = made.anchor();
    let older = place.path("older.img");
    fs::copy(&made.image, &older).expect("a copy");
    made.put(&place, "/a", "two");
    let second = made.anchor();
    let expecting = |anchor: &str, image: &Path| {
        let mut command = onode!("--key-file", &made.key, "--expect-anchor", anchor);
        command.args([Path::new("cat"), image, Path::new("/a")]);
        command
    };
    for anchor in [&first, &second] {
        assert_eq!(expecting(anchor, &made.image).succeeds(), "two");
    }
    assert_eq!(expecting(&first, &older).succeeds(), "one");
    is_clear(&expecting(&second, &older).fails(REFUSED), "older");
    let wrong = expecting("7", &older).fails(2);
    assert!(wrong.contains("an anchor is a number"), "{wrong}");
    let told: Value =
        serde_json::from_str(&onode!("--key-file", &made.key, "--json", "key", "anchor", &made.image).succeeds())
            .expect("JSON");
    assert_eq!(told["anchor"].as_str(), Some(&*second));
    assert!(onode!("key", "list", &made.image).succeeds().contains("authenticated"));
    if has_fuse() {
        let mount = place.path("mnt");
        fs::create_dir(&mount).expect("a directory");
        let options = format!("key-file={},expect-anchor={second}", made.key.display());
        is_clear(&onode!("mount", "-o", &options, &older, &mount).fails(REFUSED), "older");
        onode!("mount", "-o", &options, &made.image, &mount).succeeds();
        assert_eq!(fs::read(mount.join("a")).expect("the file"), b"two");
        fs::write(mount.join("b"), b"three").expect("a write");
        onode!("umount", &mount).succeeds();
        assert_eq!(expecting(&second, &made.image).succeeds(), "two");
    }
}

#[test]
fn a_check_tells_of_what_somebody_put_back() {
    let place = Place::new("put-back");
    let made = made(&place, "scm", "size=4M,exclusive=on");
    let write_all = |word: &str| {
        for file in 0..6 {
            made.put(&place, &format!("/{file}"), &format!("{word} {file} ").repeat(2000));
        }
        fs::read(&made.image).expect("the image")
    };
    let (older, latest) = (write_all("older"), write_all("latest"));
    let mut report = onode!("--key-file", &made.key, "check", &made.spec).succeeds();
    assert!(report.contains("clean") && !report.contains("not verified"), "{report}");
    let (mut sums, mut content) = (0, 0);
    for start in (0..latest.len()).step_by(BLOCK).filter(|at| older[*at..*at + BLOCK] != latest[*at..*at + BLOCK]) {
        let mut spliced = latest.clone();
        spliced[start..start + BLOCK].copy_from_slice(&older[start..start + BLOCK]);
        fs::write(&made.image, spliced).expect("the image");
        let read = (0..6).map(|file| onode!("--key-file", &made.key, "cat", &made.spec, format!("/{file}")));
        let read: Vec<_> = read.map(|mut command| command.output().expect("a command")).collect();
        // Nothing older is ever read.
        for (file, read) in read.iter().enumerate() {
            let is_latest = read.stdout == format!("latest {file} ").repeat(2000).as_bytes();
            assert!(is_latest || !read.status.success(), "/{file} with the older block at {start}");
        }
        let check = onode!("--key-file", &made.key, "check", &made.spec).output().expect("a command");
        report = String::from_utf8_lossy(&check.stdout).into_owned();
        // Some of what is older is needed by nobody any more.
        let is_read = read.iter().all(|read| read.status.success());
        assert!(is_read || check.status.code() == Some(DAMAGED), "nothing was told of {start}: {report}");
        sums += usize::from(report.contains("error: authentication"));
        let has_content = report.contains("error: content") && !report.contains("error: medium");
        if has_content && content == 0 {
            let repaired = onode!("--key-file", &made.key, "repair", "--drop-damaged", &made.spec).output();
            let repaired = repaired.expect("a command");
            let text = String::from_utf8_lossy(&repaired.stdout).into_owned();
            assert!(repaired.status.code() == Some(REPAIRED) && text.contains("restore from a backup: /"), "{text}");
            onode!("--key-file", &made.key, "check", &made.spec).succeeds();
        }
        content += usize::from(has_content);
    }
    assert!(sums > 0 && content > 0, "{sums} and {content} times");
    // What there is can be taken; then nothing is told any more.
    let mut spliced = latest.clone();
    let half = latest.len() / 2 / BLOCK * BLOCK;
    spliced[half..].copy_from_slice(&older[half..]);
    fs::write(&made.image, spliced).expect("the image");
    let ls = onode!("--key-file", &made.key, "ls", &made.spec).output().expect("a command");
    assert!(!ls.status.success(), "half of it is older");
}

#[test]
fn what_can_not_be_authenticated_is_refused() {
    let place = Place::new("not-authenticated");
    let (image, key) = (place.path("a.img"), place.file("key", &[7; 32]));
    let shared = format!("scm:{},size=4M", image.display());
    let make = onode!("mkfs", "--encrypt", "--authenticate", "--key-file", &key, shared).fails(2);
    is_clear(&make, "exclusive=on");
    assert!(!image.exists());
    onode!("mkfs", "--authenticate", &image).fails(2);
    let made = made(&place, "scm", "size=4M,exclusive=on");
    is_clear(&onode!("--key-file", &made.key, "tune", &made.spec, "exclusive=off").fails(2), "authenticated");
    onode!("mkfs", "--encrypt", "--key-file", &key, "--size", "16M", &image).succeeds();
    is_clear(&onode!("--key-file", &key, "key", "anchor", &image).fails(2), "not authenticated");
    let anchor = format!("1-{}", "0".repeat(32));
    is_clear(&onode!("--key-file", &key, "--expect-anchor", &anchor, "ls", &image).fails(2), "not authenticated");
}

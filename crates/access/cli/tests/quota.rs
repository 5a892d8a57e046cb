//! `onode quota`: limits in images and on mounts, and what programs meet there.

use crate::common::{Expect, Place, has_fuse, is_clear, unmount};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// `EDQUOT` and `EXDEV` of Linux.
const OVER: i32 = 122;
const ACROSS: i32 = 18;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The limits of an image or a mount.
fn limits(target: &Path) -> Vec<Value> {
    let report = json(&onode!("--json", "quota", "report", target).succeeds());
    report["limits"].as_array().expect("a list").clone()
}

fn used(target: &Path, name: &str) -> (u64, u64) {
    let all = limits(target);
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} in {all:?}"));
    (one["used_bytes"].as_u64().expect("number"), one["used_files"].as_u64().expect("number"))
}

fn number(result: std::io::Result<impl Sized>) -> i32 {
    result.map(drop).expect_err("refused").raw_os_error().expect("a number")
}

#[test]
fn limits_are_set_shown_and_removed_in_an_image() {
    let place = Place::new("quota");
    let image = place.image("disk.img");
    let small = place.file("small", &[1; 1000]);
    onode!("mkdir", &image, "/mail").succeeds();
    onode!("put", &image, &small, "/mail/first").succeeds();
    assert_eq!(onode!("quota", "report", &image).succeeds(), "no limits\n");
    let told = onode!("quota", "set", &image, "--dir", "mail", "--bytes", "2K", "--files", "10").succeeds();
    assert!(told.contains("1000 B") && told.contains("2.0 KiB") && told.contains("/mail"), "{told}");
    onode!("put", &image, &small, "/mail/second").succeeds();
    let error = onode!("put", &image, &small, "/mail/third").fails(26);
    is_clear(&error, "/mail/third");
    assert!(
        error.contains("the byte limit of the directory tree is 2048") && error.contains("onode quota report"),
        "{error}"
    );
    let error = onode!("mv", &image, "/mail/first", "/first").fails(1);
    assert!(error.contains("limit"), "{error}");
    assert_eq!(used(&image, "/mail"), (2000, 3));
    // What is not said stays.
    onode!("quota", "set", &image, "--dir", "/mail", "--bytes", "none").succeeds();
    let all = limits(&image);
    assert_eq!((&all[0]["limit_bytes"], &all[0]["limit_files"]), (&Value::Null, &10.into()));
    onode!("quota", "set", &image, "--user", "1234", "--bytes", "1M").succeeds();
    onode!("quota", "set", &image, "--group", "root").succeeds();
    let kinds: Vec<Value> = limits(&image).iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["directory", "user", "group"]);
    assert_eq!(used(&image, "root").1, 4);
    onode!("check", &image).succeeds();
    onode!("quota", "remove", &image, "--dir", "mail").succeeds();
    onode!("quota", "remove", &image, "--user", "1234").succeeds();
    onode!("put", &image, &small, "/mail/third").succeeds();
    assert_eq!(limits(&image).len(), 1);
}

#[test]
fn what_cannot_have_a_limit_is_told() {
    let place = Place::new("quota-wrong");
    let image = place.image("disk.img");
    onode!("mkdir", &image, "-p", "/a/b").succeeds();
    onode!("put", &image, place.file("f", b"content"), "/f").succeeds();
    onode!("quota", "set", &image, "--dir", "a", "--files", "10").succeeds();
    for (whom, code, why) in [
        (["--dir", "a/b"], 21, "no limit is within another"),
        (["--dir", "/"], 21, "no limit is within another"),
        (["--dir", "f"], 2, "no directory"),
        (["--dir", "none"], 20, "no such file"),
        (["--user", "root"], 2, "super-user"),
        (["--user", "nobody of that name"], 2, "knows none"),
    ] {
        let error = onode!("quota", "set", &image, whom[0], whom[1], "--files", "10").fails(code);
        assert!(error.contains(why), "{whom:?}: {error}");
    }
    is_clear(&onode!("quota", "remove", &image, "--user", "7").fails(20), "disk.img");
    onode!("quota", "set", &image, "--bytes", "1G").fails(2);
    onode!("quota", "set", &image, "--dir", "a", "--user", "7").fails(2);
    onode!("quota", "set", &image, "--dir", "a", "--bytes", "much").fails(2);
    let memory = place.path("memory");
    onode!("mkfs", format!("scm:{}", memory.display()), "--size", "64M").succeeds();
    let error = onode!("quota", "set", format!("scm:{}", memory.display()), "--user", "7", "--files", "1").fails(2);
    assert!(error.contains("storage-class memory"), "{error}");
}

#[test]
fn a_stream_brings_limits_where_there_can_be_some() {
    let place = Place::new("quota-stream");
    let (image, copy, stream) = (place.image("disk.img"), place.image("copy.img"), place.path("stream"));
    onode!("mkdir", &image, "/mail").succeeds();
    onode!("put", &image, place.file("small", &[1; 1000]), "/mail/first").succeeds();
    onode!("quota", "set", &image, "--dir", "mail", "--bytes", "2K").succeeds();
    onode!("quota", "set", &image, "--user", "1234", "--bytes", "2K").succeeds();
    onode!("snapshot", "create", &image, "monday").succeeds();
    onode!("quota", "remove", &image, "--user", "1234").succeeds();
    onode!("send", &image, "monday").stdout(File::create(&stream).expect("a file")).succeeds();
    let receive = |target: &std::ffi::OsStr| {
        onode!("receive", target).stdin(File::open(&stream).expect("a stream")).succeeds();
    };
    receive(copy.as_os_str());
    assert_eq!((limits(&copy).len(), used(&copy, "/mail")), (2, (1000, 2)));
    onode!("check", &copy).succeeds();
    onode!("rm", &copy, "/mail/first").succeeds();
    assert_eq!(used(&copy, "/mail"), (0, 1));
    onode!("snapshot", "rollback", &copy, "monday").succeeds();
    assert_eq!(used(&copy, "/mail"), (1000, 2));
    let memory = format!("scm:{}", place.path("memory").display());
    onode!("mkfs", &memory, "--size", "64M").succeeds();
    receive(memory.as_ref());
    onode!("mkdir", &memory, "/more").succeeds();
    assert_eq!(limits(Path::new(&memory)), Vec::<Value>::new());
    onode!("check", &memory).succeeds();
}

#[test]
fn programs_on_a_mount_meet_the_limit() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("quota-mount");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let mail = directory.join("mail");
    fs::create_dir(&mail).expect("directory");
    for name in 0..300 {
        fs::write(mail.join(format!("f{name}")), [1; 100]).expect("file");
    }
    onode!("quota", "set", &directory, "--dir", "mail", "--bytes", "1M", "--files", "310").succeeds();
    assert_eq!(used(&directory, "/mail"), (30_000, 301));
    assert_eq!(used(&image, "/mail"), (30_000, 301), "the same by the name of the image");
    let large = File::create(mail.join("large")).expect("file");
    large.write_all_at(&[2; 1 << 19], 0).expect("room");
    assert_eq!(number(large.write_all_at(&[2; 1 << 19], 1 << 19)), OVER);
    assert_eq!(number(large.set_len(1 << 20)), OVER);
    assert_eq!(large.metadata().expect("it is there").len(), 1 << 19);
    assert_eq!(number(fs::rename(mail.join("f0"), directory.join("f0"))), ACROSS);
    assert_eq!(number(fs::hard_link(mail.join("f0"), directory.join("f0"))), ACROSS);
    let moved = Command::new("mv").arg(mail.join("f0")).arg(&directory).status().expect("mv");
    assert!(moved.success() && directory.join("f0").exists() && !mail.join("f0").exists());
    let made = (0..100).map_while(|name| File::create(mail.join(format!("g{name}"))).ok()).count();
    assert_eq!(made, 310 - 301);
    assert_eq!(number(fs::create_dir(mail.join("more"))), OVER);
    let df = Command::new("df").args(["-B1", "--output=size,used,iused"]).arg(&mail).output().expect("df");
    let df = String::from_utf8_lossy(&df.stdout).into_owned();
    let figures: Vec<&str> = df.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!((figures[0], figures[2]), ("1048576", "310"), "{df}");
    let whole = Command::new("df").args(["-B1", "--output=size"]).arg(&directory).output().expect("df");
    assert!(!String::from_utf8_lossy(&whole.stdout).contains("1048576\n"), "the volume is as it was");
    drop(large);
    let before = used(&directory, "/mail");
    let put = onode!("put", "--atomic", &directory, place.file("other", &[1; 100]), "/mail/other").fails(26);
    assert!(put.contains("onode quota report"), "{put}");
    assert_eq!(used(&directory, "/mail"), before);
    unmount(&directory);
    onode!("check", &image).succeeds();
    assert_eq!(used(&image, "/mail"), before);
}

#[test]
fn users_meet_theirs_and_root_does_not() {
    if !has_fuse() || rustix::process::geteuid().as_raw() != 0 {
        return;
    }
    let place = Place::new("quota-users");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let own = directory.join("own");
    fs::create_dir(&own).expect("directory");
    chown(&own, Some(1234), Some(1235)).expect("chown");
    onode!("quota", "set", &directory, "--user", "1234", "--bytes", "100K", "--files", "3").succeeds();
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(&own).uid(1234).gid(1235);
        shell.output().expect("it runs")
    };
    let said = run("head -c 80000 /dev/zero > a && head -c 40000 /dev/zero > b");
    assert!(String::from_utf8_lossy(&said.stderr).contains("quota exceeded"), "{said:?}");
    assert_eq!(fs::metadata(own.join("a")).expect("a").len(), 80_000);
    let said = run("touch c");
    assert!(String::from_utf8_lossy(&said.stderr).contains("quota exceeded"), "{said:?}");
    let said =
        run(&format!("{} quota set {} --user 1234 --bytes none", env!("CARGO_BIN_EXE_onode"), directory.display()));
    assert_eq!(said.status.code(), Some(22), "{said:?}");
    // Root writes to a file of theirs, through the kernel's cache, too.
    let mut file = fs::OpenOptions::new().append(true).open(own.join("a")).expect("a");
    file.write_all(&[1; 50_000]).expect("root may");
    file.sync_all().expect("sync");
    assert_eq!(fs::metadata(own.join("a")).expect("a").size(), 130_000);
    drop(file);
    let rest = fs::metadata(own.join("b")).map_or(0, |found| found.len());
    assert_eq!(used(&directory, "1234"), (130_000 + rest, 3));
    unmount(&directory);
    onode!("check", &image).succeeds();
}

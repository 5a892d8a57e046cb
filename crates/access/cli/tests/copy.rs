//! The options of `get`, `put` and `cp`: what is left out, skipped, completed, told and kept.

use crate::common::{Expect, Place, Running, is_clear, is_root, onode, wait_until};
use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

fn noise(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A tree with something that patterns leave out.
fn tree(place: &Place) -> std::path::PathBuf {
    for (name, content) in [
        ("tree/a.txt", "a"),
        ("tree/b.tmp", "b"),
        ("tree/cache/x", "x"),
        ("tree/sub/cache/y", "y"),
        ("tree/sub/c.tmp", "c"),
        ("tree/sub/d.txt", "d"),
    ] {
        place.directory(Path::new(name).parent().expect("a parent").to_str().expect("text"));
        place.file(name, content.as_bytes());
    }
    place.path("tree")
}

#[test]
fn what_matches_is_left_out() {
    let place = Place::new("exclude");
    let (image, tree) = (place.image("disk.img"), tree(&place));
    let report = onode!("--json", "put", "-r", "--exclude", "*.tmp", "--exclude", "/cache", &image, &tree).succeeds();
    let report = json(&report);
    assert_eq!((&report["files"], &report["excluded"], &report["bytes"]), (&3.into(), &3.into(), &3.into()));
    let found = onode!("find", &image, "--type", "f").succeeds();
    assert_eq!(found, "/tree/a.txt\n/tree/sub/cache/y\n/tree/sub/d.txt\n");
    // A path is meant from the top of what is copied on, a name anywhere.
    onode!("get", "-r", "--exclude", "cache/", "--exclude", "sub/d.*", &image, "/tree", place.path("out")).succeeds();
    assert!(place.path("out/a.txt").exists() && place.path("out/sub").is_dir());
    assert!(!place.path("out/sub/cache").exists() && !place.path("out/sub/d.txt").exists());
    // What several wildcards name is left out by its name.
    onode!("mkdir", &image, "/flat").succeeds();
    let at = |path: &str| format!("{}:{path}", image.display());
    onode!("cp", "-r", "--exclude", "sub", at("/tree/*"), at("/flat")).succeeds();
    assert_eq!(onode!("ls", &image, "/flat").succeeds(), "a.txt\n");
    let before = fs::read(&image).expect("image");
    for glob in ["[", "a//b", "../x", ""] {
        for verb in [&["put", "-r"][..], &["get", "-r"]] {
            let error = onode().args(verb).args(["--exclude", glob]).arg(&image).arg(&tree).fails(2);
            is_clear(&error, format!("--exclude `{glob}`"));
        }
    }
    onode!("put", "-r", &image, place.path("nothing")).fails(20);
    assert!(fs::read(&image).expect("image") == before, "a wrong command line touched the image");
}

#[test]
fn what_is_there_stays_if_that_is_wished() {
    let place = Place::new("no-clobber");
    let (image, tree) = (place.image("disk.img"), tree(&place));
    onode!("put", "-r", &image, &tree).succeeds();
    place.file("tree/a.txt", b"another");
    place.file("tree/new", b"new");
    let report = json(&onode!("--json", "put", "-r", "-n", &image, &tree).succeeds());
    assert_eq!((&report["files"], &report["skipped"]), (&1.into(), &6.into()));
    assert_eq!(onode!("cat", &image, "/tree/a.txt", "/tree/new").succeeds(), "anew");
    let said = onode!("put", "-n", &image, place.path("tree/a.txt"), "/tree/a.txt").succeeds();
    assert_eq!(said, "copied 0 files, 0 B; 1 skipped, there already\n");
    let out = place.file("out", b"mine");
    onode!("get", "-n", &image, "/tree/a.txt", &out).succeeds();
    assert_eq!(fs::read(&out).expect("out"), b"mine");
    onode!("put", "-n", "--resume", &image, &out).fails(2);
}

#[test]
fn a_dry_run_changes_nothing() {
    let place = Place::new("dry");
    let (image, tree) = (place.image("disk.img"), tree(&place));
    let before = (fs::read(&image).expect("image"), fs::metadata(&image).expect("metadata").modified().ok());
    let said = onode!("put", "-r", "--dry-run", "--exclude", "cache", &image, &tree).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "would copy 4 files, 4 B, 2 directories; 2 excluded\n");
    let lines = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(lines.lines().count() == 6 && lines.contains("would copy ") && lines.contains(":/tree/a.txt"), "{lines}");
    let after = (fs::read(&image).expect("image"), fs::metadata(&image).expect("metadata").modified().ok());
    assert!(before == after, "the image was touched");
    onode!("put", "-r", &image, &tree).succeeds();
    onode!("get", "-r", "--dry-run", &image, "/tree", place.path("out")).succeeds();
    assert!(!place.path("out").exists());
    let at = |path: &str| format!("{}:{path}", image.display());
    onode!("cp", "-r", "--dry-run", at("/tree"), at("/other")).succeeds();
    assert_eq!(onode!("ls", &image).succeeds(), "tree\n");
    // In memory that nobody else has: what is wrong is told all the same.
    is_clear(&onode!("put", "--dry-run", &image, &tree).fails(2), "tree");
}

#[test]
fn several_files_go_into_a_directory() {
    let place = Place::new("several");
    let image = place.image("disk.img");
    let files: Vec<_> = ["a", "b", "c"].iter().map(|name| place.file(name, name.as_bytes())).collect();
    let put = |to: &str| {
        let mut command = onode!("put", &image);
        command.args(&files).arg(to);
        command
    };
    let before = fs::read(&image).expect("image");
    is_clear(&put("/none").fails(2), "/none");
    onode!("put", &image, &files[0], place.path("gone"), "/").fails(20);
    is_clear(&onode!("put", &image, &files[0], place.directory("d"), "/").fails(2), "add -r");
    is_clear(&onode!("put", &image, &files[0], "-", "/").fails(2), "by itself");
    is_clear(&onode!("put", &image, &files[0], &files[0], "/").fails(2), "same name");
    assert!(fs::read(&image).expect("image").len() == before.len());
    onode!("mkdir", &image, "/all").succeeds();
    assert_eq!(put("/all").succeeds(), "copied 3 files, 3 B\n");
    assert_eq!(onode!("cat", &image, "/all/a", "/all/b", "/all/c").succeeds(), "abc");
    let shown = onode!("stat", &image, "/all/[ab]").succeeds();
    assert!(shown.contains("file       /all/a") && shown.contains("\n\nfile       /all/b"), "{shown}");
    let shown = json(&onode!("--json", "stat", &image, "/all/*").succeeds());
    assert_eq!(shown.as_array().map(Vec::len), Some(3));
    assert!(json(&onode!("--json", "stat", &image, "/all/a").succeeds()).is_object());
    onode!("stat", &image, "/none/*").fails(20);
}

#[test]
fn as_much_is_told_as_is_wished() {
    let place = Place::new("told");
    let (image, tree) = (place.image("disk.img"), tree(&place));
    let quiet = onode!("put", "-r", "-q", &image, &tree).output().expect("it runs");
    assert!(quiet.status.success() && quiet.stdout.is_empty() && quiet.stderr.is_empty(), "{quiet:?}");
    let each = onode!("get", "-r", "-v", &image, "/tree", place.path("out")).output().expect("it runs");
    let lines = String::from_utf8_lossy(&each.stderr).into_owned();
    assert!(lines.lines().count() == 6 && lines.contains("copying ") && lines.contains("out/sub/d.txt"), "{lines}");
    assert!(String::from_utf8_lossy(&each.stdout).starts_with("copied 6 files"), "{each:?}");
    let at = |path: &str| format!("{}:{path}", image.display());
    let lines = onode!("--json", "cp", "-v", at("/tree/a.txt"), at("/a")).output().expect("it runs").stderr;
    assert!(json(&String::from_utf8_lossy(&lines))["note"].as_str().is_some_and(|note| note.contains("/tree/a.txt")));
    onode!("put", "-q", "-v", &image, &tree).fails(2);
}

#[test]
fn a_copy_goes_on_where_it_ended() {
    let place = Place::new("resume");
    let image = place.image("disk.img");
    let content = noise(3_000_000);
    let file = place.file("big", &content);
    let whole = place.file("whole", b"whole");
    // A part of it is there, as an interrupted copy leaves it.
    onode!("put", &image, place.file("part", &content[..1_500_000]), "/big").succeeds();
    let resume = |from: &Path, to: &str| json(&onode!("--json", "put", "--resume", &image, from, to).succeeds());
    let report = resume(&file, "/big");
    assert_eq!((&report["files"], &report["bytes"]), (&1.into(), &1_500_000.into()));
    let report = resume(&file, "/big");
    assert_eq!((&report["files"], &report["skipped"]), (&0.into(), &1.into()));
    onode!("get", &image, "/big", place.path("back")).succeeds();
    assert!(fs::read(place.path("back")).expect("back") == content);
    // Something else is no part of it, nor is anything that is longer.
    for other in [noise(2_000_001)[1..].to_vec(), vec![0; 4_000_000]] {
        let out = place.file("out", &other);
        onode!("get", "--resume", &image, "/big", &out).succeeds();
        assert!(fs::read(&out).expect("out") == content);
    }
    // The other way round, with holes at the end of the part.
    let part = fs::File::create(place.path("out")).expect("create");
    part.write_all_at(&content[..100_000], 0).expect("write");
    let report = json(&onode!("--json", "get", "--resume", &image, "/big", place.path("out")).succeeds());
    assert_eq!(report["bytes"], 2_900_000);
    assert!(fs::read(place.path("out")).expect("out") == content);
    onode!("put", &image, &whole, "/whole").succeeds();
    let error = onode!("put", "--resume", &image, "-", "/x").fails(2);
    is_clear(&error, "`-`");
    is_clear(&onode!("get", "--resume", &image, "/whole", "-").fails(2), "`-`");
}

#[test]
fn an_interrupt_ends_a_copy_in_order() {
    let place = Place::new("interrupt");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("old", b"old"), "/f").succeeds();
    let mut command = onode!("put", &image, "-", "/streamed");
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("go");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&noise(1 << 20)).expect("the first of it");
    // It reads, and waits for more.
    let waiting = || {
        fs::read_to_string(format!("/proc/{}/io", child.id())).is_ok_and(|io| {
            io.lines().any(|line| line.strip_prefix("rchar: ").and_then(|n| n.parse::<u64>().ok()) > Some(1 << 20))
        })
    };
    wait_until("it reads", waiting);
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    is_clear(&error, "interrupted; copied 0 files");
    assert_eq!(onode!("cat", &image, "/f").succeeds(), "old");
    onode!("check", &image).succeeds();

    // A tree that takes a while: what was copied is there, and the rest comes with --resume.
    let tree = place.directory("tree");
    for number in 0..40 {
        fs::write(tree.join(format!("{number:02}")), noise(300_000 + number)).expect("write");
    }
    let mut running = Running::start(&mut onode!("put", "-r", "-v", &image, &tree));
    running.wait_for_error("/07");
    running.signal("TERM");
    let output = running.end();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(1) {
        assert!(error.contains("asked to terminate; copied ") && error.contains("--resume"), "{error}");
    }
    onode!("check", &image).succeeds();
    onode!("put", "-r", "--resume", &image, &tree).succeeds();
    onode!("get", "-r", &image, "/tree", place.path("back")).succeeds();
    for number in 0..40 {
        assert!(fs::read(place.path(&format!("back/{number:02}"))).expect("a file") == noise(300_000 + number));
    }
}

#[test]
fn an_archive_keeps_all_there_is() {
    let place = Place::new("archive");
    if !is_root() {
        return;
    }
    let (one, two) = (place.image("one.img"), place.image("two.img"));
    let tree = place.directory("tree");
    fs::write(tree.join("first"), b"content").expect("write");
    fs::hard_link(tree.join("first"), tree.join("second")).expect("link");
    symlink("first", tree.join("link")).expect("symlink");
    assert!(Command::new("mkfifo").arg(tree.join("pipe")).status().expect("mkfifo").success());
    assert!(Command::new("mknod").arg(tree.join("null")).args(["c", "1", "3"]).status().expect("mknod").success());
    let set = Command::new("setfattr").args(["-n", "user.colour", "-v", "red"]).arg(tree.join("first")).status();
    let has_attribute = set.is_ok_and(|set| set.success());
    let report = json(&onode!("--json", "put", "-r", &one, &tree, "/plain").succeeds());
    assert_eq!((&report["left_out"], &report["files"]), (&2.into(), &2.into()));
    let report = json(&onode!("--json", "put", "-a", &one, &tree, "/tree").succeeds());
    assert_eq!((&report["special"], &report["files"], &report["hard_links"]), (&2.into(), &1.into(), &1.into()));
    onode!("cp", "-a", format!("{}:/tree", one.display()), format!("{}:/tree", two.display())).succeeds();
    onode!("get", "-a", &two, "/tree", place.path("back")).succeeds();
    let back = |name: &str| fs::symlink_metadata(place.path("back").join(name)).expect("metadata");
    assert_eq!((back("first").ino(), back("first").nlink()), (back("second").ino(), 2));
    assert_eq!((back("null").rdev(), back("null").mode()), {
        let null = fs::symlink_metadata(tree.join("null")).expect("metadata");
        (null.rdev(), null.mode())
    });
    assert_eq!(back("pipe").mode() & 0o170_000, 0o010_000);
    assert_eq!(back("link").mtime(), fs::symlink_metadata(tree.join("link")).expect("metadata").mtime());
    if has_attribute {
        let mut told = Command::new("getfattr");
        told.args(["--only-values", "-n", "user.colour"]).arg(place.path("back/second"));
        assert_eq!(told.output().expect("getfattr").stdout, b"red");
    }
    for image in [&one, &two] {
        onode!("check", image).succeeds();
    }
}

/// Directories in each other, whose path is far longer than a call of the kernel takes.
const DEEP: usize = 45;

/// The directory that lies deepest, which is made with all above it if it is not there.
fn deepest(top: &Path, makes: bool) -> OwnedFd {
    let (flags, name) = (OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, "d".repeat(200));
    let mut at = rustix::fs::open(top, flags, Mode::empty()).expect("open");
    for _ in 0..DEEP {
        if makes {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).expect("mkdir");
        }
        at = rustix::fs::openat(&at, &name, flags, Mode::empty()).expect("open");
    }
    at
}

fn opened(directory: &OwnedFd, name: &str, flags: OFlags) -> fs::File {
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::RWXU).expect("open").into()
}

#[test]
fn paths_may_be_longer_than_one_call_of_the_kernel_takes() {
    let place = Place::new("deep");
    let tree = place.directory("tree");
    let bottom = deepest(&tree, true);
    let content = noise(300_000);
    let mut file = opened(&bottom, "file", OFlags::CREATE | OFlags::WRONLY);
    file.write_all(&content).expect("write");
    let has_attribute = rustix::fs::fsetxattr(&file, "user.colour", b"red", XattrFlags::empty()).is_ok();
    rustix::fs::linkat(&bottom, "file", &bottom, "second", AtFlags::empty()).expect("link");
    rustix::fs::symlinkat("file", &bottom, "link").expect("symlink");
    let (put, made) = (place.image("put.img"), place.path("made.img"));
    onode!("put", "-a", &put, &tree, "/tree").succeeds();
    onode!("mkfs", "--from", &tree, &made).succeeds();
    for (image, from) in [(&put, "/tree"), (&made, "/")] {
        onode!("check", image).succeeds();
        let back = place.path(&format!("back{}", from.len()));
        onode!("get", "-a", image, from, &back).succeeds();
        let bottom = deepest(&back, false);
        let mut there = Vec::new();
        let mut file = opened(&bottom, "second", OFlags::RDONLY);
        file.read_to_end(&mut there).expect("read");
        assert!(there == content);
        assert_eq!(file.metadata().expect("metadata").nlink(), 2);
        assert_eq!(rustix::fs::readlinkat(&bottom, "link", Vec::new()).expect("link").to_bytes(), b"file");
        if has_attribute {
            let mut value = [0; 8];
            assert_eq!(rustix::fs::fgetxattr(&file, "user.colour", &mut value).expect("attribute"), 3);
        }
    }
}

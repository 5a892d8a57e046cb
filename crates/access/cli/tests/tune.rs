//! `onode tune`: the settings that a volume keeps, in images and on mounts, and what they do.

use crate::common::{Expect, Place, has_fuse, is_clear, unmount};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// The value of a setting of an image, a spec or a mount.
fn value(target: impl AsRef<Path>, name: &str) -> String {
    let report = json(&onode!("--json", "tune", target.as_ref()).succeeds());
    let found = report["settings"].as_array().expect("a list").iter().find(|one| one["name"] == name);
    found.expect(name)["value"].as_str().expect("text").to_owned()
}

fn setting_of_mount(directory: &Path, name: &str) -> Value {
    json(&onode!("--json", "stat", directory).succeeds())["settings"][name].clone()
}

#[test]
fn settings_are_shown_and_changed_in_an_image() {
    let place = Place::new("tune");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "16M", "--label", "old").succeeds();
    let shown = onode!("tune", &image).succeeds();
    for part in ["label", "old", "mount-options -", "changed by `onode tune uuid=random`", "fixed by mkfs"] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let report = json(&onode!("tune", "--json", &image).succeeds());
    let fixed = report["settings"].as_array().expect("a list").iter().filter(|one| one["changed_by"].is_null());
    assert!(fixed.count() >= 3, "{report}");
    let before = value(&image, "uuid");
    let said =
        onode!("tune", &image, "uuid=random", "label=a new = one", "mount-options=compress=fast,noatime").succeeds();
    assert!(said.starts_with("label: old -> a new = one\n"), "{said}");
    assert!(said.contains("mount-options: - -> compress=fast,noatime\n"), "{said}");
    let after = value(&image, "uuid");
    assert!(before != after && said.contains(&format!("uuid: {before} -> {after}\n")), "{said}");
    // Everybody else tells the same.
    let info = json(&onode!("--json", "info", &image).succeeds());
    assert_eq!((&info["uuid"], &info["label"]), (&after.clone().into(), &"a new = one".into()));
    assert!(onode!("list", "--udev", &image).succeeds().contains(&after));
    onode!("check", &image).succeeds();
    let chosen = "00112233-4455-6677-8899-aabbccddeeff";
    let said = json(&onode!("--json", "tune", &image, format!("uuid={chosen}"), "mount-options=").succeeds());
    assert_eq!(said["changed"][0]["after"], chosen);
    assert_eq!((value(&image, "mount-options"), value(&image, "label")), (String::new(), "a new = one".into()));
}

#[test]
fn what_cannot_be_set_is_told_and_changes_nothing() {
    let place = Place::new("tune-wrong");
    let image = place.image("disk.img");
    onode!("snapshot", "create", &image, "monday").succeeds();
    let before = fs::read(&image).expect("image");
    for (setting, why) in [
        ("colour=red", "no setting is called `colour`"),
        ("label", "no NAME=VALUE"),
        ("label=a/b", "slashes"),
        ("uuid=12", "no unique number"),
        ("mount-options=compress=zip", "compress=zip"),
        ("mount-options=ro", "`ro` is no option that a volume keeps"),
        ("mount-options=hook=/bin/sh", "no option that a volume keeps"),
        ("mount-options=fast-daily=1G", "has no fast-daily"),
    ] {
        // All or none: what stands before it is not set either.
        let good = if setting.starts_with("uuid") { "label=new" } else { "uuid=random" };
        let error = onode!("tune", &image, good, setting).output().expect("it runs");
        let said = String::from_utf8_lossy(&error.stderr).into_owned();
        assert!(error.status.code() == Some(2) && said.contains(why), "{setting}: {said}");
    }
    let monday = format!("{}@monday", image.display());
    assert!(onode!("tune", &monday, "label=x").fails(2).contains("a snapshot does not change"));
    assert!(onode!("tune", &monday).succeeds().contains("uuid"));
    assert!(fs::read(&image).expect("image") == before, "the image was changed");
    is_clear(&onode!("tune", place.path("none.img"), "label=x").fails(20), "none.img");
    is_clear(&onode!("tune", place.directory("plain")).fails(17), "plain");
}

#[test]
fn a_copy_of_an_image_gets_a_number_of_its_own() {
    let place = Place::new("tune-copy");
    let (image, copy) = (place.image("disk.img"), place.path("copy.img"));
    onode!("put", &image, place.file("f", b"content"), "/f").succeeds();
    fs::copy(&image, &copy).expect("copy");
    assert_eq!(value(&image, "uuid"), value(&copy, "uuid"));
    onode!("tune", &copy, "uuid=random").succeeds();
    assert_ne!(value(&image, "uuid"), value(&copy, "uuid"));
    assert_eq!(onode!("cat", &copy, "/f").succeeds(), "content");
    onode!("check", &copy).succeeds();
}

#[test]
fn every_kind_of_volume_gets_a_new_number_and_keeps_its_files() {
    let place = Place::new("tune-kinds");
    let at = |name: &str| place.path(name).display().to_string();
    let key = place.file("key", &[7; 64]);
    let kinds = [
        (format!("flash+scm:{},{}", at("a.img"), at("a.index")), ",size=64M"),
        (format!("tier:{},{}", at("ssd.img"), at("hdd.img")), ",size=64M,fast-size=32M"),
        (format!("scm:{}", at("memory")), ",size=16M"),
        (format!("pool:flash:{}+scm:{}", at("b.img"), at("c.mem")), ""),
        (at("sealed.img"), ""),
    ];
    for (spec, shape) in &kinds {
        let seals: &[&str] = if spec.contains("sealed") { &["--encrypt", "--size", "16M"] } else { &[] };
        let whole = match spec.strip_prefix("pool:") {
            Some(members) => format!("pool:{},size=32M", members.replace('+', ",size=32M+")),
            None => format!("{spec}{shape}"),
        };
        let with = |verb: &str| {
            let mut command = onode!("--json", verb);
            if spec.contains("sealed") {
                command.arg("--key-file").arg(&key);
            }
            command
        };
        with("mkfs").arg(&whole).args(seals).succeeds();
        with("put").arg(spec).arg(place.file("f", b"content")).arg("/f").succeeds();
        let words = ["uuid=random", "label=tuned", "mount-options=compress=fast"];
        let changed = json(&with("tune").arg(spec).args(words).succeeds());
        assert_ne!(changed["changed"][1]["before"], changed["changed"][1]["after"], "{spec}");
        let info = json(&with("info").arg(spec).succeeds());
        assert_eq!((&info["uuid"], &info["label"]), (&changed["changed"][1]["after"], &"tuned".into()), "{spec}");
        let read = with("cat").arg(spec).arg("/f").output().expect("it runs");
        assert_eq!((read.stdout.as_slice(), read.stderr.as_slice()), (&b"content"[..], &b""[..]), "{spec}");
        with("check").arg(spec).succeeds();
    }
}

#[test]
fn a_mounted_volume_is_tuned_where_it_is_mounted() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tune-mounted");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let before = value(&directory, "uuid");
    onode!("tune", &directory, "uuid=random", "label=here").succeeds();
    // By the name of its image, too.
    onode!("tune", &image, "mount-options=atime=relative").succeeds();
    let after = value(&image, "uuid");
    assert_ne!(before, after);
    assert!(onode!("info", &directory).succeeds().contains(&after));
    assert!(onode!("tune", &directory, "label=x", "mount-options=suid").fails(2).contains("suid"));
    assert_eq!(value(&directory, "label"), "here");
    unmount(&directory);
    assert_eq!((value(&image, "uuid"), value(&image, "mount-options")), (after, "atime=relative".into()));
    onode!("mount", "-o", "ro", &image, &directory).succeeds();
    is_clear(&onode!("tune", &directory, "label=x").fails(14), "read-only");
    assert_eq!(value(&directory, "label"), "here");
    unmount(&directory);
}

#[test]
fn kept_mount_options_hold_where_nobody_says_another() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tune-options");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("tune", &image, "mount-options=compress=small,read-ahead=64K,write-back=30,node-cache=5M").succeeds();
    let text = "the same words again and again. ".repeat(40_000);
    let helper = place.path("mount.onode");
    symlink(env!("CARGO_BIN_EXE_onode"), &helper).expect("symlink");
    let by_helper = || Command::new(&helper).arg(&image).arg(&directory).args(["-o", "rw,write-back=9"]).succeeds();
    for (said, write_back, compresses) in
        [(None, 30, true), (Some("write-back=7,compress=none"), 7, false), (Some("mount.onode"), 9, true)]
    {
        match said {
            Some("mount.onode") => _ = by_helper(),
            said => _ = onode!("mount", &image, &directory).args(said.iter().flat_map(|o| ["-o", o])).succeeds(),
        }
        assert_eq!(setting_of_mount(&directory, "write_back_seconds"), write_back);
        assert_eq!(setting_of_mount(&directory, "read_ahead_bytes"), 64 << 10);
        assert_eq!(setting_of_mount(&directory, "node_cache_bytes"), 5 << 20);
        fs::write(directory.join("f"), &text).expect("content");
        unmount(&directory);
        let report = json(&onode!("--json", "stat", &image, "/f").succeeds());
        let is_small = report["allocated_bytes"].as_u64() < Some(text.len() as u64 / 2);
        assert_eq!(is_small, compresses, "{said:?}: {report}");
    }
    // Without any it is as it was.
    onode!("tune", &image, "mount-options=").succeeds();
    onode!("mount", &image, &directory).succeeds();
    assert_eq!(setting_of_mount(&directory, "write_back_seconds"), 5);
    unmount(&directory);
}

#[test]
fn an_option_of_a_newer_program_is_told_and_ignored() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tune-newer");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let text = b"mount-options=colour=red,suid,write-back=30\n";
    rustix::fs::setxattr(&directory, "onode.tuning", text, rustix::fs::XattrFlags::empty()).expect("set");
    unmount(&directory);
    let output = onode!("mount", &image, &directory).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("`colour=red`") && said.contains("`suid`"), "{said}");
    assert_eq!(setting_of_mount(&directory, "write_back_seconds"), 30);
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the table");
    let line = table.lines().find(|line| line.contains(&*directory.to_string_lossy())).expect("mounted");
    assert!(line.contains("nosuid"), "{line}");
    unmount(&directory);
}

#[test]
fn a_full_volume_is_tuned_or_says_that_it_is_full() {
    let place = Place::new("tune-full");
    let image = place.path("disk.img");
    onode!("mkfs", "--size", "16M", &image).succeeds();
    onode!("put", &image, place.file("big", &vec![7; 30 << 20]), "/big").fails(15);
    let before = (value(&image, "uuid"), value(&image, "mount-options"));
    let output = onode!("tune", &image, "uuid=random", "mount-options=compress=fast").output().expect("it runs");
    let after = (value(&image, "uuid"), value(&image, "mount-options"));
    match output.status.code() {
        Some(0) => assert!(after.0 != before.0 && after.1 == "compress=fast", "{after:?}"),
        code => assert!(code == Some(15) && after == before, "{code:?}, {after:?}"),
    }
    onode!("check", &image).succeeds();
}

#[test]
fn a_shell_completes_the_names_of_settings() {
    let script = onode!("completions", "bash").succeeds();
    for name in ["label=", "uuid=random", "mount-options="] {
        assert!(script.contains(name), "{name}");
    }
}

/// `scm:` before a path.
fn memory(path: &Path) -> String {
    format!("scm:{}", path.display())
}

#[test]
fn a_memory_becomes_exclusive_and_shared_again() {
    let place = Place::new("tune-exclusive");
    let path = place.path("memory");
    onode!("mkfs", format!("{},size=64M", memory(&path))).succeeds();
    assert_eq!(value(&path, "exclusive"), "off");
    let error = onode!("snapshot", "create", &path, "one").fails(2);
    assert!(error.contains("exclusive=on"), "{error}");
    assert_eq!(onode!("tune", &path, "exclusive=on").succeeds(), "exclusive: off -> on\n");
    assert_eq!(onode!("tune", &path, "exclusive=on").succeeds(), "exclusive: on -> on\n");
    assert_eq!(value(&path, "exclusive"), "on");
    assert!(onode!("info", &path).succeeds().contains("one process at a time"));
    let old = place.file("old", b"old");
    onode!("put", &path, &old, "/file").succeeds();
    onode!("snapshot", "create", &path, "one").succeeds();
    onode!("put", &path, place.file("new", b"new"), "/file").succeeds();
    onode!("clone", "create", &path, "try", "--from", "one").succeeds();
    onode!("quota", "set", &path, "--user", "1000", "--bytes", "1M").succeeds();
    let state = |name: &str| format!("{}@{name}", path.display());
    assert_eq!(onode!("cat", state("one"), "/file").succeeds(), "old");
    assert_eq!(onode!("cat", state("try"), "/file").succeeds(), "old");
    onode!("check", &path).succeeds();
    // What only an exclusive one can have keeps it so.
    for (why, needed) in [("clone `try`", ["clone", "delete"]), ("snapshot `one`", ["snapshot", "delete"])] {
        let error = onode!("tune", &path, "exclusive=off").fails(2);
        assert!(error.contains(why), "{error}");
        onode!(needed[0], needed[1], &path, why.split('`').nth(1).expect("a name")).succeeds();
    }
    let error = onode!("tune", &path, "exclusive=off").fails(2);
    assert!(error.contains("limits"), "{error}");
    onode!("quota", "remove", &path, "--user", "1000").succeeds();
    assert_eq!(onode!("tune", &path, "exclusive=off").succeeds(), "exclusive: on -> off\n");
    onode!("check", &path).succeeds();
    assert_eq!(onode!("cat", &path, "/file").succeeds(), "new");
}

#[test]
fn what_cannot_be_exclusive_is_told() {
    let place = Place::new("tune-not-exclusive");
    let (image, path) = (place.image("disk.img"), place.path("memory"));
    assert!(onode!("tune", &image, "exclusive=on").fails(2).contains("storage-class memory"));
    assert!(onode!("mkfs", format!("{},size=64M,exclusive=on,mode=mem", memory(&path))).fails(2).contains("atomic"));
    onode!("mkfs", format!("{},size=64M,exclusive=on", memory(&path))).succeeds();
    assert!(onode!("info", format!("{},mode=sync", memory(&path))).fails(2).contains("atomic"));
    let error = onode!("info", format!("{},exclusive=off", memory(&path))).fails(2);
    assert!(error.contains("onode tune"), "{error}");
    onode!("tune", &path, "exclusive=on", "label=x").fails(2);
    onode!("tune", &path, "exclusive=perhaps").fails(2);
    onode!("tune", "scm:sim,size=8M", "exclusive=on").fails(2);
    if !has_fuse() {
        return;
    }
    let directory = place.directory("mnt");
    onode!("mount", &path, &directory).succeeds();
    assert!(onode!("tune", &directory, "exclusive=off").fails(13).contains("mounted"));
    assert!(onode!("tune", &path, "exclusive=off").fails(13).contains("mounted"));
    is_clear(&onode!("put", &path, &image, "/second").fails(13), "memory");
    fs::write(directory.join("file"), b"old").expect("content");
    fs::create_dir(directory.join(".snapshots/one")).expect("a snapshot");
    fs::write(directory.join("file"), b"new").expect("content");
    assert_eq!(fs::read(directory.join(".snapshots/one/file")).expect("content"), b"old");
    unmount(&directory);
    onode!("check", &path).succeeds();
}

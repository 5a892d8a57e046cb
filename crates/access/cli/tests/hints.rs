//! `onode set`, `get-hints` and `stat --why`: on images and on mounts, by command and by attribute.

use crate::common::{self, Expect, Place, Running, has_fuse, is_clear};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn set(path: &Path, name: &str, value: &str) -> Result<(), Errno> {
    rustix::fs::lsetxattr(path, name, value.as_bytes(), XattrFlags::empty())
}

fn get(path: &Path, name: &str) -> Result<String, Errno> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice())?;
    value.truncate(length);
    Ok(String::from_utf8(value).expect("UTF-8"))
}

#[test]
fn hints_of_an_image_are_set_shown_and_handed_on() {
    let place = Place::new("hints");
    let image = place.image("disk.img");
    let file = place.file("in", &[7; 9000]);
    for directory in ["/tmp", "/tmp/deep", "/logs"] {
        onode!("mkdir", &image, directory).succeeds();
    }
    onode!("put", &image, &file, "/tmp/deep/old").succeeds();
    let said = onode!("set", &image, "/tmp", "lifetime=short", "size=64K").succeeds();
    assert!(said.contains("/tmp: lifetime=short size=64K (3 files and directories changed"), "{said}");
    onode!("set", "--only-new", &image, "/logs", "temperature=cold").succeeds();
    onode!("put", &image, &file, "/tmp/deep/new").succeeds();
    let shown = onode!("get-hints", "-r", &image, "/tmp", "/l*").succeeds();
    assert_eq!(shown.lines().filter(|line| line.contains("short") && line.contains("64K")).count(), 4, "{shown}");
    assert!(shown.lines().any(|line| line.contains("cold") && line.ends_with("/logs")), "{shown}");
    let shown = json(&onode!("--json", "get-hints", &image, "/tmp/deep/new", "/").succeeds());
    assert_eq!(shown[0]["hints"]["lifetime"], "short");
    assert_eq!(shown[1]["hints"]["lifetime"], "unknown");
    assert!(shown[0]["hints"].get("placement").is_none(), "{shown}");

    let why = onode!("stat", "--why", &image, "/tmp/deep/new").succeeds();
    for part in ["as its directory says", "compression  none: nothing on this volume is", "placement=user-cleaner"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let spec = format!("flash:{},placement=hints", image.display());
    let why = json(&onode!("--json", "stat", "--why", &spec, "/tmp/deep/new").succeeds());
    assert_eq!(why["hints"][0]["origin"], "directory");
    assert_eq!(why["decisions"][1]["choice"], "class-1", "{why}");
    onode!("set", &image, "/tmp/deep/*", "lifetime=unknown").succeeds();
    let shown = onode!("get-hints", &image, "/tmp/deep/new").succeeds();
    assert!(!shown.contains("short") && shown.contains("64K"), "{shown}");
    onode!("check", &image).succeeds();
}

#[test]
fn mistakes_are_told_and_change_nothing() {
    let place = Place::new("hints-wrong");
    let image = place.image("disk.img");
    onode!("mkdir", &image, "/d").succeeds();
    onode!("set", &image, "/d", "lifetime=long").succeeds();
    for (words, told) in [
        (vec!["/d", "liftime=short"], "no hint is called liftime"),
        (vec!["/d", "lifetime=short", "temperature=boiling"], "unknown, cold, warm or hot"),
        (vec!["/d", "lifetime=short", "size=16777216T"], "a number of bytes"),
        (vec!["/d", "lifetime=short", "lifetime=long"], "twice"),
        (vec!["/d", "lifetime=short", "compress=small"], "nothing on this volume is compressed"),
        (vec!["/d", "lifetime=short", "placement=hot"], "the volume lies on one device"),
        (vec!["/d", "parity=2"], "no parity of their own"),
        (vec!["/d", "copies=2"], "no hint is called copies"),
        (vec!["/d"], "nothing to set"),
    ] {
        is_clear(&onode!("set", &image).args(words).fails(2), told);
    }
    is_clear(&onode!("set", "lifetime=short").fails(2), "no file is named");
    // Looked for before anything is changed.
    is_clear(&onode!("set", &image, "/d", "/nowhere", "lifetime=short").fails(20), "nowhere");
    is_clear(&onode!("set", &image, "/d", "/n*", "lifetime=short").fails(20), "/n*");
    is_clear(&onode!("get-hints", &image, "/nowhere").fails(20), "nowhere");
    is_clear(&onode!("get-hints", place.path("nowhere")).fails(20), "nowhere");
    is_clear(&onode!("set", place.directory("host"), "lifetime=short").fails(2), "mounted Onode volume");
    is_clear(&onode!("get-hints", &image).fails(2), "mounted Onode volume");
    let shown = onode!("get-hints", &image, "/d").succeeds();
    assert!(shown.contains("long"), "{shown}");
    // Who may not write to the image may look at it.
    let mut permissions = fs::metadata(&image).expect("image").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&image, permissions).expect("chmod");
    assert!(onode!("get-hints", &image, "/d").succeeds().contains("long"));
}

#[test]
fn a_mount_takes_and_tells_hints_by_attribute_and_by_command() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("hints-mount");
    let (image, mount) = (place.image("disk.img"), place.directory("mnt"));
    let up = Running::up(&mount, &image);
    let (tmp, file) = (mount.join("tmp"), mount.join("tmp/file"));
    fs::create_dir(&tmp).expect("mkdir");
    set(&tmp, "user.onode.lifetime", "short").expect("set");
    fs::write(&file, [7; 9000]).expect("write");
    assert_eq!(get(&file, "user.onode.lifetime"), Ok("short".into()));
    assert_eq!(get(&file, "onode.lifetime"), Ok("short".into()));
    for (name, value) in [
        ("user.onode.lifetime", "forever"),
        ("user.onode.temperature", ""),
        ("user.onode.size", "16777216T"),
        ("user.onode.liftime", "short"),
    ] {
        assert_eq!(set(&file, name, value), Err(Errno::INVAL), "{name}={value}");
    }
    assert_eq!(set(&file, "user.onode.compress", "small"), Err(Errno::OPNOTSUPP));
    assert_eq!(set(&file, "user.onode.parity", "1"), Err(Errno::OPNOTSUPP));
    assert_eq!(get(&file, "user.onode.placement"), Err(Errno::OPNOTSUPP));
    let listed = rustix::fs::llistxattr(&file, &mut [0u8; 256]).expect("list");
    assert_eq!(listed, 0, "no listing shows hints");

    let said = onode!("set", &tmp, &mount, "--only-new", "temperature=hot", "size=4K").succeeds();
    assert_eq!(said.lines().count(), 2, "{said}");
    let shown = onode!("get-hints", &tmp, &file).succeeds();
    assert!(
        shown.contains("lifetime    temperature size        path\nshort       hot         4K          "),
        "{shown}"
    );
    let why = onode!("stat", "--why", &file).succeeds();
    assert!(why.contains("lifetime     short          as its directory says"), "{why}");
    assert!(why.contains("log          data: by placement=user-cleaner"), "{why}");
    rustix::fs::lremovexattr(&file, "user.onode.lifetime").expect("remove");
    assert_eq!(get(&file, "user.onode.lifetime"), Ok("unknown".into()));
    std::os::unix::fs::symlink("file", mount.join("link")).expect("symlink");
    is_clear(&onode!("stat", "--why", mount.join("link")).fails(2), "only files and directories");
    is_clear(&onode!("set", &file, "placement=hot").fails(2), "one device");
    up.signal("TERM");
    up.ends_well();
    let shown = onode!("get-hints", &image, "/tmp", "/tmp/file").succeeds();
    assert!(shown.contains("short") && shown.contains("unknown"), "{shown}");
    let up = Running::start(&mut onode!("mount", "-f", "-o", "ro", &image, &mount));
    common::wait_until("the mount is live", || common::is_mounted(&mount));
    is_clear(&onode!("set", &tmp, "lifetime=long").fails(14), "Read-only");
    assert!(onode!("get-hints", &tmp).succeeds().contains("short"));
    up.signal("TERM");
    up.ends_well();
}

/// Files that wished so lose nothing where others do, on an image, on a mount and by attribute.
#[test]
fn files_with_a_parity_of_their_own_outlive_lost_blocks() {
    let place = Place::new("hints-parity");
    let image = place.path("disk.img");
    for wrong in ["2-1", "0-4", "0-0", "x", "4"] {
        let error = onode!("mkfs", "--size", "64M", "--parity", wrong, &image).fails(2);
        assert!(error.contains("--parity"), "{wrong}: {error}");
    }
    onode!("mkfs", "--size", "64M", "--page", "2K", "--parity", "0-2", &image).succeeds();
    assert!(onode!("info", &image).succeeds().contains("0 to 2 of 17 pages parity"));
    let content: Vec<u8> = (0..3_000_000u32).map(|byte| (byte % 251) as u8).collect();
    let file = place.file("in", &content);
    onode!("mkdir", &image, "/kept").succeeds();
    onode!("set", &image, "/kept", "parity=2").succeeds();
    for path in ["/kept/file", "/plain", "/later"] {
        onode!("put", &image, &file, path).succeeds();
    }
    // What is there already has it when the command is over.
    onode!("set", &image, "/later", "parity=2").succeeds();
    let why = json(&onode!("--json", "stat", "--why", &image, "/later").succeeds());
    let of = |why: &Value| why["decisions"].as_array().unwrap().iter().find(|one| one["matter"] == "parity").cloned();
    let parity = of(&why).expect("parity is explained");
    assert_eq!((&parity["choice"], &parity["why"]), (&"2 of 17 pages".into(), &"it is wished".into()));
    let shown = onode!("get-hints", &image, "/kept/file", "/plain").succeeds();
    assert!(shown.lines().next().unwrap().split_whitespace().any(|word| word == "parity"), "{shown}");
    assert!(!shown.contains("placement"), "{shown}");
    let error = onode!("set", &image, "/plain", "parity=3").fails(2);
    assert!(error.contains("at most 2 pages of parity"), "{error}");
    onode!("check", &image).succeeds();

    // Two erase blocks of each segment read as zeros.
    let mut bytes = fs::read(&image).unwrap();
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte))
    };
    let (blocks, first, stride) = (number(28, 4), number(56, 8), number(96, 8));
    let (superblocks, segment) = (if blocks < 1024 { 2 } else { 3 }, 17);
    for number in 0..(blocks - 2 * superblocks) / segment {
        let lost = first + (superblocks + number * segment + 3) * stride;
        bytes[lost..lost + 2 * stride].fill(0);
    }
    fs::write(&image, &bytes).unwrap();
    for path in ["/kept/file", "/later"] {
        let out = place.path("out");
        onode!("get", &image, path, &out).succeeds();
        assert!(fs::read(&out).unwrap() == content, "{path}");
        fs::remove_file(&out).unwrap();
    }
    let refused = onode!("get", &image, "/plain", place.path("out")).output().unwrap();
    assert!(!refused.status.success(), "the damage hit nothing of a file without parity");
}

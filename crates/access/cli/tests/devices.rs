//! Volumes on block devices and on files used like one: every command works on them, and every
//! refusal is clear and leaves the device as it was.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, is_root};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a file; detached at the end.
struct Loop(PathBuf);

impl Loop {
    /// `None`, with a word why, where loop devices cannot be had.
    fn over(file: &Path) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let Ok(output) = Command::new("losetup").args(["--find", "--show"]).arg(file).output() else {
            eprintln!("skipped: no losetup");
            return None;
        };
        if !output.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(Self(String::from_utf8(output.stdout).expect("UTF-8").trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn sized(place: &Place, name: &str, bytes: u64) -> PathBuf {
    let path = place.file(name, b"");
    fs::File::options().write(true).open(&path).and_then(|file| file.set_len(bytes)).expect("size");
    path
}

/// Every command that needs no mount.
fn all_work(place: &Place, volume: &Path) {
    let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    onode!("mkdir", volume, "/d").succeeds();
    onode!("put", volume, place.file("big", &content), "/d/big").succeeds();
    onode!("put", volume, place.file("small", b"small"), "/small").succeeds();
    assert!(onode!("ls", volume, "/d").succeeds().contains("big"));
    onode!("get", volume, "/d/big", place.path("out")).succeeds();
    assert!(fs::read(place.path("out")).expect("out") == content);
    onode!("rm", volume, "/small").succeeds();
    onode!("check", volume).succeeds();
    onode!("repair", volume).succeeds();
    onode!("stat", volume).succeeds();
    onode!("dump", volume, "segment", "0").succeeds();
    let info = onode!("info", volume).succeeds();
    assert!(info.contains("pages of 4096 bytes") || info.contains("4 KiB"), "{info}");
    fs::remove_file(place.path("out")).expect("remove");
}

#[test]
fn a_file_is_used_like_a_device() {
    let place = Place::new("direct");
    let file = place.path("disk.raw");
    let mut spec = file.clone().into_os_string();
    spec.push(",direct");
    onode!("mkfs", "--size", "64M", &spec).succeeds();
    // Its first bytes tell what it is; the setting is needed no more, nor does it harm.
    all_work(&place, &file);
    onode!("ls", &spec).succeeds();
    // A megabyte in front of the volume, a label behind it.
    assert_eq!(fs::metadata(&file).expect("file").len(), (65 << 20) + 4096);

    let before = fs::read(&file).expect("file");
    let error = onode!("mkfs", "--size", "64M", &spec).fails(21);
    assert!(error.contains("--force"), "{error}");
    assert!(fs::read(&file).expect("file") == before, "the volume was changed");
    // Over all of what is there, and what it held is gone.
    onode!("mkfs", "--force", &spec).succeeds();
    assert_eq!(onode!("ls", &file).succeeds(), "");
    // A megabyte in front of the volume, a label behind it.
    assert_eq!(fs::metadata(&file).expect("file").len(), (65 << 20) + 4096);

    // A file that came into being for a volume that did not is gone again.
    let never = place.path("never.raw");
    let mut spec = never.clone().into_os_string();
    spec.push(",direct");
    onode!("mkfs", "--size", "100K", &spec).fails(19);
    onode!("mkfs", "--page", "2K", &spec).fails(19);
    let error = onode!("mkfs", "--spare", "32", &spec).fails(19);
    is_clear(&error, &never);
    assert!(!never.exists());
}

#[test]
fn a_direct_file_in_use_is_left_alone() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("direct-used");
    let file = place.path("disk.raw");
    let mut spec = file.clone().into_os_string();
    spec.push(",direct");
    onode!("mkfs", "--size", "64M", &spec).succeeds();
    let mount = place.path("mnt");
    let up = Running::up(&mount, &file);
    fs::write(mount.join("f"), b"through the mount").expect("write");
    let error = onode!("put", &file, place.file("g", b"g"), "/g").fails(13);
    assert!(error.contains("hint: "), "{error}");
    onode!("mkfs", "--force", &spec).fails(13);
    onode!("umount", &mount).succeeds();
    up.ends_well();
    onode!("get", &file, "/f", place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"through the mount");
    onode!("check", &file).succeeds();
}

#[test]
fn a_loop_device_holds_a_volume() {
    let place = Place::new("loop");
    let Some(device) = Loop::over(&sized(&place, "disk", 64 << 20)) else { return };
    let error = onode!("info", &device.0).fails(10);
    is_clear(&error, &device.0);
    assert!(error.contains("onode mkfs"), "{error}");
    onode!("mkfs", &device.0).succeeds();
    all_work(&place, &device.0);
    if has_fuse() {
        let mount = place.path("mnt");
        let up = Running::up(&mount, &device.0);
        fs::write(mount.join("f"), vec![9; 1 << 20]).expect("write");
        // Who holds it is told, and nothing else can use it.
        let error = onode!("put", &device.0, place.file("g", b"g"), "/g").fails(13);
        assert!(error.contains(&mount.display().to_string()) || error.contains("hint: "), "{error}");
        onode!("mkfs", "--force", &device.0).fails(13);
        onode!("umount", &mount).succeeds();
        up.ends_well();
        onode!("check", &device.0).succeeds();
    }
    let error = onode!("mkfs", &device.0).fails(21);
    assert!(error.contains("an Onode volume") && error.contains("--force"), "{error}");
    onode!("mkfs", "--force", "--size", "32M", &device.0).succeeds();
    assert_eq!(onode!("ls", &device.0).succeeds(), "");
    let error = onode!("mkfs", "--force", "--size", "1G", &device.0).fails(19);
    assert!(error.contains("more than the"), "{error}");

    // Another user may not open it.
    let program = place.command();
    let mut nobody = Command::new(&program);
    let error = nobody.arg("info").arg(&device.0).uid(65534).gid(65534).fails(22);
    is_clear(&error, &device.0);
}

#[test]
fn a_device_with_something_else_on_it_is_left_alone() {
    let place = Place::new("foreign-device");
    let file = sized(&place, "disk", 64 << 20);
    let Some(device) = Loop::over(&file) else { return };
    let made = Command::new("mkfs.ext4").arg("-q").arg(&device.0).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mkfs.ext4");
        return;
    }
    let error = onode!("mkfs", &device.0).fails(21);
    is_clear(&error, &device.0);
    assert!(error.contains("ext4") && error.contains("--force"), "{error}");
    let mount = place.directory("ext4");
    let mounted = Command::new("mount").arg(&device.0).arg(&mount).status().expect("mount");
    if mounted.success() {
        fs::write(mount.join("f"), b"mine").expect("write");
        let error = onode!("mkfs", "--force", &device.0).fails(13);
        is_clear(&error, &device.0);
        assert_eq!(fs::read(mount.join("f")).expect("read"), b"mine");
        assert!(Command::new("umount").arg(&mount).status().expect("umount").success());
    }
    onode!("mkfs", "--force", &device.0).succeeds();
    onode!("check", &device.0).succeeds();
}

#[test]
fn impossible_devices_are_refused() {
    let place = Place::new("impossible");
    let error = onode!("info", "/dev/null").fails(10);
    is_clear(&error, "/dev/null");
    let error = onode!("mkfs", "/dev/null").fails(21);
    is_clear(&error, "/dev/null");
    let error = onode!("info", "/dev/no-such-disk").fails(20);
    assert!(error.contains("lsblk"), "{error}");
    let Some(device) = Loop::over(&sized(&place, "tiny", 2 << 20)) else { return };
    let error = onode!("mkfs", &device.0).fails(19);
    is_clear(&error, &device.0);
}

/// That no file takes the place of a device that is missing: it would lie in memory, and be lost
/// with the next start.
#[test]
fn a_missing_device_is_refused_for_every_kind() {
    let place = Place::new("missing");
    let (file, mnt) = (place.path("there.img"), place.path("mnt"));
    let missing = |name: &str| format!("/dev/onode-missing-{}-{name}", std::process::id());
    let there = file.display();
    let none = missing("one");
    for (kind, command) in [
        ("flash", onode!("mkfs", &none)),
        ("flash by kind", onode!("mkfs", format!("flash:{none},size=64M"))),
        ("used like a device", onode!("mkfs", format!("flash:{none},direct,size=64M"))),
        ("replaced", onode!("mkfs", "--force", &none)),
        ("memory", onode!("mkfs", format!("scm:{none},size=16M"))),
        ("flash with a memory", onode!("mkfs", format!("flash+scm:{there},{none},size=64M"))),
        ("flash of a memory", onode!("mkfs", format!("flash+scm:{none},{there},size=64M"))),
        ("fast disk", onode!("mkfs", format!("tier:{none},{there},size=64M,fast-size=16M"))),
        ("big disk", onode!("mkfs", format!("tier:{there},{none},size=64M,fast-size=16M"))),
        ("up", onode!("up", &mnt, &none)),
        ("up with memory", onode!("up", &mnt, format!("scm:{none},size=16M"))),
        ("spaces", onode!("spaces", "create", &none, "--size", "16M")),
        ("a directory deeper", onode!("mkfs", "/dev/disk/by-id/onode-missing")),
    ] {
        let mut command = command;
        let error = command.fails(20);
        assert!(error.starts_with("onode: cannot "), "{kind}: {error}");
        assert!(error.contains("there is no device /dev/") && error.contains("lsblk"), "{kind}: {error}");
        assert!(!file.exists() && !Path::new(&none).exists() && !mnt.exists(), "{kind}: something was made");
    }
    // Of volumes that are there, with a part that is not: a new fast disk, and a memory that would
    // be filled again.
    let [fast, big] = ["ssd.img", "hdd.img"].map(|name| place.path(name));
    onode!("mkfs", format!("tier:{},{},size=64M,fast-size=16M", fast.display(), big.display())).succeeds();
    let error = onode!("put", format!("tier:{none},{},fast=new", big.display()), &big, "/f").fails(20);
    assert!(error.contains("there is no device") && !Path::new(&none).exists(), "{error}");
    // Files in memory have a place below /dev, too.
    let shared = format!("/dev/shm/onode-cli-{}-there", std::process::id());
    onode!("mkfs", "--size", "64M", &shared).succeeds();
    std::fs::remove_file(&shared).expect("made");
}

//! Every bad input: its exit code, a clear message, and an image that is byte for byte as it was.

use crate::common::{self, Expect, Place, has_fuse, is_clear, is_root};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs every command that opens an image and expects the code; the image must not change.
fn all_refuse(place: &Place, image: &Path, code: i32, quoted: &str) {
    let before = fs::read(image).ok();
    let file = place.file("some-file", b"content");
    for error in [
        onode!("info", image).fails(code),
        onode!("stat", image).fails(code),
        onode!("ls", image).fails(code),
        onode!("get", image, "/f", place.path("out")).fails(code),
        onode!("put", image, &file, "/f").fails(code),
        onode!("rm", image, "/f").fails(code),
        onode!("mkdir", image, "/d").fails(code),
        onode!("mount", image, place.directory("empty")).fails(code),
    ] {
        is_clear(&error, image);
        assert!(error.contains(quoted), "{error}");
    }
    assert!(fs::read(image).ok() == before, "the image was changed");
    assert!(!place.path("out").exists());
}

#[test]
fn a_foreign_file_is_not_an_image() {
    let place = Place::new("foreign");
    for content in [&b""[..], b"hello", &[0; 100_000], &[0xff; 8192]] {
        let image = place.file("disk.img", content);
        all_refuse(&place, &image, 10, "not an Onode image");
        onode!("check", &image).fails(8);
        onode!("repair", &image).fails(8);
        assert!(fs::read(&image).expect("image") == content);
        onode!("up", place.directory("mnt"), &image).fails(10);
    }
    let directory = place.directory("directory.img");
    let error = onode!("info", &directory).output().expect("it runs");
    assert!(!error.status.success());
}

#[test]
fn a_truncated_image_is_damaged() {
    let place = Place::new("truncated");
    let image = place.image("disk.img");
    for bytes in [30 << 20, 5000, 4096, 100] {
        OpenOptions::new().write(true).open(&image).expect("open").set_len(bytes).expect("cut");
        all_refuse(&place, &image, 11, "");
        onode!("check", &image).fails(4);
    }
}

#[test]
fn a_check_of_what_was_cut_short_leads_on() {
    let place = Place::new("truncated-hint");
    let image = place.image("disk.img");
    OpenOptions::new().write(true).open(&image).expect("open").set_len(30 << 20).expect("cut");
    let length = 64 << 20;
    for (verb, code) in [("info", 11), ("check", 4)] {
        let error = onode!(verb, &image).fails(code);
        is_clear(&error, &image);
        assert!(error.contains("MiB are missing: copy it again") && !error.contains("onode check"), "{error}");
        assert!(error.contains("truncate -s"), "{error}");
    }
    let error = onode!("info", &image).fails(11);
    let whole = error.split("truncate -s ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a length");
    let whole = whole.parse::<u64>().expect("a number");
    assert!(whole > length, "{whole} bytes");
    // As it says: what was in the rest was nothing.
    OpenOptions::new().write(true).open(&image).expect("open").set_len(whole).expect("it becomes longer");
    onode!("info", &image).succeeds();
}

#[test]
fn a_damaged_header_is_damaged() {
    let place = Place::new("header");
    let image = place.image("disk.img");
    let file = OpenOptions::new().write(true).open(&image).expect("open");
    // The copy at its end stands in for the one at its start.
    file.write_all_at(b"?", 24).expect("write");
    onode!("info", &image).succeeds();
    let length = file.metadata().expect("metadata").len();
    for header in [0, length - 4096] {
        file.write_all_at(b"?", header + 24).expect("write");
    }
    all_refuse(&place, &image, 11, "damaged");
    onode!("repair", &image).fails(4);
}

#[test]
fn an_image_without_superblock_is_damaged() {
    let place = Place::new("superblock");
    let image = place.image("disk.img");
    let file = OpenOptions::new().read(true).write(true).open(&image).expect("open");
    let length = file.metadata().expect("metadata").len();
    // The data of the first and of the last blocks: every superblock is there. Behind them are
    // table and header, a page each.
    for from in [length - 2 * 4096 - (64 << 20), length - 2 * 4096 - 8 * 64 * 4096] {
        file.write_all_at(&vec![0x5a; 8 * 64 * 4096], from).expect("write");
    }
    all_refuse(&place, &image, 11, "");
}

#[test]
fn damaged_content_is_found_named_and_never_returned() {
    let place = Place::new("content");
    let image = place.image("disk.img");
    let content: Vec<u8> = (0..2_000_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    onode!("mkdir", &image, "/d").succeeds();
    onode!("put", &image, place.file("big", &content), "/d/big").succeeds();
    onode!("put", &image, place.file("small", b"small"), "/d/small").succeeds();
    let mut bytes = fs::read(&image).expect("image");
    let part = content.get(4_000_000..4_000_064).expect("part");
    let at = bytes.windows(part.len()).position(|window| window == part).expect("it is stored as it is");
    bytes.get_mut(at..at + 8).expect("there").fill(0xaa);
    fs::write(&image, &bytes).expect("write");
    let check = onode!("check", &image).output().expect("it runs");
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert_eq!(check.status.code(), Some(4), "{said}");
    assert!(said.contains("/d/big") && said.contains("DAMAGED"), "{said}");
    let error = onode!("get", &image, "/d/big", place.path("out")).fails(11);
    is_clear(&error, "/d/big");
    onode!("get", &image, "/d/small", place.path("small-out")).succeeds();
    assert_eq!(fs::read(place.path("small-out")).expect("out"), b"small");
    assert!(fs::read(&image).expect("image") == bytes, "the image was changed");
}

#[test]
fn a_newer_format_is_left_alone() {
    let place = Place::new("newer");
    let image = place.image("disk.img");
    let file = OpenOptions::new().write(true).open(&image).expect("open");
    file.write_all_at(&99u32.to_le_bytes(), 8).expect("write");
    all_refuse(&place, &image, 12, "99");
    onode!("check", &image).fails(8);
}

#[test]
fn an_image_in_use_is_left_alone() {
    let place = Place::new("locked");
    let image = place.image("disk.img");
    let lock = File::open(&image).expect("open");
    lock.lock().expect("lock");
    let file = place.file("f", b"f");
    for error in [
        onode!("info", &image).fails(13),
        onode!("put", &image, &file).fails(13),
        onode!("mkfs", "--force", &image).fails(13),
    ] {
        is_clear(&error, &image);
    }
    onode!("check", &image).fails(8);
    // Not when the last descriptor goes: a child of another test may have one for a moment.
    lock.unlock().expect("unlock");
    onode!("info", &image).succeeds();
}

#[test]
fn two_media_that_are_one_are_refused_and_nothing_is_made() {
    let place = Place::new("one-medium");
    let (one, other) = (place.path("a.img"), place.path("./a.img"));
    for kind in ["tier", "flash+scm"] {
        let spec = format!("{kind}:{},{},size=64M", one.display(), other.display());
        let error = onode!("mkfs", &spec).fails(2);
        assert!(error.contains("are the same") && error.contains("hint: "), "{error}");
        assert!(!one.exists());
        onode!("info", &spec).fails(2);
    }
}

#[test]
fn a_mounted_image_says_where_it_is_mounted() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("mounted");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let error = onode!("ls", &image).fails(13);
    is_clear(&error, &image);
    assert!(error.contains(&*directory.to_string_lossy()), "{error}");
    onode!("mount", &image, place.directory("other")).fails(13);
    onode!("umount", &directory).succeeds();
}

#[test]
fn an_image_that_may_not_be_written_is_a_matter_of_permission() {
    if !is_root() {
        return;
    }
    let place = Place::new("readonly");
    let image = place.image("disk.img");
    let file = place.file("f", b"f");
    // Another user must reach the program as well.
    let program = place.command();
    let before = fs::read(&image).expect("image");
    let nobody = |arguments: &[&std::ffi::OsStr]| {
        let mut command = Command::new(&program);
        command.args(arguments).uid(65534).gid(65534);
        command
    };
    let image_argument = image.as_os_str();
    nobody(&["ls".as_ref(), image_argument]).succeeds();
    let error = nobody(&["put".as_ref(), image_argument, file.as_os_str()]).fails(22);
    is_clear(&error, &image);
    assert!(error.contains("hint: run it as the owner or as root"), "{error}");
    assert!(fs::read(&image).expect("image") == before);
}

#[test]
fn a_full_volume_is_told_and_stays_sound() {
    let place = Place::new("full");
    let image = place.path("disk.img");
    onode!("mkfs", "--size", "16M", &image).succeeds();
    let big = place.path("big");
    fs::write(&big, vec![7; 30 << 20]).expect("write");
    let error = onode!("put", &image, &big, "/big").fails(15);
    is_clear(&error, "big");
    onode!("check", &image).succeeds();
    onode!("rm", &image, "/big").succeeds();
    onode!("put", &image, place.file("f", &[1; 1 << 20]), "/f").succeeds();
    onode!("check", &image).succeeds();
}

#[test]
fn a_full_host_is_told_and_what_was_there_stays() {
    if !is_root() {
        return;
    }
    let place = Place::new("hostfull");
    let small = place.directory("small");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"]).arg(&small).status();
    assert!(mounted.expect("mount").success());
    let image = small.join("disk.img");
    onode!("mkfs", "--size", "64M", &image).succeeds();
    onode!("put", &image, place.file("f", b"kept"), "/f").succeeds();
    let big = place.path("big");
    fs::write(&big, (0..20u32 << 20).map(|i| (i >> 3) as u8).collect::<Vec<u8>>()).expect("write");
    let error = onode!("put", &image, &big, "/big").fails(16);
    assert!(error.contains("on the host") && error.contains("hint: "), "{error}");
    onode!("get", &image, "/f", place.path("out")).succeeds();
    assert_eq!(fs::read(place.path("out")).expect("out"), b"kept");
}

#[test]
fn unusable_mount_points_are_refused() {
    let place = Place::new("mountpoint");
    let image = place.image("disk.img");
    let before = fs::read(&image).expect("image");
    let full = place.directory("full");
    fs::write(full.join("f"), b"f").expect("write");
    let file = place.file("file", b"");
    for directory in [&place.path("missing"), &full, &file] {
        let error = onode!("mount", &image, directory).fails(17);
        is_clear(&error, directory);
        let error = onode!("mount", "--foreground", &image, directory).fails(17);
        is_clear(&error, directory);
        is_clear(&onode!("umount", directory).fails(17), directory);
    }
    is_clear(&onode!("up", &full, &image).fails(17), &full);
    is_clear(&onode!("up", &file, &image).fails(17), &file);
    is_clear(&onode!("up", place.path("no/such"), &image).fails(17), place.path("no/such"));
    is_clear(&onode!("stat", &full).fails(17), &full);
    assert!(fs::read(&image).expect("image") == before);
}

#[test]
fn a_directory_in_the_place_of_an_image_is_told_the_order() {
    let place = Place::new("order");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let both = |command: &str, first: &Path, second: &Path| {
        format!("comes first: onode {command} {} {}", first.display(), second.display())
    };
    let error = onode!("up", &image, &directory).fails(2);
    assert!(error.contains("it is a directory") && error.contains(&both("up", &directory, &image)), "{error}");
    let error = onode!("mount", &directory, &image).fails(2);
    assert!(error.contains("it is a directory") && error.contains(&both("mount", &image, &directory)), "{error}");
    onode!("check", &image).succeeds();
}

#[test]
fn a_second_mount_at_the_same_place_is_refused() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("twice");
    let (one, two, directory) = (place.image("one.img"), place.image("two.img"), place.directory("mnt"));
    onode!("mount", &one, &directory).succeeds();
    let error = onode!("mount", &two, &directory).fails(17);
    is_clear(&error, &directory);
    assert!(error.contains("one.img") && error.contains("already"), "{error}");
    onode!("umount", &directory).succeeds();
}

#[test]
fn a_system_without_fuse_is_told() {
    if !is_root() {
        return;
    }
    let place = Place::new("nofuse");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let before = fs::read(&image).expect("image");
    // A /dev of its own, without fuse, that only this command sees.
    let script = "mount -t tmpfs tmpfs /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_onode"), "mount"]).arg(&image).arg(&directory);
    let error = command.fails(18);
    is_clear(&error, &directory);
    assert!(error.contains("/dev/fuse"), "{error}");
    assert!(!common::is_mounted(&directory));
    onode!("info", &image).succeeds();
    assert_eq!(fs::read(&image).expect("image").len(), before.len());
}

#[test]
fn absurd_sizes_are_refused_and_leave_nothing() {
    let place = Place::new("sizes");
    let image = place.path("disk.img");
    for arguments in [
        ["--size", "0"],
        ["--size", "1K"],
        ["--size", "99999999999T"],
        ["--size", "9000000T"],
        ["--size", "lots"],
        ["--size", "1.5G"],
        ["--page", "0"],
        ["--page", "3000"],
        ["--page", "1G"],
        ["--spare", "99999"],
        ["--pages-per-block", "1"],
        ["--pages-per-block", "99999999999"],
        ["--blocks-per-segment", "0"],
        ["--chips", "0"],
    ] {
        let error = onode!("mkfs", arguments[0], arguments[1], &image).fails(19);
        assert!(error.starts_with("onode: cannot "), "{error}");
        assert_eq!(fs::read_dir(place.path(".")).expect("list").count(), 0, "{arguments:?} left something");
    }
    let mut spec = image.clone().into_os_string();
    spec.push(",size=12");
    onode!("mkfs", spec).fails(19);
    assert_eq!(fs::read_dir(place.path(".")).expect("list").count(), 0);
}

#[test]
fn what_is_not_there_is_told() {
    let place = Place::new("missing");
    let missing = place.path("missing.img");
    all_refuse(&place, &missing, 20, "no such file");
    let image = place.image("disk.img");
    let before = fs::read(&image).expect("image");
    for error in [
        onode!("ls", &image, "/nothing").fails(20),
        onode!("stat", &image, "/nothing").fails(20),
        onode!("get", &image, "/nothing", place.path("out")).fails(20),
    ] {
        assert!(error.contains("nothing") && error.starts_with("onode: cannot "), "{error}");
    }
    onode!("put", &image, place.path("nothing"), "/f").fails(20);
    assert!(fs::read(&image).expect("image") == before);
    assert!(!place.path("out").exists());
}

#[test]
fn what_is_there_already_is_kept() {
    let place = Place::new("exists");
    let file = place.file("disk.img", b"precious");
    is_clear(&onode!("mkfs", &file).fails(21), &file);
    is_clear(&onode!("mkfs", "--force", place.directory("dir")).fails(21), "dir");
    assert_eq!(fs::read(&file).expect("file"), b"precious");
    let image = place.image("real.img");
    onode!("mkdir", &image, "/d").succeeds();
    assert!(onode!("mkdir", &image, "/d").fails(21).contains("/d"));
    let before = fs::read(&image).expect("image");
    onode!("mkfs", &image).fails(21);
    assert!(fs::read(&image).expect("image") == before);
}

#[test]
fn wrong_usage_is_explained() {
    let place = Place::new("usage");
    let image = place.image("disk.img");
    onode!("frobnicate").fails(2);
    onode!().fails(2);
    onode!("ls").fails(2);
    onode!("ls", &image, "/", "/").fails(2);
    onode!("check").fails(16);
    onode!("check", "--nothing", &image).fails(16);
    is_clear(&onode!("ls", "tape:drive").fails(2), "tape:drive");
    is_clear(&onode!("mkfs", "flash:x.img,colour=red").fails(2), "colour=red");
    is_clear(&onode!("mkfs", "ram:size=64M").fails(2), "ram:size=64M");
    is_clear(&onode!("mount", "-o", "colour", &image, place.directory("m")).fails(2), "colour");
    is_clear(&onode!("ls", &image, "/a/../b").fails(2), "..");
    is_clear(&onode!("rm", &image, "/").fails(2), "/");
    is_clear(&onode!("cp", "a", "b").fails(2), "a");
    is_clear(&onode!("put", &image, place.directory("d"), "/d").fails(2), "d");
    let mut spec = image.into_os_string();
    spec.push(",page=2K");
    assert!(onode!("ls", spec).fails(2).contains("page=4096"));
}

//! The command under the names by which mkfs(8) and fsck(8) call it: links to it, as packages make
//! them. What mount(8) calls is in `mount.rs`.

use crate::common::{Expect, Place, is_root};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with the links, and what calls one of them.
struct Links(PathBuf);

impl Links {
    fn of(place: &Place) -> Self {
        let folder = place.directory("sbin");
        for name in ["mkfs.onode", "fsck.onode"] {
            symlink(env!("CARGO_BIN_EXE_onode"), folder.join(name)).expect("symlink");
        }
        Self(folder)
    }

    fn call(&self, name: &str, arguments: &[&str], image: &Path) -> Command {
        let mut command = Command::new(self.0.join(name));
        command.args(arguments).arg(image).stdin(Stdio::null());
        command
    }

    /// A program of the system that looks for its helpers in PATH as well.
    fn system(&self, program: &str) -> Option<Command> {
        let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Path::new);
        let Some(program) = folders.iter().map(|folder| folder.join(program)).find(|path| path.exists()) else {
            eprintln!("skipped the part with {program}(8): it is not here");
            return None;
        };
        let mut command = Command::new(program);
        let mut path = OsString::from(&self.0);
        path.push(":/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("PATH", path).stdin(Stdio::null());
        Some(command)
    }
}

/// A sentence and a hint, from the helper by its name.
fn is_told_by(name: &str, error: &str, quoted: &str) {
    assert!(error.starts_with(&format!("{name}: cannot ")) && error.contains("\nhint: "), "{error}");
    assert!(error.contains(quoted), "{quoted} is not named: {error}");
}

/// Damages the content of the file whose bytes are `fill`, wherever it lies.
fn damage(image: &Path, fill: u8) {
    let bytes = fs::read(image).expect("image");
    let at = bytes.windows(4096).position(|window| window.iter().all(|&byte| byte == fill)).expect("the content");
    let file = OpenOptions::new().write(true).open(image).expect("image");
    file.write_all_at(&[!fill; 64], at as u64).expect("damage");
}

#[test]
fn mkfs_makes_volumes() {
    let place = Place::new("mkfs-helper");
    let links = Links::of(&place);
    let image = place.path("disk.img");
    assert!(links.call("mkfs.onode", &["-V"], Path::new("x")).succeeds().starts_with("mkfs.onode 0."));
    // 64 MiB in blocks of 1 KiB.
    let said = links.call("mkfs.onode", &["-v", "-L", "photos"], &image).arg("65536").succeeds();
    assert!(said.contains("photos") && said.contains("size=64M"), "{said}");
    let info = onode!("info", &image).succeeds();
    assert!(info.contains("photos"), "{info}");
    // What is there stays, unless its end is asked for.
    let error = links.call("mkfs.onode", &[], &image).fails(1);
    is_told_by("mkfs.onode", &error, "disk.img");
    links.call("mkfs.onode", &["--force", "--page", "2K", "--size", "32M"], &image).succeeds();
    assert!(!onode!("info", &image).succeeds().contains("photos"));
    for arguments in [&["--colour"][..], &["--size", "8M", "--size-in", "3"], &[]] {
        links.call("mkfs.onode", arguments, &image).fails(1);
    }
    let error = links.call("mkfs.onode", &["-f", "--size", "8M"], &image).arg("8192").fails(1);
    is_told_by("mkfs.onode", &error, "8192");
    Command::new(links.0.join("mkfs.onode")).fails(1);
}

#[test]
fn fsck_checks_and_repairs() {
    let place = Place::new("fsck-helper");
    let links = Links::of(&place);
    let image = place.image("disk.img");
    onode!("put", &image, place.file("f", &[7; 200_000]), "/f").succeeds();
    assert!(links.call("fsck.onode", &["-V"], Path::new("x")).succeeds().starts_with("fsck.onode 0."));
    for arguments in [&["-n"][..], &[], &["-a"], &["-p", "-f", "-C0"], &["-y", "-C", "0"], &["-r", "-v"]] {
        let said = links.call("fsck.onode", arguments, &image).succeeds();
        assert!(said.contains("clean"), "{said}");
    }
    let before = fs::read(&image).expect("image");
    links.call("fsck.onode", &["-n", "-f"], &image).succeeds();
    assert!(before == fs::read(&image).expect("image"), "-n changed something");

    damage(&image, 7);
    for arguments in [&["-n"][..], &["-a"], &["-y"]] {
        links.call("fsck.onode", arguments, &image).fails(4);
    }
    assert!(onode!("ls", &image).succeeds().contains('f'), "a repair gave up a file");
    links.call("fsck.onode", &["-y", "--drop-damaged"], &image).fails(1);
    links.call("fsck.onode", &["-n"], &image).succeeds();
}

#[test]
fn fsck_says_why_not() {
    let place = Place::new("fsck-refuses");
    let links = Links::of(&place);
    let image = place.image("disk.img");
    let error = links.call("fsck.onode", &["-n", "-y"], &image).fails(16);
    is_told_by("fsck.onode", &error, "only one");
    is_told_by("fsck.onode", &links.call("fsck.onode", &["-x"], &image).fails(16), "`-x`");
    is_told_by("fsck.onode", &Command::new(links.0.join("fsck.onode")).arg("-a").fails(16), "no device");
    is_told_by("fsck.onode", &links.call("fsck.onode", &["-a"], &place.path("gone")).fails(8), "gone");
    is_told_by("fsck.onode", &links.call("fsck.onode", &["-n"], &place.file("g", b"text")).fails(8), "g");
    links.call("fsck.onode", &["-n"], &image).arg("another").fails(16);
}

#[test]
fn the_programs_of_the_system_find_them() {
    if !is_root() {
        return;
    }
    let place = Place::new("system-helpers");
    let links = Links::of(&place);
    let image = place.path("disk.img");
    if let Some(mut mkfs) = links.system("mkfs") {
        mkfs.args(["-t", "onode", "-L", "by mkfs"]).arg(&image).arg("32768").succeeds();
        assert!(onode!("info", &image).succeeds().contains("by mkfs"));
    }
    let image = place.image("other.img");
    if let Some(mut fsck) = links.system("fsck") {
        let said = fsck.args(["-T", "-t", "onode", "-a", "-f", "-C5"]).arg(&image).succeeds();
        assert!(said.contains("clean"), "{said}");
    }
    // Its exit code is the helper's.
    if let Some(mut fsck) = links.system("fsck") {
        fsck.args(["-T", "-t", "onode", "-n"]).arg(place.path("gone")).fails(8);
    }
}

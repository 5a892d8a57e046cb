//! `onode put --atomic`: all files of a copy or an archive appear together, or none does.

use crate::common::{Expect, Place, bytes, has_fuse, is_clear, unmount, wait_until};
use crate::tar::fed;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tar::Header;

/// A tar archive of files with these contents.
fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_slice()).expect("a member");
    }
    archive.into_inner().expect("an archive")
}

/// All paths in an image, with what the files hold.
fn tree(image: &Path) -> String {
    let listed = onode!("find", image).succeeds();
    let files = listed.lines().filter(|path| path.ends_with("file"));
    let contents = files.map(|path| onode!("cat", image, path).output().expect("it runs").stdout.len().to_string());
    format!("{listed}{}", contents.collect::<Vec<_>>().join(" "))
}

/// More than a transaction of the device takes, and more than memory holds of one.
fn update() -> Vec<(&'static str, Vec<u8>)> {
    vec![("a/file", bytes(1, 300_000)), ("b/c/file", bytes(2, 12_000_000)), ("file", b"new".to_vec())]
}

#[test]
fn an_archive_that_is_cut_off_leaves_nothing() {
    let place = Place::new("atomic-tar");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("old", b"old"), "/file").succeeds();
    let (whole, before) = (archive(&update()), tree(&image));
    let free = || onode!("df", "--json", &image).succeeds();
    let free_before = free();
    for length in [whole.len() - 1024, whole.len() - 1500, 5_000_000, 200_000, 512 + 300_000 / 512 * 512] {
        let (code, told) = fed(&mut onode!("put", "--atomic", "--tar", &image, "-", "/"), &whole[..length]);
        assert!(code == 11 && told.contains("nothing was changed") && !told.contains("stays"), "{length}: {told}");
        assert_eq!(tree(&image), before, "{length}");
    }
    assert_eq!(free(), free_before, "space was lost");
    let (code, told) = fed(&mut onode!("put", "--atomic", "--tar", &image, "-", "/"), &whole);
    assert_eq!(code, 0, "{told}");
    for (name, content) in update() {
        assert!(onode!("cat", &image, format!("/{name}")).output().expect("it runs").stdout == content, "{name}");
    }
    onode!("check", &image).succeeds();
}

#[test]
fn an_error_in_the_middle_of_a_tree_leaves_nothing() {
    let place = Place::new("atomic-tree");
    let image = place.path("disk.img");
    onode!("mkfs", "--size", "32M", &image).succeeds();
    onode!("put", &image, place.file("old", b"old"), "/file").succeeds();
    onode!("mkdir", &image, "/in").succeeds();
    onode!("mkdir", &image, "/in/tree").succeeds();
    onode!("mkdir", &image, "/in/tree/last").succeeds();
    let before = tree(&image);
    let source = place.directory("tree");
    fs::write(source.join("first"), bytes(3, 500_000)).expect("content");
    // In the volume that is a directory.
    fs::write(source.join("last"), b"x").expect("content");
    let error = onode!("put", "--atomic", "-r", &image, &source, "/in").output().expect("it runs");
    let said = String::from_utf8_lossy(&error.stderr).into_owned();
    assert!(!error.status.success() && said.contains("nothing was changed"), "{said}");
    assert_eq!(tree(&image), before);
    fs::remove_file(source.join("last")).expect("removed");
    // Too large: it says what to do.
    fs::write(source.join("large"), bytes(4, 40 << 20)).expect("content");
    let error = onode!("put", "--atomic", "-r", &image, &source, "/in").fails(15);
    is_clear(&error, "large");
    assert!(error.contains("--atomic needs room") && error.contains("nothing was changed"), "{error}");
    assert_eq!(tree(&image), before);
    fs::remove_file(source.join("large")).expect("removed");
    onode!("put", "--atomic", "-r", &image, &source, "/in").succeeds();
    assert_eq!(onode!("ls", &image, "/in/tree").succeeds().lines().count(), 2);
    // Several files, and a single one.
    onode!("put", "--atomic", &image, source.join("first"), place.path("old"), "/in").succeeds();
    onode!("put", "--atomic", &image, place.path("old"), "/in/again").succeeds();
    assert_eq!(onode!("cat", &image, "/in/again").succeeds(), "old");
    onode!("put", "--atomic", "--resume", &image, place.path("old"), "/in/again").fails(2);
    onode!("check", &image).succeeds();
}

#[test]
fn an_interrupt_and_a_kill_leave_nothing() {
    let place = Place::new("atomic-interrupt");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("old", b"old"), "/file").succeeds();
    let (whole, before) = (archive(&update()), tree(&image));
    for signal in ["INT", "KILL"] {
        let mut command = onode!("put", "--atomic", "--tar", &image, "-", "/");
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        // More than memory holds of a transaction is on the device; the archive is not at its end.
        pipe.write_all(&whole[..11 << 20]).expect("the first of it");
        let waiting = || {
            fs::read_to_string(format!("/proc/{}/io", child.id())).is_ok_and(|io| {
                io.lines().any(|line| line.strip_prefix("rchar: ").and_then(|n| n.parse().ok()) > Some(11_u64 << 20))
            })
        };
        wait_until("it reads", waiting);
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        let output = child.wait_with_output().expect("it ends");
        drop(pipe);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        if signal == "INT" {
            assert!(output.status.code() == Some(1) && told.contains("interrupted; nothing was changed"), "{told}");
        }
        assert_eq!(tree(&image), before, "{signal}");
        onode!("check", &image).succeeds();
    }
}

#[test]
fn a_mounted_volume_gets_all_or_nothing() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("atomic-mount");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let at = |name: &str| directory.join(name);
    fs::write(at("file"), "old").expect("content");
    fs::create_dir(at("d")).expect("directory");
    let whole = archive(&update());
    for (target, length) in [(&directory, whole.len() - 1500), (&image, 5_000_000), (&directory, 200_000)] {
        let (code, told) = fed(&mut onode!("put", "--atomic", "--tar", target, "-", "/d"), &whole[..length]);
        assert!(code == 11 && told.contains("nothing was changed"), "{length}: {told}");
        assert_eq!(fs::read_dir(at("d")).expect("a list").count(), 0);
        assert_eq!(onode!("tx", "list", &directory).succeeds(), "no transaction is open\n");
    }
    let (code, told) = fed(&mut onode!("put", "--atomic", "--tar", &directory, "-", "/"), &whole);
    assert_eq!(code, 0, "{told}");
    for (name, content) in update() {
        assert!(fs::read(at(name)).expect(name) == content, "{name}");
    }
    // A tree, several files, and what would lead out of the volume.
    let source = place.directory("tree");
    fs::write(source.join("one"), b"1").expect("content");
    fs::write(source.join("two"), b"2").expect("content");
    onode!("put", "--atomic", "-r", &image, &source, "/d").succeeds();
    assert_eq!(fs::read(at("d/tree/two")).expect("content"), b"2");
    onode!("put", "--atomic", &directory, source.join("one"), source.join("two"), "/d").succeeds();
    let outside = place.directory("outside");
    std::os::unix::fs::symlink(&outside, at("link")).expect("a link");
    std::os::unix::fs::symlink(outside.join("file"), at("d/one-more")).expect("a link");
    for (remote, code) in [("/link/x", 21), ("/link", 21), ("/d/one-more", 21), ("/../x", 2), ("/d/../../x", 2)] {
        let error = onode!("put", "--atomic", &directory, source.join("one"), remote).fails(code);
        assert!(error.contains("nothing was changed"), "{remote}: {error}");
    }
    assert_eq!(fs::read_dir(&outside).expect("a list").count(), 0);
    let large = place.file("large", &bytes(5, 60 << 20));
    let error = onode!("put", "--atomic", &directory, &large, "/large").fails(15);
    assert!(error.contains("--atomic needs room") && !at("large").exists(), "{error}");
    let dry = onode!("put", "--atomic", "--dry-run", &directory, source.join("one"), "/dry").output().expect("it runs");
    assert!(dry.status.success() && !at("dry").exists());
    assert_eq!(onode!("tx", "list", &directory).succeeds(), "no transaction is open\n");
    is_clear(&onode!("put", "--atomic", place.directory("plain"), source.join("one")).fails(17), "plain");
    unmount(&directory);
    onode!("mount", "-o", "ro", &image, &directory).succeeds();
    is_clear(&onode!("put", "--atomic", &directory, source.join("one")).fails(14), "mnt");
    unmount(&directory);
    onode!("check", &image).succeeds();
}

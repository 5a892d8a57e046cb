//! What `onode check`, `repair` and mounts tell of damage, and what they ask for before anything is
//! given up.

use crate::common::{Expect, Place, Running, bytes, has_fuse, is_clear, wait_until};
use crate::scrub::{content, hurt};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const DAMAGED: i32 = 4;
const FAILED: i32 = 8;
const LOSS: i32 = 23;
const PAGE: usize = 4096;

/// What a command says, on standard output and error, with its exit code.
fn said(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("it starts");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.code(), text)
}

/// Changes one bit of every place where `pattern` stands.
fn flip(path: &Path, pattern: &[u8]) {
    let mut there = fs::read(path).expect("image");
    let places: Vec<usize> = (0..there.len() - pattern.len()).filter(|at| there[*at..].starts_with(pattern)).collect();
    assert!(!places.is_empty(), "the pattern is not in {}", path.display());
    places.into_iter().for_each(|at| there[at] ^= 1);
    fs::write(path, there).expect("image");
}

#[test]
fn a_repair_asks_before_it_gives_up_the_end_of_the_journal() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("damage-journal");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let up = Running::up(&directory, &image);
    for number in 0..3 {
        let mut file = fs::File::create(directory.join(format!("unmistakable{number}"))).expect("create");
        file.write_all(b"a content").expect("write");
        file.sync_all().expect("sync");
    }
    up.signal("KILL");
    up.end();
    assert!(Command::new("umount").arg("-l").arg(&directory).status().expect("umount").success());
    flip(&image, b"unmistakable2");
    let before = fs::read(&image).expect("image");
    onode!("ls", &image).fails(LOSS);
    let error = onode!("repair", &image).fails(FAILED);
    is_clear(&error, &image);
    assert!(error.contains("the journal") && error.contains("commit") && error.contains("given up"), "{error}");
    assert!(error.contains("--accept-loss") && error.contains("--drop-damaged"), "{error}");
    assert!(fs::read(&image).expect("image") == before, "a repair that was refused changed something");
    for consent in ["--accept-loss", "--drop-damaged"] {
        fs::write(&image, &before).expect("image");
        let (code, told) = said(&mut onode!("repair", consent, &image));
        assert!(code == Some(1) && told.contains("lost: the end of the journal"), "{told}");
        assert_eq!(onode!("ls", &image).succeeds(), "unmistakable0\nunmistakable1\n");
        onode!("check", &image).succeeds();
    }
}

/// The blocks of a file that begin as the superblock of a big disk does.
fn superblocks(disk: &Path) -> Vec<usize> {
    let there = fs::read(disk).expect("disk");
    (0..there.len() / PAGE).filter(|block| there[block * PAGE..].starts_with(b"ONODTIER")).collect()
}

/// Zeros in a block of a file.
fn wipe(disk: &Path, block: usize) {
    use std::os::unix::fs::FileExt;
    let file = fs::OpenOptions::new().write(true).open(disk).expect("disk");
    file.write_all_at(&[0; PAGE], (block * PAGE) as u64).expect("write");
}

#[test]
fn a_wiped_superblock_of_two_disks_is_told_and_written_again() {
    let place = Place::new("damage-copies");
    let (fast, big) = (place.path("fast"), place.path("big"));
    let spec = format!("tier:{},{}", fast.display(), big.display());
    onode!("mkfs", format!("{spec},size=64M,fast-size=64M")).succeeds();
    onode!("put", &spec, place.file("f", &bytes(1, 100_000)), "/f").succeeds();
    let all = superblocks(&big);
    assert_eq!(all.len(), 3);
    assert!(!onode!("check", &spec).succeeds().contains("superblock"));
    for (wiped, word) in [(0, "block 0"), (1, "block 1"), (2, "at the end")] {
        wipe(&big, all[wiped]);
        let told = onode!("check", &spec).succeeds();
        assert!(told.contains("superblock") && told.contains(word), "{told}");
        assert_eq!(superblocks(&big).len(), 2, "a check wrote something");
        let (code, told) = said(&mut onode!("repair", &spec));
        assert!(code == Some(1) && told.contains("superblock") && told.contains(word), "{told}");
        assert_eq!(superblocks(&big), all);
        assert!(!onode!("check", &spec).succeeds().contains("superblock"));
        assert_eq!(said(&mut onode!("repair", &spec)).0, Some(0));
    }
    // Whoever changes something writes them all.
    wipe(&big, all[2]);
    onode!("mkdir", &spec, "/d").succeeds();
    assert_eq!(superblocks(&big), all);
}

/// An image, and a file that is used like a device.
fn volumes_on_flash(place: &Place) -> Vec<PathBuf> {
    let direct = place.path("direct.img");
    onode!("mkfs", "--size", "32M", format!("{},direct", direct.display())).succeeds();
    vec![place.image("disk.img"), direct]
}

#[test]
fn a_wrong_bit_in_the_first_bytes_hides_no_volume() {
    let place = Place::new("damage-first-bytes");
    for image in volumes_on_flash(&place) {
        onode!("put", &image, place.file("f", b"content"), "/f").succeeds();
        let whole = fs::read(&image).expect("image");
        for (at, bit) in [(0, 1), (2, 4), (7, 128)] {
            let mut hurt = whole.clone();
            hurt[at] ^= bit;
            fs::write(&image, &hurt).expect("image");
            for verb in ["info", "check", "ls"] {
                onode!(verb, &image).succeeds();
                assert!(fs::read(&image).expect("image") == hurt, "{verb} wrote something");
            }
            assert_eq!(onode!("cat", &image, "/f").succeeds(), "content");
            onode!("repair", &image).succeeds();
            assert!(fs::read(&image).expect("image")[..8] == whole[..8], "the first bytes are not mended");
            if has_fuse() {
                fs::write(&image, &hurt).expect("image");
                let directory = place.directory("mnt");
                onode!("mount", &image, &directory).succeeds();
                assert_eq!(fs::read(directory.join("f")).expect("read"), b"content");
                crate::common::unmount(&directory);
            }
        }
    }
}

/// What somebody wrote over the start is no damage: it may be another file system.
#[test]
fn what_is_no_image_is_refused_and_never_written_to() {
    let place = Place::new("damage-foreign");
    for image in volumes_on_flash(&place) {
        let whole = fs::read(&image).expect("image");
        let with_start = |start: &[u8]| [start, &whole[start.len()..]].concat();
        let mut foreign = vec![bytes(3, whole.len()), with_start(&bytes(4, PAGE)), with_start(&bytes(5, 512))];
        // The first bytes alone make nothing an image.
        foreign.push([&whole[..8], &bytes(6, 1 << 20)].concat());
        for there in foreign {
            fs::write(&image, &there).expect("image");
            for verb in ["info", "check", "repair", "ls"] {
                let (code, told) = said(&mut onode!(verb, &image));
                assert!(code != Some(0) && told.contains("cannot open"), "{verb}: {told}");
            }
            assert!(fs::read(&image).expect("image") == there, "something was written");
        }
    }
}

/// Two members, of which some pages of a file are damaged on both.
#[test]
fn a_pool_gives_up_what_all_members_have_damaged_if_that_is_asked_for() {
    let place = Place::new("damage-pool");
    let images = ["a.img", "b.img"].map(|name| place.path(name));
    let [one, other] = images.each_ref().map(|image| format!("flash:{}", image.display()));
    onode!("mkfs", format!("pool:{one},size=32M+{other},size=32M")).succeeds();
    let pool = format!("pool:{one}+{other}");
    let (lost, left) = (content("lost", 400_000), content("left", 400_000));
    onode!("put", &pool, place.file("lost", &lost), "/lost").succeeds();
    onode!("put", &pool, place.file("left", &left), "/left").succeeds();
    for image in &images {
        hurt(image, &lost, 100_000);
        hurt(image, &lost, 300_000);
    }
    // Each has what the other one lacks.
    hurt(&images[0], &left, 50_000);
    hurt(&images[1], &left, 350_000);
    let (code, told) = said(&mut onode!("repair", &pool));
    assert!(code == Some(DAMAGED) && !told.contains("the file is /left"), "{told}");
    assert!(told.contains("the file is /lost"), "{told}");
    let (code, told) = said(&mut onode!("repair", "--drop-damaged", &pool));
    assert!(code == Some(1) && told.contains("restore from a backup: /lost"), "{told}");
    assert!(!told.contains("/left"), "{told}");
    onode!("check", &pool).succeeds();
    for (name, before) in [("/lost", &lost), ("/left", &left)] {
        let to = place.path("out");
        let _ = fs::remove_file(&to);
        onode!("get", &pool, name, &to).succeeds();
        let now = fs::read(&to).expect("out");
        assert_eq!(now.len(), before.len());
        let other: Vec<usize> =
            (0..now.len() / 64 * 64).step_by(64).filter(|at| now[*at..at + 64] != before[*at..at + 64]).collect();
        assert!(other.iter().all(|at| now[*at..at + 64].iter().all(|byte| *byte == 0)), "{name}: made up");
        match name {
            "/left" => assert!(other.is_empty(), "something was dropped that a member had"),
            _ => assert!(!other.is_empty() && other.len() <= 2 * 2 * PAGE / 64, "{} pieces are gone", other.len()),
        }
    }
    // Every member has the same, by itself.
    for member in [&one, &other] {
        assert!(onode!("ls", member).succeeds().contains("lost"));
    }
}

#[test]
fn a_mount_in_the_background_finds_keys_by_relative_paths() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("damage-relative");
    place.file("key", &[7; 40]);
    let here = place.path("key").parent().expect("a directory").to_owned();
    let run = |words: &[&str]| {
        let mut command = crate::common::onode();
        command.args(words).current_dir(&here);
        command
    };
    run(&["mkfs", "--size", "32M", "--encrypt", "--key-file", "key", "safe.img"]).succeeds();
    run(&["mkfs", "--size", "32M", "--encrypt-directories", "dirs.img"]).succeeds();
    let mnt = place.directory("mnt");
    run(&["mkdir", "dirs.img", "/alice"]).succeeds();
    run(&["key", "new", "dirs.img", "/alice", "--new-key-file", "key"]).succeeds();
    run(&["--unlock", "key", "put", "dirs.img", "key", "/alice/file"]).succeeds();
    let unmount = || {
        wait_until("it is mounted", || crate::common::is_mounted(&mnt));
        crate::common::unmount(&mnt);
    };
    run(&["mount", "safe.img", "mnt"]).env("ONODE_KEY_FILE", "key").succeeds();
    unmount();
    for option in ["key-file=key", "passphrase-file=key", "key-file=./key"] {
        let mut command = run(&["mount", "-o", option, "safe.img", "mnt"]);
        match option.starts_with("key") {
            true => {
                command.succeeds();
                unmount();
            }
            // What it opens is another matter: it was found.
            false => assert!(!command.fails(24).contains("No such file")),
        }
    }
    run(&["mount", "-o", "unlock=key", "dirs.img", "mnt"]).succeeds();
    assert!(fs::read(mnt.join("alice/file")).expect("unlocked") == [7; 40]);
    unmount();
}

/// Zeros in the place of a target lead nowhere, and `get -a` fails at them.
#[test]
fn symbolic_links_that_lost_their_targets_are_dropped_and_named() {
    let place = Place::new("damage-links");
    let (image, tree) = (place.image("disk.img"), place.directory("tree"));
    let target = |number: usize| format!("target{number}{}", "x".repeat(3_000));
    for number in 0..6 {
        std::os::unix::fs::symlink(target(number), tree.join(format!("link{number}"))).expect("symlink");
    }
    onode!("put", "-a", &image, &tree, "/tree").succeeds();
    flip(&image, b"target3");
    let (code, told) = said(&mut onode!("repair", &image));
    assert!(code == Some(DAMAGED) && told.contains("the file is /tree/link3"), "nobody asked for it: {told}");
    let (code, told) = said(&mut onode!("repair", "--drop-damaged", &image));
    assert!(code == Some(1) && told.contains("restore from a backup: /tree/link3"), "{told}");
    onode!("check", &image).succeeds();
    let left = onode!("ls", &image, "/tree").succeeds();
    assert!(!left.contains("link3") && left.contains("link0"), "{left}");
    let back = place.path("back");
    onode!("get", "-a", &image, "/tree", &back).succeeds();
    for name in left.lines() {
        assert!(!told.contains(&format!("/tree/{name}\n")), "{name} is there: {told}");
        let there = fs::read_link(back.join(name)).expect("a link");
        assert_eq!(there.to_str(), Some(target(name[4..].parse().expect("a number")).as_str()));
    }
}

//! Encrypted volumes as people use them: made, opened by every command and mounted with a key,
//! refused without one, and their keys changed.

use crate::common::{Expect, Place, bytes, has_fuse, is_clear, onode};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const KEY: i32 = 24;

/// An encrypted image, and the file of its key.
fn made(place: &Place) -> (PathBuf, PathBuf) {
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 32]));
    onode!("mkfs", "--size", "64M", "--encrypt", "--key-file", &key, &image).succeeds();
    (image, key)
}

fn put(place: &Place, image: &Path, key: &Path) {
    let file = place.file("plain", b"a text that nobody else may read\n");
    onode!("--key-file", key, "put", image, file, "/a-name-of-a-file").succeeds();
}

#[test]
fn every_command_needs_the_key_and_the_image_shows_nothing() {
    let place = Place::new("locked");
    let (image, key) = made(&place);
    put(&place, &image, &key);
    let wrong = place.file("wrong", &[8; 32]);
    let before = fs::read(&image).expect("image");
    for verb in ["ls", "info", "stat", "du", "tree"] {
        is_clear(&onode!(verb, &image).fails(KEY), "encrypted");
        is_clear(&onode!("--key-file", &wrong, verb, &image).fails(KEY), "key-file");
    }
    is_clear(&onode!("check", &image).fails(8), "encrypted");
    assert!(fs::read(&image).expect("image") == before, "a refusal changed the image");
    assert_eq!(
        onode!("--key-file", &key, "cat", &image, "/a-name-of-a-file").succeeds(),
        "a text that nobody else may read\n"
    );
    onode!("--key-file", &key, "check", &image).succeeds();
    let bytes = fs::read(&image).expect("image");
    for piece in [&b"nobody else"[..], b"a-name-of"] {
        assert!(!bytes.windows(piece.len()).any(|window| window == piece), "{}", String::from_utf8_lossy(piece));
    }
}

/// Damages one page of the content that a change of the image wrote: the middle one of all.
fn damage_what_came(image: &Path, before: &[u8]) {
    let mut now = fs::read(image).expect("image");
    let pages = (0..now.len()).step_by(4096);
    let changed: Vec<usize> = pages.filter(|at| now.get(*at..*at + 4096) != before.get(*at..*at + 4096)).collect();
    let at = changed[changed.len() / 2] + 50;
    now[at..at + 4].iter_mut().for_each(|byte| *byte = !*byte);
    fs::write(image, now).expect("image");
}

/// Also where more than a key is asked for: what a repair dropped would be read as good zeros.
#[test]
fn a_repair_that_is_refused_for_its_key_drops_nothing() {
    let place = Place::new("repair-locked");
    let (wrong, plain) = (place.file("wrong", &[8; 32]), place.file("f", &bytes(7, 1 << 20)));
    for authenticated in [false, true] {
        let (image, key) = (place.path("disk.img"), place.file("key", &[7; 32]));
        let mut make = onode!("mkfs", "--force", "--size", "32M", "--encrypt", "--key-file", &key, &image);
        if authenticated {
            make.arg("--authenticate");
        }
        make.succeeds();
        let before = fs::read(&image).expect("image");
        onode!("--key-file", &key, "put", &image, &plain, "/f").succeeds();
        let mut later = String::new();
        if authenticated {
            let newer = place.path("newer.img");
            fs::copy(&image, &newer).expect("a copy");
            onode!("--key-file", &key, "mkdir", &newer, "/more").succeeds();
            later = onode!("--key-file", &key, "key", "anchor", &newer).succeeds();
        }
        damage_what_came(&image, &before);
        let damaged = fs::read(&image).expect("image");
        let said = onode!("--key-file", &key, "check", &image).output().expect("it starts");
        assert_eq!(said.status.code(), Some(4), "{}", String::from_utf8_lossy(&said.stdout));
        for flags in [&["--drop-damaged"][..], &[], &["--drop-damaged", "--accept-loss"]] {
            is_clear(&onode!("repair", &image).args(flags).fails(8), "no key");
            is_clear(&onode!("--key-file", &wrong, "repair", &image).args(flags).fails(8), "key-file");
            if authenticated {
                let mut expecting = onode!("--key-file", &key, "--expect-anchor", later.trim(), "repair", &image);
                is_clear(&expecting.args(flags).fails(4), "older");
            }
            assert!(fs::read(&image).expect("image") == damaged, "a repair that was refused changed the image");
        }
        let said = onode!("--key-file", &key, "repair", "--drop-damaged", &image).output().expect("it starts");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("restore from a backup: /f"), "{authenticated}: {said}");
        onode!("--key-file", &key, "check", &image).succeeds();
    }
}

#[test]
fn the_variable_names_the_first_key_and_no_new_one() {
    let place = Place::new("variable");
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 32]));
    let mut make = onode!("mkfs", "--size", "16M", "--encrypt", &image);
    make.env("ONODE_KEY_FILE", &key).stdin(Stdio::null()).succeeds();
    onode!("--key-file", &key, "ls", &image).succeeds();
    onode!("ls", &image).env("ONODE_KEY_FILE", &key).succeeds();
    // A volume has that key already: the new one is to be told.
    onode!("key", "add", &image).env("ONODE_KEY_FILE", &key).stdin(Stdio::null()).fails(KEY);
}

#[test]
fn keys_are_added_changed_and_removed() {
    let place = Place::new("keys");
    let (image, key) = made(&place);
    put(&place, &image, &key);
    let words = place.file("words", b"correct horse\n");
    let list = |image: &Path| -> Value {
        serde_json::from_str(&onode!("--json", "key", "list", image).succeeds()).expect("JSON")
    };
    is_clear(&onode!("key", "add", "--new-passphrase-file", &words, &image).fails(KEY), "encrypted");
    let cheap = ["--kdf-memory", "1M", "--kdf-passes", "1", "--label", "spare"];
    onode()
        .args(["key", "add"])
        .args(cheap)
        .arg("--new-passphrase-file")
        .args([&words, &image])
        .arg("--key-file")
        .arg(&key)
        .succeeds();
    let slots = list(&image)["slots"].clone();
    assert_eq!((&slots[1]["kind"], &slots[1]["label"]), (&"passphrase".into(), &"spare".into()));
    assert_eq!(slots[1]["kdf"]["memory_bytes"], 1 << 20);
    // A passphrase from standard input.
    let ls = onode()
        .args(["--passphrase-file", "-", "ls"])
        .arg(&image)
        .stdin(fs::File::open(&words).expect("words"))
        .succeeds();
    assert_eq!(ls, "a-name-of-a-file\n");
    is_clear(&onode!("--key-file", &key, "key", "remove", &image, "0").fails(2), "slot 0");
    is_clear(&onode!("--key-file", &key, "key", "remove", &image, "9").fails(20), "9");
    let other = place.file("other", &[9; 40]);
    onode!("--key-file", &key, "key", "change", &image, "--new-key-file", &other).succeeds();
    onode!("--key-file", &key, "ls", &image).fails(KEY);
    onode!("--key-file", &other, "key", "remove", &image, "1").succeeds();
    onode!("--passphrase-file", &words, "ls", &image).fails(KEY);
    assert_eq!(list(&image)["slots"].as_array().map(Vec::len), Some(1));
    let said = onode!("--key-file", &other, "key", "test", &image).succeeds();
    assert!(said.contains("opens slot 2"), "{said}");
}

#[test]
fn bad_keys_are_told_clearly() {
    let place = Place::new("bad-keys");
    let (short, image) = (place.file("short", &[1; 31]), place.path("disk.img"));
    is_clear(&onode!("mkfs", "--encrypt", "--key-file", &short, &image).fails(KEY), "32");
    is_clear(&onode!("mkfs", "--encrypt", "--key-file", place.path("none"), &image).fails(20), "none");
    is_clear(&onode!("mkfs", "--encrypt", "--keyring", "no-such-key-of-onode", &image).fails(KEY), "no-such-key");
    is_clear(&onode!("mkfs", "--encrypt", "--passphrase-file", place.file("empty", b"\n"), &image).fails(KEY), "empty");
    is_clear(&onode!("mkfs", "--key-file", place.file("key", &[7; 32]), &image).fails(2), "--encrypt");
    let large = place.file("large", &vec![1; 100_000]);
    is_clear(&onode!("mkfs", "--encrypt", "--key-file", &large, &image).fails(KEY), "65536");
    let words = place.file("words", b"horse");
    let absurd = onode!("mkfs", "--encrypt", "--passphrase-file", &words, "--kdf-memory", "3T", &image).fails(2);
    is_clear(&absurd, "Argon2id");
    assert!(!image.exists(), "an image was made without a key");
    let plain = place.image("plain.img");
    is_clear(&onode!("key", "list", &plain).fails(2), "not encrypted");
    // A key that is not needed does no harm.
    onode!("--key-file", &short, "ls", &plain).succeeds();
}

#[test]
fn an_encrypted_volume_is_mounted_with_its_key() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("encrypted-mount");
    let (image, key) = made(&place);
    let directory = place.directory("mnt");
    is_clear(&onode!("mount", &image, &directory).fails(KEY), "encrypted");
    onode!("mount", "--key-file", &key, &image, &directory).succeeds();
    fs::write(directory.join("file"), vec![5; 100_000]).expect("write");
    onode!("umount", &directory).succeeds();
    let option = format!("key-file={},compress=fast", key.display());
    onode!("mount", "-o", option, &image, &directory).succeeds();
    assert_eq!(fs::read(directory.join("file")).expect("read"), vec![5; 100_000]);
    fs::write(directory.join("shrinks"), vec![6; 1 << 20]).expect("write");
    onode!("umount", &directory).succeeds();
    // From standard input to a process in the background.
    let words = place.file("words", b"horse");
    onode!("--key-file", &key, "key", "add", "--kdf-memory", "1M", "--new-passphrase-file", &words, &image).succeeds();
    let mut mount = onode();
    mount.args(["mount", "--passphrase-file", "-"]).args([&image, &directory]);
    mount.stdin(fs::File::open(&words).expect("words")).stdout(Stdio::null()).succeeds();
    assert_eq!(fs::read(directory.join("shrinks")).expect("read"), vec![6; 1 << 20]);
    onode!("umount", &directory).succeeds();
    onode!("--key-file", &key, "check", &image).succeeds();
}

/// Nobody who asks for encryption gets a volume without it.
#[test]
fn up_makes_no_plain_volume_where_a_key_is_given() {
    let place = Place::new("up-encrypted");
    let (key, directory) = (place.file("key", &[7; 32]), place.directory("mnt"));
    let plain = place.image("plain.img");
    is_clear(&onode!("up", "--encrypt", "--key-file", &key, &directory, &plain).fails(2), "not encrypted");
    let new = place.path("new.img");
    is_clear(&onode!("up", "--key-file", &key, &directory, &new).fails(2), "--encrypt");
    is_clear(&onode!("up", "--encrypt", "--key-file", &key, &directory, "ram:size=8M").fails(2), "not encrypted");
    assert!(!new.exists());
}

/// What needs a key twice, of one volume or of two, reads standard input once, and would ask a
/// person once.
#[test]
fn a_key_that_opened_a_volume_is_not_asked_for_again() {
    let place = Place::new("asked-once");
    let words = place.file("words", b"correct horse\n");
    let by_input = |arguments: &[&Path]| {
        let mut command = onode();
        command.args(["--passphrase-file", "-"]).args(arguments);
        command.stdin(fs::File::open(&words).expect("words")).succeeds();
    };
    let images = [place.path("one.img"), place.path("two.img")];
    for image in &images {
        let mut mkfs = onode();
        mkfs.args(["mkfs", "--size", "64M", "--encrypt", "--kdf-memory", "1M", "--passphrase-file"]);
        mkfs.args([&words, image]).succeeds();
    }
    let [one, two] = &images;
    let (key, path) = (place.file("key", &[7; 32]), Path::new);
    by_input(&[path("key"), path("add"), path("--new-key-file"), &key, one]);
    put(&place, one, &key);
    let [from, to] =
        [(one, "a-name-of-a-file"), (two, "copy")].map(|(image, name)| format!("{}:/{name}", image.display()));
    by_input(&[path("cp"), path(&from), path(&to)]);
    onode!("--passphrase-file", &words, "ls", two).succeeds();
}

/// Damages the newest root of the index and its copy: only an older checkpoint can be opened.
fn damage_the_root(image: &Path) {
    let told = onode!("dump", image, "superblock").succeeds();
    let newest = told.lines().skip_while(|line| !line.ends_with("newest"));
    let root =
        newest.skip(2).find_map(|line| line.rsplit_once(" bytes at ")?.1.split(' ').next()?.parse::<usize>().ok());
    let root = root.expect("a root");
    // Behind the header and two blocks of superblocks; each block of 64 pages has a page of spare
    // bytes.
    let at = 8192 + (2 + root / (64 * 4096)) * 65 * 4096 + root % (64 * 4096);
    let mut bytes = fs::read(image).expect("image");
    let key = bytes[at + 30..at + 130].to_vec();
    let places: Vec<usize> = (0..bytes.len() - key.len()).filter(|from| bytes[*from..].starts_with(&key)).collect();
    assert!(places.len() >= 2, "{places:?}");
    for place in places {
        bytes[place + 20] ^= 0xff;
    }
    fs::write(image, bytes).expect("image");
}

#[test]
fn a_repair_asks_before_it_drops_what_hides_the_key() {
    let place = Place::new("repair-hidden");
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 32]));
    onode!("mkfs", "--size", "32M", "--encrypt", "--key-file", &key, &image).succeeds();
    put(&place, &image, &key);
    onode!("--key-file", &key, "mkdir", &image, "/later").succeeds();
    damage_the_root(&image);
    let damaged = fs::read(&image).expect("image");
    // Nothing can be opened, so no key can be tried: the right one is no better than none.
    for keys in [&[][..], &["--key-file".as_ref(), key.as_os_str()]] {
        let error = onode!("repair", "--drop-damaged", &image).args(keys).fails(8);
        is_clear(&error, "damage hides whether it is encrypted");
        assert!(error.contains("--accept-loss"), "{error}");
        assert!(fs::read(&image).expect("image") == damaged, "a repair that was refused changed the image");
    }
    let copy = place.path("copy.img");
    fs::copy(&image, &copy).expect("a copy");
    // With consent to a loss nothing is lost that an older checkpoint has, and without leave to
    // drop the same is done unasked.
    let mut consented = onode!("--key-file", &key, "repair", "--drop-damaged", "--accept-loss", &copy);
    let mut plain = onode!("--key-file", &key, "repair", &image);
    for (repair, image) in [(&mut consented, &copy), (&mut plain, &image)] {
        let repaired = repair.output().expect("it starts");
        let said = String::from_utf8_lossy(&repaired.stdout).into_owned();
        assert!(repaired.status.code() == Some(1) && said.contains("all is there with that of"), "{said}");
        onode!("--key-file", &key, "check", image).succeeds();
        assert!(onode!("--key-file", &key, "ls", image).succeeds().contains("later"));
    }
}

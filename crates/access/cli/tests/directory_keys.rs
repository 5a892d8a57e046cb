//! Keys of directories as people use them: on a mount, whose kernel forgets what was locked, and of
//! images.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, is_root, unmount};
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// A key is needed.
pub const KEY: i32 = 24;
pub const USAGE: i32 = 2;
const PERMISSION: i32 = 22;
/// What the kernel says of it.
const ENOKEY: i32 = 126;

pub struct Made {
    pub place: Place,
    pub image: PathBuf,
    pub key: PathBuf,
}

/// An image of which only directories are encrypted.
pub fn made(name: &str, settings: &str) -> Made {
    let place = Place::new(name);
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 40]));
    let spec = format!("flash:{},size=32M{settings}", image.display());
    onode!("mkfs", "--encrypt-directories", spec).succeeds();
    Made { place, image, key }
}

impl Made {
    pub fn mounted(&self) -> (PathBuf, Running) {
        let mount = self.place.directory("mnt");
        let up = Running::up(&mount, &self.image);
        (mount, up)
    }

    /// A directory with a key and a file.
    pub fn filled(&self, directory: &Path) {
        fs::create_dir(directory).expect("mkdir");
        onode!("key", "new", directory, "--new-key-file", &self.key).succeeds();
        fs::create_dir(directory.join("deep")).expect("mkdir");
        fs::write(directory.join("deep/file"), "a secret").expect("write");
    }
}

pub fn is_locked(result: std::io::Result<impl Sized>) -> bool {
    result.is_err_and(|error| error.raw_os_error() == Some(ENOKEY))
}

#[test]
fn a_mount_forgets_what_is_locked_and_shows_it_again() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-mount", "");
    let (mount, _up) = made.mounted();
    let alice = mount.join("alice");
    made.filled(&alice);
    let (file, plain) = (alice.join("deep/file"), mount.join("plain"));
    fs::write(&plain, "plain").expect("write");
    assert_eq!(fs::read_to_string(&file).expect("read"), "a secret");
    let open = fs::File::options().read(true).write(true).open(&file).expect("open");
    let told = onode!("--json", "key", "lock", &alice).succeeds();
    assert_eq!(serde_json::from_str::<Value>(&told).expect("JSON")["keys"], serde_json::json!([1]));
    assert!(onode!("key", "lock", &alice).succeeds().contains("locked already"));
    for (what, is_locked) in [
        (
            "names",
            is_locked(
                fs::read_dir(&alice).and_then(|mut all| all.next().unwrap_or_else(|| Err(ErrorKind::NotFound.into()))),
            ),
        ),
        ("content", is_locked(fs::read(&file))),
        ("what is open", is_locked(std::io::read_to_string(&open))),
        ("a write to what is open", is_locked(open.write_at(b"x", 3))),
        ("a new file", is_locked(fs::write(alice.join("new"), "x"))),
        ("a name that is not there", is_locked(fs::metadata(alice.join("absent")))),
        ("a move", is_locked(fs::rename(&plain, alice.join("plain")))),
    ] {
        assert!(is_locked, "{what}");
    }
    drop(open);
    assert_eq!(fs::read_to_string(&plain).expect("read"), "plain");
    assert!(fs::metadata(&alice).expect("the directory itself").is_dir());
    // Another name for it, other permissions, and no removal while there is something in it.
    let renamed = mount.join("renamed");
    fs::rename(&alice, &renamed).expect("rename");
    fs::set_permissions(&renamed, fs::Permissions::from_mode(0o700)).expect("chmod");
    assert!(fs::remove_dir(&renamed).is_err());
    fs::rename(&renamed, &alice).expect("rename");
    let error = onode!("--key-file", made.place.file("wrong", &[8; 40]), "key", "unlock", &alice).fails(KEY);
    is_clear(&error, "key 1");
    onode!("--key-file", &made.key, "key", "unlock", &alice).succeeds();
    assert_eq!(fs::read_to_string(&file).expect("read"), "a secret");
    unmount(&mount);
    is_clear(&onode!("cat", &made.image, "/alice/deep/file").fails(KEY), "alice");
    onode!("check", &made.image).succeeds();
    assert_eq!(onode!("--unlock", &made.key, "cat", &made.image, "/alice/deep/file").succeeds(), "a secret");
    onode!("--unlock", made.place.file("wrong", &[8; 40]), "cat", &made.image, "/alice/deep/file").fails(KEY);
}

#[test]
fn keys_are_made_listed_and_changed() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-changed", "");
    let (mount, _up) = made.mounted();
    let alice = mount.join("alice");
    made.filled(&alice);
    let words = made.place.file("words", b"correct horse\n");
    let cost = ["--kdf-memory", "64K", "--kdf-passes", "1"];
    let mut add = onode!("key", "add", &alice, "--new-passphrase-file", &words, "--label", "by heart");
    add.args(cost).succeeds();
    let listed = onode!("key", "list", &alice).succeeds();
    assert!(listed.contains("needs key 1") && listed.contains("by heart") && listed.contains("unlocked"), "{listed}");
    onode!("key", "remove", &alice, "0").succeeds();
    is_clear(&onode!("key", "remove", &alice, "1").fails(USAGE), "last slot");
    is_clear(&onode!("key", "remove", &alice, "7").fails(20), "7");
    is_clear(&onode!("key", "change", &alice).fails(USAGE), "alice");
    onode!("key", "lock", &alice).succeeds();
    onode!("--key-file", &made.key, "key", "unlock", &alice).fails(KEY);
    is_clear(&onode!("key", "add", &alice, "--new-key-file", &made.key).fails(KEY), "locked");
    // Of a directory without a key: all that it opens.
    onode!("--passphrase-file", &words, "key", "unlock", &mount).succeeds();
    assert_eq!(fs::read_to_string(alice.join("deep/file")).expect("read"), "a secret");
    // What can have none.
    for wrong in [&mount, &alice, &alice.join("deep")] {
        is_clear(&onode!("key", "new", wrong, "--new-key-file", &made.key).fails(USAGE), "key");
    }
    fs::create_dir(mount.join("full")).expect("mkdir");
    fs::write(mount.join("full/file"), "x").expect("write");
    is_clear(&onode!("key", "new", mount.join("full"), "--new-key-file", &made.key).fails(USAGE), "files");
    onode!("key", "lock", mount.join("full")).fails(USAGE);
    assert_eq!(onode!("key", "list", &mount).succeeds().matches("of directories").count(), 1);
    unmount(&mount);
    let listed = onode!("key", "list", &made.image).succeeds();
    assert!(listed.contains("in directories with keys") && listed.contains("by heart"), "{listed}");
    // The key of such a volume is no secret, and stays none.
    is_clear(&onode!("key", "add", &made.image, "--new-key-file", &made.key).fails(USAGE), "directories");
}

#[test]
fn a_mount_can_begin_with_keys_unlocked() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-at-mount", "");
    onode!("mkdir", &made.image, "/alice").succeeds();
    onode!("key", "new", &made.image, "/alice", "--new-key-file", &made.key).succeeds();
    onode!("--unlock", &made.key, "put", &made.image, made.place.file("x", b"in it"), "/alice/x").succeeds();
    // What looks through a volume goes on behind it, and tells.
    onode!("mkdir", &made.image, "/bob").succeeds();
    onode!("put", &made.image, made.place.file("z", b"z"), "/bob/z").succeeds();
    for (verb, found) in [("find", "bob/z"), ("tree", "z"), ("du", "bob")] {
        let output = onode!(verb, &made.image).output().expect("onode runs");
        let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(KEY), "{verb}: {error}");
        assert!(
            told.contains(found) && error.contains("/alice") && error.contains("--unlock"),
            "{verb}: {told}{error}"
        );
        onode!("--unlock", &made.key, verb, &made.image).succeeds();
    }
    onode!("put", &made.image, made.place.file("x", b"in it"), "/alice/y").fails(KEY);
    onode!(
        "--unlock",
        &made.key,
        "key",
        "add",
        &made.image,
        "/alice",
        "--new-key-file",
        made.place.file("2", &[9; 33])
    )
    .succeeds();
    let mount = made.place.directory("mnt");
    onode!("mount", "-o", format!("unlock={}", made.key.display()), &made.image, &mount).succeeds();
    assert_eq!(fs::read_to_string(mount.join("alice/x")).expect("read"), "in it");
    unmount(&mount);
    let wrong = made.place.file("wrong", &[1; 40]);
    onode!("mount", "-o", format!("unlock={}", wrong.display()), &made.image, &mount).fails(KEY);
    // Made of a directory, and looked at with each of two keys.
    assert_eq!(onode!("--unlock", made.place.path("2"), "cat", &made.image, "/alice/x").succeeds(), "in it");
}

#[test]
fn only_the_owner_changes_the_key_of_a_directory() {
    if !has_fuse() || !is_root() {
        return;
    }
    let made = made("keys-owner", "");
    let (mount, _up) = made.mounted();
    let (alice, open) = (mount.join("alice"), mount.join("open"));
    made.filled(&alice);
    fs::set_permissions(&mount, fs::Permissions::from_mode(0o755)).expect("chmod");
    fs::set_permissions(&alice, fs::Permissions::from_mode(0o777)).expect("chmod");
    fs::create_dir(&open).expect("mkdir");
    std::os::unix::fs::chown(&open, Some(4321), Some(4321)).expect("chown");
    fs::set_permissions(made.place.path(""), fs::Permissions::from_mode(0o755)).expect("chmod");
    let as_other = |mut command: std::process::Command| {
        command.uid(4321).gid(4321);
        command
    };
    let error = as_other(onode!("key", "lock", &alice)).fails(PERMISSION);
    is_clear(&error, "owner");
    let (own, other) = (made.place.file("own", &[3; 40]), made.place.file("other", &[4; 40]));
    for key in [&own, &other, &made.key] {
        fs::set_permissions(key, fs::Permissions::from_mode(0o644)).expect("chmod");
    }
    // Who was given a place in it, and takes that elsewhere, gets at nothing by that.
    let place = alice.join("place");
    fs::create_dir(&place).expect("mkdir");
    std::os::unix::fs::chown(&place, Some(4321), Some(4321)).expect("chown");
    fs::rename(&place, open.join("place")).expect("rename");
    for (words, exit_code) in [(&["add"][..], KEY), (&["remove", "0"], KEY), (&["remove", "0", "--destroy"], KEY)] {
        let mut command = onode!("--key-file", &own, "key", words[0], open.join("place"));
        command.args(&words[1..]);
        if words == ["add"] {
            command.arg("--new-key-file").arg(&own);
        }
        as_other(command).fails(exit_code);
    }
    as_other(onode!("key", "remove", &alice, "0", "--destroy")).fails(KEY);
    fs::rename(open.join("place"), &place).expect("rename");
    as_other(onode!("key", "new", &open, "--new-key-file", &own, "--kdf-memory", "1G")).fails(PERMISSION);
    as_other(onode!("key", "new", &open, "--new-key-file", &own)).succeeds();
    as_other(onode!("--key-file", &own, "key", "add", &open, "--new-key-file", &other)).succeeds();
    as_other(onode!("--key-file", &own, "key", "remove", &open, "2")).succeeds();
    as_other(onode!("--key-file", &own, "key", "remove", &open, "1", "--destroy")).succeeds();
    // A key whose directory is gone is removed by its slot.
    onode!("key", "remove", &mount, "7", "--destroy").fails(20);
    as_other(onode!("key", "lock", &alice)).fails(PERMISSION);
    fs::remove_dir(&place).expect("rmdir");
    fs::remove_dir_all(alice.join("deep")).expect("rm");
    fs::remove_dir(&alice).expect("rmdir");
    onode!("key", "remove", &mount, "0", "--destroy").succeeds();
    assert!(!onode!("key", "list", &mount).succeeds().contains("of directories"));
    unmount(&mount);
}

#[test]
fn what_a_lost_key_keeps_can_be_given_up() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-lost", "");
    let (mount, _up) = made.mounted();
    made.filled(&mount.join("alice"));
    fs::write(mount.join("plain"), "plain").expect("write");
    onode!("key", "remove", mount.join("alice"), "0", "--destroy").succeeds();
    unmount(&mount);
    onode!("--unlock", &made.key, "ls", &made.image).fails(KEY);
    is_clear(&onode!("repair", "--drop-key", "2", &made.image).fails(16), "key 2");
    let told = onode!("--json", "repair", "--drop-key", "1", &made.image).fails(1);
    drop(told);
    assert_eq!(onode!("ls", &made.image).succeeds(), "plain\n");
    assert_eq!(onode!("cat", &made.image, "/plain").succeeds(), "plain");
    onode!("check", &made.image).succeeds();
}

/// Compression keeps the sizes of files where the key of their directory keeps them.
#[test]
fn what_a_lost_key_keeps_compressed_can_be_given_up() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-lost-compressed", "");
    let mount = made.place.directory("mnt");
    onode!("mount", "-o", "compress=fast", &made.image, &mount).succeeds();
    made.filled(&mount.join("alice"));
    let text: Vec<u8> = b"the same again and again. ".iter().copied().cycle().take(300_000).collect();
    for name in ["alice/large", "alice/moved", "plain"] {
        fs::write(mount.join(name), &text).expect("write");
    }
    fs::rename(mount.join("alice/moved"), mount.join("moved")).expect("rename");
    onode!("key", "remove", mount.join("alice"), "0", "--destroy").succeeds();
    unmount(&mount);
    let told = onode!("check", &made.image).succeeds();
    assert!(told.contains("not verified: 5 files"), "{told}");
    is_clear(&onode!("repair", "--drop-key", "2", &made.image).fails(16), "key 2");
    let told = onode!("repair", "--drop-key", "1", &made.image).output().expect("it starts");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    // What was moved elsewhere cannot be removed by its name: that takes its size.
    assert!(told.contains("removed 5 files and directories"), "{told}");
    assert_eq!(onode!("ls", &made.image).succeeds(), "plain\n");
    assert!(onode!("cat", &made.image, "/plain").succeeds().into_bytes() == text);
    let told = onode!("check", &made.image).succeeds();
    assert!(!told.contains("not verified"), "{told}");
}

#[test]
fn a_volume_that_is_encrypted_has_keys_of_directories_too() {
    let place = Place::new("keys-both");
    let (image, key, own) = (place.path("disk.img"), place.file("key", &[7; 40]), place.file("own", &[8; 40]));
    onode!("mkfs", "--size", "32M", "--encrypt", "--authenticate", "--key-file", &key, &image).succeeds();
    let with_key = |words: &[&str]| {
        let mut command = onode!("--key-file", &key);
        command.args(words);
        command
    };
    let image = image.to_str().expect("UTF-8");
    with_key(&["mkdir", image, "/alice"]).succeeds();
    with_key(&["key", "new", image, "/alice", "--new-key-file", own.to_str().expect("UTF-8")]).succeeds();
    let file = place.file("x", b"in it");
    let (file, own) = (file.to_str().expect("UTF-8"), own.to_str().expect("UTF-8"));
    with_key(&["put", image, file, "/alice/x"]).fails(KEY);
    with_key(&["--unlock", own, "put", image, file, "/alice/x"]).succeeds();
    with_key(&["cat", image, "/alice/x"]).fails(KEY);
    onode!("--unlock", own, "cat", image, "/alice/x").fails(KEY);
    assert_eq!(with_key(&["--unlock", own, "cat", image, "/alice/x"]).succeeds(), "in it");
    with_key(&["check", image]).succeeds();
    with_key(&["--unlock", own, "check", image]).succeeds();
    // What is asked for is what is there.
    for wrong in ["--encrypt-directories --encrypt", "--encrypt-directories --authenticate"] {
        let mut command = onode!("mkfs");
        command.args(wrong.split(' ')).arg(place.path("new.img")).fails(USAGE);
    }
    let plain = place.image("plain.img");
    onode!("mkdir", &plain, "/d").succeeds();
    is_clear(&onode!("key", "new", &plain, "/d", "--new-key-file", own).fails(USAGE), "encrypted");
}

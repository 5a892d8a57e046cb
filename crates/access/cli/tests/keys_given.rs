//! Where directories get keys and where not: on a mount, in its clones, snapshots and transactions;
//! and who unlocks them from the beginning.

use crate::common::{Expect, has_fuse, is_clear, unmount};
use crate::directory_keys::{KEY, USAGE, is_locked, made};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use std::fs;
use std::path::Path;

const IN_USE: i32 = 13;
const READ_ONLY: i32 = 14;

fn set_key(directory: &Path, number: &str) -> Result<(), Errno> {
    rustix::fs::setxattr(directory, "user.onode.key", number.as_bytes(), XattrFlags::empty())
}

#[test]
fn a_flag_unlocks_what_a_mount_shows_as_an_option_does() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-flag", "");
    let other = made.place.file("other", &[9; 40]);
    for (directory, key) in [("/alice", &made.key), ("/bob", &other)] {
        onode!("mkdir", &made.image, directory).succeeds();
        onode!("key", "new", &made.image, directory, "--new-key-file", key).succeeds();
        let (content, inside) = (made.place.file("x", b"in it"), format!("{directory}/x"));
        onode!("--unlock", key, "put", &made.image, content, inside).succeeds();
    }
    let mount = made.place.directory("mnt");
    let looked_at = |shown: &[&str]| {
        for directory in ["alice", "bob"] {
            let found = fs::read_to_string(mount.join(directory).join("x"));
            if shown.contains(&directory) {
                assert_eq!(found.expect("unlocked"), "in it", "{directory}");
            } else {
                assert!(is_locked(found), "{directory}");
            }
        }
        unmount(&mount);
    };
    onode!("--unlock", &made.key, "mount", &made.image, &mount).succeeds();
    looked_at(&["alice"]);
    let option = format!("unlock={}", other.display());
    onode!("--unlock", &made.key, "mount", "-o", &option, &made.image, &mount).succeeds();
    looked_at(&["alice", "bob"]);
    // Where the command was called from the file has its own name.
    let mut relative = onode!("--unlock", "key", "mount", &made.image, &mount);
    relative.current_dir(made.place.path("")).succeeds();
    looked_at(&["alice"]);
    let wrong = made.place.file("wrong", &[1; 40]);
    onode!("--unlock", wrong, "mount", "-o", &option, &made.image, &mount).fails(KEY);
    onode!("mount", &made.image, &mount).succeeds();
    let output = onode!("--unlock", &made.key, "snapshot", "list", &mount).output().expect("onode runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("--unlock was not used"), "{told}");
    let output = onode!("--unlock", &other, "key", "unlock", &mount).output().expect("onode runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    looked_at(&["bob"]);
}

#[test]
fn directories_of_clones_get_keys_and_those_of_snapshots_do_not() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-clone", "");
    let (mount, up) = made.mounted();
    made.filled(&mount.join("alice"));
    onode!("clone", "create", &mount, "c").succeeds();
    onode!("snapshot", "create", &mount, "s").succeeds();
    let clone = mount.join(".clones/c");
    let (keyed, given) = (clone.join("keyed"), clone.join("given"));
    fs::create_dir(&keyed).expect("mkdir");
    fs::create_dir(&given).expect("mkdir");
    let own = made.place.file("own", &[9; 40]);
    onode!("key", "new", &keyed, "--new-key-file", &own).succeeds();
    set_key(&given, "1").expect("a key that there is");
    for directory in [&keyed, &given] {
        fs::write(directory.join("file"), "in the clone").expect("write");
    }
    assert!(onode!("key", "list", &keyed).succeeds().contains("needs key 2"));
    onode!("key", "lock", &keyed).succeeds();
    onode!("key", "lock", mount.join("alice")).succeeds();
    for directory in [&keyed, &given] {
        assert!(is_locked(fs::read(directory.join("file"))));
    }
    onode!("--key-file", &own, "key", "unlock", &keyed).succeeds();
    assert_eq!(fs::read_to_string(keyed.join("file")).expect("read"), "in the clone");
    let shown = mount.join(".snapshots/s/alice");
    onode!("--key-file", &made.key, "key", "unlock", &shown).succeeds();
    assert_eq!(fs::read_to_string(shown.join("deep/file")).expect("read"), "a secret");
    let error = onode!("key", "new", mount.join(".snapshots/s"), "--new-key-file", &own).fails(READ_ONLY);
    is_clear(&error, "read only");
    assert_eq!(onode!("key", "list", &mount).succeeds().matches("of directories").count(), 2);
    unmount(&mount);
    drop(up);
    // A clone that is used by itself has the keys of the volume, too.
    let inside = format!("{}@c", made.image.display());
    onode!("mkdir", &inside, "/late").succeeds();
    onode!("key", "new", &inside, "/late", "--new-key-file", made.place.file("3", &[3; 40])).succeeds();
    onode!("mount", "-o", "clone=c", &made.image, &mount).succeeds();
    assert!(is_locked(fs::read(mount.join("keyed/file"))));
    onode!("--key-file", &own, "key", "unlock", mount.join("keyed")).succeeds();
    assert_eq!(fs::read_to_string(mount.join("keyed/file")).expect("read"), "in the clone");
    assert!(is_locked(fs::write(mount.join("late/file"), "x")));
    unmount(&mount);
    let told = onode!("check", &made.image).succeeds();
    assert!(told.contains("--unlock FILE") && told.contains("of clones"), "{told}");
}

#[test]
fn no_directory_gets_a_key_while_a_transaction_may_have_made_names_in_it() {
    if !has_fuse() {
        return;
    }
    let made = made("keys-tx", "");
    let (mount, _up) = made.mounted();
    let (plain, inside) = (mount.join("plain"), mount.join(".onode/tx/1/plain"));
    made.filled(&mount.join("alice"));
    fs::create_dir(&plain).expect("mkdir");
    onode!("tx", "begin", &mount).succeeds();
    let other = made.place.file("other", &[9; 40]);
    is_clear(&onode!("key", "new", &plain, "--new-key-file", &other).fails(IN_USE), "transaction");
    is_clear(&onode!("key", "new", &inside, "--new-key-file", &other).fails(USAGE), "transaction");
    assert_eq!(set_key(&plain, "1"), Err(Errno::BUSY));
    assert_eq!(set_key(&inside, "1"), Err(Errno::OPNOTSUPP));
    fs::write(inside.join("in"), "in").expect("write");
    fs::write(plain.join("out"), "out").expect("write");
    onode!("tx", "commit", &mount, "1").succeeds();
    assert_eq!(fs::read_to_string(plain.join("in")).expect("read"), "in");
    assert_eq!(fs::read_dir(&plain).expect("list").count(), 2);
    let empty = mount.join("empty");
    fs::create_dir(&empty).expect("mkdir");
    set_key(&empty, "1").expect("no transaction is open");
    assert_eq!(onode!("key", "list", &mount).succeeds().matches("of directories").count(), 1);
    unmount(&mount);
    onode!("check", &made.image).succeeds();
    onode!("--unlock", &made.key, "check", &made.image).succeeds();
}

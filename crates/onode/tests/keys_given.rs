//! When a directory gets its key: not while a transaction is open, which may have made a name in
//! it; and what becomes of the key when a volume goes to a state of before or after that moment.

use crate::agent;
use crate::common::Folder;
use crate::directory_keys::{flash, key, keys, made_plain, make_directory, number, open, secret};
use onode::{Class, InodeNumber, Spec, TransactionOptions, Volume, receive, roll_back};
use onode_fs::{Caller, ErrorKind, Hint, XattrFlags, check};
use onode_object::{AttributeKey, AttributeKind, Durability, ObjectDevice, ObjectId, Transaction};
use std::io::Read;

/// That nothing is wrong with a volume, with its keys and without.
fn is_sound(volume: Volume, spec: &Spec) {
    volume.close().unwrap();
    drop(volume);
    let device = onode::open_device(spec, true, false).unwrap().0;
    let report = check::check(device.as_ref()).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

/// That without the keys of its directories a check finds nothing but so many locked objects, and
/// a repair changes nothing.
fn are_left_alone(volume: Volume, spec: &Spec, locked: u64) {
    volume.close().unwrap();
    drop(volume);
    let device = onode::open_device(spec, false, false).unwrap().0;
    let report = check::check(device.as_ref()).unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.locked, locked, "{report:?}");
    let repaired = onode::repair_files(spec, device.as_ref()).unwrap();
    assert_eq!(repaired.fixed, 0, "{repaired:?}");
    device.close().unwrap();
}

#[test]
fn a_directory_gets_a_key_only_while_no_transaction_is_open() {
    let folder = Folder::new("keys-given-tx");
    let spec = flash(&folder);
    let volume = open(&spec);
    let given = keys(&volume).create(&key(&secret(3))).unwrap();
    let d = make_directory(&volume, "/", "d");
    let set = |volume: &Volume, directory: InodeNumber| {
        volume.files().set_hint(directory, Hint::Key, &given.to_string()).map_err(|error| error.kind)
    };
    // A file is made in it by the transaction, or by somebody else.
    let transaction = volume.begin(TransactionOptions::default()).unwrap();
    transaction.volume().write("/d/in", "in").unwrap();
    assert_eq!(set(&volume, d), Err(ErrorKind::Busy));
    let refused = keys(&volume).give(d, given).unwrap_err();
    assert!(refused.class == Class::InUse && refused.why.contains("transaction"), "{refused}");
    let count = keys(&volume).list().unwrap().len();
    assert_eq!(keys(&volume).create_for(d, &key(&secret(4))).unwrap_err().class, Class::InUse);
    assert_eq!(keys(&volume).list().unwrap().len(), count, "no key is left of it");
    transaction.commit().unwrap();
    assert_eq!(volume.read("/d/in").unwrap(), b"in");
    volume.remove_all("/d/in").unwrap();
    let transaction = volume.begin(TransactionOptions::default()).unwrap();
    assert_eq!(set(transaction.volume(), d), Err(ErrorKind::NotSupported));
    volume.write("/d/out", "out").unwrap();
    // What it makes itself nobody else can use yet.
    let new = make_directory(transaction.volume(), "/", "new");
    set(transaction.volume(), new).unwrap();
    transaction.volume().write("/new/secret", "secret").unwrap();
    transaction.commit().unwrap();
    assert_eq!(volume.read("/d/out").unwrap(), b"out");
    assert_eq!(volume.read("/new/secret").unwrap(), b"secret");
    volume.remove_all("/d/out").unwrap();
    keys(&volume).give(d, given).unwrap();
    let file = number(volume.files(), "/new/secret");
    assert_eq!(keys(&volume).number_of(file).unwrap(), given);
    volume.files().write_file(&Caller::root(), b"/d/late", b"late", 0o600).unwrap();
    keys(&volume).lock(given).unwrap();
    assert_eq!(volume.read("/new/secret").unwrap_err().class, Class::Key);
    assert_eq!(volume.read("/d/late").unwrap_err().class, Class::Key);
    is_sound(volume, &spec);
}

/// With compression not even the size of what a locked directory keeps can be told: a check called
/// it damaged, and a repair gave files second names and took directories from their place.
#[test]
#[cfg(feature = "compression")]
fn a_check_leaves_alone_what_a_locked_directory_keeps_compressed() {
    let folder = Folder::new("keys-given-compressed");
    let spec = flash(&folder);
    open(&spec).close().unwrap();
    let options = onode::MountOptions { compression: onode::Compression::Fast, ..onode::MountOptions::default() };
    let volume = Volume::open(&spec, options).unwrap();
    let d = make_directory(&volume, "/", "d");
    keys(&volume).create_for(d, &key(&secret(3))).unwrap();
    make_directory(&volume, "/d", "sub");
    volume.write("/d/file", "much alike ".repeat(9000)).unwrap();
    volume.write("/d/sub/deep", "deep").unwrap();
    volume.write("/plain", "plain").unwrap();
    are_left_alone(volume, &spec, 4);
    let volume = open(&spec);
    keys(&volume).unlock(None, &secret(3)).unwrap();
    assert_eq!(volume.read("/d/file").unwrap().len(), 99_000);
    assert_eq!(volume.read("/d/sub/deep").unwrap(), b"deep");
    is_sound(volume, &spec);
}

/// Leads a volume that nobody has mounted back to a snapshot, with the key unlocked or not.
fn back(folder: &Folder, spec: &Spec, name: &str, is_unlocked: bool) -> onode::Result<()> {
    let key = folder.path().join(agent::HAS_KEY);
    if is_unlocked {
        std::fs::write(&key, "").unwrap();
    }
    let done = roll_back(spec, name, &mut |_| Ok(())).map(drop);
    let _ = std::fs::remove_file(&key);
    done
}

#[test]
fn a_volume_goes_back_over_the_moment_when_a_directory_got_its_key() {
    agent::provide();
    let folder = Folder::new("keys-given-back");
    let spec = flash(&folder);
    let volume = open(&spec);
    let take = |volume: &Volume, name: &str| _ = volume.snapshots().unwrap().take(name).unwrap();
    let d = make_directory(&volume, "/", "d");
    let empty = make_directory(&volume, "/", "empty");
    make_directory(&volume, "/d", "sub");
    volume.write("/d/f", "plain").unwrap();
    volume.write("/d/sub/g", "g").unwrap();
    let user = Caller::root();
    volume.files().set_xattr(&user, d, b"user.note", b"kept", XattrFlags::Any).unwrap();
    take(&volume, "before");
    volume.remove_all("/d/f").unwrap();
    volume.remove_all("/d/sub").unwrap();
    let given = keys(&volume).create(&key(&agent::secret())).unwrap();
    keys(&volume).give(d, given).unwrap();
    keys(&volume).give(empty, given).unwrap();
    volume.write("/d/h", "secret").unwrap();
    take(&volume, "after");
    volume.close().unwrap();
    drop(volume);
    assert_eq!(back(&folder, &spec, "before", false).unwrap_err().class, Class::Key);
    for _ in 0..2 {
        back(&folder, &spec, "before", true).unwrap();
        let volume = open(&spec);
        assert_eq!(keys(&volume).number_of(d).unwrap(), 0);
        assert_eq!(volume.read("/d/f").unwrap(), b"plain");
        assert_eq!(volume.read("/d/sub/g").unwrap(), b"g");
        assert_eq!(volume.files().get_xattr(d, b"user.note").unwrap(), b"kept");
        // What is made there is stored as it was before, for whoever has the key of the volume.
        volume.write("/d/new", "new").unwrap();
        volume.write("/empty/new", "new").unwrap();
        assert_eq!(keys(&volume).number_of(number(volume.files(), "/d/new")).unwrap(), 0);
        is_sound(volume, &spec);
        assert_eq!(back(&folder, &spec, "after", false).unwrap_err().class, Class::Key);
        back(&folder, &spec, "after", true).unwrap();
        let volume = open(&spec);
        assert_eq!(volume.read("/d/h").unwrap_err().class, Class::Key);
        keys(&volume).unlock(None, &agent::secret()).unwrap();
        assert_eq!(volume.read("/d/h").unwrap(), b"secret");
        assert_eq!(volume.read_dir("/d").unwrap().count(), 1);
        volume.write("/empty/new", "secret").unwrap();
        assert_eq!(keys(&volume).number_of(number(volume.files(), "/empty/new")).unwrap(), given);
        is_sound(volume, &spec);
    }
}

#[test]
fn a_volume_without_the_key_of_an_empty_directory_does_not_go_to_it() {
    let folder = Folder::new("keys-given-empty");
    let spec = flash(&folder);
    let volume = open(&spec);
    let empty = make_directory(&volume, "/", "empty");
    keys(&volume).create_for(empty, &key(&secret(3))).unwrap();
    volume.snapshots().unwrap().take("after").unwrap();
    volume.remove_all("/empty").unwrap();
    volume.close().unwrap();
    drop(volume);
    // Nothing is changed: it would have to be made with its key.
    assert_eq!(back(&folder, &spec, "after", false).unwrap_err().class, Class::Key);
    let volume = open(&spec);
    assert!(volume.read_dir("/empty").is_err());
    is_sound(volume, &spec);
}

#[test]
fn a_check_calls_nothing_lost_that_a_locked_directory_may_name() {
    let folder = Folder::new("keys-given-check");
    let spec = flash(&folder);
    let volume = open(&spec);
    let given = keys(&volume).create(&key(&secret(3))).unwrap();
    let d = make_directory(&volume, "/", "d");
    make_directory(&volume, "/d", "sub");
    volume.write("/d/file", "file").unwrap();
    volume.write("/d/sub/deep", "deep").unwrap();
    volume.files().link(number(volume.files(), "/d/file"), InodeNumber::ROOT, b"second").unwrap();
    volume.files().write_back().unwrap();
    // What an earlier version made of a volume that went back: without the key in a directory that
    // has it.
    let device = volume.device();
    let object = ObjectId(d.0);
    let mut transaction = Transaction::new();
    let mut hints = device.stat(object).unwrap().hints;
    hints.encryption_key = given;
    transaction.set_hints(object, hints);
    for (key, value) in device.attributes(object, AttributeKey::new(AttributeKind::ENTRY, 0), 100).unwrap() {
        if key.kind == AttributeKind::ENTRY {
            transaction.set_attribute(object, key, value);
        }
    }
    device.commit(transaction, Durability::Durable).unwrap();
    assert!(check::check(device).unwrap().is_clean(), "with the key");
    // The directory, and what has no name elsewhere.
    are_left_alone(volume, &spec, 3);
    let volume = open(&spec);
    keys(&volume).unlock(None, &secret(3)).unwrap();
    for (path, content) in [("/d/file", "file"), ("/d/sub/deep", "deep"), ("/second", "file")] {
        assert_eq!(volume.read(path).unwrap(), content.as_bytes());
    }
    assert!(volume.read_dir("/lost+found").is_err());
    is_sound(volume, &spec);
}

#[test]
fn a_stream_is_refused_where_directories_have_keys() {
    let folder = Folder::new("keys-given-streams");
    let spec = flash(&folder);
    let copy = made_plain(&folder.path().join("copy.img"));
    let sent = |volume: &Volume, name: &str, from: Option<&str>| {
        let snapshots = volume.snapshots().unwrap();
        snapshots.take(name).unwrap();
        let mut bytes = Vec::new();
        snapshots.send(name, from).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let received = |spec: &Spec, stream: Vec<u8>| {
        receive(spec, stream.as_slice(), &onode::ReceiveOptions::default(), &mut |_| Ok(())).map(drop)
    };
    let volume = open(&spec);
    let d = make_directory(&volume, "/", "d");
    let first = sent(&volume, "first", None);
    keys(&volume).create_for(d, &key(&secret(3))).unwrap();
    volume.write("/d/secret", "secret").unwrap();
    let second = sent(&volume, "second", Some("first"));
    volume.close().unwrap();
    drop(volume);
    received(&copy, first).unwrap();
    received(&copy, second).unwrap();
    let there = open(&copy);
    there.write("/d/more", "more").unwrap();
    let third = sent(&there, "third", Some("second"));
    there.close().unwrap();
    // It would be in the directory, and stored without its key.
    let refused = received(&spec, third).unwrap_err();
    assert!(refused.class == Class::Usage && refused.why.contains("keys"), "{refused}");
    let volume = open(&spec);
    keys(&volume).unlock(None, &secret(3)).unwrap();
    assert_eq!(volume.read("/d/secret").unwrap(), b"secret");
    is_sound(volume, &spec);
}

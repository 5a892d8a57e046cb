//! Directories with keys of their own, on volumes of every kind: what can be done without the key
//! and what cannot, now and in snapshots, clones and transactions, and how what a lost key keeps is
//! given up.

use crate::common::Folder;
use onode::keys::{DirectoryKeyring, Encryption, KeyCost, NewKey, Secret};
use onode::{Class, CreateOptions, FileSystem, InodeNumber, MountOptions, Spec, TransactionOptions, Volume};
use onode_fs::{Caller, ErrorKind, Follow, RenameFlags, check};
use std::path::Path;
use std::sync::Arc;

const FLASH: &str = "size=8M,page=2K,pages-per-block=16";

pub fn secret(byte: u8) -> Secret {
    Secret::key_file(vec![byte; 40]).unwrap()
}

pub fn key(secret: &Secret) -> NewKey<'_> {
    NewKey { secret, label: "test", cost: KeyCost::LEAST }
}

/// New volumes of all kinds, of which only directories are encrypted.
fn made(folder: &Folder) -> Vec<Spec> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let kinds = [
        (format!("flash:{}", at("flash")), format!(",{FLASH}")),
        (format!("scm:{}", at("memory")), ",size=8M,exclusive=on".to_owned()),
        (format!("scm:{}", at("shared")), ",size=8M".to_owned()),
        (format!("tier:{},{}", at("fast"), at("big")), ",size=16M,fast-size=12M".to_owned()),
        (format!("flash+scm:{},{}", at("nand"), at("index")), format!(",{FLASH}")),
    ];
    let pool = format!("pool:flash:{},{FLASH}+flash:{},{FLASH}", at("a"), at("b"));
    let kinds = kinds.into_iter().map(|(old, settings)| (format!("{old}{settings}"), old));
    let kinds = kinds.chain([(pool.clone(), pool.replace(&format!(",{FLASH}"), ""))]);
    kinds.map(|(new, old)| made_one(&new, &old)).collect()
}

fn made_one(new: &str, old: &str) -> Spec {
    let created =
        Volume::create_encrypted(&Spec::parse(new).unwrap(), &CreateOptions::default(), &Encryption::Directories);
    created.unwrap_or_else(|error| panic!("{new}: {error}"));
    Spec::parse(old).unwrap()
}

pub fn flash(folder: &Folder) -> Spec {
    let path = folder.path().join("disk.img").display().to_string();
    made_one(&format!("flash:{path},{FLASH}"), &format!("flash:{path}"))
}

pub fn open(spec: &Spec) -> Volume {
    Volume::open(spec, MountOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

pub fn keys(volume: &Volume) -> &Arc<DirectoryKeyring> {
    volume.directory_keys().expect("it is encrypted")
}

pub fn number(files: &FileSystem, path: &str) -> InodeNumber {
    files.resolve(path.as_bytes(), Follow::No).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn make_directory(volume: &Volume, parent: &str, name: &str) -> InodeNumber {
    let files = volume.files();
    let parent = number(files, parent);
    files.make_directory(&Caller::root(), parent, name.as_bytes(), 0o755).unwrap().inode
}

/// A directory `/d` with a key, in which there are a file of each size, a link and a directory.
fn filled(volume: &Volume, byte: u8) -> u32 {
    let directory = make_directory(volume, "/", "d");
    let number = keys(volume).create(&key(&secret(byte))).unwrap();
    keys(volume).give(directory, number).unwrap();
    volume.write("/d/small", b"a small one").unwrap();
    volume.write("/d/large", vec![7; 300_000]).unwrap();
    let files = volume.files();
    files.forget(files.make_symbolic_link(&Caller::root(), directory, b"link", b"target").unwrap().inode, 1);
    make_directory(volume, "/d", "e");
    volume.write("/d/e/deep", b"deep").unwrap();
    number
}

fn kind_of<T: std::fmt::Debug>(result: onode::Result<T>) -> Class {
    result.expect_err("it is locked").class
}

/// That all of `/d` is there, or that nothing of it can be seen.
fn look(files: &FileSystem, is_open: bool, when: &str) {
    let read = |path: &str| {
        let number = files.resolve(path.as_bytes(), Follow::No).map_err(|error| error.kind)?;
        let mut bytes = vec![0; 400_000];
        let count = files.read(number, 0, &mut bytes).map_err(|error| error.kind)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    let expected =
        [("/d/small", b"a small one".to_vec()), ("/d/large", vec![7; 300_000]), ("/d/e/deep", b"deep".to_vec())];
    for (path, content) in expected {
        assert_eq!(read(path), if is_open { Ok(content) } else { Err(ErrorKind::KeyNeeded) }, "{when}: {path}");
    }
    let directory = number(files, "/d");
    let names = files.read_directory(directory, 0, &mut |_| true).map(drop).map_err(|error| error.kind);
    assert_eq!(names, if is_open { Ok(()) } else { Err(ErrorKind::KeyNeeded) }, "{when}: names");
    let absent = files.resolve(b"/d/absent", Follow::No).map_err(|error| error.kind);
    assert_eq!(absent.err(), Some(if is_open { ErrorKind::NotFound } else { ErrorKind::KeyNeeded }), "{when}: absent");
    // The directory itself is seen by whoever has the key of the volume.
    assert_eq!(files.attributes(directory).unwrap().links, 3, "{when}");
}

#[test]
fn what_is_in_a_directory_with_a_key_needs_it_on_every_kind_of_volume() {
    let folder = Folder::new("directory-keys");
    for spec in made(&folder) {
        let volume = open(&spec);
        let number = filled(&volume, 3);
        volume.write("/plain", b"plain").unwrap();
        look(volume.files(), true, "made");
        assert!(!keys(&volume).lock(number).unwrap().is_empty());
        assert!(keys(&volume).lock(number).unwrap().is_empty(), "it is locked already");
        look(volume.files(), false, "locked");
        assert_eq!(kind_of(volume.write("/d/new", b"x")), Class::Key);
        assert_eq!(kind_of(keys(&volume).unlock(Some(number), &secret(4))), Class::Key);
        assert_eq!(volume.read("/plain").unwrap(), b"plain");
        volume.close().unwrap();
        drop(volume);
        let volume = open(&spec);
        look(volume.files(), false, "mounted");
        assert_eq!(keys(&volume).unlock(None, &secret(3)).unwrap(), [number]);
        look(volume.files(), true, "unlocked");
        volume.write("/d/small", b"a small one").unwrap();
        volume.close().unwrap();
        drop(volume);
        let volume = open(&spec);
        keys(&volume).unlock(Some(number), &secret(3)).unwrap();
        look(volume.files(), true, "unlocked again");
        volume.close().unwrap();
    }
}

#[test]
fn only_an_empty_directory_gets_a_key_and_keeps_it() {
    let folder = Folder::new("directory-keys-given");
    let spec = flash(&folder);
    let volume = open(&spec);
    let number_of = |path: &str| keys(&volume).number_of(number(volume.files(), path)).unwrap();
    let key = keys(&volume).create(&key(&secret(3))).unwrap();
    let full = make_directory(&volume, "/", "full");
    volume.write("/full/file", b"x").unwrap();
    let file = number(volume.files(), "/full/file");
    for wrong in [full, file, InodeNumber::ROOT] {
        assert_eq!(keys(&volume).give(wrong, key).unwrap_err().class, Class::Usage);
    }
    // Names that were there once are no matter.
    for name in 0..600 {
        volume.write(format!("/full/{name}"), b"").unwrap();
    }
    volume.remove_all("/full/file").unwrap();
    (0..600).for_each(|name| volume.remove_all(format!("/full/{name}")).unwrap());
    keys(&volume).give(full, key).unwrap();
    keys(&volume).give(full, key).unwrap();
    volume.write("/full/0", b"zero").unwrap();
    assert_eq!((number_of("/full"), number_of("/full/0"), number_of("/")), (key, key, 0));
    let other = keys(&volume).create(&self::key(&secret(4))).unwrap();
    assert_eq!(keys(&volume).give(full, other).unwrap_err().class, Class::Usage);
    let empty = make_directory(&volume, "/", "empty");
    keys(&volume).lock(other).unwrap();
    assert_eq!(keys(&volume).give(empty, other).unwrap_err().class, Class::Key);
    volume.close().unwrap();
    drop(volume);
    let volume = open(&spec);
    keys(&volume).unlock(None, &secret(3)).unwrap();
    assert_eq!(volume.read("/full/0").unwrap(), b"zero");
    volume.close().unwrap();
    drop(volume);
    assert!(check::check(onode::open_device(&spec, true, false).unwrap().0.as_ref()).unwrap().is_clean());
}

#[test]
fn names_lead_into_a_directory_only_to_what_needs_its_key() {
    let folder = Folder::new("directory-keys-names");
    let volume = open(&flash(&folder));
    filled(&volume, 3);
    let other = make_directory(&volume, "/", "other");
    let second = keys(&volume).create(&key(&secret(4))).unwrap();
    keys(&volume).give(other, second).unwrap();
    volume.write("/plain", b"plain").unwrap();
    volume.write("/other/file", b"other").unwrap();
    make_directory(&volume, "/", "folder");
    let files = volume.files();
    let (root, d) = (InodeNumber::ROOT, number(files, "/d"));
    let rename =
        |from, name: &[u8], to, new: &[u8], flags| files.rename(from, name, to, new, flags).map_err(|error| error.kind);
    let across = Err(ErrorKind::CrossDevice);
    assert_eq!(rename(root, b"plain", d, b"plain", RenameFlags::Replace), across);
    assert_eq!(rename(root, b"folder", d, b"folder", RenameFlags::Replace), across);
    assert_eq!(rename(other, b"file", d, b"file", RenameFlags::Replace), across);
    assert_eq!(rename(root, b"plain", d, b"small", RenameFlags::Exchange), across);
    let linked = files.link(number(files, "/plain"), d, b"linked").map_err(|error| error.kind);
    assert_eq!(linked.err(), Some(ErrorKind::CrossDevice));
    // Within it, and out of it, with its key.
    let e = number(files, "/d/e");
    assert_eq!(rename(d, b"small", e, b"small", RenameFlags::Replace), Ok(()));
    assert_eq!(rename(e, b"small", root, b"outside", RenameFlags::Replace), Ok(()));
    let outside = number(files, "/outside");
    assert_eq!(keys(&volume).number_of(outside).unwrap(), 1);
    assert_eq!(rename(root, b"outside", d, b"small", RenameFlags::Replace), Ok(()));
    look(files, true, "moved there and back");
    volume.close().unwrap();
}

#[test]
fn snapshots_and_clones_show_what_is_unlocked_in_the_volume() {
    let folder = Folder::new("directory-keys-states");
    let spec = flash(&folder);
    let volume = open(&spec);
    let number = filled(&volume, 3);
    let snapshot = volume.snapshots().unwrap().take("one").unwrap();
    let clone = volume.clones().unwrap().make("copy", Some("one")).unwrap();
    volume.write("/d/small", b"changed").unwrap();
    let then = volume.snapshots().unwrap().files(snapshot.generation).unwrap();
    let copy = volume.clones().unwrap().files(clone.generation).unwrap();
    look(&then, true, "snapshot");
    look(&copy, true, "clone");
    let locked = keys(&volume).lock(number).unwrap();
    assert_eq!(locked.len(), 3, "volume, snapshot and clone: {locked:?}");
    let topmost = (InodeNumber::ROOT, b"d".to_vec());
    assert!(locked.iter().all(|one| one.names == [topmost.clone()] && one.files.len() > 1), "{locked:?}");
    look(&then, false, "locked snapshot");
    look(&copy, false, "locked clone");
    keys(&volume).unlock(None, &secret(3)).unwrap();
    look(&then, true, "snapshot again");
    look(&copy, true, "clone again");
    copy.write_file(&Caller::root(), b"/d/new", b"in the clone", 0o600).unwrap();
    assert_eq!(volume.read("/d/small").unwrap(), b"changed");
    drop((then, copy));
    volume.close().unwrap();
    drop(volume);
    // Back to it, without the key and with it.
    let back = |volume: &Volume| volume.read("/d/small").map_err(|error| error.class);
    assert_eq!(kind_of(onode::roll_back(&spec, "one", &mut |_| Ok(()))), Class::Key);
    let volume = open(&spec);
    assert_eq!(back(&volume), Err(Class::Key));
    keys(&volume).unlock(None, &secret(3)).unwrap();
    assert_eq!(back(&volume).as_deref(), Ok(&b"changed"[..]));
    volume.close().unwrap();
}

#[test]
fn transactions_keep_what_a_key_keeps() {
    let folder = Folder::new("directory-keys-tx");
    let spec = flash(&folder);
    let volume = open(&spec);
    let number = filled(&volume, 3);
    volume.write("/plain", b"plain").unwrap();
    let begin = || volume.begin(TransactionOptions::default()).unwrap();
    let transaction = begin();
    transaction.volume().write("/d/e/deep", b"in it").unwrap();
    transaction.volume().write("/d/new", vec![5; 2_000_000]).unwrap();
    // Nobody locks what a transaction may have read.
    assert_eq!(keys(&volume).lock(number).unwrap_err().class, Class::InUse);
    transaction.commit().unwrap();
    assert_eq!(volume.read("/d/e/deep").unwrap(), b"in it");
    assert_eq!(volume.read("/d/new").unwrap(), vec![5; 2_000_000]);
    // A record would stand on the medium without the key.
    let transaction = begin();
    transaction.volume().write("/plain", b"changed").unwrap();
    let new = InodeNumber(volume.files().resolve(b"/d/new", Follow::No).unwrap().0);
    transaction.volume().files().write(&Caller::root(), new, 0, &vec![6; 2_000_000]).unwrap();
    assert!(transaction.commit().is_err());
    assert_eq!(volume.read("/plain").unwrap(), b"plain");
    assert_eq!(volume.read("/d/new").unwrap(), vec![5; 2_000_000]);
    keys(&volume).lock(number).unwrap();
    let transaction = begin();
    assert_eq!(kind_of(transaction.volume().read("/d/new")), Class::Key);
    transaction.volume().write("/plain", b"changed").unwrap();
    transaction.commit().unwrap();
    volume.close().unwrap();
    drop(volume);
    let volume = open(&spec);
    assert_eq!(kind_of(volume.read("/d/new")), Class::Key);
    keys(&volume).unlock(None, &secret(3)).unwrap();
    assert_eq!(volume.read("/d/new").unwrap(), vec![5; 2_000_000]);
    volume.close().unwrap();
}

#[test]
fn what_a_lost_key_keeps_is_given_up_and_nothing_else() {
    let folder = Folder::new("directory-keys-dropped");
    let spec = flash(&folder);
    let volume = open(&spec);
    let number = filled(&volume, 3);
    let other = make_directory(&volume, "/", "other");
    let second = keys(&volume).create(&key(&secret(4))).unwrap();
    keys(&volume).give(other, second).unwrap();
    volume.write("/other/file", b"other").unwrap();
    volume.write("/plain", b"plain").unwrap();
    let files = volume.files();
    let (d, root) = (self::number(files, "/d"), InodeNumber::ROOT);
    let value = vec![b'v'; 3000];
    let e = self::number(files, "/d/e");
    files.set_xattr(&Caller::root(), e, b"user.long", &value, onode_fs::XattrFlags::Any).unwrap();
    files.rename(d, b"link", root, b"moved", RenameFlags::Replace).unwrap();
    let slot = keys(&volume).list().unwrap()[0].slots[0].id();
    assert_eq!(keys(&volume).remove(number, &[slot], false).unwrap_err().class, Class::Usage);
    keys(&volume).remove(number, &[slot], true).unwrap();
    volume.close().unwrap();
    drop(volume);
    let device = || onode::open_device(&spec, false, false).unwrap().0;
    let one = device();
    // Nothing is wrong with it, and a repair takes nothing of it away.
    let before = check::check(one.as_ref()).unwrap();
    assert!(before.is_clean() && before.locked == 8, "{before:?}");
    assert_eq!(onode::repair_files(&spec, one.as_ref()).unwrap().fixed, 0);
    assert!(check::drop_key(one.as_ref(), 9).is_err());
    let dropped = check::drop_key(one.as_ref(), number).unwrap();
    assert_eq!(dropped.len(), 5, "{dropped:?}");
    let repaired = onode::repair_files(&spec, one.as_ref()).unwrap();
    assert!(repaired.after.is_clean(), "{repaired:?}");
    one.close().unwrap();
    drop(one);
    let volume = open(&spec);
    keys(&volume).unlock(None, &secret(4)).unwrap();
    assert_eq!(volume.read("/other/file").unwrap(), b"other");
    assert_eq!(volume.read("/plain").unwrap(), b"plain");
    assert!(volume.files().resolve(b"/d", Follow::No).is_err());
    // What was moved out can be seen and removed, and not read.
    assert!(volume.files().read_link(self::number(volume.files(), "/moved")).is_err());
    volume.remove_all("/moved").unwrap();
    // Its number is used no more.
    assert!(keys(&volume).create(&key(&secret(5))).unwrap() > second);
    volume.close().unwrap();
    drop(volume);
    assert!(check::check(device().as_ref()).unwrap().is_clean());
}

#[test]
fn a_stream_takes_no_key_along() {
    let folder = Folder::new("directory-keys-sent");
    let spec = flash(&folder);
    let volume = open(&spec);
    let number = filled(&volume, 3);
    let target = folder.path().join("received.img");
    let sent = |volume: &Volume, name: &str| -> onode::Result<Vec<u8>> {
        let snapshot = volume.snapshots().unwrap().take(name)?;
        let mut stream = volume.snapshots().unwrap().send(&snapshot.name, None)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut bytes)
            .map_err(|error| onode::Error::new(Class::Key, "sent", error.to_string()))?;
        Ok(bytes)
    };
    let stream = sent(&volume, "one").unwrap();
    keys(&volume).lock(number).unwrap();
    sent(&volume, "two").unwrap_err();
    volume.close().unwrap();
    let received = made_plain(&target);
    onode::receive(&received, stream.as_slice(), &onode::ReceiveOptions::default(), &mut |_| Ok(())).unwrap();
    let volume = open(&received);
    look(volume.files(), true, "received");
    volume.close().unwrap();
}

pub fn made_plain(path: &Path) -> Spec {
    let new = Spec::parse(&format!("flash:{},{FLASH}", path.display())).unwrap();
    Volume::create(&new, &CreateOptions::default()).unwrap();
    Spec::parse(&format!("flash:{}", path.display())).unwrap()
}

//! Encrypted volumes of every kind through the facade: made, opened with their key, repaired, and
//! refused where something else would be done to them than people think.

mod common;

use common::Folder;
use onode::keys::{Encryption, KeyAgent, KeyCost, NewKey, Secret, VolumeKeys, set_key_agent};
use onode::{Class, CreateOptions, MountOptions, Result, Spec, Volume, open_device, repair_files};
use onode_fs::volume::VOLUME;
use onode_fs::{Caller, Follow, InodeNumber};
use onode_object::{Durability, ObjectId, Transaction};

/// Gives every volume the key that its name ends with.
struct ByName;

impl KeyAgent for ByName {
    fn secret(&self, spec: &Spec, attempt: u32) -> Result<Option<Secret>> {
        let is_known = !spec.to_string().contains("unknown");
        Ok((attempt == 0 && is_known).then(secret))
    }
}

fn secret() -> Secret {
    Secret::key_file(vec![6; 32]).unwrap()
}

fn key(secret: &Secret) -> NewKey<'_> {
    NewKey { secret, label: "test", cost: KeyCost::LEAST }
}

/// An encrypted volume of each kind, to open it.
fn made(folder: &Folder, prefix: &str) -> Vec<Spec> {
    set_key_agent(Box::new(ByName));
    let at = |name: &str| folder.path().join(format!("{prefix}{name}")).display().to_string();
    let specs = [
        (format!("flash:{},size=16M,page=2K,pages-per-block=16", at("flash")), format!("flash:{}", at("flash"))),
        (format!("scm:{},size=16M", at("scm")), format!("scm:{}", at("scm"))),
        (
            format!("tier:{},{},size=24M,fast-size=12M", at("fast"), at("big")),
            format!("tier:{},{}", at("fast"), at("big")),
        ),
    ];
    let make = |(new, old): &(String, String)| {
        let secret = secret();
        let spec = Spec::parse(new).unwrap();
        Volume::create_encrypted(&spec, &CreateOptions::default(), &Encryption::All(key(&secret))).unwrap();
        Spec::parse(old).unwrap()
    };
    specs.iter().map(make).collect()
}

fn put(volume: &Volume, path: &str, bytes: &[u8]) {
    volume.files().write_file(&Caller::root(), path.as_bytes(), bytes, 0o644).unwrap();
}

fn content(volume: &Volume, path: &str) -> Vec<u8> {
    let files = volume.files();
    let number = files.resolve(path.as_bytes(), Follow::No).unwrap();
    let mut bytes = vec![0; files.attributes(number).unwrap().size as usize];
    assert_eq!(files.read(number, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn open(spec: &Spec) -> Volume {
    Volume::open(spec, MountOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

#[test]
fn every_kind_of_volume_can_be_encrypted() {
    let folder = Folder::new("encrypted-kinds");
    let text: Vec<u8> = (0..300_000).map(|at| b"a secret of some words. "[at % 24]).collect();
    for spec in made(&folder, "") {
        let volume = open(&spec);
        put(&volume, "/some-name", &text);
        volume.close().unwrap();
        drop(volume);
        let volume = open(&spec);
        assert!(content(&volume, "/some-name") == text, "{spec}");
        volume.close().unwrap();
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for piece in [&b"secret of some"[..], b"some-name"] {
            let is_there = bytes.windows(piece.len()).any(|window| window == piece);
            assert!(!is_there, "{} shows {}", path.display(), String::from_utf8_lossy(piece));
        }
    }
}

#[test]
fn without_its_key_a_volume_is_refused_and_unchanged() {
    let folder = Folder::new("encrypted-locked");
    for spec in made(&folder, "unknown-") {
        let path = spec.image_path().unwrap().to_owned();
        let before = std::fs::read(&path).unwrap();
        let error = Volume::open(&spec, MountOptions::default()).map(drop).unwrap_err();
        assert_eq!(error.class, Class::Key, "{error}");
        assert_eq!(open_device(&spec, false, false).map(drop).unwrap_err().class, Class::Key);
        assert_eq!(VolumeKeys::open(&spec, true).unwrap().slots().len(), 1);
        // Memory and disks note that they were opened and closed; of flash not a bit changes.
        let is_same = before == std::fs::read(&path).unwrap();
        assert!(is_same || !matches!(spec, Spec::Flash(_)), "{spec}: a refused volume was changed");
    }
}

/// The object of the volume is lost: the root directory has the key slots, and a repair makes
/// settings anew without taking files for garbage.
#[test]
fn a_volume_that_lost_its_settings_is_repaired_with_its_key() {
    let folder = Folder::new("encrypted-repair");
    for spec in made(&folder, "") {
        let volume = open(&spec);
        put(&volume, "/file", &[5; 100_000]);
        volume.close().unwrap();
        drop(volume);
        let (device, _) = open_device(&spec, false, false).unwrap();
        let mut transaction = Transaction::new();
        transaction.remove(VOLUME);
        device.commit(transaction, Durability::Durable).unwrap();
        device.close().unwrap();
        drop(device);
        let (device, _) = open_device(&spec, false, false).unwrap();
        repair_files(&spec, device.as_ref()).unwrap();
        device.close().unwrap();
        drop(device);
        let volume = open(&spec);
        assert!(content(&volume, "/file") == [5; 100_000], "{spec}");
        volume.close().unwrap();
        drop(volume);
        assert_eq!(VolumeKeys::open(&spec, true).unwrap().slots().len(), 1);
    }
}

#[test]
fn a_volume_without_key_slots_is_not_taken_for_a_damaged_plain_one() {
    let folder = Folder::new("encrypted-lost");
    let spec = made(&folder, "").remove(0);
    let volume = open(&spec);
    put(&volume, "/file", &[5; 100_000]);
    volume.close().unwrap();
    drop(volume);
    let (device, _) = open_device(&spec, false, false).unwrap();
    let mut transaction = Transaction::new();
    transaction.remove(VOLUME).remove(ObjectId(InodeNumber::ROOT.0));
    device.commit(transaction, Durability::Durable).unwrap();
    device.close().unwrap();
    drop(device);
    for error in [
        open_device(&spec, false, false).map(drop).unwrap_err(),
        Volume::open(&spec, MountOptions::default()).map(drop).unwrap_err(),
    ] {
        assert!(error.class == Class::Damaged && error.to_string().contains("encrypted"), "{error}");
    }
}

#[test]
fn encrypted_memory_gives_out_no_blocks() {
    let folder = Folder::new("encrypted-memory");
    let spec = made(&folder, "").remove(1);
    let error = Volume::open_memory(&spec, MountOptions::default()).map(drop).unwrap_err();
    assert!(error.class == Class::Usage && error.to_string().contains("encrypted"), "{error}");
}

/// One master key and one counter of nonces serve the volume and its clones.
#[test]
fn a_clone_of_an_encrypted_volume_is_encrypted() {
    let folder = Folder::new("encrypted-clone");
    let spec = made(&folder, "c").swap_remove(0);
    let volume = open(&spec);
    put(&volume, "/a", &[1; 50_000]);
    let clones = volume.clones().unwrap();
    let clone = clones.files(clones.make("work", None).unwrap().generation).unwrap();
    for round in 2..6 {
        put(&volume, "/a", &[round; 50_000]);
        clone.write_file(&Caller::root(), b"/a", &[round + 10; 50_000], 0o644).unwrap();
        clone.write_file(&Caller::root(), b"/secret of a clone", b"plain words in a clone", 0o644).unwrap();
    }
    assert!(clone.read_file(b"/a").unwrap() == [15; 50_000]);
    drop(clone);
    volume.close().unwrap();
    drop(volume);
    let clone = Volume::open_state(&spec, "work", MountOptions::default()).unwrap();
    assert_eq!(clone.files().read_file(b"/secret of a clone").unwrap(), b"plain words in a clone");
    put(&clone, "/a", &[99; 50_000]);
    clone.close().unwrap();
    drop(clone);
    let volume = open(&spec);
    assert!(content(&volume, "/a") == [5; 50_000]);
    volume.close().unwrap();
    drop(volume);
    let image = std::fs::read(folder.path().join("cflash")).unwrap();
    for plain in [&b"plain words in a clone"[..], b"secret of a clone"] {
        assert!(!image.windows(plain.len()).any(|window| window == plain), "plain text lies in the image");
    }
}

/// A snapshot keeps all that was there, and no byte more has room: the volume is mounted all the
/// same, and deleting the snapshot makes room.
#[test]
fn an_encrypted_volume_full_with_snapshots_can_be_opened() {
    let folder = Folder::new("encrypted-full");
    let spec = made(&folder, "").swap_remove(0);
    let mut volume = open(&spec);
    put(&volume, "/kept", &[1; 100_000]);
    for round in 0..40 {
        let taken = volume.snapshots().unwrap().take(&format!("round-{round}"));
        for bytes in [300_000, 3_000, 1] {
            let write = |name: usize| {
                let path = format!("/{round}-{bytes}-{name}");
                volume.files().write_file(&Caller::root(), path.as_bytes(), &vec![round; bytes], 0o644).is_ok()
            };
            (0..200).all(write);
        }
        let gone: Vec<_> = volume.files().list(InodeNumber::ROOT).unwrap().into_iter().take(20).collect();
        gone.iter().for_each(|one| _ = volume.files().unlink(InodeNumber::ROOT, &one.name));
        volume.close().unwrap();
        drop(volume);
        volume = open(&spec);
        if taken.is_err() {
            break;
        }
    }
    for snapshot in volume.snapshots().unwrap().list() {
        volume.snapshots().unwrap().delete(&snapshot.name).unwrap();
    }
    volume.close().unwrap();
}

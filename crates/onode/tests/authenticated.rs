//! Authenticated volumes of every kind that can be one: used like others, and on a medium some of
//! whose blocks are older. Nothing older is ever read from it.

use crate::agent::{provide, secret};
use crate::common::Folder;
use onode::keys::{Anchor, Encryption, KeyCost, NewKey, Secret, VolumeKeys};
use onode::{Class, CreateOptions, MountOptions, Spec, Volume};
use onode_base::Prng;
use onode_fs::{Caller, ErrorKind};
use onode_object::ObjectId;
use std::collections::BTreeMap;
use std::path::PathBuf;

const BLOCK_BYTES: usize = 4096;
/// Media of which one block is older, of each kind of volume.
const SPLICED: usize = 150;

/// The media of a volume and what opens it.
struct Made {
    media: Vec<PathBuf>,
    spec: Spec,
}

fn made(folder: &Folder, prefix: &str) -> Vec<Made> {
    provide();
    let at = |name: &str| folder.path().join(format!("{prefix}{name}"));
    let flash = "size=4M,page=2K,pages-per-block=16";
    let kinds: [(&[&str], &str, &str); 5] = [
        (&["flash"], "flash:0", flash),
        (&["memory"], "scm:0", "size=4M,exclusive=on"),
        (&["fast", "big"], "tier:0,1", "size=16M,fast-size=12M"),
        (&["flash", "scm"], "flash+scm:0,1", "size=4M,page=2K,pages-per-block=16"),
        (&["a", "b"], "", ""),
    ];
    let make = |(names, text, settings): &(&[&str], &str, &str)| {
        let media: Vec<_> = names.iter().map(|name| at(&format!("{}-{name}", text.replace([':', ','], "")))).collect();
        let paths: Vec<_> = media.iter().map(|path| path.display().to_string()).collect();
        let (new, old) = if text.is_empty() {
            (
                format!("pool:flash:{},{flash}+flash:{},{flash}", paths[0], paths[1]),
                format!("pool:flash:{}+flash:{}", paths[0], paths[1]),
            )
        } else {
            let kind = text.split(':').next().unwrap();
            (format!("{kind}:{},{settings}", paths.join(",")), format!("{kind}:{}", paths.join(",")))
        };
        let (secret, spec) = (secret(), Spec::parse(&new).unwrap());
        let key = NewKey { secret: &secret, label: "", cost: KeyCost::LEAST };
        let options = CreateOptions { uuid: None, ..CreateOptions::default() };
        Volume::create_encrypted(&spec, &options, &Encryption::Authenticated(key))
            .unwrap_or_else(|error| panic!("{new}: {error}"));
        Made { media, spec: Spec::parse(&old).unwrap() }
    };
    kinds.iter().map(make).collect()
}

fn open(spec: &Spec) -> Volume {
    Volume::open(spec, MountOptions::default()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn noted(spec: &Spec) -> Anchor {
    let volume = Volume::open(spec, MountOptions { read_only: true, ..MountOptions::default() }).unwrap();
    let anchor = volume.anchor().expect("it is authenticated");
    volume.close().unwrap();
    anchor
}

fn closed(volume: Volume) {
    volume.close().unwrap();
}

fn content(file: u8, round: u8) -> Vec<u8> {
    crate::content::content(u64::from(file) * 256 + u64::from(round), 9000)
}

/// Files of before, and what is there at the end: some are other ones, some have other names.
fn changed(spec: &Spec) -> (Vec<Vec<u8>>, BTreeMap<String, Vec<u8>>) {
    let volume = open(spec);
    for file in 0..20 {
        volume.write(format!("/{file}"), content(file, 1)).unwrap();
    }
    closed(volume);
    let volume = open(spec);
    let mut now = BTreeMap::new();
    for file in 0..20 {
        match file % 4 {
            0 => volume.write(format!("/{file}"), content(file, 2)).unwrap(),
            1 => volume.remove_all(format!("/{file}")).unwrap(),
            2 => volume
                .files()
                .write_file(&Caller::root(), format!("/new-{file}").as_bytes(), &content(file, 2), 0o644)
                .map(drop)
                .unwrap(),
            _ => {}
        }
        if file % 4 != 1 {
            now.insert(format!("/{file}"), content(file, if file % 4 == 0 { 2 } else { 1 }));
        }
        if file % 4 == 2 {
            now.insert(format!("/new-{file}"), content(file, 2));
        }
    }
    closed(volume);
    ((0..20).filter(|file| file % 4 == 1).map(|file| format!("/{file}").into_bytes()).collect(), now)
}

/// What is read of a medium some of which is older: files as they are now, or errors.
fn told(volume: &Volume, removed: &[Vec<u8>], now: &BTreeMap<String, Vec<u8>>) -> usize {
    let mut refused = 0;
    for (path, expected) in now {
        match volume.files().read_file(path.as_bytes()) {
            Ok(found) => assert!(found == *expected, "{path} is not what was stored last"),
            Err(_) => refused += 1,
        }
    }
    for path in removed {
        match volume.files().read_file(path).map_err(|error| error.kind) {
            Err(ErrorKind::NotFound) => {}
            Err(_) => refused += 1,
            Ok(_) => panic!("{} is back", String::from_utf8_lossy(path)),
        }
    }
    refused
}

#[test]
fn nothing_older_is_read_whatever_block_is_put_back() {
    let folder = Folder::new("authenticated-spliced");
    for Made { media, spec } in made(&folder, "") {
        let volume = open(&spec);
        for file in 0..20 {
            volume.write(format!("/{file}"), content(file, 0)).unwrap();
        }
        closed(volume);
        let older: Vec<_> = media.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let (removed, now) = changed(&spec);
        let anchor = noted(&spec);
        let latest: Vec<_> = media.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let mut places = Vec::new();
        for (medium, (older, latest)) in older.iter().zip(&latest).enumerate() {
            let blocks = older.chunks(BLOCK_BYTES).zip(latest.chunks(BLOCK_BYTES)).enumerate();
            places.extend(blocks.filter(|(_, (older, latest))| older != latest).map(|(block, _)| (medium, block)));
        }
        // One block alone, and many at once.
        let step = places.len().div_ceil(SPLICED);
        let mut put_back: Vec<Vec<_>> = places.iter().step_by(step).map(|place| vec![*place]).collect();
        let mut draw = Prng::new(9);
        put_back.extend((0..SPLICED).map(|round| {
            let tenths = 1 + round as u64 % 9;
            places.iter().copied().filter(|_| draw.chance(tenths, 10)).collect()
        }));
        let (mut refused, mut other) = (0, 0);
        for blocks in &put_back {
            let mut media_now = latest.clone();
            for &(medium, block) in blocks {
                let range = block * BLOCK_BYTES..((block + 1) * BLOCK_BYTES).min(latest[medium].len());
                media_now[medium][range.clone()].copy_from_slice(&older[medium][range]);
            }
            media.iter().zip(&media_now).for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
            match Volume::open(&spec, MountOptions { read_only: true, ..MountOptions::default() }) {
                Err(_) => refused += 1,
                // All of it is of some other time, which its owner can see.
                Ok(volume) if volume.anchor() != Some(anchor) => other += 1,
                Ok(volume) => refused += usize::from(told(&volume, &removed, &now) > 0),
            }
        }
        println!("{spec}: of {} media {refused} refused, {other} of another time", put_back.len());
        assert!(refused > SPLICED / 4, "{spec}: only {refused} of {} were refused", put_back.len());
    }
}

#[test]
fn an_older_copy_and_another_volume_are_told_by_an_anchor() {
    let folder = Folder::new("authenticated-anchors");
    for Made { spec, .. } in made(&folder, "") {
        let first = noted(&spec);
        let volume = open(&spec);
        volume.write("/a", "b").unwrap();
        closed(volume);
        let second = noted(&spec);
        assert!(second.changes > first.changes, "{first} and {second}");
        assert_eq!(noted(&spec), second);
    }
    for Made { spec, .. } in made(&folder, "anchored-") {
        let error = Volume::open(&spec, MountOptions::default()).expect_err("it is older than was noted");
        assert!(error.class == Class::Damaged && error.to_string().contains("older"), "{error}");
    }
}

#[test]
fn snapshots_clones_and_keys_of_authenticated_volumes_are_as_ever() {
    let folder = Folder::new("authenticated-states");
    for Made { spec, .. } in made(&folder, "") {
        let (_, now) = changed(&spec);
        let volume = open(&spec);
        volume.snapshots().expect("it can have some").take("before").unwrap();
        for path in now.keys() {
            volume.remove_all(path).unwrap();
        }
        let clones = volume.clones().unwrap();
        let clone = clones.files(clones.make("work", Some("before")).unwrap().generation).unwrap();
        clone.write_file(&Caller::root(), b"/in-clone", b"some", 0o644).unwrap();
        drop(clone);
        closed(volume);
        let mut keys = VolumeKeys::open(&spec, false).unwrap();
        let new = Secret::key_file(vec![7; 32]).unwrap();
        let id = keys.add(&NewKey { secret: &new, label: "", cost: KeyCost::LEAST }).unwrap();
        keys.close().unwrap();
        let mut keys = VolumeKeys::open(&spec, false).unwrap();
        assert!(keys.is_authenticated());
        keys.remove(&[id]).unwrap();
        keys.close().unwrap();
        let shown = Volume::open_state(&spec, "before", MountOptions { read_only: true, ..MountOptions::default() });
        let shown = shown.unwrap();
        assert_eq!(told(&shown, &[], &now), 0, "{spec}");
        closed(shown);
        let clone = Volume::open_state(&spec, "work", MountOptions::default()).unwrap();
        assert_eq!((clone.files().read_file(b"/in-clone").unwrap(), told(&clone, &[], &now)), (b"some".to_vec(), 0));
        closed(clone);
        let (device, _) = onode::open_device(&spec, true, true).unwrap();
        let checked = onode_fs::check::check(device.as_ref()).unwrap();
        assert!(checked.findings.is_empty() && device.health().worst().is_none(), "{spec}: {:?}", checked.findings);
        assert!(device.stat(ObjectId::AUTHENTICATED).is_err());
    }
}

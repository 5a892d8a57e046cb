//! Compressed volumes through the facade: what a mount with `compress` wrote reads the same however
//! the volume is opened later, and one that was never mounted so has no trace of it.

use crate::common::Folder;
use crate::compressed::{close, make, open, text};
use onode::{Compression, Spec, Volume, open_device, repair_files};
use onode_fs::volume::{VOLUME, VolumeInfo};
use onode_fs::{Caller, ErrorKind, Follow, InodeNumber, RenameFlags};
use onode_object::{AttributeKey, AttributeKind, Durability, ObjectDevice, Transaction};

/// The specs of an empty volume of each kind in a folder, to open it.
fn made(folder: &Folder, bytes: u64) -> Vec<Spec> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let specs = [
        (format!("flash:{},size={bytes},page=2K,pages-per-block=16", at("flash")), format!("flash:{}", at("flash"))),
        (format!("scm:{},size={bytes}", at("scm")), format!("scm:{}", at("scm"))),
    ];
    make(&specs)
}

/// Whether the settings say that content may be compressed.
fn is_admitted(spec: &Spec) -> bool {
    let (device, _) = open_device(spec, true, false).unwrap();
    VolumeInfo::load(device.as_ref()).unwrap().features.incompatible & 4 != 0
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    onode_base::Prng::new(seed).fill(&mut bytes);
    bytes
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

#[test]
fn what_was_compressed_reads_however_it_is_opened() {
    let folder = Folder::new("services-reads");
    for spec in made(&folder, 16 << 20) {
        for (number, mode) in [Compression::Fast, Compression::Small, Compression::Auto].into_iter().enumerate() {
            let volume = open(&spec, mode);
            put(&volume, &format!("/text{number}"), &text(1_000_000, number as u8));
            put(&volume, &format!("/noise{number}"), &noise(300_000, number as u64));
            close(volume);
        }
        for mode in [Compression::Never, Compression::Small, Compression::Never] {
            let volume = open(&spec, mode);
            for number in 0..3 {
                assert!(content(&volume, &format!("/text{number}")) == text(1_000_000, number as u8), "{spec}");
                assert!(content(&volume, &format!("/noise{number}")) == noise(300_000, number as u64), "{spec}");
            }
            let used = volume.device().space().total - volume.device().space().available;
            assert!(used < 3_000_000, "{spec}: {used} bytes are used for 3.9 million");
            let number = volume.files().resolve(b"/text2", Follow::No).unwrap();
            let attributes = volume.files().attributes(number).unwrap();
            assert!(attributes.blocks * 512 < attributes.size / 2, "{attributes:?}");
            let number = volume.files().resolve(b"/text1", Follow::No).unwrap();
            // A mount that does not compress changes what is.
            let handle = volume.files().write(&Caller::root(), number, 500_000, b"changed");
            assert_eq!(handle.unwrap(), 7);
            let mut changed = text(1_000_000, 1);
            changed[500_000..500_007].copy_from_slice(b"changed");
            assert!(content(&volume, "/text1") == changed);
            put(&volume, "/text1", &text(1_000_000, 1));
            close(volume);
        }
        assert!(is_admitted(&spec), "{spec}: an older program would read what is compressed");
        let (device, _) = open_device(&spec, true, false).unwrap();
        let report = onode_fs::check::check(device.as_ref()).unwrap();
        assert!(report.is_clean(), "{spec}: {:?}", report.findings);
    }
}

#[test]
fn a_volume_that_never_compressed_has_no_trace_of_it() {
    let folder = Folder::new("services-never");
    for spec in made(&folder, 8 << 20) {
        let volume = open(&spec, Compression::Never);
        put(&volume, "/text", &text(300_000, 0));
        close(volume);
        let marks = |spec: &Spec| {
            let volume = open(spec, Compression::Never);
            let mark = AttributeKey::new(AttributeKind::SERVICE, 0);
            let device: &dyn ObjectDevice = volume.device();
            let found = device.attributes(VOLUME, mark, 9).unwrap();
            close(volume);
            found.into_iter().filter(|(key, _)| key.kind == AttributeKind::SERVICE).count()
        };
        assert_eq!(marks(&spec), 0, "{spec}");
        assert!(!is_admitted(&spec), "{spec}");
        // Nor has one that was mounted so and changed by nobody: a wrapper hides what it keeps.
        close(open(&spec, Compression::Fast));
        assert_eq!(marks(&spec), 0, "{spec}");
    }
}

#[test]
fn settings_that_were_lost_and_made_anew_do_not_forget_it() {
    let folder = Folder::new("services-lost");
    for spec in made(&folder, 8 << 20) {
        let volume = open(&spec, Compression::Fast);
        put(&volume, "/text", &text(500_000, 3));
        close(volume);
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
        let volume = open(&spec, Compression::Never);
        assert!(content(&volume, "/text") == text(500_000, 3), "{spec}");
        close(volume);
        assert!(is_admitted(&spec), "{spec}");
    }
}

/// N6 and N7: what `write` accepted is kept, also if it does not compress and what was there did.
#[test]
fn what_write_accepted_on_a_full_volume_is_kept() {
    let folder = Folder::new("services-full");
    for spec in made(&folder, 4 << 20) {
        let volume = open(&spec, Compression::Fast);
        let files = volume.files();
        let mut names = Vec::new();
        for number in 0.. {
            let (name, bytes) = (format!("/f{number}"), text(90_000, number as u8));
            match files.write_file(&Caller::root(), name.as_bytes(), &bytes, 0o644) {
                Ok(_) => names.push((name, bytes)),
                Err(error) if error.kind == ErrorKind::NoSpace => break,
                Err(error) => panic!("{spec}: {error}"),
            }
        }
        files.sync().unwrap();
        let plain: usize = names.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(plain > 8 << 20, "{spec}: only {plain} bytes fitted into 4 MiB");
        let mut accepted = 0;
        for (round, (name, bytes)) in names.iter_mut().enumerate() {
            let number = files.resolve(name.as_bytes(), Follow::No).unwrap();
            let data = noise(5_000, round as u64);
            match files.write(&Caller::root(), number, 40_000, &data) {
                Ok(count) => {
                    bytes[40_000..40_000 + count].copy_from_slice(&data[..count]);
                    accepted += count;
                }
                Err(error) if error.kind == ErrorKind::NoSpace => {}
                Err(error) => panic!("{spec}: {error}"),
            }
        }
        files.sync().unwrap_or_else(|error| panic!("{spec}: what was accepted is lost: {error}"));
        close(volume);
        println!("{spec}: {accepted} bytes of noise were accepted");
        let volume = open(&spec, Compression::Never);
        for (name, bytes) in &names {
            assert!(content(&volume, name) == *bytes, "{spec}: {name}");
        }
        for (name, _) in &names {
            volume.files().unlink(onode_fs::InodeNumber::ROOT, &name.as_bytes()[1..]).unwrap();
        }
        close(volume);
    }
}

/// A directory says how what is made in it is compressed; a file says it for itself.
#[test]
fn files_and_directories_say_how_they_are_compressed() {
    let folder = Folder::new("services-hints");
    for spec in made(&folder, 16 << 20) {
        let volume = open(&spec, Compression::Never);
        let refused = volume.files().set_compression(InodeNumber::ROOT, Compression::Fast);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::NotSupported, "{spec}: nobody would heed it");
        close(volume);
        close(open(&spec, Compression::Fast));

        let volume = open(&spec, Compression::Never);
        let files = volume.files();
        for (name, compression) in [("small", Compression::Small), ("plain", Compression::Never)] {
            let made = files.make_directories(&Caller::root(), format!("/{name}").as_bytes(), 0o755).unwrap();
            files.set_compression(made, compression).unwrap();
        }
        let stored = |path: &str| {
            put(&volume, path, &text(500_000, 1));
            files.sync().unwrap();
            let number = files.resolve(path.as_bytes(), Follow::No).unwrap();
            files.attributes(number).unwrap().blocks * 512
        };
        assert!(stored("/small/a") < 100_000 && stored("/plain/a") >= 500_000, "{spec}");
        assert!(stored("/a") >= 500_000, "{spec}: the mount does not compress");
        files.rename(InodeNumber::ROOT, b"a", InodeNumber::ROOT, b"b", RenameFlags::Replace).unwrap();
        let number = files.resolve(b"/b", Follow::No).unwrap();
        files.set_compression(number, Compression::Fast).unwrap();
        assert!(stored("/b") < 250_000, "{spec}");
        close(volume);

        let volume = open(&spec, Compression::Fast);
        let files = volume.files();
        for (path, compression) in
            [("/small/a", Compression::Small), ("/plain/a", Compression::Never), ("/b", Compression::Fast)]
        {
            let number = files.resolve(path.as_bytes(), Follow::No).unwrap();
            assert_eq!(files.chosen_compression(number), Ok(compression), "{spec}: {path}");
            assert!(content(&volume, path) == text(500_000, 1), "{spec}: {path}");
        }
        close(volume);
    }
}

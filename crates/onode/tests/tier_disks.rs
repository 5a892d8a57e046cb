//! Volumes on two disks as files: what check and repair do about damage on either, and what a new
//! fast disk keeps.

use crate::common::Folder;
use onode::medium::{check_medium, repair_medium};
use onode::{Class, CreateOptions, MountOptions, Spec, Volume};
use onode_base::Prng;
use onode_fs::{Caller, InodeNumber};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const BLOCK: usize = 4096;
const CALLER: Caller = Caller::root();

/// The folder of two disks.
struct Place(Folder);

impl Place {
    fn new(name: &str) -> Self {
        Self(Folder::new(&format!("tier-{name}")))
    }

    fn fast(&self) -> PathBuf {
        self.0.path().join("ssd.img")
    }

    fn big(&self) -> PathBuf {
        self.0.path().join("hdd.img")
    }

    fn spec(&self, settings: &str) -> Spec {
        let comma = if settings.is_empty() { "" } else { "," };
        let text = format!("tier:{},{}{comma}{settings}", self.fast().display(), self.big().display());
        Spec::from_argument(text.as_ref()).unwrap()
    }
}

fn content() -> Vec<u8> {
    let mut bytes = vec![0; 64 * BLOCK];
    Prng::new(5).fill(&mut bytes);
    bytes
}

/// A volume with one file.
fn made(name: &str, settings: &str) -> Place {
    let place = Place::new(name);
    Volume::create(&place.spec(&format!("size=32M,fast-size=16M{settings}")), &CreateOptions::default()).unwrap();
    let volume = Volume::open(&place.spec(""), MountOptions::default()).unwrap();
    let file = volume.files().create(&CALLER, InodeNumber::ROOT, b"file", 0o644).unwrap().inode;
    assert_eq!(volume.files().write(&CALLER, file, 0, &content()).unwrap(), 64 * BLOCK);
    volume.close().unwrap();
    place
}

/// Turns a bit in every block of the disk that holds a block of the file; how many.
fn damage(disk: &Path) -> usize {
    let (bytes, truth) = (fs::read(disk).unwrap(), content());
    let file = OpenOptions::new().write(true).open(disk).unwrap();
    let mut count = 0;
    for (number, block) in bytes.chunks_exact(BLOCK).enumerate() {
        if truth.chunks_exact(BLOCK).any(|chunk| chunk == block) {
            file.write_all_at(&[block[7] ^ 1], (number * BLOCK + 7) as u64).unwrap();
            count += 1;
        }
    }
    count
}

fn read(place: &Place) -> std::result::Result<Vec<u8>, onode_fs::Error> {
    let volume = Volume::open(&place.spec(""), MountOptions { read_only: true, ..MountOptions::default() }).unwrap();
    let file = volume.files().lookup(InodeNumber::ROOT, b"file").unwrap();
    let mut bytes = vec![0; file.size as usize];
    volume.files().read(file.inode, 0, &mut bytes).map(|_| bytes)
}

fn promote(place: &Place) {
    let volume = Volume::open(&place.spec(""), MountOptions::default()).unwrap();
    let file = volume.files().lookup(InodeNumber::ROOT, b"file").unwrap().inode;
    volume.device().place().unwrap().promote(file.object(), true).unwrap();
    volume.close().unwrap();
}

#[test]
fn a_check_reads_the_copies_and_a_repair_gives_up_damaged_ones() {
    let place = made("tier-copies", "");
    promote(&place);
    assert!(damage(&place.fast()) >= 64);
    let report = check_medium(&place.spec(""), &mut |_, _| ()).unwrap();
    assert!(report.is_sound, "{report:?}");
    assert!(
        report.findings.iter().any(|found| found.severity == "warning" && found.kind == "copies-damaged"),
        "{report:?}"
    );
    let repaired = repair_medium(&place.spec(""), false, false).unwrap();
    assert!(!repaired.lost && repaired.actions.len() == 1, "{repaired:?}");
    let report = check_medium(&place.spec(""), &mut |_, _| ()).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
    assert_eq!(read(&place).unwrap(), content());
}

#[test]
fn a_repair_that_drops_ends_clean_and_says_what_to_restore() {
    let place = made("tier-drop", "");
    assert!(damage(&place.big()) >= 64);
    damage(&place.fast());
    let report = check_medium(&place.spec(""), &mut |_, _| ()).unwrap();
    assert!(!report.is_sound && report.is_mountable, "{report:?}");
    assert!(read(&place).is_err());
    assert!(!repair_medium(&place.spec(""), false, false).unwrap().lost);
    assert!(!check_medium(&place.spec(""), &mut |_, _| ()).unwrap().is_sound);
    let repaired = repair_medium(&place.spec(""), true, false).unwrap();
    assert!(repaired.lost && repaired.losers.len() == 1, "{repaired:?}");
    assert!(
        repaired.actions.iter().any(|action| action.contains("zeroed")) && repaired.actions.len() < 4,
        "{repaired:?}"
    );
    let report = check_medium(&place.spec(""), &mut |_, _| ()).unwrap();
    assert!(report.is_sound && report.is_mountable, "{report:?}");
    assert!(read(&place).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn a_new_fast_disk_is_like_the_one_before() {
    let settings = ",sections=d0:16K:1+d1:64K:1+d2:256K:2,acknowledge=either,allocate=paper,erase-block=128K";
    let place = made("tier-new", settings);
    let division = |spec: &Spec| {
        let volume = Volume::open(spec, MountOptions::default()).unwrap();
        let division = volume.device().place().unwrap().division();
        volume.close().unwrap();
        // How requests are made is not what the volume is.
        let summary = volume.device().info().summary;
        (division, summary.replace("one request at a time", "io_uring"))
    };
    let before = division(&place.spec(""));
    assert_eq!(before.0.len(), 3);
    fs::remove_file(place.fast()).unwrap();
    assert_eq!(division(&place.spec("fast=new,fast-size=16M")), before);
    assert_eq!(division(&place.spec("")), before);
    assert_eq!(read(&place).unwrap(), content());
}

/// A volume whose changes wait for the fast disk alone, as a program leaves it that ended without
/// closing it.
fn left_open(name: &str) -> Place {
    let place = made(name, ",acknowledge=either");
    let volume = Volume::open(&place.spec(""), MountOptions::default()).unwrap();
    let files = volume.files();
    for number in 0..20 {
        let file = files.create(&CALLER, InodeNumber::ROOT, format!("f{number}").as_bytes(), 0o644).unwrap().inode;
        files.write(&CALLER, file, 0, &[number; 500]).unwrap();
        files.fsync(file, None, false).unwrap();
    }
    place
}

fn names(place: &Place, settings: &str, accept_loss: bool) -> Result<usize, onode::Error> {
    let volume = Volume::open(&place.spec(settings), MountOptions { accept_loss, ..MountOptions::default() })?;
    let found =
        (0..20).filter(|number| volume.files().lookup(InodeNumber::ROOT, format!("f{number}").as_bytes()).is_ok());
    let count = found.count();
    volume.close()?;
    Ok(count)
}

#[test]
fn a_sound_fast_disk_brings_home_what_only_it_has_before_it_is_given_up() {
    assert_eq!(names(&left_open("tier-home"), "fast=new,fast-size=16M", false).unwrap(), 20);
}

#[test]
fn a_fast_disk_is_not_left_away_unasked() {
    let place = left_open("tier-away");
    let error = names(&place, "fast=none", false).unwrap_err();
    assert_eq!(error.class, Class::Loss, "{error}");
    // Gone for good, and replaced.
    fs::rename(place.fast(), place.0.path().join("away")).unwrap();
    let error = names(&place, "fast=new,fast-size=16M", false).unwrap_err();
    assert_eq!(error.class, Class::Loss, "{error}");
    assert!(!place.fast().exists(), "a fast disk was made before anybody consented");
    let report = check_medium(&place.spec("fast=none"), &mut |_, _| ()).unwrap();
    assert!(!report.is_sound && report.findings.iter().any(|found| found.message.contains("missing")), "{report:?}");
    // It is all there with it.
    fs::rename(place.0.path().join("away"), place.fast()).unwrap();
    assert_eq!(names(&place, "", false).unwrap(), 20);
    assert_eq!(names(&place, "fast=none", false).unwrap(), 20);
}

#[test]
fn with_consent_it_goes_on_without() {
    let place = left_open("tier-consent");
    names(&place, "fast=none", true).unwrap();
    names(&place, "fast=none", false).unwrap();
}

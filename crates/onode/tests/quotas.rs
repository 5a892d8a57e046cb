//! Limits beside what services do with a volume: transactions of users, clones, going back.

use crate::common::Folder;
use onode::{Class, FileSystem, QuotaLimits, QuotaSubject, TransactionOptions, Volume};
use onode_fs::{Caller, ErrorKind, InodeNumber};

const ROOT: QuotaSubject = QuotaSubject::Directory(InodeNumber::ROOT);

fn limit(volume: &Volume, bytes: u64, files: u64) {
    let limits = QuotaLimits { bytes: Some(bytes), files: Some(files) };
    volume.files().set_quota(ROOT, limits).unwrap();
}

fn used(files: &FileSystem) -> (u64, u64) {
    let used = files.quotas().unwrap()[0].used;
    (used.bytes, used.files)
}

fn is_clean(volume: &Volume) {
    volume.files().sync().unwrap();
    assert_eq!(onode_fs::check::check(volume.device()).unwrap().findings, []);
}

#[test]
fn transactions_count_for_themselves_and_add_up() {
    let volume = Volume::open_or_create("ram:size=64M").unwrap();
    volume.write("/gone", vec![1; 100]).unwrap();
    limit(&volume, 1000, 10);
    let begin = || volume.begin(TransactionOptions::default()).unwrap();
    let (one, two) = (begin(), begin());
    one.volume().write("/one", vec![1; 300]).unwrap();
    two.volume().write("/two", vec![2; 400]).unwrap();
    two.volume().remove_all("/gone").unwrap();
    assert_eq!(two.volume().write("/more", vec![2; 601]).unwrap_err().class, Class::OverLimit);
    assert_eq!(two.volume().files().remove_quota(ROOT).unwrap_err().kind, ErrorKind::NotPermitted);
    two.volume().remove_all("/more").unwrap();
    assert_eq!(used(volume.files()), (100, 2));
    volume.write("/plain", vec![3; 50]).unwrap();
    one.commit().unwrap();
    assert_eq!(used(volume.files()), (450, 4));
    two.commit().unwrap();
    assert_eq!(used(volume.files()), (750, 4));
    is_clean(&volume);
    // Each has room for itself, but not both.
    let (one, two) = (begin(), begin());
    one.volume().write("/three", vec![1; 200]).unwrap();
    two.volume().write("/four", vec![1; 200]).unwrap();
    one.commit().unwrap();
    assert_eq!(two.commit().unwrap_err().class, Class::Conflict);
    assert_eq!(used(volume.files()), (950, 5));
    // What was begun with other limits was not counted for these.
    let three = begin();
    three.volume().remove_all("/three").unwrap();
    volume.files().set_quota(QuotaSubject::Group(0), QuotaLimits::default()).unwrap();
    assert_eq!(three.commit().unwrap_err().class, Class::Conflict);
    is_clean(&volume);
}

#[test]
fn a_clone_has_the_limits_of_what_it_was_made_of() {
    let folder = Folder::new("quotas-clones");
    let volume =
        Volume::open_or_create(&format!("flash:{},size=24M", folder.path().join("disk.img").display())).unwrap();
    volume.write("/a", vec![1; 300]).unwrap();
    limit(&volume, 1000, 10);
    volume.snapshots().unwrap().take("monday").unwrap();
    volume.write("/b", vec![1; 300]).unwrap();
    let clones = volume.clones().unwrap();
    let clone = clones.files(clones.make("work", Some("monday")).unwrap().generation).unwrap();
    assert_eq!((used(volume.files()), used(&clone)), ((600, 3), (300, 2)));
    let write = |bytes| clone.write_file(&Caller::root(), b"/c", &vec![1; bytes], 0o644).map_err(|error| error.kind);
    assert_eq!(write(701), Err(ErrorKind::QuotaExceeded));
    assert!(write(700).is_ok());
    assert_eq!((used(volume.files()), used(&clone)), ((600, 3), (1000, 3)));
    clone.sync().unwrap();
    is_clean(&volume);
}

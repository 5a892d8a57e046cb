//! All tests once more on volumes whose inodes are objects of their own.

mod attributes;
mod basics;
mod check;
mod common;
mod directories;
mod model;
mod orphans;
mod paths;
mod promises;
mod quota;
mod scrub;
mod threads;

use common::{ROOT, names};
use onode_fs::Inodes;
use onode_fs::check::{FindingKind, check as check_volume};
use onode_object::{AttributeKey, AttributeKind, ObjectDevice, ObjectId};

/// The inode of a file is the content of the object beside it, and the file's own object has none.
#[test]
fn inodes_are_objects() {
    let sample = check::Sample::new();
    let device = sample.volume.device.as_ref();
    assert_eq!(sample.volume.mount().volume().inodes(), Inodes::Separate);
    for file in [ObjectId(1), sample.d, sample.sub, sample.file] {
        assert_eq!(device.attribute(file, AttributeKey::new(AttributeKind::INODE, 0)), Ok(None));
        assert_eq!(device.stat(Inodes::Separate.object(file)).unwrap().size, 128);
        assert!(!device.stat(file).unwrap().hints.embed);
    }
}

#[test]
fn an_inode_without_its_file_is_found_and_taken_away() {
    let sample = check::Sample::new();
    sample.change(|t| _ = t.remove(sample.sub));
    let inode = Inodes::Separate.object(sample.sub);
    let report = check_volume(sample.volume.device.as_ref()).unwrap();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.kind, finding.object)).collect();
    let expected = [
        (FindingKind::EntryDangling, sample.d),
        (FindingKind::WrongEntryCount, sample.d),
        (FindingKind::WrongLinkCount, sample.d),
        (FindingKind::LostObject, inode),
    ];
    assert_eq!(found, expected);
    let fs = sample.expect(&report.findings);
    assert!(sample.volume.device.stat(inode).is_err());
    assert_eq!(names(&fs, ROOT), ["d", "link", "second"]);
}

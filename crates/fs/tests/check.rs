//! One damage per finding: the check names exactly it, the repair mends it, and nothing else
//! changes.

use crate::common::*;
use check::{Finding, FindingKind, Severity, check, repair};
use onode_base::{ErrorKind, Timestamp};
use onode_fs::inode::Inode;
use onode_fs::*;
use onode_object::{AttributeKey, AttributeKind, Durability, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction};
use std::sync::Arc;

const INODE: AttributeKey = AttributeKey::new(AttributeKind::INODE, 0);
const VOLUME: ObjectId = ObjectId(2);

/// A volume with a few of everything: /d/sub, /d/file (two names), /link, xattrs small and large.
pub(crate) struct Sample {
    pub(crate) volume: Volume,
    pub(crate) d: ObjectId,
    pub(crate) sub: ObjectId,
    pub(crate) file: ObjectId,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let volume = Volume::of_size(16 << 20);
        let fs = volume.mount();
        let d = mkdir(&fs, ROOT, "d");
        let sub = mkdir(&fs, d, "sub");
        let file = create(&fs, d, "file");
        write(&fs, file, 0, b"content");
        fs.link(file, ROOT, b"second").unwrap();
        fs.make_symbolic_link(&root(), ROOT, b"link", b"d/file").unwrap();
        fs.set_xattr(&root(), file, b"user.small", b"1", XattrFlags::Any).unwrap();
        fs.set_xattr(&root(), file, b"user.large", &[9; 5000], XattrFlags::Any).unwrap();
        fs.unmount().unwrap();
        let sample = Self { volume, d: d.object(), sub: sub.object(), file: file.object() };
        assert_eq!(sample.findings(), []);
        sample
    }

    pub(crate) fn change(&self, build: impl FnOnce(&mut Transaction)) {
        let mut transaction = Transaction::new();
        build(&mut transaction);
        self.volume.device.commit(transaction, Durability::Durable).unwrap();
    }

    fn findings(&self) -> Vec<Finding> {
        check(self.volume.device.as_ref()).unwrap().findings
    }

    /// The slot whose bytes contain the name.
    fn slot(&self, object: ObjectId, kind: AttributeKind, name: &[u8]) -> (AttributeKey, Vec<u8>) {
        let all = self.volume.device.attributes(object, AttributeKey::new(kind, 0), 1000).unwrap();
        let holds = |bytes: &Vec<u8>| bytes.windows(name.len()).any(|window| window == name);
        all.into_iter().find(|(key, bytes)| key.kind == kind && holds(bytes)).unwrap()
    }

    fn inode(&self, object: ObjectId) -> Inode {
        INODES.load(self.volume.device.as_ref(), object).unwrap().sound().unwrap()
    }

    fn change_inode(&self, object: ObjectId, change: impl FnOnce(&mut Inode)) {
        let mut inode = self.inode(object);
        change(&mut inode);
        self.change(|t| INODES.store(t, object, &inode));
    }

    /// Takes away the inode of an object.
    fn lose_inode(&self, object: ObjectId) {
        self.change(|t| match INODES {
            Inodes::Embedded => _ = t.remove_attribute(object, INODE),
            Inodes::Separate => _ = t.remove(INODES.object(object)),
        });
    }

    /// Turns the inode of an object into what is none.
    fn spoil_inode(&self, object: ObjectId) {
        self.change(|t| match INODES {
            Inodes::Embedded => _ = t.set_attribute(object, INODE, vec![0xff]),
            Inodes::Separate => _ = t.write(INODES.object(object), 0, vec![0xff]),
        });
    }

    /// The object made after `object`.
    fn next(object: ObjectId) -> ObjectId {
        ObjectId(if INODES == Inodes::Separate { object.0 + 2 } else { object.0 + 1 })
    }

    /// Every name leads where it did.
    fn is_whole(&self) {
        let fs = self.volume.mount();
        for name in [b"/d/file".as_slice(), b"/second", b"/link"] {
            let number = fs.resolve(name, Follow::Yes).unwrap();
            assert_eq!(number.object(), self.file);
        }
        assert_eq!(fs.resolve(b"/d/sub", Follow::Yes).unwrap().object(), self.sub);
        let file = InodeNumber(self.file.0);
        assert_eq!(fs.get_xattr(file, b"user.small").unwrap(), b"1");
        assert_eq!(fs.get_xattr(file, b"user.large").unwrap(), [9; 5000]);
    }

    /// The check finds exactly that; after the repair nothing.
    pub(crate) fn expect(&self, expected: &[Finding]) -> FileSystem {
        assert_eq!(self.findings(), expected);
        let repaired = repair(self.volume.device.as_ref(), Timestamp::default(), [0; 16]).unwrap();
        assert_eq!(repaired.before.findings, expected);
        assert_eq!(repaired.after.findings, []);
        assert!(repaired.fixed > 0);
        self.volume.mount()
    }
}

pub(crate) fn finding(kind: FindingKind, object: ObjectId) -> Finding {
    Finding { kind, object, slot: None, name: None, expected: None, found: None }
}

pub(crate) fn in_slot(kind: FindingKind, object: ObjectId, key: AttributeKey, name: &[u8]) -> Finding {
    Finding { slot: Some(key.index), name: Some(name.to_vec()), ..finding(kind, object) }
}

pub(crate) fn counts(finding: Finding, expected: u64, found: u64) -> Finding {
    Finding { expected: Some(expected), found: Some(found), ..finding }
}

fn entry(file_type: FileType, inode: ObjectId, name: &[u8]) -> Vec<u8> {
    let mut bytes = vec![file_type as u8];
    onode_base::varint::put(&mut bytes, inode.0);
    bytes.extend_from_slice(name);
    bytes
}

#[test]
fn volume_damaged() {
    let sample = Sample::new();
    sample.change(|t| {
        t.set_attribute(VOLUME, AttributeKey::new(AttributeKind::VOLUME, 0), vec![1, 2, 3]);
    });
    assert_eq!(sample.findings(), [finding(FindingKind::VolumeDamaged, VOLUME)]);
    let repaired = repair(sample.volume.device.as_ref(), Timestamp::default(), *b"another a secret").unwrap();
    assert_eq!(repaired.after.findings, []);
    sample.is_whole();
}

/// Damage took the object of the settings: every name is still found, and the files have what they
/// had.
#[test]
fn volume_lost() {
    let sample = Sample::new();
    sample.change(|t| _ = t.remove(VOLUME));
    let refused = FileSystem::mount(sample.volume.device.clone(), sample.volume.clock.clone(), Options::default());
    let error = refused.expect_err("without its settings it is not mounted");
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(error.to_string().contains("onode repair"), "{error}");
    let repaired = repair(sample.volume.device.as_ref(), Timestamp::default(), *b"another a secret").unwrap();
    assert_eq!(repaired.before.worst(), Some(Severity::Fatal));
    assert_eq!(repaired.after.findings, []);
    sample.is_whole();
}

/// Settings of a later format are nobody's to overwrite.
#[test]
fn volume_of_a_later_format() {
    let sample = Sample::new();
    let later = [b"onodefs\n".as_slice(), &[2, 0xff]].concat();
    sample.change(|t| _ = t.set_attribute(VOLUME, AttributeKey::new(AttributeKind::VOLUME, 0), later));
    let error = repair(sample.volume.device.as_ref(), Timestamp::default(), [0; 16]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

/// Damage took everything: what is left is a volume without files, and it can be used.
#[test]
fn everything_lost() {
    let empty = Arc::new(onode_object::ram::RamDevice::new(1 << 20));
    let repaired = repair(empty.as_ref(), Timestamp::default(), [7; 16]).unwrap();
    assert_eq!(repaired.before.worst(), Some(Severity::Fatal));
    assert_eq!(repaired.after.findings, []);
    let files = FileSystem::mount(empty, Sample::new().volume.clock.clone(), Options::default()).unwrap();
    files.write_file(&Caller::root(), b"/new", b"bytes", 0o644).unwrap();
    assert_eq!(files.list(InodeNumber::ROOT).unwrap().len(), 1);
}

#[test]
fn root_missing() {
    let sample = Sample::new();
    sample.change(|t| {
        t.remove(ObjectId(1));
    });
    let link = Sample::next(sample.file);
    let mut expected = vec![
        finding(FindingKind::RootMissing, ObjectId(1)),
        counts(finding(FindingKind::WrongLinkCount, sample.file), 1, 2),
        finding(FindingKind::Unreachable, sample.d),
        finding(FindingKind::Unreachable, link),
    ];
    if INODES == Inodes::Separate {
        expected.push(finding(FindingKind::LostObject, INODES.object(ObjectId(1))));
    }
    let fs = sample.expect(&expected);
    let found = lookup(&fs, ROOT, "lost+found").unwrap().inode;
    assert_eq!(names(&fs, found), [format!("#{}", sample.d.0), format!("#{}", link.0)]);
    assert_eq!(fs.read_file(format!("/lost+found/#{}/file", sample.d.0).as_bytes()).unwrap(), b"content");
}

#[test]
fn inode_missing_and_damaged() {
    let sample = Sample::new();
    sample.lose_inode(sample.file);
    sample.spoil_inode(sample.sub);
    let fs = sample
        .expect(&[finding(FindingKind::InodeMissing, sample.file), finding(FindingKind::InodeDamaged, sample.sub)]);
    assert_eq!(fs.read_file(b"/d/file").unwrap(), b"content");
    let file = lookup(&fs, ROOT, "second").unwrap();
    assert_eq!((file.links, file.permissions), (2, 0o600));
    assert_eq!(fs.get_xattr(file.inode, b"user.small").unwrap(), b"1");
}

#[test]
fn entry_damaged() {
    let sample = Sample::new();
    let (key, _) = sample.slot(sample.d, AttributeKind::ENTRY, b"sub");
    sample.change(|t| {
        t.set_attribute(sample.d, key, vec![15, 15]);
    });
    let fs = sample.expect(&[
        Finding { slot: Some(key.index), ..finding(FindingKind::EntryDamaged, sample.d) },
        counts(finding(FindingKind::WrongEntryCount, sample.d), 1, 2),
        counts(finding(FindingKind::WrongLinkCount, sample.d), 2, 3),
        finding(FindingKind::Unreachable, sample.sub),
    ]);
    assert!(fs.resolve(format!("/lost+found/#{}", sample.sub.0).as_bytes(), Follow::No).is_ok());
}

#[test]
fn entry_misplaced() {
    let sample = Sample::new();
    let (key, bytes) = sample.slot(sample.d, AttributeKind::ENTRY, b"sub");
    let wrong = AttributeKey { index: key.index + 5, ..key };
    sample.change(|t| {
        t.remove_attribute(sample.d, key).set_attribute(sample.d, wrong, bytes);
    });
    let fs = sample.expect(&[in_slot(FindingKind::EntryMisplaced, sample.d, wrong, b"sub")]);
    assert!(fs.resolve(b"/d/sub", Follow::No).is_ok());
}

#[test]
fn entry_duplicate() {
    let sample = Sample::new();
    let (key, mut bytes) = sample.slot(sample.d, AttributeKind::ENTRY, b"file");
    let wrong = AttributeKey { index: key.index + 1, ..key };
    let copy = bytes.clone();
    bytes[0] |= 0x80;
    sample.change(|t| {
        t.set_attribute(sample.d, key, bytes).set_attribute(sample.d, wrong, copy);
    });
    sample.expect(&[in_slot(FindingKind::EntryDuplicate, sample.d, wrong, b"file")]);
}

#[test]
fn entry_dangling() {
    let sample = Sample::new();
    let (key, _) = sample.slot(ObjectId(1), AttributeKind::ENTRY, b"link");
    let (gone, link) = (ObjectId(999_999), Sample::next(sample.file));
    sample.change(|t| {
        t.set_attribute(ObjectId(1), key, entry(FileType::SymbolicLink, gone, b"link"));
    });
    sample.expect(&[
        Finding { found: Some(gone.0), ..in_slot(FindingKind::EntryDangling, ObjectId(1), key, b"link") },
        counts(finding(FindingKind::WrongEntryCount, ObjectId(1)), 2, 3),
        finding(FindingKind::Unreachable, link),
    ]);
}

#[test]
fn entry_wrong_type() {
    let sample = Sample::new();
    let (key, _) = sample.slot(sample.d, AttributeKind::ENTRY, b"file");
    sample.change(|t| {
        t.set_attribute(sample.d, key, entry(FileType::Fifo, sample.file, b"file"));
    });
    let wrong = in_slot(FindingKind::EntryWrongType, sample.d, key, b"file");
    sample.expect(&[counts(wrong, FileType::Regular as u64, FileType::Fifo as u64)]);
}

#[test]
fn names_in_file() {
    let sample = Sample::new();
    sample.change(|t| {
        let key = AttributeKey::new(AttributeKind::ENTRY, 77);
        t.set_attribute(sample.file, key, entry(FileType::Regular, sample.file, b"x"));
    });
    sample.expect(&[finding(FindingKind::NamesInFile, sample.file)]);
}

#[test]
fn directory_twice() {
    let sample = Sample::new();
    // `second` becomes one more name of the directory.
    let (key, _) = sample.slot(ObjectId(1), AttributeKind::ENTRY, b"second");
    sample.change(|t| {
        t.set_attribute(ObjectId(1), key, entry(FileType::Directory, sample.sub, b"second"));
    });
    let fs = sample.expect(&[
        Finding { found: Some(sample.sub.0), ..in_slot(FindingKind::DirectoryTwice, ObjectId(1), key, b"second") },
        counts(finding(FindingKind::WrongEntryCount, ObjectId(1)), 2, 3),
        counts(finding(FindingKind::WrongLinkCount, sample.file), 1, 2),
    ]);
    assert!(fs.resolve(b"/d/sub", Follow::No).is_ok());
}

#[test]
fn directory_cycle() {
    let sample = Sample::new();
    // /d moves into its own /d/sub.
    let (key, bytes) = sample.slot(ObjectId(1), AttributeKind::ENTRY, b"\x64");
    assert_eq!(bytes, entry(FileType::Directory, sample.d, b"d"));
    sample.change(|t| {
        t.remove_attribute(ObjectId(1), key).set_attribute(sample.sub, key, bytes);
    });
    sample.change_inode(ObjectId(1), |root| (root.entries, root.links) = (root.entries - 1, root.links - 1));
    sample.change_inode(sample.sub, |sub| (sub.entries, sub.links) = (1, 3));
    sample.change_inode(sample.d, |d| d.parent = sample.sub.0);
    let fs = sample.expect(&[finding(FindingKind::DirectoryCycle, sample.d)]);
    assert!(fs.resolve(format!("/lost+found/#{}/sub", sample.d.0).as_bytes(), Follow::No).is_ok());
}

#[test]
fn wrong_counts_and_parent() {
    let sample = Sample::new();
    sample.change_inode(sample.d, |d| (d.links, d.entries) = (9, 8));
    sample.change_inode(sample.sub, |sub| sub.parent = 1);
    sample.change_inode(sample.file, |file| file.links = 7);
    sample.expect(&[
        counts(finding(FindingKind::WrongParent, sample.sub), sample.d.0, 1),
        counts(finding(FindingKind::WrongEntryCount, sample.d), 2, 8),
        counts(finding(FindingKind::WrongLinkCount, sample.d), 3, 9),
        counts(finding(FindingKind::WrongLinkCount, sample.file), 2, 7),
    ]);
}

#[test]
fn lost_object_and_memory_without_a_name() {
    let sample = Sample::new();
    let lost = ObjectId(sample.volume.device.reserve_ids(4).unwrap().0.next_multiple_of(2));
    let memory = ObjectId(lost.0 + 2);
    sample.change(|t| {
        t.create(lost, Hints::default());
        t.create(memory, Hints { kind: ObjectKind::Memory, ..Hints::default() });
    });
    sample.expect(&[finding(FindingKind::LostObject, lost)]);
    assert!(sample.volume.device.stat(memory).is_ok());
}

#[test]
fn orphans() {
    let sample = Sample::new();
    let orphan = |number| AttributeKey::new(AttributeKind::ORPHAN, number);
    sample.change(|t| {
        t.set_attribute(VOLUME, orphan(777), Vec::new()).set_attribute(VOLUME, orphan(sample.file.0), Vec::new());
    });
    sample
        .expect(&[finding(FindingKind::OrphanMissing, ObjectId(777)), finding(FindingKind::OrphanNamed, sample.file)]);
    let fs = sample.volume.mount();
    let open = fs.make_unnamed(&root(), ROOT, 0o600).unwrap().inode;
    fs.sync().unwrap();
    assert_eq!(sample.findings(), [finding(FindingKind::Orphan, open.object())]);
    assert!(check(sample.volume.device.as_ref()).unwrap().is_clean());
    drop(fs);
    drop(sample.volume.mount());
    assert_eq!(sample.findings(), []);
}

#[test]
fn xattr_damaged_misplaced_hidden_and_without_value() {
    let sample = Sample::new();
    let (small, bytes) = sample.slot(sample.file, AttributeKind::XATTR, b"user.small");
    let (large, large_bytes) = sample.slot(sample.file, AttributeKind::XATTR, b"user.large");
    let wrong = AttributeKey { index: small.index - 1, ..small };
    sample.change(|t| {
        t.remove_attribute(sample.file, small).set_attribute(sample.file, wrong, bytes);
    });
    let fs = sample.expect(&[in_slot(FindingKind::XattrMisplaced, sample.file, wrong, b"user.small")]);
    let file = InodeNumber(sample.file.0);
    assert_eq!(fs.get_xattr(file, b"user.small").unwrap(), b"1");
    drop(fs);

    sample.change_inode(sample.file, |inode| inode.has_xattrs = false);
    sample.expect(&[finding(FindingKind::XattrsHidden, sample.file)]);

    let mut rest = &large_bytes[12..];
    let value = ObjectId(onode_base::varint::take(&mut rest).unwrap());
    sample.change(|t| {
        t.truncate(value, 17);
    });
    let fs = sample.expect(&[
        finding(FindingKind::LostObject, value),
        Finding { found: Some(17), ..in_slot(FindingKind::XattrValueWrong, sample.file, large, b"user.large") },
    ]);
    assert_eq!(kind(fs.get_xattr(file, b"user.large")), ErrorKind::NoAttribute);
    drop(fs);

    sample.change(|t| {
        t.set_attribute(sample.file, small, vec![9, 9]);
    });
    sample.expect(&[Finding { slot: Some(small.index), ..finding(FindingKind::XattrDamaged, sample.file) }]);
}

//! Files that are in use without a name: they stay until their last use, and whatever has a name
//! stays longer.

use crate::common::shared::Host;
use crate::common::{ROOT, Volume, content, create, kind, lookup, objects, root, write};
use onode_fs::check::{FindingKind, check};
use onode_fs::{ErrorKind, FileSystem, InodeNumber, OpenFlags, Options};
use onode_object::{AttributeKey, AttributeKind, Durability, ObjectDevice, ObjectId, Transaction};
use std::sync::Arc;

const VOLUME: ObjectId = ObjectId(2);

/// A volume that two hosts have mounted.
fn two_hosts() -> (Volume, [FileSystem; 2]) {
    let volume = Volume::of_size(16 << 20);
    let hosts = Host::two(&volume.device);
    let mount = |host: Arc<Host>| FileSystem::mount(host, volume.clock.clone(), Options::default()).unwrap();
    let mounts = hosts.map(mount);
    (volume, mounts)
}

fn links(fs: &FileSystem, file: InodeNumber) -> u32 {
    fs.attributes(file).unwrap().links
}

/// Everything is closed and mounted by one host alone.
fn alone(volume: &Volume, mounts: [FileSystem; 2]) -> FileSystem {
    mounts.iter().for_each(|fs| fs.unmount().unwrap());
    let fs = volume.mount();
    let report = check(volume.device.as_ref()).unwrap();
    assert_eq!(report.findings, []);
    fs
}

#[test]
fn an_orphan_stays_one_when_another_host_changes_something() {
    let (volume, [one, other]) = two_hosts();
    let file = create(&one, ROOT, "f");
    write(&one, file, 0, b"bytes");
    let handle = one.open(&root(), file, OpenFlags::default()).unwrap();
    one.unlink(ROOT, b"f").unwrap();
    create(&other, ROOT, "g");
    assert_eq!((links(&one, file), content(&one, file).as_slice()), (0, b"bytes".as_slice()));
    one.release(handle).unwrap();
    assert_eq!(volume.device.space().objects, objects(2, 0), "its space is free at once");
    alone(&volume, [one, other]).unmount().unwrap();
}

#[test]
fn a_file_made_without_a_name_keeps_the_one_it_is_given_after_changes_of_another_host() {
    let (volume, [one, other]) = two_hosts();
    let file = one.make_unnamed(&root(), ROOT, 0o600).unwrap().inode;
    create(&other, ROOT, "g");
    assert_eq!(one.link(file, ROOT, b"f").unwrap().links, 1);
    write(&one, file, 0, b"bytes");
    assert_eq!(lookup(&other, ROOT, "f").unwrap().links, 1);
    let fs = alone(&volume, [one, other]);
    assert_eq!(content(&fs, lookup(&fs, ROOT, "f").unwrap().inode), b"bytes");
}

/// The last use at the first host takes the file away, whatever the other one has open.
#[test]
fn another_host_neither_names_nor_removes_what_lost_its_last_name_here() {
    let (volume, [one, other]) = two_hosts();
    let file = create(&one, ROOT, "f");
    write(&one, file, 0, b"bytes");
    let handle = one.open(&root(), file, OpenFlags::default()).unwrap();
    lookup(&other, ROOT, "f").unwrap();
    let there = other.open(&root(), file, OpenFlags::default()).unwrap();
    one.unlink(ROOT, b"f").unwrap();
    assert_eq!(kind(other.link(file, ROOT, b"again")), ErrorKind::NotFound);
    // Now the device, too, has an inode without a link.
    write(&one, file, 5, b" and more");
    one.fsync(file, None, false).unwrap();
    assert_eq!(kind(other.link(file, ROOT, b"again")), ErrorKind::NotFound);
    other.release(there).unwrap();
    assert_eq!(content(&one, file), b"bytes and more");
    one.release(handle).unwrap();
    assert_eq!(volume.device.space().objects, objects(1, 0));
    alone(&volume, [one, other]).unmount().unwrap();
}

/// Versions before this one could leave such a list.
#[test]
fn what_is_listed_as_an_orphan_and_was_named_since_is_not_removed() {
    let volume = Volume::of_size(16 << 20);
    let fs = volume.mount();
    let file = create(&fs, ROOT, "f");
    write(&fs, file, 0, b"bytes");
    fs.link(file, ROOT, b"g").unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let mut transaction = Transaction::new();
    transaction.set_attribute(VOLUME, AttributeKey::new(AttributeKind::ORPHAN, file.0), Vec::new());
    volume.device.commit(transaction, Durability::Durable).unwrap();
    let found = check(volume.device.as_ref()).unwrap().findings;
    assert_eq!(found.iter().map(|one| one.kind).collect::<Vec<_>>(), [FindingKind::OrphanNamed]);
    let fs = volume.mount();
    assert_eq!(content(&fs, lookup(&fs, ROOT, "g").unwrap().inode), b"bytes");
    assert_eq!(check(volume.device.as_ref()).unwrap().findings, []);
}

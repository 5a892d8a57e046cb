//! Hints of people: read and set as attributes, handed on by directories, explained, and refused
//! without a change when they make no sense.

use crate::common::recorder::Recorder;
use crate::common::*;
use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::*;
use onode_object::{Lifetime, ObjectDevice, ObjectKind, Temperature};
use std::sync::Arc;

const LIFETIME: &str = "user.onode.lifetime";
const TEMPERATURE: &str = "user.onode.temperature";
const SIZE: &str = "user.onode.size";

fn made() -> (Arc<Recorder>, FileSystem) {
    let device = Arc::new(Recorder::new(64 << 20));
    format(device.as_ref(), &FormatOptions { inodes: INODES, ..FormatOptions::default() }, Timestamp::default())
        .unwrap();
    let fs = mount(&device, false);
    (device, fs)
}

fn mount(device: &Arc<Recorder>, read_only: bool) -> FileSystem {
    let options = Options { read_only, ..Options::default() };
    FileSystem::mount(device.clone(), Arc::new(ManualClock::at(START)), options).unwrap()
}

fn set(fs: &FileSystem, number: InodeNumber, name: &str, value: &str) -> Result<()> {
    fs.set_xattr(&root(), number, name.as_bytes(), value.as_bytes(), XattrFlags::Any)
}

fn get(fs: &FileSystem, number: InodeNumber, name: &str) -> String {
    String::from_utf8(fs.get_xattr(number, name.as_bytes()).unwrap()).unwrap()
}

fn origin(fs: &FileSystem, number: InodeNumber, hint: Hint) -> Origin {
    let explained = fs.explain(number).unwrap();
    explained.hints.into_iter().find(|one| one.hint == hint).unwrap().origin
}

#[test]
fn what_is_made_in_a_directory_takes_over_what_it_says() {
    let (device, fs) = made();
    let directory = mkdir(&fs, ROOT, "d");
    let before = create(&fs, directory, "before");
    for (name, value) in [(LIFETIME, "short"), (TEMPERATURE, "hot"), (SIZE, "64K")] {
        set(&fs, directory, name, value).unwrap();
    }
    let deeper = mkdir(&fs, directory, "deeper");
    for file in [create(&fs, directory, "file"), create(&fs, deeper, "below")] {
        for (name, value) in [(LIFETIME, "short"), (TEMPERATURE, "hot"), (SIZE, "64K")] {
            assert_eq!(get(&fs, file, name), value);
            assert_eq!(
                get(&fs, file, name.strip_prefix("user.").unwrap()),
                value,
                "the name without user. is the same"
            );
        }
        let hints = device.stat(file.object()).unwrap().hints;
        assert_eq!((hints.lifetime, hints.temperature), (Lifetime::Short, Temperature::Hot));
        assert_eq!((hints.expected_size, hints.kind), (64 << 10, ObjectKind::Data));
        assert!(fs.list_xattrs(file).unwrap().is_empty(), "a copy must not take it along unasked");
    }
    assert_eq!(get(&fs, before, LIFETIME), "unknown", "what was there keeps its own");
    fs.unmount().unwrap();
    let fs = mount(&device, false);
    assert_eq!(get(&fs, create(&fs, deeper, "later"), SIZE), "64K");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (_, fs) = made();
    let file = create(&fs, ROOT, "file");
    set(&fs, file, LIFETIME, "long").unwrap();
    set(&fs, file, SIZE, " 10M\n").unwrap();
    for (name, value) in [
        (LIFETIME, "forever"),
        (LIFETIME, ""),
        (TEMPERATURE, "short"),
        (SIZE, "-1"),
        (SIZE, "99999999999999999999"),
        (SIZE, "16777216T"),
        ("user.onode.liftime", "short"),
        ("user.onode.copies", "2"),
        ("user.onode.parity", "many"),
    ] {
        assert_eq!(kind(set(&fs, file, name, value)), ErrorKind::Invalid, "{name}={value}");
    }
    let wrong = fs.set_xattr(&root(), file, LIFETIME.as_bytes(), b"\xff", XattrFlags::Any);
    assert_eq!(kind(wrong), ErrorKind::Invalid);
    for (name, value) in [("compress", "auto"), ("placement", "auto"), ("parity", "2")] {
        let name = &format!("user.onode.{name}");
        assert_eq!(kind(set(&fs, file, name, value)), ErrorKind::NotSupported, "{name}: there is no choice here");
    }
    let found = [LIFETIME, TEMPERATURE, SIZE].map(|name| get(&fs, file, name));
    assert_eq!(found, ["long", "unknown", "10M"]);
    assert!(fs.get_xattr(file, b"user.onode.liftime").is_err());
}

#[test]
fn a_hint_that_is_removed_was_never_given() {
    let (device, fs) = made();
    let file = create(&fs, ROOT, "file");
    let before = device.stat(file.object()).unwrap().hints;
    for (name, value) in [(LIFETIME, "long"), (TEMPERATURE, "cold"), (SIZE, "1G")] {
        set(&fs, file, name, value).unwrap();
    }
    for name in [LIFETIME, TEMPERATURE, SIZE] {
        fs.remove_xattr(file, name.as_bytes()).unwrap();
    }
    assert_eq!(device.stat(file.object()).unwrap().hints, before);
}

#[test]
fn nothing_is_said_on_what_may_only_be_read() {
    let (device, fs) = made();
    let file = create(&fs, ROOT, "file");
    set(&fs, file, LIFETIME, "short").unwrap();
    fs.unmount().unwrap();
    let fs = mount(&device, true);
    assert_eq!(kind(set(&fs, file, LIFETIME, "long")), ErrorKind::ReadOnly);
    assert_eq!(kind(fs.remove_xattr(file, LIFETIME.as_bytes())), ErrorKind::ReadOnly);
    assert_eq!(get(&fs, file, LIFETIME), "short");
    assert_eq!(origin(&fs, file, Hint::Lifetime), Origin::Own);
}

#[test]
fn an_explanation_tells_where_a_hint_comes_from() {
    let (_, fs) = made();
    let directory = mkdir(&fs, ROOT, "d");
    set(&fs, directory, LIFETIME, "short").unwrap();
    let (file, moved) = (create(&fs, directory, "file"), create(&fs, directory, "moved"));
    set(&fs, file, TEMPERATURE, "hot").unwrap();
    assert_eq!(origin(&fs, directory, Hint::Lifetime), Origin::Own);
    assert_eq!(origin(&fs, mkdir(&fs, directory, "deeper"), Hint::Lifetime), Origin::Directory);
    assert_eq!(origin(&fs, file, Hint::Lifetime), Origin::Directory);
    assert_eq!(origin(&fs, file, Hint::Temperature), Origin::Own);
    assert_eq!(origin(&fs, file, Hint::Size), Origin::Nobody);
    // The directory that it was made in counts, not the one it lies in.
    fs.rename(directory, b"moved", ROOT, b"moved", RenameFlags::Replace).unwrap();
    assert_eq!(origin(&fs, moved, Hint::Lifetime), Origin::Directory);
    set(&fs, directory, LIFETIME, "medium").unwrap();
    assert_eq!(origin(&fs, moved, Hint::Lifetime), Origin::Own);
    let text = get(&fs, file, WHY);
    assert!(text.contains("hint=lifetime short own\n") && text.contains("hint=size unknown nobody\n"), "{text}");
    let fifo = fs.make_node(&root(), ROOT, b"fifo", 0o010_644, 0).unwrap().inode;
    assert_eq!(kind(fs.explain(fifo)), ErrorKind::Invalid);
    assert_eq!(kind(set(&fs, file, WHY, "so")), ErrorKind::NotPermitted);
}

//! Directories mapped to sections of a tiered device: who hands what on to whom, and the attributes
//! that show it.

use crate::common::recorder::Recorder;
use crate::common::*;
use onode_base::Timestamp;
use onode_base::clock::ManualClock;
use onode_fs::placement::{MOVE, SECTIONS};
use onode_fs::*;
use onode_object::{Acknowledge, ObjectDevice, Placement, Target};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The name that programs had before `user.onode.placement`.
const PLACEMENT: &str = "onode.placement";

fn tiered() -> (Arc<Recorder>, FileSystem) {
    let device = Arc::new(Recorder::new(64 << 20));
    device.has_sections.store(true, Ordering::Relaxed);
    format(device.as_ref(), &FormatOptions { inodes: INODES, ..FormatOptions::default() }, Timestamp::default())
        .unwrap();
    let fs = mount(&device);
    (device, fs)
}

fn mount(device: &Arc<Recorder>) -> FileSystem {
    FileSystem::mount(device.clone(), Arc::new(ManualClock::at(START)), Options::default()).unwrap()
}

fn set(fs: &FileSystem, number: InodeNumber, name: &str, value: &str) -> Result<()> {
    fs.set_xattr(&root(), number, name.as_bytes(), value.as_bytes(), XattrFlags::Any)
}

fn get(fs: &FileSystem, number: InodeNumber, name: &str) -> Result<String> {
    fs.get_xattr(number, name.as_bytes()).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn what_a_directory_says_holds_for_what_is_made_in_it_and_stays_after_a_rename() {
    let (device, fs) = tiered();
    let hot = mkdir(&fs, ROOT, "hot");
    let before = create(&fs, hot, "before");
    set(&fs, hot, PLACEMENT, "large,either,pin").unwrap();
    let file = create(&fs, hot, "file");
    let below = create(&fs, mkdir(&fs, hot, "deeper"), "below");
    let link = fs.make_symbolic_link(&root(), hot, b"link", b"file").unwrap().inode;
    for number in [file, below, link] {
        assert_eq!(get(&fs, number, PLACEMENT).unwrap(), "large,either,pin");
        let expected = Placement { target: Target::Section(1), acknowledge: Acknowledge::Either, pinned: true };
        assert_eq!(device.stat(number.object()).unwrap().hints.placement_class, expected.to_class());
    }
    assert_eq!(get(&fs, before, PLACEMENT).unwrap(), "default", "what was there keeps its own");
    fs.rename(hot, b"file", ROOT, b"file", RenameFlags::Replace).unwrap();
    assert_eq!(get(&fs, file, PLACEMENT).unwrap(), "large,either,pin");
    assert_eq!(get(&fs, create(&fs, ROOT, "other"), PLACEMENT).unwrap(), "default");
    fs.unmount().unwrap();
    let fs = mount(&device);
    assert_eq!(get(&fs, create(&fs, hot, "later"), PLACEMENT).unwrap(), "large,either,pin");
    // The rest of the advice is as it was.
    let hints = device.stat(hot.object()).unwrap().hints;
    assert_eq!(hints.kind, onode_object::ObjectKind::Directory);
    assert!(fs.list_xattrs(hot).unwrap().is_empty(), "a copy of the tree must not take it along unasked");
}

#[test]
fn a_word_changes_only_what_it_names_and_wrong_ones_change_nothing() {
    let (_, fs) = tiered();
    let file = create(&fs, ROOT, "file");
    set(&fs, file, PLACEMENT, "small,big").unwrap();
    set(&fs, file, PLACEMENT, "bypass").unwrap();
    assert_eq!(get(&fs, file, PLACEMENT).unwrap(), "bypass,big");
    assert_eq!(kind(set(&fs, file, PLACEMENT, "safe,medium")), ErrorKind::Invalid);
    assert_eq!(get(&fs, file, PLACEMENT).unwrap(), "bypass,big");
    fs.remove_xattr(file, b"user.onode.placement").unwrap();
    assert_eq!(get(&fs, file, "user.onode.placement").unwrap(), "default");
    assert_eq!(kind(set(&fs, file, WHY, "here")), ErrorKind::NotPermitted);
    assert_eq!(kind(set(&fs, file, MOVE, "away")), ErrorKind::Invalid);
    assert_eq!(kind(get(&fs, file, MOVE)), ErrorKind::NoAttribute);
}

#[test]
fn what_moves_is_written_out_first() {
    let (device, fs) = tiered();
    let file = create(&fs, ROOT, "file");
    write(&fs, file, 0, &[7; 5000]);
    let why = get(&fs, file, WHY).unwrap();
    assert!(why.ends_with("big=5000\nfast=0\nlog=0\nsection=small\nreason=read once\n"), "{why}");
    assert!(why.contains("hint=placement default nobody\n"), "{why}");
    write(&fs, file, 5000, &[8; 100]);
    assert_eq!(fs.promote(file, true).unwrap().bytes, 5100);
    set(&fs, file, MOVE, "promote-later").unwrap();
    set(&fs, file, MOVE, "demote").unwrap();
    let object = file.object();
    assert_eq!(*device.moves.lock().unwrap(), [(object, "promote"), (object, "promote-later"), (object, "demote")]);
    let fifo = fs.make_node(&root(), ROOT, b"fifo", 0o010_644, 0).unwrap().inode;
    assert_eq!(kind(fs.promote(fifo, true)), ErrorKind::Invalid);
}

#[test]
fn one_device_has_nothing_to_choose_between() {
    let (_, fs) = mounted();
    let file = create(&fs, ROOT, "file");
    assert_eq!(kind(get(&fs, file, PLACEMENT)), ErrorKind::NotSupported);
    assert!(!get(&fs, file, WHY).unwrap().contains("placement"));
    assert_eq!(kind(set(&fs, file, PLACEMENT, "bypass")), ErrorKind::NotSupported);
    assert_eq!(kind(set(&fs, file, MOVE, "promote")), ErrorKind::NotSupported);
}

#[test]
fn the_top_has_the_division_and_nobody_else() {
    let (device, fs) = tiered();
    set(&fs, ROOT, SECTIONS, "hot:65536:3+cold:1048576:1").unwrap();
    assert_eq!(get(&fs, ROOT, SECTIONS).unwrap(), "hot:65536:3+cold:1048576:1");
    let sizes: Vec<u64> = device.division.lock().unwrap().iter().map(|section| section.extent_bytes).collect();
    assert_eq!(sizes, [65_536, 1 << 20]);
    for wrong in ["", "hot", "hot:65536", "hot:64K:1", "hot:65536:1:1", "hot:65536:1+"] {
        assert_eq!(set(&fs, ROOT, SECTIONS, wrong).unwrap_err().kind, ErrorKind::Invalid, "{wrong}");
    }
    let below = mkdir(&fs, ROOT, "below");
    assert!(get(&fs, below, SECTIONS).is_err() && set(&fs, below, SECTIONS, "hot:65536:3").is_err());
}

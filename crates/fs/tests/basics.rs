//! The calls one by one, with what POSIX says about each.

use crate::common::*;
use onode_fs::*;
use onode_object::ObjectDevice;

#[test]
fn a_file_keeps_its_bytes_over_a_remount() {
    let (volume, fs) = mounted();
    let directory = mkdir(&fs, ROOT, "directory");
    let file = create(&fs, directory, "file");
    write(&fs, file, 3, b"hello");
    assert_eq!(content(&fs, file), b"\0\0\0hello");
    let mut before = fs.attributes(file).unwrap();
    fs.unmount().unwrap();
    let fs = volume.mount();
    let directory = lookup(&fs, ROOT, "directory").unwrap().inode;
    let file = lookup(&fs, directory, "file").unwrap();
    before.blocks = file.blocks;
    assert_eq!(file, before);
    assert_eq!(content(&fs, file.inode), b"\0\0\0hello");
    assert_eq!(names(&fs, directory), ["file"]);
    assert_eq!(lookup(&fs, directory, "..").unwrap().inode, ROOT);
}

#[test]
fn links_count_and_the_last_one_takes_the_file() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "a");
    write(&fs, file, 0, b"x");
    assert_eq!(fs.link(file, ROOT, b"b").unwrap().links, 2);
    assert_eq!(kind(fs.link(file, ROOT, b"a")), ErrorKind::Exists);
    assert_eq!(kind(fs.link(ROOT, ROOT, b"r")), ErrorKind::NotPermitted);
    fs.unlink(ROOT, b"a").unwrap();
    assert_eq!(fs.attributes(file).unwrap().links, 1);
    let handle = fs.open(&root(), file, OpenFlags::default()).unwrap();
    fs.unlink(ROOT, b"b").unwrap();
    assert_eq!(fs.attributes(file).unwrap().links, 0);
    assert_eq!(content(&fs, file), b"x");
    write(&fs, file, 1, b"y");
    assert_eq!(content(&fs, file), b"xy");
    fs.release(handle).unwrap();
    fs.forget(file, 2);
    assert_eq!(kind(fs.attributes(file)), ErrorKind::Stale);
    assert_eq!(onode_object::ObjectDevice::space(volume.device.as_ref()).objects, objects(1, 0));
}

#[test]
fn directories_count_their_directories_and_must_be_empty_to_go() {
    let (_volume, fs) = mounted();
    let a = mkdir(&fs, ROOT, "a");
    let b = mkdir(&fs, a, "b");
    assert_eq!(fs.attributes(a).unwrap().links, 3);
    assert_eq!(kind(fs.remove_directory(ROOT, b"a")), ErrorKind::NotEmpty);
    assert_eq!(kind(fs.unlink(ROOT, b"a")), ErrorKind::IsDirectory);
    fs.remove_directory(a, b"b").unwrap();
    assert_eq!(fs.attributes(a).unwrap().links, 2);
    assert_eq!(kind(fs.create(&root(), b, b"in a removed one", 0o644)), ErrorKind::NotFound);
    assert_eq!(names(&fs, b), [""; 0]);
    fs.remove_directory(ROOT, b"a").unwrap();
    assert_eq!(kind(fs.remove_directory(ROOT, b".")), ErrorKind::Invalid);
}

#[test]
fn names_have_limits() {
    let (_volume, fs) = mounted();
    let longest = vec![b'n'; 255];
    fs.create(&root(), ROOT, &longest, 0o644).unwrap();
    let longer = vec![b'n'; 256];
    assert_eq!(kind(fs.create(&root(), ROOT, &longer, 0o644)), ErrorKind::NameTooLong);
    assert_eq!(kind(fs.lookup(ROOT, &longer)), ErrorKind::NameTooLong);
    assert_eq!(kind(fs.create(&root(), ROOT, b"a/b", 0o644)), ErrorKind::Invalid);
    assert_eq!(kind(fs.create(&root(), ROOT, &longest, 0o644)), ErrorKind::Exists);
    assert_eq!(kind(fs.make_symbolic_link(&root(), ROOT, b"l", &[b't'; 4096])), ErrorKind::NameTooLong);
    let link = fs.make_symbolic_link(&root(), ROOT, b"l", &[b't'; 4095]).unwrap();
    assert_eq!(fs.read_link(link.inode).unwrap(), vec![b't'; 4095]);
    assert_eq!(link.size, 4095);
}

#[test]
fn rename_moves_replaces_and_exchanges() {
    let (_volume, fs) = mounted();
    let (a, b) = (mkdir(&fs, ROOT, "a"), mkdir(&fs, ROOT, "b"));
    let (x, y) = (create(&fs, a, "x"), create(&fs, b, "y"));
    assert_eq!(kind(fs.rename(a, b"x", b, b"y", RenameFlags::NoReplace)), ErrorKind::Exists);
    fs.rename(a, b"x", b, b"y", RenameFlags::Exchange).unwrap();
    assert_eq!((lookup(&fs, a, "x").unwrap().inode, lookup(&fs, b, "y").unwrap().inode), (y, x));
    fs.rename(a, b"x", b, b"y", RenameFlags::Replace).unwrap();
    assert_eq!(lookup(&fs, b, "y").unwrap().inode, y);
    assert_eq!(names(&fs, a), [""; 0]);
    let inner = mkdir(&fs, a, "inner");
    assert_eq!(kind(fs.rename(ROOT, b"a", inner, b"loop", RenameFlags::Replace)), ErrorKind::Invalid);
    assert_eq!(kind(fs.rename(ROOT, b"a", a, b"inner", RenameFlags::Exchange)), ErrorKind::Invalid);
    fs.rename(a, b"inner", b, b"moved", RenameFlags::Replace).unwrap();
    assert_eq!(lookup(&fs, inner, "..").unwrap().inode, b);
    assert_eq!((fs.attributes(a).unwrap().links, fs.attributes(b).unwrap().links), (2, 3));
    assert_eq!(kind(fs.rename(ROOT, b"a", b, b"y", RenameFlags::Replace)), ErrorKind::NotDirectory);
    assert_eq!(kind(fs.rename(b, b"y", ROOT, b"a", RenameFlags::Replace)), ErrorKind::IsDirectory);
    assert_eq!(kind(fs.rename(ROOT, b"a", ROOT, b"b", RenameFlags::Replace)), ErrorKind::NotEmpty);
    fs.rename(b, b"moved", ROOT, b"a", RenameFlags::Replace).unwrap();
    assert_eq!(lookup(&fs, ROOT, "a").unwrap().inode, inner);
    assert_eq!(fs.attributes(ROOT).unwrap().links, 4);
    assert_eq!(fs.attributes(b).unwrap().links, 2);
}

#[test]
fn a_rename_can_leave_a_whiteout() {
    let (volume, fs) = mounted();
    let (a, b) = (mkdir(&fs, ROOT, "a"), mkdir(&fs, ROOT, "b"));
    let (x, y, inner) = (create(&fs, a, "x"), create(&fs, b, "y"), mkdir(&fs, a, "inner"));
    let caller = Caller { uid: 7, gid: 8, ..Caller::default() };
    let rename = |from: (InodeNumber, &[u8]), to: (InodeNumber, &[u8]), flags| {
        let end = |(directory, name)| RenameEnd { directory, name };
        fs.rename_leaving_whiteout(&caller, end(from), end(to), flags)
    };
    let is_whiteout = |fs: &FileSystem, directory, name| {
        let found = lookup(fs, directory, name).unwrap();
        assert_eq!((found.file_type, found.device, found.permissions), (FileType::CharacterDevice, 0, 0), "{name}");
        assert_eq!((found.uid, found.gid, found.links), (7, 8, 1), "{name}");
    };
    assert_eq!(kind(rename((a, b"x"), (b, b"y"), RenameFlags::Exchange)), ErrorKind::Invalid);
    assert_eq!(kind(rename((a, b"x"), (b, b"y"), RenameFlags::NoReplace)), ErrorKind::Exists);
    assert_eq!(kind(rename((a, b"nothing"), (b, b"y"), RenameFlags::Replace)), ErrorKind::NotFound);
    rename((a, b"x"), (b, b"y"), RenameFlags::Replace).unwrap();
    rename((a, b"inner"), (a, b"moved"), RenameFlags::NoReplace).unwrap();
    assert_eq!((lookup(&fs, b, "y").unwrap().inode, lookup(&fs, a, "moved").unwrap().inode), (x, inner));
    assert_ne!(x, y);
    assert_eq!(
        (names(&fs, a), names(&fs, b)),
        (vec!["inner".into(), "moved".into(), "x".into()], vec!["y".to_string()])
    );
    assert_eq!((fs.attributes(a).unwrap().links, fs.attributes(a).unwrap().size), (3, 3));
    is_whiteout(&fs, a, "x");
    is_whiteout(&fs, a, "inner");
    // The whiteout gives way as any file does.
    fs.rename(b, b"y", a, b"x", RenameFlags::Replace).unwrap();
    assert_eq!(lookup(&fs, a, "x").unwrap().inode, x);
    fs.unmount().unwrap();
    let fs = volume.mount();
    is_whiteout(&fs, a, "inner");
    assert_eq!(names(&fs, a), ["inner", "moved", "x"]);
    fs.unlink(a, b"inner").unwrap();
    fs.unmount().unwrap();
    assert_eq!(check::check(volume.device.as_ref()).unwrap().findings, []);
}

#[test]
fn special_files_keep_type_and_device() {
    let (volume, fs) = mounted();
    fs.make_node(&root(), ROOT, b"block", 0o060_600, 0x1234_5678).unwrap();
    fs.make_node(&root(), ROOT, b"fifo", 0o010_600, 9).unwrap();
    fs.unmount().unwrap();
    let fs = volume.mount();
    let block = lookup(&fs, ROOT, "block").unwrap();
    assert_eq!((block.file_type, block.device, block.permissions), (FileType::BlockDevice, 0x1234_5678, 0o600));
    let fifo = lookup(&fs, ROOT, "fifo").unwrap();
    assert_eq!((fifo.file_type, fifo.device), (FileType::Fifo, 0));
    assert_eq!(kind(fs.make_node(&root(), ROOT, b"bad", 0o040_600, 0)), ErrorKind::Invalid);
}

#[test]
fn holes_are_zeros_and_can_be_found() {
    let (_volume, fs) = mounted();
    let file = create(&fs, ROOT, "sparse");
    write(&fs, file, 1 << 20, &[7; 4096]);
    write(&fs, file, 3 << 20, &[8; 4096]);
    let end = (3 << 20) + 4096;
    assert_eq!(fs.seek(file, 0, Seek::Data).unwrap(), 1 << 20);
    assert_eq!(fs.seek(file, 1 << 20, Seek::Hole).unwrap(), (1 << 20) + 4096);
    assert_eq!(fs.seek(file, 3 << 20, Seek::Hole).unwrap(), end);
    assert_eq!(kind(fs.seek(file, end, Seek::Hole)), ErrorKind::NoSuchOffset);
    fs.allocate(&root(), file, 1 << 20, 4096, Allocate::PunchHole).unwrap();
    assert_eq!(fs.seek(file, 0, Seek::Data).unwrap(), 3 << 20);
    fs.allocate(&root(), file, 0, 5 << 20, Allocate::ZeroRangeKeepSize).unwrap();
    assert_eq!(fs.attributes(file).unwrap().size, end);
    assert_eq!(kind(fs.seek(file, 0, Seek::Data)), ErrorKind::NoSuchOffset);
    fs.allocate(&root(), file, 0, 5 << 20, Allocate::KeepSize).unwrap();
    assert_eq!(fs.attributes(file).unwrap().size, end);
    fs.allocate(&root(), file, 0, 5 << 20, Allocate::Extend).unwrap();
    assert_eq!(fs.attributes(file).unwrap().size, 5 << 20);
    assert_eq!(kind(fs.allocate(&root(), file, 0, 1 << 40, Allocate::KeepSize)), ErrorKind::NoSpace);
    assert_eq!(kind(fs.allocate(&root(), file, 0, 0, Allocate::KeepSize)), ErrorKind::Invalid);
    write(&fs, file, 100, b"data");
    truncate(&fs, file, 102);
    truncate(&fs, file, 200);
    assert_eq!(content(&fs, file)[98..110], *b"\0\0da\0\0\0\0\0\0\0\0");
}

/// Zeroing a range past the end once was a hole and, later, a new size: a crash could show the
/// middle.
#[test]
fn zeroing_past_the_end_is_one_commit() {
    let (volume, fs) = mounted();
    let file = create(&fs, ROOT, "file");
    write(&fs, file, 0, &[7; 100]);
    fs.fsync(file, None, false).unwrap();
    let commits = || {
        let counters = volume.device.inspect().unwrap().counters();
        counters.into_iter().find(|(name, _)| name == "commits").unwrap().1
    };
    let before = commits();
    fs.allocate(&root(), file, 50, 100, Allocate::ZeroRange).unwrap();
    assert_eq!(commits(), before + 1);
    fs.sync().unwrap();
    let fs = volume.crash(fs);
    let file = lookup(&fs, ROOT, "file").unwrap().inode;
    assert_eq!(content(&fs, file), [[7; 50].as_slice(), &[0; 100]].concat());
    write(&fs, file, 149, &[9]);
    assert_eq!(content(&fs, file)[148..], [0, 9]);
}

//! What a program does with a file as memory leaves the file what it is: its number, names,
//! attributes, times and content.

use crate::common::Place;
use onode_fs::{Follow, OpenFlags, SetAttributes, XattrFlags};
use onode_heap::{Caller, ErrorKind, Heap, InodeNumber, caller};

/// A file with a hole, of `size` bytes, that ends with a word.
fn with_a_hole(heap: &Heap, path: &[u8], size: u64) -> InodeNumber {
    let files = heap.files();
    let number = files.write_file(&Caller::root(), path, b"begins", 0o640).expect("made");
    files.write(&Caller::root(), number, size - 4, b"ends").expect("written");
    number
}

#[test]
fn a_look_at_a_file_with_holes_changes_nothing_of_the_file() {
    let place = Place::new("look");
    for (round, size) in [100_u64, 5000, 70_000, 300_000, 3 << 20].into_iter().enumerate() {
        let path = format!("/sparse {round}").into_bytes();
        let (before, content) = {
            let heap = place.open();
            let files = heap.files();
            let number = with_a_hole(&heap, &path, size);
            files.link(number, InodeNumber::ROOT, format!("other {round}").as_bytes()).expect("another name");
            files.set_xattr(&Caller::root(), number, b"user.k", b"v", XattrFlags::default()).expect("an attribute");
            // The name of that was in the way once.
            let beside = [&path[..], b".compact"].concat();
            files.write_file(&Caller::root(), &beside, b"mine", 0o644).expect("made");
            (files.attributes(number).unwrap(), files.read_file(&path).unwrap())
        };
        let heap = place.open();
        let files = heap.files();
        let names = files.list(InodeNumber::ROOT).unwrap().len();
        let number = files.resolve(&path, Follow::Yes).unwrap();
        let open = files.open(&Caller::root(), number, OpenFlags { write: true, truncate: false }).expect("open");
        let mapping = heap.map_whole(number, &path).expect("one range");
        // SAFETY: nobody writes.
        assert!(unsafe { mapping.as_slice() } == content, "{size} bytes");
        // Who had it open writes to the same file, which is the memory.
        files.write(&Caller::root(), number, 1, b"LATER").expect("written");
        // SAFETY: nobody writes now.
        assert_eq!(&unsafe { mapping.as_slice() }[..8], b"bLATER\0\0");
        files.write(&Caller::root(), number, 1, &content[1..6]).expect("written");
        // SAFETY: inside of the file, which nobody else uses.
        unsafe { mapping.as_ptr().add(7).write_volatile(0x7e) };
        files.release(open).expect("closed");
        drop(mapping);
        drop(heap);

        let heap = place.open();
        let files = heap.files();
        let mut content = content;
        content[7] = 0x7e;
        assert!(files.read_file(&path).unwrap() == content, "{size} bytes");
        let number = files.resolve(&path, Follow::Yes).unwrap();
        let after = files.attributes(number).unwrap();
        assert_eq!((after.inode, after.links, after.size), (before.inode, 2, size));
        assert_eq!((after.permissions, after.uid, after.gid), (before.permissions, before.uid, before.gid));
        assert_eq!(files.resolve(format!("/other {round}").as_bytes(), Follow::Yes).unwrap(), number);
        assert_eq!(files.get_xattr(number, b"user.k").unwrap(), b"v");
        assert_eq!(files.list(InodeNumber::ROOT).unwrap().len(), names);
    }
}

#[test]
fn a_look_alone_keeps_the_times() {
    let place = Place::new("times");
    let heap = place.open();
    let files = heap.files();
    let number = with_a_hole(&heap, b"/f", 200_000);
    let before = files.attributes(number).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    drop(heap.map_whole(number, b"/f").expect("one range"));
    let after = files.attributes(number).unwrap();
    assert_eq!((after.modified, after.changed, after.size), (before.modified, before.changed, before.size));
}

#[test]
fn what_a_program_looks_at_is_not_moved() {
    let place = Place::new("moved");
    let heap = place.open();
    let files = heap.files();
    let number = files.write_file(&Caller::root(), b"/f", &[7; 100_000], 0o644).expect("made");
    let mapping = heap.map(b"/f").expect("one block");
    let longer = SetAttributes { size: Some(400_000), ..SetAttributes::default() };
    files.set_attributes(&Caller::root(), number, &longer).expect("longer");
    assert_eq!(heap.compact(b"/f").expect_err("it is looked at").kind, ErrorKind::Busy);
    assert_eq!(heap.map_whole(number, b"/f").err().map(|error| error.kind), Some(ErrorKind::Busy));
    // SAFETY: nobody writes.
    assert!(unsafe { mapping.as_slice() } == [7; 100_000]);
    drop(mapping);
    assert_eq!(heap.map_whole(number, b"/f").expect("nobody looks").len(), 400_000);
}

#[test]
fn a_refused_way_back_leaves_the_file_and_its_handle() {
    let place = Place::new("refused");
    let heap = place.open();
    let files = heap.files();
    let root = Caller::root();
    let number = files.write_file(&root, b"/z", b"abc", 0o644).expect("made");
    let flags = OpenFlags { write: true, truncate: false };
    let (mine, other) = (files.open(&root, number, flags).unwrap(), files.open(&root, number, flags).unwrap());
    assert_eq!(heap.open_file_to_mm(b"/z", mine).expect_err("another has it open").kind, ErrorKind::Busy);
    files.fsync(number, Some(mine), false).expect("the handle is good");
    files.release(other).unwrap();
    // Another name, and a name that leads elsewhere.
    files.link(number, InodeNumber::ROOT, b"second").unwrap();
    assert_eq!(heap.open_file_to_mm(b"/z", mine).expect_err("another name").kind, ErrorKind::Busy);
    files.unlink(InodeNumber::ROOT, b"second").unwrap();
    files.forget(number, 1);
    files.write_file(&root, b"/else", b"x", 0o644).unwrap();
    assert_eq!(heap.open_file_to_mm(b"/else", mine).expect_err("another file").kind, ErrorKind::Stale);
    files.write(&root, number, 200_000, b"end").unwrap();
    assert_eq!(heap.open_file_to_mm(b"/z", mine).expect_err("several blocks").kind, ErrorKind::Invalid);
    files.fsync(number, Some(mine), false).expect("the handle is good still");
    heap.compact(b"/z").expect("room");
    let block = heap.open_file_to_mm(b"/z", mine).expect("nobody else has it");
    assert_eq!((block.len(), &block[..3]), (200_003, &b"abc"[..]));
    assert_eq!(files.release(mine).expect_err("it went with the file").kind, ErrorKind::BadHandle);
    assert_eq!(files.read_file(b"/z").expect_err("gone").kind, ErrorKind::NotFound);
}

#[test]
fn a_file_has_as_many_bytes_as_were_asked_for() {
    let place = Place::new("asked");
    let heap = place.open();
    for bytes in [1, 31, 32, 33, 100, 3000, 33_000, 70_000, 1 << 20, (1 << 20) + 1] {
        let path = format!("/{bytes}");
        let old = heap.allocate_raw(bytes).expect("room");
        // SAFETY: the block is this test's, and has that many bytes.
        unsafe {
            let mut whole = heap.from_raw_whole(old).expect("a block");
            whole.fill(b'S');
            drop(whole);
        }
        let pointer = heap.allocate_raw(bytes).expect("room");
        // SAFETY: as above.
        let mut block = unsafe { heap.from_raw(pointer) }.expect("a block");
        assert_eq!(block.len(), bytes);
        block.fill(b'a');
        let number = heap.mm_to_file(block, path.as_bytes(), &caller(), 0o666).expect("a file");
        assert!(heap.files().read_file(path.as_bytes()).unwrap() == vec![b'a'; bytes], "{bytes} bytes");
        // What makes it longer does not bring back what the block held.
        let longer = SetAttributes { size: Some(2 * bytes as u64), ..SetAttributes::default() };
        heap.files().set_attributes(&Caller::root(), number, &longer).expect("longer");
        let content = heap.files().read_file(path.as_bytes()).unwrap();
        assert!(content[bytes..].iter().all(|byte| *byte == 0), "{bytes} bytes");
        // Back as memory, and a file again: the same bytes.
        let block = heap.file_to_mm(path.as_bytes()).or_else(|_| {
            heap.compact(path.as_bytes())?;
            heap.file_to_mm(path.as_bytes())
        });
        let pointer = block.expect("memory").into_raw();
        // SAFETY: as above.
        assert_eq!(unsafe { heap.from_raw(pointer) }.expect("a block").len(), 2 * bytes);
        assert!(heap.allocate_zeroed(bytes).expect("room").iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_file_belongs_to_whoever_makes_it() {
    let place = Place::new("owner");
    let heap = place.open();
    let files = heap.files();
    let somebody = Caller { uid: 1000, gid: 1001, umask: 0o027, groups: Some(vec![]), ..Caller::default() };
    let block = heap.allocate_zeroed(10).expect("room");
    let number = heap.mm_to_file(block, b"/theirs", &somebody, 0o666).expect("a file");
    let made = files.attributes(number).unwrap();
    assert_eq!((made.uid, made.gid, made.permissions), (1000, 1001, 0o640));
    let (root, me) = (files.attributes(InodeNumber::ROOT).unwrap(), caller());
    assert_eq!((root.uid, root.gid), (me.uid, me.gid), "the volume belongs to who made it");
}

#[test]
fn a_refused_block_is_an_error_like_any_other() {
    fn make(heap: &Heap, path: &[u8]) -> Result<InodeNumber, Box<dyn std::error::Error>> {
        Ok(heap.mm_to_file(heap.allocate(10)?, path, &caller(), 0o600)?)
    }
    let place = Place::new("error");
    let heap = place.open();
    make(&heap, b"/one").expect("a file");
    let refused = make(&heap, b"/one").expect_err("the name is taken");
    assert!(refused.to_string().contains("/one"), "{refused}");
    let block = heap.allocate(10).expect("room");
    let address = block.address();
    let refused = heap.mm_to_file(block, b"/one", &caller(), 0o600).expect_err("the name is taken");
    assert_eq!((refused.kind(), refused.block().address()), (ErrorKind::Exists, address));
    assert_eq!(refused.into_block().address(), address);
}

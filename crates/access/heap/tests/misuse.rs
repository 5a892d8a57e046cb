//! What is wrong is a clear error, and nothing is lost by it: foreign and damaged regions,
//! pointers, names, space.

use onode_heap::{Caller, ErrorKind, Heap};
use std::path::PathBuf;
use std::ptr::NonNull;

/// A file in memory, gone at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/onode-heap-misuse-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn spec(&self) -> String {
        format!("scm:{},size=16M", self.0.display())
    }

    fn open(&self) -> Heap {
        Heap::open(&self.spec()).expect("the heap opens")
    }

    /// A heap with one file in it, closed.
    fn with_file(name: &str) -> Self {
        let place = Self::new(name);
        place.open().files().write_file(&Caller::root(), b"/file", b"kept", 0o644).expect("written");
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_region_that_is_none_is_refused_and_left_as_it_is() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, ErrorKind, Damage); 5] = [
        ("somebody's letter", ErrorKind::Invalid, |bytes| *bytes = vec![b'a'; 8192]),
        ("nothing", ErrorKind::Invalid, Vec::clear),
        ("its tables are damaged", ErrorKind::Loss, |bytes| bytes[..64 << 10].fill(0x55)),
        ("smaller than its header says", ErrorKind::Corrupt, |bytes| bytes.truncate(4 << 20)),
        ("its list of spaces is damaged", ErrorKind::Loss, |bytes| bytes[4096..1 << 20].fill(0x77)),
    ];
    for (what, kind, damage) in cases {
        let place = Place::with_file("region");
        let whole = std::fs::read(&place.0).expect("it is there");
        let mut damaged = whole.clone();
        damage(&mut damaged);
        std::fs::write(&place.0, &damaged).expect("written");
        let error = Heap::open(&place.spec()).err().unwrap_or_else(|| panic!("{what}: it was opened"));
        assert_eq!(error.kind, kind, "{what}: {error}");
        assert!(error.to_string().contains(&*place.0.to_string_lossy()), "{what}: {error}");
        assert!(std::fs::read(&place.0).expect("it is there") == damaged, "{what}: it was written to");
        std::fs::write(&place.0, &whole).expect("written");
        assert_eq!(place.open().files().read_file(b"/file").expect("as it was"), b"kept", "{what}");
    }
}

#[test]
fn a_pointer_that_is_no_block_is_refused_whatever_is_asked_of_it() {
    let place = Place::new("pointers");
    let elsewhere = Place::new("elsewhere");
    let (heap, other) = (place.open(), elsewhere.open());
    let mut local = 0_u64;
    for bytes in [32, 500, 5000, 70_000, 300_000] {
        let own = heap.allocate_raw(bytes).expect("room");
        let freed = heap.allocate_raw(bytes).expect("room");
        let file = heap.allocate(bytes).expect("room");
        let of_file = file.as_ptr();
        let path = format!("/file {bytes}");
        heap.mm_to_file(file, path.as_bytes(), &Caller::root(), 0o644).expect("a file");
        let foreign = other.allocate_raw(bytes).expect("room");
        let inside = NonNull::new(own.as_ptr().wrapping_add(8)).expect("not null");
        // SAFETY: nobody uses it any more.
        unsafe { heap.free(freed) }.expect("a block");
        let cases = [
            ("inside of a block", inside, "no block begins there"),
            ("freed", freed, "freed before"),
            ("a file's", of_file, "belongs to a file"),
            ("of another heap", foreign, "of this heap|of the heap"),
            ("of the stack", NonNull::from(&mut local).cast(), "of this heap|of the heap"),
            ("the start of the heap", heap.start(), "does not lie in this heap"),
        ];
        for (what, pointer, words) in cases {
            // SAFETY: errors are expected, and nothing else.
            let (free, take) = unsafe { (heap.free(pointer), heap.from_raw(pointer)) };
            for (how, error) in [("free", free.err()), ("take", take.err())] {
                let error = error.unwrap_or_else(|| panic!("{how} {what}, {bytes} bytes: it was done"));
                assert_eq!(error.kind, ErrorKind::Invalid, "{how} {what}: {error}");
                let is_said = words.split('|').any(|words| error.to_string().contains(words));
                assert!(is_said, "{how} {what}, {bytes} bytes: {error}");
            }
        }
        // SAFETY: the blocks are this test's.
        unsafe {
            let block = heap.from_raw(own).expect("it is there still");
            let block = heap.reallocate(block, bytes * 2).expect("room");
            let (block, full) = heap.reallocate(block, 1 << 40).expect_err("there is not so much").into_parts();
            assert_eq!(full.kind, ErrorKind::NoSpace, "{full}");
            drop(block);
            other.free(foreign).expect("a block");
        }
        assert_eq!(heap.files().read_file(path.as_bytes()).expect("it is there").len(), bytes);
    }
    heap.close().expect("nothing is in use");
    other.close().expect("nothing is in use");
}

#[test]
fn a_block_that_cannot_become_a_file_comes_back() {
    let place = Place::with_file("names");
    let elsewhere = Place::new("names-elsewhere");
    let (heap, other) = (place.open(), elsewhere.open());
    let long = [&b"/"[..], &[b'n'; 300]].concat();
    let cases: [(&[u8], ErrorKind); 6] = [
        (b"/file", ErrorKind::Exists),
        (b"/", ErrorKind::Invalid),
        (b"", ErrorKind::Invalid),
        (b"/none/file", ErrorKind::NotFound),
        (b"/file/file", ErrorKind::NotDirectory),
        (&long, ErrorKind::NameTooLong),
    ];
    let mut block = heap.allocate(1000).expect("room");
    block.fill(7);
    for (path, kind) in cases {
        let refused = heap.mm_to_file(block, path, &Caller::root(), 0o644).expect_err("it cannot be");
        let (back, error) = refused.into_parts();
        assert_eq!(error.kind, kind, "{}: {error}", String::from_utf8_lossy(path));
        assert!(back.iter().all(|byte| *byte == 7));
        block = back;
    }
    let refused = other.mm_to_file(block, b"/x", &Caller::root(), 0o644).expect_err("across regions");
    let (block, error) = refused.into_parts();
    assert_eq!(error.kind, ErrorKind::CrossDevice, "{error}");
    heap.mm_to_file(block, b"/x", &Caller::root(), 0o644).expect("where it belongs it can");
    assert_eq!(heap.files().read_file(b"/file").expect("as it was"), b"kept");
    let spec = onode::Spec::parse(&place.spec()).expect("a spec");
    let class = onode::open_device(&spec, false, false).err().map(|error| error.class);
    assert_eq!(class, Some(onode::Class::InUse), "others share it, nobody has it alone");
}

#[test]
fn a_full_region_refuses_and_goes_on_when_something_is_freed() {
    let place = Place::with_file("full");
    let heap = place.open();
    let mut blocks = Vec::new();
    let full = loop {
        match heap.allocate(100_000) {
            Ok(mut block) => {
                block.fill(blocks.len() as u8);
                blocks.push(block);
            }
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind, ErrorKind::NoSpace, "{full}");
    assert!(blocks.len() > 50);
    let mut refused = 0;
    for (i, block) in blocks.into_iter().enumerate() {
        assert!(block.iter().all(|byte| *byte == i as u8), "block {i} was written to");
        // Without room for its name the block stays one.
        match heap.mm_to_file(block, format!("/block {i}").as_bytes(), &Caller::root(), 0o644) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!(heap.files().read_file(b"/file").expect("as it was"), b"kept");
    let names = heap.files().list(onode_heap::InodeNumber::ROOT).expect("a list").len();
    assert!(names > 1 && names - 1 + refused > 50);
    let mut removed = 0;
    for entry in heap.files().list(onode_heap::InodeNumber::ROOT).expect("a list") {
        if entry.name != b"file" {
            heap.files().unlink(onode_heap::InodeNumber::ROOT, &entry.name).expect("what frees is done");
            removed += 1;
        }
    }
    // How much the log takes of what was freed goes with the times in it, which differ from run to
    // run.
    let again: Vec<_> = (0..removed).map_while(|_| heap.allocate(100_000).ok()).collect();
    assert!(again.len() + 2 >= removed, "there is room again for {} of {removed}", again.len());
}

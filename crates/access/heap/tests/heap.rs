//! Blocks, files, and the ways between them, over a file in memory and across a reopen.

use crate::common::Place;
use onode_heap::{Caller, ErrorKind, Heap, Plain, Ref};
use std::ptr::NonNull;

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i.wrapping_mul(31) ^ (i >> 8) ^ seed) as u8).collect()
}

#[test]
fn a_block_becomes_a_file_and_the_file_a_block() {
    let place = Place::new("round");
    for bytes in [1, 32, 500, 2048, 65_536, 100_000, 5 << 20] {
        let heap = place.open();
        let mut block = heap.allocate(bytes).expect("room");
        let content = pattern(bytes, bytes);
        block.copy_from_slice(&content);
        let address = block.address();
        heap.mm_to_file(block, b"/saved", &Caller::root(), 0o644).expect("it becomes a file");
        assert_eq!(heap.files().read_file(b"/saved").expect("readable"), content);
        let mapping = heap.map(b"/saved").expect("one block");
        assert_eq!(heap.address_of(mapping.as_ptr()), Some(address), "no byte has moved");
        // SAFETY: nobody else has the file.
        assert_eq!(unsafe { mapping.as_slice() }, content);
        drop(mapping);
        heap.close().expect("nothing is in use");

        let heap = place.open();
        assert_eq!(heap.files().read_file(b"/saved").expect("durable"), content, "{bytes} bytes");
        let block = heap.file_to_mm(b"/saved").expect("it becomes a block");
        assert_eq!(&block[..], content);
        assert_eq!(block.address(), address, "no byte has moved");
        let gone = heap.files().read_file(b"/saved").expect_err("the file is gone");
        assert_eq!(gone.kind, ErrorKind::NotFound);
        heap.mm_to_file(block, b"/again", &Caller::root(), 0o600).expect("and back");
        assert_eq!(heap.files().read_file(b"/again").expect("readable"), content);
        drop(heap.file_to_mm(b"/again").expect("memory that is freed"));
        heap.close().expect("nothing is in use");
    }
}

#[test]
fn what_no_file_has_is_gone_with_the_process_and_leaks_nothing() {
    let place = Place::new("leak");
    let mut free = Vec::new();
    for round in 0..4 {
        let heap = place.open();
        free.push(heap.files().device().space().available);
        let mut kept = Vec::new();
        for i in 0..200 {
            kept.push(heap.allocate(1 + i * 97).expect("room"));
        }
        heap.mm_to_file(kept.pop().expect("one"), b"/one", &Caller::root(), 0o644).expect("a file");
        let again = heap.allocate(10).expect("room");
        let refused = heap.mm_to_file(again, b"/one", &Caller::root(), 0o644).expect_err("the name is taken");
        let (block, error) = refused.into_parts();
        assert_eq!(error.kind, ErrorKind::Exists, "{error}");
        drop(block);
        if round % 2 == 0 {
            // As if the process had died with them.
            kept.into_iter().for_each(|block| {
                let _ = block.into_raw();
            });
        }
        drop(heap.file_to_mm(b"/one").expect("back"));
        drop(heap);
    }
    assert!(free.windows(2).all(|pair| pair[0].abs_diff(pair[1]) <= 128 << 10), "{free:?}");
}

#[test]
fn misuse_is_an_error_and_changes_nothing() {
    let place = Place::new("misuse");
    let heap = place.open();
    let pointer = heap.allocate_raw(100).expect("room");
    let inside = NonNull::new(pointer.as_ptr().wrapping_add(8)).expect("not null");
    let mut outside = 0_u64;
    // SAFETY: nothing but errors is expected of all but one.
    unsafe {
        assert_eq!(heap.free(inside).expect_err("wild").kind, ErrorKind::Invalid);
        assert_eq!(heap.free(NonNull::from(&mut outside).cast()).expect_err("foreign").kind, ErrorKind::Invalid);
        heap.free(pointer).expect("a block");
        let twice = heap.free(pointer).expect_err("freed before");
        assert!(twice.to_string().contains("freed before"), "{twice}");
    }
    let block = heap.allocate(5000).expect("room");
    let of_file = block.as_ptr();
    heap.mm_to_file(block, b"/file", &Caller::root(), 0o644).expect("a file");
    // SAFETY: an error is expected.
    let published = unsafe { heap.free(of_file) }.expect_err("it is a file's");
    assert!(published.to_string().contains("belongs to a file"), "{published}");
    let held = heap.map(b"/file").expect("mapped");
    assert_eq!(heap.file_to_mm(b"/file").expect_err("in use").kind, ErrorKind::Busy);
    drop(held);
    let elsewhere = Place::new("misuse-other");
    let other = elsewhere.open();
    let foreign = other.allocate(64).expect("room");
    let (foreign, error) =
        heap.mm_to_file(foreign, b"/x", &Caller::root(), 0o644).expect_err("two regions").into_parts();
    assert_eq!(error.kind, ErrorKind::CrossDevice);
    drop(foreign);
    // In the same words whether the build has those devices or not.
    for spec in ["flash:x.img", "x.img", "tier:x.img,fast=y.img", "pool:x.img,y.img", "ram:"] {
        let error = Heap::open(spec).err().expect("no memory");
        assert_eq!(error.kind, ErrorKind::Invalid, "{spec}");
        assert!(error.to_string().contains("it is no memory"), "{spec}: {error}");
    }
    assert!(!std::path::Path::new("x.img").exists(), "it made a volume before it saw that it is no memory");
    assert_eq!(heap.allocate(1 << 40).expect_err("too much").kind, ErrorKind::NoSpace);
    // Others may share it, but nobody has it alone.
    let spec = onode::Spec::parse(&format!("scm:{}", place.0.display())).expect("a spec");
    let in_use = onode::open_device(&spec, false, false).err().expect("in use");
    assert_eq!(in_use.class, onode::Class::InUse, "{in_use}");
}

#[test]
fn a_file_in_pieces_is_one_range_without_a_copy_and_one_block_on_demand() {
    let place = Place::new("pieces");
    let heap = place.open();
    let files = heap.files();
    let (a, b) = (pattern(1, 300_000), pattern(2, 300_000));
    let root = Caller::root();
    let number = files.write_file(&root, b"/f", &a, 0o644).expect("written");
    // Something right behind it, so that it cannot grow where it is.
    let mut walls = Vec::new();
    while files.placement(number).expect("in memory").len() < 3 {
        walls.push(heap.allocate(1 << 20).expect("room"));
        let size = files.attributes(number).expect("it is there").size;
        files.write(&root, number, size, &b).expect("appended");
    }
    let whole = files.read_file(b"/f").expect("readable");
    let mapping = heap.map(b"/f").expect("its blocks are whole pages");
    assert!(mapping.is_stitched());
    // SAFETY: nobody writes.
    assert!(unsafe { mapping.as_slice() } == whole);
    // It is the same memory: a store by one way is seen by the other.
    // SAFETY: inside of the file, which nobody else uses.
    unsafe { mapping.as_ptr().add(whole.len() - 1).write_volatile(0xee) };
    files.write(&root, number, 5, b"seen").expect("written");
    // SAFETY: nobody writes now.
    assert_eq!(&unsafe { mapping.as_slice() }[5..9], b"seen");
    let whole = files.read_file(b"/f").expect("readable");
    assert_eq!(whole.last(), Some(&0xee));
    drop(mapping);
    assert_eq!(heap.file_to_mm(b"/f").expect_err("several blocks").kind, ErrorKind::Invalid);
    heap.compact(b"/f").expect("room");
    let mapping = heap.map(b"/f").expect("one block");
    assert!(!mapping.is_stitched());
    // SAFETY: nobody writes.
    assert!(unsafe { mapping.as_slice() } == whole);
}

#[test]
fn a_file_that_cannot_be_one_range_says_why() {
    let place = Place::new("holes");
    let heap = place.open();
    let files = heap.files();
    let root = Caller::root();
    let begin = files.write_file(&root, b"/begin", b"", 0o644).expect("written");
    files.write(&root, begin, 1 << 20, b"end").expect("written");
    let end = files.write_file(&root, b"/end", b"begin", 0o644).expect("written");
    let longer = onode_fs::SetAttributes { size: Some(1 << 20), ..onode_fs::SetAttributes::default() };
    files.set_attributes(&root, end, &longer).expect("longer");
    for path in [&b"/begin"[..], b"/end"] {
        let error = heap.map(path).err().expect("it has a hole");
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.to_string().contains("hole"), "{error}");
        let content = files.read_file(path).expect("readable");
        heap.compact(path).expect("room");
        let mapping = heap.map(path).expect("one block");
        // SAFETY: nobody writes.
        assert!(unsafe { mapping.as_slice() } == content);
    }
    assert_eq!(heap.map(b"/").err().map(|error| error.kind), Some(ErrorKind::IsDirectory));
    assert_eq!(heap.map(b"/none").err().map(|error| error.kind), Some(ErrorKind::NotFound));
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Node {
    value: u64,
    next: Ref<Node>,
}

#[test]
fn a_list_is_saved_by_naming_it() {
    let place = Place::new("list");
    {
        let heap = place.open();
        let block = heap.allocate(1000 * size_of::<Node>()).expect("room");
        let start = block.address();
        for i in 0..1000 {
            let at = |i: u64| Ref::<Node>::at(start + i * size_of::<Node>() as u64);
            let next = if i + 1 < 1000 { at(i + 1) } else { Ref::NULL };
            assert!(at(i).set(&heap, Node { value: i * i, next }));
        }
        heap.mm_to_file(block, b"/list", &Caller::root(), 0o644).expect("saved");
    }
    let heap = place.open();
    let mapping = heap.map(b"/list").expect("one block");
    let mut at = Ref::<Node>::at(heap.address_of(mapping.as_ptr()).expect("of this heap"));
    let mut count = 0;
    while let Some(node) = at.get(&heap) {
        assert_eq!(node.value, count * count);
        (at, count) = (node.next, count + 1);
    }
    assert_eq!(count, 1000);
    assert_eq!(Ref::<Node>::at(3).get(&heap).map(|node| node.value), None, "no block there");
}

#[test]
fn threads_allocate_side_by_side() {
    let place = Place::new("threads");
    let heap = place.open();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let heap = heap.clone();
            scope.spawn(move || {
                let mut held = Vec::new();
                for i in 0..3000_usize {
                    let mut block = heap.allocate(1 + (i * 37 + thread * 11) % 3000).expect("room");
                    block.fill(thread as u8);
                    held.push(block);
                    if i % 3 == 0 {
                        let gone = held.swap_remove(i % held.len());
                        assert!(gone.iter().all(|byte| *byte == thread as u8), "somebody else wrote there");
                    }
                }
            });
        }
    });
    heap.close().expect("all is given back");
}

/// A scope ends before its threads have dropped what is theirs; a heap that is closed then must not
/// be found in use.
#[test]
fn a_thread_that_ends_keeps_no_heap_open() {
    let place = Place::new("ending");
    for _ in 0..50 {
        let heap = place.open();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let heap = heap.clone();
                scope.spawn(move || {
                    let blocks: Vec<_> = (0..200).map(|_| heap.allocate(64).expect("room")).collect();
                    drop(blocks);
                });
            }
        });
        heap.close().expect("nobody uses it");
    }
}

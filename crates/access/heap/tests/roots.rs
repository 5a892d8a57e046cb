//! Names for the entries of data structures, across runs, and the types that may lie behind them.

use crate::common::Place;
use onode_heap::{Caller, ErrorKind, Heap, Kind, Plain, Ref};

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Node {
    value: u64,
    next: Ref<Node>,
}

/// As large as a node, and another thing.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Range {
    start: u64,
    end: u64,
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Pair<A, B> {
    first: A,
    second: B,
}

#[derive(Clone, Copy, Plain)]
#[repr(transparent)]
struct Meters(f64);

/// A list of so many nodes in a file; returns where the first is.
fn list(heap: &Heap, path: &[u8], count: u64) -> Ref<Node> {
    let block = heap.allocate(count as usize * size_of::<Node>()).expect("room");
    let at = |i: u64| Ref::<Node>::at(block.address() + i * size_of::<Node>() as u64);
    for i in 0..count {
        let next = if i + 1 < count { at(i + 1) } else { Ref::NULL };
        assert!(at(i).set(heap, Node { value: i, next }));
    }
    let first = at(0);
    heap.mm_to_file(block, path, &Caller::root(), 0o644).expect("a file");
    first
}

fn length(heap: &Heap, first: Ref<Node>) -> u64 {
    std::iter::successors(first.get(heap), |node| node.next.get(heap)).count() as u64
}

#[test]
fn a_root_is_found_in_another_run_and_replaced_wholly() {
    let place = Place::new("runs");
    for run in 1..5 {
        let heap = place.open();
        if run > 1 {
            let found = heap.root::<Node>(b"list").expect("the run before has set it");
            assert_eq!(length(&heap, found), run - 1);
        }
        let first = list(&heap, format!("/list {run}").as_bytes(), run);
        heap.set_root(b"list", first).expect("it is a node");
        assert_eq!(heap.root::<Node>(b"list").expect("it was set"), first);
        assert_eq!(heap.roots().expect("a list"), [b"list".to_vec()]);
    }
    let heap = place.open();
    heap.remove_root(b"list").expect("it is there");
    assert_eq!(heap.root::<Node>(b"list").expect_err("it is gone").kind, ErrorKind::NotFound);
}

#[test]
fn a_root_of_another_kind_or_nowhere_is_refused_in_words() {
    let place = Place::new("wrong");
    let heap = place.open();
    let first = list(&heap, b"/list", 3);
    heap.set_root(b"list", first).expect("it is a node");
    let nowhere = heap.allocate(64).expect("room");
    let removed = list(&heap, b"/removed", 3);
    heap.set_root(b"removed", removed).expect("it is a node");
    heap.files().remove_all(b"/removed").expect("it is there");
    heap.set_root(b"damaged", first).expect("it is a node");
    let damaged = heap.files().resolve(b"/.roots/damaged", onode_fs::Follow::Yes).expect("it is there");
    heap.files().write(&Caller::root(), damaged, 9, b"\x77").expect("a byte");
    let at = |address: u64| Ref::<Node>::at(address);
    let end = first.address() + 3 * 16;
    let cases = [
        ("another layout", ErrorKind::Invalid, heap.root::<Range>(b"list").err()),
        ("another size", ErrorKind::Invalid, heap.root::<u64>(b"list").err()),
        ("no such name", ErrorKind::NotFound, heap.root::<Node>(b"tree").err()),
        ("its file is gone", ErrorKind::Stale, heap.root::<Node>(b"removed").err()),
        ("damaged", ErrorKind::Corrupt, heap.root::<Node>(b"damaged").err()),
        ("null", ErrorKind::Invalid, heap.set_root(b"x", Ref::<Node>::NULL).err()),
        ("no file", ErrorKind::Invalid, heap.set_root(b"x", at(nowhere.address())).err()),
        ("misaligned", ErrorKind::Invalid, heap.set_root(b"x", at(first.address() + 4)).err()),
        ("behind the block", ErrorKind::Invalid, heap.set_root(b"x", at(end.next_multiple_of(4096) - 8)).err()),
        ("outside", ErrorKind::Invalid, heap.set_root(b"x", at(u64::MAX - 7)).err()),
        ("no name", ErrorKind::Invalid, heap.set_root(b"", first).err()),
        ("a path", ErrorKind::Invalid, heap.set_root(b"a/b", first).err()),
        (
            "no alignment",
            ErrorKind::Invalid,
            heap.set_root_of(b"x", first.address(), &Kind::new(16, 0, 0, "odd")).err(),
        ),
        ("a long name", ErrorKind::NameTooLong, heap.set_root(&[b'n'; 201], first).err()),
        ("nothing to remove", ErrorKind::NotFound, heap.remove_root(b"x").err()),
    ];
    for (what, kind, error) in cases {
        let error = error.unwrap_or_else(|| panic!("{what}: it was done"));
        assert_eq!(error.kind, kind, "{what}: {error}");
    }
    let words = heap.root::<Range>(b"list").expect_err("another layout").to_string();
    assert!(words.contains("Node (16 bytes") && words.contains("not a Range (16 bytes"), "{words}");
    assert_eq!(length(&heap, heap.root::<Node>(b"list").expect("as it was")), 3);
}

#[test]
fn layouts_differ_by_names_and_types_of_fields() {
    let layouts = [
        Node::LAYOUT,
        Range::LAYOUT,
        Meters::LAYOUT,
        u64::LAYOUT,
        f64::LAYOUT,
        <[u64; 2]>::LAYOUT,
        <[u64; 3]>::LAYOUT,
        Pair::<u64, f64>::LAYOUT,
        Pair::<f64, u64>::LAYOUT,
    ];
    let distinct: std::collections::BTreeSet<u64> = layouts.into_iter().collect();
    assert_eq!(distinct.len(), layouts.len());
    let place = Place::new("parameters");
    let heap = place.open();
    let block = heap.allocate(64).expect("room");
    let at = Ref::<Pair<u64, Meters>>::at(block.address());
    assert!(at.set(&heap, Pair { first: 7, second: Meters(0.5) }));
    let back = at.get(&heap).expect("it is there");
    assert!(back.first == 7 && back.second.0 == 0.5);
}

//! Arenas and their checkpoints, over a file in memory, with changed pages found in both ways.

use crate::common::Place;
use onode_heap::{Arena, ErrorKind, Plain, Ref, Report, Tracking};
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: usize = 4096;

/// The bytes of an arena that nobody else uses.
fn bytes_of(arena: &Arena) -> Vec<u8> {
    // SAFETY: the test stores nothing meanwhile, and the arena lies there.
    unsafe { std::slice::from_raw_parts(arena.as_ptr().as_ptr(), arena.bytes()) }.to_vec()
}

fn store(arena: &Arena, at: usize, value: u8) {
    assert!(at < arena.bytes());
    // SAFETY: inside of the arena.
    unsafe { arena.as_ptr().add(at).write_volatile(value) };
}

/// Numbers from a seed.
fn numbers(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

/// Both ways to find changed pages.
fn in_both_ways(name: &str, test: impl Fn(&Place, fn(&Arena))) {
    test(&Place::new(&format!("{name}-kernel")), |_| ());
    test(&Place::new(&format!("{name}-compared")), Arena::compare_pages);
}

#[test]
fn each_checkpoint_comes_back_as_it_was_in_another_run() {
    in_both_ways("rounds", |place, prepare| {
        let mut random = numbers(1);
        let mut images = Vec::new();
        {
            let heap = place.open();
            let arena = heap.create_arena(b"work", 2 << 20).expect("room");
            prepare(&arena);
            for round in 0..12_u8 {
                for _ in 0..random(60) {
                    let at = random(arena.bytes() / 2) + arena.bytes() / 2;
                    store(&arena, at, if random(4) == 0 { 0 } else { round + 1 });
                }
                let name = format!("round {}", round % 5);
                arena.checkpoint(name.as_bytes()).expect("room");
                images.retain(|(before, _)| *before != name);
                images.push((name, bytes_of(&arena)));
            }
            store(&arena, 1 << 20, 99);
        }
        let heap = place.open();
        let listed: Vec<String> = heap
            .checkpoints(b"work")
            .expect("there are some")
            .into_iter()
            .map(|one| String::from_utf8(one.name).expect("text"))
            .collect();
        let expected: Vec<String> = images.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(listed, expected, "the oldest first");
        for (name, image) in &images {
            let arena = heap.restore(b"work", name.as_bytes()).expect("it is there");
            assert!(bytes_of(&arena) == *image, "{name} is another");
        }
        // To and fro within one, with changes in between.
        let mut arena = heap.restore(b"work", images[0].0.as_bytes()).expect("it is there");
        prepare(&arena);
        for (name, image) in images.iter().rev() {
            store(&arena, random(arena.bytes()), 77);
            arena.restore(name.as_bytes()).expect("it is there");
            assert!(bytes_of(&arena) == *image, "{name} is another");
        }
        store(&arena, 5 * PAGE, 1);
        let report = arena.checkpoint(b"branch").expect("room");
        assert_eq!(report.pages, 1, "a branch adds to what it began with: {report:?}");
    });
}

#[test]
fn what_is_written_goes_with_what_has_changed() {
    in_both_ways("cost", |place, prepare| {
        let heap = place.open();
        let arena = heap.create_arena(b"work", 8 << 20).expect("room");
        prepare(&arena);
        let pages = arena.bytes() / PAGE;
        for page in pages / 2..pages {
            store(&arena, page * PAGE + 8, 1);
        }
        arena.checkpoint(b"a").expect("room");
        let nothing = arena.checkpoint(b"a").expect("room");
        assert_eq!((nothing.pages, nothing.bytes_written), (0, 32), "only the name");
        let mut random = numbers(2);
        for round in 0..20 {
            let changed: std::collections::BTreeSet<usize> = (0..100).map(|_| pages / 2 + random(pages / 2)).collect();
            changed.iter().for_each(|page| store(&arena, page * PAGE + 16, round + 1));
            let Report { pages, bytes_written, pages_in_pause } = arena.checkpoint(b"a").expect("room");
            assert_eq!((pages, pages_in_pause), (changed.len() as u64, 0));
            let dirty = pages * PAGE as u64;
            assert!(bytes_written * 10 <= dirty * 11, "{bytes_written} bytes written for {dirty}, round {round}");
        }
    });
}

#[test]
fn the_kernel_notes_pages_where_it_can() {
    let place = Place::new("notes");
    let heap = place.open();
    let arena = heap.create_arena(b"work", 1 << 20).expect("room");
    assert!(!arena.tracking().describe().is_empty());
    arena.compare_pages();
    assert_eq!(arena.tracking(), Tracking::Comparison);
}

#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Node {
    value: u64,
    next: Ref<Node>,
}

#[test]
fn a_list_goes_on_in_another_run() {
    let place = Place::new("list");
    for run in 0..5_u64 {
        let heap = place.open();
        let arena = if run == 0 {
            heap.create_arena(b"list", 1 << 20).expect("room")
        } else {
            heap.restore(b"list", b"saved").expect("the run before has saved it")
        };
        let mut first = arena.root::<Node>().unwrap_or(Ref::NULL);
        let mut values = Vec::new();
        let mut at = first;
        while let Some(node) = at.get(&arena) {
            values.push(node.value);
            at = node.next;
        }
        assert_eq!(values, (0..run * 100).rev().collect::<Vec<u64>>());
        for i in 0..100 {
            first = arena.put(Node { value: run * 100 + i, next: first }).expect("room");
        }
        arena.set_root(first).expect("it is a node");
        arena.checkpoint(b"saved").expect("room");
        let lost = arena.put(Node { value: 0, next: first }).expect("room");
        arena.set_root(lost).expect("it is a node");
        assert_eq!(arena.root::<u64>().expect_err("another type").kind, ErrorKind::Invalid);
    }
}

#[test]
fn an_image_is_of_the_moment_while_threads_go_on() {
    in_both_ways("threads", |place, prepare| {
        let heap = place.open();
        let arena = heap.create_arena(b"work", 1 << 20).expect("room");
        prepare(&arena);
        let (first, second) = (arena.allocate(64 << 10).expect("room"), arena.allocate(64 << 10).expect("room"));
        let program = std::sync::Mutex::new(0_u8);
        let stop = AtomicBool::new(false);
        let (first, second) = (first as usize, second as usize);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // One change of the program: the same number in two places.
                    let mut turn = program.lock().expect("nobody panics");
                    *turn = turn.wrapping_add(1);
                    let page = usize::from(*turn % 16) * PAGE;
                    store(&arena, first + page, *turn);
                    store(&arena, second + page, *turn);
                    drop(turn);
                    std::thread::yield_now();
                }
            });
            for _ in 0..30 {
                arena.copy_ahead().expect("room");
                let whole = program.lock().expect("nobody panics");
                let frozen = arena.freeze().expect("room");
                drop(whole);
                frozen.commit(b"moment").expect("room");
            }
            stop.store(true, Ordering::Relaxed);
        });
        drop(arena);
        let arena = heap.restore(b"work", b"moment").expect("it is there");
        let bytes = bytes_of(&arena);
        for page in (0..16).map(|page| page * PAGE) {
            assert_eq!(bytes[first + page], bytes[second + page], "half a change was saved");
        }
    });
}

#[test]
fn a_frozen_image_that_is_dropped_costs_nothing_that_counts() {
    let place = Place::new("dropped");
    let heap = place.open();
    let arena = heap.create_arena(b"work", 1 << 20).expect("room");
    store(&arena, 600_000, 1);
    drop(arena.freeze().expect("room"));
    store(&arena, 700_000, 2);
    let frozen = arena.freeze().expect("room");
    assert_eq!(arena.freeze().err().map(|error| error.kind), Some(ErrorKind::Busy));
    store(&arena, 700_000, 3);
    frozen.commit(b"one").expect("room");
    drop(arena);
    let bytes = bytes_of(&heap.restore(b"work", b"one").expect("it is there"));
    assert_eq!((bytes[600_000], bytes[700_000]), (1, 2));
}

#[test]
fn what_no_checkpoint_has_becomes_free() {
    let place = Place::new("free");
    let heap = place.open();
    let arena = heap.create_arena(b"work", 4 << 20).expect("room");
    let fill = |value: u8| (0..arena.bytes() / PAGE).skip(64).for_each(|page| store(&arena, page * PAGE, value));
    // 64 MiB hold some sixteen images; these are many more.
    for round in 1..100_u8 {
        fill(round);
        arena.checkpoint(b"turning").expect("what was before is free");
        if round % 10 == 0 {
            arena.checkpoint(b"kept").expect("another name for the same");
        }
        if round % 10 == 5 && round > 10 {
            arena.remove_checkpoint(b"kept").expect("it is there");
        }
    }
    let mut kept = 0;
    let full = loop {
        fill(200 - kept);
        match arena.checkpoint(format!("kept {kept}").as_bytes()) {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind, ErrorKind::NoSpace, "{full}");
    assert!(kept > 4, "{kept} images had room");
    let image = bytes_of(&arena);
    arena.remove_checkpoint(b"kept 0").expect("it is there");
    arena.checkpoint(b"last").expect("there is room now, and what was changed is known still");
    drop(arena);
    assert!(bytes_of(&heap.restore(b"work", b"last").expect("it is there")) == image);
    for i in 1..kept {
        let bytes = bytes_of(&heap.restore(b"work", format!("kept {i}").as_bytes()).expect("it is there"));
        assert_eq!(bytes[100 * PAGE], 200 - i);
    }
    heap.remove_arena(b"work").expect("it is closed");
    assert_eq!(heap.arenas().expect("a list"), Vec::<Vec<u8>>::new());
    assert_eq!(heap.restore(b"work", b"last").err().map(|error| error.kind), Some(ErrorKind::NotFound));
}

#[test]
fn damage_is_an_error_and_never_an_image() {
    let place = Place::new("damage");
    {
        let heap = place.open();
        let arena = heap.create_arena(b"work", 1 << 20).expect("room");
        (0..arena.bytes()).skip(300_000).step_by(512).for_each(|at| store(&arena, at, 0x5a));
        arena.checkpoint(b"one").expect("room");
    }
    let heap = place.open();
    let slots = heap.map(b"/.checkpoints/work/slots-000000").expect("it is one block");
    // SAFETY: the file's own memory, inside of it.
    unsafe { *slots.as_ptr().as_ptr().add(3 * PAGE + 5) ^= 1 };
    drop(slots);
    let error = heap.restore(b"work", b"one").err().expect("it is damaged");
    assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("page"), "{error}");
}

#[test]
fn misuse_is_a_clear_error() {
    let place = Place::new("misuse");
    let heap = place.open();
    let arena = heap.create_arena(b"work", 1 << 20).expect("room");
    let cases: [(&str, ErrorKind, Option<onode_heap::Error>); 12] = [
        ("the name is taken", ErrorKind::Busy, heap.create_arena(b"work", 1 << 20).err()),
        ("too small", ErrorKind::Invalid, heap.create_arena(b"small", 1).err()),
        ("too large", ErrorKind::Invalid, heap.create_arena(b"large", usize::MAX).err()),
        ("no name", ErrorKind::Invalid, heap.create_arena(b"", 1 << 20).err()),
        ("a path", ErrorKind::Invalid, heap.create_arena(b"a/b", 1 << 20).err()),
        ("a long name", ErrorKind::NameTooLong, heap.create_arena(&[b'x'; 300], 1 << 20).err()),
        ("open", ErrorKind::Busy, heap.restore(b"work", b"one").err()),
        ("no such arena", ErrorKind::NotFound, heap.restore(b"play", b"one").err()),
        ("no name", ErrorKind::Invalid, arena.checkpoint(b"").err()),
        ("no such checkpoint", ErrorKind::NotFound, arena.remove_checkpoint(b"one").err()),
        ("wild", ErrorKind::Invalid, arena.free(12345).err()),
        ("outside", ErrorKind::Invalid, arena.free(1 << 40).err()),
    ];
    for (what, kind, error) in cases {
        let error = error.unwrap_or_else(|| panic!("{what}: it was done"));
        assert_eq!(error.kind, kind, "{what}: {error}");
        assert!(!error.to_string().is_empty(), "{what}");
    }
    let block = arena.allocate(100).expect("room");
    arena.free(block).expect("a block");
    assert!(arena.free(block).expect_err("twice").to_string().contains("freed before"));
    drop(arena);
    assert_eq!(heap.create_arena(b"work", 1 << 20).err().map(|error| error.kind), Some(ErrorKind::Exists));
    assert_eq!(heap.restore(b"work", b"one").err().map(|error| error.kind), Some(ErrorKind::NotFound));
}

/// KiB of page tables that this process has.
fn table_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has one");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPTE:")).expect("it tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_large_arena_costs_nothing_where_nothing_is_stored() {
    let place = Place::new("large");
    let heap = place.open();
    let before = table_kib();
    let arena = heap.create_arena(b"work", 16 << 30).expect("it takes no room");
    if arena.tracking() == Tracking::Comparison {
        return;
    }
    arena.checkpoint(b"empty").expect("room");
    // 8 bytes for each page would be 32 MiB.
    assert!(table_kib() < before + (8 << 10), "{before} KiB and {}", table_kib());
    // A page that was only read is no change, and a store to it is.
    // SAFETY: inside of the arena.
    assert_eq!(unsafe { arena.as_ptr().add(15 << 30).read_volatile() }, 0);
    let report = arena.checkpoint(b"read").expect("room");
    assert_eq!(report.pages, 0, "{report:?}");
    store(&arena, 15 << 30, 7);
    let report = arena.checkpoint(b"stored").expect("room");
    assert_eq!(report.pages, 1, "{report:?}");
}

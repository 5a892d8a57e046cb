//! A process that dies in the middle of its checkpoints leaves whole ones.

use onode_heap::{Arena, Heap, Plain, Ref};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the heap to the process that is to die.
const HEAP: &str = "ONODE_HEAP_TO_DIE_ON";
const NUMBERS: usize = 64;

/// A number in each of many pages; in a whole image all are the same.
#[derive(Clone, Copy, Plain)]
#[repr(C)]
struct Table {
    pages: [Ref<u64>; NUMBERS],
}

fn open(path: &Path) -> Heap {
    Heap::open(&format!("scm:{},size=32M", path.display())).expect("the heap opens")
}

fn numbers(arena: &Arena) -> Vec<u64> {
    let table = arena.root::<Table>().expect("a table").get(arena).expect("it is there");
    table.pages.iter().map(|at| at.get(arena).expect("it is there")).collect()
}

/// What the process does until it dies. Run by itself it is nothing.
#[test]
fn to_die() {
    let Some(path) = std::env::var_os(HEAP) else { return };
    let heap = open(Path::new(&path));
    let arena = match heap.restore(b"work", b"turn") {
        Ok(arena) => arena,
        Err(_) => {
            let _ = heap.remove_arena(b"work");
            let arena = heap.create_arena(b"work", 2 << 20).expect("room");
            let pages = std::array::from_fn(|_| Ref::at(arena.allocate(16 << 10).expect("room")));
            let table = arena.put(Table { pages }).expect("room");
            pages.iter().for_each(|at| assert!(at.set(&arena, 0)));
            arena.set_root(table).expect("it is a table");
            arena
        }
    };
    let table = arena.root::<Table>().expect("a table").get(&arena).expect("it is there");
    let first = table.pages[0].get(&arena).expect("it is there");
    for number in first + 1.. {
        table.pages.iter().for_each(|at| assert!(at.set(&arena, number)));
        arena.checkpoint(b"turn").expect("room");
        if number.is_multiple_of(5) {
            arena.checkpoint(b"fifth").expect("room");
        }
        // On a line of its own, whatever the harness has written.
        eprintln!("\ndone {number}");
    }
}

#[test]
fn every_checkpoint_is_whole_after_a_kill() {
    let path = PathBuf::from(format!("/dev/shm/onode-heap-died-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut last = 0;
    for kill in 0..12 {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(["to_die", "--exact", "--nocapture", "--test-threads=1"])
            .env(HEAP, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut lines = said.lines().map(|line| line.expect("text"));
        for _ in 0..=kill * 3 {
            let done = lines
                .find_map(|line| line.strip_prefix("done ").map(|number| number.parse::<u64>().expect("a number")));
            last = done.expect("it ends only by the kill");
        }
        child.kill().expect("it runs");
        child.wait().expect("it is gone");
        let heap = open(&path);
        let arena = heap.restore(b"work", b"turn").expect("a whole one");
        let found = numbers(&arena);
        assert!(found.iter().all(|number| *number == found[0]), "half an image: {found:?}");
        assert!(found[0] >= last, "{last} was saved, {} is there", found[0]);
        drop(arena);
        if let Ok(arena) = heap.restore(b"work", b"fifth") {
            let found = numbers(&arena);
            assert!(found[0].is_multiple_of(5) && found.iter().all(|number| *number == found[0]), "{found:?}");
        }
        let free = heap.files().device().space().available;
        assert!(free > 16 << 20, "{free} bytes are left after {kill} kills: something leaks");
    }
    let _ = std::fs::remove_file(&path);
}

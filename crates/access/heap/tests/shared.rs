//! Several heaps on one memory, in one process and in two: what one does the other sees at once.

use onode_heap::{Caller, ErrorKind, Heap};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Names the heap to the other process.
const HEAP: &str = "ONODE_HEAP_TO_SHARE";

/// A file in memory, gone at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/onode-heap-shared-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn open(path: &Path) -> Heap {
    Heap::open(&format!("scm:{},size=64M", path.display())).expect("the heap opens")
}

fn name_of(file: &str) -> Vec<u8> {
    format!("/{file}").into_bytes()
}

fn make(heap: &Heap, file: &str, bytes: usize, byte: u8) {
    let mut block = heap.allocate(bytes).expect("room");
    block.fill(byte);
    heap.mm_to_file(block, &name_of(file), &Caller::root(), 0o644).expect("a file");
}

fn read(heap: &Heap, file: &str) -> Option<Vec<u8>> {
    let files = heap.files();
    let inode = files.resolve(&name_of(file), onode_fs::Follow::Yes).ok()?;
    let mut bytes = vec![0; files.attributes(inode).expect("its size").size as usize];
    let count = files.read(inode, 0, &mut bytes).expect("its content");
    bytes.truncate(count);
    Some(bytes)
}

fn names(heap: &Heap) -> Vec<String> {
    let mut names = Vec::new();
    let root = onode_fs::InodeNumber::ROOT;
    heap.files()
        .read_directory(root, 0, &mut |entry| {
            names.push(String::from_utf8_lossy(&entry.name).into_owned());
            true
        })
        .expect("the names");
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn two_heaps_see_each_other_s_files_at_once() {
    let place = Place::new("both");
    let (one, other) = (open(&place.0), open(&place.0));
    for (round, bytes) in [1, 100, 4096, 100_000, 3 << 20].into_iter().enumerate() {
        for (from, to, name) in [(&one, &other, "a"), (&other, &one, "b")] {
            assert_eq!(read(to, name), None);
            make(from, name, bytes, round as u8 + 1);
            assert_eq!(read(to, name), Some(vec![round as u8 + 1; bytes]));
            // A file of one is a block of the other, and goes the way of its other blocks.
            let block = to.file_to_mm(&name_of(name)).expect("a block");
            assert!(block.len() == bytes && block.iter().all(|byte| *byte == round as u8 + 1));
            assert_eq!(read(from, name), None);
            drop(block);
        }
    }
    // Changes of one file by both in turn.
    make(&one, "both", 10, 0);
    let caller = Caller::root();
    for turn in 0..20_u8 {
        let heap = if turn % 2 == 0 { &one } else { &other };
        let inode = heap.files().resolve(b"/both", onode_fs::Follow::Yes).unwrap();
        assert_eq!(heap.files().write(&caller, inode, u64::from(turn) * 5, &[turn; 10]).unwrap(), 10);
    }
    let expected: Vec<u8> = (0..20_u8).flat_map(|turn| [turn; 5]).chain([19; 5]).collect();
    assert_eq!((read(&one, "both"), read(&other, "both")), (Some(expected.clone()), Some(expected)));
    // Names that one gives and the other takes.
    for number in 0..50 {
        make(&one, &format!("n{number}"), 50, 1);
    }
    for number in 0..25 {
        let path = name_of(&format!("n{number}"));
        let (parent, name) = other.files().resolve_parent(&path).unwrap();
        other.files().unlink(parent, name).unwrap();
        let path = name_of(&format!("n{}", number + 25));
        let (parent, name) = one.files().resolve_parent(&path).unwrap();
        assert_eq!(other.files().unlink(parent, b"none").unwrap_err().kind, ErrorKind::NotFound);
        one.files().rename(parent, name, parent, format!("m{number}").as_bytes(), Default::default()).unwrap();
    }
    assert_eq!(names(&one), names(&other));
    assert_eq!(names(&one).len(), 26);
    // The memory of one is not the other's, and goes with it.
    let kept = other.allocate(1 << 20).expect("room");
    let free = one.files().statfs().blocks_free;
    other.close().expect_err("a block is in use");
    drop(kept);
    assert!(one.files().statfs().blocks_free >= free);
    one.close().expect("the heap closes");
    let again = open(&place.0);
    assert_eq!(names(&again).len(), 26);
    again.close().expect("the heap closes");
}

/// What the other process does: what it is told, line by line. Run by itself it is nothing.
#[test]
fn other_process() {
    let Some(path) = std::env::var_os(HEAP) else { return };
    let heap = open(Path::new(&path));
    let mut held = Vec::new();
    println!("\nready");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("make"), Some(name)) => make(&heap, name, 3000, 7),
            (Some("read"), Some(name)) => println!("\n{:?}", read(&heap, name).map(|bytes| (bytes.len(), bytes[0]))),
            (Some("take"), Some(name)) => drop(heap.file_to_mm(&name_of(name)).expect("a block")),
            (Some("hold"), _) => held.push(heap.allocate(1 << 20).expect("room")),
            // Files come and go until it is killed.
            (Some("work"), _) => {
                for number in 0_u64.. {
                    let name = format!("work{}", number % 8);
                    if read(&heap, &name).is_some() {
                        drop(heap.file_to_mm(&name_of(&name)).expect("a block"));
                    }
                    make(&heap, &name, 200 << (number % 10), 9);
                    if number == 20 {
                        println!("\nworks");
                    }
                }
            }
            _ => return,
        }
        println!("\ndone");
    }
}

struct Other {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start(path: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "other_process", "--nocapture", "--test-threads=1"])
            .env(HEAP, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut other = Self { process, input, output };
        other.wait_for("ready");
        other
    }

    /// Reads up to a line; returns the one before it that says something.
    fn wait_for(&mut self, wanted: &str) -> String {
        let mut last = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("its output") > 0, "it ended before {wanted}");
            match line.trim_end() {
                "" => {}
                line if line == wanted => return last,
                line => last = line.to_owned(),
            }
        }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").expect("it listens");
    }

    fn does(&mut self, line: &str) -> String {
        self.tell(line);
        self.wait_for("done")
    }

    fn kill(mut self) {
        self.process.kill().expect("it can be killed");
        self.process.wait().expect("it ends");
    }
}

#[test]
fn two_processes_share_files_and_neither_dies_with_the_other() {
    let place = Place::new("processes");
    let heap = open(&place.0);
    let mut other = Other::start(&place.0);
    make(&heap, "mine", 500, 5);
    assert_eq!(other.does("read mine"), "Some((500, 5))");
    other.does("make theirs");
    assert_eq!(read(&heap, "theirs"), Some(vec![7; 3000]));
    other.does("take mine");
    assert_eq!(read(&heap, "mine"), None);
    drop(heap.file_to_mm(b"/theirs").expect("a block"));
    assert_eq!(other.does("read theirs"), "None");
    // What it had as memory is free when it is dead, and its files stay.
    let before = heap.files().statfs().blocks_free;
    other.does("make left");
    for _ in 0..20 {
        other.does("hold");
    }
    other.kill();
    heap.files().maintain(1).expect("it can be swept");
    let after = heap.files().statfs().blocks_free;
    assert!(after + 64 > before, "{before} blocks were free, {after} are after its death");
    assert_eq!(read(&heap, "left"), Some(vec![7; 3000]));
    // It dies at any moment, in the middle of changes, and this one goes on.
    for round in 0..8_u8 {
        let mut other = Other::start(&place.0);
        other.tell("work");
        other.wait_for("works");
        for number in 0..=round {
            make(&heap, &format!("round{round}-{number}"), 1000, round);
        }
        other.kill();
        for number in 0..=round {
            assert_eq!(read(&heap, &format!("round{round}-{number}")), Some(vec![round; 1000]));
        }
        for name in names(&heap) {
            let bytes = read(&heap, &name).expect("every name has a file");
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{name} is torn");
        }
    }
    heap.close().expect("the heap closes");
    let again = open(&place.0);
    assert_eq!(names(&again).iter().filter(|name| name.starts_with("round")).count(), 36);
    again.close().expect("the heap closes");
}

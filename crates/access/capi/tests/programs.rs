//! Programs in C: compiled against the header, linked with the library, run on a heap in memory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Where cargo put the library that C programs link with.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let folder = program.parent().expect("it lies in a folder");
    let candidates = [folder.join("libonode_c.so"), folder.join("../libonode_c.so")];
    let newest = |path: &PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    candidates.into_iter().filter(|path| path.exists()).max_by_key(newest).expect("cargo builds the library")
}

/// Compiles a program of this folder; the result lies beside the library.
fn compile(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library();
    let folder = library.parent().expect("a folder");
    let program = folder.join(format!("capi-test-{name}"));
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"])
        .arg(&program)
        .arg(home.join(format!("tests/c/{name}.c")))
        .arg("-I")
        .arg(home.join("include"))
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .output()
        .expect("there is a C compiler: apt-get install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Programs that several tests run.
static TOGETHER: LazyLock<PathBuf> = LazyLock::new(|| compile("together"));
static REFUSED: LazyLock<PathBuf> = LazyLock::new(|| compile("refused"));

/// A file in memory that is gone at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/onode-capi-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn spec(&self) -> String {
        format!("scm:{},size=32M", self.0.display())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(program: &Path, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {} {said}", output.status);
}

#[test]
fn table_1_of_paper_2_in_c() {
    let program = compile("table1");
    let heap = Place::new("table1");
    for step in ["save", "load", "files", "misuse"] {
        run(&program, &[&heap.spec(), step]);
    }
}

#[test]
fn conversion_in_c() {
    let program = compile("conversion");
    let heap = Place::new("conversion");
    for step in ["look", "keep", "drop", "modes", "sizes"] {
        run(&program, &[&heap.spec(), step]);
    }
    // What is made belongs to whoever made it; as root it is tried as somebody else.
    let heap = Place::new("owner");
    let output = Command::new(&program).args([&heap.spec(), "owner"]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let heap = onode_heap::Heap::open(&heap.spec()).expect("it opens");
    let files = heap.files();
    let number = files.resolve(b"/mine", onode_fs::Follow::Yes).expect("it was made");
    for number in [number, onode_heap::InodeNumber::ROOT] {
        let made = files.attributes(number).expect("it is there");
        assert_eq!(format!("{}:{}\n", made.uid, made.gid), String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn transactions_in_c() {
    let program = compile("tx");
    let heap = Place::new("tx");
    for step in ["commit", "abort", "conflict", "look"] {
        run(&program, &[&heap.spec(), step]);
    }
}

#[test]
fn arenas_and_roots_in_c() {
    let program = compile("arena");
    let heap = Place::new("arena");
    for step in ["make", "look"] {
        run(&program, &[&heap.spec(), step]);
    }
}

#[test]
fn slots_in_c() {
    let program = compile("slots");
    let heap = Place::new("slots");
    for step in ["make", "look"] {
        run(&program, &[&heap.spec(), step]);
    }
}

#[test]
fn what_is_wrong_has_a_number_and_words_in_c() {
    let program = compile("errors");
    let (heap, other) = (Place::new("errors"), Place::new("errors-other"));
    for step in ["pointers", "full", "twice"] {
        run(&program, &[&heap.spec(), step, &other.spec()]);
    }
    let open = |expected: &str| {
        let spec = format!("scm:{}", heap.0.display());
        run(&program, &[&spec, "open", expected]);
    };
    let whole = std::fs::read(&heap.0).expect("the heap is there");
    std::fs::write(&heap.0, b"a letter to somebody").expect("written");
    open("22:");
    let mut damaged = whole.clone();
    damaged[..1 << 20].fill(0x55);
    std::fs::write(&heap.0, &damaged).expect("written");
    // A damaged memory, not a wrong file: what lies behind its lost table is still told.
    open("5:its table of spaces is lost");
    std::fs::write(&heap.0, &whole[..8 << 20]).expect("written");
    open("5:");
    std::fs::write(&heap.0, &whole).expect("written");
    run(&program, &[&heap.spec(), "twice", ""]);
    run(&program, &["flash:nothing.img", "open", "22:it is no memory"]);
    run(&program, &["", "open", "22:"]);
}

#[test]
fn snapshots_and_clones_in_c() {
    let program = compile("states");
    let places = ["flash", "fast", "big", "one", "two", "memory"].map(|name| Place::new(&format!("states-{name}")));
    let [flash, fast, big, one, two, memory] = &places;
    let at = |place: &Place| place.0.display().to_string();
    for spec in [
        format!("flash:{},size=24M", at(flash)),
        format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big)),
        format!("pool:flash:{},size=24M+scm:{},size=32M", at(one), at(two)),
    ] {
        for step in ["make", "alone", "delete", "threads", "dies", "after"] {
            run(&program, &[&spec, step]);
        }
    }
    run(&program, &[&memory.spec(), "none"]);
}

#[test]
fn encrypted_volumes_in_c() {
    let program = compile("keys");
    let places = ["flash", "fast", "big", "memory", "other", "plain"].map(|name| Place::new(&format!("keys-{name}")));
    let [flash, fast, big, memory, other, plain] = &places;
    let at = |place: &Place| place.0.display().to_string();
    let key_file = Place::new("keys-file");
    std::fs::write(&key_file.0, b"thirty-two bytes and a few more, which nobody guesses").expect("written");
    let on_flash = format!("flash:{},size=24M", at(flash));
    run(&program, &[&on_flash, "make", ""]);
    let image = std::fs::read(&flash.0).expect("the volume is there");
    for hidden in ["words that lie hidden", "a horse that nobody"] {
        assert!(!image.windows(hidden.len()).any(|bytes| bytes == hidden.as_bytes()), "{hidden} lies open");
    }
    run(&program, &[&on_flash, "slots", &at(&key_file)]);
    run(&program, &[&format!("flash:{}", at(flash)), "wrong", &at(&key_file)]);
    run(&program, &[&on_flash, "threads", &format!("scm:{},size=32M", at(other))]);
    run(&program, &[&format!("flash:{},size=24M", at(plain)), "plain", ""]);
    let on_two = format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big));
    run(&program, &[&on_two, "make", ""]);
    run(&program, &[&on_two, "slots", &at(&key_file)]);
    run(&program, &[&format!("scm:{},size=32M", at(memory)), "plain", ""]);
    let (last, directories) = (Place::new("keys-last"), Place::new("keys-directories"));
    run(&program, &[&format!("flash:{},size=24M", at(&directories)), "directories", ""]);
    let (sums, older) = (Place::new("keys-sums"), Place::new("keys-older"));
    run(&program, &[&format!("flash:{},size=24M", at(&sums)), "authenticated", &at(&older)]);
    run(&program, &[&format!("flash:{},size=24M", at(&last)), "wiped", &at(&key_file)]);
}

#[test]
fn sizes_of_volumes_in_c() {
    let program = compile("resize");
    let names = ["flash", "fast", "big", "one", "two", "memory", "other-fast", "other-big"];
    let places = names.map(|name| Place::new(&format!("resize-{name}")));
    let [flash, fast, big, one, two, memory, other_fast, other_big] = &places;
    let at = |place: &Place| place.0.display().to_string();
    for (new, spec, path) in [
        (format!("flash:{},size=24M", at(flash)), format!("flash:{}", at(flash)), at(flash)),
        (
            format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big)),
            format!("tier:{},{}", at(fast), at(big)),
            at(big),
        ),
        (
            format!("pool:flash:{},size=24M+flash:{},size=24M", at(one), at(two)),
            format!("pool:flash:{}+flash:{}", at(one), at(two)),
            at(one),
        ),
    ] {
        run(&program, &[&new, "changes", &path]);
        run(&program, &[&spec, "stops", &path]);
        run(&program, &[&spec, "wrong", &path]);
    }
    let other = format!("tier:{},{},fast-size=12M,size=32M", at(other_fast), at(other_big));
    run(&program, &[&other, "sooner", ""]);
    run(&program, &[&memory.spec(), "none", ""]);
}

#[test]
fn limits_in_c() {
    let program = compile("quotas");
    let places = ["flash", "memory", "fast", "big"].map(|name| Place::new(&format!("quotas-{name}")));
    let [flash, memory, fast, big] = &places;
    let at = |place: &Place| place.0.display().to_string();
    for spec in
        [format!("flash:{},size=24M", at(flash)), format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big))]
    {
        for step in ["set", "keeps", "stops", "wrong"] {
            run(&program, &[&spec, step]);
        }
    }
    run(&program, &[&memory.spec(), "none"]);
}

#[test]
fn streams_in_c() {
    let program = compile("streams");
    let names = ["flash", "fast", "big", "memory"];
    let places = names.map(|name| Place::new(&format!("streams-{name}")));
    let [flash, fast, big, memory] = &places;
    let at = |place: &Place| place.0.display().to_string();
    let to = |name: &str| Place::new(&format!("streams-to-{name}"));
    let from = format!("flash:{},size=24M", at(flash));
    run(&program, &[&from, "make", ""]);
    for step in ["pipe", "damage", "stops", "descriptors", "locked"] {
        let copy = to(step);
        run(&program, &[&from, step, &format!("flash:{},size=24M", at(&copy))]);
    }
    // From one kind of device to another, and back.
    let on_two = format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big));
    run(&program, &[&from, "damage", &on_two]);
    run(&program, &[&from, "back", ""]);
    let copy = to("memory");
    run(&program, &[&memory.spec(), "memory", &format!("flash:{},size=24M", at(&copy))]);
}

#[test]
fn hints_in_c() {
    let program = compile("hints");
    let places = ["flash", "fast", "big", "packed", "parity"].map(|name| Place::new(&format!("hints-{name}")));
    let [flash, fast, big, packed, parity] = &places;
    let at = |place: &Place| place.0.display().to_string();
    for step in ["set", "keeps", "wrong"] {
        run(&program, &[&format!("flash:{},size=24M", at(flash)), step]);
    }
    run(&program, &[&format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big)), "two"]);
    run(&program, &[&format!("flash:{},size=64M,parity=0-2", at(parity)), "parity"]);
    for step in ["packed", "packed-locked"] {
        let _ = std::fs::remove_file(&packed.0);
        run(&program, &[&format!("flash:{},size=24M", at(packed)), step]);
    }
}

#[test]
fn scrubs_in_c() {
    let program = compile("scrub");
    let places = ["flash", "memory", "fast", "big"].map(|name| Place::new(&format!("scrub-{name}")));
    let [flash, memory, fast, big] = &places;
    let at = |place: &Place| place.0.display().to_string();
    let on_two = format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big));
    run(&program, &[&on_two, "whole"]);
    let on_flash = format!("flash:{},size=24M", at(flash));
    run(&program, &[&on_flash, "whole"]);
    // Whatever else they hit, 64 KiB of zeros hit the file.
    let mut image = std::fs::read(&flash.0).expect("the volume is there");
    let marked = image.windows(16).position(|bytes| bytes == b"a mark to damage").expect("the content lies open");
    image[marked..marked + 64].fill(0);
    std::fs::write(&flash.0, &image).expect("written");
    run(&program, &[&on_flash, "damaged"]);
    run(&program, &[&memory.spec(), "none"]);
}

#[test]
fn several_that_do_the_same_at_once_in_c() {
    let places = ["memory", "flash", "fast", "big"].map(|name| Place::new(&format!("together-{name}")));
    let [memory, flash, fast, big] = &places;
    let at = |place: &Place| place.0.display().to_string();
    let on_two = format!("tier:{},{},fast-size=12M,size=64M", at(fast), at(big));
    for spec in [memory.spec(), format!("flash:{},size=64M", at(flash)), on_two] {
        for step in ["append", "create", "replace"] {
            run(&TOGETHER, &[&spec, step]);
        }
    }
}

#[test]
fn several_that_start_together_get_what_one_of_them_makes_in_c() {
    for _ in 0..5 {
        let places = ["memory", "flash", "fast", "big"].map(|name| Place::new(&format!("begin-{name}")));
        let [memory, flash, fast, big] = &places;
        let at = |place: &Place| place.0.display().to_string();
        let on_two = format!("tier:{},{},fast-size=12M,size=32M", at(fast), at(big));
        for spec in [memory.spec(), format!("flash:{},size=24M", at(flash)), on_two] {
            run(&TOGETHER, &[&spec, "begin"]);
        }
    }
}

#[test]
fn what_is_refused_stays_as_it_was_in_c() {
    let (memory, flash) = (Place::new("refused-memory"), Place::new("refused-flash"));
    let on_flash = format!("flash:{},size=24M", flash.0.display());
    for step in ["truncate", "directories"] {
        run(&REFUSED, &[&memory.spec(), step]);
        run(&REFUSED, &[&on_flash, step]);
    }
    for step in ["close", "commit"] {
        run(&REFUSED, &[&memory.spec(), step]);
    }
}

#[test]
fn an_open_file_becomes_memory_whatever_its_name_is_by_now_in_c() {
    let memory = Place::new("renamed");
    run(&REFUSED, &[&memory.spec(), "rename"]);
    let heap = onode_heap::Heap::open(&memory.spec()).expect("it opens");
    let made =
        heap.files().make_symbolic_link(&onode_heap::caller(), onode_heap::InodeNumber::ROOT, b"link", b"target");
    made.expect("there is none");
    heap.close().expect("closed");
    run(&REFUSED, &[&memory.spec(), "link"]);
}

#[test]
fn a_handle_belongs_to_the_process_that_opened_it_in_c() {
    let program = compile("fork");
    let places = ["memory", "flash", "fast", "big"].map(|name| Place::new(&format!("fork-{name}")));
    let [memory, flash, fast, big] = &places;
    let at = |place: &Place| place.0.display().to_string();
    run(&program, &[&memory.spec(), "heap"]);
    let on_two = format!("tier:{},{},fast-size=12M,size=64M", at(fast), at(big));
    for spec in [format!("flash:{},size=64M", at(flash)), on_two] {
        run(&program, &[&spec, "volume"]);
    }
}

//! How many requests of the kernel a call of a program makes. Each of them wakes the server and the
//! program once, which takes longer than what is done meanwhile, so none may be added without being
//! seen.

use crate::common::{Expect, Place, has_fuse};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Calls of each kind; forgetting may come at any time, and so may the first look at something.
const CALLS: u64 = 20;

fn requests(directory: &Path) -> BTreeMap<String, u64> {
    let stat = onode!("stat", "--json", directory).succeeds();
    let figures: serde_json::Value = serde_json::from_str(&stat).expect("JSON");
    serde_json::from_value(figures["requests"].clone()).expect("counts")
}

/// The requests of one call, by kind, without the memory of the kernel, which it may clear when it
/// likes.
fn of_one(directory: &Path, call: impl Fn(u64)) -> BTreeMap<String, u64> {
    let before = requests(directory);
    (0..CALLS).for_each(call);
    let after = requests(directory).into_iter();
    let made = after.map(|(kind, count)| {
        let since = count - before.get(&kind).copied().unwrap_or(0);
        (kind, (since + CALLS / 2) / CALLS)
    });
    made.filter(|(kind, count)| *count > 0 && kind != "forget").collect()
}

fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
    of.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
}

#[test]
fn a_call_makes_no_more_requests_than_the_kernel_needs() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("requests");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    let file = |n: u64| directory.join(format!("f{n}"));
    // The kernel learns at the first open that it needs to open nothing.
    fs::write(directory.join("one"), b"one").expect("write");
    fs::read(directory.join("one")).expect("read");
    // After each change of a directory the kernel asks for its attributes before it lets anybody
    // pass, and for each name that it does not know whether it is there.
    let create = of_one(&directory, |n| drop(File::create(file(n)).expect("create")));
    assert_eq!(create, counts(&[("create", 1), ("getattr", 1), ("lookup", 1)]));
    let open = of_one(&directory, |n| drop(File::open(file(n)).expect("open")));
    assert_eq!(open, counts(&[]));
    assert_eq!(of_one(&directory, |n| assert!(fs::metadata(file(n)).is_ok())), counts(&[]));
    assert_eq!(of_one(&directory, |_| assert!(!directory.join("no").exists())), counts(&[]));
    let one = OpenOptions::new().append(true).open(file(0)).expect("open");
    let write = of_one(&directory, |_| (&one).write_all(b"more").expect("write"));
    assert_eq!(write, counts(&[("write", 1)]));
    let rename = of_one(&directory, |n| fs::rename(file(n), file(n + CALLS)).expect("rename"));
    assert_eq!(rename, counts(&[("getattr", 1), ("lookup", 1), ("rename", 1)]));
    let unlink = of_one(&directory, |n| fs::remove_file(file(n + CALLS)).expect("unlink"));
    assert_eq!(unlink, counts(&[("getattr", 1), ("unlink", 1)]));
    drop(one);
    onode!("umount", &directory).succeeds();
}

#[test]
fn a_close_asks_for_nothing_where_it_has_nothing_to_tell() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("closes");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    let file = |n: u64| directory.join(format!("f{n}"));
    for options in ["rw", "flush,noflush", "flush,sync", "flush,ro"] {
        onode!("mount", "-o", options, &image, &directory).succeeds();
        if options == "rw" {
            let create = of_one(&directory, |n| drop(File::create(file(n)).expect("create")));
            assert_eq!(create.get("flush"), None, "{create:?}");
        }
        drop(File::open(file(0)).expect("open"));
        let open = of_one(&directory, |n| drop(File::open(file(n)).expect("open")));
        assert!(open.keys().all(|kind| kind == "lookup"), "-o {options}: {open:?}");
        let open = of_one(&directory, |n| drop(File::open(file(n)).expect("open")));
        assert_eq!(open, counts(&[]), "-o {options}");
        onode!("umount", &directory).succeeds();
    }
    onode!("mount", "-o", "flush", &image, &directory).succeeds();
    let open = of_one(&directory, |n| drop(File::open(file(n)).expect("open")));
    assert_eq!(open.get("flush"), Some(&1), "{open:?}");
    onode!("umount", &directory).succeeds();
}

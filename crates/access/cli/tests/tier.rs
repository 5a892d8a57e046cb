//! Volumes on two disks: every command works on the pair, placement is told and changed with and
//! without a mount, and a fast disk that is missing, somebody else's, given up or made anew costs
//! no byte.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, unmount};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Two disks of a test.
struct Pair {
    place: Place,
    fast: PathBuf,
    big: PathBuf,
}

impl Pair {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let (fast, big) = (place.path("ssd.img"), place.path("hdd.img"));
        Self { place, fast, big }
    }

    fn made(name: &str) -> Self {
        let pair = Self::new(name);
        onode!("mkfs", pair.spec("size=64M,fast-size=16M")).succeeds();
        pair
    }

    /// The device spec, with settings or without.
    fn spec(&self, settings: &str) -> String {
        let comma = if settings.is_empty() { "" } else { "," };
        format!("tier:{},{}{comma}{settings}", self.fast.display(), self.big.display())
    }
}

fn content(bytes: u32, seed: u32) -> Vec<u8> {
    (0..bytes).map(|at| ((at + seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The figure of a row of `onode stat --why`.
fn bytes_of(report: &str, row: &str) -> u64 {
    let line = report.lines().find(|line| line.split_whitespace().next() == Some(row));
    let figure = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|figure| figure.parse().ok());
    figure.unwrap_or_else(|| panic!("no row {row}: {report}"))
}

fn holds(place: &Place, volume: &str, path: &str, wanted: &[u8]) {
    let out = place.path("out");
    onode!("get", volume, path, &out).succeeds();
    assert!(fs::read(&out).expect("out") == wanted, "{path} of {volume} differs");
    fs::remove_file(out).expect("out");
}

#[test]
fn every_command_works_on_the_pair() {
    let pair = Pair::new("tier");
    let (place, volume) = (&pair.place, pair.spec(""));
    let made = onode!("mkfs", pair.spec("size=64M,fast-size=16M,sections=hot:64K:1+cold:256K:2")).succeeds();
    assert!(made.contains("tier"), "{made}");
    assert_eq!(fs::metadata(&pair.fast).expect("fast").len(), 16 << 20);
    assert_eq!(fs::metadata(&pair.big).expect("big").len(), 64 << 20);
    is_clear(&onode!("mkfs", &volume).fails(21), "img");

    let big = content(3_000_000, 1);
    onode!("mkdir", &volume, "/d").succeeds();
    onode!("put", &volume, place.file("big", &big), "/d/big").succeeds();
    onode!("put", &volume, place.file("small", b"small"), "/d/small").succeeds();
    let listed = onode!("ls", &volume, "/d").succeeds();
    assert!(listed.contains("big") && listed.contains("small"), "{listed}");
    holds(place, &volume, "/d/big", &big);
    onode!("rm", &volume, "/d/small").succeeds();
    assert!(!onode!("ls", &volume, "/d").succeeds().contains("small"));
    for command in ["check", "repair"] {
        onode!(command, &volume).succeeds();
    }
    let counters = onode!("stat", &volume).succeeds();
    assert!(counters.contains("section hot\n") && counters.contains("section cold\n"), "{counters}");
    let info = onode!("info", &volume).succeeds();
    // Between them stands how requests reach the disk.
    assert!(info.contains("fast disk of 16 MiB (") && info.contains(") with 2 sections"), "{info}");
}

#[test]
fn placement_of_a_volume_that_is_not_mounted() {
    let pair = Pair::made("tier-place");
    let (place, volume) = (&pair.place, pair.spec(""));
    let big = content(1_000_000, 2);
    onode!("mkdir", &volume, "/d").succeeds();
    onode!("put", &volume, place.file("big", &big), "/d/old").succeeds();
    let placed = onode!("place", &volume, "/d", "--section", "large", "--acknowledge", "either").succeeds();
    assert!(placed.contains("/d: large,either") && placed.contains("2 files and directories changed"), "{placed}");
    // What is made there from now on has it from the directory; other places have it not.
    onode!("put", &volume, place.path("big"), "/d/new").succeeds();
    onode!("put", &volume, place.path("big"), "/other").succeeds();
    for name in ["/d/old", "/d/new"] {
        let shown = onode!("place", &volume, name).succeeds();
        assert!(shown.contains("large,either"), "{shown}");
    }
    let shown = onode!("place", &volume, "/other").succeeds();
    assert!(!shown.contains("large") && !shown.contains("either"), "{shown}");

    onode!("promote", &volume, "/d").succeeds();
    let why = onode!("stat", "--why", &volume, "/d/old").succeeds();
    assert!(why.contains("large"), "{why}");
    assert!(bytes_of(&why, "fast") >= 1_000_000 && bytes_of(&why, "big") >= 1_000_000, "{why}");
    onode!("demote", &volume, "/d").succeeds();
    let why = onode!("stat", "--why", &volume, "/d/old").succeeds();
    assert!(bytes_of(&why, "fast") == 0 && bytes_of(&why, "big") >= 1_000_000, "{why}");
    holds(place, &volume, "/d/old", &big);

    // Past the fast disk: nothing of it goes there.
    let placed = onode!("place", &volume, "/d/old", "--bypass").succeeds();
    assert!(placed.contains("/d/old: bypass"), "{placed}");
    onode!("promote", &volume, "/d/old").fails(2);
    let why = onode!("stat", "--why", &volume, "/d/old").succeeds();
    assert!(bytes_of(&why, "fast") == 0 && why.contains("bypass"), "{why}");

    is_clear(&onode!("place", &volume, "/d", "--section", "huge").fails(2), "huge");
    is_clear(&onode!("place", &volume, "/nowhere").fails(20), "nowhere");
    onode!("check", &volume).succeeds();
}

#[test]
fn the_fast_disk_is_divided_anew() {
    let pair = Pair::made("tier-divide");
    let (place, volume) = (&pair.place, pair.spec(""));
    let big = content(1_000_000, 4);
    onode!("mkdir", &volume, "/d").succeeds();
    onode!("place", &volume, "/d", "--section", "large").succeeds();
    onode!("put", &volume, place.file("big", &big), "/d/file").succeeds();
    onode!("promote", &volume, "/d").succeeds();
    let shown = onode!("divide", &volume).succeeds();
    assert!(shown.contains("small") && shown.contains("large") && !shown.contains("divided"), "{shown}");
    let divided = onode!("divide", &volume, "mail:16K+large:512K:3").succeeds();
    assert!(divided.contains("mail") && divided.contains("524288") && !divided.contains("small"), "{divided}");
    assert!(onode!("--json", "divide", &volume).succeeds().contains("\"extent_bytes\": 16384"));
    // The name keeps what was placed in it.
    let placed = onode!("place", &volume, "/d").succeeds();
    assert!(placed.contains("/d: large"), "{placed}");
    onode!("promote", &volume, "/d").succeeds();
    let why = onode!("stat", "--why", &volume, "/d/file").succeeds();
    assert!(bytes_of(&why, "fast") >= 1_000_000 && why.contains("large"), "{why}");
    holds(place, &volume, "/d/file", &big);
    for (wrong, word) in [("mail:17K", "power of two"), ("a:64K+a:64K", "twice"), ("mail", "extent size")] {
        is_clear(&onode!("divide", &volume, wrong).fails(2), word);
    }
    is_clear(&onode!("divide", &pair.place.path("nowhere")).fails(20), "nowhere");
    onode!("check", &volume).succeeds();
}

#[test]
fn a_fast_disk_that_is_missing_given_up_or_made_anew_costs_no_byte() {
    let pair = Pair::made("tier-lost");
    let (place, volume) = (&pair.place, pair.spec(""));
    let files: Vec<Vec<u8>> = (0..8).map(|seed| content(1 << (2 * seed + 4), seed)).collect();
    let put = |volume: &str, index: usize| {
        onode!("put", volume, place.file("in", &files[index]), format!("/f{index}")).succeeds();
    };
    let all_are_there = |volume: &str, count: usize| {
        for (index, wanted) in files.iter().enumerate().take(count) {
            holds(place, volume, &format!("/f{index}"), wanted);
        }
    };
    (0..6).for_each(|index| put(&volume, index));
    onode!("promote", &volume, "/").succeeds();
    fs::remove_file(&pair.fast).expect("fast");

    // Never without a word: it may only not be plugged in.
    for command in ["ls", "check"] {
        let code = if command == "check" { 8 } else { 20 };
        let error = onode!(command, &volume).arg_if(command == "ls", "/").fails(code);
        is_clear(&error, "ssd.img");
        assert!(error.contains("fast=none") && error.contains("fast=new"), "{error}");
    }
    assert!(!pair.fast.exists());

    let alone = pair.spec("fast=none");
    all_are_there(&alone, 6);
    put(&alone, 6);
    onode!("check", &alone).succeeds();
    assert!(!pair.fast.exists());

    put(&pair.spec("fast=new,fast-size=16M"), 7);
    assert_eq!(fs::metadata(&pair.fast).expect("fast").len(), 16 << 20);
    all_are_there(&volume, 8);
    onode!("promote", &volume, "/f7").succeeds();
    let why = onode!("stat", "--why", &volume, "/f7").succeeds();
    assert!(bytes_of(&why, "fast") > 0, "{why}");
    all_are_there(&volume, 8);
    all_are_there(&alone, 8);
    onode!("check", &volume).succeeds();
}

#[test]
fn the_fast_disk_of_another_volume_is_refused_and_left_alone() {
    let (mine, other) = (Pair::made("tier-mine"), Pair::made("tier-other"));
    onode!("put", other.spec(""), other.place.file("in", b"theirs"), "/theirs").succeeds();
    let before = fs::read(&other.fast).expect("fast");
    let mixed = format!("tier:{},{}", other.fast.display(), mine.big.display());
    let error = onode!("ls", &mixed, "/").fails(2);
    is_clear(&error, "fast disk");
    assert!(error.contains("fast=none") && error.contains("fast=new"), "{error}");
    assert!(fs::read(&other.fast).expect("fast") == before);
    holds(&other.place, &other.spec(""), "/theirs", b"theirs");
    // The two in the wrong order are no volume either.
    let turned = format!("tier:{},{}", mine.big.display(), mine.fast.display());
    let output = onode!("ls", &turned, "/").output().expect("it starts");
    assert!(!output.status.success());
    onode!("check", mine.spec("")).succeeds();
}

#[test]
fn volumes_on_one_device_have_no_places() {
    let place = Place::new("tier-one");
    let image = place.image("disk.img");
    onode!("put", &image, place.file("in", b"here"), "/file").succeeds();
    for command in ["place", "promote", "demote"] {
        is_clear(&onode!(command, &image, "/file").fails(2), "one device");
    }
    is_clear(&onode!("place", &image, "/file", "--bypass").fails(2), "one device");
    let why = onode!("stat", "--why", &image, "/file").succeeds();
    assert!(!why.contains("section") && !why.contains("fast ") && why.contains("journal: less than a page"), "{why}");
}

#[test]
fn the_pair_is_mounted_with_and_without_its_fast_disk() {
    if !has_fuse() {
        return;
    }
    let pair = Pair::made("tier-mount");
    let directory = pair.place.directory("mnt");
    let volume = pair.spec("");
    let (hot, big) = (directory.join("hot"), content(2_000_000, 3));
    onode!("mount", &volume, &directory).succeeds();
    fs::create_dir(&hot).expect("directory");
    let divided = onode!("divide", &directory, "small:64K+large:256K").succeeds();
    assert!(divided.contains("262144"), "{divided}");
    is_clear(&onode!("divide", &hot, "small:64K").fails(2), "mounted");
    onode!("place", &hot, "--section", "large", "--acknowledge", "either").succeeds();
    fs::write(hot.join("file"), &big).expect("write");
    fs::write(directory.join("plain"), b"plain").expect("write");
    assert_eq!(attribute(&hot.join("file"), "onode.placement"), "large,either");
    let shown = onode!("place", hot.join("file")).succeeds();
    assert!(shown.contains("large,either"), "{shown}");
    rustix::fs::lsetxattr(hot.join("file"), "onode.placement", b"pin", rustix::fs::XattrFlags::empty()).expect("set");
    assert_eq!(attribute(&hot.join("file"), "onode.placement"), "large,either,pin");
    assert_eq!(attribute(&hot, "onode.placement"), "large,either");

    onode!("promote", "--wait", &hot).succeeds();
    let why = onode!("stat", "--why", hot.join("file")).succeeds();
    assert!(bytes_of(&why, "fast") >= 2_000_000, "{why}");
    onode!("place", &hot, "--unpin").succeeds();
    onode!("demote", &hot).succeeds();
    let why = onode!("stat", "--why", hot.join("file")).succeeds();
    assert_eq!(bytes_of(&why, "fast"), 0, "{why}");
    is_clear(&onode!("place", &hot, "--section", "huge").fails(2), "huge");
    onode!("promote", "--wait", &hot).succeeds();
    assert!(fs::read(hot.join("file")).expect("read") == big);
    unmount(&directory);

    fs::remove_file(&pair.fast).expect("fast");
    is_clear(&onode!("mount", &volume, &directory).fails(20), "ssd.img");
    for settings in ["", "fast=new,fast-size=16M", ""] {
        let mut mount = onode!("mount", pair.spec(settings), &directory);
        // The first time without what is gone, then with a new one, then with the same again.
        if !pair.fast.exists() && settings.is_empty() {
            mount.arg("--without-fast");
        }
        mount.succeeds();
        assert!(fs::read(hot.join("file")).expect("read") == big, "after `{settings}`");
        assert_eq!(fs::read(directory.join("plain")).expect("read"), b"plain");
        unmount(&directory);
    }
    onode!("check", &volume).succeeds();
}

fn attribute(path: &Path, name: &str) -> String {
    let mut value = vec![0; 1000];
    let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice()).expect("attribute");
    value.truncate(length);
    String::from_utf8(value).expect("UTF-8")
}

trait ArgumentIf {
    fn arg_if(&mut self, holds: bool, argument: &str) -> &mut Self;
}

impl ArgumentIf for Command {
    fn arg_if(&mut self, holds: bool, argument: &str) -> &mut Self {
        if holds { self.arg(argument) } else { self }
    }
}

/// Two damaged leaves of the tree: a check ended at the first, and no repair was possible.
#[test]
fn files_of_a_damaged_node_are_named_and_the_rest_stays() {
    let pair = Pair::made("tier-node");
    let (place, volume) = (&pair.place, pair.spec(""));
    let source = place.path("source");
    fs::create_dir(&source).expect("source");
    for number in 0..300_u32 {
        fs::write(source.join(format!("file{number}")), content(number * 13 % 3000, number)).expect("a file");
    }
    onode!("put", "-r", &volume, &source, "/all").succeeds();
    let mut image = fs::read(&pair.big).expect("the big disk");
    let is_leaf = |block: &[u8]| block.starts_with(b"TNOD") && block[4..6] == [0, 0];
    let leaves: Vec<usize> = (0..image.len()).step_by(4096).filter(|at| is_leaf(&image[*at..])).collect();
    assert!(leaves.len() > 9, "{} leaves", leaves.len());
    for leaf in [leaves[leaves.len() / 3], leaves[leaves.len() / 2]] {
        image[leaf + 300] ^= 1;
    }
    fs::write(&pair.big, image).expect("the big disk");
    let reports = |command: &mut Command, code: i32| {
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let said = reports(&mut onode!("check", &volume), 4);
    assert!(said.contains("damaged") && said.contains("--drop-damaged"), "{said}");
    let said = reports(&mut onode!("repair", "--drop-damaged", &volume), 1);
    assert!(said.contains("lost: a tree node with entries of object"), "{said}");
    onode!("check", &volume).succeeds();
    let named: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("restore from a backup: ")).collect();
    assert!(!named.is_empty() && named.iter().all(|path| path.starts_with("/all/file")), "{said}");
    let mut sound = 0;
    for number in 0..300_u32 {
        let path = format!("/all/file{number}");
        if !named.contains(&path.as_str()) {
            holds(place, &volume, &path, &content(number * 13 % 3000, number));
            sound += 1;
        }
    }
    assert!(sound > 250, "{sound} of 300, {said}");
}

#[test]
fn a_volume_goes_on_on_another_disk() {
    let place = Place::new("tier-further");
    let path = |name: &str| place.path(name).display().to_string();
    let [fast, big, second, third] = ["fast.img", "big.img", "second.img", "third.img"].map(path);
    let one = format!("tier:{fast},{big}");
    onode!("mkfs", format!("{one},fast-size=8M"), "--size", "24M").succeeds();
    let first = content(4_000_000, 1);
    onode!("put", &one, place.file("first", &first), "/first").succeeds();
    // How long a new file shall be has to be said, and what holds something stays as it is.
    assert!(onode!("resize", &one, "--add", &second).fails(2).contains("how large"));
    let used = place.file("used", b"something");
    assert!(onode!("resize", &one, "+16M", "--add", &used).fails(21).contains("it holds something"));
    assert_eq!(std::fs::read(&used).unwrap(), b"something");
    let image = place.image("plain.img");
    assert!(onode!("resize", &image, "+16M", "--add", &second).fails(2).contains("only volumes on two disks"));
    let told = onode!("resize", &one, "+16M", "--add", &second).succeeds();
    let two = format!("{one},{second}");
    assert!(told.contains("40.0 MiB, 24.0 MiB before") && told.contains(&format!("from now on it is {two}")), "{told}");
    assert!(onode!("ls", &one).fails(11).contains("name all disks"));
    let later = content(20_000_000, 2);
    onode!("put", &two, place.file("later", &later), "/later").succeeds();
    // Once more, with the disks named in any order.
    onode!("resize", &two, "+16M", "--add", &third).succeeds();
    let [all, turned] = [format!("{two},{third}"), format!("{one},{third},{second}")];
    onode!("put", &turned, place.file("last", &content(9_000_000, 3)), "/last").succeeds();
    for spec in [&all, &turned] {
        holds(&place, spec, "/first", &first);
        holds(&place, spec, "/later", &later);
        onode!("check", spec).succeeds();
    }
    assert!(onode!("ls", format!("{one},{third}")).fails(20).contains("number 2 is missing"));
    assert!(onode!("ls", format!("{all},{used}", used = used.display())).fails(2).contains("no disk on which"));
    assert!(onode!("ls", format!("tier:{fast},{second},{big}")).output().expect("it runs").status.code() != Some(0));
    // What is a part of one volume is no disk for another one, and none to be made anew by mistake.
    let other = format!("tier:{},{}", path("fast2.img"), path("big2.img"));
    onode!("mkfs", format!("{other},fast-size=8M"), "--size", "24M").succeeds();
    assert!(onode!("resize", &other, "+16M", "--add", &third).fails(2).contains("a part of an Onode volume"));
    assert!(onode!("ls", format!("{other},{second}")).fails(2).contains("not of the volume"));
    // Smaller again, it needs the last one no more.
    onode!("rm", &all, "/last").succeeds();
    onode!("resize", &all, "38M").succeeds();
    holds(&place, &two, "/later", &later);
    onode!("check", &two).succeeds();
    // A volume may lie on several from the start.
    let made = format!("tier:{},{},{}", path("f3.img"), path("b3.img"), path("b4.img"));
    onode!("mkfs", format!("{made},fast-size=8M"), "--size", "24M").succeeds();
    onode!("put", &made, place.file("later", &later), "/later").succeeds();
    holds(&place, &made, "/later", &later);
    onode!("check", &made).succeeds();
}

#[test]
fn a_mounted_volume_goes_on_on_another_disk() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("tier-further-mounted");
    let directory = place.directory("mnt");
    let path = |name: &str| place.path(name).display().to_string();
    let one = format!("tier:{},{}", path("fast.img"), path("big.img"));
    onode!("mkfs", format!("{one},fast-size=8M"), "--size", "24M").succeeds();
    onode!("mount", &one, &directory).succeeds();
    let bytes = content(30_000_000, 5);
    let told = onode!("--json", "resize", &directory, "+32M", "--add", path("second.img")).succeeds();
    let two = format!("{one},{}", path("second.img"));
    assert!(told.contains(&format!("\"spec\": \"{two}\"")), "{told}");
    std::fs::write(directory.join("file"), &bytes).expect("there is room now");
    assert!(
        onode!("resize", &directory, "+1M", "--add", path("second.img")).output().expect("it runs").status.code()
            != Some(0)
    );
    onode!("umount", &directory).succeeds();
    holds(&place, &two, "/file", &bytes);
    onode!("check", &two).succeeds();
    onode!("mount", &two, &directory).succeeds();
    assert!(std::fs::read(directory.join("file")).unwrap() == bytes);
    onode!("umount", &directory).succeeds();
}

#[test]
fn a_disk_is_replaced() {
    let pair = Pair::made("tier-replaced");
    let place = &pair.place;
    let path = |name: &str| place.path(name).display().to_string();
    let [old, new, fast] = [pair.big.display().to_string(), path("new.img"), path("fast.img")];
    let bytes = content(20_000_000, 3);
    onode!("put", pair.spec(""), place.file("file", &bytes), "/file").succeeds();
    // What cannot be is refused, and nothing is left of it.
    let used = place.file("used", b"something");
    assert!(onode!("replace", pair.spec(""), &old, &used).fails(21).contains("it holds something"));
    assert!(
        onode!("replace", pair.spec(""), path("none.img"), &new)
            .fails(20)
            .contains(&format!("it lies on {}", pair.fast.display()))
    );
    assert!(onode!("replace", place.image("plain.img"), &old, &new).fails(2).contains("onode pool"));
    assert!(!place.path("new.img").exists());
    let small = place.file("small.img", &[0; 8192]);
    fs::File::options().write(true).open(&small).unwrap().set_len(4 << 20).unwrap();
    let other = format!("tier:{},{}", path("f2.img"), path("b2.img"));
    onode!("mkfs", format!("{other},fast-size=8M"), "--size", "24M").succeeds();
    assert!(onode!("replace", &other, path("b2.img"), &old).fails(21).contains("holds"));
    // The big disk, then the fast one; what was is no part of the volume any more.
    let told = onode!("replace", pair.spec(""), &old, &new).succeeds();
    let spec = format!("tier:{},{new}", pair.fast.display());
    assert!(told.contains(&format!("from now on it is {spec}")), "{told}");
    holds(place, &spec, "/file", &bytes);
    onode!("check", &spec).succeeds();
    let unknown = onode!("ls", pair.spec("")).output().expect("it runs");
    assert!(!unknown.status.success() && String::from_utf8_lossy(&unknown.stderr).contains("holds no tier volume"));
    let told = onode!("--json", "replace", &spec, &pair.fast, &fast).succeeds();
    let report: Value = serde_json::from_str(&told).expect("JSON");
    let spec = format!("tier:{fast},{new}");
    assert_eq!((report["unreadable"].as_u64(), report["spec"].as_str()), (Some(0), Some(&*spec)));
    holds(place, &spec, "/file", &bytes);
    onode!("check", &spec).succeeds();
    // The old one can be used again, for this volume, too.
    assert!(onode!("resize", &spec, "+64M", "--add", &old).fails(21).contains("it holds"));
    fs::remove_file(&old).unwrap();
    onode!("resize", &spec, "+64M", "--add", &old).succeeds();
    let longer = format!("{spec},{old}");
    onode!("put", &longer, place.file("more", &content(60_000_000, 4)), "/more").succeeds();
    let last = path("last.img");
    onode!("replace", &longer, &old, &last).succeeds();
    let longer = format!("{spec},{last}");
    holds(place, &longer, "/more", &content(60_000_000, 4));
    onode!("check", &longer).succeeds();
}

#[test]
fn a_disk_of_a_mounted_volume_is_replaced() {
    if !has_fuse() {
        return;
    }
    let pair = Pair::made("tier-replaced-mounted");
    let place = &pair.place;
    let mount = place.directory("mnt");
    let path = |name: &str| place.path(name).display().to_string();
    onode!("mount", pair.spec(""), &mount).succeeds();
    let bytes = content(20_000_000, 3);
    fs::write(mount.join("before"), &bytes).unwrap();
    let [new, fast, further, last] = ["new.img", "fast.img", "further.img", "last.img"].map(path);
    assert!(
        onode!("replace", &mount, &pair.big, path("no/new.img")).output().expect("it runs").status.code() != Some(0)
    );
    // Somebody writes all the time.
    let writer = {
        let mount = mount.clone();
        std::thread::spawn(move || {
            for number in 0..60_u32 {
                let file = fs::File::create(mount.join(format!("{number}"))).unwrap();
                std::io::Write::write_all(&mut &file, &content(100_000, number)).unwrap();
                file.sync_all().unwrap();
            }
        })
    };
    let told = onode!("replace", &mount, &pair.big, &new).succeeds();
    assert!(told.contains(&format!("from now on it is tier:{},{new}", pair.fast.display())), "{told}");
    writer.join().expect("it wrote");
    // One after another: the spec has what came before.
    onode!("resize", &mount, "+32M", "--add", &further).succeeds();
    let told = onode!("replace", &mount, &pair.fast, &fast).succeeds();
    assert!(told.contains(&format!("from now on it is tier:{fast},{new},{further}")), "{told}");
    let told = onode!("replace", &mount, &further, &last).succeeds();
    let spec = format!("tier:{fast},{new},{last}");
    assert!(told.contains(&format!("from now on it is {spec}")), "{told}");
    onode!("health", &mount).succeeds();
    unmount(&mount);
    onode!("check", &spec).succeeds();
    holds(place, &spec, "/before", &bytes);
    (0..60).for_each(|number| holds(place, &spec, &format!("/{number}"), &content(100_000, number)));
}

/// Whoever promotes a directory does not own it: what others remove meanwhile is no reason to stop.
#[test]
fn what_others_remove_is_counted_and_the_rest_is_promoted() {
    if !has_fuse() {
        return;
    }
    let pair = Pair::made("tier-removed");
    let mount = pair.place.directory("mnt");
    onode!("mount", pair.spec(""), &mount).succeeds();
    let directory = mount.join("d");
    let mut gone = 0;
    for round in 0..10 {
        fs::create_dir(&directory).expect("a directory");
        for number in 0..600_u32 {
            fs::write(directory.join(format!("{number}")), content(3000, number)).expect("a file");
        }
        let running = Running::start(&mut onode!("--json", "promote", "--wait", &directory));
        std::thread::sleep(Duration::from_millis(10 * (round % 4)));
        for number in 0..600_u32 {
            fs::remove_file(directory.join(format!("{number}"))).expect("removed");
        }
        let report: Value = serde_json::from_str(&running.ends_well()).expect("JSON");
        let (files, removed) = (report["files"].as_u64().expect("files"), report["gone"].as_u64().expect("gone"));
        assert!(files >= 1 && files + removed <= 601, "{report}");
        gone += removed;
        fs::remove_dir(&directory).expect("removed");
        if gone > 0 {
            break;
        }
    }
    let error = onode!("promote", "--wait", &directory).fails(20);
    assert!(error.contains("hint: "), "{error}");
    unmount(&mount);
}

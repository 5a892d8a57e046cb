//! `onode scrub`: damage of a volume, mounted or not, is found, repaired where it can be and named
//! where it cannot; a scrub can be interrupted and goes on where it was; and mounts scrub in the
//! background.

use crate::common::{Expect, Place, Running, has_fuse, is_clear, unmount, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DAMAGED: i32 = 11;
/// Bytes between two patterns.
const PIECE: usize = 64;

/// A content in which each piece can be found in an image.
pub fn content(name: &str, bytes: usize) -> Vec<u8> {
    let piece = |number: usize| {
        let text = format!("{name:>8}-{number:010}-");
        let filler = text.bytes().enumerate().map(|(at, byte)| byte ^ (at + number) as u8 | 128);
        let mut piece: Vec<u8> = text.bytes().chain(filler.cycle().take(PIECE - text.len())).collect();
        piece.truncate(PIECE);
        piece
    };
    (0..bytes.div_ceil(PIECE)).flat_map(piece).take(bytes).collect()
}

/// Overwrites some bytes of the content of a file where they stand in an image.
pub fn hurt(image: &Path, content: &[u8], at: usize) {
    let mut bytes = fs::read(image).expect("image");
    let start = at / PIECE * PIECE;
    let pattern = &content[start..start + PIECE];
    let places: Vec<usize> = (0..bytes.len() - PIECE).filter(|at| bytes[*at] == pattern[0]).collect();
    let places: Vec<usize> = places.into_iter().filter(|at| &bytes[*at..at + PIECE] == pattern).collect();
    assert!(!places.is_empty(), "the content is not in the image");
    for place in places {
        bytes[place + 30..place + 40].fill(0);
    }
    fs::write(image, bytes).expect("image");
}

/// A new flash image with a file, and the file's content.
fn made(place: &Place, parity: &str, bytes: usize) -> (PathBuf, Vec<u8>) {
    let (image, content) = (place.path("disk.img"), content("file", bytes));
    onode!("mkfs", "--size", "64M", "--parity", parity, &image).succeeds();
    onode!("put", &image, place.file("host", &content), "/file").succeeds();
    (image, content)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn scrub(target: &Path) -> Value {
    json(&onode!("--json", "scrub", target).succeeds())
}

fn status(target: &Path) -> Value {
    json(&onode!("--json", "scrub", "--status", target).succeeds())
}

#[test]
fn pages_are_found_again_from_parity_and_moved() {
    let place = Place::new("scrub-parity");
    let (image, content) = made(&place, "1", 3_000_000);
    assert_eq!(status(&image)["last"], Value::Null);
    let clean = scrub(&image);
    assert_eq!((&clean["complete"], &clean["pages_rebuilt"]), (&true.into(), &0.into()));
    assert!(clean["groups"].as_u64() > Some(100) && clean["bytes"] == 3_000_000, "{clean}");
    for at in [5_000, 1_000_000, 2_900_000] {
        hurt(&image, &content, at);
    }
    let before = fs::read(&image).expect("image");
    let verified = json(&onode!("--json", "scrub", "--read-only", &image).succeeds());
    assert_eq!((&verified["pages_rebuilt"], &verified["moved_bytes"]), (&3.into(), &0.into()));
    assert!(fs::read(&image).expect("image") == before, "--read-only changed the image");
    assert_eq!(status(&image)["last"]["pages_rebuilt"], 0, "--read-only kept something");
    let said = onode!("scrub", &image).succeeds();
    assert!(said.contains("repaired; ") && said.contains("3 damaged pages were found again from parity"), "{said}");
    let told = status(&image);
    assert_eq!((&told["running"], &told["current"], &told["percent"]), (&false.into(), &Value::Null, &Value::Null));
    assert_eq!(told["last"]["pages_rebuilt"], 3);
    assert!(told["last"]["moved_bytes"].as_u64() > Some(0), "{told}");
    let again = scrub(&image);
    assert_eq!((&again["pages_rebuilt"], &again["groups_unprotected"]), (&0.into(), &0.into()));
    assert!(onode!("scrub", &image).succeeds().contains("clean; "));
    assert!(onode!("scrub", "--status", &image).succeeds().contains("the last complete scrub ended"));
    onode!("check", &image).succeeds();
    onode!("get", &image, "/file", place.path("out")).succeeds();
    assert!(fs::read(place.path("out")).expect("out") == content);
}

/// The file is too large for one step, so that it is verified in parts.
#[test]
fn what_cannot_be_repaired_is_named() {
    let place = Place::new("scrub-damaged");
    let (image, content) = made(&place, "0", 9_000_000);
    let small = self::content("small", 20_000);
    onode!("mkdir", &image, "/d").succeeds();
    onode!("put", &image, place.file("small", &small), "/d/a name").succeeds();
    hurt(&image, &content, 6_000_000);
    hurt(&image, &small, 5_000);
    let error = onode!("scrub", &image).fails(DAMAGED);
    is_clear(&error, "2 ranges");
    let output = onode!("--json", "scrub", &image).output().expect("it starts");
    let report = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    let damaged = report["damaged"].as_array().expect("a list");
    assert_eq!(damaged.len(), 2, "{report}");
    for (path, at) in [("/file", 6_000_000), ("/d/a name", 5_000)] {
        let range = &damaged.iter().find(|one| one["path"] == path).expect("named")["range"];
        assert!(range[0].as_u64() <= Some(at) && range[1].as_u64() > Some(at), "{path}: {range}");
    }
    assert!(report["bytes"].as_u64() > Some(7_000_000) && report["complete"] == true, "{report}");
    let said = onode!("scrub", "--status", &image).succeeds();
    assert!(said.contains("DAMAGED: /file bytes ") && said.contains("DAMAGED: /d/a name bytes "), "{said}");
    let health = json(&{
        let output = onode!("--json", "health", &image).output().expect("it starts");
        assert_eq!(output.status.code(), Some(5));
        String::from_utf8(output.stdout).expect("UTF-8")
    });
    assert!(health.to_string().contains("scrub-damaged"), "{health}");
    for path in ["/file", "/d/a name"] {
        onode!("rm", &image, path).succeeds();
    }
    assert_eq!(scrub(&image)["damaged"], Value::Array(Vec::new()));
    onode!("health", &image).succeeds();
}

/// In one step, in parts, and compressed: all that a check names, a scrub names.
#[test]
fn a_scrub_names_every_damaged_range_of_a_file() {
    let place = Place::new("scrub-ranges");
    let (image, content) = made(&place, "0", 9_000_000);
    let small = self::content("small", 400_000);
    onode!("put", &image, place.file("small", &small), "/small").succeeds();
    for (content, places) in [(&content, [1_000_000, 5_000_000, 5_100_000]), (&small, [20_000, 100_000, 390_000])] {
        places.into_iter().for_each(|at| hurt(&image, content, at));
    }
    let check = onode!("--json", "check", &image).output().expect("it starts");
    let check = json(std::str::from_utf8(&check.stdout).expect("UTF-8"));
    let of = |found: &Value| (found["object"].as_u64(), found["range"][0].as_u64(), found["range"][1].as_u64());
    let ranges = |report: &Value, list: &str| {
        let mut all: Vec<_> = report[list].as_array().expect("a list").iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let told = ranges(&check, "findings");
    assert_eq!(told.len(), 6, "{check}");
    let output = onode!("--json", "scrub", &image).output().expect("it starts");
    let report = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    assert_eq!(ranges(&report, "damaged"), told, "{report}");
    // What lies between them was verified.
    assert!(report["bytes"].as_u64() >= Some(9_400_000 - 6 * 4096), "{report}");
}

#[test]
fn damage_of_what_a_snapshot_keeps_is_told_by_snapshot_and_path() {
    let place = Place::new("scrub-version");
    let (image, _) = made(&place, "0", 3_000_000);
    let old = content("old", 300_000);
    onode!("mkdir", &image, "/d").succeeds();
    onode!("put", &image, place.file("old", &old), "/d/a name").succeeds();
    onode!("snapshot", "create", &image, "monday").succeeds();
    onode!("put", &image, place.file("new", b"new"), "/d/a name").succeeds();
    onode!("snapshot", "create", &image, "tuesday").succeeds();
    hurt(&image, &old, 100_000);
    let named = "/.snapshots/monday/d/a name";
    let check = onode!("check", &image).output().expect("it starts");
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.code() == Some(4) && said.contains(&format!("the file is {named}")), "{said}");
    onode!("scrub", &image).fails(DAMAGED);
    let said = onode!("scrub", "--status", &image).succeeds();
    assert!(said.contains(&format!("DAMAGED: {named} bytes ")), "{said}");
    if !has_fuse() {
        return;
    }
    let directory = place.directory("mnt");
    onode!("mount", &image, &directory).succeeds();
    let said = onode!("scrub", "--status", &directory).succeeds();
    assert!(said.contains(&format!("DAMAGED: {}{named} bytes ", directory.display())), "{said}");
    unmount(&directory);
}

#[test]
fn damage_of_what_a_clone_has_is_told_by_clone_and_path() {
    let place = Place::new("scrub-clone");
    let (image, _) = made(&place, "0", 3_000_000);
    onode!("mkdir", &image, "/d").succeeds();
    onode!("clone", "create", &image, "work").succeeds();
    let (own, clone) = (content("own", 300_000), format!("{}@work", image.display()));
    onode!("put", &clone, place.file("own", &own), "/d/a name").succeeds();
    hurt(&image, &own, 100_000);
    let named = "/.clones/work/d/a name";
    let said = |command: &mut Command, code: i32| {
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    for target in [image.as_os_str(), clone.as_ref()] {
        let said = said(&mut onode!("check", target), 4);
        assert!(said.contains(&format!("the file is {named}")), "{said}");
    }
    let told = said(&mut onode!("scrub", "--read-only", &image), DAMAGED);
    assert!(told.contains(&format!("DAMAGED: {named} bytes ")), "{told}");
    if has_fuse() {
        let directory = place.directory("mnt");
        onode!("mount", &image, &directory).succeeds();
        let told = said(&mut onode!("scrub", &directory), DAMAGED);
        assert!(told.contains(&format!("DAMAGED: {}{named} bytes ", directory.display())), "{told}");
        unmount(&directory);
    }
    let error = onode!("repair", "--drop-damaged", &clone).fails(16);
    assert!(error.contains(&format!("onode repair {}", image.display())), "{error}");
    let told = said(&mut onode!("repair", "--drop-damaged", &image), 1);
    assert!(told.contains(&format!("restore from a backup: {named}")), "{told}");
    onode!("check", &clone).succeeds();
}

#[test]
fn a_mounted_volume_is_scrubbed_by_its_server() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("scrub-mounted");
    let (image, content) = made(&place, "1", 3_000_000);
    hurt(&image, &content, 1_500_000);
    let directory = place.directory("mnt");
    onode!("mount", &image, &directory).succeeds();
    is_clear(&onode!("scrub", "--read-only", &directory).fails(2), "--read-only");
    let report = scrub(&directory);
    assert_eq!((&report["mounted"], &report["complete"]), (&true.into(), &true.into()));
    assert_eq!(report["pages_rebuilt"], 1, "{report}");
    // By the image, too, which is in use.
    assert_eq!(scrub(&image)["pages_rebuilt"], 0);
    unmount(&directory);
    assert_eq!(status(&image)["last"]["pages_rebuilt"], 0);
    onode!("mount", "-o", "ro", &image, &directory).succeeds();
    is_clear(&onode!("scrub", &directory).fails(14), "read-only");
    assert_eq!(status(&directory)["last"]["complete"], true);
    unmount(&directory);
    let plain = place.image("plain.img");
    onode!("put", &plain, place.path("host"), "/file").succeeds();
    hurt(&plain, &content, 1_000_000);
    onode!("mount", &plain, &directory).succeeds();
    let output = onode!("scrub", &directory).output().expect("it starts");
    assert_eq!(output.status.code(), Some(DAMAGED));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(said.contains(&format!("DAMAGED: {} bytes ", directory.join("file").display())), "{said}");
    onode!("health", &directory).fails(5);
    unmount(&directory);
    is_clear(&onode!("scrub", &directory).fails(17), "mnt");
}

#[test]
fn an_interrupted_scrub_goes_on_where_it_was() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("scrub-resume");
    let (image, _) = made(&place, "1", 9_000_000);
    let all = scrub(&image);
    let directory = place.directory("mnt");
    onode!("mount", &image, &directory).succeeds();
    let running = Running::start(&mut onode!("--json", "scrub", "--rate", "2M", &directory));
    wait_until("some of it is verified", || status(&directory)["current"]["groups"].as_u64() > Some(200));
    is_clear(&onode!("scrub", &directory).fails(13), "another");
    assert_eq!(status(&directory)["running"], true);
    running.signal("INT");
    let output = running.end();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let report = json(std::str::from_utf8(&output.stdout).expect("UTF-8"));
    assert_eq!((&report["complete"], &report["ended"]), (&false.into(), &Value::Null));
    let error = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(error.contains("interrupted") && error.contains("--resume"), "{error}");
    let before = status(&directory);
    let mut interrupted = report.clone();
    let of_the_command = ["target", "mounted", "read_only"];
    interrupted.as_object_mut().expect("an object").retain(|name, _| !of_the_command.contains(&name.as_str()));
    assert_eq!((&before["running"], &before["current"]), (&false.into(), &interrupted));
    unmount(&directory);
    // Its position outlives the mount.
    let kept = status(&image);
    assert_eq!(kept["current"], before["current"]);
    assert!(kept["percent"].as_u64() > Some(0) && kept["percent"].as_u64() < Some(100), "{kept}");
    assert!(onode!("scrub", "--status", &image).succeeds().contains("was interrupted"));
    let whole = json(&onode!("--json", "scrub", "--resume", &image).succeeds());
    assert_eq!(whole["started"], report["started"], "it began anew");
    for figure in ["groups", "objects", "bytes"] {
        assert_eq!(whole[figure], all[figure], "{figure}");
    }
    // And without being told so it begins anew.
    assert_eq!((&status(&image)["current"], &scrub(&image)["complete"]), (&Value::Null, &true.into()));
}

#[test]
fn a_rate_is_heeded_and_a_killed_command_keeps_what_was_done() {
    let place = Place::new("scrub-rate");
    let (image, _) = made(&place, "0", 4_000_000);
    for wrong in ["fast", "0", "1K"] {
        is_clear(&onode!("scrub", "--rate", wrong, &image).fails(2), format!("--rate {wrong}"));
    }
    onode!("scrub", "--rate", "max", &image).succeeds();
    let running = Running::start(&mut onode!("scrub", "--rate", "256K", &image));
    std::thread::sleep(std::time::Duration::from_secs(3));
    running.signal("TERM");
    let output = running.end();
    assert_eq!(output.status.code(), Some(1), "it was over in 3 seconds");
    let current = &status(&image)["current"];
    let done = current["bytes"].as_u64().expect("a number");
    assert!((100_000..2_000_000).contains(&done), "{current}");
}

#[test]
fn two_disks_repair_one_another() {
    let place = Place::new("scrub-tier");
    let (fast, big) = (place.path("ssd.img"), place.path("hdd.img"));
    let volume = format!("tier:{},{}", fast.display(), big.display());
    onode!("mkfs", format!("{volume},size=128M,fast-size=64M")).succeeds();
    let (large, small) = (content("large", 9_000_000), content("small", 100_000));
    for (name, content) in [("large", &large), ("small", &small)] {
        onode!("put", &volume, place.file(name, content), format!("/{name}")).succeeds();
    }
    onode!("promote", &volume, "/").succeeds();
    assert_eq!(scrub(Path::new(&volume))["repaired_bytes"], 0);
    hurt(&big, &large, 7_000_000);
    hurt(&big, &small, 50_000);
    let report = scrub(Path::new(&volume));
    assert_eq!((&report["repaired_bytes"], &report["damaged"]), (&8192.into(), &Value::Array(Vec::new())), "{report}");
    assert_eq!(scrub(Path::new(&volume))["repaired_bytes"], 0);
    onode!("check", &volume).succeeds();
    // Without a copy it is lost, and only that.
    onode!("demote", &volume, "/large").succeeds();
    hurt(&big, &large, 3_000_000);
    is_clear(&onode!("scrub", &volume).fails(DAMAGED), "one range");
    assert!(onode!("scrub", "--status", &volume).succeeds().contains("DAMAGED: /large bytes "));
}

#[test]
fn services_between_files_and_device_change_nothing() {
    let place = Place::new("scrub-services");
    let (image, key) = (place.path("disk.img"), place.file("key", &[7; 32]));
    onode!("mkfs", "--size", "64M", "--encrypt", "--key-file", &key, &image).succeeds();
    let file = place.file("host", &content("file", 9_000_000));
    onode!("--key-file", &key, "put", &image, file, "/file").succeeds();
    is_clear(&onode!("scrub", &image).fails(24), "encrypted");
    let report = json(&onode!("--json", "--key-file", &key, "scrub", &image).succeeds());
    assert!(report["complete"] == true && report["bytes"].as_u64() >= Some(9_000_000), "{report}");
    let said = onode!("--key-file", &key, "scrub", "--status", &image).succeeds();
    assert!(said.contains("the last complete scrub ended"), "{said}");
    is_clear(&onode!("scrub", "scm:sim,size=16M").fails(2), "checksums");
    is_clear(&onode!("scrub", place.path("none.img")).fails(20), "none.img");
}

#[test]
fn a_mount_scrubs_in_the_background() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("scrub-background");
    let (image, content) = made(&place, "0", 3_000_000);
    let directory = place.directory("mnt");
    for wrong in ["30", "soon", "0d", "4000d"] {
        is_clear(&onode!("mount", "-o", format!("scrub={wrong}"), &image, &directory).fails(2), wrong);
    }
    onode!("mount", &image, &directory).succeeds();
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(status(&directory)["current"], Value::Null, "nobody asked for it");
    unmount(&directory);
    hurt(&image, &content, 2_000_000);
    let log = place.path("log");
    onode!("mount", "-o", format!("scrub=3s,log={}", log.display()), &image, &directory).succeeds();
    wait_until("a pass has come to its end", || status(&directory)["last"] != Value::Null);
    let told = || String::from_utf8(onode!("health", &directory).output().expect("it starts").stdout).expect("UTF-8");
    wait_until("the file is named", || told().contains("scrub-damaged") && told().contains("/file bytes "));
    onode!("health", &directory).fails(5);
    wait_until("it is logged", || fs::read_to_string(&log).is_ok_and(|log| log.contains("scrub-damaged")));
    wait_until("its end is logged", || fs::read_to_string(&log).is_ok_and(|log| log.contains("a scrub has ended: ")));
    // And again, a period later.
    fs::remove_file(directory.join("file")).expect("remove");
    wait_until("another pass finds nothing", || status(&directory)["last"]["damaged"] == Value::Array(Vec::new()));
    unmount(&directory);
    onode!("mount", "-o", "scrub=30d,ro", &image, &directory).succeeds();
    unmount(&directory);
}

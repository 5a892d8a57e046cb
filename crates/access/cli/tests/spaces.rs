//! `onode spaces` in use: what is made is listed, moved, grown and removed, and every mistake is
//! told.

use crate::common::{self, Expect, Place, is_clear};
use std::fs;
use std::path::Path;

fn list(region: &Path) -> String {
    onode!("--json", "spaces", "list", region).succeeds()
}

#[test]
fn spaces_come_go_and_change() {
    let place = Place::new("spaces");
    let region = place.path("scm");
    onode!("spaces", "create", &region, "--size", "1M").succeeds();
    assert_eq!(fs::metadata(&region).expect("region").len(), 1 << 20);
    assert!(onode!("spaces", "list", &region).succeeds().contains("none; make one with"));
    let image = place.file("firmware", b"boot code");
    onode!("spaces", "create", &region, "boot", "--kind", "boot", "--image", &image).succeeds();
    onode!("spaces", "create", &region, "disk", "--kind", "fs", "--size", "256K").succeeds();
    let text = onode!("spaces", "list", &region).succeeds();
    assert!(text.contains("boot  boot") && text.contains("read-only") && text.contains("256K"), "{text}");
    assert!(text.contains("needs    "), "{text}");
    onode!("spaces", "resize", &region, "--size", "2M").succeeds();
    onode!("spaces", "resize", &region, "disk", "--size", "1M").succeeds();
    let json = list(&region);
    assert!(json.contains("\"bytes\": 2097152") && json.contains("\"bytes\": 1048576"), "{json}");
    onode!("spaces", "remove", &region, "disk").succeeds();
    let json = list(&region);
    assert!(!json.contains("disk") && json.contains("\"name\": \"boot\""), "{json}");
    assert!(fs::read(&region).expect("region").windows(9).any(|bytes| bytes == b"boot code"));
}

#[test]
fn a_volume_grows_with_its_space_and_keeps_its_files() {
    let place = Place::new("spaces-volume");
    let region = place.path("scm");
    let spec = format!("scm:{}", region.display());
    onode!("mkfs", format!("{spec},size=4M")).succeeds();
    let content = place.file("content", &[5; 2 << 20]);
    onode!("put", &spec, &content, "/kept").succeeds();
    let too_much = place.file("more", &[6; 5 << 20]);
    onode!("put", &spec, &too_much, "/more").fails(15);
    onode!("spaces", "resize", &region, "--size", "12M").succeeds();
    onode!("spaces", "resize", &region, "objects", "--size", "11M").succeeds();
    onode!("put", &spec, &too_much, "/more").succeeds();
    onode!("check", &spec).succeeds();
    for (name, was) in [("/kept", &content), ("/more", &too_much)] {
        let there = place.path("there");
        onode!("get", &spec, name, &there).succeeds();
        assert!(fs::read(&there).expect("content") == fs::read(was).expect("content"), "{name}");
        fs::remove_file(&there).expect("file");
    }
    let refused = onode!("spaces", "resize", &region, "objects", "--size", "8M").fails(19);
    is_clear(&refused, "objects");
    onode!("check", &spec).succeeds();
}

#[test]
fn mistakes_are_told_and_change_nothing() {
    let place = Place::new("spaces-mistakes");
    let region = place.path("scm");
    onode!("spaces", "create", &region, "--size", "1M").succeeds();
    onode!("spaces", "create", &region, "a", "--kind", "mm", "--size", "64K").succeeds();
    let before = fs::read(&region).expect("region");
    for (code, error) in [
        (21, onode!("spaces", "create", &region, "--size", "1M").fails(21)),
        (21, onode!("spaces", "create", &region, "a", "--kind", "mm", "--size", "4K").fails(21)),
        (15, onode!("spaces", "create", &region, "b", "--kind", "mm", "--size", "1M").fails(15)),
        (15, onode!("spaces", "resize", &region, "a", "--size", "4M").fails(15)),
        (20, onode!("spaces", "remove", &region, "b").fails(20)),
        (2, onode!("spaces", "create", &region, "b", "--kind", "fs").fails(2)),
        (2, onode!("spaces", "create", &region, "b", "--size", "4K").fails(2)),
        (19, onode!("spaces", "resize", &region, "--size", "4K").fails(19)),
    ] {
        is_clear(&error, &region);
        assert!(!error.is_empty(), "{code}");
    }
    let as_volume = format!("scm:{}", region.display());
    assert_eq!(onode!("--json", "spaces", "list", &as_volume).succeeds(), list(&region));
    assert!(onode!("spaces", "list", format!("{as_volume},size=1M")).fails(2).contains("`size=1M` is of a volume"));
    onode!("spaces", "list", "scm:sim").fails(2);
    onode!("spaces", "create", &region, "b", "--kind", "tape", "--size", "4K").fails(2);
    onode!("spaces", "create", &region, "a/b", "--kind", "mm", "--size", "4K").fails(19);
    assert!(fs::read(&region).expect("region") == before, "the region was changed");

    let foreign = place.file("foreign", &[7; 1 << 16]);
    is_clear(&onode!("spaces", "list", &foreign).fails(10), &foreign);
    is_clear(&onode!("spaces", "create", &foreign, "--size", "1M").fails(21), &foreign);
    assert_eq!(fs::read(&foreign).expect("file"), [7; 1 << 16]);
    onode!("spaces", "create", &foreign, "--force").succeeds();
    assert!(list(&foreign).contains("\"spaces\": []"));
    for name in ["empty", "odd"] {
        let odd = place.file(name, &[1; 100][..if name == "odd" { 100 } else { 0 }]);
        is_clear(&onode!("spaces", "list", &odd).fails(10), &odd);
    }
    is_clear(&onode!("spaces", "list", place.path("missing")).fails(20), place.path("missing"));
    is_clear(&onode!("spaces", "create", place.path("missing")).fails(2), place.path("missing"));
    is_clear(&onode!("spaces", "create", place.path("x"), "--size", "100").fails(19), place.path("x"));

    let cut = place.file("cut", &before[..512 << 10]);
    assert!(onode!("spaces", "list", &cut).fails(11).contains("it was cut short"));
    let mut damaged = before;
    damaged[40] ^= 1;
    let one_lost = place.file("damaged", &damaged);
    assert!(list(&one_lost).contains("one of two copies of the table is lost"));
    damaged[4096 + 40] ^= 1;
    is_clear(&onode!("spaces", "list", place.file("damaged", &damaged)).fails(11), &one_lost);
}

/// An empty space for objects is what `mkfs` makes a volume in, and everybody says so before.
#[test]
fn a_volume_is_made_in_a_space_and_the_others_stay() {
    let place = Place::new("spaces-mkfs");
    let region = place.path("scm");
    let spec = format!("scm:{}", region.display());
    let kept = place.file("kept", &[9; 5000]);
    onode!("spaces", "create", &region, "--size", "64M").succeeds();
    onode!("spaces", "create", &region, "keep", "--kind", "boot", "--image", &kept).succeeds();
    // Without a space for objects nothing is dropped for one.
    let refused = onode!("mkfs", &spec).fails(21);
    assert!(refused.contains("without a space for objects") && refused.contains("--kind manager"), "{refused}");
    let refused = onode!("check", &spec).fails(8);
    assert!(refused.contains("no space for objects"), "{refused}");
    onode!("spaces", "create", &region, "man", "--kind", "manager", "--size", "32M").succeeds();
    // Those of fsck(8) say with 8 that they could not look.
    for (command, code) in [(&["check"][..], 8), (&["repair", "--drop-damaged"], 8), (&["ls"], 10), (&["info"], 10)] {
        let refused = common::onode().args(command).arg(&spec).fails(code);
        assert!(refused.contains("no volume yet") && refused.contains("onode mkfs"), "{command:?}: {refused}");
    }
    onode!("mkfs", format!("{spec},size=1G")).fails(19);
    onode!("mkfs", format!("{spec},objects=1M")).fails(19);
    onode!("mkfs", &spec).succeeds();
    let content = place.file("content", &[5; 1 << 20]);
    onode!("put", &spec, &content, "/file").succeeds();
    onode!("check", &spec).succeeds();
    let json = list(&region);
    assert!(json.contains("\"keep\"") && json.contains("\"man\"") && json.contains("\"bytes\": 67108864"), "{json}");
    // A volume goes only if that is asked for, and the others stay then, too.
    let refused = onode!("mkfs", &spec).fails(21);
    assert!(refused.contains("holds a volume already") && refused.contains("keep"), "{refused}");
    onode!("check", &spec).succeeds();
    onode!("mkfs", "--force", &spec).succeeds();
    assert!(!onode!("ls", &spec).succeeds().contains("file"));
    assert!(list(&region).contains("\"keep\""));
    assert!(fs::read(&region).expect("region").windows(5000).any(|bytes| bytes == [9; 5000]));
}

/// A region without any space becomes a volume as a new file does.
#[test]
fn an_empty_region_becomes_a_volume() {
    let place = Place::new("spaces-empty");
    let region = place.path("scm");
    let spec = format!("scm:{}", region.display());
    onode!("spaces", "create", &region, "--size", "16M").succeeds();
    onode!("mkfs", &spec).succeeds();
    onode!("check", &spec).succeeds();
    assert_eq!(fs::metadata(&region).expect("region").len(), 16 << 20);
}

#[test]
fn a_space_with_a_volume_is_removed_only_by_force() {
    let place = Place::new("spaces-remove");
    let region = place.path("scm");
    let spec = format!("scm:{}", region.display());
    onode!("mkfs", format!("{spec},size=64M,objects=16M")).succeeds();
    onode!("put", &spec, place.file("content", &[5; 1 << 20]), "/file").succeeds();
    let refused = onode!("spaces", "remove", &region, "objects").fails(21);
    assert!(
        refused.contains("holds a volume of") && refused.contains(" with 1 ") && refused.contains("--force"),
        "{refused}"
    );
    assert!(onode!("ls", &spec).succeeds().contains("file"));
    onode!("spaces", "remove", "--force", &region, "objects").succeeds();
    onode!("ls", &spec).fails(10);
    // An empty one goes unasked.
    onode!("spaces", "create", &region, "man", "--kind", "manager", "--size", "32M").succeeds();
    onode!("spaces", "remove", &region, "man").succeeds();
    onode!("spaces", "create", &region, "man", "--kind", "manager", "--size", "32M").succeeds();
    onode!("mkfs", &spec).succeeds();
    onode!("check", &spec).succeeds();
}

/// The example of the README: a volume grows although another space lies behind it.
#[test]
fn a_volume_grows_over_the_place_of_another_space() {
    let place = Place::new("spaces-readme");
    let region = place.path("scm");
    let spec = format!("scm:{}", region.display());
    onode!("mkfs", format!("{spec},size=16M,objects=8M")).succeeds();
    let content = place.file("content", &[5; 1 << 20]);
    onode!("put", &spec, &content, "/kept").succeeds();
    let image: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    onode!("spaces", "create", &region, "disk", "--kind", "boot", "--image", place.file("image", &image)).succeeds();
    let refused = onode!("spaces", "resize", &region, "objects", "--size", "1536M").fails(15);
    assert!(refused.contains("1.5 GiB") && refused.contains("MiB"), "{refused}");
    onode!("spaces", "resize", &region, "--size", "32M").succeeds();
    onode!("spaces", "resize", &region, "objects", "--size", "24M").succeeds();
    let large = place.file("large", &[6; 12 << 20]);
    onode!("put", &spec, &large, "/large").succeeds();
    onode!("check", &spec).succeeds();
    for (name, was) in [("/kept", &content), ("/large", &large)] {
        let there = place.path("there");
        onode!("get", &spec, name, &there).succeeds();
        assert!(fs::read(&there).expect("content") == fs::read(was).expect("content"), "{name}");
        fs::remove_file(&there).expect("file");
    }
    assert!(fs::read(&region).expect("region").windows(image.len()).any(|bytes| bytes == image));
}

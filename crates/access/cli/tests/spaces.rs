//! `onode spaces` in use: what is made is listed, moved, grown and removed, and every mistake is told.

mod common;

use common::{Expect, Place, is_clear};
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

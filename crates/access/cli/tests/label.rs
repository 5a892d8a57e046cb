//! Labels, and what is told of the volumes of a computer.

use crate::common::{Expect, Place, has_fuse};
use std::fs;

#[test]
fn a_label_is_shown_changed_and_taken_away() {
    let place = Place::new("label");
    let image = place.path("disk.img");
    onode!("mkfs", &image, "--size", "8M", "--label", "old").succeeds();
    assert_eq!(onode!("label", &image).succeeds(), "old\n");
    onode!("label", &image, "Fotos 2026").succeeds();
    assert_eq!(onode!("label", &image).succeeds(), "Fotos 2026\n");
    assert!(onode!("info", &image).succeeds().contains("Fotos 2026"));
    onode!("check", &image).succeeds();
    let error = onode!("label", &image, "a/b").fails(2);
    assert!(error.contains("slashes"), "{error}");
    let long = "x".repeat(256);
    assert!(onode!("label", &image, &long).fails(2).contains("255 bytes"));
    assert_eq!(onode!("label", &image).succeeds(), "Fotos 2026\n");
    onode!("label", &image, "").succeeds();
    assert_eq!(onode!("label", &image).succeeds(), "\n");
    onode!("label", place.path("none.img")).fails(20);
    let error = onode!("label", place.directory("plain")).fails(17);
    assert!(error.contains("no Onode volume is mounted there"), "{error}");
}

#[test]
fn the_label_of_a_mounted_volume_is_changed_where_it_is_mounted() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("label-mounted");
    let (image, directory) = (place.image("disk.img"), place.directory("mnt"));
    onode!("mount", &image, &directory).succeeds();
    assert_eq!(onode!("label", &directory).succeeds(), "\n");
    onode!("label", &directory, "here").succeeds();
    // By the name of its image, too.
    onode!("label", &image, "there").succeeds();
    assert_eq!(onode!("label", &image).succeeds(), "there\n");
    assert!(onode!("info", &directory).succeeds().contains("there"));
    assert!(onode!("label", &directory, "a\nb").fails(2).contains("line breaks"));
    let listed = onode!("list", &image).succeeds();
    let line = listed.lines().nth(1).expect("a volume");
    assert!(line.contains("there") && line.contains(&directory.display().to_string()), "{listed}");
    onode!("umount", &directory).succeeds();
    onode!("mount", "-o", "ro", &image, &directory).succeeds();
    assert_eq!(onode!("label", &directory).succeeds(), "there\n");
    assert!(onode!("label", &directory, "other").fails(14).contains("read-only"));
    onode!("umount", &directory).succeeds();
}

#[test]
fn volumes_are_listed_and_told_to_udev() {
    let place = Place::new("list");
    let (image, sealed, plain) = (place.path("disk.img"), place.path("sealed.img"), place.path("plain"));
    onode!("mkfs", &image, "--size", "8M", "--label", "My Photos").succeeds();
    let key = place.path("key");
    fs::write(&key, [7; 64]).expect("write");
    onode!("mkfs", &sealed, "--size", "8M", "--encrypt", "--key-file", &key).succeeds();
    fs::write(&plain, [0; 8192]).expect("write");
    let listed: serde_json::Value =
        serde_json::from_str(&onode!("list", "--json", &image, &sealed).succeeds()).expect("JSON");
    let [first, second] = &listed["volumes"].as_array().expect("a list")[..] else { panic!("{listed}") };
    assert_eq!(first["label"], "My Photos");
    assert!(first["total_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20) && first["state"].is_null(), "{first}");
    assert!(second["state"].as_str().is_some_and(|why| why.contains("key")) && second["uuid"] == "", "{second}");
    let told = onode!("list", "--udev", &image).succeeds();
    let uuid = first["uuid"].as_str().expect("text");
    let expected = format!(
        "ID_FS_USAGE=filesystem\nID_FS_TYPE=onode\nID_FS_UUID={uuid}\nID_FS_UUID_ENC={uuid}\n\
         ID_FS_LABEL=My_Photos\nID_FS_LABEL_ENC=My\\x20Photos\n"
    );
    assert_eq!(told, expected);
    assert_eq!(onode!("list", "--udev", &sealed).succeeds(), "ID_FS_USAGE=filesystem\nID_FS_TYPE=onode\n");
    assert_eq!(onode!("list", "--udev", &plain).fails(1), "");
    assert!(onode!("list", &plain).fails(10).contains("it holds no volume of Onode"));
    assert!(onode!("list", "--udev").fails(2).contains("name one device"));
    assert!(onode!("list", place.path("none")).fails(20).contains("none"));
    assert!(onode!("info", "LABEL=no volume of this name").fails(20).contains("onode list"));
}

//! Volumes on flash with their index in a memory beside it: every command works on them, and a
//! memory that is missing, behind or somebody else's is met with words.

use crate::common::{Expect, Place, has_fuse, is_clear};
use std::fs;

#[test]
fn every_command_works_on_the_pair() {
    let place = Place::new("beside");
    let (image, memory) = (place.path("disk.img"), place.path("disk.index"));
    let volume = format!("flash+scm:{},{}", image.display(), memory.display());
    let made = onode!("mkfs", format!("{volume},size=64M,memory=256K")).succeeds();
    assert!(made.contains("flash+scm"), "{made}");
    assert_eq!(fs::metadata(&memory).expect("memory").len(), 256 << 10);
    let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    onode!("mkdir", &volume, "/d").succeeds();
    onode!("put", &volume, place.file("big", &content), "/d/big").succeeds();
    let listed = onode!("ls", &volume, "/d").succeeds();
    assert!(listed.contains("big"), "{listed}");
    onode!("get", &volume, "/d/big", place.path("out")).succeeds();
    assert!(fs::read(place.path("out")).expect("out") == content);
    assert!(onode!("stat", "--all", &volume).succeeds().contains("\nmemory\n"));
    assert!(onode!("stat", "--json", &volume).succeeds().contains("memory.folds"));
    let top = onode!("top", "--once", &volume).succeeds();
    assert!(top.contains(" of 256.0 KiB used: anchors 128 B, ") && top.contains(" folds"), "{top}");
    onode!("check", &volume).succeeds();
    let info = onode!("info", &volume).succeeds();
    assert!(info.contains("KiB of memory"), "{info}");
    for part in ["anchors", "buckets", "elsewhere", "pieces", "body", "log", "free"] {
        assert!(info.contains(part), "{part}: {info}");
    }
    assert!(info.contains("per GiB of data"), "{info}");

    // Of flash alone it is no volume, and says where it belongs.
    is_clear(&onode!("ls", &image, "/").fails(2), "flash+scm");

    // A memory that is behind is filled anew, and so is one that is gone.
    let old = fs::read(&memory).expect("memory");
    onode!("put", &volume, place.file("small", b"small"), "/small").succeeds();
    fs::write(&memory, &old).expect("memory");
    assert!(onode!("ls", &volume, "/").succeeds().contains("small"));
    fs::remove_file(&memory).expect("memory");
    let check = onode!("check", &volume).succeeds();
    assert!(check.contains("it was not there; nothing is kept in it"), "{check}");
    let health = onode!("health", &volume).output().expect("it runs");
    assert_eq!(health.status.code(), Some(3), "{}", String::from_utf8_lossy(&health.stdout));
    assert!(onode!("ls", &volume, "/").succeeds().contains("small"));
    onode!("mkdir", &volume, "/e").succeeds();
    assert!(memory.exists());
    onode!("repair", &volume).succeeds();
    assert!(onode!("ls", &volume, "/").succeeds().contains('e'));

    // That of another volume is left alone.
    let (other, theirs) = (place.path("other.img"), place.path("other.index"));
    onode!("mkfs", format!("flash+scm:{},{},size=64M", other.display(), theirs.display())).succeeds();
    let before = fs::read(&theirs).expect("memory");
    let mixed = format!("flash+scm:{},{}", image.display(), theirs.display());
    is_clear(&onode!("ls", &mixed, "/").fails(2), "another volume");
    assert!(fs::read(&theirs).expect("memory") == before);
}

#[test]
fn what_never_was_a_memory_is_left_alone() {
    let place = Place::new("beside-other");
    let (image, memory) = (place.path("disk.img"), place.path("disk.index"));
    onode!("mkfs", format!("flash+scm:{},{},size=64M", image.display(), memory.display())).succeeds();
    let letter = vec![b'x'; 128 << 10];
    let path = place.file("letter", &letter);
    let mixed = format!("flash+scm:{},{}", image.display(), path.display());
    is_clear(&onode!("mkdir", &mixed, "/d").fails(2), "never was the memory");
    assert!(fs::read(&path).expect("letter") == letter[..]);
    onode!("mkdir", format!("{mixed},rebuild=on"), "/d").succeeds();
    assert!(fs::read(&path).expect("letter") != letter[..]);
    assert!(onode!("ls", &mixed, "/").succeeds().contains('d'));

    // A device that is not there is not replaced by a file, and one of another kind is called what
    // it is.
    let beside = |device: &str| format!("flash+scm:{},{device}", image.display());
    is_clear(&onode!("ls", beside("/dev/onode-no-such-device"), "/").fails(20), "no device");
    assert!(!std::path::Path::new("/dev/onode-no-such-device").exists());
    is_clear(&onode!("ls", beside("/dev/null"), "/").fails(10), "cannot be used as memory");
    let other = place.path("other.img");
    let mut made = onode!("mkfs", format!("flash+scm:{},/dev/null,size=64M", other.display()));
    is_clear(&made.fails(10), "type RAM");
    assert!(!other.exists());
}

#[test]
fn the_pair_is_mounted_and_found_again() {
    if !has_fuse() {
        return;
    }
    let place = Place::new("beside-mount");
    let directory = place.directory("mnt");
    let volume = format!("flash+scm:{},{}", place.path("disk.img").display(), place.path("disk.index").display());
    onode!("mkfs", format!("{volume},size=64M")).succeeds();
    for round in 0..3 {
        onode!("mount", &volume, &directory).succeeds();
        let file = directory.join("file");
        assert_eq!(fs::read(&file).ok(), (round > 0).then(|| vec![round - 1; 5000]));
        fs::write(&file, vec![round; 5000]).expect("write");
        onode!("umount", &directory).succeeds();
    }
    onode!("check", &volume).succeeds();
}

//! A volume as a program uses it: by paths, with files that read, write and seek.

use crate::common::Folder;
use onode::{Class, FileType, Volume};
use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[test]
fn a_volume_is_made_once_and_keeps_its_files() {
    let folder = Folder::new("file");
    let spec = format!("flash:{},size=16M", folder.path().join("disk.img").display());
    for round in 0..2u8 {
        let volume = Volume::open_or_create(&spec).expect("it opens");
        assert_eq!(volume.read("/f").ok(), (round > 0).then(|| vec![0]));
        volume.write("/f", [round]).expect("it is written");
        volume.sync().expect("it is durable");
        volume.close().expect("it closes");
    }
}

#[test]
fn files_read_write_and_seek() {
    let volume = Volume::open_or_create("ram:size=16M").expect("it opens");
    let mut file = volume.create_file("/f").expect("a file");
    file.write_all(b"0123456789").expect("written");
    assert_eq!(file.seek(SeekFrom::End(-4)).expect("inside"), 6);
    let mut end = Vec::new();
    file.read_to_end(&mut end).expect("read");
    assert_eq!(end, b"6789");
    assert_eq!(file.seek(SeekFrom::Current(-8)).expect("inside"), 2);
    assert_eq!(file.seek(SeekFrom::Current(-3)).expect_err("before the start").kind(), io::ErrorKind::InvalidInput);
    // Another one of the same file has a position of its own.
    let mut other = volume.open_file("/f").expect("the file");
    other.write_all(b"ab").expect("written");
    let mut two = [0; 2];
    file.read_exact(&mut two).expect("read");
    assert_eq!(&two, b"23");
    file.set_len(4).expect("cut");
    file.sync_all().expect("durable");
    assert_eq!(file.metadata().expect("it is there").size, 4);
    assert_eq!(volume.read("/f").expect("read"), b"ab23");
    // Without a name it lives as long as it is open.
    volume.remove_all("/f").expect("removed");
    file.seek(SeekFrom::Start(0)).expect("the start");
    file.read_exact(&mut two).expect("read");
    assert_eq!((&two, volume.read("/f").expect_err("it is gone").class), (b"ab", Class::NotFound));
}

#[test]
fn directories_are_listed_and_walked() {
    let volume = Volume::open_or_create("ram:size=16M").expect("it opens");
    volume.create_dir_all("/a/b").expect("directories");
    volume.create_dir_all(Path::new("a/c")).expect("without a slash at the front");
    volume.write("/a/b/f", "one").expect("a file");
    volume.rename("/a/b/f", "/a/g").expect("renamed");
    let names: BTreeSet<_> = volume.read_dir("/a").expect("a directory").map(|entry| entry.path).collect();
    assert_eq!(names, ["/a/b", "/a/c", "/a/g"].map(PathBuf::from).into());
    let all: Vec<_> = volume.walk("/").map(|entry| entry.expect("it can be read")).collect();
    assert_eq!(all.len(), 4);
    assert_eq!((all[0].name().to_str(), all[0].file_type), (Some("a"), FileType::Directory));
    assert_eq!(
        volume.walk("/nowhere").map(|entry| entry.expect_err("nothing").class).collect::<Vec<_>>(),
        [Class::NotFound]
    );
    let error = volume.open_file("/a").expect_err("a directory");
    assert!(error.to_string().contains("/a"), "{error}");
    assert!(volume.create_file("/no/f").is_err() && volume.read_dir("/a/g").is_err());
}

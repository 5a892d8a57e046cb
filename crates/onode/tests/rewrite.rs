//! Content that was written before a volume compressed is stored anew: fewer bytes, and nothing
//! else of a file changes.

use crate::common::Folder;
use crate::compressed::{close, make, open, text};
use onode::{Compression, InodeNumber, Spec, Volume};
use onode_fs::{Allocate, Caller, ErrorKind, Follow};

const LENGTH: usize = 1 << 20;

fn number(volume: &Volume, path: &str) -> InodeNumber {
    volume.files().resolve(path.as_bytes(), Follow::No).unwrap()
}

fn content(volume: &Volume, path: &str) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    let count = volume.files().read(number(volume, path), 0, &mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}

/// The specs of each kind of volume on which content is compressed, made empty.
fn made(folder: &Folder) -> Vec<Spec> {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let specs = [
        (format!("flash:{},size=16M", at("flash")), format!("flash:{}", at("flash"))),
        (format!("scm:{},size=16M", at("scm")), format!("scm:{}", at("scm"))),
        (
            format!("tier:{},{},size=32M,fast-size=16M", at("fast"), at("big")),
            format!("tier:{},{}", at("fast"), at("big")),
        ),
    ];
    make(&specs)
}

#[test]
fn what_was_written_before_takes_fewer_bytes_and_stays_what_it_is() {
    let folder = Folder::new("rewrite");
    for spec in made(&folder) {
        let mut expected = text(LENGTH, 0);
        let volume = open(&spec, Compression::Never);
        volume.files().write_file(&Caller::root(), b"/text", &expected, 0o640).unwrap();
        let file = number(&volume, "/text");
        volume.files().allocate(&Caller::root(), file, 200_000, 100_000, Allocate::PunchHole).unwrap();
        expected[200_000..300_000].fill(0);
        close(volume);

        let volume = open(&spec, Compression::Small);
        let file = number(&volume, "/text");
        let before = volume.files().attributes(file).unwrap();
        // What is dirty is part of it.
        volume.files().write(&Caller::root(), file, 70_000, b"written just now").unwrap();
        expected[70_000..70_016].copy_from_slice(b"written just now");
        volume.files().rewrite(file, 0, u64::MAX).unwrap();
        let after = volume.files().attributes(file).unwrap();
        assert!(after.blocks * 2 < before.blocks, "{spec}: {} units before, {} now", before.blocks, after.blocks);
        assert_eq!((after.size, after.permissions, after.created), (before.size, before.permissions, before.created));
        assert_eq!(content(&volume, "/text"), expected, "{spec}");
        let read = after.modified;
        volume.files().rewrite(file, 0, u64::MAX).unwrap();
        assert_eq!(volume.files().attributes(file).unwrap().modified, read, "{spec}: its time changed");
        close(volume);

        let volume = open(&spec, Compression::Never);
        assert_eq!(content(&volume, "/text"), expected, "{spec}: opened again");
        // And back: as is wished now.
        let file = number(&volume, "/text");
        volume.files().set_compression(file, Compression::Never).unwrap();
        volume.files().rewrite(file, 0, u64::MAX).unwrap();
        assert_eq!(content(&volume, "/text"), expected, "{spec}: plain again");
        close(volume);
    }
}

#[test]
fn what_cannot_be_stored_anew_is_refused_and_stays() {
    let spec = Spec::parse("flash:sim,size=8M").unwrap();
    let volume = open(&spec, Compression::Never);
    volume.files().write_file(&Caller::root(), b"/a", b"content", 0o640).unwrap();
    let file = number(&volume, "/a");
    let refused = volume.files().rewrite(file, 0, 7).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NotSupported);

    let volume = open(&spec, Compression::Fast);
    volume.files().make_directory(&Caller::root(), InodeNumber::ROOT, b"d", 0o755).unwrap();
    volume.files().write_file(&Caller::root(), b"/a", b"content", 0o640).unwrap();
    let refused = volume.files().rewrite(number(&volume, "/d"), 0, 7).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::IsDirectory);
    volume.files().rewrite(number(&volume, "/a"), 1 << 40, 7).unwrap();
    assert_eq!(content(&volume, "/a"), b"content");
}

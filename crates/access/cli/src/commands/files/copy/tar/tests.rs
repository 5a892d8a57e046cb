//! Archives of ours come back as they were, and archives that are damaged anywhere end with an
//! error.

use super::writer::Writer;
use super::{Member, MemberKind, Reader};
use crate::commands::files::copy::{Special, Xattr};
use onode::Class;
use onode_base::{Prng, Timestamp};
use onode_fs::FileType;

fn member(name: &[u8], kind: MemberKind) -> Member {
    Member {
        name: name.to_vec(),
        kind,
        size: 0,
        map: Vec::new(),
        permissions: 0o640,
        uid: 7,
        gid: 8,
        modified: Timestamp { seconds: 1_000_000_000, nanoseconds: 0 },
        xattrs: Vec::new(),
        has_worded_acl: false,
    }
}

/// Members of every kind, and bytes of those that have some.
fn members() -> Vec<Member> {
    let long = b"long/".repeat(60);
    let value = b"\n30 path=../../somewhere/else\n\0".to_vec();
    let xattrs = vec![Xattr { name: b"user.a=b%".to_vec(), value }];
    let late = Timestamp { seconds: 1 << 40, nanoseconds: 5 };
    let early = Timestamp { seconds: -5, nanoseconds: 999_999_999 };
    let special = |file_type, device| MemberKind::Special(Special { file_type, device });
    vec![
        member(b"./", MemberKind::Directory),
        Member { size: 1000, map: std::iter::once(0..1000).collect(), xattrs, ..member(b"file", MemberKind::File) },
        Member {
            size: 1 << 40,
            map: vec![4096..8192, 1 << 30..(1 << 30) + 5],
            modified: early,
            ..member(b"sparse", MemberKind::File)
        },
        Member { size: 5000, ..member(b"hole", MemberKind::File) },
        Member { uid: u32::MAX, gid: 1 << 21, modified: late, ..member(b"empty", MemberKind::File) },
        member(&[&long[..], b"name\xff"].concat(), MemberKind::Link("to/".repeat(80).into())),
        member(b"second", MemberKind::Name([&long[..], b"name\xff"].concat())),
        member(b"null", special(FileType::CharacterDevice, 0x103)),
        member(b"disk", special(FileType::BlockDevice, 0x7_0000)),
        member(b"pipe", special(FileType::Fifo, 0)),
    ]
}

fn archive() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(|piece| {
        bytes.extend_from_slice(piece);
        Ok(true)
    });
    for one in members() {
        writer.member(&one).unwrap();
        for range in &one.map {
            writer.content(&vec![b'x'; (range.end - range.start) as usize]).unwrap();
        }
        writer.pad().unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    bytes
}

/// All members with their content.
fn read(bytes: &[u8]) -> onode::Result<Vec<(Member, Vec<u8>)>> {
    let mut reader = Reader::new(bytes, "archive".into());
    let mut found = Vec::new();
    while let Some(one) = reader.next()? {
        let mut content = Vec::new();
        for range in &one.map {
            let mut left = range.end - range.start;
            while left > 0 {
                let mut buffer = [0; 700];
                let wanted = left.min(700) as usize;
                let length = reader.read(&mut buffer[..wanted])?;
                assert!(length > 0, "content is missing and nobody says so");
                content.extend_from_slice(&buffer[..length]);
                left -= length as u64;
            }
            reader.end_range(range.end - range.start)?;
        }
        assert_eq!(reader.read(&mut [0; 9])?, 0, "there is more than the map has");
        assert!(content.len() <= bytes.len());
        found.push((one, content));
    }
    Ok(found)
}

#[test]
fn members_come_back_as_they_were() {
    let found = read(&archive()).unwrap();
    assert_eq!(found.len(), members().len());
    for ((found, _), wanted) in found.iter().zip(members()) {
        assert_eq!((&found.name, &found.kind), (&wanted.name, &wanted.kind));
        assert_eq!((found.size, &found.map), (wanted.size, &wanted.map), "{wanted:?}");
        assert_eq!((found.permissions, found.uid, found.gid), (wanted.permissions, wanted.uid, wanted.gid));
        assert_eq!((found.modified, &found.xattrs), (wanted.modified, &wanted.xattrs));
    }
}

/// The name in the header tells how ranges of odd lengths stand: in blocks, as GNU tar has it, or
/// one after the other, as older versions of Onode wrote it.
#[test]
fn ranges_of_odd_lengths_are_read_as_their_writer_stored_them() {
    let with_holes = Member { size: 3000, map: vec![0..1000, 1500..2277], ..member(b"holes", MemberKind::File) };
    let after = Member { size: 5, map: std::iter::once(0..5).collect(), ..member(b"after", MemberKind::File) };
    for (name, padding) in [("./GNUSparseFile.4711/holes", 24), ("GNUSparseFile.0/holes", 0)] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(|piece| {
            bytes.extend_from_slice(piece);
            Ok(true)
        });
        writer.member(&with_holes).unwrap();
        writer.content(&[b'a'; 1000]).unwrap();
        writer.content(&vec![0; padding]).unwrap();
        writer.content(&[b'b'; 777]).unwrap();
        writer.pad().unwrap();
        writer.member(&after).unwrap();
        writer.content(b"after").unwrap();
        writer.pad().unwrap();
        writer.finish().unwrap();
        drop(writer);
        let written = b"./GNUSparseFile.0/holes";
        let at = bytes.windows(written.len()).position(|window| window == written).unwrap();
        let mut header = tar::Header::from_byte_slice(&bytes[at..at + 512]).clone();
        header.as_mut_bytes()[..100].fill(0);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        bytes[at..at + 512].copy_from_slice(header.as_bytes());
        let found = read(&bytes).unwrap();
        assert_eq!(found[0].1, [vec![b'a'; 1000], vec![b'b'; 777]].concat(), "{name}");
        assert_eq!((&*found[1].0.name, &*found[1].1), (&b"after"[..], &b"after"[..]), "{name}");
    }
}

#[test]
fn damage_anywhere_ends_with_an_error_or_another_archive() {
    let whole = archive();
    let mut random = Prng::new(1);
    for _ in 0..4000 {
        let mut broken = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(broken.len() as u64) as usize;
            broken[at] = random.next_u64() as u8;
        }
        if random.chance(1, 4) {
            broken.truncate(random.below(broken.len() as u64) as usize);
        }
        if let Err(error) = read(&broken) {
            assert!([Class::Damaged, Class::Usage].contains(&error.class) && error.hint.is_some(), "{error:?}");
        }
    }
    for length in (0..whole.len()).step_by(99) {
        // Only what comes behind the end may be missing.
        let read = read(&whole[..length]);
        assert!(read.is_err() || length >= whole.len() - 20 * 512, "{length}");
    }
}

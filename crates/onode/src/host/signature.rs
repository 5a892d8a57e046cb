//! What a device holds, as far as its first bytes tell: the marks of file systems, volumes and
//! partition tables that people would not like to lose.
//!
//! It does not promise to know everything, and it looks at the start of a device only; where that
//! is empty, also for a volume of Onode that lost its start.

use onode_media::real::block::{has_far_label, is_labelled};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes from the start in which all marks lie.
const HEAD_BYTES: u64 = 68 << 10;

/// What is told of the fast disk of a volume on two.
pub(crate) const FAST_DISK: &str = "the fast disk of an Onode volume";

/// What is told of a disk on which the big one of a volume on two goes on.
pub(crate) const FURTHER_DISK: &str = "a part of an Onode volume that lies on several disks";

/// Where a mark lies, the mark, and what it tells.
const MARKS: [(usize, &[u8], &str); 27] = [
    (0, b"ONODNAND", "an Onode image"),
    (0, b"ONODEFL\x01", "an Onode volume"),
    (0, b"ONODTIER", "an Onode volume"),
    (0, b"ONODFAST", FAST_DISK),
    (0, b"ONODJOIN", FURTHER_DISK),
    (512, b"EFI PART", "a partition table (GPT)"),
    (4096, b"EFI PART", "a partition table (GPT)"),
    (0x438, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (54, b"FAT1", "a FAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    (512, b"LABELONE", "an LVM physical volume"),
    (4086, b"SWAPSPACE2", "swap space"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0, b"hsqs", "a squashfs file system"),
    (0, b"UBI#", "a UBI volume"),
    (0, b"\x85\x19\x03\x20", "a JFFS2 file system"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a software RAID"),
    (0, b"\xfc\x4e\x2b\xa9", "a member of a software RAID"),
    (0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca", "a bcache or bcachefs device"),
    (0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9", "a bcachefs device"),
    (0x400, b"\xe2\xe1\xf5\xe0", "an EROFS file system"),
];

/// What the device at `path` holds; `None` if nothing is recognised.
///
/// # Errors
/// If it cannot be opened or read.
pub(crate) fn of_device(path: &Path) -> io::Result<Option<&'static str>> {
    if let Some(found) = of_part(path, 0)? {
        return Ok(Some(found));
    }
    Ok(has_far_label(&File::open(path)?).then_some("an Onode volume whose beginning is gone"))
}

/// What a bare chip with such erase blocks holds: a superblock of ours may lie in any of the first
/// four.
///
/// # Errors
/// As [`of_device`].
#[cfg(feature = "flash")]
pub(crate) fn of_chip(path: &Path, block_bytes: u64) -> io::Result<Option<&'static str>> {
    for block in 0..4 {
        if let Some(content) = of_part(path, block * block_bytes)? {
            return Ok(Some(content));
        }
    }
    Ok(None)
}

/// What a zoned device holds: at its start, and where its first zone is that is written in order.
///
/// # Errors
/// As [`of_device`].
#[cfg(feature = "flash")]
pub(crate) fn of_zones(path: &Path) -> io::Result<Option<&'static str>> {
    let found = of_part(path, 0)?;
    match onode_media::real::zoned::first_zone(path) {
        Ok(Some(start)) if found.is_none() => of_part(path, start),
        _ => Ok(found),
    }
}

fn of_part(path: &Path, offset: u64) -> io::Result<Option<&'static str>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(of_head(&head))
}

fn of_head(head: &[u8]) -> Option<&'static str> {
    if is_labelled(head) {
        return Some("an Onode volume");
    }
    let is_there = |at: usize, mark: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(mark));
    let known = MARKS.iter().find(|(at, mark, _)| is_there(*at, mark)).map(|(.., name)| *name);
    // The last two bytes of the first sector say little, so they come last.
    known.or_else(|| is_there(510, b"\x55\xaa").then_some("a partition table or a boot sector"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_where_they_lie() {
        assert_eq!(of_head(&[]), None);
        assert_eq!(of_head(&[0; 70_000]), None);
        assert_eq!(of_head(&[0xff; 70_000]), None);
        for (at, mark, name) in MARKS {
            let mut head = vec![0; HEAD_BYTES as usize];
            head[at..at + mark.len()].copy_from_slice(mark);
            assert_eq!(of_head(&head), Some(name));
            head[at] ^= 1;
            assert_eq!(of_head(&head), None, "{name}");
        }
        let mut head = vec![0; 512];
        head[510..].copy_from_slice(b"\x55\xaa");
        assert_eq!(of_head(&head), Some("a partition table or a boot sector"));
        assert_eq!(of_head(b"ONODBLOC..."), Some("an Onode volume"));
    }
}

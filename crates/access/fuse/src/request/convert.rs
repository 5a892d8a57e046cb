//! Between the words of the file system and those of the FUSE crate.

use fuser::{Errno, FileAttr, INodeNo, TimeOrNow};
use onode_base::{ErrorKind, Timestamp};
use onode_fs::{Allocate, Attributes, FileType, InodeNumber, Seek, SetTime, XattrFlags};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The unit in which programs do well to read and write: a whole cluster.
const PREFERRED_IO_BYTES: u32 = 128 << 10;

pub(crate) const fn inode(number: INodeNo) -> InodeNumber {
    InodeNumber(number.0)
}

pub(crate) fn errno(error: &onode_fs::Error) -> Errno {
    Errno::from_i32(error.errno())
}

pub(crate) fn errno_of(kind: ErrorKind) -> Errno {
    Errno::from_i32(kind.errno())
}

pub(crate) fn attributes(from: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(from.inode.0),
        size: from.size,
        blocks: from.blocks,
        atime: system_time(from.accessed),
        mtime: system_time(from.modified),
        ctime: system_time(from.changed),
        crtime: system_time(from.created),
        kind: file_type(from.file_type),
        perm: from.permissions,
        nlink: from.links,
        uid: from.uid,
        gid: from.gid,
        // The kernel's encoding has 32 bits and is kept as it came.
        rdev: from.device as u32,
        blksize: PREFERRED_IO_BYTES,
        flags: 0,
    }
}

/// The answer "there is no such name", which the kernel may remember.
pub(crate) const fn no_attributes() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: fuser::FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: PREFERRED_IO_BYTES,
        flags: 0,
    }
}

pub(crate) const fn file_type(from: FileType) -> fuser::FileType {
    match from {
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::CharacterDevice => fuser::FileType::CharDevice,
        FileType::Directory => fuser::FileType::Directory,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        FileType::Regular => fuser::FileType::RegularFile,
        FileType::SymbolicLink => fuser::FileType::Symlink,
        FileType::Socket => fuser::FileType::Socket,
    }
}

pub(crate) fn set_time(from: TimeOrNow) -> SetTime {
    match from {
        TimeOrNow::Now => SetTime::Now,
        TimeOrNow::SpecificTime(time) => SetTime::At(timestamp(time)),
    }
}

pub(crate) fn system_time(from: Timestamp) -> SystemTime {
    let nanoseconds = Duration::from_nanos(u64::from(from.nanoseconds));
    let whole = Duration::from_secs(from.seconds.unsigned_abs());
    let seconds = if from.seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    seconds.and_then(|seconds| seconds.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

pub(crate) fn timestamp(from: SystemTime) -> Timestamp {
    match from.duration_since(UNIX_EPOCH) {
        Ok(after) => {
            Timestamp { seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX), nanoseconds: after.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let borrow = i64::from(before.subsec_nanos() != 0);
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            Timestamp {
                seconds: -seconds - borrow,
                nanoseconds: (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000,
            }
        }
    }
}

/// How `setxattr` treats an attribute that is there or not; `None` for flags that mean nothing.
pub(crate) const fn xattr_flags(flags: i32) -> Option<XattrFlags> {
    match flags {
        0 => Some(XattrFlags::Any),
        libc::XATTR_CREATE => Some(XattrFlags::Create),
        libc::XATTR_REPLACE => Some(XattrFlags::Replace),
        _ => None,
    }
}

/// What `lseek` looks for; `None` if the kernel answers that itself.
pub(crate) const fn sought(whence: i32) -> Option<Seek> {
    match whence {
        libc::SEEK_DATA => Some(Seek::Data),
        libc::SEEK_HOLE => Some(Seek::Hole),
        _ => None,
    }
}

/// What a mode of `fallocate` asks for; `None` if that is not offered.
pub(crate) const fn allocation(mode: i32) -> Option<Allocate> {
    const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
    const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
    const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
    const ZERO_KEEP: i32 = ZERO | KEEP;
    match mode {
        0 => Some(Allocate::Extend),
        KEEP => Some(Allocate::KeepSize),
        PUNCH_HOLE => Some(Allocate::PunchHole),
        ZERO => Some(Allocate::ZeroRange),
        ZERO_KEEP => Some(Allocate::ZeroRangeKeepSize),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_both_ways() {
        for (seconds, nanoseconds) in [(0, 0), (1, 1), (-1, 999_999_999), (-1, 0), (-5, 250), (4_000_000_000, 7)] {
            let time = Timestamp { seconds, nanoseconds };
            assert_eq!(timestamp(system_time(time)), time);
        }
    }
}

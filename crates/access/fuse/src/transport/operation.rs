//! Requests as the kernel lays them out for io_uring (`include/uapi/linux/fuse.h`): a header, the
//! fixed arguments of the operation, and names or content behind them.
#![allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]

use crate::adaptor::Name;
use crate::request::credentials::Who;
use fuser::{Errno, INodeNo};
use onode_base::Timestamp;
use onode_fs::{SetAttributes, SetTime};

/// Names of operations are those of the kernel.
pub(crate) mod code {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const ACCESS: u32 = 34;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
}

/// Numbers at fixed places; what lies behind the end is zero.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn u32(self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }
}

/// What the header says (`fuse_in_header`).
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) code: u32,
    pub(crate) number: INodeNo,
    pub(crate) who: Who,
}

impl Head {
    pub(crate) fn of(header: &[u8]) -> Self {
        let fields = Fields(header);
        let who = Who { uid: fields.u32(24), gid: fields.u32(28), pid: fields.u32(32) };
        Self { code: fields.u32(4), number: INodeNo(fields.u64(16)), who }
    }

    /// A name in the directory that is asked for.
    pub(crate) const fn name<'a>(&self, name: &'a [u8]) -> Name<'a> {
        Name { parent: self.number, name }
    }
}

/// A name that ends with a zero byte, and what follows it.
///
/// # Errors
/// `EIO` if there is none: this is not what the kernel sends.
pub(crate) fn text(bytes: &[u8]) -> Result<(&[u8], &[u8]), Errno> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(Errno::EIO)?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

/// What a `SETATTR` changes (`fuse_setattr_in`).
pub(crate) fn changes(fields: Fields<'_>) -> SetAttributes {
    const MODE: u32 = 1;
    const UID: u32 = 1 << 1;
    const GID: u32 = 1 << 2;
    const SIZE: u32 = 1 << 3;
    const ACCESSED: u32 = 1 << 4;
    const MODIFIED: u32 = 1 << 5;
    const ACCESSED_NOW: u32 = 1 << 7;
    const MODIFIED_NOW: u32 = 1 << 8;
    const CHANGED: u32 = 1 << 10;
    let has = |flag| fields.u32(0) & flag != 0;
    let time = |seconds, nanoseconds| Timestamp {
        seconds: fields.u64(seconds).cast_signed(),
        nanoseconds: fields.u32(nanoseconds),
    };
    let set = |flag, now, at: Timestamp| has(flag).then_some(if has(now) { SetTime::Now } else { SetTime::At(at) });
    SetAttributes {
        permissions: has(MODE).then(|| (fields.u32(68) & 0o7777) as u16),
        uid: has(UID).then(|| fields.u32(76)),
        gid: has(GID).then(|| fields.u32(80)),
        size: has(SIZE).then(|| fields.u64(16)),
        accessed: set(ACCESSED, ACCESSED_NOW, time(32, 56)),
        modified: set(MODIFIED, MODIFIED_NOW, time(40, 60)),
        changed: has(CHANGED).then(|| time(48, 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_who_asks_for_what() {
        let mut header = [0; 40];
        for (at, value) in [(4, 9_u8), (16, 1), (24, 2), (28, 3), (32, 4)] {
            header[at] = value;
        }
        let head = Head::of(&header);
        assert_eq!((head.code, head.number, head.who), (9, INodeNo::ROOT, Who { uid: 2, gid: 3, pid: 4 }));
        assert_eq!(text(b"one\0two\0rest").unwrap(), (&b"one"[..], &b"two\0rest"[..]));
        assert_eq!(text(b"no end").unwrap_err().code(), libc::EIO);
        assert_eq!((Fields(&[1, 0]).u32(0), Fields(&[]).u64(8)), (0, 0));
    }

    #[test]
    fn only_what_is_marked_changes() {
        let mut bytes = [0xff; 128];
        bytes[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(changes(Fields(&bytes)), SetAttributes::default());
        bytes[..4].copy_from_slice(&(1_u32 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7).to_ne_bytes());
        bytes[16..24].copy_from_slice(&77_u64.to_ne_bytes());
        bytes[40..48].copy_from_slice(&(-5_i64).to_ne_bytes());
        bytes[60..64].copy_from_slice(&6_u32.to_ne_bytes());
        let expected = SetAttributes {
            permissions: Some(0o7777),
            size: Some(77),
            accessed: Some(SetTime::Now),
            modified: Some(SetTime::At(Timestamp { seconds: -5, nanoseconds: 6 })),
            ..SetAttributes::default()
        };
        assert_eq!(changes(Fields(&bytes)), expected);
    }
}

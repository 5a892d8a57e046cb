//! Answers as the kernel wants them by io_uring (`include/uapi/linux/fuse.h`).
#![allow(clippy::host_endian_bytes, reason = "the kernel speaks the processor's own byte order")]

use crate::request::answer::{Entry, Listed};
use crate::request::convert::timestamp;
use fuser::{FileAttr, FileType, FopenFlags};
use onode_fs::StatFs;
use std::time::Duration;

/// Entries of a directory begin at multiples of this.
const ENTRY_ALIGNMENT: usize = 8;
/// Bytes of an entry without attributes and name (`fuse_dirent`).
const LISTED_BYTES: usize = 24;
/// Bytes of the attributes in front of it (`fuse_entry_out`).
const ENTRY_BYTES: usize = 128;

/// Writes from the beginning of a buffer on. What does not fit is left out; answers of fixed length
/// always fit.
pub(crate) struct Writer<'a> {
    to: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(to: &'a mut [u8]) -> Self {
        Self { to, at: 0 }
    }

    /// How many bytes were written.
    pub(crate) const fn length(&self) -> usize {
        self.at
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if let Some(place) = self.to.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
            self.at += bytes.len();
        }
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_ne_bytes());
    }

    /// Two lengths of time in the order of the protocol: seconds of both, then nanoseconds.
    fn times(&mut self, times: &[Duration]) {
        times.iter().for_each(|time| self.u64(time.as_secs()));
        times.iter().for_each(|time| self.u32(time.subsec_nanos()));
    }

    fn file(&mut self, file: &FileAttr) {
        let times = [file.atime, file.mtime, file.ctime].map(timestamp);
        self.u64(file.ino.0);
        self.u64(file.size);
        self.u64(file.blocks);
        times.iter().for_each(|time| self.u64(time.seconds.cast_unsigned()));
        times.iter().for_each(|time| self.u32(time.nanoseconds));
        let numbers = [mode(file.kind) | u32::from(file.perm), file.nlink, file.uid, file.gid, file.rdev, file.blksize];
        numbers.into_iter().for_each(|number| self.u32(number));
        self.u32(0);
    }

    /// `fuse_attr_out`.
    pub(crate) fn attributes(&mut self, file: &FileAttr, ttl: Duration) {
        self.times(&[ttl]);
        self.u32(0);
        self.file(file);
    }

    /// `fuse_entry_out`.
    pub(crate) fn entry(&mut self, entry: &Entry, ttl: Duration) {
        self.u64(entry.attributes.ino.0);
        self.u64(entry.generation.0);
        self.times(&[ttl, ttl]);
        self.file(&entry.attributes);
    }

    /// `fuse_open_out`.
    pub(crate) fn opened(&mut self, flags: FopenFlags) {
        self.u64(0);
        self.u32(flags.bits());
        self.u32(0);
    }

    /// A length (`fuse_getxattr_out`).
    pub(crate) fn length_of_value(&mut self, length: u32) {
        self.u32(length);
        self.u32(0);
    }

    /// `fuse_statfs_out`.
    pub(crate) fn space(&mut self, space: &StatFs) {
        let counts = [space.blocks, space.blocks_free, space.blocks_free, space.files, space.files_free];
        counts.into_iter().for_each(|count| self.u64(count));
        [space.block_bytes, space.name_bytes_max, space.block_bytes].into_iter().for_each(|number| self.u32(number));
        self.bytes(&[0; 28]);
    }

    /// An entry of a directory (`fuse_dirent`), with its attributes in front if they are wanted
    /// (`fuse_direntplus`); `false` if there is no room for it.
    pub(crate) fn listed(&mut self, one: &Listed<'_>, plus: bool) -> bool {
        let front = if plus { ENTRY_BYTES } else { 0 };
        let length = (front + LISTED_BYTES + one.name.len()).next_multiple_of(ENTRY_ALIGNMENT);
        if self.to.len() - self.at < length {
            return false;
        }
        let end = self.at + length;
        let file = &one.entry.attributes;
        if plus {
            self.entry(&one.entry, one.ttl);
        }
        self.u64(file.ino.0);
        self.u64(one.cursor);
        self.u32(one.name.len() as u32);
        self.u32(mode(file.kind) >> 12);
        self.bytes(one.name);
        self.to[self.at..end].fill(0);
        self.at = end;
        true
    }
}

const fn mode(kind: FileType) -> u32 {
    match kind {
        FileType::NamedPipe => libc::S_IFIFO,
        FileType::CharDevice => libc::S_IFCHR,
        FileType::BlockDevice => libc::S_IFBLK,
        FileType::Directory => libc::S_IFDIR,
        FileType::RegularFile => libc::S_IFREG,
        FileType::Symlink => libc::S_IFLNK,
        FileType::Socket => libc::S_IFSOCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::convert::no_attributes;
    use fuser::{Generation, INodeNo};

    fn entry() -> Entry {
        let attributes =
            FileAttr { ino: INodeNo(7), size: 5, perm: 0o640, kind: FileType::Directory, ..no_attributes() };
        Entry { attributes, generation: Generation(3) }
    }

    #[test]
    fn answers_have_the_lengths_of_the_protocol() {
        let second = Duration::from_secs(1);
        let length = |write: &dyn Fn(&mut Writer<'_>)| {
            let mut bytes = [0xaa; 512];
            let mut writer = Writer::new(&mut bytes);
            write(&mut writer);
            writer.length()
        };
        assert_eq!(length(&|to| to.attributes(&entry().attributes, second)), 104);
        assert_eq!(length(&|to| to.entry(&entry(), second)), ENTRY_BYTES);
        assert_eq!(length(&|to| to.opened(FopenFlags::FOPEN_KEEP_CACHE)), 16);
        assert_eq!(length(&|to| to.length_of_value(1)), 8);
        assert_eq!(length(&|to| to.space(&StatFs::default())), 80);
    }

    #[test]
    fn entries_of_a_directory_are_padded_and_end_with_the_room() {
        let mut bytes = [0xaa; 200];
        let mut writer = Writer::new(&mut bytes);
        let one = Listed { entry: entry(), cursor: 9, name: b"abc", ttl: Duration::ZERO };
        assert!(writer.listed(&one, false));
        assert_eq!(writer.length(), 32);
        assert!(writer.listed(&one, true));
        assert_eq!(writer.length(), 192);
        assert!(!writer.listed(&one, false));
        assert_eq!(
            bytes[..32],
            [7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0]
        );
        // In front of the second stands `fuse_entry_out`, whose mode lies behind 40 + 60 bytes.
        assert_eq!(bytes[32 + 100..32 + 104], (libc::S_IFDIR | 0o640).to_ne_bytes());
    }
}

//! `.onode/spaces/NAME`: the spaces beside the volume as files that can be mounted like a block
//! device. In the same folder is that of transactions.
//!
//! The folder is not listed in the root directory and can be reached by its name, like the folder
//! of snapshots of other file systems. Like a block device a face keeps its length whatever it is
//! told, and nothing in the folder can be made, renamed or removed. What is not ours goes to the
//! file system of the volume.

use crate::request::answer::{Entry, Listed};
use crate::request::commands::transactions;
use crate::request::convert::{errno_of, no_attributes, system_time};
use crate::request::place::numbers::transaction;
use fuser::{Errno, FileAttr, FileType, Generation, INodeNo};
use onode::{BlockFace, SystemClock};
use onode_base::{Clock, ErrorKind};
use std::time::{Duration, SystemTime};

/// The name in the root directory.
const NAME: &[u8] = b".onode";
const SPACES: &[u8] = b"spaces";
/// Numbers from here on are no inodes of a volume.
const FIRST: u64 = 1 << 62;
const FOLDER: INodeNo = INodeNo(FIRST);
const SPACES_FOLDER: INodeNo = INodeNo(FIRST + 1);
const FIRST_FACE: u64 = FIRST + 2;

/// All faces of a mount; without any, nothing is shown.
pub(crate) struct Faces {
    faces: Vec<BlockFace>,
    uid: u32,
    gid: u32,
    since: SystemTime,
    /// The folder of transactions is beside them.
    has_transactions: bool,
}

impl Faces {
    pub(crate) fn new(faces: Vec<BlockFace>, has_transactions: bool) -> Self {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { faces, uid, gid, since: system_time(SystemClock.now()), has_transactions }
    }

    /// Whether there is nothing to show.
    pub(crate) const fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// Whether a number is one of ours.
    pub(crate) const fn owns(number: INodeNo) -> bool {
        number.0 >= FIRST && !transaction::owns(number)
    }

    /// The folder in which that of transactions is.
    pub(crate) const fn above() -> INodeNo {
        FOLDER
    }

    /// Whether a number is that of this folder.
    pub(crate) const fn is_above(number: INodeNo) -> bool {
        number.0 == FOLDER.0
    }

    /// Whether a name may not be given, taken or removed.
    pub(crate) fn guards(&self, parent: INodeNo, name: &[u8]) -> bool {
        let is_shown = self.has_transactions || !self.faces.is_empty();
        Self::owns(parent) || (is_shown && parent == INodeNo::ROOT && name == NAME)
    }

    fn face(&self, number: INodeNo) -> Option<&BlockFace> {
        let index = number.0.checked_sub(FIRST_FACE)?;
        self.faces.get(usize::try_from(index).ok()?)
    }

    /// What a name is; for names that [`guards`](Self::guards) tells of.
    pub(crate) fn lookup(&self, parent: INodeNo, name: &[u8]) -> Result<FileAttr, Errno> {
        let face = || self.faces.iter().position(|face| face.name().as_bytes() == name);
        let found = match parent {
            _ if name == b"." => Some(parent),
            INodeNo::ROOT => Some(FOLDER),
            FOLDER if name == SPACES && !self.faces.is_empty() => Some(SPACES_FOLDER),
            SPACES_FOLDER if name == b".." => Some(FOLDER),
            SPACES_FOLDER => face().map(|index| INodeNo(FIRST_FACE + index as u64)),
            _ => None,
        };
        self.attributes(found.ok_or_else(|| errno_of(ErrorKind::NotFound))?)
    }

    pub(crate) fn attributes(&self, number: INodeNo) -> Result<FileAttr, Errno> {
        let (kind, perm, size) = match (number, self.face(number)) {
            (FOLDER | SPACES_FOLDER, _) => (FileType::Directory, 0o555, 0),
            (_, Some(face)) => (FileType::RegularFile, if face.is_read_only() { 0o400 } else { 0o600 }, face.bytes()),
            (_, None) => return Err(errno_of(ErrorKind::Stale)),
        };
        Ok(FileAttr {
            ino: number,
            size,
            blocks: size / 512,
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: self.since,
            kind,
            perm,
            nlink: if kind == FileType::Directory { 2 } else { 1 },
            uid: self.uid,
            gid: self.gid,
            ..no_attributes()
        })
    }

    fn file(&self, number: INodeNo) -> Result<&BlockFace, Errno> {
        self.face(number).ok_or(Errno::EISDIR)
    }

    pub(crate) fn read(&self, number: INodeNo, at: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        Ok(self.file(number)?.read(at, buffer))
    }

    pub(crate) fn write(&self, number: INodeNo, at: u64, bytes: &[u8]) -> Result<u32, Errno> {
        let face = self.file(number)?;
        if face.is_read_only() {
            return Err(Errno::EROFS);
        }
        match face.write(at, bytes) {
            0 if !bytes.is_empty() => Err(Errno::ENOSPC),
            // A request carries at most a mebibyte.
            written => Ok(written as u32),
        }
    }

    pub(crate) fn sync(&self, number: INodeNo) -> Result<(), Errno> {
        match self.face(number) {
            Some(face) => face.sync().map_err(|_| Errno::EIO),
            None => Ok(()),
        }
    }

    /// Holes and ranges of zeros: what a block device is told with a discard.
    pub(crate) fn allocate(&self, number: INodeNo, at: u64, length: u64, mode: i32) -> Result<(), Errno> {
        const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
        const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
        const ZERO_KEEP: i32 = ZERO | KEEP;
        let face = self.file(number)?;
        match mode {
            _ if face.is_read_only() => Err(Errno::EROFS),
            PUNCH | ZERO_KEEP => {
                face.zero(at, length);
                Ok(())
            }
            KEEP => Ok(()),
            0 | ZERO if at.saturating_add(length) > face.bytes() => Err(Errno::ENOSPC),
            0 => Ok(()),
            ZERO => {
                face.zero(at, length);
                Ok(())
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// There are no holes.
    pub(crate) fn seek(&self, number: INodeNo, from: u64, whence: i32) -> Result<u64, Errno> {
        let end = self.file(number)?.bytes();
        match whence {
            _ if from >= end => Err(Errno::ENXIO),
            libc::SEEK_DATA => Ok(from),
            libc::SEEK_HOLE => Ok(end),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The entries of a folder from `offset` on: number, cursor, kind and name.
    fn entries(&self, number: INodeNo, offset: u64) -> impl Iterator<Item = (INodeNo, u64, FileType, &[u8])> {
        let (parent, names): (_, Vec<(INodeNo, FileType, &[u8])>) = match number {
            FOLDER => {
                let spaces = (!self.faces.is_empty()).then_some((SPACES_FOLDER, FileType::Directory, SPACES));
                let transactions = (transaction::FOLDER, FileType::Directory, transactions::NAME);
                (INodeNo::ROOT, spaces.into_iter().chain(self.has_transactions.then_some(transactions)).collect())
            }
            SPACES_FOLDER => {
                let numbered = self.faces.iter().zip(FIRST_FACE..);
                let names = numbered.map(|(face, n)| (INodeNo(n), FileType::RegularFile, face.name().as_bytes()));
                (FOLDER, names.collect())
            }
            _ => (number, Vec::new()),
        };
        let dots = [(number, FileType::Directory, &b"."[..]), (parent, FileType::Directory, &b".."[..])];
        let all = dots.into_iter().chain(names).zip(1..).skip(usize::try_from(offset).unwrap_or(usize::MAX));
        all.map(|((number, kind, name), cursor)| (number, cursor, kind, name))
    }

    /// Hands the entries of a folder from `offset` on to `take` until it refuses one.
    pub(crate) fn list(&self, number: INodeNo, offset: u64, ttl: Duration, take: &mut dyn FnMut(&Listed<'_>) -> bool) {
        for (number, cursor, kind, name) in self.entries(number, offset) {
            let attributes = match self.attributes(number) {
                Ok(found) if Self::owns(number) && !name.starts_with(b".") => found,
                _ => FileAttr { ino: number, kind, ..no_attributes() },
            };
            let entry = Entry { attributes, generation: Generation(0) };
            if !take(&Listed { entry, cursor, name, ttl }) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn faces() -> Faces {
        let memory = |bytes| Arc::new(onode_media::SimPmem::new(bytes, onode_media::PmemOptions::default()));
        let face = |name: &str, read_only| BlockFace::new(name.to_owned(), memory(8192), read_only);
        Faces::new(vec![face("disk", false), face("boot", true)], false)
    }

    fn found(faces: &Faces, parent: INodeNo, name: &str) -> Result<INodeNo, i32> {
        faces.lookup(parent, name.as_bytes()).map(|found| found.ino).map_err(|errno| errno.code())
    }

    #[test]
    fn names_lead_to_faces_and_back() {
        let faces = faces();
        assert!(faces.guards(INodeNo::ROOT, b".onode") && !faces.guards(INodeNo::ROOT, b"onode"));
        assert!(!Faces::new(Vec::new(), false).guards(INodeNo::ROOT, b".onode"));
        assert_eq!(found(&faces, INodeNo::ROOT, ".onode"), Ok(FOLDER));
        assert_eq!(found(&faces, FOLDER, "spaces"), Ok(SPACES_FOLDER));
        assert_eq!(found(&faces, FOLDER, "disk"), Err(libc::ENOENT));
        assert_eq!(found(&faces, SPACES_FOLDER, ".."), Ok(FOLDER));
        assert_eq!(found(&faces, SPACES_FOLDER, "tape"), Err(libc::ENOENT));
        let boot = found(&faces, SPACES_FOLDER, "boot").unwrap();
        let attributes = faces.attributes(boot).unwrap();
        assert_eq!((attributes.size, attributes.blocks, attributes.perm), (8192, 16, 0o400));
        let names =
            |number, offset| -> Vec<_> { faces.entries(number, offset).map(|entry| entry.3.to_vec()).collect() };
        assert_eq!(names(SPACES_FOLDER, 0), [&b"."[..], b"..", b"disk", b"boot"]);
        assert_eq!((names(SPACES_FOLDER, 3), names(FOLDER, 2)), (vec![b"boot".to_vec()], vec![b"spaces".to_vec()]));
    }

    #[test]
    fn a_face_answers_like_a_block_device() {
        let faces = faces();
        let (disk, boot) = (INodeNo(FIRST_FACE), INodeNo(FIRST_FACE + 1));
        assert_eq!(faces.write(disk, 8190, b"abcd").unwrap(), 2);
        assert_eq!(faces.write(disk, 8192, b"a").unwrap_err().code(), libc::ENOSPC);
        assert_eq!(faces.write(boot, 0, b"a").unwrap_err().code(), libc::EROFS);
        assert_eq!(faces.write(FOLDER, 0, b"a").unwrap_err().code(), libc::EISDIR);
        faces.allocate(disk, 8191, 100, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE).unwrap();
        assert_eq!(faces.allocate(disk, 8191, 2, 0).unwrap_err().code(), libc::ENOSPC);
        assert_eq!(faces.allocate(boot, 0, 2, 0).unwrap_err().code(), libc::EROFS);
        let mut tail = [1; 4];
        assert_eq!((faces.read(disk, 8190, &mut tail).unwrap(), tail), (2, [b'a', 0, 1, 1]));
        assert_eq!(
            (faces.seek(disk, 5, libc::SEEK_DATA).ok(), faces.seek(disk, 5, libc::SEEK_HOLE).ok()),
            (Some(5), Some(8192))
        );
        assert_eq!(faces.seek(disk, 8192, libc::SEEK_DATA).unwrap_err().code(), libc::ENXIO);
        faces.sync(disk).unwrap();
        faces.sync(FOLDER).unwrap();
    }
}

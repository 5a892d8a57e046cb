//! Where a request belongs: to the mounted files, to those within a transaction, or to those of a
//! snapshot or a clone. The number that the kernel knows of a file tells which.

pub mod lost;
pub mod numbers;

use crate::request::answer::Entry;
use crate::request::convert::{self, attributes, inode};
use crate::request::place::numbers::{state, transaction};
use fuser::{Errno, FileAttr, Generation, INodeNo};
use onode::{Class, Error, TransactionInUse};
use onode_base::ErrorKind;
use onode_fs::{Attributes, FileSystem, InodeNumber};
use std::ops::Deref;
use std::sync::Arc;

/// The file system that a number belongs to.
pub(crate) enum Place<'a> {
    /// The mounted one.
    Main(&'a FileSystem),
    /// That of a transaction, with what stands above the numbers of its files.
    Within(TransactionInUse, u64),
    /// That of a snapshot or a clone, likewise.
    State(Arc<FileSystem>, u64),
}

impl Deref for Place<'_> {
    type Target = FileSystem;

    fn deref(&self) -> &FileSystem {
        match self {
            Self::Main(files) => files,
            Self::Within(transaction, _) => transaction.volume().files(),
            Self::State(files, _) => files,
        }
    }
}

impl Place<'_> {
    /// Whether it is the mounted one.
    pub(crate) const fn is_main(&self) -> bool {
        matches!(self, Self::Main(_))
    }

    /// Whether it is one of a transaction.
    pub(crate) const fn is_within(&self) -> bool {
        matches!(self, Self::Within(..))
    }

    /// What stands above the numbers of files.
    const fn tag(&self) -> u64 {
        match self {
            Self::Main(_) => 0,
            Self::Within(_, tag) | Self::State(_, tag) => *tag,
        }
    }

    /// The number of a file as the kernel knows it.
    pub(crate) const fn number(&self, number: InodeNumber) -> INodeNo {
        INodeNo(number.0 | self.tag())
    }

    /// The number that the kernel knows, as that of a file.
    pub(crate) const fn inode(&self, number: INodeNo) -> InodeNumber {
        match self {
            Self::Main(_) => inode(number),
            Self::Within(..) => transaction::inode(number),
            Self::State(..) => state::inode(number),
        }
    }

    /// What the kernel is told of a file.
    pub(crate) fn shown(&self, found: &Attributes) -> FileAttr {
        FileAttr { ino: self.number(found.inode), ..attributes(found) }
    }

    /// The same with the name that leads to it.
    pub(crate) fn entry(&self, found: &Attributes) -> Entry {
        Entry { attributes: self.shown(found), generation: Generation(u64::from(found.generation)) }
    }

    /// The files themselves, for another thread; `main` are the mounted ones. `None` for those
    /// within a transaction, which may be over by then.
    pub(crate) fn files(&self, main: &Arc<FileSystem>) -> Option<Arc<FileSystem>> {
        match self {
            Self::Main(_) => Some(Arc::clone(main)),
            Self::State(files, _) => Some(Arc::clone(files)),
            Self::Within(..) => None,
        }
    }

    /// Whether both are the same.
    pub(crate) const fn is_that_of(&self, other: &Self) -> bool {
        self.tag() == other.tag()
    }
}

/// What the kernel is told instead of an error for people.
pub(crate) fn errno_of(error: &Error) -> Errno {
    match error.class {
        Class::Conflict => Errno::EBUSY,
        Class::Exists => Errno::EEXIST,
        Class::InUse => Errno::EAGAIN,
        Class::Key => convert::errno_of(ErrorKind::KeyNeeded),
        Class::NotFound => Errno::ENOENT,
        Class::Permission => Errno::EPERM,
        Class::VolumeFull | Class::HostFull => Errno::ENOSPC,
        Class::ReadOnly => Errno::EROFS,
        Class::Usage => Errno::EINVAL,
        _ => Errno::EIO,
    }
}

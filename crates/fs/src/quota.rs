//! Limits on the bytes and the number of files of directory trees, users and groups (quotas).
//!
//! What counts is what `stat` shows: of a file its size, holes included, once for all its names,
//! and from its making until its object is gone, whether it has a name or not. So what a change
//! adds is known before anything is done, and no compression, copy or snapshot changes it.
//!
//! A limit is a record on the volume object (`record`) with what is used of it. Every transaction
//! that makes, removes or resizes a file, or gives it to another owner, sets the records concerned
//! in the same commit (`charge`): after a crash they say what there is. What is written and not
//! yet at the device is counted in memory beside it (`table`), and changes are refused by both
//! together (`guard`) before they are accepted, never when they are written back.
//!
//! A tree is known by a number that the inodes in it carry. A limit for what exists already comes
//! after all of it was counted, in steps, while files change (`count`).

pub(crate) mod charge;
pub mod count;
pub(crate) mod guard;
pub mod limit;
pub mod record;
pub mod table;
pub mod told;

use crate::types::InodeNumber;

/// What a limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaSubject {
    /// Everything in this directory and below it, and the directory.
    Directory(InodeNumber),
    /// The files of this user, in the whole volume.
    User(u32),
    /// The files of this group, in the whole volume.
    Group(u32),
}

/// How much there may be; what has no limit is only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Bytes of all files by their sizes.
    pub bytes: Option<u64>,
    /// Files, directories and whatever else has an inode.
    pub files: Option<u64>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUse {
    /// Bytes of all files by their sizes.
    pub bytes: u64,
    /// Files, directories and whatever else has an inode.
    pub files: u64,
}

/// A limit with what is used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// What it is for.
    pub subject: QuotaSubject,
    /// How much there may be.
    pub limits: QuotaLimits,
    /// How much there is, what waits in the write-clustering cache included.
    pub used: QuotaUse,
}

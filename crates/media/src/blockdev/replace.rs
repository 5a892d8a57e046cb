//! What a disk that consists of several can do: give one of them another's place.

use super::BlockDev;
use crate::error::Result;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// What somebody wants who has a disk replaced.
pub struct Replacement {
    /// The name of the disk that goes.
    pub old: String,
    /// The one that comes. What is on it is lost.
    pub new: Box<dyn BlockDev>,
    /// The number of the volume.
    pub uuid: [u8; 16],
    /// Bytes of the whole that the volume has.
    pub bytes: u64,
    /// Ranges of the whole, whole sectors and in order, without which the new disk passes for no
    /// part of the volume: superblocks. They are written when everything else is durable.
    pub last: Vec<Range<u64>>,
}

/// How far a replacement is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaceProgress {
    /// Bytes of the old disk that were looked at.
    pub done: u64,
    /// All of those that the volume has.
    pub total: u64,
    /// Bytes that the old disk could not read. The new one has zeros there.
    pub unreadable: u64,
}

/// A disk of which a part can be replaced while it is used.
pub trait ReplaceDisk {
    /// The names of the disks.
    fn disk_names(&self) -> Vec<String>;

    /// Begins: the new disk says, durably, that it is being copied to. One that was under way is
    /// given up.
    ///
    /// # Errors
    /// `NotFound` if no disk has the name of the old one, `OutOfRange` if the new one is too small,
    /// `Invalid` if it is of another kind; those of the new one.
    fn begin(&mut self, replacement: Replacement) -> Result<()>;

    /// Has all writes to the next `bytes` of the old disk go to the new one, too, and returns where
    /// in the whole these are: what is in use there has to be [copied](Self::copy) before the next
    /// call. `None` when there is no more.
    ///
    /// # Errors
    /// `Invalid` if nothing is under way, and why a write to the new disk failed.
    fn advance(&mut self, bytes: u64) -> Result<Option<Range<u64>>>;

    /// Copies a range of the whole, within what [`advance`](Self::advance) returned. What cannot be
    /// read is zeros on the new disk, and counted.
    ///
    /// # Errors
    /// Those of the new disk; that of the old one if it reads nothing any more. Nothing is under
    /// way then.
    fn copy(&mut self, range: Range<u64>) -> Result<()>;

    /// The new disk has the place of the old one from now on, durably. Returns the old one.
    ///
    /// # Errors
    /// Those of the new disk. Nothing is under way then, and the old disk has its place.
    fn finish(&mut self) -> Result<FormerDisk>;

    /// Gives up. The old disk has its place.
    fn stop(&mut self);

    /// How far it is; `None` if nothing is under way.
    fn progress(&self) -> Option<ReplaceProgress>;
}

/// A disk that was replaced.
pub struct FormerDisk {
    disk: Box<dyn BlockDev>,
    /// What made it a part of the volume.
    marks: Vec<Range<u64>>,
    unreadable: u64,
}

impl FormerDisk {
    pub(super) const fn new(disk: Box<dyn BlockDev>, marks: Vec<Range<u64>>, unreadable: u64) -> Self {
        Self { disk, marks, unreadable }
    }

    /// Bytes that it could not read.
    #[must_use]
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Has it be a part of nothing any more: what it holds becomes old from now on.
    ///
    /// # Errors
    /// Its own.
    pub fn wipe(mut self) -> Result<()> {
        self.marks.iter().try_for_each(|range| self.disk.zero(range.start, range.end - range.start))?;
        self.disk.flush()
    }
}

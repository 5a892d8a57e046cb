//! Volumes whose disks can be replaced while they are in use.

use crate::error::Result;
use alloc::string::String;
use alloc::vec::Vec;

/// Where a volume is with the replacement of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplaceState {
    /// None is under way.
    #[default]
    Idle,
    /// One is copied.
    Copying(Copying),
    /// The last one that was begun since the mount is over.
    Done(Replaced),
}

/// How far a copy is, in bytes of the disk that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copying {
    /// What was looked at.
    pub done: u64,
    /// What the volume has of it.
    pub total: u64,
    /// What could not be read. The disk that comes has zeros there.
    pub unreadable: u64,
}

/// A disk was replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Bytes of the old disk that could not be read, and are zeros on the new one.
    pub unreadable: u64,
    /// Why the old disk still says that it is a part of the volume, if it does.
    pub not_cleared: Option<String>,
}

/// A volume of which a disk can be given another one's place.
pub trait Replace {
    /// The names of its disks, as whoever opened the device called them.
    fn disks(&self) -> Vec<String>;

    /// Begins to copy the disk `old` to `new`, which whoever opened the device finds by these words
    /// and knows to be empty; a disk that only holds copies is replaced on return. Nothing on the
    /// disks in use tells of it: a crash forgets it, and the old disk is the one. A replacement
    /// that is under way is given up.
    ///
    /// # Errors
    /// `NotFound` if no disk is called `old`; `Invalid` if the new one cannot be used, is too small
    /// or not empty, or if the volume changes its size just now; `Media`, `ReadOnly`.
    fn begin_replacing(&self, old: &str, new: &str) -> Result<()>;

    /// Copies some more. When everything is on the new disk, durably, that is used in place of the
    /// old one, which is made to say nothing any more.
    ///
    /// # Errors
    /// `Media` if the new disk fails, or the old one reads nothing any more; `Invalid` if nothing
    /// is under way. The old disk stays.
    fn replace_some(&self) -> Result<()>;

    /// Gives up; the old disk stays. Nothing happens if nothing is under way.
    fn stop_replacing(&self);

    /// How far it is.
    fn replace_state(&self) -> ReplaceState;
}

//! Volumes that become larger with their medium.

use crate::error::Result;

/// What a volume has of its medium, in bytes of the medium before anything is taken for the
/// volume's own records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of the medium that the volume has.
    pub bytes: u64,
    /// Bytes that there is room for now without making the medium longer, at least `bytes`: a disk
    /// may have become larger.
    pub most: u64,
    /// The fewest bytes with which the volume would be larger than now.
    pub least: u64,
    /// A volume has a multiple of these.
    pub unit: u64,
}

/// A volume that can become larger while it is in use. None can become smaller.
pub trait Grow {
    /// What the volume has, and could have.
    ///
    /// # Errors
    /// `Media` if the medium does not tell.
    fn extent(&self) -> Result<Extent>;

    /// Has `bytes` of the medium from now on, rounded down to whole units; a medium that can be
    /// made longer, as a file can, is. The new size is durable on return. After a crash the volume
    /// has one of both sizes, and all that was committed.
    ///
    /// # Errors
    /// `Invalid` if that is less than there is or too little more, more than the medium can have,
    /// or if the volume cannot grow as it is now; nothing was changed. `HostFull`, `Media`,
    /// `ReadOnly`.
    fn grow(&self, bytes: u64) -> Result<()>;
}

//! Volumes that become larger or smaller with their medium.

use super::Replace;
use crate::error::{Error, Result};
use alloc::format;
use onode_base::ErrorKind;

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
    /// About the fewest bytes that have room for what is in the volume; `bytes` if it cannot
    /// become smaller now.
    pub fewest: u64,
    /// Bytes of content that have yet to move before the volume is smaller, while it shrinks.
    pub moving: u64,
}

/// A volume that can become larger, or smaller, while it is in use.
pub trait Resize {
    /// What the volume has, and could have.
    ///
    /// # Errors
    /// `Media` if the medium does not tell.
    fn extent(&self) -> Result<Extent>;

    /// Has `bytes` of the medium from now on, rounded down to whole units; a medium that can be
    /// made longer, as a file can, is. The new size is durable on return. After a crash the volume
    /// has one of both sizes, and all that was committed. A shrink that is under way is given up.
    ///
    /// # Errors
    /// `Invalid` if that is less than there is or too little more, more than the medium can have,
    /// or if the volume cannot grow as it is now; nothing was changed. `HostFull`, `Media`,
    /// `ReadOnly`.
    fn grow(&self, bytes: u64) -> Result<()>;

    /// Goes on on another disk or file, which whoever opened the device finds by these words and
    /// knows to be empty. The volume takes it up by [`grow`](Self::grow), as what a device has that
    /// became longer; until then it is whole without it.
    ///
    /// # Errors
    /// `NotSupported` if it has one medium for ever; `Invalid` for what cannot be used, or is not
    /// empty; `Media`, `ReadOnly`.
    fn take_disk(&self, place: &str) -> Result<()> {
        let detail = format!("a volume on this kind of device does not go on on another one, as {place}");
        Err(Error::new(ErrorKind::NotSupported, detail))
    }

    /// Gives a disk of the volume another one's place; `None` if it has one medium for ever.
    fn replacing(&self) -> Option<&dyn Replace> {
        None
    }

    /// Begins to shrink to `bytes` of the medium, rounded down to whole units: from now on there is
    /// as much room as in a volume of that size. Nothing is moved yet, so this is quick, and
    /// nothing on the medium tells of it: a crash forgets that the volume was about to shrink.
    ///
    /// # Errors
    /// `Invalid` if that is too little less than there is, or too little for any volume; `NoSpace`
    /// if what is in the volume has no room there; `NotSupported` if it cannot shrink; `Media`,
    /// `ReadOnly`. Nothing was changed.
    fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        let detail = format!("a volume on this kind of device cannot become smaller, {bytes} bytes are asked for");
        Err(Error::new(ErrorKind::NotSupported, detail))
    }

    /// Moves some of what lies behind the new end. True when the volume has its new size, durably,
    /// and its medium has become shorter if it can; or if it does not shrink.
    ///
    /// # Errors
    /// `NoSpace` if too much was written meanwhile, `Corrupt` if something that would have to move
    /// is damaged, `Media`, `ReadOnly`. The volume then stays as large as it is, and has
    /// everything.
    fn shrink_some(&self) -> Result<bool> {
        Ok(true)
    }

    /// Gives up to shrink: the volume stays as large as it is.
    ///
    /// # Errors
    /// `Media` if the device cannot be used any more.
    fn stop_shrinking(&self) -> Result<()> {
        Ok(())
    }
}

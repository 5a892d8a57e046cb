//! A volume that takes up what its big disk has more than it.
//!
//! Everything stays where it is: what comes lies behind it, and begins with the pages of the bitmap
//! for it. Order:
//!
//! 1. a checkpoint of all that there is;
//! 2. the disk is made longer if it can be, and has a superblock of the volume as it is at its new
//!    end, so that there is one far from the others whatever comes of the rest;
//! 3. the pages that come read as zeros, so that nothing of a former volume passes for one of them;
//! 4. a checkpoint with the new pages. Its superblock tells the new size; until that is durable
//!    nothing but these pages lies in what came, as the volume of before does not reach there.

use crate::commit::home::Home;
use crate::medium::errors::{from_media, invalid};
use crate::medium::layout::{BLOCK, Layout};
use onode_media::MediaErrorKind;
use onode_object::Result;

impl Home<'_> {
    /// Has the blocks of `grown` from now on.
    ///
    /// # Errors
    /// `Invalid` if the disk is shorter and cannot be made longer, `HostFull`, `Media`, `ReadOnly`.
    pub fn grow(&mut self, grown: &Layout) -> Result<()> {
        self.checkpoint()?;
        // Nothing was written yet: a disk that refuses leaves the volume as it is.
        self.lengthen_disk((grown.blocks + 1) * BLOCK)?;
        self.write_all_superblocks().map_err(|error| self.fail(error))?;
        let before = self.volume.core.lock().superblock().layout;
        for area in grown.areas.from(before.blocks) {
            let bytes = (area.end() - area.first) * BLOCK;
            let zeroed = self.disks.big.lock().zero(area.first * BLOCK, bytes);
            zeroed.map_err(|error| from_media("clearing what came to the big disk", &error))?;
        }
        self.volume.core.lock().take_up(grown);
        self.checkpoint()?;
        self.write_all_superblocks().map_err(|error| self.fail(error))
    }

    fn lengthen_disk(&self, bytes: u64) -> Result<()> {
        self.disks.big.lock().grow(bytes).map_err(|error| match error.kind {
            MediaErrorKind::OutOfRange | MediaErrorKind::Invalid => invalid(error.detail),
            _ => from_media("making the big disk longer", &error),
        })
    }
}

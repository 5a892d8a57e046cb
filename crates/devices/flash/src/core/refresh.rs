//! Refreshing of segments whose bits flip, those among them that are still being filled included.

use super::Core;
use crate::cleaner::refresh::Refreshed;
use crate::policy::Stream;
use onode_object::Result;

impl Core {
    /// Refreshes a segment, or closes those that are to be and are still being filled. False if
    /// nothing could be done.
    pub fn refresh(&mut self) -> Result<bool> {
        let (cleaner, mut volume) = self.parts();
        match cleaner.refresh_one(&mut volume)? {
            Refreshed::Done => return Ok(true),
            Refreshed::Nothing => return Ok(false),
            Refreshed::IsOpen => {}
        }
        self.close_segments()?;
        // What is open yet holds access times, and these are in the tree.
        self.cleaner.refresh_mut().forget_open(self.log.table());
        Ok(true)
    }

    /// Closes the segments that are being filled, as with the volume, and the one that nodes go to,
    /// which stays open there.
    pub(super) fn close_segments(&mut self) -> Result<()> {
        self.prepare_writing()?;
        self.log.seal(Stream::Index)?;
        self.checkpoint(true)?;
        self.checkpoints.write_last_superblock(&mut self.index, &mut self.log)
    }
}

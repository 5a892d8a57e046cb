//! Deferred changes that are so many that they find room only one after the other: so many at a
//! time as one transaction may have on a full volume, with checkpoints and cleaning in between.

use crate::cleaner::Cleaner;
use crate::space::room::MUTATIONS_AT_ONCE;
use crate::volume::Volume;
use onode_object::Result;

impl Cleaner {
    /// Applies everything that is deferred. What finds no room stays deferred, which the next
    /// checkpoint stores.
    pub fn apply_deferred_in_room(&mut self, volume: &mut Volume<'_>) -> Result<()> {
        while volume.index.has_deferred() && self.gain_segments(volume, 1, true)? {
            for _ in 0..MUTATIONS_AT_ONCE {
                if volume.index.dirty_bytes() > volume.room().cleaning_dirty_limit() {
                    volume.set_free()?;
                    break;
                }
                volume.index.apply_some_deferred(volume.log, 1)?;
            }
        }
        Ok(())
    }
}

//! The volume below the cleaner: log, index, and the checkpoints that make both durable, borrowed
//! side by side.
//!
//! What moves or merges much goes through here, so that a checkpoint comes in between before what
//! has changed takes the segments that it needs. It decides nothing else.

use crate::commit::checkpoint::Checkpoints;
use crate::index::Index;
use crate::log::Log;
use crate::space::room::Room;
use onode_engine::Key;
use onode_object::validate::Stored;
use onode_object::{AttributeKey, ObjectId, Result};

/// The parts that hold a volume.
pub struct Volume<'a> {
    /// Streams, segments, medium.
    pub log: &'a mut Log,
    /// What finds objects and their content.
    pub index: &'a mut Index,
    /// What is on the medium, and what may be reused.
    pub checkpoints: &'a mut Checkpoints,
}

impl Volume<'_> {
    /// The figures of the volume now.
    pub fn room(&self) -> Room<'_> {
        Room::new(self.log, self.index, self.checkpoints.settings())
    }

    /// Bytes of changed nodes at which a checkpoint is due.
    pub const fn dirty_limit(&self) -> usize {
        self.index.entries().limits().dirty_bytes
    }

    /// A replay from the newest checkpoint, or from the next, reads journal segments from this one
    /// on.
    pub fn replay_sequence(&self) -> u32 {
        self.log.journal_position().1.min(self.checkpoints.state().journal_sequence)
    }

    /// Writes a checkpoint behind which the journal goes on.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.checkpoints.write(self.index, self.log, false)
    }

    /// Whether enough has changed for a checkpoint.
    pub fn checkpoint_is_due(&self) -> bool {
        self.checkpoints.is_due(self.index, self.log)
    }

    /// The first write of a session, see [`Checkpoints::prepare_writing`].
    pub fn prepare_writing(&mut self) -> Result<()> {
        self.checkpoints.prepare_writing(self.index, self.log)
    }

    /// A checkpoint, which sets free what the cleaner emptied. False if no segment is free after
    /// it.
    pub fn set_free(&mut self) -> Result<bool> {
        self.prepare_writing()?;
        self.checkpoint()?;
        Ok(self.log.table().allocatable() > 0)
    }

    /// Applies everything that is deferred, with checkpoints in between as the cleaner has them.
    pub fn apply_deferred_in_steps(&mut self) -> Result<()> {
        while self.index.has_deferred() {
            if self.index.dirty_bytes() > self.room().cleaning_dirty_limit() {
                self.prepare_writing()?;
                self.checkpoint()?;
            }
            self.index.apply_some_deferred(self.log, 1)?;
        }
        Ok(())
    }
}

impl Stored for Volume<'_> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        self.index.entry(self.log, &Key::attribute(object, key), <[u8]>::len)
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let onode = self.index.onode(self.log, object)?.filter(|onode| onode.allocated == onode.size);
        Ok(onode.map(|onode| onode.size))
    }
}

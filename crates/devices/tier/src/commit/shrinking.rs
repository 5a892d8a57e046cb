//! A volume that gives back the end of its big disk.
//!
//! What lies behind the new end moves in front of it, a little at a time, while the volume is in
//! use. Order:
//!
//! 1. nothing is handed out behind the new end any more, and what lies there has room in front;
//! 2. content is read, verified, and given another place; nodes there count as changed. A
//!    checkpoint has both, and until it is durable the places of before stay as they are. So a cut
//!    forgets that the volume was about to shrink, no more;
//! 3. a checkpoint of the smaller volume, with nothing behind its end. Its superblock tells the new
//!    size; until that is durable the volume has the old one;
//! 4. the disk gives back what is behind, if it can, and has a superblock at its end.

use crate::commit::Volume;
use crate::commit::home::Home;
use crate::content::plan::Source;
use crate::core::shrinking::{Moves, NextStep};
use crate::medium::errors::from_media;
use crate::medium::layout::BLOCK;
use alloc::sync::Arc;
use onode_object::Result;

/// Walks of a step at most: if there is little to move in a large tree, each step gets a part of
/// the way.
const MOST_WALKS: u32 = 256;

impl Volume {
    /// Begins to shrink to so many bytes of the big disk.
    ///
    /// # Errors
    /// `Invalid`, `NoSpace`, `Media`, `ReadOnly`.
    pub fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        // What is only held has room behind it.
        self.checkpoint()?;
        self.core.lock().begin_shrinking(bytes)
    }

    /// Shrinks a little further; true when it is done. After a refusal the volume stays as large as
    /// it is.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Media`, `ReadOnly`.
    pub fn shrink_some(&self) -> Result<bool> {
        let outcome = self.shrink_further();
        if outcome.is_err() {
            self.core.lock().stop_shrinking();
        }
        outcome
    }

    fn shrink_further(&self) -> Result<bool> {
        let next = self.core.lock().next_step();
        match next {
            NextStep::Idle => Ok(true),
            NextStep::Move(moves) => self.move_to_front(moves).map(|()| false),
            NextStep::End => self.home().end_shrinking(),
        }
    }

    /// Moves something, and makes that durable.
    fn move_to_front(&self, mut moves: Moves) -> Result<()> {
        let read = self.find_and_read(&mut moves);
        self.core.lock().unpin_moves(&moves);
        read?;
        let mut home = self.home();
        home.finish()?;
        self.core.lock().move_all(moves)?;
        home.checkpoint()
    }

    /// Finds what moves in a step, and reads it without the lock of the state. What is damaged is
    /// read again under it.
    fn find_and_read(&self, moves: &mut Moves) -> Result<()> {
        for _ in 0..MOST_WALKS {
            if self.look(|core, _| core.find_moves(moves))? {
                break;
            }
        }
        let disks = Arc::clone(self.core.lock().disks());
        disks.fetch(&mut moves.wanted, Source::Any).map(|_| ())
    }
}

impl Home<'_> {
    /// Ends where it was planned; false if something lies behind that all the same.
    fn end_shrinking(&mut self) -> Result<bool> {
        self.checkpoint()?;
        let Some(blocks) = self.volume.core.lock().end_shrinking() else { return Ok(false) };
        self.checkpoint()?;
        self.write_all_superblocks().map_err(|error| self.fail(error))?;
        let shortened = self.disks.big.lock().shrink((blocks + 1) * BLOCK);
        shortened.map_err(|error| from_media("making the big disk shorter", &error))?;
        self.write_all_superblocks().map_err(|error| self.fail(error))?;
        Ok(true)
    }
}

//! The disks are told of blocks that hold nothing of value: a few requests at each checkpoint, the rest when there is
//! nothing else to do.
//!
//! What it keeps true: the big disk is told of a block only when the checkpoint that does without it is durable, the fast
//! one when a snapshot of its map is that does not name it. A disk that refuses is not told again, and nothing fails.

use crate::core::Core;
use crate::layout::BLOCK;

/// Requests at a checkpoint.
pub const AT_ONCE: u32 = 32;
/// Requests at the end of a session.
pub const AT_CLOSE: u32 = 4096;

impl Core {
    /// Tells the big disk, in `most` requests at most, and returns how many there were.
    pub fn tell_big(&mut self, most: u32) -> u32 {
        let mut done = 0;
        while done < most
            && let Some((first, count)) = self.space.unneeded.take()
        {
            if self.disks.big.lock().discard(first * BLOCK, count * BLOCK).is_err() {
                self.options.discard = false;
                self.space.unneeded.forget();
            }
            done += 1;
        }
        done
    }
}

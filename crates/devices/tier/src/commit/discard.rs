//! The disks are told of blocks that hold nothing of value: a few requests at each checkpoint, the
//! rest when there is nothing else to do.
//!
//! What it keeps true: the big disk is told of a block only when the checkpoint that does without
//! it is durable, the fast one when a snapshot of its map is that does not name it. A disk that
//! refuses is not told again, and nothing fails.

use crate::commit::Volume;
use crate::medium::layout::BLOCK;

impl Volume {
    /// Tells the big disk, in `most` requests at most, and returns how many there were.
    pub fn discard_on_big(&self, most: u32) -> u32 {
        let mut done = 0;
        while done < most {
            let (disks, next) = {
                let mut core = self.core.lock();
                (alloc::sync::Arc::clone(core.disks()), core.begin_discard())
            };
            let Some((first, count)) = next else { break };
            disks.let_others();
            let is_refused = disks.big.lock().discard(first * BLOCK, count * BLOCK).is_err();
            self.core.lock().end_discard(is_refused);
            done += 1;
        }
        done
    }
}

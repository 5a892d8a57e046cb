//! The disks are told of blocks that hold nothing of value: a few requests at each checkpoint, the
//! rest when there is nothing else to do.
//!
//! What it keeps true: the big disk is told of a block only when the checkpoint that does without
//! it is durable, the fast one when a snapshot of its map is that does not name it. A disk that
//! refuses is not told again, and nothing fails.

use crate::commit::Volume;
use crate::core::Core;
use crate::medium::layout::BLOCK;

impl Volume {
    /// Tells the big disk, in `most` requests at most, and returns how many there were.
    pub fn discard_on_big(&self, most: u32) -> u32 {
        let mut done = 0;
        while done < most {
            let (disks, next) = {
                let mut core = self.core.lock();
                (alloc::sync::Arc::clone(&core.disks), core.space.begin_discard())
            };
            let Some((first, count)) = next else { break };
            let is_refused = disks.big.lock().discard(first * BLOCK, count * BLOCK).is_err();
            let mut core = self.core.lock();
            core.space.end_discard();
            if is_refused {
                core.options.discard = false;
                core.space.drop_discards();
            }
            done += 1;
        }
        done
    }
}

impl Core {
    /// The planted bug: the disk is told before the checkpoint that does without the blocks is
    /// durable.
    pub fn discard_early(&mut self) {
        while let Some((first, count)) = self.space.take_discard() {
            _ = self.disks.big.lock().discard(first * BLOCK, count * BLOCK);
        }
    }
}

//! Blocks that durable states still refer to: they wait until they may be used again.
//!
//! They stand in a ring that all processes see. If there is no room for more, fences make some.

use crate::core::Core;
use crate::share::shared::{HELD, RING_ENTRIES};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use onode_object::Result;

/// A block that waits until records up to its number are durable, and what they put in place is
/// too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub sequence: u64,
    pub address: u64,
    pub bytes: u64,
    /// Part of a block of whole chunks.
    pub part: bool,
}

/// All of them, the oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBlocks {
    /// The oldest entry of the ring, and the one after the newest.
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl HeldBlocks {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == self.last
    }

    const fn is_full(&self) -> bool {
        self.last - self.first == RING_ENTRIES
    }

    fn get<P: Pmem + ?Sized>(memory: &P, number: u64) -> Held {
        let [sequence, address, bytes] = HELD.load(memory, number);
        Held { sequence, address, bytes: bytes >> 1, part: bytes & 1 == 1 }
    }

    fn push<P: Pmem + ?Sized>(&mut self, memory: &P, held: &Held) {
        HELD.store(memory, self.last, [held.sequence, held.address, held.bytes << 1 | u64::from(held.part)]);
        self.last += 1;
    }

    pub(crate) fn iter<'a, P: Pmem + ?Sized>(&self, memory: &'a P) -> impl Iterator<Item = Held> + use<'a, P> {
        (self.first..self.last).map(|number| Self::get(memory, number))
    }
}

impl<P: Pmem> Core<P> {
    /// A block that the record of a number gave up waits from now on.
    pub(crate) fn hold(&mut self, held: &Held) -> Result<()> {
        if self.held.is_full() {
            self.release_all_held()?;
        }
        self.held.push(&*self.memory, held);
        Ok(())
    }

    /// Gives back the blocks that no durable state refers to and no recovery looks at.
    pub(crate) fn release_held(&mut self) {
        let durable = self.log.fenced.min(self.log.applied);
        while !self.held.is_empty() {
            let held = HeldBlocks::get(&*self.memory, self.held.first);
            let waits = held.sequence >= durable && !is_planted(Bug::ScmHeldReused);
            if waits || self.doubted.overlaps(held.address, held.bytes) {
                break;
            }
            self.held.first += 1;
            if is_planted(Bug::FullScmSpaceLeaked) {
                continue;
            }
            if held.part {
                self.blocks.release_part(held.address, held.bytes);
            } else {
                self.blocks.release(held.address, held.bytes);
            }
        }
    }

    /// Gets back every block that is only held. Afterwards nothing waits for a fence.
    pub(crate) fn release_all_held(&mut self) -> Result<()> {
        if self.log.fenced < self.log.sequence {
            self.fence()?;
        }
        if !self.held.is_empty() {
            self.fence()?;
        }
        if !self.held.is_empty() {
            self.write_superblock(false)?;
        }
        Ok(())
    }
}

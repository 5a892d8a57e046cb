//! Deferred frees: blocks that durable states still refer to, in the order of the records that gave
//! them up.
//!
//! A block is released for reuse when its record is durable, what that record puts in place is
//! durable too, and no recovery verifies its bytes any more. The blocks stand in a ring that all
//! processes see. Whoever finds the ring full has to make records durable first: that is not done
//! here.

use crate::medium::shared_area::{DEFERRED_FREES, Window};
use crate::space::Blocks;
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;

/// A block that waits until records up to its number are durable, and what they put in place is
/// too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredFree {
    pub sequence: u64,
    pub address: u64,
    pub bytes: u64,
    /// Part of a block of whole chunks.
    pub part: bool,
}

/// All of them, the oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeferredFrees {
    window: Window,
}

impl DeferredFrees {
    pub(crate) const fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.window.len() == DEFERRED_FREES.entries()
    }

    /// The entries of the ring that count.
    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    /// Takes over what other processes did to the ring.
    pub(crate) const fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    fn get<P: Pmem + ?Sized>(memory: &P, number: u64) -> DeferredFree {
        let [sequence, address, bytes] = DEFERRED_FREES.load(memory, number);
        DeferredFree { sequence, address, bytes: bytes >> 1, part: bytes & 1 == 1 }
    }

    /// One more, the newest; there must be room.
    pub(crate) fn push<P: Pmem + ?Sized>(&mut self, memory: &P, free: &DeferredFree) {
        let entry = [free.sequence, free.address, free.bytes << 1 | u64::from(free.part)];
        DEFERRED_FREES.store(memory, self.window.last, entry);
        self.window.last += 1;
    }

    pub(crate) fn iter<'a, P: Pmem + ?Sized>(&self, memory: &'a P) -> impl Iterator<Item = DeferredFree> + use<'a, P> {
        (self.window.first..self.window.last).map(|number| Self::get(memory, number))
    }

    /// Gives the oldest ones back to `blocks`, up to the first whose record is not below `durable`,
    /// or whose bytes a recovery verifies.
    pub(crate) fn release_below<P: Pmem>(
        &mut self,
        blocks: &Blocks<P>,
        durable: u64,
        is_unverified: impl Fn(u64, u64) -> bool,
    ) {
        while !self.is_empty() {
            let free = Self::get(&**blocks.pmem(), self.window.first);
            let waits = free.sequence >= durable && !is_planted(Bug::ScmHeldReused);
            if waits || is_unverified(free.address, free.bytes) {
                break;
            }
            self.window.first += 1;
            if is_planted(Bug::FullScmSpaceLeaked) {
                continue;
            }
            if free.part {
                blocks.release_part(free.address, free.bytes);
            } else {
                blocks.release(free.address, free.bytes);
            }
        }
    }
}

//! Unflushed ranges: content that was stored and waits for a sync to be flushed.
//!
//! They stand in a ring that all processes see: whoever syncs flushes what any of them has stored.
//! A range is flushed at the latest when the ring is full. Fences are not made here.

use crate::medium::shared_area::{UNFLUSHED, Window};
use onode_base::planted::{Bug, is_planted};
use onode_media::Pmem;
use std::ops::Range;

/// The ranges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnflushedRanges {
    window: Window,
}

impl UnflushedRanges {
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// The entries of the ring that count.
    pub(crate) const fn window(&self) -> Window {
        self.window
    }

    /// Takes over what other processes stored and flushed.
    pub(crate) const fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// These bytes wait.
    pub(crate) fn insert<P: Pmem + ?Sized>(&mut self, memory: &P, address: u64, length: u64) {
        let Window { first, last } = self.window;
        if first < last {
            let [start, before, _] = UNFLUSHED.load(memory, last - 1);
            if start + before == address || start == address {
                let length = if start == address { before.max(length) } else { before + length };
                return UNFLUSHED.store(memory, last - 1, [start, length, 0]);
            }
        }
        if self.window.len() >= UNFLUSHED.entries() {
            self.flush(memory);
        }
        UNFLUSHED.store(memory, self.window.last, [address, length, 0]);
        self.window.last += 1;
    }

    /// Whether any of these bytes waits.
    pub(crate) fn overlaps<P: Pmem + ?Sized>(&self, memory: &P, bytes: &Range<u64>) -> bool {
        (self.window.first..self.window.last).any(|number| {
            let [address, length, _] = UNFLUSHED.load(memory, number);
            address < bytes.end && bytes.start < address + length
        })
    }

    /// Flushes all of them.
    pub(crate) fn flush<P: Pmem + ?Sized>(&mut self, memory: &P) {
        for number in self.window.first..self.window.last {
            if is_planted(Bug::ScmMetaNotFlushed) {
                break;
            }
            let [address, length, _] = UNFLUSHED.load(memory, number);
            memory.flush(address, length);
        }
        self.window.first = self.window.last;
    }
}

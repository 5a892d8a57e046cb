//! The chain of segments: the head of each names the next one, so it needs no table.
//!
//! Three words say all of it, and any process that has them has the chain. It writes no head:
//! whoever opens a segment does.

use onode_media::Pmem;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The segments of the log, oldest first: the head of each names the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Chain {
    first: u64,
    last: u64,
    count: u64,
}

impl Chain {
    /// Where a segment's head names the next one.
    const NEXT: u64 = 24;

    pub(crate) const EMPTY: Self = Self { first: 0, last: 0, count: 0 };

    /// Segments whose heads name each other already, oldest first.
    pub(crate) fn of(segments: &[u64]) -> Self {
        let count = segments.len() as u64;
        Self { first: *segments.first().unwrap_or(&0), last: *segments.last().unwrap_or(&0), count }
    }

    /// The oldest one; 0 if there is none.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// The newest one, if there is one.
    pub(crate) const fn last(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.last) }
    }

    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    /// The segment after one.
    pub(crate) fn after<P: Pmem + ?Sized>(memory: &P, address: u64) -> u64 {
        memory.load(address + Self::NEXT)
    }

    /// One more, which the last one names.
    pub(crate) const fn push(&mut self, address: u64) {
        if self.count == 0 {
            self.first = address;
        }
        self.last = address;
        self.count += 1;
    }

    /// Takes the oldest away.
    pub(crate) fn pop<P: Pmem + ?Sized>(&mut self, memory: &P) {
        self.first = Self::after(memory, self.first);
        self.count -= 1;
    }

    /// All of them.
    pub(crate) fn addresses<P: Pmem + ?Sized>(&self, memory: &P) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.len());
        let mut next = self.first;
        for _ in 0..self.count {
            all.push(next);
            if next != self.last {
                next = Self::after(memory, next);
            }
        }
        all
    }
}

//! Where the processes that use one device keep what they tell each other: the lock, a counter of
//! changes, words, and rings of fixed length. Nothing of it is durable.
//!
//! It knows where each of them lies. What the words mean is for [`words`](crate::share::words) to
//! say, and what the entries of a ring mean for whoever owns the ring.

use crate::medium::format::{AREA_START, SHARED_START};
use onode_media::Pmem;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The lock of all processes.
pub(crate) const LOCK: u64 = SHARED_START;
/// Counts how often the words were changed.
pub(crate) const CHANGES: u64 = SHARED_START + 8;
/// Counts how many changes began.
pub(crate) const BEGUN: u64 = SHARED_START + 16;
/// The words.
pub(crate) const WORDS_START: u64 = SHARED_START + 64;
/// What all words may take at most.
pub(crate) const WORDS_BYTES_MAX: u64 = 512 - 64;
const RINGS_START: u64 = SHARED_START + 512;
const RING_ENTRIES: u64 = 1024;
const ENTRY_WORDS: u64 = 3;
const RING_BYTES: u64 = RING_ENTRIES * ENTRY_WORDS * 8;
/// Blocks whose release is deferred.
pub(crate) const DEFERRED_FREES: Ring = Ring::new(RINGS_START, RING_ENTRIES);
/// Ranges whose checksum a recovery verifies.
pub(crate) const UNVERIFIED: Ring = Ring::new(RINGS_START + RING_BYTES, RING_ENTRIES);
/// Ranges that wait to be flushed.
pub(crate) const UNFLUSHED: Ring = Ring::new(RINGS_START + 2 * RING_BYTES, 256);

const _: () = assert!(UNFLUSHED.end() <= AREA_START);

/// Entries of three words, found by numbers that only grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    start: u64,
    entries: u64,
}

/// The entries of a ring that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Window {
    /// The oldest entry.
    pub first: u64,
    /// The one after the newest.
    pub last: u64,
}

impl Window {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == self.last
    }

    pub(crate) const fn len(&self) -> u64 {
        self.last - self.first
    }
}

impl Ring {
    const fn new(start: u64, entries: u64) -> Self {
        Self { start, entries }
    }

    pub(crate) const fn entries(self) -> u64 {
        self.entries
    }

    const fn end(self) -> u64 {
        self.start + self.entries * ENTRY_WORDS * 8
    }

    pub(crate) fn load<P: Pmem + ?Sized>(self, memory: &P, number: u64) -> [u64; 3] {
        let at = self.start + number % self.entries * ENTRY_WORDS * 8;
        [0, 8, 16].map(|word| memory.load(at + word))
    }

    pub(crate) fn store<P: Pmem + ?Sized>(self, memory: &P, number: u64, entry: [u64; 3]) {
        let at = self.start + number % self.entries * ENTRY_WORDS * 8;
        [0, 8, 16].into_iter().zip(entry).for_each(|(word, value)| memory.store(at + word, value));
    }
}

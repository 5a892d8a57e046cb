//! What the processes that use one device tell each other: words in the memory, none of them
//! durable.
//!
//! Whoever holds the lock ([`turn`](crate::share::turn)) has the truth in its own [`Core`] and
//! leaves it here when it lets go; the next one takes it over from here if somebody else was there
//! in between. The words hold no list: lists are links in the memory
//! ([`Stack`](crate::space::stack::Stack), [`Chain`](crate::log::Chain)) or rings of fixed length
//! behind the words. If a holder dies, nothing here counts any more, and the next one makes all of
//! it anew from the log.

use crate::core::Core;
use crate::index::known::Known;
use crate::medium::format::{AREA_START, SHARED_START};
use core::sync::atomic::{AtomicU64, Ordering};
use onode_media::{Domain, Pmem};

/// The lock.
pub(crate) const LOCK: u64 = SHARED_START;
/// Counts what was left here.
pub(crate) const CHANGES: u64 = SHARED_START + 8;
const WORDS_START: u64 = SHARED_START + 64;
const WORDS: usize = 34;
/// Entries of a ring.
pub(crate) const RING_ENTRIES: u64 = 1024;
const ENTRY_WORDS: u64 = 3;
const RING_BYTES: u64 = RING_ENTRIES * ENTRY_WORDS * 8;
/// Blocks that are held.
pub(crate) const HELD: Ring = Ring::new(SHARED_START + 512, RING_ENTRIES);
/// Ranges that are doubted.
pub(crate) const DOUBTED: Ring = Ring::new(SHARED_START + 512 + RING_BYTES, RING_ENTRIES);
/// Ranges that wait to be flushed.
pub(crate) const UNFLUSHED: Ring = Ring::new(SHARED_START + 512 + 2 * RING_BYTES, 256);

const _: () = assert!(WORDS as u64 * 8 <= 512 - 64 && UNFLUSHED.end() <= AREA_START);

/// Entries of three words, found by numbers that only grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    start: u64,
    entries: u64,
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

/// The words as a holder left them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words([u64; WORDS]);

impl Default for Words {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

/// Says once where each word is kept in a core, the first one being what [`Words::next_id`] reads.
macro_rules! words_of {
    ($core:expr) => {
        words_of!(
            $core; next_id, tree.root.address, tree.nodes, tree.kept.first, tree.kept.count, log.session,
            log.segments.first, log.segments.last, log.segments.count, log.tail_sequence, log.next, log.spare.first,
            log.spare.count, log.position, log.sequence, log.fenced, log.applied, log.flushed, log.doubted_from,
            superblock.generation, held.first, held.last, doubted.first, doubted.last, last_shrink,
            last_put_and_shrink, live_log_bytes, objects, commits, failures, recoveries,
            unflushed.first, unflushed.last, superblock.features
        )
    };
    ($core:expr; $($($place:ident).+),*) => {
        [$($core.$($place).+),*]
    };
}

impl<P: Pmem> Core<P> {
    #[inline]
    const fn words(&self) -> Words {
        Words(words_of!(self))
    }

    fn set_words(&mut self, words: &Words) {
        let (failures, known) = (self.failures, self.doubted.last);
        words_of!(self) = words.0;
        let (first, last) = (self.doubted.first, std::mem::replace(&mut self.doubted.last, known));
        self.doubted.follow(&*self.memory, first, last);
        self.failures = self.failures.max(failures);
        if self.failures > 0 && self.read_only.is_none() {
            self.read_only = Some("a failure before, in another process".to_owned());
        }
    }

    /// Leaves the words for whoever comes next; what is as it was is not stored again.
    pub(crate) fn leave_words(&mut self) {
        let now = self.words();
        let places = self.memory.words(WORDS_START, WORDS as u64);
        let places: Option<&[AtomicU64; WORDS]> = places.and_then(|places| places.try_into().ok());
        let left = &mut self.left.0;
        let mut is_changed = false;
        // Counted, not chained: this is done at the end of each turn.
        let mut number = 0;
        while number < WORDS {
            let word = now.0[number];
            if word != left[number] {
                (left[number], is_changed) = (word, true);
                match places {
                    Some(places) => places[number].store(word.to_le(), Ordering::Release),
                    None => self.memory.store(WORDS_START + number as u64 * 8, word),
                }
            }
            number += 1;
        }
        if !is_changed {
            return;
        }
        let before = self.changes;
        self.changes += 1;
        let is_unfenced = self.log.fenced < self.log.sequence || self.log.applied < self.log.flushed;
        if is_unfenced && self.memory.domain() == Domain::Flush {
            // What this processor has flushed may be fenced by another one: an exchange orders it
            // before, a store does not.
            let _ = self.memory.compare_exchange(CHANGES, before, self.changes);
        } else {
            self.memory.store(CHANGES, self.changes);
        }
    }

    /// Leaves all of the words, whatever was there.
    pub(crate) fn leave_first_words(&mut self) {
        self.left = self.words();
        for (number, value) in (0..).zip(&self.left.0) {
            self.memory.store(WORDS_START + number * 8, *value);
        }
        self.changes = 1;
        self.memory.store(CHANGES, self.changes);
    }

    /// Takes the words over that another process left.
    pub(crate) fn take_words(&mut self) {
        self.changes = self.memory.load(CHANGES);
        self.known = Known::below(u64::MAX);
        let mut words = Words::default();
        for (number, value) in (0..).zip(&mut words.0) {
            *value = self.memory.load(WORDS_START + number * 8);
        }
        if words == self.left {
            return;
        }
        // Where leaves were found before says nothing any more.
        self.tree.fingers.clear();
        // Another process may have put bytes in place.
        self.last_put = u64::MAX;
        let commits = self.commits;
        self.set_words(&words);
        self.known = Known::below(self.next_id);
        self.left = words;
        self.others_commits += u64::from(commits != self.commits);
        // What another process flushed is not known to the medium of this one.
        self.has_foreign |= self.log.fenced < self.log.sequence || self.log.applied < self.log.flushed;
    }
}

impl Words {
    /// The first id that no object was promised, as the words say without a lock.
    pub(crate) fn next_id<P: Pmem + ?Sized>(memory: &P) -> u64 {
        memory.load(WORDS_START)
    }
}

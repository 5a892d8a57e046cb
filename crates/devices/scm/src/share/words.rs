//! What the processes that use one device tell each other: words in the memory, none of them
//! durable.
//!
//! Whoever holds the [lock](crate::share::process_lock) has the truth in its own parts of the
//! device and leaves it here when it lets go; the next one takes it over from here if somebody else
//! was there in between. The words hold no list: lists are links in the memory
//! ([`FreeList`](crate::space::free_list::FreeList), [`Chain`](crate::log::chain::Chain)) or
//! [rings](crate::medium::shared_area::Ring) of fixed length behind the words. If a holder dies,
//! nothing here counts any more, and the next one makes all of it anew from the log.

use crate::index::tree::TreeState;
use crate::log::LogState;
use crate::medium::shared_area::{CHANGES, WORDS_BYTES_MAX, WORDS_START, Window};
use core::sync::atomic::{AtomicU64, Ordering};
use onode_media::{Domain, Pmem};
use zerocopy::{FromBytes, Immutable, IntoBytes, transmute};

/// The words, each part's in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct Words {
    pub next_id: u64,
    pub tree: TreeState,
    pub log: LogState,
    pub generation: u64,
    pub deferred: Window,
    pub unverified: Window,
    pub last_shrink: u64,
    pub last_put_and_shrink: u64,
    pub live_log_bytes: u64,
    pub objects: u64,
    pub commits: u64,
    pub failures: u64,
    pub recoveries: u64,
    pub unflushed: Window,
    pub features: u64,
}

/// How many they are.
const COUNT: usize = size_of::<Words>() / 8;
const _: () = assert!(COUNT * 8 == size_of::<Words>() && COUNT as u64 * 8 <= WORDS_BYTES_MAX);

/// The words one by one.
type Numbers = [u64; COUNT];

/// The words as this process knows them, and how often any process changed them.
#[derive(Debug)]
pub(crate) struct SharedWords {
    known: Numbers,
    changes: u64,
}

impl SharedWords {
    /// Nothing is known yet.
    pub(crate) const fn unknown() -> Self {
        Self { known: [0; COUNT], changes: 0 }
    }

    /// How often any process changed them.
    #[inline]
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether another process changed them since.
    #[inline]
    pub(crate) fn are_changed<P: Pmem + ?Sized>(&self, memory: &P) -> bool {
        memory.load(CHANGES) != self.changes
    }

    /// Leaves the words for whoever comes next; what is as it was is not stored again. Whether any
    /// record or store `is_undurable`.
    pub(crate) fn leave<P: Pmem + ?Sized>(&mut self, memory: &P, words: Words, is_undurable: bool) {
        let now: Numbers = transmute!(words);
        let places = memory.words(WORDS_START, COUNT as u64);
        let places: Option<&[AtomicU64; COUNT]> = places.and_then(|places| places.try_into().ok());
        let known = &mut self.known;
        let mut is_changed = false;
        // Counted, not chained: this is done each time that the lock is given back.
        let mut number = 0;
        while number < COUNT {
            let word = now[number];
            if word != known[number] {
                (known[number], is_changed) = (word, true);
                match places {
                    Some(places) => places[number].store(word.to_le(), Ordering::Release),
                    None => memory.store(WORDS_START + number as u64 * 8, word),
                }
            }
            number += 1;
        }
        if !is_changed {
            return;
        }
        let before = self.changes;
        self.changes += 1;
        if is_undurable && memory.domain() == Domain::Flush {
            // What this processor has flushed may be fenced by another one: an exchange orders it
            // before, a store does not.
            let _ = memory.compare_exchange(CHANGES, before, self.changes);
        } else {
            memory.store(CHANGES, self.changes);
        }
    }

    /// Leaves all of the words, whatever was there.
    pub(crate) fn leave_first<P: Pmem + ?Sized>(&mut self, memory: &P, words: Words) {
        self.known = transmute!(words);
        for (number, value) in (0..).zip(&self.known) {
            memory.store(WORDS_START + number * 8, *value);
        }
        self.changes = 1;
        memory.store(CHANGES, self.changes);
    }

    /// Takes the words over that another process left; `None` if they are as they were.
    pub(crate) fn take<P: Pmem + ?Sized>(&mut self, memory: &P) -> Option<Words> {
        self.changes = memory.load(CHANGES);
        let mut found: Numbers = [0; COUNT];
        for (number, value) in (0..).zip(&mut found) {
            *value = memory.load(WORDS_START + number * 8);
        }
        if found == self.known {
            return None;
        }
        self.known = found;
        Some(transmute!(found))
    }
}

/// The first id that no object was promised, as the words say without a lock.
pub(crate) fn shared_next_id<P: Pmem + ?Sized>(memory: &P) -> u64 {
    memory.load(WORDS_START)
}

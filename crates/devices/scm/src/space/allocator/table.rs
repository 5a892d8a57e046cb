//! The shared state in the region: words, lists of chunks, counts. Nothing here takes the lock.

use super::class::{ClassTable, Classes};
use super::entry::Entry;
use super::layout::Layout;
use core::sync::atomic::{AtomicU64, Ordering};
use onode_media::Pmem;

/// The entry of a chunk, found once to be looked at and changed.
pub(super) enum EntryPlace<'a, P> {
    /// Where the memory lets it be looked at.
    Word(&'a AtomicU64),
    /// Where it sees each access.
    Seen(&'a P, u64),
}

impl<P: Pmem> EntryPlace<'_, P> {
    #[inline]
    pub(super) fn get(&self) -> Entry {
        Entry(match self {
            Self::Word(word) => u64::from_le(word.load(Ordering::Acquire)),
            Self::Seen(pmem, at) => pmem.load(*at),
        })
    }

    #[inline]
    pub(super) fn set(&self, entry: Entry) {
        match self {
            Self::Word(word) => word.store(entry.0.to_le(), Ordering::Release),
            Self::Seen(pmem, at) => pmem.store(*at, entry.0),
        }
    }
}

/// The side tables of one area.
pub(super) struct Table<P> {
    pub(super) pmem: P,
    pub(super) layout: Layout,
    pub(super) classes: ClassTable,
}

impl<P: Pmem> Table<P> {
    pub(super) fn new(pmem: P, layout: Layout, which: Classes) -> Self {
        Self { pmem, layout, classes: ClassTable::new(layout.chunk_bytes(), which) }
    }

    #[inline]
    pub(super) fn entry_place(&self, chunk: u64) -> EntryPlace<'_, P> {
        let at = self.layout.entry(chunk);
        match self.pmem.words(at, 1) {
            Some([word]) => EntryPlace::Word(word),
            _ => EntryPlace::Seen(&self.pmem, at),
        }
    }

    #[inline]
    pub(super) fn entry(&self, chunk: u64) -> Entry {
        Entry(self.pmem.load(self.layout.entry(chunk)))
    }

    pub(super) fn set_entry(&self, chunk: u64, entry: Entry) {
        self.pmem.store(self.layout.entry(chunk), entry.0);
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.pmem.load(self.layout.free_bytes())
    }

    /// Changes the count of free bytes.
    pub(super) fn count_free(&self, more: u64, less: u64) {
        self.pmem.store(self.layout.free_bytes(), self.free_bytes().wrapping_add(more).wrapping_sub(less));
    }

    /// The first chunk of a list.
    pub(super) fn first(&self, head: u64) -> Option<u64> {
        self.pmem.load(head).checked_sub(1)
    }

    /// The chunk that follows in the list that a chunk is in.
    pub(super) fn next(&self, chunk: u64) -> Option<u64> {
        (self.pmem.load(self.layout.link(chunk)) & u64::from(u32::MAX)).checked_sub(1)
    }

    fn set_link(&self, chunk: u64, next: u64, previous: u64) {
        self.pmem.store(self.layout.link(chunk), next | previous << 32);
    }

    fn link(&self, chunk: u64) -> (u64, u64) {
        let link = self.pmem.load(self.layout.link(chunk));
        (link & u64::from(u32::MAX), link >> 32)
    }

    /// Puts a chunk at the front of a list.
    pub(super) fn push(&self, head: u64, chunk: u64) {
        let next = self.pmem.load(head);
        self.set_link(chunk, next, 0);
        if let Some(next) = next.checked_sub(1) {
            let (after, _) = self.link(next);
            self.set_link(next, after, chunk + 1);
        }
        self.pmem.store(head, chunk + 1);
    }

    /// Takes a chunk out of the list that begins at `head`.
    pub(super) fn unlink(&self, head: u64, chunk: u64) {
        let (next, previous) = self.link(chunk);
        if let Some(next) = next.checked_sub(1) {
            let (after, _) = self.link(next);
            self.set_link(next, after, previous);
        }
        match previous.checked_sub(1) {
            Some(before) => {
                let (_, first) = self.link(before);
                self.set_link(before, next, first);
            }
            None => self.pmem.store(head, next),
        }
    }

    /// Free blocks of a small chunk, and the word of the bitmap before which none is free.
    pub(super) fn count(&self, chunk: u64) -> (u64, u64) {
        let count = self.pmem.load(self.layout.count(chunk));
        (count & u64::from(u32::MAX), count >> 32)
    }

    pub(super) fn set_count(&self, chunk: u64, free: u64, hint: u64) {
        self.pmem.store(self.layout.count(chunk), free | hint << 32);
    }
}

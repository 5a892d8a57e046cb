//! The buddy over whole chunks: pieces that are cut, merged, and joined to blocks of any number of
//! chunks.
//!
//! A block is a row of pieces: its head, which says how many chunks the block has, and further
//! ones. What is valid after each single store: pieces behind a head that it does not reach belong
//! to no block and are free. So a block comes to life with the store of its head, grows and shrinks
//! with it, and dies with it; and a head within the reach of one before it cuts that one short.
//! Lists of free pieces are caches of the table.

use super::entry::{Entry, State};
use super::layout::ORDERS;
use super::table::Table;
use onode_media::Pmem;

/// The pieces of the chunks `from..to`: the largest that their place and the end allow.
pub(super) fn pieces(from: u64, to: u64) -> impl Iterator<Item = (u64, u32)> {
    let mut at = from;
    core::iter::from_fn(move || {
        let left = to.checked_sub(at).filter(|left| *left > 0)?;
        let order = left.ilog2().min(at.trailing_zeros()).min(ORDERS as u32 - 1);
        let piece = (at, order);
        at += 1 << order;
        Some(piece)
    })
}

impl<P: Pmem> Table<P> {
    /// The piece that a chunk lies in: its first chunk and its entry.
    pub(super) fn piece_of(&self, chunk: u64) -> (u64, Entry) {
        let entry = self.entry(chunk);
        if !entry.is(State::Free) {
            return (chunk, entry);
        }
        // A stale entry lies wholly within the piece that covers it, so the first that reaches,
        // from the coarsest on, is the piece.
        let orders = self.layout.chunks.ilog2();
        for order in (1..=orders).rev() {
            let first = chunk >> order << order;
            let entry = self.entry(first);
            if entry.order() >= order && entry.order() < ORDERS as u32 {
                return (first, entry);
            }
        }
        (chunk, entry)
    }

    fn push_free(&self, first: u64, order: u32) {
        self.push(self.layout.order_head(order), first);
    }

    fn unlink_free(&self, first: u64, order: u32) {
        self.unlink(self.layout.order_head(order), first);
    }

    /// Makes all chunks free pieces, in an area of zeros.
    pub(super) fn tile_free(&self) {
        for (first, order) in pieces(0, self.layout.chunks) {
            self.set_entry(first, Entry::free().with_order(order));
            self.push_free(first, order);
        }
        self.count_free(self.layout.chunks << self.layout.chunk_shift, 0);
    }

    /// Makes `first` a free piece, merged with its buddies as far as they are free.
    pub(super) fn free_piece(&self, mut first: u64, mut order: u32) {
        self.set_entry(first, Entry::free().with_order(order));
        self.count_free(1 << order << self.layout.chunk_shift, 0);
        let mut merged = false;
        while order + 1 < ORDERS as u32 {
            let buddy = first ^ (1 << order);
            // An entry of just this order cannot be stale here: what covered it would cover `first`
            // too.
            if buddy + (1 << order) > self.layout.chunks || self.entry(buddy) != Entry::free().with_order(order) {
                break;
            }
            self.unlink_free(buddy, order);
            first = first.min(buddy);
            order += 1;
            merged = true;
        }
        if merged {
            self.set_entry(first, Entry::free().with_order(order));
        }
        self.push_free(first, order);
    }

    /// Takes the chunks `from..to`, all of them free, for the block that begins at `owner`: the
    /// piece at `from` gets `head` last of all; without one all pieces are further ones.
    pub(super) fn carve(&self, from: u64, to: u64, owner: u64, head: Option<Entry>) {
        let mut end = to;
        loop {
            let (first, entry) = self.piece_of(end - 1);
            self.unlink_free(first, entry.order());
            let begin = from.max(first);
            let mut committed = None;
            let mut put = |at: u64, entry: Entry| {
                if at == first {
                    committed = Some(entry);
                } else {
                    self.set_entry(at, entry);
                }
            };
            for (at, order) in pieces(first, begin).chain(pieces(end, first + entry.chunks())) {
                put(at, Entry::free().with_order(order));
                self.push_free(at, order);
            }
            for (at, order) in pieces(begin, end) {
                let used = if at == from { head } else { None };
                put(at, used.unwrap_or(Entry::further(at - owner)).with_order(order));
            }
            if let Some(entry) = committed {
                self.set_entry(first, entry);
            }
            if first <= from {
                break;
            }
            end = first;
        }
        self.count_free(0, (to - from) << self.layout.chunk_shift);
    }

    /// Where `chunks` free chunks lie in a row: in the smallest free piece that holds them, else
    /// wherever pieces meet.
    fn find(&self, chunks: u64) -> Option<u64> {
        if chunks == 0 || chunks > self.layout.chunks {
            return None;
        }
        let order = chunks.next_power_of_two().ilog2();
        (order..ORDERS as u32)
            .find_map(|order| self.first(self.layout.order_head(order)))
            .or_else(|| self.free_rows(|_, length| length >= chunks))
    }

    /// The first row of free chunks that `wanted(first, length)` likes.
    pub(super) fn free_rows(&self, mut wanted: impl FnMut(u64, u64) -> bool) -> Option<u64> {
        let (mut at, mut row) = (0, None);
        while at < self.layout.chunks {
            let entry = self.entry(at);
            let next = at + entry.chunks();
            if entry.is(State::Free) {
                let first = *row.get_or_insert(at);
                if (next >= self.layout.chunks || !self.entry(next).is(State::Free)) && wanted(first, next - first) {
                    return Some(first);
                }
            } else {
                row = None;
            }
            at = next;
        }
        None
    }

    /// The first of so many chunks in a row, all of them free, which are about to be used.
    fn find_to_use(&self, chunks: u64) -> Option<u64> {
        let first = self.find(chunks)?;
        self.pmem.prepare(self.layout.address_of(first), chunks << self.layout.chunk_shift);
        Some(first)
    }

    /// A new block of whole chunks.
    pub(super) fn allocate_run(&self, chunks: u64, lease: u16) -> Option<u64> {
        let first = self.find_to_use(chunks)?;
        self.carve(first, first + chunks, first, Some(Entry::head(chunks, lease)));
        Some(first)
    }

    /// A new chunk for blocks of a class.
    pub(super) fn allocate_small_chunk(&self, class: usize, lease: u16) -> Option<u64> {
        let first = self.find_to_use(1)?;
        self.carve(first, first + 1, first, Some(Entry::small(class, lease)));
        Some(first)
    }

    /// Frees the pieces from `from` to `to`, which are not reached by a head any more but for the
    /// one at `from`.
    fn free_pieces(&self, from: u64, to: u64) {
        let mut at = from;
        while at < to {
            let entry = self.entry(at);
            self.free_piece(at, entry.order());
            at += entry.chunks();
        }
    }

    /// Frees the block whose head is `first`.
    pub(super) fn release_run(&self, first: u64) {
        self.free_pieces(first, first + self.entry(first).value());
    }

    /// Makes `at`, within the block of `owner`, the first chunk of a piece.
    fn split(&self, at: u64, owner: u64) {
        let (first, entry) = self.piece_of(at);
        if first == at {
            return;
        }
        let mut own = entry.order();
        for (begin, order) in pieces(first, at).chain(pieces(at, first + entry.chunks())) {
            if begin == first {
                own = order;
            } else {
                self.set_entry(begin, Entry::further(begin - owner).with_order(order));
            }
        }
        self.set_entry(first, entry.with_order(own));
    }

    /// Frees the chunks `from..to` of the block of `owner`; what is behind them becomes a block of
    /// its own.
    pub(super) fn release_run_part(&self, owner: u64, from: u64, to: u64) {
        let head = self.entry(owner);
        let end = owner + head.value();
        if to < end {
            self.split(to, owner);
        }
        self.split(from, owner);
        if to < end {
            let rest = self.entry(to);
            self.set_entry(to, self.entry(owner).with_order(rest.order()).with_value(end - to));
        }
        if from > owner {
            self.set_entry(owner, self.entry(owner).with_value(from - owner));
        }
        if to < end {
            let mut at = to + self.entry(to).chunks();
            while at < end {
                let entry = self.entry(at);
                self.set_entry(at, entry.with_value(at - to));
                at += entry.chunks();
            }
        }
        self.free_pieces(from, to);
    }

    /// Lengthens the block of `first` to `chunks`, if those behind it are free.
    pub(super) fn extend_run(&self, first: u64, chunks: u64) -> bool {
        let head = self.entry(first);
        let (from, to) = (first + head.value(), first.saturating_add(chunks));
        if to > self.layout.chunks {
            return false;
        }
        let mut at = from;
        while at < to {
            let entry = self.entry(at);
            if !entry.is(State::Free) {
                return false;
            }
            at += entry.chunks();
        }
        if from < to {
            self.carve(from, to, first, None);
            self.set_entry(first, self.entry(first).with_value(chunks));
        }
        true
    }
}

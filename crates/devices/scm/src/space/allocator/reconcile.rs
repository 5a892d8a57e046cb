//! After the death of a process in the middle of a change of the device: what the log names is what
//! the device has.
//!
//! The blocks that live processes hold stay as they are; only those of the device and of its
//! objects follow the log. Interrupted, it begins again and comes to the same.

use super::entry::{Entry, State};
use super::table::Table;
use super::{Allocator, Claim};
use onode_media::Pmem;
use std::vec::Vec;

/// A block that the log names: where it begins, and its bytes.
pub(crate) type Named = (u64, u64);

/// What the walk over all pieces leaves to be done.
#[derive(Default)]
struct Left {
    /// Chunks that no object has any more: the head of their block, from and to.
    gaps: Vec<(u64, u64, u64)>,
    /// Blocks that are not there.
    missing: Vec<Named>,
}

impl<P: Pmem> Table<P> {
    /// Makes a block that a recovery found live.
    pub(super) fn claim(&self, at: u64, bytes: u64) -> Result<(), Claim> {
        let chunk = self.layout.chunk_of(at).ok_or(Claim::OutOfArea)?;
        let offset = at - self.layout.address_of(chunk);
        if let Some(class) = self.classes.of(bytes) {
            let index = self.classes.get(class).begins(offset).ok_or(Claim::Misaligned)?;
            let (_, entry) = self.piece_of(chunk);
            match entry.state() {
                Some(State::Free) => {}
                Some(State::Small) if entry.value() == class as u64 => {}
                Some(State::Small) => return Err(Claim::OtherClass),
                Some(State::Head | State::Further) | None => return Err(Claim::Overlap),
            }
            return if self.claim_small(chunk, class, index) { Ok(()) } else { Err(Claim::Overlap) };
        }
        if offset != 0 {
            return Err(Claim::Misaligned);
        }
        let chunks = self.layout.chunks_for(bytes);
        let end = chunk.checked_add(chunks).filter(|end| *end <= self.layout.chunks).ok_or(Claim::OutOfArea)?;
        let mut next = chunk;
        while next < end {
            let (first, entry) = self.piece_of(next);
            if !entry.is(State::Free) {
                return Err(Claim::Overlap);
            }
            next = first + entry.chunks();
        }
        self.carve(chunk, end, chunk, Some(Entry::head(chunks, 0)));
        Ok(())
    }

    /// Sets the bits of a chunk of small blocks by what is named in it.
    fn reconcile_small(&self, chunk: u64, entry: Entry, named: &[Named]) -> Result<(), (u64, Claim)> {
        let class = *self.classes.get(entry.value() as usize);
        let mut wanted = [0_u64; 32];
        for (at, bytes) in named {
            if self.classes.of(*bytes) != Some(entry.value() as usize) {
                return Err((*at, Claim::OtherClass));
            }
            let index = class.begins(at - self.layout.address_of(chunk)).ok_or((*at, Claim::Misaligned))?;
            let word = wanted.get_mut(index as usize / 64).ok_or((*at, Claim::Misaligned))?;
            *word |= 1 << (index % 64);
        }
        for (word, wanted) in (0..self.layout.bitmap_words).zip(wanted) {
            let (allocated, published) = (self.layout.allocated(chunk, word), self.layout.published(chunk, word));
            let volatile = match entry.lease() {
                0 => 0,
                _ => self.pmem.load(allocated) & !self.pmem.load(published),
            };
            // A bit of a block that is free must never say that it is published: its next owner
            // would lose it.
            self.pmem.store(published, wanted);
            self.pmem.store(allocated, volatile | wanted);
        }
        Ok(())
    }

    /// What of a block of whole chunks is not named, and what is named in it begins a block.
    fn reconcile_run(&self, head: u64, entry: Entry, named: &[Named], left: &mut Left) {
        if named.is_empty() {
            if entry.published() || entry.lease() == 0 {
                left.gaps.push((head, head, head + entry.value()));
            }
            return;
        }
        self.set_entry(head, entry.with_published(true));
        let mut from = head;
        for (at, bytes) in named {
            let first = (at - self.layout.data) >> self.layout.chunk_shift;
            if first > head {
                left.gaps.push((head, from, first));
            }
            from = first + self.layout.chunks_for(*bytes);
        }
        if from < head + entry.value() {
            left.gaps.push((head, from, head + entry.value()));
        }
    }
}

impl<P: Pmem> Allocator<P> {
    /// Makes the blocks of the device those that are named, in the order of their addresses. Others
    /// that it had are free; blocks that leases hold and did not publish stay.
    ///
    /// # Errors
    /// The address of a block that cannot be the device's, because somebody else has it.
    pub(crate) fn reconcile(&self, named: &[Named]) -> Result<(), (u64, Claim)> {
        let table = &self.table;
        let _guard = self.lock();
        let mut left = Left::default();
        let mut rest = named;
        let mut take_below = |end: u64| {
            let (below, above) = rest.split_at(rest.partition_point(|(at, _)| *at < end));
            rest = above;
            below
        };
        left.missing.extend(take_below(table.layout.data));
        let mut at = 0;
        while at < table.layout.chunks {
            let entry = table.entry(at);
            let mut next = at + entry.chunks();
            match entry.state() {
                Some(State::Small) => table.reconcile_small(at, entry, take_below(table.layout.address_of(next)))?,
                Some(State::Head) => {
                    next = at + entry.value().max(1);
                    let end = table.layout.address_of(next);
                    table.reconcile_run(at, entry, take_below(end), &mut left);
                }
                _ => left.missing.extend(take_below(table.layout.address_of(next))),
            }
            at = next;
        }
        left.missing.extend(rest);
        // Lists and counts follow the table first.
        table.rebuild();
        for (head, from, to) in left.gaps.into_iter().rev() {
            if from == head && to == head + table.entry(head).value() {
                table.release_run(head);
            } else {
                table.release_run_part(head, from, to);
            }
        }
        left.missing.into_iter().try_for_each(|(at, bytes)| table.claim(at, bytes).map_err(|why| (at, why)))
    }
}

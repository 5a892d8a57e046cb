//! What a transaction does to the content of one object, taken together: what it puts, what it
//! takes away, and how large the object is then.
//!
//! Mutations are applied to ranges only; no device is asked. What was written and taken away again
//! by the same transaction leaves nothing.

use crate::ranges::Ranges;
use onode_object::{Mutation, ObjectId};
use std::collections::BTreeMap;

/// New bytes of one chunk.
#[derive(Default)]
pub(crate) struct Patch {
    /// The chunk as far as something new is in it; what is not new is zero.
    bytes: Vec<u8>,
    /// Which bytes are new, from the start of the chunk.
    fresh: Ranges,
}

impl Patch {
    fn put(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
        self.fresh.add(at as u64, end as u64);
    }

    /// Which bytes are new.
    pub(crate) const fn fresh(&self) -> &Ranges {
        &self.fresh
    }

    /// The new bytes of a range that is new.
    pub(crate) fn get(&self, start: u64, end: u64) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }
}

/// The changes of one object's content, by chunks of a size that the wrapper chose. `wish` is what
/// the wrapper wants to know beside them.
pub(crate) struct Life<W> {
    pub(crate) object: ObjectId,
    pub(crate) wish: W,
    chunk_bytes: u64,
    /// Made by the same transaction.
    pub(crate) is_new: bool,
    /// Its size before, and as it is after the changes so far.
    pub(crate) size_before: u64,
    pub(crate) size: u64,
    /// Bytes of before that are gone, new bytes in their place or not.
    pub(crate) cleared: Ranges,
    /// Chunks with new bytes.
    pub(crate) patches: BTreeMap<u64, Patch>,
    /// How many mutations took something away.
    pub(crate) cuts: usize,
    /// The changes as they came.
    mutations: Vec<Mutation>,
}

impl<W> Life<W> {
    /// Nothing has changed yet. An object that is made has no `size`.
    pub(crate) fn new(object: ObjectId, chunk_bytes: u64, wish: W, size: Option<u64>) -> Self {
        Self {
            object,
            wish,
            chunk_bytes,
            is_new: size.is_none(),
            size_before: size.unwrap_or(0),
            size: size.unwrap_or(0),
            cleared: Ranges::default(),
            patches: BTreeMap::new(),
            cuts: 0,
            mutations: Vec::new(),
        }
    }

    /// Takes in a change of content that the object admits.
    pub(crate) fn apply(&mut self, mutation: Mutation) {
        match &mutation {
            Mutation::Write { offset, data, .. } => self.write(*offset, data),
            Mutation::Truncate { size, .. } => {
                self.clear(*size, u64::MAX);
                self.size = *size;
                self.cuts += 1;
            }
            Mutation::Punch { offset, length, .. } => {
                self.clear(*offset, offset.saturating_add(*length).min(self.size));
                self.cuts += 1;
            }
            _ => {}
        }
        self.mutations.push(mutation);
    }

    /// The changes as they came.
    pub(crate) fn into_mutations(self) -> Vec<Mutation> {
        self.mutations
    }

    fn write(&mut self, offset: u64, mut data: &[u8]) {
        let mut at = offset;
        while !data.is_empty() {
            let inside = at % self.chunk_bytes;
            let (part, rest) = data.split_at(data.len().min((self.chunk_bytes - inside) as usize));
            self.patches.entry(at / self.chunk_bytes).or_default().put(inside as usize, part);
            at += part.len() as u64;
            data = rest;
            self.size = self.size.max(at);
        }
    }

    fn clear(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.cleared.add(start, end);
        let concerned: Vec<u64> = self
            .patches
            .range(start / self.chunk_bytes..=(end - 1) / self.chunk_bytes)
            .map(|(chunk, _)| *chunk)
            .collect();
        for chunk in concerned {
            let base = chunk * self.chunk_bytes;
            if let Some(patch) = self.patches.get_mut(&chunk) {
                patch.fresh.remove(start.saturating_sub(base), (end - base).min(self.chunk_bytes));
                if patch.fresh.is_empty() {
                    self.patches.remove(&chunk);
                }
            }
        }
    }

    /// What is gone of a chunk as it was before, from its start.
    pub(crate) fn cleared_of(&self, chunk: u64) -> Ranges {
        let base = chunk * self.chunk_bytes;
        let mut gone = Ranges::default();
        for (start, end) in self.cleared.within(base, base + self.chunk_bytes) {
            gone.add(start - base, end - base);
        }
        gone
    }

    /// Where the object's bytes end in a chunk after the changes, from its start.
    pub(crate) fn end_in(&self, chunk: u64) -> u64 {
        self.size.saturating_sub(chunk * self.chunk_bytes).min(self.chunk_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const OBJECT: ObjectId = ObjectId(9);

    fn life(size: u64) -> Life<()> {
        Life::new(OBJECT, 65_536, (), Some(size))
    }

    #[test]
    fn what_is_taken_away_again_leaves_nothing() {
        let mut one = life(100_000);
        one.apply(Mutation::Write { object: OBJECT, offset: 60_000, data: vec![7; 10_000] });
        assert_eq!(one.patches.len(), 2);
        one.apply(Mutation::Truncate { object: OBJECT, size: 65_536 });
        assert_eq!((one.patches.len(), one.size), (1, 65_536));
        one.apply(Mutation::Punch { object: OBJECT, offset: 60_100, length: u64::MAX });
        let fresh: Vec<_> = one.patches[&0].fresh().iter().collect();
        assert_eq!(fresh, [(60_000, 60_100)]);
        one.apply(Mutation::Truncate { object: OBJECT, size: 200_000 });
        assert_eq!(one.cleared_of(0), Ranges::of(60_100, 65_536));
        assert_eq!(one.cleared_of(2), Ranges::of(0, 65_536));
        assert_eq!((one.end_in(2), one.end_in(3), one.end_in(9), one.cuts), (65_536, 3_392, 0, 3));
    }

    #[test]
    fn a_punch_past_the_end_changes_no_size() {
        let mut one = life(10);
        one.apply(Mutation::Punch { object: OBJECT, offset: 20, length: 5 });
        one.apply(Mutation::Punch { object: OBJECT, offset: u64::MAX, length: u64::MAX });
        assert!(one.cleared.is_empty());
        assert_eq!(one.size, 10);
    }
}

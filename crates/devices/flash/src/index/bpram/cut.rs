//! Cutting: entries in order as parts that fit buckets, each with its bytes.
//!
//! What each entry takes is estimated once for all of them, so that a part is coded about once and
//! not at every try.

use super::entries::{self, Draft, key_of};
use super::format::{BUCKET_BYTES_MAX, BlobHeader};
use alloc::vec::Vec;
use onode_codec::exact::Entry;
use onode_engine::Key;

/// Bytes of a bucket behind its header.
pub const CONTENT_BYTES_MAX: usize = BUCKET_BYTES_MAX - size_of::<BlobHeader>();

/// Up to so many parts are filled evenly, more of them one after the other.
const EVEN_MAX: usize = 3;
/// A bucket has up to so many entries, however few bytes they take: all of them are decoded to find
/// one, and a few such buckets are to have room in the cache.
const ENTRIES_MAX: usize = 512;
/// So often a better filling of a bucket is looked for.
const TRIES: usize = 4;
/// What an estimate may be wrong by, in bytes.
const DOUBT: usize = 32;
/// Bytes that a part takes beside what its entries do, at first.
const BESIDE: isize = 10;

/// A bucket on its way to the memory.
pub struct Part<'a> {
    /// Where it begins.
    pub first: Key,
    /// What is in it.
    pub items: &'a [Entry],
    /// Its bytes; none if it cannot be written.
    pub bytes: Vec<u8>,
}

/// Entries on their way into parts.
struct Cutter<'a> {
    items: &'a [Entry],
    /// Of all of them; none if something is too long.
    draft: Option<Draft<'a>>,
    /// About where each of them ends, in bits.
    ends: Vec<u32>,
    unit: u32,
}

/// `items`, the first of which is at or behind `first`, in parts that fit buckets; at least one. A
/// part of a single entry may be longer.
pub fn cut(first: Key, items: &[Entry], unit: u32) -> Vec<Part<'_>> {
    cut_into(first, items, unit, EVEN_MAX)
}

/// The same, evenly if there are up to `even` parts.
pub fn cut_into(first: Key, items: &[Entry], unit: u32, even: usize) -> Vec<Part<'_>> {
    let mut draft = Draft::new(&first, items, unit);
    let ends = draft.as_mut().map(Draft::ends).unwrap_or_default();
    let mut cutter = Cutter { items, draft, ends, unit };
    let about = cutter.bytes(0, items.len());
    if items.len() < 2 || about <= CONTENT_BYTES_MAX + DOUBT {
        let together = cutter.encode(first, 0, items.len());
        let length = together.as_ref().map_or(usize::MAX, |part| part.bytes.len());
        if length <= CONTENT_BYTES_MAX || items.len() < 2 {
            return alloc::vec![together.unwrap_or(Part { first, items, bytes: Vec::new() })];
        }
    }
    for parts in about.div_ceil(CONTENT_BYTES_MAX).max(2)..=even {
        if let Some(even) = cutter.evenly(first, parts) {
            return even;
        }
    }
    cutter.fully(first)
}

impl<'a> Cutter<'a> {
    fn end(&self, count: usize) -> u32 {
        count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0)
    }

    /// About the bytes of the entries from the one with the number `from` up to that with `to`.
    fn bytes(&self, from: usize, to: usize) -> usize {
        if self.ends.is_empty() {
            // Something is too long for any estimate: each by itself will do.
            return (to - from) * CONTENT_BYTES_MAX;
        }
        (self.end(to).saturating_sub(self.end(from)) as usize).div_ceil(8)
    }

    /// How many entries from the one with the number `from` on take about so many bytes.
    fn count(&self, from: usize, bytes: isize) -> usize {
        let most = self.end(from) as isize + bytes * 8;
        self.ends.partition_point(|&end| end as isize <= most).saturating_sub(from)
    }

    /// The part of the entries from the one with the number `from` up to that with `to`; `None` if
    /// they are too many.
    fn encode(&mut self, first: Key, from: usize, to: usize) -> Option<Part<'a>> {
        let items = self.items.get(from..to).filter(|items| items.len() <= ENTRIES_MAX)?;
        let first = if from == 0 { first } else { key_of(items.first()?) };
        let bytes = match &mut self.draft {
            Some(draft) => draft.encode_some(&first, from..to),
            // What is too long may be elsewhere.
            None => entries::encode(&first, items, self.unit),
        };
        Some(Part { first, items, bytes: bytes? })
    }

    /// So many parts of about as many bytes; `None` if one of them does not fit.
    fn evenly(&mut self, first: Key, parts: usize) -> Option<Vec<Part<'a>>> {
        let (mut all, mut from) = (Vec::with_capacity(parts), 0);
        let total = self.bytes(0, self.items.len());
        for number in 1..=parts {
            // At least one is left for each part behind.
            let most = (self.items.len() + number).checked_sub(parts).filter(|most| *most > from)?;
            let to = if number == parts { most } else { self.count(0, (total * number / parts) as isize) };
            let to = to.clamp(from + 1, most);
            all.push(self.encode(first, from, to).filter(|part| part.bytes.len() <= CONTENT_BYTES_MAX)?);
            from = to;
        }
        Some(all)
    }

    /// Part after part as full as it gets with few tries.
    fn fully(&mut self, first: Key) -> Vec<Part<'a>> {
        let (mut all, mut from, mut beside) = (Vec::new(), 0, BESIDE);
        while from < self.items.len() {
            let part = self.fill(first, from, &mut beside);
            from += part.items.len().max(1);
            all.push(part);
        }
        all
    }

    /// A part that begins with the entry `from`, of at least one; `beside` is what parts take
    /// beside what was estimated.
    fn fill(&mut self, first: Key, from: usize, beside: &mut isize) -> Part<'a> {
        // More objects than a bucket may hold have no bytes at all, which says nothing of how many
        // fit.
        let left = self.draft.as_ref().map_or(1, |draft| draft.most_from(from)).min(ENTRIES_MAX);
        let (mut best, mut over): (Option<Part<'a>>, usize) = (None, left + 1);
        let mut probe = self.count(from, CONTENT_BYTES_MAX as isize - *beside).clamp(1, left);
        let mut tries = 0;
        loop {
            tries += 1;
            let part = self.encode(first, from, from + probe);
            let length = part.as_ref().map_or(isize::MAX / 16, |part| part.bytes.len() as isize);
            *beside = length.min(2 * CONTENT_BYTES_MAX as isize) - self.bytes(from, from + probe) as isize;
            match part {
                Some(part) if length <= CONTENT_BYTES_MAX as isize => best = Some(part),
                part if probe == 1 => {
                    let items = self.items.get(from..=from).unwrap_or_default();
                    let first = if from == 0 { first } else { items.first().map_or(first, key_of) };
                    return part.unwrap_or_else(|| Part { first, items, bytes: Vec::new() });
                }
                _ => over = probe,
            }
            let known = best.as_ref().map_or(0, |part| part.items.len());
            // As many as fit by what this one took.
            let wanted = self.count(from, CONTENT_BYTES_MAX as isize - *beside);
            match best {
                Some(best) if known + 1 >= over || wanted <= known || tries >= TRIES => return best,
                _ => {}
            }
            probe =
                if tries > TRIES { known.midpoint(over) } else { wanted }.clamp(known + 1, (over - 1).max(known + 1));
        }
    }
}

#[cfg(test)]
mod tests;

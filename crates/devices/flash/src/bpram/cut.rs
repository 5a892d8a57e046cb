//! Cutting: entries in order as parts that fit buckets, each with its bytes.

use super::entries::{encode, key_of};
use super::format::{BUCKET_BYTES_MAX, BlobHeader};
use crate::tree::Key;
use alloc::vec::Vec;
use onode_codec::exact::Entry;

/// Bytes of a bucket behind its header.
pub const CONTENT_BYTES_MAX: usize = BUCKET_BYTES_MAX - size_of::<BlobHeader>();

/// Up to so many parts are filled evenly, more of them one after the other.
const EVEN_MAX: usize = 3;
/// So often a better filling of a bucket is looked for.
const TRIES: usize = 4;

/// A bucket on its way to the memory.
pub struct Part {
    /// Where it begins.
    pub first: Key,
    /// What is in it.
    pub items: Vec<Entry>,
    /// Its bytes; none if it cannot be written.
    pub bytes: Vec<u8>,
}

impl Part {
    fn new(first: Key, items: &[Entry], bytes: Vec<u8>) -> Self {
        Self { first, items: items.to_vec(), bytes }
    }
}

/// `items`, the first of which is at or behind `first`, in parts that fit buckets; at least one. A part of a
/// single entry may be longer.
pub fn cut(first: Key, items: &[Entry], page_bytes: u32) -> Vec<Part> {
    let together = encode(&first, items, page_bytes);
    let length = together.as_ref().map_or(usize::MAX, Vec::len);
    if length <= CONTENT_BYTES_MAX || items.len() < 2 {
        return alloc::vec![Part::new(first, items, together.unwrap_or_default())];
    }
    let few = length.div_ceil(CONTENT_BYTES_MAX).max(2);
    for parts in few..=EVEN_MAX {
        if let Some(even) = cut_evenly(first, items, parts, page_bytes) {
            return even;
        }
    }
    cut_full(first, items, page_bytes)
}

fn fitting(first: &Key, items: &[Entry], page_bytes: u32) -> Result<Vec<u8>, usize> {
    match encode(first, items, page_bytes) {
        Some(bytes) if bytes.len() <= CONTENT_BYTES_MAX => Ok(bytes),
        Some(bytes) => Err(bytes.len()),
        None => Err(usize::MAX),
    }
}

/// So many parts of about as many entries; `None` if one of them does not fit.
fn cut_evenly(first: Key, items: &[Entry], parts: usize, page_bytes: u32) -> Option<Vec<Part>> {
    let (mut all, mut rest) = (Vec::with_capacity(parts), items);
    for left in (1..=parts).rev() {
        let (part, others) = rest.split_at(rest.len() / left);
        let first = if all.is_empty() { first } else { key_of(part.first()?) };
        all.push(Part::new(first, part, fitting(&first, part, page_bytes).ok()?));
        rest = others;
    }
    Some(all)
}

/// Part after part as full as it gets with few tries.
fn cut_full(first: Key, items: &[Entry], page_bytes: u32) -> Vec<Part> {
    let (mut all, mut rest): (Vec<Part>, _) = (Vec::new(), items);
    let mut first = first;
    while !rest.is_empty() {
        let guess = all.last().map_or(64, |last| last.items.len());
        let (count, bytes) = fill(&first, rest, guess, page_bytes);
        let (part, others) = rest.split_at(count);
        all.push(Part::new(first, part, bytes));
        rest = others;
        first = rest.first().map_or(first, key_of);
    }
    all
}

/// How many of `items` make a full bucket that begins at `first`, at least one, and its bytes.
fn fill(first: &Key, items: &[Entry], guess: usize, page_bytes: u32) -> (usize, Vec<u8>) {
    let (mut best, mut over) = ((0, Vec::new()), items.len() + 1);
    let mut probe = guess.clamp(1, items.len());
    let mut tries = 0;
    while tries < TRIES || best.0 == 0 {
        tries += 1;
        let taken = items.get(..probe).unwrap_or_default();
        let length = match fitting(first, taken, page_bytes) {
            Ok(bytes) => {
                let length = bytes.len();
                best = (probe, bytes);
                length
            }
            Err(length) => {
                over = probe;
                if probe == 1 {
                    return (1, encode(first, taken, page_bytes).unwrap_or_default());
                }
                length
            }
        };
        // As many as would fit if all took the same.
        let wanted = (probe * CONTENT_BYTES_MAX / length.max(1)).clamp(best.0 + 1, (over - 1).max(best.0 + 1));
        if best.0 + 1 >= over {
            break;
        }
        probe = if tries > TRIES { best.0.midpoint(over).max(1) } else { wanted };
    }
    best
}

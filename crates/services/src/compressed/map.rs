//! Which chunks of an object are compressed: the service attributes, parsed.
//!
//! An object without compressed chunks has none of them. A *group* is the attribute that tells of
//! 192 chunks in a row, three bytes for each; that of the first group, the *head*, tells of the
//! object, too. A chunk with holes in it has attributes of its own that list them. The bytes of a
//! small object that once was compressed may stand in an attribute. Truncation never makes an
//! attribute longer. `docs/format/services.md` has the bytes.

use crate::ranges::Ranges;
use onode_object::{AttributeKey, AttributeKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// Chunks that one attribute tells of.
pub(crate) const GROUP_CHUNKS: u64 = 192;
/// The size of chunks, as a power of two.
pub(crate) const CHUNK_SHIFT: u8 = 16;
/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: u64 = 1 << CHUNK_SHIFT;
/// Bytes that a group tells of.
pub(crate) const GROUP_BYTES: u64 = GROUP_CHUNKS * CHUNK_BYTES;
/// An attribute lists the holes that begin in so many bytes of a chunk, as a power of two: a list
/// of all that there can be is no longer than an attribute may be.
const PART_SHIFT: u8 = 7;
const PARTS: u64 = CHUNK_BYTES >> PART_SHIFT;

/// The form of these attributes.
const VERSION: u8 = 1;
/// What stands before the entries of the head: version, size of chunks, hidden bytes.
const HEAD_BYTES: usize = 5;
const ENTRY_BYTES: usize = 3;
const HOLE_BYTES: usize = 6;
/// Set in the index of an attribute that lists holes of a chunk.
const HOLES: u64 = 1 << 62;
/// The chunk has holes.
const HAS_HOLES: u32 = 1 << 23;
/// The chunk is in an attribute.
const IS_INLINE: u32 = 1 << 22;
const VALID: u32 = IS_INLINE - 1;

/// The key of the attribute that holds the first chunk of an object, if there is no frame of it.
pub(crate) const INLINE: AttributeKey = AttributeKey::new(AttributeKind::SERVICE, 1 << 63);

/// The key of the attribute that tells of a group.
pub(crate) const fn group_key(group: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::SERVICE, group)
}

/// The key of the attribute that lists the holes that begin in a part of a chunk.
pub(crate) const fn holes_key(chunk: u64, part: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::SERVICE, HOLES | (chunk * PARTS + part))
}

/// The part of `chunk` whose holes the attribute of a key lists, if it is one of those.
pub(crate) fn part_of(key: AttributeKey, chunk: u64) -> Option<u64> {
    let part = key.index.checked_sub(holes_key(chunk, 0).index).filter(|part| *part < PARTS);
    part.filter(|_| key.kind == AttributeKind::SERVICE)
}

/// The group that the attribute of a key tells of, if it is one of those.
pub(crate) const fn group_of(key: AttributeKey) -> Option<u64> {
    if key.kind.0 == AttributeKind::SERVICE.0 && key.index < HOLES { Some(key.index) } else { None }
}

/// The content of which the attribute of a key tells, if it is one of those.
pub(crate) fn content_of(key: AttributeKey) -> Option<Range<u64>> {
    let (first, bytes) = match (group_of(key), key.index) {
        (Some(group), _) => (group, GROUP_BYTES),
        (None, index) if key.kind == AttributeKind::SERVICE && index <= INLINE.index => {
            // Small content is all of the first chunk.
            let chunk = if index == INLINE.index { 0 } else { (index - HOLES) / PARTS };
            (chunk, CHUNK_BYTES)
        }
        _ => return None,
    };
    let start = first.saturating_mul(bytes);
    Some(start..start.saturating_add(bytes))
}

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry(u32);

impl Entry {
    /// Stored as it is, or not at all.
    pub(crate) const PLAIN: Self = Self(0);

    /// In a frame, with so many bytes that count; what the frame has more is not there any more.
    pub(crate) const fn frame(valid: u64) -> Self {
        Self(valid as u32 & VALID)
    }

    /// In the attribute [`INLINE`], with so many bytes that count.
    pub(crate) const fn inline(valid: u64) -> Self {
        Self(valid as u32 & VALID | IS_INLINE)
    }

    /// The same with fewer bytes that count, and perhaps holes below that.
    pub(crate) const fn cut(self, valid: u64, has_holes: bool) -> Self {
        Self(valid as u32 & VALID | self.0 & IS_INLINE | if has_holes { HAS_HOLES } else { 0 })
    }

    /// Not stored as it is.
    pub(crate) const fn is_compressed(self) -> bool {
        self.0 != 0
    }

    /// In an attribute, without a frame.
    pub(crate) const fn is_inline(self) -> bool {
        self.0 & IS_INLINE != 0
    }

    /// How many bytes of the chunk count, from its start; the rest reads as zeros.
    pub(crate) const fn valid(self) -> u64 {
        (self.0 & VALID) as u64
    }

    /// Whether attributes list holes below that.
    pub(crate) const fn has_holes(self) -> bool {
        self.0 & HAS_HOLES != 0
    }
}

/// One group, as its attribute has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// In the head: by how much the wrapped object is longer than it appears.
    hidden: u32,
    entries: Vec<Entry>,
}

impl Group {
    /// An attribute's value; the error says in words what is wrong with it.
    pub(crate) fn parse(group: u64, value: &[u8]) -> Result<Self, &'static str> {
        let (mut hidden, mut entries) = (0, value);
        if group == 0 {
            let (head, rest) = value.split_first_chunk::<HEAD_BYTES>().ok_or("it is cut short")?;
            if head[0] != VERSION {
                return Err("its version is not known");
            }
            if head[1] != CHUNK_SHIFT {
                return Err("its size of chunks is not known");
            }
            hidden = u32::from_le_bytes([head[2], head[3], head[4], 0]);
            entries = rest;
        }
        if u64::from(hidden) >= CHUNK_BYTES
            || !entries.len().is_multiple_of(ENTRY_BYTES)
            || entries.len() > GROUP_CHUNKS as usize * ENTRY_BYTES
        {
            return Err("it is not of its form");
        }
        let number = |bytes: &[u8]| Entry(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        let entries: Vec<Entry> = entries.chunks(ENTRY_BYTES).map(number).collect();
        if entries.iter().any(|entry| entry.valid() > CHUNK_BYTES || (entry.is_compressed() && entry.valid() == 0)) {
            return Err("an entry in it cannot be");
        }
        Ok(Self { hidden, entries })
    }

    /// The attribute's value.
    pub(crate) fn value(&self, group: u64) -> Vec<u8> {
        let mut value = Vec::with_capacity(HEAD_BYTES + self.entries.len() * ENTRY_BYTES);
        if group == 0 {
            value.extend_from_slice(&[VERSION, CHUNK_SHIFT]);
            value.extend_from_slice(&self.hidden.to_le_bytes()[..3]);
        }
        for entry in &self.entries {
            value.extend_from_slice(&entry.0.to_le_bytes()[..ENTRY_BYTES]);
        }
        value
    }

    /// By how much the wrapped object is longer than it appears.
    pub(crate) fn hidden(&self) -> u64 {
        u64::from(self.hidden)
    }

    pub(crate) fn set_hidden(&mut self, bytes: u64) {
        self.hidden = bytes as u32;
    }

    /// Whether no chunk in it is compressed.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of a chunk of the object that lies in this group.
    pub(crate) fn entry(&self, chunk: u64) -> Entry {
        self.entries.get((chunk % GROUP_CHUNKS) as usize).copied().unwrap_or(Entry::PLAIN)
    }

    pub(crate) fn set(&mut self, chunk: u64, entry: Entry) {
        let at = (chunk % GROUP_CHUNKS) as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, Entry::PLAIN);
        }
        self.entries[at] = entry;
        while self.entries.last().is_some_and(|last| !last.is_compressed()) {
            self.entries.pop();
        }
    }

    /// Positions in the group and entries of the compressed chunks, in order.
    pub(crate) fn compressed(&self) -> impl Iterator<Item = (u64, Entry)> + '_ {
        (0..).zip(self.entries.iter().copied()).filter(|(_, entry)| entry.is_compressed())
    }
}

/// The values of the attributes that list holes, by parts of the chunk.
pub(crate) fn hole_lists(holes: &Ranges) -> BTreeMap<u64, Vec<u8>> {
    let mut lists: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for (start, end) in holes.iter() {
        let list = lists.entry(start >> PART_SHIFT).or_default();
        list.extend_from_slice(&(start as u32).to_le_bytes()[..3]);
        list.extend_from_slice(&(end as u32).to_le_bytes()[..3]);
    }
    lists
}

/// Adds the holes that the attribute of a part lists to those of the parts before it; the error
/// says in words what is wrong with it.
pub(crate) fn add_holes(part: u64, value: &[u8], holes: &mut Ranges) -> Result<(), &'static str> {
    if !value.len().is_multiple_of(HOLE_BYTES) {
        return Err("the list of its holes is cut short");
    }
    for hole in value.chunks(HOLE_BYTES) {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (start, end) = (number(&hole[..3]), number(&hole[3..]));
        let follows = holes.is_empty() || start > holes.end();
        if start >= end || end > CHUNK_BYTES || start >> PART_SHIFT != part || !follows {
            return Err("the list of its holes cannot be");
        }
        holes.add(start, end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use onode_base::Prng;
    use onode_object::Transaction;

    #[test]
    fn groups_come_back_and_stay_small() {
        for group in [0, 5] {
            let mut one = Group::default();
            one.set_hidden(if group == 0 { 65_535 } else { 0 });
            let first = group * GROUP_CHUNKS;
            one.set(first + 7, Entry::frame(65_536).cut(65_536, true));
            one.set(first + GROUP_CHUNKS - 1, Entry::frame(1));
            let value = one.value(group);
            assert!(value.len() <= Transaction::MAX_ATTRIBUTE_BYTES);
            let found = Group::parse(group, &value).expect("it was made so");
            assert_eq!(found, one);
            assert_eq!(found.entry(first + 7).valid(), 65_536);
            assert!(found.entry(first + 7).has_holes() && !found.entry(first + 6).is_compressed());
            one.set(first + GROUP_CHUNKS - 1, Entry::PLAIN);
            assert_eq!(one.value(group).len(), value.len() - 184 * 3, "what is not needed is not kept");
            one.set(first + 7, Entry::PLAIN);
            assert!(one.is_empty());
        }
    }

    #[test]
    fn a_shorter_chunk_makes_no_longer_attribute() {
        let mut one = Group::default();
        one.set(3, Entry::frame(65_536));
        let length = one.value(0).len();
        one.set(3, Entry::frame(1));
        one.set_hidden(65_535);
        assert_eq!(one.value(0).len(), length);
    }

    #[test]
    fn no_value_is_believed_that_cannot_be() {
        let mut prng = Prng::new(5);
        for _ in 0..20_000 {
            let mut value = vec![0; prng.below(620) as usize];
            prng.fill(&mut value);
            if value.len() > 2 && prng.chance(1, 2) {
                value[..2].copy_from_slice(&[VERSION, CHUNK_SHIFT]);
            }
            if let Ok(group) = Group::parse(prng.below(2), &value) {
                assert!(group.compressed().all(|(at, entry)| at < GROUP_CHUNKS && entry.valid() <= CHUNK_BYTES));
                assert!(group.hidden() < CHUNK_BYTES);
            }
            let (part, mut holes) = (prng.below(PARTS), Ranges::default());
            if add_holes(part, &value, &mut holes).is_ok() {
                assert!(holes.end() <= CHUNK_BYTES);
                let lists: Vec<_> = hole_lists(&holes).into_iter().collect();
                assert!(value.is_empty() || lists == [(part, value)]);
            }
        }
    }

    #[test]
    fn all_holes_that_there_can_be_are_listed() {
        let mut holes = Ranges::default();
        (0..CHUNK_BYTES).step_by(2).for_each(|at| holes.add(at, at + 1));
        let lists = hole_lists(&holes);
        assert!(lists.values().all(|list| list.len() <= Transaction::MAX_ATTRIBUTE_BYTES));
        let mut found = Ranges::default();
        for (part, list) in &lists {
            add_holes(*part, list, &mut found).expect("it was made so");
            assert_eq!(part_of(holes_key(77, *part), 77), Some(*part));
        }
        assert_eq!(found, holes);
        assert_eq!(part_of(holes_key(78, 0), 77), None);
        assert_eq!(part_of(INLINE, 77), None);
        assert!(group_of(holes_key(0, 0)).is_none() && group_of(INLINE).is_none());
    }
}

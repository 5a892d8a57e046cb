//! A node in memory and as bytes.
//!
//! A node is kept as the very bytes that go to the medium, entries one after another with
//! delta-coded keys, so that a byte of cache holds a byte of index. About every sixteenth entry has
//! a [restart](restarts): its whole key and place, from which the entries up to the next one are
//! decoded. A node read from a medium is checked whole before it is used: level, order, lengths.

mod coding;
mod restarts;

use crate::medium::format::BlobReference;
use alloc::vec::Vec;
use coding::{put_key, skip_key, take_key};
use core::ops::Range;
use onode_base::varint;
use onode_engine::Key;
use restarts::{Restart, Restarts};

/// A node: level 0 holds values, higher levels hold child references.
#[derive(Clone, Debug)]
pub struct Node {
    /// 0 for leaves.
    level: u8,
    count: u32,
    /// Entries as on the medium.
    bytes: Vec<u8>,
    restarts: Restarts,
}

/// An entry found: its key, where it starts, and its value.
#[derive(Clone, Copy, Debug)]
struct FoundEntry {
    key: Key,
    start: usize,
    value: (usize, usize),
}

/// Where a key stands, or would.
struct Spot {
    index: usize,
    /// The entry there, if there is one.
    entry: Option<FoundEntry>,
    /// The one before it, if it was come by.
    before: Option<FoundEntry>,
}

/// Bytes before the entries: level, number of entries.
const HEADER_BYTES: usize = 3;
/// Upper bound of the bytes that one entry takes beside its value: object, kind, index, length.
const ENTRY_BYTES_MAX: usize = 20 + 3 + 10 + 3;
/// Bytes of a child reference, the value of every entry above the leaves.
const CHILD_BYTES: usize = size_of::<BlobReference>();
/// Memory is taken in steps of this size.
const GROWTH_BYTES: usize = 256;

impl Node {
    /// An empty node.
    pub const fn new(level: u8) -> Self {
        Self { level, count: 0, bytes: Vec::new(), restarts: Restarts::new() }
    }

    /// 0 for leaves.
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// The key of entry `index`.
    pub fn key(&self, index: usize) -> Key {
        self.place(index).key
    }

    /// The value of entry `index`.
    pub fn value(&self, index: usize) -> &[u8] {
        let place = self.place(index);
        &self.bytes[place.value.0..place.value.1]
    }

    /// Entries from `index` on, in order.
    pub fn entries_from(&self, index: usize) -> impl Iterator<Item = (Key, &[u8])> {
        self.places_from(index).map(|(_, place)| (place.key, &self.bytes[place.value.0..place.value.1]))
    }

    /// Numbers and places of the entries from `index` on, in order.
    fn places_from(&self, index: usize) -> impl Iterator<Item = (usize, FoundEntry)> {
        let first = (index < self.len()).then(|| self.place(index));
        let next =
            move |place: &FoundEntry| (place.value.1 < self.bytes.len()).then(|| self.step(place.value.1, &place.key));
        (index..).zip(core::iter::successors(first, next))
    }

    /// The least key.
    pub fn first_key(&self) -> Option<Key> {
        self.restarts.first().map(|first| first.key)
    }

    /// The greatest key.
    pub fn last_key(&self) -> Option<Key> {
        self.len().checked_sub(1).map(|last| self.key(last))
    }

    /// Entry `index`, which exists.
    fn place(&self, index: usize) -> FoundEntry {
        let Some(restart) = self.restarts.of_index(index) else { return self.step(0, &Key::MIN) };
        let mut place = self.at_restart(restart);
        for _ in restart.index as usize..index {
            place = self.step(place.value.1, &place.key);
        }
        place
    }

    /// The entry of a restart. Its key is known; only where the value lies has to be found.
    #[inline]
    fn at_restart(&self, restart: &Restart) -> FoundEntry {
        let mut input = &self.bytes[restart.start as usize..];
        skip_key(&mut input);
        self.place_of(restart.key, restart.start as usize, input)
    }

    /// The entry that starts at `start`, after one with the key `last`. The bytes were checked.
    #[inline]
    fn step(&self, start: usize, last: &Key) -> FoundEntry {
        let mut input = &self.bytes[start..];
        let key = take_key(&mut input, last).unwrap_or(*last);
        self.place_of(key, start, input)
    }

    /// The entry with `key` at `start`; `input` is what follows the key.
    #[inline]
    fn place_of(&self, key: Key, start: usize, mut input: &[u8]) -> FoundEntry {
        let length = self.take_length(&mut input).unwrap_or(0);
        let from = self.bytes.len() - input.len();
        FoundEntry { key, start, value: (from, from + length) }
    }

    #[inline]
    fn take_length(&self, input: &mut &[u8]) -> Option<usize> {
        if self.level > 0 { Some(CHILD_BYTES) } else { usize::try_from(varint::take(input)?).ok() }
    }

    /// Where `key` stands, or would.
    #[inline]
    fn locate(&self, key: &Key) -> Spot {
        let Some(restart) = self.restarts.of_key(key) else {
            let entry = (self.count > 0).then(|| self.step(0, &Key::MIN));
            return Spot { index: 0, entry, before: None };
        };
        let (mut index, mut before) = (restart.index as usize, None);
        let mut entry = self.at_restart(restart);
        while entry.key < *key {
            index += 1;
            before = Some(entry);
            if entry.value.1 >= self.bytes.len() {
                return Spot { index, entry: None, before };
            }
            entry = self.step(entry.value.1, &entry.key);
        }
        Spot { index, entry: Some(entry), before }
    }

    /// The position of `key`, or where it would stand.
    pub fn search(&self, key: &Key) -> Result<usize, usize> {
        let spot = self.locate(key);
        if spot.entry.is_some_and(|entry| entry.key == *key) { Ok(spot.index) } else { Err(spot.index) }
    }

    /// The value of `key`.
    pub fn get(&self, key: &Key) -> Option<&[u8]> {
        let entry = self.locate(key).entry.filter(|entry| entry.key == *key)?;
        Some(&self.bytes[entry.value.0..entry.value.1])
    }

    /// The child under which `key` belongs: its number, its separator and its reference; `None` if
    /// there is no child.
    pub fn child_for(&self, key: &Key) -> Option<(usize, Key, &[u8])> {
        let spot = self.locate(key);
        let is_exact = spot.entry.is_some_and(|entry| entry.key == *key);
        let index = if is_exact { spot.index } else { spot.index.saturating_sub(1) };
        let entry = if index == spot.index { spot.entry? } else { spot.before.unwrap_or_else(|| self.place(index)) };
        Some((index, entry.key, &self.bytes[entry.value.0..entry.value.1]))
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: Key, value: &[u8]) {
        self.set(key, value, &mut |_| {});
    }

    /// Sets the value of `key`, and shows `replaced` the one before, if there was one.
    pub fn set(&mut self, key: Key, value: &[u8], replaced: &mut dyn FnMut(&[u8])) {
        let spot = self.locate(&key);
        let index = spot.index;
        if let Some(entry) = spot.entry.filter(|entry| entry.key == key) {
            replaced(&self.bytes[entry.value.0..entry.value.1]);
            return self.set_value_of(index, &entry, spot.before.map(|before| before.key), value);
        }
        let before = spot.before.map_or_else(|| self.key_before(index), |before| before.key);
        let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX + value.len() + ENTRY_BYTES_MAX);
        self.put_entry(&mut fresh, &before, &key, value.len());
        fresh.extend_from_slice(value);
        let (mut start, mut end) = (self.bytes.len(), self.bytes.len());
        if let Some(entry) = spot.entry {
            // Its key follows from another one now.
            self.put_entry(&mut fresh, &key, &entry.key, entry.value.1 - entry.value.0);
            (start, end) = (entry.start, entry.value.0);
        }
        self.count += 1;
        let bytes = fresh.len() as isize - (end - start) as isize;
        self.splice(start..end, &fresh);
        if spot.entry.is_none() {
            self.restarts.push(key, start, index);
        } else if let Some((restart, entries)) = self.restarts.inserted(key, index, bytes, self.len()) {
            let middle = restart.index as usize + entries / 2;
            let place = self.place(middle);
            self.restarts.divide(Restart { key: place.key, start: place.start as u32, index: middle as u32 });
        }
    }

    /// Replaces the value of entry `index`.
    pub fn set_value(&mut self, index: usize, value: &[u8]) {
        self.set_value_of(index, &self.place(index), None, value);
    }

    /// Replaces the value of entry `index` at `place`; `before` is the key before it, if it was
    /// come by.
    fn set_value_of(&mut self, index: usize, place: &FoundEntry, before: Option<Key>, value: &[u8]) {
        let (from, until) = place.value;
        if until - from == value.len() {
            self.bytes[from..until].copy_from_slice(value);
            return;
        }
        let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX + value.len());
        let before = before.unwrap_or_else(|| self.key_before(index));
        self.put_entry(&mut fresh, &before, &place.key, value.len());
        fresh.extend_from_slice(value);
        let bytes = fresh.len() as isize - (until - place.start) as isize;
        self.splice(place.start..until, &fresh);
        self.restarts.resized(index, bytes);
    }

    /// Changes the key of entry `index` to another one that keeps the order.
    pub fn replace_key(&mut self, index: usize, key: Key) {
        let place = self.place(index);
        let value = self.bytes[place.value.0..place.value.1].to_vec();
        let mut fresh = Vec::with_capacity(2 * ENTRY_BYTES_MAX + value.len());
        self.put_entry(&mut fresh, &self.key_before(index), &key, value.len());
        fresh.extend_from_slice(&value);
        let next = place.start + fresh.len();
        let end = self.put_head_again(&mut fresh, index + 1, &key);
        let bytes = fresh.len() as isize - (end - place.start) as isize;
        self.splice(place.start..end, &fresh);
        self.restarts.renamed(index, key, next, bytes);
    }

    /// Removes `key` if it is there.
    pub fn remove(&mut self, key: &Key) {
        if let Ok(index) = self.search(key) {
            self.remove_at(index);
        }
    }

    /// Removes entry `index`.
    pub fn remove_at(&mut self, index: usize) {
        let place = self.place(index);
        let is_last = index + 1 == self.len();
        let next = (!is_last).then(|| self.step(place.value.1, &place.key));
        let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX);
        let mut end = self.bytes.len();
        if let Some(next) = next {
            self.put_entry(&mut fresh, &self.key_before(index), &next.key, next.value.1 - next.value.0);
            end = next.value.0;
        }
        self.count -= 1;
        let bytes = fresh.len() as isize - (end - place.start) as isize;
        self.splice(place.start..end, &fresh);
        self.restarts.removed(index, place.start, next.map(|next| next.key), bytes);
    }

    /// Adds the entries of `right`, all of whose keys are greater.
    pub fn append(&mut self, right: &Self) {
        if right.count == 0 {
            return;
        }
        let mut fresh = Vec::with_capacity(right.bytes.len() + ENTRY_BYTES_MAX);
        let skipped = right.put_head_again(&mut fresh, 0, &self.key_before(self.len()));
        fresh.extend_from_slice(&right.bytes[skipped..]);
        let (at, end) = (self.len(), self.bytes.len());
        self.count += right.count;
        self.splice(end..end, &fresh);
        self.find_restarts(at);
    }

    /// Splits off the entries behind the first `keep_bytes` bytes, at least one and not all.
    pub fn split_after(&mut self, keep_bytes: usize) -> Self {
        let mut at = 1;
        let mut end = self.place(0).value.1;
        while at + 1 < self.len() {
            let next = self.place(at).value.1;
            if next > keep_bytes {
                break;
            }
            end = next;
            at += 1;
        }
        let mut right = Self::new(self.level);
        let mut fresh = Vec::with_capacity(self.bytes.len() - end + ENTRY_BYTES_MAX);
        let skipped = self.put_head_again(&mut fresh, at, &Key::MIN);
        fresh.extend_from_slice(&self.bytes[skipped..]);
        right.count = self.count - at as u32;
        right.splice(0..0, &fresh);
        right.find_restarts(0);
        self.count = at as u32;
        self.bytes.truncate(end);
        self.restarts.cut(at);
        right
    }

    /// The key before entry `index`; the least key before the first.
    fn key_before(&self, index: usize) -> Key {
        index.checked_sub(1).map_or(Key::MIN, |before| self.key(before))
    }

    /// Appends the head of an entry: key and length of the value.
    fn put_entry(&self, out: &mut Vec<u8>, last: &Key, key: &Key, length: usize) {
        put_key(out, last, key);
        if self.level == 0 {
            varint::put(out, length as u64);
        }
    }

    /// Appends the head of entry `index` as it reads behind `last`; returns where its value starts.
    fn put_head_again(&self, out: &mut Vec<u8>, index: usize, last: &Key) -> usize {
        if index >= self.len() {
            return self.bytes.len();
        }
        let place = self.place(index);
        self.put_entry(out, last, &place.key, place.value.1 - place.value.0);
        place.value.0
    }

    /// Replaces a range of bytes.
    fn splice(&mut self, range: Range<usize>, fresh: &[u8]) {
        let (before, wanted) = (self.bytes.len(), self.bytes.len() - range.len() + fresh.len());
        if wanted > self.bytes.capacity() {
            self.bytes.reserve_exact(wanted.next_multiple_of(GROWTH_BYTES) - before);
        }
        let until = range.start + fresh.len();
        if wanted > before {
            self.bytes.resize(wanted, 0);
        }
        self.bytes.copy_within(range.end..before, until);
        self.bytes.truncate(wanted);
        self.bytes[range.start..until].copy_from_slice(fresh);
    }

    /// Finds the restarts from entry `first` on; those before it hold.
    fn find_restarts(&mut self, first: usize) {
        self.restarts.cut(first);
        self.restarts.reserve(self.len());
        for (index, place) in self.places_from(first).collect::<Vec<_>>() {
            self.restarts.push(place.key, place.start, index);
        }
    }

    /// Bytes that the node takes on the medium.
    pub const fn encoded_bytes(&self) -> usize {
        HEADER_BYTES + self.bytes.len()
    }

    /// Memory that the node takes, roughly.
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.restarts.memory_bytes()
    }

    /// The node as bytes: level, number of entries, entries.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_bytes());
        out.push(self.level);
        out.extend_from_slice(&(self.count as u16).to_le_bytes());
        out.extend_from_slice(&self.bytes);
        out
    }

    /// The node behind `bytes`; `None` if they are not a node of `level`.
    pub fn decode(bytes: &[u8], level: u8) -> Option<Self> {
        let (&[found, low, high], entries) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let count = u32::from(u16::from_le_bytes([low, high]));
        if found != level || (level > 0 && count == 0) || count as usize > bytes.len() {
            return None;
        }
        let mut node = Self { count, bytes: entries.to_vec(), ..Self::new(level) };
        let mut input = entries;
        let mut last = Key::MIN;
        node.restarts.reserve(count as usize);
        for index in 0..count as usize {
            let start = entries.len() - input.len();
            let key = take_key(&mut input, &last)?;
            if index > 0 && key <= last {
                return None;
            }
            let length = node.take_length(&mut input)?;
            input = input.get(length..)?;
            node.restarts.push(key, start, index);
            last = key;
        }
        input.is_empty().then_some(node)
    }

    /// The largest value that a tree with nodes of `node_bytes` takes: three entries fit a node.
    pub const fn value_bytes_max(node_bytes: usize) -> usize {
        (node_bytes - HEADER_BYTES) / 3 - ENTRY_BYTES_MAX
    }

    /// Every restart is the entry that it says, and no group is too long.
    #[cfg(test)]
    pub fn check_restarts(&self) {
        let all: Vec<FoundEntry> = core::iter::successors((self.count > 0).then(|| self.step(0, &Key::MIN)), |place| {
            (place.value.1 < self.bytes.len()).then(|| self.step(place.value.1, &place.key))
        })
        .collect();
        assert_eq!(all.len(), self.len());
        let mut numbers: Vec<usize> = self.restarts.iter().map(|restart| restart.index as usize).collect();
        for restart in self.restarts.iter() {
            let place = all[restart.index as usize];
            assert_eq!((restart.key, restart.start as usize), (place.key, place.start));
        }
        assert_eq!(numbers.first(), all.first().map(|_| &0));
        numbers.push(self.len());
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= restarts::GROUP_ENTRIES_MAX));
    }
}

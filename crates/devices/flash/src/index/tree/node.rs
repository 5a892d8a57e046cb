//! A node in memory and as bytes.
//!
//! A node is kept as the very bytes that go to the medium, entries one after another with
//! delta-coded keys, so that a byte of cache holds a byte of index. Every sixteenth entry has a
//! *restart*: its whole key and place, from which the entries up to the next one are decoded. A
//! node read from a medium is checked whole before it is used: level, order, lengths.

mod coding;

use crate::medium::format::BlobReference;
use alloc::vec::Vec;
use coding::{put_key, skip_key, take_key};
use core::ops::Range;
use onode_base::varint;
use onode_engine::Key;

/// A node: level 0 holds values, higher levels hold child references.
#[derive(Clone, Debug)]
pub struct Node {
    /// 0 for leaves.
    level: u8,
    count: u32,
    /// Entries as on the medium.
    bytes: Vec<u8>,
    restarts: Vec<Restart>,
}

/// An entry from which others can be decoded.
#[derive(Clone, Copy, Debug)]
struct Restart {
    key: Key,
    start: u32,
}

/// An entry found: its key, where it starts, and its value.
#[derive(Clone, Copy, Debug)]
struct FoundEntry {
    key: Key,
    start: usize,
    value: (usize, usize),
}

/// Entries from one restart to the next.
const RESTART_ENTRIES: usize = 16;
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
        Self { level, count: 0, bytes: Vec::new(), restarts: Vec::new() }
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
        let mut next = (index < self.len()).then(|| self.place(index));
        core::iter::from_fn(move || {
            let place = next?;
            next = (place.value.1 < self.bytes.len()).then(|| self.step(place.value.1, &place.key));
            Some((place.key, &self.bytes[place.value.0..place.value.1]))
        })
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
        let restart = self.restarts[index / RESTART_ENTRIES];
        let mut place = self.at_restart(&restart);
        for _ in 0..index % RESTART_ENTRIES {
            place = self.step(place.value.1, &place.key);
        }
        place
    }

    /// The entry of a restart. Its key is known; only where the value lies has to be found.
    fn at_restart(&self, restart: &Restart) -> FoundEntry {
        let mut input = &self.bytes[restart.start as usize..];
        skip_key(&mut input);
        self.place_of(restart.key, restart.start as usize, input)
    }

    /// The entry that starts at `start`, after one with the key `last`. The bytes were checked.
    fn step(&self, start: usize, last: &Key) -> FoundEntry {
        let mut input = &self.bytes[start..];
        let key = take_key(&mut input, last).unwrap_or(*last);
        self.place_of(key, start, input)
    }

    /// The entry with `key` at `start`; `input` is what follows the key.
    fn place_of(&self, key: Key, start: usize, mut input: &[u8]) -> FoundEntry {
        let length = self.take_length(&mut input).unwrap_or(0);
        let from = self.bytes.len() - input.len();
        FoundEntry { key, start, value: (from, from + length) }
    }

    fn take_length(&self, input: &mut &[u8]) -> Option<usize> {
        if self.level > 0 { Some(CHILD_BYTES) } else { usize::try_from(varint::take(input)?).ok() }
    }

    /// The position of `key`, or where it would stand.
    pub fn search(&self, key: &Key) -> Result<usize, usize> {
        let after = self.restarts.partition_point(|restart| restart.key <= *key);
        let Some(restart) = after.checked_sub(1) else { return Err(0) };
        let mut index = restart * RESTART_ENTRIES;
        let mut place = self.at_restart(&self.restarts[restart]);
        loop {
            match place.key.cmp(key) {
                core::cmp::Ordering::Less => {}
                core::cmp::Ordering::Equal => return Ok(index),
                core::cmp::Ordering::Greater => return Err(index),
            }
            index += 1;
            if index == self.len() {
                return Err(index);
            }
            place = self.step(place.value.1, &place.key);
        }
    }

    /// The child under which `key` belongs; `None` if there is no child.
    pub fn child_for(&self, key: &Key) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        Some(match self.search(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        })
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: Key, value: &[u8]) {
        match self.search(&key) {
            Ok(index) => self.set_value(index, value),
            Err(index) => {
                let start = self.start_of(index);
                let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX + value.len() + ENTRY_BYTES_MAX);
                self.put_entry(&mut fresh, &self.key_before(index), &key, value.len());
                fresh.extend_from_slice(value);
                let end = self.put_head_again(&mut fresh, index, &key);
                self.count += 1;
                self.splice(start..end, &fresh, index);
            }
        }
    }

    /// Replaces the value of entry `index`.
    pub fn set_value(&mut self, index: usize, value: &[u8]) {
        let place = self.place(index);
        let (from, until) = place.value;
        if until - from == value.len() {
            self.bytes[from..until].copy_from_slice(value);
            return;
        }
        let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX + value.len());
        self.put_entry(&mut fresh, &self.key_before(index), &place.key, value.len());
        fresh.extend_from_slice(value);
        self.splice(place.start..until, &fresh, index);
    }

    /// Changes the key of entry `index` to another one that keeps the order.
    pub fn replace_key(&mut self, index: usize, key: Key) {
        let place = self.place(index);
        let value = self.bytes[place.value.0..place.value.1].to_vec();
        let mut fresh = Vec::with_capacity(2 * ENTRY_BYTES_MAX + value.len());
        self.put_entry(&mut fresh, &self.key_before(index), &key, value.len());
        fresh.extend_from_slice(&value);
        let end = self.put_head_again(&mut fresh, index + 1, &key);
        self.splice(place.start..end, &fresh, index);
    }

    /// Removes `key` if it is there.
    pub fn remove(&mut self, key: &Key) {
        if let Ok(index) = self.search(key) {
            self.remove_at(index);
        }
    }

    /// Removes entry `index`.
    pub fn remove_at(&mut self, index: usize) {
        let start = self.start_of(index);
        let mut fresh = Vec::with_capacity(ENTRY_BYTES_MAX);
        let end = self.put_head_again(&mut fresh, index + 1, &self.key_before(index));
        self.count -= 1;
        self.splice(start..end, &fresh, index);
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
        self.splice(end..end, &fresh, at);
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
        right.splice(0..0, &fresh, 0);
        self.count = at as u32;
        let all = self.bytes.len();
        self.splice(end..all, &[], at);
        right
    }

    /// The key before entry `index`; the least key before the first.
    fn key_before(&self, index: usize) -> Key {
        index.checked_sub(1).map_or(Key::MIN, |before| self.key(before))
    }

    /// Where entry `index` starts, or would.
    fn start_of(&self, index: usize) -> usize {
        if index < self.len() { self.place(index).start } else { self.bytes.len() }
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

    /// Replaces a range of bytes and finds the restarts again from entry `index` on.
    fn splice(&mut self, range: Range<usize>, fresh: &[u8], index: usize) {
        let wanted = self.bytes.len() - range.len() + fresh.len();
        if wanted > self.bytes.capacity() {
            self.bytes.reserve_exact(wanted.next_multiple_of(GROWTH_BYTES) - self.bytes.len());
        }
        self.bytes.splice(range, fresh.iter().copied());
        self.find_restarts(index / RESTART_ENTRIES);
    }

    /// Finds the restarts from number `first` on; those before it hold.
    fn find_restarts(&mut self, first: usize) {
        self.restarts.truncate(first);
        let (mut index, mut start, mut last) = (0, 0, Key::MIN);
        if let Some(before) = self.restarts.last() {
            index = (self.restarts.len() - 1) * RESTART_ENTRIES;
            let place = self.at_restart(before);
            (start, last) = (place.value.1, place.key);
            index += 1;
        }
        self.restarts.reserve_exact(self.len().div_ceil(RESTART_ENTRIES).saturating_sub(self.restarts.len()));
        while index < self.len() {
            let place = self.step(start, &last);
            if index % RESTART_ENTRIES == 0 {
                self.restarts.push(Restart { key: place.key, start: start as u32 });
            }
            (start, last) = (place.value.1, place.key);
            index += 1;
        }
    }

    /// Bytes that the node takes on the medium.
    pub const fn encoded_bytes(&self) -> usize {
        HEADER_BYTES + self.bytes.len()
    }

    /// Memory that the node takes, roughly.
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.restarts.capacity() * size_of::<Restart>()
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
        node.restarts.reserve_exact((count as usize).div_ceil(RESTART_ENTRIES));
        for index in 0..count as usize {
            let start = entries.len() - input.len();
            let key = take_key(&mut input, &last)?;
            if index > 0 && key <= last {
                return None;
            }
            let length = node.take_length(&mut input)?;
            input = input.get(length..)?;
            if index % RESTART_ENTRIES == 0 {
                node.restarts.push(Restart { key, start: start as u32 });
            }
            last = key;
        }
        input.is_empty().then_some(node)
    }

    /// The largest value that a tree with nodes of `node_bytes` takes: three entries fit a node.
    pub const fn value_bytes_max(node_bytes: usize) -> usize {
        (node_bytes - HEADER_BYTES) / 3 - ENTRY_BYTES_MAX
    }
}

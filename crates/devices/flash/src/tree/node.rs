//! A node in memory and as bytes.
//!
//! In memory the keys are decoded and the values lie in one buffer; on the medium entries are
//! delta-coded numbers and values one after another. A node read from a medium is checked whole
//! before it is used: levels, order, lengths.

use super::key::Key;
use alloc::vec::Vec;
use onode_base::varint;

/// A node: level 0 holds values, higher levels hold child references.
#[derive(Clone, Debug)]
pub struct Node {
    /// 0 for leaves.
    pub level: u8,
    entries: Vec<Entry>,
    values: Vec<u8>,
    garbage: usize,
    encoded: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    start: u32,
    length: u32,
}

/// Upper bound of the bytes that one entry takes beside its value: object, kind, index, length.
const ENTRY_BYTES_MAX: usize = 10 + 3 + 10 + 3;

impl Node {
    /// An empty node.
    pub const fn new(level: u8) -> Self {
        Self { level, entries: Vec::new(), values: Vec::new(), garbage: 0, encoded: 3 }
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The key of entry `index`.
    pub fn key(&self, index: usize) -> Key {
        self.entries[index].key
    }

    /// The value of entry `index`.
    pub fn value(&self, index: usize) -> &[u8] {
        let entry = &self.entries[index];
        &self.values[entry.start as usize..(entry.start + entry.length) as usize]
    }

    /// The least key.
    pub fn first_key(&self) -> Option<Key> {
        self.entries.first().map(|entry| entry.key)
    }

    /// The position of `key`, or where it would stand.
    pub fn search(&self, key: &Key) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.key.cmp(key))
    }

    /// The child under which `key` belongs; `None` if there is no child.
    pub fn child_for(&self, key: &Key) -> Option<usize> {
        if self.entries.is_empty() {
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
                let start = self.values.len() as u32;
                self.values.extend_from_slice(value);
                self.encoded -= self.cost(index);
                self.entries.insert(index, Entry { key, start, length: value.len() as u32 });
                self.encoded += self.cost(index) + self.cost(index + 1);
            }
        }
    }

    /// Replaces the value of entry `index`.
    pub fn set_value(&mut self, index: usize, value: &[u8]) {
        let entry = &mut self.entries[index];
        if entry.length as usize == value.len() {
            self.values[entry.start as usize..][..value.len()].copy_from_slice(value);
            return;
        }
        self.garbage += entry.length as usize;
        self.encoded -= length_cost(entry.length);
        entry.start = self.values.len() as u32;
        entry.length = value.len() as u32;
        self.encoded += length_cost(entry.length);
        self.values.extend_from_slice(value);
        self.compact();
    }

    /// Changes the key of entry `index` to a lesser one that keeps the order.
    pub fn replace_key(&mut self, index: usize, key: Key) {
        self.encoded -= self.cost(index) + self.cost(index + 1);
        self.entries[index].key = key;
        self.encoded += self.cost(index) + self.cost(index + 1);
    }

    /// Removes `key` if it is there.
    pub fn remove(&mut self, key: &Key) {
        if let Ok(index) = self.search(key) {
            self.remove_at(index);
        }
    }

    /// Removes entry `index`.
    pub fn remove_at(&mut self, index: usize) {
        self.encoded -= self.cost(index) + self.cost(index + 1);
        let entry = self.entries.remove(index);
        self.encoded += self.cost(index);
        self.garbage += entry.length as usize;
        self.compact();
    }

    /// Adds the entries of `right`, all of whose keys are greater.
    pub fn append(&mut self, right: &Self) {
        for index in 0..right.len() {
            let start = self.values.len() as u32;
            let value = right.value(index);
            self.values.extend_from_slice(value);
            self.entries.push(Entry { key: right.key(index), start, length: value.len() as u32 });
        }
        self.measure();
    }

    /// Splits off the upper half (by bytes). A node that grew at its end keeps most: keys that arrive in
    /// order then leave full nodes behind.
    pub fn split(&mut self) -> Self {
        let mut right = Self::new(self.level);
        let total: usize = self.entries.iter().map(|entry| entry.length as usize + 8).sum();
        let (mut kept, mut at) = (0, 0);
        while at + 1 < self.entries.len() && (kept < total / 2 || at == 0) {
            kept += self.entries[at].length as usize + 8;
            at += 1;
        }
        for index in at..self.len() {
            let key = self.key(index);
            let start = right.values.len() as u32;
            right.values.extend_from_slice(self.value(index));
            right.entries.push(Entry { key, start, length: self.entries[index].length });
        }
        self.garbage += right.values.len();
        self.entries.truncate(at);
        self.compact();
        self.measure();
        right.measure();
        right
    }

    fn compact(&mut self) {
        if self.garbage <= self.values.len() / 2 {
            return;
        }
        let mut values = Vec::with_capacity(self.values.len() - self.garbage);
        for entry in &mut self.entries {
            let start = values.len() as u32;
            values.extend_from_slice(&self.values[entry.start as usize..(entry.start + entry.length) as usize]);
            entry.start = start;
        }
        self.values = values;
        self.garbage = 0;
    }

    /// Bytes that entry `index` takes on the medium; 0 past the end. Depends on the key before it.
    fn cost(&self, index: usize) -> usize {
        let Some(entry) = self.entries.get(index) else { return 0 };
        let last = index.checked_sub(1).map_or(Key::MIN, |before| self.entries[before].key);
        let key = entry.key;
        varint_bytes(key.object.wrapping_sub(last.object))
            + varint_bytes(u64::from(key.kind))
            + varint_bytes(index_delta(&last, &key))
            + length_cost(entry.length)
    }

    fn measure(&mut self) {
        self.encoded = 3 + (0..self.entries.len()).map(|index| self.cost(index)).sum::<usize>();
    }

    /// Bytes that the node takes on the medium.
    pub const fn encoded_bytes(&self) -> usize {
        self.encoded
    }

    /// Memory that the node takes, roughly.
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<Entry>() + self.values.capacity()
    }

    /// The node as bytes: level, number of entries, then for each entry object (difference), kind, index
    /// (difference within an object and kind), length of the value, value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded);
        out.push(self.level);
        out.extend_from_slice(&(self.entries.len() as u16).to_le_bytes());
        let mut last = Key::MIN;
        for (index, entry) in self.entries.iter().enumerate() {
            varint::put(&mut out, entry.key.object.wrapping_sub(last.object));
            varint::put(&mut out, u64::from(entry.key.kind));
            varint::put(&mut out, index_delta(&last, &entry.key));
            varint::put(&mut out, u64::from(entry.length));
            out.extend_from_slice(self.value(index));
            last = entry.key;
        }
        debug_assert_eq!(out.len(), self.encoded);
        out
    }

    /// The node behind `bytes`; `None` if they are not a node of `level`.
    pub fn decode(bytes: &[u8], level: u8) -> Option<Self> {
        let (&[found, low, high], mut input) = bytes.split_first_chunk::<3>()?;
        let count = usize::from(u16::from_le_bytes([low, high]));
        if found != level || (level > 0 && count == 0) || count > bytes.len() {
            return None;
        }
        let mut node = Self { level, entries: Vec::with_capacity(count), ..Self::new(level) };
        node.values.reserve(bytes.len().saturating_sub(4 * count));
        let mut last = Key::MIN;
        for position in 0..count {
            let object = last.object.checked_add(varint::take(&mut input)?)?;
            let kind = u16::try_from(varint::take(&mut input)?).ok()?;
            let delta = varint::take(&mut input)?;
            let joined = object == last.object && kind == last.kind;
            let index = if joined { last.index.checked_add(delta)? } else { delta };
            let key = Key { object, kind, index };
            if position > 0 && key <= last {
                return None;
            }
            let value = varint::take_bytes(&mut input)?;
            let start = node.values.len() as u32;
            node.values.extend_from_slice(value);
            node.entries.push(Entry { key, start, length: value.len() as u32 });
            last = key;
        }
        node.encoded = bytes.len();
        input.is_empty().then_some(node)
    }

    /// The largest value that a tree with nodes of `node_bytes` takes: three entries fit a node.
    pub const fn value_bytes_max(node_bytes: usize) -> usize {
        (node_bytes - 3) / 3 - ENTRY_BYTES_MAX
    }
}

fn index_delta(last: &Key, key: &Key) -> u64 {
    if last.object == key.object && last.kind == key.kind { key.index.wrapping_sub(last.index) } else { key.index }
}

const fn length_cost(length: u32) -> usize {
    varint_bytes(length as u64) + length as usize
}

const fn varint_bytes(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

//! Entries of one bucket, in memory and in the bytes of a bucket.
//!
//! The bytes are those of the codec's byte-exact mode behind the key of the bucket. Values are kept in memory as the
//! tree has them; here they are taken apart and put together. An object of which something has another form
//! than this device gives it is kept as it is.

use crate::apply::{Extent, Onode};
use crate::record::Piece;
use crate::tree::Key;
use alloc::vec::Vec;
use onode_base::varint;
use onode_codec::exact::{self, Entry, Item};
use onode_object::Hints;
use onode_object::wire::hints;

/// Entries in order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    list: Vec<(Key, Vec<u8>)>,
}

impl Entries {
    /// How many.
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    fn search(&self, key: &Key) -> Result<usize, usize> {
        self.list.binary_search_by(|(one, _)| one.cmp(key))
    }

    /// The value of `key`.
    pub fn get(&self, key: &Key) -> Option<&[u8]> {
        self.search(key).ok().map(|index| &self.list[index].1[..])
    }

    /// The last entry at or before `key`.
    pub fn floor(&self, key: &Key) -> Option<(Key, Vec<u8>)> {
        let after = self.search(key).map_or_else(|index| index, |index| index + 1);
        after.checked_sub(1).and_then(|index| self.list.get(index)).cloned()
    }

    /// The entries from `key` on.
    pub fn from(&self, key: &Key) -> &[(Key, Vec<u8>)] {
        &self.list[self.search(key).unwrap_or_else(|index| index)..]
    }

    /// The first key.
    pub fn first(&self) -> Option<Key> {
        self.list.first().map(|(key, _)| *key)
    }

    /// Sets a value; true if it is that of the last key.
    pub fn insert(&mut self, key: Key, value: &[u8]) -> bool {
        match self.search(&key) {
            Ok(index) => self.list[index].1 = value.into(),
            Err(index) => self.list.insert(index, (key, value.into())),
        }
        self.list.last().is_some_and(|(last, _)| *last == key)
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Key) {
        if let Ok(index) = self.search(key) {
            self.list.remove(index);
        }
    }

    /// All of them, taken apart.
    pub fn items(&self) -> Vec<Entry> {
        let mut items = Vec::with_capacity(self.list.len());
        for object in self.list.chunk_by(|(a, _), (b, _)| a.object == b.object) {
            let begin = items.len();
            let mut end = 0;
            items.extend(
                object
                    .iter()
                    .map_while(|(key, value)| Some(Entry { object: key.object, item: item_of(key, value, &mut end)? })),
            );
            if items.len() - begin < object.len() {
                items.truncate(begin);
                items.extend(object.iter().map(|(key, value)| raw(key, value)));
            }
        }
        items
    }

    /// Takes away all but the first `keep` entries.
    pub fn split_off(&mut self, keep: usize) -> Self {
        Self { list: self.list.split_off(keep.min(self.list.len())) }
    }

    /// Memory they take.
    pub fn memory_bytes(&self) -> usize {
        self.list.iter().map(|(_, value)| value.capacity() + size_of::<(Key, Vec<u8>)>()).sum()
    }
}

/// What an entry says; `None` if that is not what this device writes. `end` is that of the extent before.
fn item_of(key: &Key, value: &[u8], end: &mut u64) -> Option<Item> {
    if key.kind == Key::EXTENT {
        let extent = Extent::decode(key, value)?;
        let Piece { location, length } = extent.piece;
        let is_sound = extent.offset >= *end && Extent::encode(extent.piece) == value;
        *end = extent.end();
        return is_sound.then_some(Item::Extent { offset: extent.offset, length, location });
    }
    let onode = Onode::decode(value).filter(|onode| onode.encode() == value)?;
    let mut advice = Vec::new();
    if onode.hints != Hints::default() {
        hints::put(&mut advice, &onode.hints);
    }
    Some(Item::Object { size: onode.size, allocated: onode.allocated, accessed: onode.accessed, hints: advice })
}

fn raw(key: &Key, value: &[u8]) -> Entry {
    let offset = (key.kind == Key::EXTENT).then_some(key.index);
    Entry { object: key.object, item: Item::Raw { offset, value: value.to_vec() } }
}

/// The key of an entry.
pub const fn key_of(entry: &Entry) -> Key {
    match entry.key() {
        (object, None) => Key { object, kind: Key::ONODE, index: 0 },
        (object, Some(index)) => Key { object, kind: Key::EXTENT, index },
    }
}

/// A key in the terms of the codec.
fn begin_of(key: &Key) -> exact::Begin {
    (key.object, (key.kind == Key::EXTENT).then_some(key.index))
}

/// The value of an entry; `None` if it is impossible.
fn value_of(item: Item) -> Option<Vec<u8>> {
    match item {
        Item::Extent { length, location, .. } => Some(Extent::encode(Piece { location, length })),
        Item::Raw { value, .. } => Some(value),
        Item::Object { size, allocated, accessed, hints: advice } => {
            let mut rest = &advice[..];
            let hints = if rest.is_empty() { Hints::default() } else { hints::take(&mut rest)? };
            rest.is_empty().then(|| Onode { size, allocated, hints, accessed }.encode())
        }
    }
}

/// A key by itself.
pub fn put_key(out: &mut Vec<u8>, key: &Key) {
    varint::put(out, key.object);
    varint::put(out, u64::from(key.kind));
    varint::put(out, key.index);
}

/// A key by itself.
pub fn take_key(input: &mut &[u8]) -> Option<Key> {
    let object = varint::take(input)?;
    let kind = u16::try_from(varint::take(input)?).ok()?;
    Some(Key { object, kind, index: varint::take(input)? })
}

/// The bytes of a bucket that begins at `first`, with pages of `unit` bytes. `None` if no bytes can hold so many entries.
pub fn encode(first: &Key, items: &[Entry], unit: u32) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    put_key(&mut out, first);
    out.extend_from_slice(&exact::encode(begin_of(first), items, unit)?);
    Some(out)
}

/// The key at which a bucket begins and its entries; `None` if they make no sense.
pub fn decode(mut bytes: &[u8]) -> Option<(Key, Entries)> {
    let first = take_key(&mut bytes)?;
    let mut list: Vec<(Key, Vec<u8>)> = Vec::new();
    for entry in exact::decode(begin_of(&first), bytes)? {
        let key = key_of(&entry);
        if key < first || list.last().is_some_and(|(last, _)| *last >= key) {
            return None;
        }
        list.push((key, value_of(entry.item)?));
    }
    Some((first, Entries { list }))
}

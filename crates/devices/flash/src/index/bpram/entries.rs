//! Entries of one bucket, in memory and in the bytes of a bucket.
//!
//! The bytes are those of the codec's byte-exact mode behind the key of the bucket. Values are kept
//! in memory as the tree has them, short ones - nearly all - without an allocation; here they are
//! taken apart and put together. An object of which something has another form than this device
//! gives it is kept as it is.

use crate::index::apply::{Extent, Onode};
use crate::log::record::Piece;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, Range};
use onode_base::varint;
use onode_codec::exact::{self, Entry, Item};
use onode_engine::Key;
use onode_object::Hints;
use onode_object::wire::hints;

/// Bytes of a value that need no allocation.
const SHORT_BYTES: usize = 22;
/// Default hints, as the wire has them.
const NO_HINTS: u64 = 0;
/// About as many entries as a full bucket of small files has.
const EXPECTED_ENTRIES: usize = 256;

/// The value of an entry.
#[derive(Clone, Debug)]
pub enum Value {
    /// So many bytes of these.
    Short(u8, [u8; SHORT_BYTES]),
    /// More of them.
    Long(Box<[u8]>),
}

impl Value {
    fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        match short.get_mut(..bytes.len()) {
            Some(front) => {
                front.copy_from_slice(bytes);
                Self::Short(bytes.len() as u8, short)
            }
            None => Self::Long(bytes.into()),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

/// Entries in order of their keys.
#[derive(Clone, Debug, Default)]
pub struct BucketEntries {
    list: Vec<(Key, Value)>,
}

impl BucketEntries {
    /// How many.
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    fn search(&self, key: &Key) -> Result<usize, usize> {
        self.list.binary_search_by(|(one, _)| one.cmp(key))
    }

    /// The value of `key`.
    pub fn get(&self, key: &Key) -> Option<&[u8]> {
        self.search(key).ok().map(|index| &*self.list[index].1)
    }

    /// The last entry at or before `key`.
    pub fn floor(&self, key: &Key) -> Option<(Key, Vec<u8>)> {
        let after = self.search(key).map_or_else(|index| index, |index| index + 1);
        let found = after.checked_sub(1).and_then(|index| self.list.get(index));
        found.map(|(key, value)| (*key, value.to_vec()))
    }

    /// The entries from `key` on.
    pub fn from(&self, key: &Key) -> &[(Key, Value)] {
        &self.list[self.search(key).unwrap_or_else(|index| index)..]
    }

    /// The first key.
    pub fn first(&self) -> Option<Key> {
        self.list.first().map(|(key, _)| *key)
    }

    /// Sets a value; true if it is that of the last key.
    pub fn insert(&mut self, key: Key, value: &[u8]) -> bool {
        match self.search(&key) {
            Ok(index) => self.list[index].1 = Value::new(value),
            Err(index) => self.list.insert(index, (key, Value::new(value))),
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
        let mut again = Vec::with_capacity(SHORT_BYTES);
        for object in self.list.chunk_by(|(a, _), (b, _)| a.object == b.object) {
            let begin = items.len();
            let mut end = 0;
            items.extend(object.iter().map_while(|(key, value)| {
                Some(Entry { object: key.object, item: item_of(key, value, &mut end, &mut again)? })
            }));
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
        let long = |value: &Value| if let Value::Long(bytes) = value { bytes.len() } else { 0 };
        self.list.iter().map(|(_, value)| long(value) + size_of::<(Key, Value)>()).sum()
    }
}

/// What an entry says; `None` if that is not what this device writes. `end` is that of the extent
/// before, `again` room to write it once more.
fn item_of(key: &Key, value: &[u8], end: &mut u64, again: &mut Vec<u8>) -> Option<Item> {
    again.clear();
    if key.kind == Key::EXTENT {
        let extent = Extent::decode(key, value)?;
        let Piece { location, length } = extent.piece;
        Extent::put(extent.piece, again);
        let is_sound = extent.offset >= *end && again == value;
        *end = extent.end();
        return is_sound.then_some(Item::Extent { offset: extent.offset, length, location });
    }
    let onode = Onode::decode(value)?;
    onode.put(again);
    if again != value {
        return None;
    }
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

/// The value of an entry; `None` if it is impossible. `room` is there to write it.
fn value_of(item: &Item, room: &mut Vec<u8>) -> Option<Value> {
    let mut short = ShortValue::default();
    match item {
        Item::Extent { length, location, .. } => {
            short.number(u64::from(*length));
            short.number(*location);
            Some(short.finish(|out| Extent::put(Piece { location: *location, length: *length }, out)))
        }
        Item::Object { size, allocated, accessed: 0, hints } if hints.is_empty() => {
            short.number(*size);
            short.number(*allocated);
            short.number(NO_HINTS);
            let hints = Hints::default();
            Some(short.finish(|out| Onode { size: *size, allocated: *allocated, hints, accessed: 0 }.put(out)))
        }
        Item::Object { size, allocated, accessed, hints: advice } => {
            let mut rest = &advice[..];
            let hints = if rest.is_empty() { Hints::default() } else { hints::take(&mut rest)? };
            rest.is_empty().then_some(())?;
            room.clear();
            Onode { size: *size, allocated: *allocated, hints, accessed: *accessed }.put(room);
            Some(Value::new(room))
        }
        Item::Raw { value, .. } => Some(Value::new(value)),
    }
}

/// A value of few numbers on its way: nearly all are, and to write them to a vector first takes far
/// longer.
#[derive(Default)]
struct ShortValue {
    length: usize,
    bytes: [u8; SHORT_BYTES],
}

impl ShortValue {
    /// Appends a number as [`varint::put`] does; there is room for two and a byte.
    #[inline]
    fn number(&mut self, mut value: u64) {
        loop {
            let more = if value >= 0x80 { 0x80 } else { 0 };
            if let Some(byte) = self.bytes.get_mut(self.length) {
                *byte = value as u8 & 0x7f | more;
                self.length += 1;
            }
            value >>= 7;
            if more == 0 {
                return;
            }
        }
    }

    /// The value, which is what `put` writes.
    #[inline]
    fn finish(self, put: impl FnOnce(&mut Vec<u8>)) -> Value {
        if cfg!(debug_assertions) {
            let mut same = Vec::new();
            put(&mut same);
            debug_assert_eq!(self.bytes.get(..self.length), Some(&same[..]), "a value is put in two forms");
        }
        Value::Short(self.length as u8, self.bytes)
    }
}

/// A key by itself, with pages of `unit` bytes. The offset of an extent is below 2^63.
pub fn put_key(out: &mut Vec<u8>, key: &Key, unit: u32) {
    varint::put(out, key.object);
    let unit = u64::from(unit);
    let place = match key.kind {
        Key::EXTENT if key.index.is_multiple_of(unit) => ((key.index / unit) << 1) | 1,
        Key::EXTENT => key.index << 1,
        _ => 0,
    };
    varint::put(out, place);
}

/// A key by itself; `None` if it makes no sense.
pub fn take_key(input: &mut &[u8], unit: u32) -> Option<Key> {
    let object = varint::take(input)?;
    let place = varint::take(input)?;
    Some(match place {
        0 => Key { object, kind: Key::ONODE, index: 0 },
        odd if odd % 2 == 1 => Key { object, kind: Key::EXTENT, index: (odd >> 1).checked_mul(u64::from(unit))? },
        even => Key { object, kind: Key::EXTENT, index: even >> 1 },
    })
}

/// The bytes of a bucket that begins at `first`, with pages of `unit` bytes. `None` if no bytes can
/// hold so many entries.
pub fn encode(first: &Key, items: &[Entry], unit: u32) -> Option<Vec<u8>> {
    Draft::new(first, items, unit)?.encode_some(first, 0..items.len())
}

/// Entries on their way into buckets.
pub struct Draft<'a> {
    unit: u32,
    run: exact::Draft<'a>,
}

impl<'a> Draft<'a> {
    /// Of `items` from `first` on, with pages of `unit` bytes. `None` if something is too long for
    /// any bucket.
    pub fn new(first: &Key, items: &'a [Entry], unit: u32) -> Option<Self> {
        Some(Self { unit, run: exact::Draft::new(begin_of(first), items, unit)? })
    }

    /// About how many bits of a bucket there are up to the end of each item, if all were in one.
    pub fn ends(&mut self) -> Vec<u32> {
        self.run.about_ends()
    }

    /// How many items from the one with the number `from` on a bucket holds at most, however few
    /// bytes they take.
    pub fn most_from(&self, from: usize) -> usize {
        self.run.most_from(from)
    }

    /// The bytes of a bucket from `first` on of some of the items. `None` if no bytes can hold so
    /// many.
    pub fn encode_some(&mut self, first: &Key, range: Range<usize>) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        put_key(&mut out, first, self.unit);
        out.extend_from_slice(&self.run.encode_some(begin_of(first), range)?);
        Some(out)
    }
}

/// The key at which a bucket begins and its entries, with pages of `unit` bytes; `None` if they
/// make no sense.
pub fn decode(mut bytes: &[u8], unit: u32) -> Option<(Key, BucketEntries)> {
    let first = take_key(&mut bytes, unit)?;
    let mut list: Vec<(Key, Value)> = Vec::with_capacity(EXPECTED_ENTRIES);
    let mut last = None;
    let mut again = Vec::new();
    exact::decode_each(begin_of(&first), bytes, unit, |entry| {
        let key = key_of(&entry);
        if key < first || last.replace(key).is_some_and(|last| last >= key) {
            return None;
        }
        list.push((key, value_of(&entry.item, &mut again)?));
        Some(())
    })?;
    list.shrink_to_fit();
    Some((first, BucketEntries { list }))
}

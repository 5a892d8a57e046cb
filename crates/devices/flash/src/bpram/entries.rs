//! Entries of one bucket, in memory and in the bytes of a bucket.
//!
//! An entry is a byte of flags and what they do not say: most onodes come right behind one another with the same advice, most
//! extents go on where the one before them ended and reach the end of their object. A value of another form
//! is kept as it is.

use crate::apply::{Extent, Onode};
use crate::record::Piece;
use crate::tree::Key;
use alloc::vec::Vec;
use onode_base::varint;
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

    /// Takes away all but the first `keep` entries.
    pub fn split_off(&mut self, keep: usize) -> Self {
        Self { list: self.list.split_off(keep.min(self.list.len())) }
    }

    /// Adds entries whose keys are all higher.
    pub fn append(&mut self, mut right: Self) {
        self.list.append(&mut right.list);
    }

    /// Memory they take.
    pub fn memory_bytes(&self) -> usize {
        self.list.iter().map(|(_, value)| value.capacity() + size_of::<(Key, Vec<u8>)>()).sum()
    }
}

const EXTENT: u8 = 1;
/// An onode whose object is the one after that of the entry before; an extent of the same object.
const NEXT: u8 = 2;
/// The value as it is.
const RAW: u8 = 4;
/// An onode: advice as before. An extent: it begins where the one before ended.
const SAME: u8 = 8;
/// An onode: allocated as far as its size. An extent: it reaches the end of its object.
const WHOLE: u8 = 16;
/// An onode: it has an access time. An extent: it lies right behind the one before.
const MORE: u8 = 32;

/// What the entries so far say of the next one.
struct State {
    object: u64,
    size: u64,
    hints: Hints,
    /// End of the last extent of the object.
    end: u64,
    /// End of the last extent of all on the medium.
    location: u64,
}

impl State {
    fn new(first: &Key) -> Self {
        Self { object: first.object, size: 0, hints: Hints::default(), end: 0, location: 0 }
    }

    fn enter(&mut self, object: u64) {
        if object != self.object {
            *self = Self { object, size: 0, end: 0, ..*self };
        }
    }
}

const fn zigzag(value: u64) -> u64 {
    (value << 1) ^ (((value as i64) >> 63) as u64)
}

const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// The bytes of a bucket that begins at `first`.
pub fn encode(first: &Key, entries: &Entries) -> Vec<u8> {
    let mut out = Vec::new();
    put_key(&mut out, first);
    let mut state = State::new(first);
    for (key, value) in &entries.list {
        put_entry(&mut out, &mut state, key, value);
    }
    out
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

fn put_entry(out: &mut Vec<u8>, state: &mut State, key: &Key, value: &[u8]) {
    let flags_at = out.len();
    out.push(0);
    let is_extent = key.kind == Key::EXTENT;
    let step = key.object.wrapping_sub(state.object);
    let mut flags = if is_extent { EXTENT } else { 0 };
    if step == u64::from(!is_extent) {
        flags |= NEXT;
    } else {
        varint::put(out, step);
    }
    state.enter(key.object);
    let onode = if is_extent { None } else { Onode::decode(value).filter(|onode| onode.encode() == value) };
    let extent = if is_extent { Extent::decode(key, value) } else { None };
    let extent = extent.filter(|extent| Extent::encode(extent.piece) == value);
    if is_extent && key.index == state.end {
        flags |= SAME;
    } else if is_extent {
        varint::put(out, key.index.wrapping_sub(state.end));
    }
    match (onode, extent) {
        (Some(onode), _) => {
            varint::put(out, onode.size);
            if onode.allocated == onode.size {
                flags |= WHOLE;
            } else {
                varint::put(out, onode.allocated);
            }
            if onode.hints == state.hints {
                flags |= SAME;
            } else {
                hints::put(out, &onode.hints);
            }
            if onode.accessed != 0 {
                flags |= MORE;
                varint::put(out, onode.accessed);
            }
            state.size = onode.size;
            state.hints = onode.hints;
        }
        (_, Some(Extent { piece, .. })) => {
            if state.size.checked_sub(key.index) == Some(u64::from(piece.length)) {
                flags |= WHOLE;
            } else {
                varint::put(out, u64::from(piece.length));
            }
            if piece.location == state.location {
                flags |= MORE;
            } else {
                varint::put(out, zigzag(piece.location.wrapping_sub(state.location)));
            }
            state.end = key.index.wrapping_add(u64::from(piece.length));
            state.location = piece.location.wrapping_add(u64::from(piece.length));
        }
        _ => {
            flags |= RAW;
            varint::put_bytes(out, value);
        }
    }
    out[flags_at] = flags;
}

/// The key at which a bucket begins and its entries; `None` if they make no sense.
pub fn decode(mut bytes: &[u8]) -> Option<(Key, Entries)> {
    let first = take_key(&mut bytes)?;
    let mut state = State::new(&first);
    let mut list: Vec<(Key, Vec<u8>)> = Vec::new();
    while !bytes.is_empty() {
        let (key, value) = take_entry(&mut bytes, &mut state)?;
        if key < first || list.last().is_some_and(|(last, _)| *last >= key) {
            return None;
        }
        list.push((key, value));
    }
    Some((first, Entries { list }))
}

fn take_entry(input: &mut &[u8], state: &mut State) -> Option<(Key, Vec<u8>)> {
    let (&flags, rest) = input.split_first()?;
    *input = rest;
    let is_extent = flags & EXTENT != 0;
    let step = if flags & NEXT != 0 { u64::from(!is_extent) } else { varint::take(input)? };
    state.enter(state.object.wrapping_add(step));
    let object = state.object;
    let key = match (is_extent, flags & SAME != 0) {
        (false, _) => Key { object, kind: Key::ONODE, index: 0 },
        (true, true) => Key { object, kind: Key::EXTENT, index: state.end },
        (true, false) => Key { object, kind: Key::EXTENT, index: state.end.wrapping_add(varint::take(input)?) },
    };
    if flags & RAW != 0 {
        return Some((key, varint::take_bytes(input)?.to_vec()));
    }
    if is_extent {
        let whole = flags & WHOLE != 0;
        let length = if whole { state.size.checked_sub(key.index)? } else { varint::take(input)? };
        let behind = flags & MORE != 0;
        let step = if behind { 0 } else { unzigzag(varint::take(input)?) };
        let piece = Piece { location: state.location.wrapping_add(step), length: u32::try_from(length).ok()? };
        state.end = key.index.checked_add(length)?;
        state.location = piece.location.wrapping_add(length);
        return Some((key, Extent::encode(piece)));
    }
    let size = varint::take(input)?;
    let allocated = if flags & WHOLE != 0 { size } else { varint::take(input)? };
    if flags & SAME == 0 {
        state.hints = hints::take(input)?;
    }
    let accessed = if flags & MORE != 0 { varint::take(input)? } else { 0 };
    state.size = size;
    Some((key, Onode { size, allocated, hints: state.hints, accessed }.encode()))
}

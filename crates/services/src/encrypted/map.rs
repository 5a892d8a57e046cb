//! What is stored beside the content of an object, in attributes that the host never sees: its head
//! with size and data key, and groups of entries, one for each block.
//!
//! The form of each is in `docs/format/encryption.md`. Everything is sealed: heads with a key of
//! the volume, groups with the data key of their object. That key stands in the head; if the object
//! belongs to a directory with a key, it is wrapped by that one.

use crate::encrypted::cipher::{Cipher, Context, KEY_BYTES, NONCE_BYTES, Nonce, OVERHEAD_BYTES, TAG_BYTES, Tag, What};
use crate::encrypted::directories::wrapped::Wrapped;
use crate::encrypted::keys::Key;
use crate::encrypted::volume_keys::Keys;
use onode_base::planted::{Bug, is_planted};
use onode_object::{AttributeKey, AttributeKind, Error, ErrorKind, ObjectId, Result, Transaction};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Content is sealed in blocks of so many bytes.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Blocks of a group; the first one of the object stands in its head.
pub(super) const GROUP_BLOCKS: u64 = 16;
/// Content is stored in units of so many bytes.
pub(super) const UNIT_BYTES: u64 = 64;
/// The bytes of an entry.
pub(super) const ENTRY_BYTES: usize = NONCE_BYTES + TAG_BYTES + 6;

const VERSION: u8 = 1;
/// A head whose data key is wrapped by the key of a directory.
const WRAPPED_VERSION: u8 = 2;
/// Attributes of the kind of services from here to before `END` are those of this one.
const BASE: u64 = 3 << 62;
const HOLES: u64 = BASE + (1 << 56);
const INLINE: u64 = BASE + (1 << 57);
const RESTS: u64 = BASE + (1 << 58);
const RESTS_MASK: u64 = (1 << 58) - 1;
/// What the volume itself has, from here on.
pub(super) const VOLUME: u64 = BASE + (1 << 60);
const END: u64 = BASE + (1 << 61);

const fn key(index: u64) -> AttributeKey {
    AttributeKey::new(AttributeKind::SERVICE, index)
}

/// The head of an object.
pub(super) const HEAD: AttributeKey = AttributeKey::ENCRYPTED;
/// All of a small object, if its entry says so.
pub(super) const INLINE_KEY: AttributeKey = key(INLINE);
/// The first attribute that is not of this service any more.
pub(super) const BEHIND: AttributeKey = key(END);

/// A group of an object.
pub(super) const fn group_key(group: u64) -> AttributeKey {
    key(BASE + 1 + group)
}

/// The number of the group that an attribute is.
pub(super) fn group_of(key: AttributeKey) -> Option<u64> {
    let is_group = key.kind == AttributeKind::SERVICE && (BASE + 1..HOLES).contains(&key.index);
    is_group.then(|| key.index - BASE - 1)
}

/// Which bytes of a block are holes.
pub(super) const fn holes_key(block: u64) -> AttributeKey {
    key(HOLES + block)
}

/// The content of which an attribute tells, if it is one of those.
pub(crate) fn content_of(key: AttributeKey) -> Option<Range<u64>> {
    const GROUP_BYTES: u64 = GROUP_BLOCKS * BLOCK_BYTES;
    let (first, bytes) = match (group_of(key), key.index) {
        (Some(group), _) => (group, GROUP_BYTES),
        (None, BASE | INLINE) if is_ours(key) => (0, GROUP_BYTES),
        (None, HOLES..INLINE) if is_ours(key) => (key.index - HOLES, BLOCK_BYTES),
        _ => return None,
    };
    let start = first.saturating_mul(bytes);
    Some(start..start.saturating_add(bytes))
}

/// What is left of a long attribute whose place is that.
pub(super) const fn rest_key(place: u64) -> AttributeKey {
    key(RESTS + (place & RESTS_MASK))
}

/// Something of the volume.
pub(super) const fn volume_key(index: u64) -> AttributeKey {
    key(VOLUME + index)
}

/// Whether an attribute belongs to this service.
pub(super) fn is_ours(key: AttributeKey) -> bool {
    key.kind == AttributeKind::SERVICE && (BASE..END).contains(&key.index)
}

/// What is known of a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockEntry {
    pub(super) nonce: Nonce,
    pub(super) tag: Tag,
    /// From where to where its bytes count; the others read as zeros.
    from: u16,
    until: u16,
    /// How many units are stored; 0 if nothing ever was.
    pub(super) units: u8,
    flags: u8,
}

const HAS_HOLES: u8 = 1;
const IS_INLINE: u8 = 2;

impl BlockEntry {
    /// Of a block that was just sealed.
    pub(super) fn sealed(nonce: Nonce, tag: Tag, until: u64, is_inline: bool) -> Self {
        let units = until.div_ceil(UNIT_BYTES) as u8;
        Self { nonce, tag, from: 0, until: until as u16, units, flags: if is_inline { IS_INLINE } else { 0 } }
    }

    /// The same for a block that is stored in full, however little of it counts.
    pub(super) const fn in_full(self) -> Self {
        Self { units: (BLOCK_BYTES / UNIT_BYTES) as u8, ..self }
    }

    pub(super) const fn is_absent(&self) -> bool {
        self.units == 0
    }

    pub(super) const fn has_holes(&self) -> bool {
        self.flags & HAS_HOLES != 0
    }

    /// Whether the attribute [`INLINE_KEY`] holds the block, and not the content.
    pub(super) const fn is_inline(&self) -> bool {
        self.flags & IS_INLINE != 0
    }

    /// Bytes that are stored of the block of that number: one at the end of the largest object has
    /// one byte less.
    pub(super) fn stored_bytes(&self, block: u64) -> u64 {
        let room = Transaction::MAX_OBJECT_BYTES.saturating_sub(block * BLOCK_BYTES);
        (u64::from(self.units) * UNIT_BYTES).min(room)
    }

    /// Which of its bytes count, but for holes between them.
    pub(super) fn counting(&self) -> Range<u64> {
        u64::from(self.from)..u64::from(self.until)
    }

    /// The same when only these of its bytes count, but for holes between them.
    pub(super) const fn cut(self, counting: Range<u64>, has_holes: bool) -> Self {
        let flags = if has_holes { self.flags | HAS_HOLES } else { self.flags & !HAS_HOLES };
        Self { from: counting.start as u16, until: counting.end as u16, flags, ..self }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.until.to_le_bytes());
        out.extend_from_slice(&[self.units, self.flags]);
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (nonce, rest) = bytes.split_first_chunk()?;
        let (tag, rest) = rest.split_first_chunk()?;
        let &[from, from_high, until, until_high, units, flags] = rest else { return None };
        let (from, until) = (u16::from_le_bytes([from, from_high]), u16::from_le_bytes([until, until_high]));
        let stored = u64::from(units) * UNIT_BYTES;
        let fits = from <= until && u64::from(until) <= stored && stored <= BLOCK_BYTES;
        let is_known = flags & !(HAS_HOLES | IS_INLINE) == 0;
        (fits && is_known).then_some(Self { nonce: *nonce, tag: *tag, from, until, units, flags })
    }
}

/// The data key of an object, as bytes and ready for use.
pub(super) struct DataKey {
    bytes: Key,
    pub(super) cipher: Cipher,
}

impl DataKey {
    pub(super) fn new(bytes: Key) -> Self {
        Self { cipher: Cipher::new(&bytes), bytes }
    }
}

/// What is known of an object as a whole.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) size: u64,
    /// `None` while the key of its directory is locked.
    key: Option<Arc<DataKey>>,
    pub(super) first: BlockEntry,
    /// The data key as it is stored, if a directory has wrapped it.
    wrapped: Option<Wrapped>,
}

impl Head {
    /// That of an object without content.
    pub(super) fn new(key: DataKey) -> Self {
        Self { size: 0, key: Some(Arc::new(key)), first: BlockEntry::default(), wrapped: None }
    }

    /// The same in a directory with a key.
    pub(super) fn of_directory(key: DataKey, wrapped: Wrapped) -> Self {
        Self { wrapped: Some(wrapped), ..Self::new(key) }
    }

    /// The data key.
    ///
    /// # Errors
    /// `KeyNeeded` if the key of its directory is locked.
    pub(super) fn key(&self, object: ObjectId) -> Result<&Arc<DataKey>> {
        self.key.as_ref().ok_or_else(|| {
            let number = self.directory_key();
            Error::of(
                ErrorKind::KeyNeeded,
                object,
                format!("it is encrypted, and key {number} of its directory is locked"),
            )
        })
    }

    /// The number of the key of its directory; 0 if that has none.
    pub(super) fn directory_key(&self) -> u32 {
        self.wrapped.as_ref().map_or(0, Wrapped::number)
    }

    /// The same with its data key as far as the keys that are unlocked now tell; says whether it
    /// is another one than before.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn unlock(&mut self, object: ObjectId, keys: &Keys) -> std::result::Result<bool, &'static str> {
        let Some(wrapped) = &self.wrapped else { return Ok(false) };
        let Some(cipher) = keys.directories().cipher(wrapped.number()) else {
            return Ok(!is_planted(Bug::DirectoryKeyRemembered) && self.key.take().is_some());
        };
        if self.key.is_some() {
            return Ok(false);
        }
        let key = wrapped.open(object, &cipher).ok_or("its data key is not what was wrapped")?;
        self.key = Some(Arc::new(DataKey::new(key)));
        Ok(true)
    }

    /// As it is stored.
    pub(super) fn value(&self, object: ObjectId, keys: &Keys) -> Result<Vec<u8>> {
        let mut plain = Zeroizing::new(Vec::with_capacity(8 + KEY_BYTES + OVERHEAD_BYTES + ENTRY_BYTES));
        plain.extend_from_slice(&self.size.to_le_bytes());
        let mut value = match &self.wrapped {
            None => {
                plain.extend_from_slice(&*self.key(object)?.bytes);
                vec![VERSION]
            }
            Some(wrapped) => {
                plain.extend_from_slice(wrapped.bytes());
                let mut value = vec![WRAPPED_VERSION];
                value.extend_from_slice(&wrapped.number().to_le_bytes());
                value
            }
        };
        self.first.write(&mut plain);
        let context = Context::new(What::Head, object, u64::from(self.directory_key()));
        value.extend_from_slice(&keys.heads().seal_value(&keys.nonce()?, &context, &plain));
        Ok(value)
    }

    /// What is stored.
    pub(super) fn parse(object: ObjectId, value: &[u8], keys: &Keys) -> std::result::Result<Self, &'static str> {
        let (&version, rest) = value.split_first().ok_or("its head is empty")?;
        let (number, sealed) = match version {
            VERSION => (0, rest),
            WRAPPED_VERSION => {
                let (number, sealed) = rest.split_first_chunk().ok_or("its head is too short")?;
                (u32::from_le_bytes(*number), sealed)
            }
            _ => return Err("its head is of a version that this one does not know"),
        };
        let context = Context::new(What::Head, object, u64::from(number));
        let plain = keys.heads().open_value(&context, sealed).map(Zeroizing::new);
        let plain = plain.ok_or("its head is not what was sealed")?;
        let (size, rest) = plain.split_first_chunk().ok_or("its head is too short")?;
        let size = u64::from_le_bytes(*size);
        if version == VERSION {
            let (key, first) = rest.split_first_chunk::<KEY_BYTES>().ok_or("its head is too short")?;
            let first = BlockEntry::parse(first).ok_or("its head says nonsense")?;
            let key = Some(Arc::new(DataKey::new(Zeroizing::new(*key))));
            return Ok(Self { size, key, first, wrapped: None });
        }
        let (wrapped, first) = Wrapped::parse(number, rest).ok_or("its head is too short")?;
        let first = BlockEntry::parse(first).ok_or("its head says nonsense")?;
        let mut head = Self { size, key: None, first, wrapped: Some(wrapped) };
        head.unlock(object, keys)?;
        Ok(head)
    }
}

/// Heads that the changes of a transaction begin, of objects in directories with a key.
pub(super) type Begun = BTreeMap<ObjectId, Head>;

/// The entries of a group.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct BlockGroup {
    entries: [BlockEntry; GROUP_BLOCKS as usize],
}

impl BlockGroup {
    /// The entry of a block of this group.
    pub(super) const fn entry(&self, block: u64) -> BlockEntry {
        self.entries[(block % GROUP_BLOCKS) as usize]
    }

    pub(super) const fn set(&mut self, block: u64, entry: BlockEntry) {
        self.entries[(block % GROUP_BLOCKS) as usize] = entry;
    }

    /// How many entries are stored: up to the last one that says something.
    fn count(&self) -> usize {
        self.entries.iter().rposition(|entry| !entry.is_absent()).map_or(0, |last| last + 1)
    }

    /// How many bytes are stored.
    pub(super) fn stored_bytes(&self) -> usize {
        self.count() * ENTRY_BYTES + OVERHEAD_BYTES
    }

    /// As it is stored.
    pub(super) fn value(&self, object: ObjectId, group: u64, key: &DataKey, nonce: &Nonce) -> Vec<u8> {
        let mut plain = Vec::with_capacity(self.count() * ENTRY_BYTES);
        self.entries[..self.count()].iter().for_each(|entry| entry.write(&mut plain));
        key.cipher.seal_value(nonce, &Context::new(What::Group, object, group), &plain)
    }

    /// What is stored.
    pub(super) fn parse(
        object: ObjectId,
        group: u64,
        value: &[u8],
        key: &DataKey,
    ) -> std::result::Result<Self, &'static str> {
        let plain = key.cipher.open_value(&Context::new(What::Group, object, group), value);
        let plain = plain.ok_or("what is known of some blocks is not what was sealed")?;
        let (entries, rest) = plain.as_chunks::<ENTRY_BYTES>();
        if entries.len() > GROUP_BLOCKS as usize || !rest.is_empty() {
            return Err("what is known of some blocks has a wrong length");
        }
        let mut found = Self::default();
        for (place, bytes) in found.entries.iter_mut().zip(entries) {
            *place = BlockEntry::parse(bytes).ok_or("what is known of a block is nonsense")?;
        }
        Ok(found)
    }
}

/// A part of the map of an object, as a shard remembers it.
pub(super) enum MapPart {
    Head(Head),
    Group(Box<BlockGroup>),
}

/// The number of a head among the parts of an object.
pub(super) const HEAD_PART: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encrypted::keys::{MasterKey, Session};

    const OBJECT: ObjectId = ObjectId(5);

    fn keys() -> Keys {
        Keys::new(&MasterKey::new([1; 32]), Session::new([2; 32]).in_epoch(1))
    }

    #[test]
    fn heads_and_groups_are_read_as_they_were_stored() {
        let keys = keys();
        let key = Arc::new(DataKey::new(keys.data_key().expect("a key")));
        let entry = |valid| BlockEntry::sealed([3; 12], [4; 16], valid, false);
        let head = Head { size: 70_000, key: Some(Arc::clone(&key)), first: entry(4096), wrapped: None };
        let stored = head.value(OBJECT, &keys).expect("it can be sealed");
        let read = Head::parse(OBJECT, &stored, &keys).unwrap_or_else(|why| panic!("{why}"));
        assert!((read.size, read.first) == (70_000, entry(4096)));
        assert!(*read.key(OBJECT).expect("not locked").bytes == *key.bytes);
        assert!(Head::parse(ObjectId(6), &stored, &keys).is_err());
        let mut group = BlockGroup::default();
        for block in [16, 20, 31] {
            group.set(block, entry(block * 100).cut(5..block * 90, block == 20));
        }
        let stored = group.value(OBJECT, 1, &key, &[5; 12]);
        assert!(stored.len() <= Transaction::MAX_ATTRIBUTE_BYTES);
        assert!(BlockGroup::parse(OBJECT, 1, &stored, &key).is_ok_and(|read| read == group));
        assert!(BlockGroup::parse(OBJECT, 2, &stored, &key).is_err());
    }

    #[test]
    fn nonsense_is_no_entry() {
        let whole = BlockEntry::sealed([3; 12], [4; 16], 4096, true);
        for bad in [
            BlockEntry { until: 4097, ..whole },
            BlockEntry { from: 4097, ..whole },
            BlockEntry { units: 65, ..whole },
            BlockEntry { units: 63, ..whole },
            BlockEntry { flags: 4, ..whole },
        ] {
            let mut bytes = Vec::new();
            bad.write(&mut bytes);
            assert!(BlockEntry::parse(&bytes).is_none());
        }
    }

    #[test]
    fn keys_of_attributes_are_apart() {
        let last_block = (1 << 63) / BLOCK_BYTES;
        let keys = [
            HEAD,
            group_key(0),
            group_key(last_block / GROUP_BLOCKS),
            holes_key(0),
            holes_key(last_block),
            INLINE_KEY,
            rest_key(0),
            rest_key(u64::MAX),
            volume_key(0),
            volume_key(16 + u64::from(u32::MAX)),
            BEHIND,
        ];
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        assert!(keys[..10].iter().all(|key| is_ours(*key)) && !is_ours(BEHIND));
    }
}

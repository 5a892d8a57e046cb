//! The device that encrypts: what the host asks goes through here.
//!
//! It keeps true that everything reads as on the wrapped device without it, and that the wrapped
//! device holds no byte of what the host gave it: content, attributes (names, inodes) and exact
//! sizes are sealed. How many objects there are, which attributes they have, how large they are in
//! blocks and their hints can be seen.

mod attributes;
pub(crate) mod cipher;
mod directories;
mod header;
mod keys;
pub(crate) mod map;
mod powers;
mod read;
mod settle;
mod slot;
mod told;
mod translate;
mod volume_keys;

pub use directories::{DirectoryKey, DirectoryKeys, NewSlot};
pub use header::{KeyHeader, SLOTS_MAX};
pub(crate) use keys::{Key, derive, keyed_hash};
pub use keys::{MasterKey, Session};
pub use slot::{Cost, KEY_FILE_BYTES_MIN, KeySlot, LABEL_BYTES_MAX, Secret, SlotKind, SlotSettings};

use crate::encrypted::cipher::OVERHEAD_BYTES;
use crate::encrypted::directories::stored;
use crate::encrypted::map::{BEHIND, BLOCK_BYTES, Begun, GROUP_BLOCKS, MapPart, UNIT_BYTES, is_ours};
use crate::encrypted::volume_keys::Keys;
use crate::shards::{Ranks, Shards};
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::rank;
use onode_object::powers::{Decision, Erase, Scrub};
use onode_object::validate::REPLACED_BYTES_MAX;
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Mutation, ObjectDevice, ObjectId, ObjectStat, Result, Space,
    Transaction, forward_device,
};
use std::sync::Arc;

/// By how much transactions are smaller than the wrapped device would like them.
const SPREAD: usize = 2;
/// One part in so many of the space is for what tells how to open the rest.
const MAPS: u64 = 64;

/// The ranks of the locks of [`Encrypted`].
enum SealRanks {}

impl Ranks for SealRanks {
    type Changing = rank::SealChanging;
    type Content = rank::SealContent;
    type Known = rank::SealKnown;
}

/// An object device that keeps all that it is given encrypted on another one.
pub struct Encrypted<D: ?Sized> {
    inner: Arc<D>,
    /// Shared with devices that show snapshots of this one.
    keys: Arc<Keys>,
    shards: Shards<MapPart, SealRanks>,
    is_shared: bool,
    /// What some objects say, for when one of them is made, or made anew.
    header: KeyHeader,
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// The device for a volume that is to be made on it, some objects of which then say what the
    /// header does.
    ///
    /// # Errors
    /// `KeyNeeded` if the header has another master key.
    pub fn create(inner: Arc<D>, mut header: KeyHeader, master: &MasterKey, session: Session) -> Result<Self> {
        header.verify(master)?;
        let epoch = header.begin_new()?;
        Ok(Self::new(inner, header, master, session.in_epoch(epoch)))
    }

    /// The device of an encrypted volume. Unless it accepts no changes, the number of this mount is
    /// on the medium before anything is sealed.
    ///
    /// # Errors
    /// `KeyNeeded` if this is not its master key; those of the device.
    pub fn open(inner: Arc<D>, mut header: KeyHeader, master: &MasterKey, session: Session) -> Result<Self> {
        header.verify(master)?;
        if inner.info().read_only.is_some() {
            return Ok(Self::new(inner, header, master, session));
        }
        let epoch = {
            let _turn = Turn::take(inner.as_ref());
            header.begin(inner.as_ref())?
        };
        Ok(Self::new(inner, header, master, session.in_epoch(epoch)))
    }

    fn new(inner: Arc<D>, header: KeyHeader, master: &MasterKey, session: Session) -> Self {
        let is_shared = inner.share().is_some();
        let keys = Arc::new(Keys::new(master, session));
        if header.has_directories() {
            keys.directories().begin_use();
        }
        Self { inner, keys, shards: Shards::new(), is_shared, header }
    }

    /// What is on a device that shows the wrapped one as it was once, with the same keys.
    #[must_use]
    pub fn of_snapshot<S: ObjectDevice + ?Sized>(&self, snapshot: Arc<S>) -> Encrypted<S> {
        let (keys, header) = (Arc::clone(&self.keys), self.header.clone());
        Encrypted { inner: snapshot, keys, shards: Shards::new(), is_shared: false, header }
    }

    /// The wrapped device.
    #[must_use]
    pub const fn inner(&self) -> &Arc<D> {
        &self.inner
    }

    /// What the volume says of its encryption.
    #[must_use]
    pub const fn header(&self) -> &KeyHeader {
        &self.header
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }

    const fn shards(&self) -> &Shards<MapPart, SealRanks> {
        &self.shards
    }

    const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What an object says that is just made.
    fn header_of(&self, made: ObjectId) -> Result<Vec<Mutation>> {
        let has_directories = self.keys.directories().is_used();
        let mut all = self.header.of_made(made, has_directories);
        if has_directories {
            all.extend(stored::of_made(self.inner.as_ref(), self.header.holders(), made)?);
        }
        Ok(all)
    }

    /// Looks at an object while nobody changes what is stored of it.
    fn look<T>(&self, object: ObjectId, look: impl FnOnce() -> T) -> T {
        let _turn = Turn::take(self.inner.as_ref());
        let shard = self.shards.of(object);
        let _content = (!is_planted(Bug::EncryptedReadBeside)).then(|| shard.content.read());
        look()
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Encrypted<D> {
    /// A few bytes change a whole block, so that a transaction of the wrapped device carries more
    /// than the host's.
    fn info(&self) -> DeviceInfo {
        let info = self.inner.info();
        let transaction_bytes = (info.transaction_bytes / SPREAD).max(BLOCK_BYTES as usize);
        DeviceInfo { transaction_bytes, summary: format!("{}, encrypted", info.summary), ..info }
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.change(transaction, |transaction| {
            if is_planted(Bug::EncryptedMapInTwo) {
                commit_in_two(transaction, |transaction| self.inner.commit(transaction, durability))
            } else {
                self.inner.commit(transaction, durability)
            }
        })
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.look(object, || self.read_content(object, offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        if is_ours(key) {
            return self.inner.stat(object).map(|_| None);
        }
        self.open_attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let from = if is_ours(from) { BEHIND } else { from };
        self.attribute_seal(object, from.kind, &Begun::new())?;
        let found = self.inner.attributes(object, from, limit)?;
        let is_last = found.is_empty();
        let opened = self.open_attributes(object, found)?;
        // None means that there are no more: it must not be said of hidden ones.
        if !opened.is_empty() || is_last {
            return Ok(opened);
        }
        self.open_attributes(object, self.inner.attributes(object, BEHIND, limit)?)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.look(object, || {
            let head = self.head(object)?;
            let stat = self.inner.stat(object)?;
            Ok(ObjectStat { size: head.map_or(0, |head| head.size), ..stat })
        })
    }

    /// Blocks that hold data, whole ones: what of a block is a hole, the wrapped device cannot see.
    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.look(object, || {
            let Some(head) = self.head(object)? else { return Ok(Vec::new()) };
            if self.tells_holes() {
                return self.told_extents(object, &head, offset, limit);
            }
            let mut all = Vec::new();
            let inline = if head.first.is_inline() { head.first.counting().end } else { 0 };
            if offset < inline && limit > 0 {
                all.push((offset, inline - offset));
            }
            let from = offset.max(inline) / BLOCK_BYTES * BLOCK_BYTES;
            for (start, length) in self.inner.extents(object, from, limit)? {
                let end = (start + length).next_multiple_of(BLOCK_BYTES).min(head.size);
                let start = (start / BLOCK_BYTES * BLOCK_BYTES).max(offset);
                let is_full = all.len() >= limit;
                match all.last_mut() {
                    _ if start >= end => {}
                    Some((last, length)) if *last + *length >= start => *length = (*length).max(end - *last),
                    _ if is_full => {}
                    _ => all.push((start, end - start)),
                }
            }
            Ok(all)
        })
    }

    fn space(&self) -> Space {
        let space = self.inner.space();
        let without_maps = |bytes: u64| bytes - bytes / MAPS;
        Space { total: without_maps(space.total), available: without_maps(space.available), ..space }
    }

    /// Whole blocks are stored, and entries for them.
    fn space_for(&self, demand: &Demand) -> u64 {
        const GROUP_BYTES: u64 = Transaction::MAX_ATTRIBUTE_BYTES as u64;
        const HEAD_BYTES: u64 = 128;
        const WRAPPED_HEAD_BYTES: u64 = 160;
        let is_small = demand.object_bytes <= BLOCK_BYTES;
        let has_content = demand.ranges > 0 && demand.bytes > 0;
        let bytes = match (has_content, is_small) {
            (false, _) => demand.bytes,
            (true, true) => demand.object_bytes.next_multiple_of(UNIT_BYTES),
            (true, false) => demand.blocks * BLOCK_BYTES,
        };
        let groups = match (has_content, is_small) {
            (true, false) => demand.ranges * 2 + demand.blocks / GROUP_BLOCKS,
            (true, true) | (false, _) => 0,
        };
        // In a directory with a key whatever is made has a head.
        let (heads, head_bytes) = match self.has_directories() {
            false => (u64::from(has_content || demand.object_bytes > 0), HEAD_BYTES),
            true => (demand.entries + 1, WRAPPED_HEAD_BYTES),
        };
        // A small object that is replaced may go to an attribute.
        let inline = u64::from(has_content && demand.object_bytes <= REPLACED_BYTES_MAX as u64);
        // Each attribute of the host is longer, and a long one has a second part.
        let entries = demand.entries + demand.entry_bytes / (GROUP_BYTES - OVERHEAD_BYTES as u64);
        self.inner.space_for(&Demand {
            entries: entries + groups + heads + inline,
            entry_bytes: demand.entry_bytes
                + demand.entries * OVERHEAD_BYTES as u64
                + groups * GROUP_BYTES
                + heads * head_bytes
                + inline * GROUP_BYTES,
            bytes,
            object_bytes: demand.object_bytes.next_multiple_of(if is_small { UNIT_BYTES } else { BLOCK_BYTES }),
            ..*demand
        })
    }

    fn promisable(&self) -> u64 {
        let promisable = self.inner.promisable();
        promisable - promisable / MAPS
    }

    fn has_directory_keys(&self) -> bool {
        self.has_directories()
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        let mut decisions = self.inner.decisions(object)?;
        let number = if self.has_directories() { self.inner.stat(object)?.hints.encryption_key } else { 0 };
        let why = match (number, self.header.is_open()) {
            (0, false) => "all of the volume is, since it was made".to_owned(),
            (0, true) => "with a key that is no secret: only directories with keys are".to_owned(),
            _ => format!("it was made in a directory with key {number}"),
        };
        decisions.push(Decision::new("encryption", "AES-256-GCM-SIV, blocks of 4 KiB", why));
        Ok(decisions)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        self.inner.scrub().map(|_| self as &dyn Scrub)
    }

    fn erase(&self) -> Option<&dyn Erase> {
        self.inner.erase().map(|_| self as &dyn Erase)
    }

    forward_device! {
        self => self.inner;
        reserve_ids, sync, list, space_to_replace, maintain, close, health, compression, parity,
        rearrange, rearranging_bytes, share, place, attachment, resizing, inspect
    }
}

/// Bug: the maps are committed after what they tell of.
fn commit_in_two(transaction: Transaction, commit: impl Fn(Transaction) -> Result<()>) -> Result<()> {
    let is_map = |one: &Mutation| matches!(one, Mutation::SetAttribute { key, .. } if is_ours(*key));
    let (map, rest): (Vec<_>, Vec<_>) = transaction.mutations.into_iter().partition(is_map);
    commit(Transaction { mutations: rest })?;
    if map.is_empty() { Ok(()) } else { commit(Transaction { mutations: map }) }
}

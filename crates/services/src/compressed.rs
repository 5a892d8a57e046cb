//! The device that wraps a device: what the host asks goes through here.
//!
//! It keeps true that everything reads as on the wrapped device without it, except that it takes
//! fewer bytes. Questions that have nothing to do with content are handed on as they are.

mod chunk;
mod extents;
pub(crate) mod map;
mod policy;
mod powers;
mod read;
mod translate;
mod why;

use crate::compressed::map::{CHUNK_BYTES, GROUP_BYTES, Group};
use crate::shards::{Ranks, Shards};
use crate::turn::Turn;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::rank;
use onode_object::powers::{Decision, Erase, MapObjects, Scrub};
use onode_object::validate::REPLACED_BYTES_MAX;
use onode_object::{
    AttributeKey, AttributeKind, Compression, Demand, DeviceInfo, Durability, Error, ErrorKind, Mutation, ObjectDevice,
    ObjectId, ObjectStat, Result, Transaction, forward_device,
};
use std::sync::Arc;

/// The attribute that says that a volume may have compressed objects; its value is a version.
const MARK: AttributeKey = AttributeKey::VOLUME_COMPRESSED;
const MARKED: [u8; 1] = [1];
/// By how much transactions are smaller than the wrapped device would like them.
const SPREAD: usize = 4;
/// What most devices give out content in.
const UNIT_BYTES: usize = 4096;

/// The ranks of the locks of [`Compressed`].
pub(crate) enum CompressedRanks {}

impl Ranks for CompressedRanks {
    type Changing = rank::ServiceChanging;
    type Content = rank::ServiceContent;
    type Known = rank::ServiceKnown;
}

/// An object device that keeps content compressed on another one.
pub struct Compressed<D: ?Sized> {
    inner: Arc<D>,
    mode: Compression,
    /// What the wrapped device gives out content in: what saves less stays plain.
    unit: usize,
    /// What the wrapped device likes to take at once, asked for once: each write wants to know.
    transaction_bytes: usize,
    shards: Shards<Group, CompressedRanks>,
    is_shared: bool,
    /// The object that says that there may be compressed ones, if one has to.
    marker: Option<ObjectId>,
}

impl<D: ObjectDevice + ?Sized> Compressed<D> {
    /// The device with what is written from now on compressed as `mode` says, where the hints of an
    /// object leave it open. What is compressed already is read in any mode.
    #[must_use]
    pub fn new(inner: Arc<D>, mode: Compression) -> Self {
        let is_shared = inner.share().is_some();
        let transaction_bytes = inner.info().transaction_bytes;
        Self { inner, mode, unit: UNIT_BYTES, transaction_bytes, shards: Shards::new(), is_shared, marker: None }
    }

    /// The device of a volume, wrapped if something on it is or will be compressed; `None` if not:
    /// then it need not be. An attribute of the object `marker`, which the volume has, says so from
    /// the first time on that a volume is opened in another mode than `Never`, and with it whatever
    /// `admit` adds, by which the volume tells programs that know nothing of this to keep off.
    ///
    /// # Errors
    /// `NotSupported` if a newer version says so; `NoSpace` if there is no room to say it; those of
    /// the device and of `admit`.
    pub fn of_volume(
        inner: &Arc<D>,
        marker: ObjectId,
        mode: Compression,
        admit: impl FnOnce() -> Result<Option<Mutation>>,
    ) -> Result<Option<Self>> {
        let mut transaction = Transaction::new();
        let is_marked = match inner.attribute(marker, MARK) {
            Ok(Some(value)) if value == MARKED => true,
            Ok(Some(_)) => {
                let why = "its content is compressed in a way that only a newer version knows";
                return Err(Error::of(ErrorKind::NotSupported, marker, why));
            }
            Ok(None) if mode == Compression::Never || inner.info().read_only.is_some() => return Ok(None),
            Ok(None) => {
                transaction.set_attribute(marker, MARK, MARKED.to_vec());
                false
            }
            // Nothing says that there is none: what is plain is read as well. The object is marked
            // when it is made.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => {
                return Ok(Some(Self { marker: Some(marker), ..Self::new(Arc::clone(inner), mode) }));
            }
            Err(error) => return Err(error),
        };
        // Settings that were lost and made anew do not say it any more.
        if inner.info().read_only.is_none() {
            transaction.mutations.extend(admit()?);
        }
        if !transaction.mutations.is_empty() {
            match inner.commit(transaction, Durability::Durable) {
                // What is compressed has to be read, whether the settings can say so or not.
                Err(error) if !is_marked => return Err(error),
                _ => {}
            }
        }
        Ok(Some(Self { marker: Some(marker), ..Self::new(Arc::clone(inner), mode) }))
    }

    /// The same on a device that gives out content in so many bytes at a time, not in blocks of
    /// 4,096.
    #[must_use]
    pub fn in_units(self, bytes: usize) -> Self {
        Self { unit: bytes.max(REPLACED_BYTES_MAX), ..self }
    }

    pub(crate) const fn unit(&self) -> usize {
        self.unit
    }

    /// Says that there may be compressed objects as soon as the object that says so is made.
    pub(crate) fn mark(&self, made: ObjectId, mutations: &mut Vec<Mutation>) {
        if self.marker == Some(made) {
            mutations.push(Mutation::SetAttribute { object: made, key: MARK, value: MARKED.to_vec() });
        }
    }

    /// The wrapped device.
    #[must_use]
    pub const fn inner(&self) -> &Arc<D> {
        &self.inner
    }

    /// What is compressed where hints leave it open.
    #[must_use]
    pub const fn mode(&self) -> Compression {
        self.mode
    }

    pub(crate) const fn shards(&self) -> &Shards<Group, CompressedRanks> {
        &self.shards
    }

    /// Whether other hosts may use the wrapped device.
    pub(crate) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Looks at an object while nobody changes what is compressed of it.
    fn look<T>(&self, object: ObjectId, look: impl FnOnce() -> T) -> T {
        let _turn = Turn::take(self.inner.as_ref());
        let shard = self.shards.of(object);
        let _content = (!is_planted(Bug::ServicesReadBeside)).then(|| shard.content.read());
        look()
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Compressed<D> {
    /// A few bytes may change a whole chunk, so that a transaction of the wrapped device carries
    /// more than the host's: sixteen times as much at worst, where each write is a block of a chunk
    /// of its own.
    fn info(&self) -> DeviceInfo {
        let info = self.inner.info();
        let least = info.transaction_bytes.min(CHUNK_BYTES as usize);
        DeviceInfo { transaction_bytes: (info.transaction_bytes / SPREAD).max(least), ..info }
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.change(transaction, |transaction| self.inner.commit(transaction, durability))
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.look(object, || self.read_content(object, offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        if key.kind == AttributeKind::SERVICE {
            return self.inner.stat(object).map(|_| None);
        }
        self.inner.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        let behind = AttributeKey::new(AttributeKind(AttributeKind::SERVICE.0 + 1), 0);
        let from = if from.kind == AttributeKind::SERVICE { behind } else { from };
        let mut found = self.inner.attributes(object, from, limit)?;
        let is_last = found.is_empty();
        found.retain(|(key, _)| key.kind != AttributeKind::SERVICE);
        // None means that there are no more: it must not be said of hidden ones.
        if found.is_empty() && !is_last { self.inner.attributes(object, behind, limit) } else { Ok(found) }
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.look(object, || {
            let head = self.group(object, 0)?;
            let stat = self.inner.stat(object)?;
            let hidden = head.map_or(0, |head| head.hidden());
            Ok(ObjectStat { size: stat.size.saturating_sub(hidden), ..stat })
        })
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.look(object, || match self.group(object, 0)? {
            None => self.inner.extents(object, offset, limit),
            Some(head) => self.extents_mixed(object, &head, offset, limit),
        })
    }

    /// What is written may have to be stored with the rest of its chunks, plain, and the attributes
    /// that tell of them.
    fn space_for(&self, demand: &Demand) -> u64 {
        const ATTRIBUTE_BYTES: u64 = Transaction::MAX_ATTRIBUTE_BYTES as u64;
        let stays_plain = demand.is_new && demand.object_bytes <= self.unit as u64;
        if stays_plain || demand.ranges == 0 || demand.bytes == 0 {
            return self.inner.space_for(demand);
        }
        let rest = if demand.is_new {
            // Nothing is there to be stored anew, but what the same demand wrote before: a chunk
            // for each transaction that it may take.
            demand.bytes / self.transaction_bytes.max(1) as u64 * CHUNK_BYTES
        } else {
            // Of each range the rest of its first and of its last chunk, of which there are no more
            // than the object has bytes.
            (demand.ranges * 2 * CHUNK_BYTES).min(demand.object_bytes.next_multiple_of(Demand::BLOCK_BYTES))
        };
        let groups = (demand.object_bytes / GROUP_BYTES + 1).min(demand.ranges * 2 + demand.bytes / GROUP_BYTES);
        self.inner.space_for(&Demand {
            entries: demand.entries + groups + 1,
            entry_bytes: demand.entry_bytes
                + (groups + 1) * ATTRIBUTE_BYTES.min(8 + demand.object_bytes / CHUNK_BYTES * 3),
            bytes: demand.bytes + rest,
            blocks: demand.blocks + rest / Demand::BLOCK_BYTES,
            ..*demand
        })
    }

    fn compression(&self) -> Option<Compression> {
        Some(self.mode)
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
        self.decided(object)
    }

    fn map_objects(&self) -> Option<&dyn MapObjects> {
        self.inner.map_objects().map(|_| self as &dyn MapObjects)
    }

    fn scrub(&self) -> Option<&dyn Scrub> {
        self.inner.scrub().map(|_| self as &dyn Scrub)
    }

    fn erase(&self) -> Option<&dyn Erase> {
        self.inner.erase().map(|_| self as &dyn Erase)
    }

    forward_device! {
        self => self.inner;
        reserve_ids, sync, list, space, space_to_replace, promisable, maintain, has_directory_keys,
        directory_key, close, health, parity, rearrange, rearranging_bytes, share, place, attachment,
        resizing, inspect
    }
}

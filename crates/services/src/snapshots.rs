//! Snapshots: the state of all objects at one moment, kept while they change on; and clones of
//! them, which change on their own.
//!
//! [`Versioned`] wraps a device. Taking a snapshot writes a record of it and nothing else. From
//! then on what a transaction is about to change goes to a *version* of its object first, in the
//! same transaction: an object of its own beside it, with only what has changed since. So what is
//! there now is read as ever, and a snapshot ([`SnapshotView`]) is read through its versions. While
//! there are no snapshots everything is handed on.
//!
//! It stands right on the device: other services find in a snapshot what they had stored then, and
//! need not know of it.

mod chain;
mod changes;
mod clean;
mod clones;
mod count;
mod lost;
mod merge;
mod moment;
mod preserve;
mod record;
mod version;
mod view;

use crate::plan::refused_of_own;
use crate::shards::{Ranks, Shards};
use crate::snapshots::count::Visible;
use crate::snapshots::preserve::Preserving;
use crate::snapshots::record::Records;
use crate::snapshots::version::{Completeness, List, Version};
use onode_base::Timestamp;
use onode_base::planted::{Bug, is_planted};
use onode_base::sync::{ReadGuard, RwLock, rank};
use onode_object::validate::{Stored, never_needs_space};
use onode_object::{
    AttributeKey, AttributeKind, Demand, Durability, Error, ErrorKind, Hints, Maintenance, Mutation, ObjectDevice,
    ObjectId, Result, Space, Transaction, forward_device,
};
use std::sync::Arc;

pub(crate) use changes::{ObjectChange, Span};
pub use clones::CloneDevice;
pub use lost::Dropped;
pub(crate) use record::check_name;
pub use record::{CloneInfo, NewSnapshot, SNAPSHOT_NAME_BYTES_MAX, SNAPSHOTS_MAX, Snapshot, SnapshotId};
pub(crate) use version::data_of;
pub use view::SnapshotView;

/// Of a volume with snapshots one part in so many is kept free, so that files can be removed when
/// it is full: what goes has to be kept, and that takes some space.
const RESERVE_PART: u64 = 64;
const RESERVE_BYTES_MAX: u64 = 64 << 20;

/// Attributes of a version besides those that it keeps: header, entry of the list.
const VERSION_ENTRIES: u64 = 4;
/// Bytes of an attribute that is kept, most of them: inodes and names.
const KEPT_BYTES: u64 = 64;
/// Versions that are removed at once.
const REMOVED: usize = 16;
/// Steps with what a deleted snapshot kept that are one unit of background work.
const CLEANED: u32 = 16;

struct SnapshotRanks;

impl Ranks for SnapshotRanks {
    type Changing = rank::SnapshotChanging;
    type Content = rank::SnapshotContent;
    type Known = rank::SnapshotKnown;
}

/// A device of which snapshots can be taken.
pub struct Versioned<D: ?Sized> {
    /// Held by who changes or looks at the device, alone by who takes a snapshot or deletes one.
    records: RwLock<Records, rank::SnapshotRecords>,
    shards: Shards<(), SnapshotRanks>,
    visible: Visible,
    inner: Arc<D>,
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// The device with the snapshots that it has. `None` if it cannot have any: processes that
    /// share a memory, and programs that have a part of it, change content that nobody else hears
    /// of.
    ///
    /// # Errors
    /// `Corrupt` if what it says of snapshots cannot be read; those of the device.
    pub fn open(inner: Arc<D>) -> Result<Option<Self>> {
        if inner.share().is_some() || inner.map_objects().is_some() {
            return Ok(None);
        }
        let records = RwLock::new(Records::load(inner.as_ref())?);
        Ok(Some(Self { records, shards: Shards::new(), visible: Visible::default(), inner }))
    }

    /// The device without its snapshots, of which what it says cannot be read: nothing is kept for
    /// them any more, and what was is removed, unless the device takes no changes.
    #[must_use]
    pub fn open_giving_up(inner: Arc<D>) -> Self {
        let (records, visible) = (RwLock::new(Records::unreadable()), Visible::default());
        let given_up = Self { records, shards: Shards::new(), visible, inner };
        if given_up.inner.info().read_only.is_none() && given_up.remove_all().is_ok() {
            *given_up.records.write() = Records::default();
        }
        given_up
    }

    /// Removes all that is kept for snapshots.
    fn remove_all(&self) -> Result<()> {
        let commit = |mutations| self.inner.commit(Transaction { mutations }, Durability::Buffered);
        match self.inner.stat(ObjectId::SNAPSHOTS) {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            found => {
                found?;
                commit(vec![Mutation::Remove { object: ObjectId::SNAPSHOTS }])?;
            }
        }
        loop {
            let versions = self.inner.list(ObjectId::FIRST_VERSION, REMOVED)?;
            if versions.is_empty() {
                return Ok(());
            }
            commit(versions.into_iter().map(|object| Mutation::Remove { object }).collect())?;
        }
    }

    /// Whether something is kept for snapshots or clones on `device` of which holes alone tell what
    /// it does not cover: on a device whose
    /// [extents are not exact](ObjectDevice::extents_are_exact) they would show zeros there.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub fn relies_on_holes(device: &D) -> Result<bool> {
        let mut from = ObjectId::FIRST_VERSION;
        loop {
            let found = device.list(from, REMOVED)?;
            let Some(last) = found.last() else { return Ok(false) };
            for id in found.iter().filter(|id| id.version_of().is_some_and(|(object, _)| object != ObjectId(0))) {
                let version = Version::load(device, *id)?;
                if version.standing == Completeness::Part && !version.is_told {
                    return Ok(true);
                }
            }
            from = ObjectId(last.0.saturating_add(1));
        }
    }

    fn inner(&self) -> &D {
        &self.inner
    }

    fn records(&self) -> ReadGuard<'_, Records> {
        self.records.read()
    }

    /// Whether an object is one of those that snapshots are kept in.
    fn is_own(object: ObjectId) -> bool {
        object == ObjectId(0) || is_hidden(object)
    }

    /// The snapshots in the order in which they were taken.
    #[must_use]
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.records().shown().cloned().collect()
    }

    /// Whether what deleted snapshots kept, or deleted clones had, is still being removed.
    #[must_use]
    pub fn is_cleaning(&self) -> bool {
        let records = self.records();
        records.next_removed().is_some() || records.next_removed_clone().is_some()
    }

    /// Keeps the state of all objects as it is now, under a name; durable on return, with all that
    /// was committed before. Takes as long for a large volume as for an empty one.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be one of a directory, `Exists`, `NoSpace`; `ReadOnly`;
    /// those of the device.
    pub fn take(&self, name: &str, created: Timestamp) -> Result<Snapshot> {
        self.take_with(&NewSnapshot { name: name.to_owned(), created, id: None }, Vec::new())
    }

    /// The same, with changes of the device below that happen together with it.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_with(&self, new: &NewSnapshot, together: Vec<Mutation>) -> Result<Snapshot> {
        let mut records = self.records.write();
        let (taken, mut mutations) = self.taking(&records, new)?;
        let taken_last = || Error::new(ErrorKind::Bug, "a snapshot was taken and is not there");
        let snapshot = taken.latest().cloned().ok_or_else(taken_last)?;
        mutations.extend(together);
        self.inner.commit(Transaction { mutations }, Durability::Durable)?;
        *records = taken;
        Ok(snapshot)
    }

    /// The records with one more snapshot, and what takes it.
    fn taking(&self, records: &Records, new: &NewSnapshot) -> Result<(Records, Vec<Mutation>)> {
        // A repair may have dropped what told of snapshots, and versions are left: they would be
        // taken for those of new ones.
        if records.is_new() {
            self.remove_all()?;
        }
        let (taken, mut mutations) = records.with(new, self.inner.reserve_ids(0)?)?;
        let list = taken.latest().and_then(|latest| List::of(latest.generation));
        mutations.extend(list.map(|List(object)| Mutation::Create { object, hints: Hints::default() }));
        Ok((taken, mutations))
    }

    /// Deletes a snapshot: nobody sees it any more, and what it kept is removed by
    /// [`maintain`](ObjectDevice::maintain).
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly`; those of the device.
    pub fn delete(&self, name: &str) -> Result<()> {
        let mut records = self.records.write();
        let (left, mutations) = records.deleting(name)?;
        self.inner.commit(Transaction { mutations }, Durability::Durable)?;
        *records = left;
        Ok(())
    }

    /// Space that is kept for what removals have to keep.
    fn reserve(&self) -> u64 {
        match self.records().latest() {
            Some(_) => reserve_of(&self.inner.space()),
            None => 0,
        }
    }

    /// Bytes that can be written before the device is full: what is promised to the host takes all
    /// but a part of what is kept for removals.
    #[must_use]
    pub fn room(&self) -> u64 {
        let space = self.inner.space();
        space.available.saturating_sub(reserve_of(&space) / 4)
    }

    /// What is kept of what somebody replaces takes so much.
    fn space_to_keep(&self, demand: &Demand) -> u64 {
        let copies = self.inner.move_unit().is_none() && !demand.is_new;
        // A hole or content that is told, and what stood there of a neighbour.
        let told = if self.inner.extents_are_exact() { 2 } else { 4 };
        let pieces = demand.entries + told * demand.ranges;
        self.inner.space_for(&Demand {
            entries: pieces + VERSION_ENTRIES,
            entry_bytes: (pieces + VERSION_ENTRIES) * KEPT_BYTES,
            ranges: if copies { demand.ranges } else { 0 },
            bytes: if copies { demand.blocks * Demand::BLOCK_BYTES } else { 0 },
            blocks: if copies { demand.blocks } else { 0 },
            object_bytes: if copies { demand.object_bytes } else { 0 },
            is_new: true,
        })
    }

    /// Whether so many quarters of the reserve are left.
    fn has_quarters(&self, quarters: u64) -> bool {
        let space = self.inner.space();
        space.available >= reserve_of(&space) / 4 * quarters
    }

    /// Refuses what would take of the space that is kept for removals. A transaction for which
    /// something is `kept` always takes some, also if it only removes.
    fn check_reserve(&self, transaction: &Transaction, stored: &mut dyn Stored, kept: bool) -> Result<()> {
        let mutations = &transaction.mutations;
        // What a removal left for later takes little, and must not be forgotten; encryption pays
        // for it with punches of nothing. Nor must a mount fail that notes its beginning.
        let lists = |one: &Mutation| match one {
            Mutation::SetAttribute { key, .. } => [AttributeKind::ORPHAN, AttributeKind::SERVICE].contains(&key.kind),
            Mutation::Punch { length, .. } => *length == 0,
            _ => false,
        };
        if mutations.iter().all(lists) {
            return Ok(());
        }
        let takes = |one: &Mutation| {
            matches!(one, Mutation::Create { .. } | Mutation::Write { .. } | Mutation::SetAttribute { .. })
        };
        if !kept && (!mutations.iter().any(takes) || never_needs_space(transaction, stored)?) {
            return Ok(());
        }
        // What is kept of removals must not take the space of what a host was promised before,
        // which may need somewhat more than was reckoned with.
        let quarters = if kept && mutations.iter().any(is_removal) { 2 } else { 1 };
        if self.has_quarters(quarters) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NoSpace, FULL))
    }

    /// What preserves what a transaction changes.
    fn preserving(&self, snapshot: &Snapshot, transaction: &Transaction, moves: bool) -> Result<Vec<Mutation>> {
        let preserving = Preserving::new(self.inner(), snapshot, moves);
        let impossible = || Error::new(ErrorKind::Bug, "a snapshot has a number that no version can have");
        preserving.ok_or_else(impossible)?.preserve(transaction)
    }

    /// Commits a transaction of the host with what preserves what it changes.
    fn commit_keeping(&self, records: &Records, transaction: Transaction, durability: Durability) -> Result<()> {
        let Some(snapshot) = records.latest() else { return self.inner.commit(transaction, durability) };
        let _changing = self.shards.change(transaction.mutations.iter().map(Mutation::object));
        let keeps_nothing = is_planted(Bug::SnapshotKeepsNothing);
        let mutations = if keeps_nothing { Vec::new() } else { self.preserving(snapshot, &transaction, true)? };
        self.check_reserve(&transaction, &mut Lengths(self.inner()), !mutations.is_empty())?;
        if mutations.is_empty() {
            return self.inner.commit(transaction, durability);
        }
        let moves = mutations.iter().any(|one| matches!(one, Mutation::Move { .. }));
        let again = moves.then(|| transaction.clone());
        let committed = self.commit_with(mutations, transaction, durability);
        match (committed, again) {
            // A device may have no room to move very many pieces at once; copies go ahead.
            (Err(error), Some(transaction)) if error.kind == ErrorKind::NoSpace => {
                let mutations = self.preserving(snapshot, &transaction, false)?;
                self.commit_with(mutations, transaction, durability)
            }
            (committed, _) => committed,
        }
    }

    /// The same at once.
    fn commit_with(&self, mut kept: Vec<Mutation>, transaction: Transaction, durability: Durability) -> Result<()> {
        let objects: Vec<_> = transaction.mutations.iter().map(Mutation::object).collect();
        self.shards.alone(objects.into_iter(), || {
            if is_planted(Bug::SnapshotKeptBefore) {
                self.inner.commit(Transaction { mutations: std::mem::take(&mut kept) }, Durability::Buffered)?;
            }
            kept.extend(transaction.mutations);
            self.inner.commit(Transaction { mutations: kept }, durability)
        })
    }

    fn reading(&self, object: ObjectId) -> ReadGuard<'_, ()> {
        self.shards.of(object).content.read()
    }

    /// The transaction as the device refuses it, if it is about what only snapshots are kept in.
    fn refused(transaction: &mut Transaction) -> Option<Transaction> {
        let is_ours =
            |key: AttributeKey| key.kind == AttributeKind::SNAPSHOT || key.kind >= AttributeKind::FIRST_ABSENT;
        refused_of_own(transaction, |one| Self::is_own(one.object()), is_ours)
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Versioned<D> {
    fn commit(&self, mut transaction: Transaction, durability: Durability) -> Result<()> {
        if let Some(refused) = Self::refused(&mut transaction) {
            return self.inner.commit(refused, durability);
        }
        let records = self.records();
        let more = count::more_by(&transaction);
        self.commit_keeping(&records, transaction, durability)?;
        self.visible.add(more);
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        seen(object)?;
        self.inner.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        seen(object)?;
        self.inner.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        seen(object)?;
        self.inner.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<onode_object::ObjectStat> {
        seen(object)?;
        self.inner.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut from = from;
        loop {
            let found = self.inner.list(from, limit)?;
            let Some(last) = found.last().copied() else { return Ok(found) };
            let shown: Vec<_> = found.into_iter().filter(|object| !Self::is_own(*object)).collect();
            // None means that there are no more: it must not be said of hidden ones.
            if !shown.is_empty() || last.is_version() {
                return Ok(shown);
            }
            from = ObjectId(last.0 + 1);
        }
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        seen(object)?;
        self.inner.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        let space = self.inner.space();
        let (available, objects) = (space.available.saturating_sub(self.reserve()), self.visible_of(space.objects));
        Space { available, objects, ..space }
    }

    /// What is kept of what is replaced takes space, too.
    fn space_for(&self, demand: &Demand) -> u64 {
        let kept = if self.records().latest().is_some() { self.space_to_keep(demand) } else { 0 };
        self.inner.space_for(demand) + kept
    }

    fn space_to_replace(&self, bytes: u64) -> u64 {
        if self.records().latest().is_none() {
            return 0;
        }
        // An attribute, and the content, which may begin and end within a block.
        let blocks = bytes.div_ceil(Demand::BLOCK_BYTES) + 1;
        self.space_to_keep(&Demand { entries: 1, ranges: 1, blocks, object_bytes: bytes, ..Demand::default() })
    }

    fn promisable(&self) -> u64 {
        self.inner.promisable().saturating_sub(self.reserve())
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        let done = self.inner.maintain(budget)?;
        if done.done >= budget {
            return Ok(Maintenance { more: done.more || self.is_cleaning(), ..done });
        }
        let cleaned = self.clean((budget - done.done) * CLEANED)?;
        Ok(Maintenance { done: done.done + cleaned.done.div_ceil(CLEANED), more: done.more || cleaned.more })
    }

    fn decisions(&self, object: ObjectId) -> Result<Vec<onode_object::powers::Decision>> {
        seen(object)?;
        self.inner.decisions(object)
    }

    forward_device! {
        self => self.inner;
        info, reserve_ids, sync, close, health, compression, parity, rearrange, rearranging_bytes,
        map_objects, share, place, attachment, resizing, scrub, inspect, erase
    }
}

const FULL: &str = "the volume is full; deleting a snapshot makes room";

const fn is_removal(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::Remove { .. } | Mutation::RemoveAttribute { .. })
}

fn reserve_of(space: &Space) -> u64 {
    (space.total / RESERVE_PART).min(RESERVE_BYTES_MAX)
}

fn is_hidden(object: ObjectId) -> bool {
    object == ObjectId::SNAPSHOTS || object == ObjectId::RECEIVED || object.is_version()
}

/// Whether the host may see an object.
fn seen(object: ObjectId) -> Result<()> {
    if is_hidden(object) {
        return Err(Error::of(ErrorKind::NotFound, object, "there is no such object"));
    }
    Ok(())
}

/// What a device has of attributes and content that a transaction replaces.
struct Lengths<'a, D: ?Sized>(&'a D);

impl<D: ObjectDevice + ?Sized> Stored for Lengths<'_, D> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        match self.0.attribute(object, key) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            found => Ok(found?.map(|value| value.len())),
        }
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let size = match self.0.stat(object) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            found => found?.size,
        };
        let data = version::data_of(self.0, object, 0, size)?;
        Ok(data.covers(0, size).then_some(size))
    }
}

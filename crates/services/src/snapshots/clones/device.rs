//! A clone as a device.

use crate::snapshots::chain::VersionChain;
use crate::snapshots::clones::change::Change;
use crate::snapshots::clones::ids::Ids;
use crate::snapshots::clones::layer::CloneLayer;
use crate::snapshots::clones::list_of;
use crate::snapshots::moment::{IDS, Moment};
use crate::snapshots::version::{GRAIN_BYTES, is_kept};
use crate::snapshots::{KEPT_BYTES, VERSION_ENTRIES, Versioned};
use onode_base::planted::{Bug, is_planted};
use onode_object::powers::Decision;
use onode_object::validate::{Admission, Stored, validate};
use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Error, ErrorKind, Mutation, ObjectDevice, ObjectId, ObjectStat,
    Result, SyncScope, Transaction, forward_device,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A clone of a snapshot: a device of its own, on the space of the one that it is on. Of space and
/// of how many objects there are it says what that one does.
pub struct CloneDevice<D: ?Sized> {
    device: Arc<Versioned<D>>,
    layer: CloneLayer,
    ids: Ids,
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// The clone of a name as a device. Nobody else may use the clone at the same time.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; those of the device.
    pub fn open_clone(self: &Arc<Self>, name: &str) -> Result<CloneDevice<D>> {
        let records = self.records();
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no clone `{name}`"));
        let clone = records.clone_named(name).ok_or_else(missing)?;
        let base = Moment::of(records.base_of(clone)?);
        let layer = CloneLayer::new(clone.generation, base, list_of(clone)?);
        drop(records);
        let ids = Ids::load(self.inner(), layer.list(), base.next_id())?;
        Ok(CloneDevice { device: Arc::clone(self), layer, ids })
    }
}

impl<D: ObjectDevice + ?Sized> CloneDevice<D> {
    fn inner(&self) -> &D {
        self.device.inner()
    }

    /// Does something while the clone is there.
    fn use_it<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let records = self.device.records();
        if !records.shows_clone(self.layer.generation()) {
            return Err(Error::new(ErrorKind::Stale, "the clone was deleted"));
        }
        act()
    }

    /// Looks at an object while nothing of it changes or goes to a version.
    fn look<T>(&self, object: ObjectId, look: impl FnOnce() -> Result<T>) -> Result<T> {
        self.use_it(|| {
            let _content = self.device.reading(object);
            look()
        })
    }

    fn find(&self, object: ObjectId) -> Result<Option<VersionChain>> {
        self.layer.find(self.inner(), object)
    }

    fn require(&self, object: ObjectId) -> Result<VersionChain> {
        self.find(object)?.ok_or_else(|| Error::of(ErrorKind::NotFound, object, "the clone has no such object"))
    }

    /// Refuses a transaction that cannot apply.
    fn check(&self, transaction: &Transaction) -> Result<()> {
        let is_hidden = |one: &Mutation| match one {
            Mutation::Create { object, .. } => Versioned::<D>::is_own(*object),
            Mutation::SetAttribute { key, .. } => !is_kept(*key),
            _ => false,
        };
        let hidden = transaction.mutations.iter().position(is_hidden);
        let admission = Admission { next_id: self.ids.next(), move_unit: None };
        let mut exists = |object| Ok(self.find(object)?.is_some());
        let Some(position) = hidden else { return validate(transaction, admission, &mut exists) };
        // What stands before may be refused for a reason of its own.
        let before = Transaction { mutations: transaction.mutations[..position].to_vec() };
        validate(&before, admission, &mut exists)?;
        let object = transaction.mutations[position].object();
        Err(Error::of(ErrorKind::Invalid, object, format!("mutation {position}: that is hidden from the host")))
    }

    /// Commits what a transaction means for the device below.
    fn commit_change(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        self.check(&transaction)?;
        let objects: BTreeSet<_> = transaction.mutations.iter().map(Mutation::object).collect();
        self.device.check_reserve(&transaction, &mut StoredInClone(self), false)?;
        let made = transaction.mutations.iter().filter(|one| matches!(one, Mutation::Create { .. }));
        let last = made.map(Mutation::object).max().filter(|last| *last >= ObjectId::FIRST_FREE);
        let mutations = Change::new(self.inner(), &self.layer).translate(transaction)?;
        self.device.shards.alone(objects.into_iter(), || {
            self.ids.commit(self.layer.list(), last, mutations, |mutations| {
                let (mutations, later) = if is_planted(Bug::CloneListedLater) {
                    mutations.into_iter().partition(|one| one.object() != self.layer.list().0)
                } else {
                    (mutations, Vec::new())
                };
                self.inner().commit(Transaction { mutations }, durability)?;
                if later.is_empty() {
                    Ok(())
                } else {
                    self.inner().commit(Transaction { mutations: later }, durability)
                }
            })
        })
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for CloneDevice<D> {
    /// A change may fill whole blocks.
    fn info(&self) -> DeviceInfo {
        let info = self.inner().info();
        let transaction_bytes = (info.transaction_bytes / 2).max(GRAIN_BYTES as usize);
        DeviceInfo { transaction_bytes, summary: format!("{}, a clone", info.summary), ..info }
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        match self.inner().info().read_only {
            Some(why) => Err(Error::new(ErrorKind::ReadOnly, why)),
            None => self.ids.reserve(count),
        }
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        if let Some(why) = self.inner().info().read_only {
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        self.use_it(|| {
            let _changing = self.device.shards.change(transaction.mutations.iter().map(Mutation::object));
            self.commit_change(transaction, durability)
        })
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        let scope = match scope {
            // What the clone has nothing of may have been removed: the list tells of that.
            SyncScope::Object(object) => SyncScope::Object(
                self.layer.version(self.inner(), object)?.map_or(self.layer.list().0, |version| version.id),
            ),
            SyncScope::All => SyncScope::All,
        };
        self.inner().sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = self.look(object, || self.require(object)?.read(self.inner(), offset, buffer));
        read.map_err(|error| error.about(object))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.look(object, || {
            let found = self.require(object)?;
            if is_kept(key) { found.attribute(self.inner(), key) } else { Ok(None) }
        })
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.look(object, || self.require(object)?.attributes(self.inner(), from, limit))
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.look(object, || self.require(object)?.stat(self.inner()))
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        let mut from = from;
        loop {
            let below = self.layer.base().candidates(&self.device, from)?;
            let own = match self.layer.version_id(from).ok().and_then(ObjectId::version_of) {
                Some((first, _)) => self.use_it(|| self.layer.list().entries(self.inner(), first, IDS))?,
                None => Vec::new(),
            };
            let own: BTreeSet<_> = own.into_iter().filter_map(|one| Some(one.version.in_clone_of()?.0)).collect();
            let ends = [below.as_ref().map(|below| below.end), own.last().copied()];
            let Some(end) = ends.into_iter().flatten().min() else { return Ok(Vec::new()) };
            let all: BTreeSet<_> = below.into_iter().flat_map(|below| below.objects).chain(own).collect();
            let mut found = Vec::new();
            for object in all.into_iter().take_while(|object| *object <= end) {
                if self.look(object, || self.find(object))?.is_some() {
                    found.push(object);
                }
            }
            found.truncate(limit);
            if !found.is_empty() {
                return Ok(found);
            }
            from = ObjectId(end.0 + 1);
        }
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.look(object, || self.require(object)?.extents(self.inner(), offset, limit))
    }

    /// What the clone has of an object for the first time takes space, and blocks of which a part
    /// changes are its own from then on.
    fn space_for(&self, demand: &Demand) -> u64 {
        let pieces = demand.entries + 2 * demand.ranges + VERSION_ENTRIES;
        self.inner().space_for(&Demand {
            entries: demand.entries + pieces,
            entry_bytes: demand.entry_bytes + pieces * KEPT_BYTES,
            bytes: demand.blocks * Demand::BLOCK_BYTES,
            ..*demand
        })
    }

    /// What the clone does not show any more stays where it is.
    fn space_to_replace(&self, _: u64) -> u64 {
        self.space_for(&Demand { entries: 1, ranges: 1, blocks: 1, ..Demand::default() })
    }

    /// The device that the clone is on stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    // Powers over objects are none of its: it would name others by its numbers.
    forward_device! {
        self => self.device;
        space, promisable, maintain, health, compression, parity, rearrange, rearranging_bytes,
        attachment, resizing, inspect
    }

    fn decisions(&self, _: ObjectId) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }
}

/// What a clone has of attributes and content that a transaction replaces.
struct StoredInClone<'a, D: ?Sized>(&'a CloneDevice<D>);

impl<D: ObjectDevice + ?Sized> Stored for StoredInClone<'_, D> {
    fn attribute_bytes(&mut self, object: ObjectId, key: AttributeKey) -> Result<Option<usize>> {
        let found = self.0.find(object)?;
        let value = found.map_or(Ok(None), |chain| chain.attribute(self.0.inner(), key))?;
        Ok(value.map(|value| value.len()))
    }

    fn solid_bytes(&mut self, object: ObjectId) -> Result<Option<u64>> {
        let Some(chain) = self.0.find(object)? else { return Ok(None) };
        let size = chain.size();
        let is_solid = chain.extents(self.0.inner(), 0, 1)?.first() == Some(&(0, size));
        Ok((is_solid || size == 0).then_some(size))
    }
}

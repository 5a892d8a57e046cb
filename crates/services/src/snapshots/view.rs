//! A snapshot as a device on which nothing changes: what versions kept, over what has not changed
//! since.

use crate::snapshots::Versioned;
use crate::snapshots::chain::VersionChain;
use crate::snapshots::moment::{Candidates, Moment};
use onode_object::powers::Decision;
use onode_object::{
    AttributeKey, DeviceInfo, Durability, Error, ErrorKind, Health, Maintenance, ObjectDevice, ObjectId, ObjectStat,
    Result, Space, SyncScope, Transaction,
};
use std::sync::Arc;

/// A device that shows another one as it was when a snapshot was taken.
pub struct SnapshotView<D: ?Sized> {
    device: Arc<Versioned<D>>,
    moment: Moment,
}

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// The snapshot of a name, as a device on which nothing changes.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn view(self: &Arc<Self>, name: &str) -> Result<SnapshotView<D>> {
        let records = self.records();
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{name}`"));
        let snapshot = records.named(name).ok_or_else(missing)?;
        let moment = Moment::of(snapshot);
        drop(records);
        Ok(SnapshotView { device: Arc::clone(self), moment })
    }
}

impl<D: ObjectDevice + ?Sized> SnapshotView<D> {
    fn inner(&self) -> &D {
        self.device.inner()
    }

    /// Looks at an object while nothing of it goes to a version.
    fn look<T>(&self, object: ObjectId, look: impl FnOnce() -> Result<T>) -> Result<T> {
        let records = self.device.records();
        if !records.shows(self.moment.generation()) {
            return Err(Error::new(ErrorKind::Stale, "the snapshot was deleted"));
        }
        let _content = self.device.reading(object);
        look()
    }

    /// The object, if the snapshot has it.
    fn find(&self, object: ObjectId) -> Result<Option<VersionChain>> {
        self.moment.find(self.inner(), object)
    }

    fn require(&self, object: ObjectId) -> Result<VersionChain> {
        self.find(object)?.ok_or_else(|| Error::of(ErrorKind::NotFound, object, "the snapshot has no such object"))
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for SnapshotView<D> {
    fn info(&self) -> DeviceInfo {
        let info = self.inner().info();
        DeviceInfo { read_only: Some("a snapshot does not change".into()), ..info }
    }

    fn reserve_ids(&self, _: u64) -> Result<ObjectId> {
        Err(fixed())
    }

    fn commit(&self, _: Transaction, _: Durability) -> Result<()> {
        Err(fixed())
    }

    fn sync(&self, _: SyncScope) -> Result<()> {
        Ok(())
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.look(object, || self.require(object)?.read(self.inner(), offset, buffer))
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.look(object, || self.require(object)?.attribute(self.inner(), key))
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
            let Some(Candidates { objects, end }) = self.moment.candidates(&self.device, from)? else {
                return Ok(Vec::new());
            };
            let mut found = Vec::new();
            for object in objects {
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

    fn space(&self) -> Space {
        Space { available: 0, ..self.inner().space() }
    }

    fn maintain(&self, _: u32) -> Result<Maintenance> {
        Ok(Maintenance::default())
    }

    /// The device that the snapshot is of stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn health(&self) -> Health {
        self.inner().health()
    }

    fn decisions(&self, _: ObjectId) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }
}

fn fixed() -> Error {
    Error::new(ErrorKind::ReadOnly, "a snapshot does not change")
}

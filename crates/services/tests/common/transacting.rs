//! A device on which every commit is a transaction of a user: begun, changed and committed.

use onode_object::{
    AttributeKey, Demand, DeviceInfo, Durability, Maintenance, ObjectDevice, ObjectId, ObjectStat, Result, Space,
    SyncScope, Transaction,
};
use onode_services::Staged;
use std::sync::Arc;

/// The device.
pub struct Transacting<D: ?Sized>(pub Arc<Staged<D>>);

impl<D: ObjectDevice + ?Sized> Transacting<D> {
    /// Opens a device; transactions of it have so many bytes at most.
    pub fn open(device: Arc<D>, most_bytes: usize) -> Result<Self> {
        let (staged, shown) = Staged::open_limited(device, Arc::new(()), most_bytes)?;
        assert!(shown.is_none(), "a device that can be changed shows itself");
        Ok(Self(staged))
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Transacting<D> {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
        self.0.reserve_ids(count)
    }

    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let view = self.0.begin()?;
        view.commit(transaction, durability)?;
        view.make_true(durability).map(drop)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.0.sync(scope)
    }

    fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(object, offset, buffer)
    }

    fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
        self.0.attribute(object, key)
    }

    fn attributes(&self, object: ObjectId, from: AttributeKey, limit: usize) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
        self.0.attributes(object, from, limit)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        self.0.stat(object)
    }

    fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
        self.0.list(from, limit)
    }

    fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
        self.0.extents(object, offset, limit)
    }

    fn space(&self) -> Space {
        self.0.space()
    }

    fn space_for(&self, demand: &Demand) -> u64 {
        self.0.space_for(demand)
    }

    fn promisable(&self) -> u64 {
        self.0.promisable()
    }

    fn maintain(&self, budget: u32) -> Result<Maintenance> {
        self.0.maintain(budget)
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }
}

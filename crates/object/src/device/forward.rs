//! A reference to a device is a device, whoever owns it.

use crate::device::{Demand, DeviceInfo, Maintenance, ObjectDevice, ObjectStat, Space};
use crate::durability::{Durability, SyncScope};
use crate::error::Result;
use crate::health::Health;
use crate::hints::Compression;
use crate::id::{AttributeKey, ObjectId};
use crate::powers::{Attach, Decision, Erase, Inspect, MapObjects, Place, Scrub, Share};
use crate::transaction::Transaction;
use alloc::sync::Arc;
use alloc::vec::Vec;

macro_rules! forward {
    ($reference:ty) => {
        impl<D: ObjectDevice + ?Sized> ObjectDevice for $reference {
            fn info(&self) -> DeviceInfo {
                (**self).info()
            }

            fn reserve_ids(&self, count: u64) -> Result<ObjectId> {
                (**self).reserve_ids(count)
            }

            fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
                (**self).commit(transaction, durability)
            }

            fn sync(&self, scope: SyncScope) -> Result<()> {
                (**self).sync(scope)
            }

            fn read(&self, object: ObjectId, offset: u64, buffer: &mut [u8]) -> Result<usize> {
                (**self).read(object, offset, buffer)
            }

            fn attribute(&self, object: ObjectId, key: AttributeKey) -> Result<Option<Vec<u8>>> {
                (**self).attribute(object, key)
            }

            fn attributes(
                &self,
                object: ObjectId,
                from: AttributeKey,
                limit: usize,
            ) -> Result<Vec<(AttributeKey, Vec<u8>)>> {
                (**self).attributes(object, from, limit)
            }

            fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
                (**self).stat(object)
            }

            fn list(&self, from: ObjectId, limit: usize) -> Result<Vec<ObjectId>> {
                (**self).list(from, limit)
            }

            fn extents(&self, object: ObjectId, offset: u64, limit: usize) -> Result<Vec<(u64, u64)>> {
                (**self).extents(object, offset, limit)
            }

            fn space(&self) -> Space {
                (**self).space()
            }

            fn space_for(&self, demand: &Demand) -> u64 {
                (**self).space_for(demand)
            }

            fn promisable(&self) -> u64 {
                (**self).promisable()
            }

            fn maintain(&self, budget: u32) -> Result<Maintenance> {
                (**self).maintain(budget)
            }

            fn close(&self) -> Result<()> {
                (**self).close()
            }

            fn health(&self) -> Health {
                (**self).health()
            }

            fn compression(&self) -> Option<Compression> {
                (**self).compression()
            }

            fn decisions(&self, object: ObjectId) -> Result<Vec<Decision>> {
                (**self).decisions(object)
            }

            fn map_objects(&self) -> Option<&dyn MapObjects> {
                (**self).map_objects()
            }

            fn share(&self) -> Option<&dyn Share> {
                (**self).share()
            }

            fn place(&self) -> Option<&dyn Place> {
                (**self).place()
            }

            fn attachment(&self) -> Option<&dyn Attach> {
                (**self).attachment()
            }

            fn scrub(&self) -> Option<&dyn Scrub> {
                (**self).scrub()
            }

            fn inspect(&self) -> Option<&dyn Inspect> {
                (**self).inspect()
            }

            fn erase(&self) -> Option<&dyn Erase> {
                (**self).erase()
            }
        }
    };
}

forward!(&D);
forward!(Arc<D>);

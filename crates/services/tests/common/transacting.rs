//! A device on which every commit is a transaction of a user: begun, changed and committed.

use onode_object::{Durability, ObjectDevice, Result, Transaction, forward_device};
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
    fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
        let view = self.0.begin()?;
        view.commit(transaction, durability)?;
        view.make_true(durability).map(drop)
    }

    forward_device! {
        self => self.0;
        info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space, space_for,
        promisable, maintain, close
    }
}

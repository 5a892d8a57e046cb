//! Calls that a device hands on to another one, and devices that hand on all: references to one.

use crate::device::ObjectDevice;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Implements methods of [`ObjectDevice`] by handing them on to another device: those that are
/// named, or `all`. So a device that wraps another one says only what it does itself.
///
/// ```
/// use onode_object::{
///     Durability, Error, ErrorKind, Mutation, ObjectDevice, RamDevice, Result, Transaction, forward_device,
/// };
///
/// /// A device on which nothing is removed.
/// struct Kept(RamDevice);
///
/// impl ObjectDevice for Kept {
///     fn commit(&self, transaction: Transaction, durability: Durability) -> Result<()> {
///         if transaction.mutations.iter().any(|one| matches!(one, Mutation::Remove { .. })) {
///             return Err(Error::new(ErrorKind::NotPermitted, "nothing is removed here"));
///         }
///         self.0.commit(transaction, durability)
///     }
///
///     forward_device! {
///         self => self.0;
///         info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space,
///         maintain, close
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_device {
    ($self:ident => $to:expr; all) => {
        $crate::forward_device! {
            $self => $to;
            info, reserve_ids, commit, check_commit, sync, read, attribute, attributes, stat, list,
            extents, extents_are_exact, space, space_for, space_to_replace, promisable, move_unit,
            maintain, rearrange, rearranging_bytes, close, health, compression, parity,
            has_directory_keys, directory_key, decisions, map_objects, share, place, attachment,
            resizing, scrub, inspect, erase
        }
    };
    ($self:ident => $to:expr; $($method:ident),* $(,)?) => {
        $($crate::forward_device!(@ $method $self $to);)*
    };
    (@ info $self:ident $to:expr) => {
        fn info(&$self) -> $crate::DeviceInfo {
            $to.info()
        }
    };
    (@ reserve_ids $self:ident $to:expr) => {
        fn reserve_ids(&$self, count: u64) -> $crate::Result<$crate::ObjectId> {
            $to.reserve_ids(count)
        }
    };
    (@ commit $self:ident $to:expr) => {
        fn commit(&$self, transaction: $crate::Transaction, durability: $crate::Durability) -> $crate::Result<()> {
            $to.commit(transaction, durability)
        }
    };
    (@ check_commit $self:ident $to:expr) => {
        fn check_commit(&$self, transaction: &$crate::Transaction) -> $crate::Result<()> {
            $to.check_commit(transaction)
        }
    };
    (@ sync $self:ident $to:expr) => {
        fn sync(&$self, scope: $crate::SyncScope) -> $crate::Result<()> {
            $to.sync(scope)
        }
    };
    (@ read $self:ident $to:expr) => {
        fn read(&$self, object: $crate::ObjectId, offset: u64, buffer: &mut [u8]) -> $crate::Result<usize> {
            $to.read(object, offset, buffer)
        }
    };
    (@ attribute $self:ident $to:expr) => {
        fn attribute(
            &$self,
            object: $crate::ObjectId,
            key: $crate::AttributeKey,
        ) -> $crate::Result<Option<Vec<u8>>> {
            $to.attribute(object, key)
        }
    };
    (@ attributes $self:ident $to:expr) => {
        fn attributes(
            &$self,
            object: $crate::ObjectId,
            from: $crate::AttributeKey,
            limit: usize,
        ) -> $crate::Result<Vec<($crate::AttributeKey, Vec<u8>)>> {
            $to.attributes(object, from, limit)
        }
    };
    (@ stat $self:ident $to:expr) => {
        fn stat(&$self, object: $crate::ObjectId) -> $crate::Result<$crate::ObjectStat> {
            $to.stat(object)
        }
    };
    (@ list $self:ident $to:expr) => {
        fn list(
            &$self,
            from: $crate::ObjectId,
            limit: usize,
        ) -> $crate::Result<Vec<$crate::ObjectId>> {
            $to.list(from, limit)
        }
    };
    (@ extents $self:ident $to:expr) => {
        fn extents(
            &$self,
            object: $crate::ObjectId,
            offset: u64,
            limit: usize,
        ) -> $crate::Result<Vec<(u64, u64)>> {
            $to.extents(object, offset, limit)
        }
    };
    (@ space $self:ident $to:expr) => {
        fn space(&$self) -> $crate::Space {
            $to.space()
        }
    };
    (@ space_for $self:ident $to:expr) => {
        fn space_for(&$self, demand: &$crate::Demand) -> u64 {
            $to.space_for(demand)
        }
    };
    (@ space_to_replace $self:ident $to:expr) => {
        fn space_to_replace(&$self, bytes: u64) -> u64 {
            $to.space_to_replace(bytes)
        }
    };
    (@ promisable $self:ident $to:expr) => {
        fn promisable(&$self) -> u64 {
            $to.promisable()
        }
    };
    (@ move_unit $self:ident $to:expr) => {
        fn move_unit(&$self) -> Option<u64> {
            $to.move_unit()
        }
    };
    (@ extents_are_exact $self:ident $to:expr) => {
        fn extents_are_exact(&$self) -> bool {
            $to.extents_are_exact()
        }
    };
    (@ maintain $self:ident $to:expr) => {
        fn maintain(&$self, budget: u32) -> $crate::Result<$crate::Maintenance> {
            $to.maintain(budget)
        }
    };
    (@ rearrange $self:ident $to:expr) => {
        fn rearrange(&$self, budget: u32) -> $crate::Result<$crate::Maintenance> {
            $to.rearrange(budget)
        }
    };
    (@ rearranging_bytes $self:ident $to:expr) => {
        fn rearranging_bytes(&$self) -> u64 {
            $to.rearranging_bytes()
        }
    };
    (@ close $self:ident $to:expr) => {
        fn close(&$self) -> $crate::Result<()> {
            $to.close()
        }
    };
    (@ health $self:ident $to:expr) => {
        fn health(&$self) -> $crate::Health {
            $to.health()
        }
    };
    (@ compression $self:ident $to:expr) => {
        fn compression(&$self) -> Option<$crate::Compression> {
            $to.compression()
        }
    };
    (@ parity $self:ident $to:expr) => {
        fn parity(&$self) -> Option<$crate::ParityChoice> {
            $to.parity()
        }
    };
    (@ has_directory_keys $self:ident $to:expr) => {
        fn has_directory_keys(&$self) -> bool {
            $to.has_directory_keys()
        }
    };
    (@ directory_key $self:ident $to:expr) => {
        fn directory_key(&$self, object: $crate::ObjectId) -> $crate::Result<u32> {
            $to.directory_key(object)
        }
    };
    (@ decisions $self:ident $to:expr) => {
        fn decisions(
            &$self,
            object: $crate::ObjectId,
        ) -> $crate::Result<Vec<$crate::powers::Decision>> {
            $to.decisions(object)
        }
    };
    (@ map_objects $self:ident $to:expr) => {
        fn map_objects(&$self) -> Option<&dyn $crate::powers::MapObjects> {
            $to.map_objects()
        }
    };
    (@ share $self:ident $to:expr) => {
        fn share(&$self) -> Option<&dyn $crate::powers::Share> {
            $to.share()
        }
    };
    (@ place $self:ident $to:expr) => {
        fn place(&$self) -> Option<&dyn $crate::powers::Place> {
            $to.place()
        }
    };
    (@ attachment $self:ident $to:expr) => {
        fn attachment(&$self) -> Option<&dyn $crate::powers::Attach> {
            $to.attachment()
        }
    };
    (@ resizing $self:ident $to:expr) => {
        fn resizing(&$self) -> Option<&dyn $crate::powers::Resize> {
            $to.resizing()
        }
    };
    (@ scrub $self:ident $to:expr) => {
        fn scrub(&$self) -> Option<&dyn $crate::powers::Scrub> {
            $to.scrub()
        }
    };
    (@ inspect $self:ident $to:expr) => {
        fn inspect(&$self) -> Option<&dyn $crate::powers::Inspect> {
            $to.inspect()
        }
    };
    (@ erase $self:ident $to:expr) => {
        fn erase(&$self) -> Option<&dyn $crate::powers::Erase> {
            $to.erase()
        }
    };
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for &D {
    forward_device!(self => (**self); all);
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Arc<D> {
    forward_device!(self => (**self); all);
}

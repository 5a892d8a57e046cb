//! Encrypted volumes all of whose objects but those of the volume itself are in a directory with a
//! key, which whoever uses the device does not see.

use crate::kind::encrypted::{Encrypting, HOLDERS};
use crate::kind::service::Service;
use onode_object::{
    Durability, Hints, Mutation, ObjectDevice, ObjectId, ObjectStat, Result, Transaction, forward_device,
};
use onode_services::{DirectoryKeys, Encrypted, MasterKey};
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "keyed-";
/// The number of the key.
const NUMBER: u32 = 1;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Keying;

/// The device.
pub struct Keyed<D: ObjectDevice>(Encrypted<D>);

impl Service for Keying {
    type Over<D: ObjectDevice + 'static> = Keyed<D>;
    /// Each object has a head.
    const SLACK: u64 = 3;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> Result<Keyed<D>> {
        let encrypted = Encrypting::wrap(device)?;
        encrypted.unlock_with(NUMBER, MasterKey::new([5; 32]));
        Ok(Keyed(encrypted))
    }

    fn inner<D: ObjectDevice + 'static>(over: &Keyed<D>) -> &D {
        over.0.inner()
    }
}

impl<D: ObjectDevice> ObjectDevice for Keyed<D> {
    fn commit(&self, mut transaction: Transaction, durability: Durability) -> Result<()> {
        for mutation in &mut transaction.mutations {
            if let Mutation::Create { object, hints } = mutation
                && !HOLDERS.contains(object)
            {
                hints.encryption_key = NUMBER;
            }
        }
        self.0.commit(transaction, durability)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let stat = self.0.stat(object)?;
        Ok(ObjectStat { hints: Hints { encryption_key: 0, ..stat.hints }, ..stat })
    }

    forward_device! {
        self => self.0;
        info, reserve_ids, sync, read, attribute, attributes, list, extents, extents_are_exact,
        space, space_for, space_to_replace, promisable, maintain, close, health, compression,
        parity, rearrange, rearranging_bytes, decisions, share, place, attachment, resizing, scrub,
        inspect, erase
    }
}

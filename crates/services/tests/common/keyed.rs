//! A device all of whose objects are in a directory with a key, which nobody sees, so that what
//! tests any device tests it.

use super::vault::Vault;
use onode_object::{
    Durability, Hints, Mutation, ObjectDevice, ObjectId, ObjectStat, Result, Transaction, forward_device,
};
use onode_services::{Cost, DirectoryKeys, Encrypted, MasterKey, NewSlot, Secret};
use std::sync::Arc;

/// The number of the key.
const NUMBER: u32 = 1;

/// The device.
pub struct Keyed<D: ObjectDevice + ?Sized>(Encrypted<D>);

pub fn secret() -> Secret {
    Secret::key_file(vec![0x6b; 40]).unwrap()
}

/// Makes the key of a directory.
pub fn make_key<D: ObjectDevice + ?Sized>(device: &Encrypted<D>, byte: u8) -> u32 {
    let slot = NewSlot { secret: &secret(), label: "", cost: Cost::LEAST, salt: [byte; 16] };
    device.create(MasterKey::new([byte; 32]), &slot).unwrap()
}

impl<D: ObjectDevice + ?Sized> Keyed<D> {
    /// Opens a device that was opened so before, or is to be.
    pub fn open(vault: &Vault, device: &Arc<D>) -> Self {
        let encrypted = vault.open(device);
        encrypted.unlock_with(NUMBER, MasterKey::new([0x33; 32]));
        Self(encrypted)
    }
}

impl<D: ObjectDevice + ?Sized> ObjectDevice for Keyed<D> {
    fn commit(&self, mut transaction: Transaction, durability: Durability) -> Result<()> {
        for mutation in &mut transaction.mutations {
            if let Mutation::Create { hints, .. } = mutation {
                hints.encryption_key = NUMBER;
            }
        }
        self.0.commit(transaction, durability)
    }

    fn stat(&self, object: ObjectId) -> Result<ObjectStat> {
        let stat = self.0.stat(object)?;
        assert_eq!(stat.hints.encryption_key, NUMBER);
        Ok(ObjectStat { hints: Hints { encryption_key: 0, ..stat.hints }, ..stat })
    }

    forward_device! {
        self => self.0;
        info, reserve_ids, sync, read, attribute, attributes, list, extents, space, space_for, space_to_replace, promisable, maintain,
        close, health, scrub, erase
    }
}

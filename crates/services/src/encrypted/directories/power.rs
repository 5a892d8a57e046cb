//! The keys of directories of an open volume, for who has the device and not its type.

use crate::encrypted::keys::MasterKey;
use crate::encrypted::slot::{Cost, KeySlot, Secret, SlotSettings};
use onode_object::Result;

/// A slot that is to be made.
#[derive(Debug)]
pub struct NewSlot<'a> {
    /// What opens it.
    pub secret: &'a Secret,
    /// What people call it.
    pub label: &'a str,
    /// What it costs to try a passphrase.
    pub cost: Cost,
    /// Random bytes.
    pub salt: [u8; 16],
}

impl NewSlot<'_> {
    pub(super) fn settings(&self, id: u32) -> SlotSettings<'_> {
        SlotSettings { id, label: self.label, cost: self.cost, salt: self.salt }
    }
}

/// A key of directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryKey {
    /// Its number in the volume, as hints of objects have it.
    pub number: u32,
    /// Whether what it keeps can be read now.
    pub is_unlocked: bool,
    /// The slots that open it.
    pub slots: Vec<KeySlot>,
}

/// The keys of directories of an encrypted volume.
pub trait DirectoryKeys: Send + Sync {
    /// All of them in order of their numbers. A key whose last slot was removed is none any more.
    ///
    /// # Errors
    /// Those of the device.
    fn keys(&self) -> Result<Vec<DirectoryKey>>;

    /// Makes a key with a first slot, durably, and unlocks it; returns its number. No number is
    /// used twice.
    ///
    /// # Errors
    /// `Invalid` for a slot that cannot be made; `NoSpace`; those of the device.
    fn create(&self, key: MasterKey, slot: &NewSlot<'_>) -> Result<u32>;

    /// Adds a slot to a key that is unlocked, and removes others of it, durably and at once;
    /// returns the number of the new one. Without its last slot a key is gone, and with it all that
    /// it keeps: that is refused unless `destroys`.
    ///
    /// # Errors
    /// `KeyNeeded` if a slot is added and the key is locked; `NotFound`; `Invalid`; `NoSpace`;
    /// those of the device.
    fn change(&self, number: u32, added: Option<&NewSlot<'_>>, removed: &[u32], destroys: bool) -> Result<Option<u32>>;

    /// Unlocks the key of that number, or all that the secret opens; returns their numbers.
    ///
    /// # Errors
    /// `NotFound` if there is no such key; `KeyNeeded` if the secret opens none; `Invalid` if a
    /// slot asks for a cost that is not possible; those of the device.
    fn unlock(&self, number: Option<u32>, secret: &Secret) -> Result<Vec<u32>>;

    /// The slot of the key of that number that a secret opens; nothing is unlocked.
    ///
    /// # Errors
    /// `KeyNeeded` if it opens none; as [`unlock`](Self::unlock).
    fn slot_of(&self, number: u32, secret: &Secret) -> Result<u32>;

    /// Unlocks a key for who has it itself, and not what opens a slot of it.
    fn unlock_with(&self, number: u32, key: MasterKey);

    /// Forgets a key: what it keeps needs it again. Says whether it was unlocked.
    fn lock(&self, number: u32) -> bool;
}

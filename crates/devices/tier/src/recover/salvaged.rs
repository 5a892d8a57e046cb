//! What a mount went on without because it is damaged.
//!
//! What it does not do: decide what goes, which is the business of
//! [`salvage`](crate::recover::salvage).

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use onode_object::ObjectId;

/// What a mount went on without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// What was done, one line each, in order.
    pub actions: Vec<String>,
    /// Objects that may have lost something and are still there, or that are gone although
    /// something names them.
    pub losers: BTreeSet<ObjectId>,
    /// Something was lost, and not only counted wrongly.
    pub is_loss: bool,
    /// Copies of the superblock that were missing or damaged, by where they have to be. A mount
    /// that may write has written them again.
    pub superblocks: Vec<String>,
}

impl Salvaged {
    /// Notes a loss of an object.
    pub fn lose(&mut self, object: ObjectId, action: String) {
        self.losers.insert(object);
        self.is_loss = true;
        self.actions.push(action);
    }
}

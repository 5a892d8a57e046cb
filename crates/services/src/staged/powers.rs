//! Removal for good, of which views have to hear.

use crate::staged::Staged;
use onode_object::powers::Erase;
use onode_object::{Error, ErrorKind, Mutation, ObjectDevice, ObjectId, Result};

impl<D: ObjectDevice + ?Sized> Erase for Staged<D> {
    fn erase(&self, object: ObjectId) -> Result<()> {
        let why = "this device keeps what it removes";
        let erase = self.inner.erase().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        self.change(|| vec![Mutation::Remove { object }], || erase.erase(object))
    }
}

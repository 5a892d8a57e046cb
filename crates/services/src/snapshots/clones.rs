//! Clones: all objects as a snapshot has them, changed since on their own.
//!
//! Making one writes a record and an empty list. What changes in a clone goes to *versions of the
//! clone*, objects that say how an object is there, in the form in which versions of snapshots say
//! how it was. So a clone is read like the snapshot that it was made of, with one more version
//! before the others, and that snapshot must stay.

mod change;
mod content;
mod device;
mod ids;
mod layer;

pub use device::CloneDevice;

use crate::snapshots::record::{CloneInfo, CloneRecord, NewSnapshot};
use crate::snapshots::version::{FIRST_CLONED, List};
use crate::snapshots::{REMOVED, Versioned};
use onode_base::Timestamp;
use onode_object::{Durability, Error, ErrorKind, Hints, Mutation, ObjectDevice, Result, Transaction};

impl<D: ObjectDevice + ?Sized> Versioned<D> {
    /// The clones in the order in which they were made.
    #[must_use]
    pub fn clones(&self) -> Vec<CloneInfo> {
        let records = self.records();
        records.shown_clones().map(|one| records.told_of(one)).collect()
    }

    /// Makes a clone of a snapshot, which stays as long as the clone does; durable on return. Takes
    /// as long for a large volume as for an empty one.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be one of a directory; `NotFound` if there is no such
    /// snapshot; `Exists`, `NoSpace`; `ReadOnly`; those of the device.
    pub fn make_clone(&self, name: &str, snapshot: &str, created: Timestamp) -> Result<CloneInfo> {
        let mut records = self.records.write();
        let (with, clone, mut mutations) = records.with_clone(name, snapshot, created)?;
        mutations.push(list_made(&clone)?);
        self.inner.commit(Transaction { mutations }, Durability::Durable)?;
        *records = with;
        Ok(records.told_of(&clone))
    }

    /// Takes a snapshot and makes a clone of it: both or none. The clone is as old as the snapshot.
    ///
    /// # Errors
    /// As [`make_clone`](Self::make_clone) and [`take`](Self::take).
    pub fn make_clone_of_now(&self, name: &str, snapshot: &NewSnapshot) -> Result<CloneInfo> {
        let mut records = self.records.write();
        let (taken, mut mutations) = self.taking(&records, snapshot)?;
        let (with, clone, made) = taken.with_clone(name, &snapshot.name, snapshot.created)?;
        mutations.extend(made);
        mutations.push(list_made(&clone)?);
        self.inner.commit(Transaction { mutations }, Durability::Durable)?;
        *records = with;
        Ok(records.told_of(&clone))
    }

    /// Deletes a clone: nobody sees it any more, and what it had of its own is removed by
    /// [`maintain`](ObjectDevice::maintain). A snapshot goes with it unless another clone needs
    /// that.
    ///
    /// # Errors
    /// `NotFound`; `ReadOnly`; those of the device.
    pub fn delete_clone(&self, name: &str, snapshot: Option<&str>) -> Result<()> {
        let mut records = self.records.write();
        let (mut left, mut mutations) = records.deleting_clone(name)?;
        match snapshot.map(|snapshot| left.deleting(snapshot)) {
            Some(Err(error)) if error.kind != ErrorKind::Busy => return Err(error),
            Some(Ok((without, deleted))) => {
                left = without;
                mutations.extend(deleted);
            }
            _ => {}
        }
        self.inner.commit(Transaction { mutations }, Durability::Durable)?;
        *records = left;
        Ok(())
    }

    /// What a clone has of its own, in bytes of the medium. Takes as long as there are objects that
    /// have changed in it.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub fn cloned_bytes(&self, generation: u32) -> Result<u64> {
        List::of(generation).map_or(Ok(0), |list| self.listed_bytes(&list, FIRST_CLONED))
    }

    /// One step of removing what a deleted clone had of its own; whether there was any clone.
    ///
    /// # Errors
    /// `ReadOnly`; those of the device.
    pub(super) fn clean_clone(&self) -> Result<bool> {
        let Some(generation) = self.records().next_removed_clone() else { return Ok(false) };
        let list = List::of(generation).ok_or_else(impossible)?;
        // Nobody else looks at what is removed here.
        let found = list.entries(self.inner(), FIRST_CLONED, REMOVED)?;
        let mut mutations = Vec::new();
        for one in &found {
            mutations.push(Mutation::Remove { object: one.version });
            mutations.push(list.without(one.object));
        }
        if !found.is_empty() {
            self.inner().commit(Transaction { mutations }, Durability::Buffered)?;
            return Ok(true);
        }
        let mut records = self.records.write();
        let (left, mut mutations) = records.without(generation);
        mutations.push(Mutation::Remove { object: list.0 });
        self.inner().commit(Transaction { mutations }, Durability::Buffered)?;
        *records = left;
        Ok(true)
    }
}

/// What makes the list of a new clone.
fn list_made(clone: &CloneRecord) -> Result<Mutation> {
    let List(object) = list_of(clone)?;
    Ok(Mutation::Create { object, hints: Hints::default() })
}

fn list_of(clone: &CloneRecord) -> Result<List> {
    List::of(clone.generation).ok_or_else(impossible)
}

fn impossible() -> Error {
    Error::new(ErrorKind::Bug, "a clone has a number that none can have")
}

//! What a clone has of its own: a layer of versions over the snapshot that it was made of.

use crate::snapshots::Versioned;
use crate::snapshots::chain::VersionChain;
use crate::snapshots::moment::Moment;
use crate::snapshots::version::{Completeness, List, Version};
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId, Result};

/// The layer of one clone.
pub(super) struct CloneLayer {
    base: Moment,
    generation: u32,
    list: List,
}

impl CloneLayer {
    /// That of the clone of this number, of a snapshot of this moment.
    pub(super) const fn new(generation: u32, base: Moment, list: List) -> Self {
        Self { base, generation, list }
    }

    /// The number of the clone.
    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// The moment of the snapshot.
    pub(super) const fn base(&self) -> &Moment {
        &self.base
    }

    /// What the clone has, listed.
    pub(super) const fn list(&self) -> &List {
        &self.list
    }

    /// What the clone has of an object, in which object.
    ///
    /// # Errors
    /// `NoSpace` if it can have nothing of it.
    pub(super) fn version_id(&self, object: ObjectId) -> Result<ObjectId> {
        let none = || Error::of(ErrorKind::NoSpace, object, "objects with such numbers can have no versions");
        object.in_clone(self.generation).ok_or_else(none)
    }

    /// What the clone says of an object itself.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn version<D: ObjectDevice + ?Sized>(&self, device: &D, object: ObjectId) -> Result<Option<Version>> {
        match object.in_clone(self.generation) {
            Some(id) if !Versioned::<D>::is_own(object) => Version::of_clone(device, id),
            _ => Ok(None),
        }
    }

    /// The object in the snapshot.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn below<D: ObjectDevice + ?Sized>(&self, device: &D, object: ObjectId) -> Result<Option<VersionChain>> {
        self.base.find(device, object)
    }

    /// The object, if the clone has it. Who calls this lets nothing of it change meanwhile.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn find<D: ObjectDevice + ?Sized>(&self, device: &D, object: ObjectId) -> Result<Option<VersionChain>> {
        let Some(version) = self.version(device, object)? else { return self.below(device, object) };
        match version.standing {
            Completeness::Absent => Ok(None),
            Completeness::Whole => Ok(Some(VersionChain { object, versions: vec![version], live_size: None })),
            Completeness::Part => {
                let lost = || Error::of(ErrorKind::Corrupt, object, "a clone has lost the object that it has changed");
                let mut chain = self.below(device, object)?.ok_or_else(lost)?;
                chain.versions.insert(0, version);
                Ok(Some(chain))
            }
        }
    }
}

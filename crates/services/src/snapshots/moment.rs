//! The moment that a snapshot keeps: which objects there were, and where each is found.

use crate::snapshots::Versioned;
use crate::snapshots::chain::VersionChain;
use crate::snapshots::record::Snapshot;
use crate::snapshots::version::{Completeness, Version, version_id};
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId, Result};
use std::collections::BTreeSet;

/// Ids that are looked at at once.
pub(super) const IDS: usize = 64;

/// The moment of one snapshot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    generation: u32,
    next_id: ObjectId,
}

/// Objects that there may have been.
pub(super) struct Candidates {
    /// They, in order.
    pub(super) objects: BTreeSet<ObjectId>,
    /// Up to this one they are all.
    pub(super) end: ObjectId,
}

impl Moment {
    pub(super) const fn of(snapshot: &Snapshot) -> Self {
        Self { generation: snapshot.generation, next_id: snapshot.next_id }
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Objects from here on came later.
    pub(super) const fn next_id(&self) -> ObjectId {
        self.next_id
    }

    /// The object, if it was there. Who calls this lets nothing of it go to a version meanwhile.
    ///
    /// # Errors
    /// `Corrupt`; those of the device.
    pub(super) fn find<D: ObjectDevice + ?Sized>(&self, device: &D, object: ObjectId) -> Result<Option<VersionChain>> {
        if object >= self.next_id || Versioned::<D>::is_own(object) {
            return Ok(None);
        }
        let mut versions = Version::all(device, object, self.generation)?;
        if versions.first().is_some_and(|first| first.standing == Completeness::Absent) {
            return Ok(None);
        }
        if let Some(last) = versions.iter().position(|one| one.standing != Completeness::Part) {
            versions.truncate(last + 1);
            return Ok(Some(VersionChain { object, versions, live_size: None }));
        }
        match device.stat(object) {
            Ok(stat) => Ok(Some(VersionChain { object, versions, live_size: Some(stat.size) })),
            Err(error) if error.kind == ErrorKind::NotFound => {
                let lost = || Error::of(ErrorKind::Corrupt, object, "a version has lost the object that it is of");
                if versions.is_empty() { Ok(None) } else { Err(lost()) }
            }
            Err(error) => Err(error),
        }
    }

    /// Some objects from a number on that there may have been; `None` if there are no more.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn candidates<D: ObjectDevice + ?Sized>(
        &self,
        device: &Versioned<D>,
        from: ObjectId,
    ) -> Result<Option<Candidates>> {
        if from >= self.next_id {
            return Ok(None);
        }
        // Those that are there now, and those of which only versions are.
        let now = device.list(from, IDS)?;
        let gone = match version_id(from, 0) {
            Some(first) => device.inner().list(first, IDS)?,
            None => Vec::new(),
        };
        let gone: Vec<_> = gone.into_iter().filter_map(|id| Some(id.version_of()?.0)).collect();
        // Of the one that goes on, what lies behind its last one is not known yet.
        let ends = [now.last(), gone.last()].into_iter().flatten().copied();
        let Some(end) = ends.min() else { return Ok(None) };
        let are_told = |id: &ObjectId| *id >= from && *id <= end && *id < self.next_id;
        let objects = now.into_iter().chain(gone).filter(are_told).collect();
        Ok(Some(Candidates { objects, end }))
    }
}

//! Snapshots of any kind of device that can have them.
//!
//! The device takes a snapshot after every few commits and deletes an earlier one now and then,
//! both within a commit of the run. Nothing is remembered across a cut: the *name* of a snapshot
//! says what was there when it was taken, so whatever a cut leaves must show what it is called.
//! Which snapshots there must be after a cut the explorer knows from the run
//! ([`crate::workload::history::Kept`]). Clones of some snapshots are changed in between; what one
//! has to show stands in itself (`cloned`).
//!
//! A full volume is no excuse: a commit that finds no room is made again without the oldest
//! snapshot, until there is none. Devices beside each other are in
//! [`crate::task::Media::Snapshots`].

mod cloned;
mod look;

use crate::kind::service::Service;
use crate::kind::snapshots::look::{Look, serial_of};
use crate::object::workload::unexpected;
use crate::violation::Violation;
use onode_base::Timestamp;
use onode_object::{
    Durability, Error, ErrorKind, Maintenance, ObjectDevice, ObjectId, Result as ObjectResult, Transaction,
    forward_device,
};
use onode_services::Versioned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of shapes begin with this.
pub const PREFIX: &str = "snap-";

/// One commit of so many is followed by a snapshot. The first one soon after a mount: few commits
/// follow a cut.
const EVERY: u64 = 4;
const FIRST: u64 = 2;
/// Snapshots that there are at a time.
const MOST: usize = 3;
/// One snapshot of so many gets a clone.
const CLONED: u64 = 2;
/// Steps of cleaning between two snapshots: some are left when the next one is deleted.
const CLEANED: u32 = 6;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Snapshotting;

/// A device of which snapshots are taken as it is used.
pub struct SnapshottingDevice<D: ObjectDevice> {
    versioned: Arc<Versioned<D>>,
    inner: Arc<D>,
    commits: AtomicU64,
}

impl Service for Snapshotting {
    type Over<D: ObjectDevice + 'static> = SnapshottingDevice<D>;
    const SLACK: u64 = 1;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> ObjectResult<SnapshottingDevice<D>> {
        let none = || Error::new(ErrorKind::Invalid, "this device can have no snapshots");
        let versioned = Arc::new(Versioned::open(Arc::clone(&device))?.ok_or_else(none)?);
        Ok(SnapshottingDevice { versioned, inner: device, commits: AtomicU64::new(EVERY - FIRST) })
    }

    fn inner<D: ObjectDevice + 'static>(over: &SnapshottingDevice<D>) -> &D {
        &over.inner
    }

    fn verify<D: ObjectDevice + 'static>(over: &SnapshottingDevice<D>) -> Result<(), Violation> {
        over.verify()
    }

    fn snapshots<D: ObjectDevice + 'static>(over: &SnapshottingDevice<D>) -> Vec<String> {
        over.states()
    }

    /// Versions, and what tells of them, are the service's.
    fn objects<D: ObjectDevice + 'static>(over: &SnapshottingDevice<D>) -> u64 {
        over.own().map_or(u64::MAX, |own| over.inner.space().objects.saturating_sub(own))
    }
}

impl<D: ObjectDevice> SnapshottingDevice<D> {
    fn names(&self) -> Vec<String> {
        self.versioned.snapshots().into_iter().map(|one| one.name).collect()
    }

    /// The names of all snapshots, and of what clones show.
    fn states(&self) -> Vec<String> {
        let clones = self.versioned.clones();
        let told = clones.iter().map(|one| cloned::told(&self.versioned, &one.name).unwrap_or_default());
        self.names().into_iter().chain(told).collect()
    }

    /// Objects of the device that only the service sees.
    fn own(&self) -> ObjectResult<u64> {
        let mut own = u64::from(self.inner.stat(ObjectId::SNAPSHOTS).is_ok());
        let mut from = ObjectId::FIRST_VERSION;
        loop {
            let found = self.inner.list(from, 256)?;
            own += found.iter().filter(|id| id.is_version()).count() as u64;
            match found.last() {
                Some(last) if last.is_version() => from = ObjectId(last.0 + 1),
                _ => return Ok(own),
            }
        }
    }

    /// The number of the last snapshot.
    fn serial(&self) -> u64 {
        self.names().last().and_then(|name| serial_of(name)).unwrap_or(0)
    }

    /// Every snapshot shows what it is called, and nothing is kept for nobody.
    fn verify(&self) -> Result<(), Violation> {
        for name in self.names() {
            let view = self.versioned.view(&name).map_err(unexpected("a snapshot is looked at"))?;
            let look = Look::at(&view).map_err(unexpected(&format!("snapshot {name} is read")))?;
            if let Some(difference) = look.difference(&name) {
                return Err(Violation::new("N3", format!("snapshot {name}: {difference}")));
            }
        }
        for clone in self.versioned.clones() {
            cloned::verify(&self.versioned, &clone)?;
        }
        let own = self.own().map_err(unexpected("versions are listed"))?;
        if own > 0 && self.names().is_empty() && !self.versioned.is_cleaning() {
            return Err(Violation::new("N5", format!("{own} objects are kept for snapshots of which there are none")));
        }
        Ok(())
    }

    /// Takes a snapshot, if there is room for it, and deletes one if there are too many: the
    /// oldest, or one between others.
    fn take(&self) -> ObjectResult<()> {
        let names = self.names();
        let serial = self.serial() + 1;
        let name = Look::at(self.versioned.as_ref())?.name(serial);
        match self.versioned.take(&name, Timestamp { seconds: serial as i64, nanoseconds: 0 }) {
            Err(error) if error.kind == ErrorKind::NoSpace => return Ok(()),
            taken => taken?,
        };
        if serial.is_multiple_of(CLONED) {
            // Numbers of snapshots come again when the last ones were deleted for room, and a clone
            // that was not changed yet would pass for one of the same name that was deleted.
            let commits = self.commits.load(Ordering::Relaxed);
            cloned::make(&self.versioned, &name, &format!("clone-{serial}-{commits}"))?;
        }
        match names.get(serial as usize % MOST).filter(|_| names.len() >= MOST) {
            Some(name) => match self.versioned.delete(name) {
                // A clone stands on it.
                Err(error) if error.kind == ErrorKind::Busy => Ok(()),
                deleted => deleted,
            },
            None => Ok(()),
        }
    }

    /// Deletes the oldest clone, or else the oldest snapshot, and all that is kept for it; false if
    /// there is none.
    fn make_room(&self) -> ObjectResult<bool> {
        if let Some(oldest) = self.versioned.clones().first() {
            self.versioned.delete_clone(&oldest.name, None)?;
            self.clean(u32::MAX)?;
            return Ok(true);
        }
        let Some(oldest) = self.names().into_iter().next() else {
            return self.clean(u32::MAX);
        };
        self.versioned.delete(&oldest)?;
        self.clean(u32::MAX)?;
        Ok(true)
    }

    /// Cleans so many steps; whether any was done. What one snapshot hands to another takes space,
    /// and a volume of a few pages may have none for the least of it.
    fn clean(&self, most: u32) -> ObjectResult<bool> {
        let mut done = 0;
        while self.versioned.is_cleaning() && done < most {
            match self.versioned.maintain(CLEANED) {
                Err(error) if error.kind == ErrorKind::NoSpace => break,
                cleaned => cleaned?,
            };
            done += CLEANED;
        }
        Ok(done > 0)
    }
}

impl<D: ObjectDevice> ObjectDevice for SnapshottingDevice<D> {
    fn commit(&self, transaction: Transaction, durability: Durability) -> ObjectResult<()> {
        loop {
            match self.versioned.commit(transaction.clone(), durability) {
                Err(error) if error.kind == ErrorKind::NoSpace && self.make_room()? => {}
                done => break done?,
            }
        }
        match self.commits.fetch_add(1, Ordering::Relaxed) % EVERY {
            number if number == EVERY - 1 => self.take(),
            number if number == EVERY / 2 => self.clean(CLEANED).map(drop),
            number if number == EVERY / 2 - 1 => cloned::change(&self.versioned, number + self.serial()),
            _ => Ok(()),
        }
    }

    fn maintain(&self, budget: u32) -> ObjectResult<Maintenance> {
        self.versioned.maintain(budget)
    }

    forward_device! {
        self => self.versioned;
        info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space, space_for,
        space_to_replace, promisable, close, health, compression, parity, rearrange,
        rearranging_bytes, decisions, map_objects, share, place, attachment, resizing, scrub,
        inspect, erase
    }
}

//! Optional powers of the wrapped device that have to do with content: verification, and removal
//! for good. Objects are no memory: what a processor works on cannot be sealed.

use crate::encrypted::Encrypted;
use crate::encrypted::read::as_seen;
use crate::turn::Turn;
use onode_object::powers::{Erase, GroupScrub, Scrub, ScrubPart, ScrubReport};
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId, Result};

impl<D: ObjectDevice + ?Sized> Scrub for Encrypted<D> {
    fn scrub(&self, from: ObjectId, limit: usize) -> Result<ScrubReport> {
        let why = "this device verifies nothing";
        let scrub = self.inner().scrub().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let mut report = scrub.scrub(from, limit)?;
        report.damaged = report.damaged.into_iter().map(|error| self.as_damaged(error)).collect();
        Ok(report)
    }

    fn scrub_part(&self, object: ObjectId, from: u64, limit: u64) -> Result<Option<ScrubPart>> {
        let Some(scrub) = self.inner().scrub() else { return Ok(None) };
        let part = scrub.scrub_part(object, from, limit)?;
        Ok(part.map(|mut part| {
            let damaged = part.found.damaged.into_iter();
            part.found.damaged = damaged.map(|error| self.as_damaged(error)).collect();
            part
        }))
    }

    fn scrub_groups(&self, from: u64, limit: u32) -> Result<GroupScrub> {
        self.inner().scrub().map_or_else(|| Ok(GroupScrub::default()), |scrub| scrub.scrub_groups(from, limit))
    }
}

impl<D: ObjectDevice + ?Sized> Encrypted<D> {
    /// Damage of the wrapped object as damage of this one.
    fn as_damaged(&self, error: Error) -> Error {
        let size = error.object.and_then(|object| self.head(object).ok().flatten()).map(|head| head.size);
        as_seen(error, size.unwrap_or(u64::MAX))
    }
}

impl<D: ObjectDevice + ?Sized> Erase for Encrypted<D> {
    fn erase(&self, object: ObjectId) -> Result<()> {
        let why = "this device keeps what it removes";
        let erase = self.inner().erase().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))?;
        let _turn = Turn::take(self.inner().as_ref());
        let _changing = self.shards().change([object].into_iter());
        self.shards().alone([object].into_iter(), || {
            self.shards().of(object).forget(object);
            erase.erase(object)
        })
    }
}

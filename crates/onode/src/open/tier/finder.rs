//! Finds disks of a mounted volume: the fast one again, where its spec says it is, and another one
//! for the big disk to go on on.

use crate::error::Error;
use crate::host::{random_bytes, signature};
use crate::open::tier::{big, new_fast};
use crate::spec::tiers::Tiers;
use onode_media::BlockDev;
use onode_media::image::OpenMode;
use onode_media::real::DeviceFile;
use onode_object::ErrorKind;
use onode_tier::fast::FastOptions;
use onode_tier::{FindDisks, NewFast};
use std::path::PathBuf;

/// Finds disks of one volume.
pub(crate) struct DiskFinder {
    tiers: Tiers,
    path: PathBuf,
}

impl DiskFinder {
    /// For the volume of these disks, of which the fast one is at `path`.
    pub(crate) const fn new(tiers: Tiers, path: PathBuf) -> Self {
        Self { tiers, path }
    }

    fn open(&self) -> onode_object::Result<DeviceFile> {
        let refused = |error: onode_media::Error| {
            let detail = format!("cannot open {}: {error}", self.path.display());
            onode_object::Error::new(error.error_kind(), detail)
        };
        DeviceFile::open(&self.path, OpenMode::ReadWrite).map(DeviceFile::with_requests_in_flight).map_err(refused)
    }
}

impl FindDisks for DiskFinder {
    fn known(&self) -> onode_object::Result<Box<dyn BlockDev>> {
        Ok(Box::new(self.open()?))
    }

    fn empty(&self, before: Option<FastOptions>) -> onode_object::Result<NewFast> {
        let path = self.path.display();
        let invalid = |why: String| onode_object::Error::new(ErrorKind::Invalid, why);
        match signature::of_device(&self.path) {
            Ok(None | Some(signature::FAST_DISK)) => {}
            Ok(Some(content)) => return Err(invalid(format!("{path} holds {content}"))),
            Err(error) => return Err(invalid(format!("cannot look at {path}: {error}"))),
        }
        let uuid = random_bytes().map_err(|error: Error| invalid(error.to_string()))?;
        Ok(new_fast(&self.tiers, Box::new(self.open()?), uuid, before))
    }

    fn another(&self, place: &str, uuid: [u8; 16]) -> onode_object::Result<Box<dyn BlockDev>> {
        Ok(Box::new(big::another(place, uuid)?))
    }
}

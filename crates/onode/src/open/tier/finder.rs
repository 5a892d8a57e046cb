//! Finds disks of a mounted volume: the fast one again, where its spec says it is, and another one
//! for the big disk to go on on.

use crate::error::Error;
use crate::host::{random_bytes, signature};
use crate::open::tier::{big, new_fast};
use crate::spec::tiers::{Fast, Tiers};
use onode_base::sync::{Mutex, rank};
use onode_media::BlockDev;
use onode_media::image::OpenMode;
use onode_media::real::DeviceFile;
use onode_object::ErrorKind;
use onode_tier::fast::FastOptions;
use onode_tier::{FindDisks, NewFast};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Finds disks of one volume.
pub(crate) struct DiskFinder {
    tiers: Tiers,
    /// Where the fast one is.
    path: Mutex<PathBuf, rank::TierFinder>,
}

impl DiskFinder {
    /// For the volume of these disks, of which the fast one is at `path`.
    pub(crate) const fn new(tiers: Tiers, path: PathBuf) -> Self {
        Self { tiers, path: Mutex::new(path) }
    }

    fn path(&self) -> PathBuf {
        self.path.lock().clone()
    }

    /// The disk at `path` as an empty fast one.
    fn empty_at(&self, path: &Path, before: Option<FastOptions>) -> onode_object::Result<NewFast> {
        match signature::of_device(path) {
            Ok(None | Some(signature::FAST_DISK)) => {}
            Ok(Some(content)) => return Err(invalid(format!("{} holds {content}", path.display()))),
            Err(error) => return Err(invalid(format!("cannot look at {}: {error}", path.display()))),
        }
        let uuid = random_bytes().map_err(|error: Error| invalid(error.to_string()))?;
        Ok(new_fast(&self.tiers, Box::new(open(path)?), uuid, before))
    }
}

fn open(path: &Path) -> onode_object::Result<DeviceFile> {
    let refused = |error: onode_media::Error| {
        let detail = format!("cannot open {}: {error}", path.display());
        onode_object::Error::new(error.error_kind(), detail)
    };
    DeviceFile::open(path, OpenMode::ReadWrite).map(DeviceFile::with_requests_in_flight).map_err(refused)
}

fn invalid(why: String) -> onode_object::Error {
    onode_object::Error::new(ErrorKind::Invalid, why)
}

impl FindDisks for DiskFinder {
    fn known(&self) -> onode_object::Result<Box<dyn BlockDev>> {
        Ok(Box::new(open(&self.path())?))
    }

    fn empty(&self, before: Option<FastOptions>) -> onode_object::Result<NewFast> {
        self.empty_at(&self.path(), before)
    }

    fn another(&self, place: &str, uuid: [u8; 16]) -> onode_object::Result<Box<dyn BlockDev>> {
        Ok(Box::new(big::another(place, uuid)?))
    }

    fn fast_name(&self) -> Option<String> {
        (self.tiers.fast != Fast::Away).then(|| self.path().display().to_string())
    }

    fn fast_at(&self, place: &str, bytes: Option<u64>, before: Option<FastOptions>) -> onode_object::Result<NewFast> {
        let path = Path::new(place);
        // One that was there may be the fast disk of another volume.
        big::check_empty_disk(path).map_err(|error| invalid(error.why))?;
        if !path.exists() {
            let bytes = self.tiers.fast_size.or(bytes).unwrap_or_else(|| self.tiers.fast_bytes());
            let made = File::create_new(path).and_then(|file| file.set_len(bytes));
            made.map_err(|error| invalid(Error::host_file("make", path, &error).to_string()))?;
        }
        self.empty_at(path, before)
    }

    fn fast_is_at(&self, place: &str) {
        *self.path.lock() = PathBuf::from(place);
    }
}

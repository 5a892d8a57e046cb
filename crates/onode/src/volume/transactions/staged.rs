//! The device of a volume as one of which transactions can be begun, with everything in place that
//! was committed.

use crate::error::Result;
use crate::open::access::volume_error;
use crate::spec::Spec;
use onode_base::ErrorKind;
use onode_fs::volume::VolumeInfo;
use onode_fs::{Inodes, merge_inodes};
use onode_object::{ObjectDevice, ObjectId};
use onode_services::{MergeOf, Rules, Staged, View};
use std::sync::{Arc, OnceLock};

/// What the files of a volume say of its objects.
struct OfFiles {
    device: Arc<dyn ObjectDevice>,
    /// Where the volume keeps its inodes; asked for when a transaction first needs it.
    inodes: OnceLock<Inodes>,
}

impl OfFiles {
    fn inodes(&self) -> Inodes {
        // Settings that cannot be read are for whoever uses them to tell of.
        let load = || VolumeInfo::load(self.device.as_ref()).map_or(Inodes::Embedded, |info| info.inodes());
        *self.inodes.get_or_init(load)
    }
}

impl Rules for OfFiles {
    fn merge(&self, of: &MergeOf<'_>) -> Option<Vec<u8>> {
        merge_inodes(of.before, of.ours, of.theirs)
    }

    /// Whoever looks for a path reads the inodes of all directories on it.
    fn minds_reads(&self, object: ObjectId) -> bool {
        self.inodes().file_of(object).is_none()
    }
}

/// The device of a volume.
pub(crate) struct StagedDevice {
    /// What transactions are begun on.
    pub(crate) staged: Arc<Staged<dyn ObjectDevice>>,
    /// What is shown instead, on a volume on which nothing may change: with everything in place.
    shown: Option<View<dyn ObjectDevice>>,
}

impl StagedDevice {
    /// The device to be used.
    pub(crate) fn into_device(self) -> Arc<dyn ObjectDevice> {
        match self.shown {
            Some(shown) => Arc::new(shown),
            None => self.staged,
        }
    }
}

/// The device of a volume, with everything in place that was committed.
pub(crate) fn staged(spec: &Spec, device: Arc<dyn ObjectDevice>) -> Result<StagedDevice> {
    let rules = OfFiles { device: Arc::clone(&device), inodes: OnceLock::new() };
    let opened = Staged::open(Arc::clone(&device), Arc::new(rules));
    let (staged, shown) = opened.map_err(|error| {
        // It is left as it was found.
        let _ = device.close();
        let told = volume_error(format!("cannot open {spec}"), &error);
        if error.kind == ErrorKind::Corrupt { told.hint("restore the image from a copy") } else { told }
    })?;
    Ok(StagedDevice { staged, shown })
}

//! The device of a volume as one of which transactions can be begun, with everything in place that
//! was committed.

use crate::error::{Class, Error, Result};
use crate::open::access::volume_error;
use crate::spec::Spec;
use onode_base::ErrorKind;
use onode_fs::inode::Inode;
use onode_fs::volume::VolumeInfo;
use onode_fs::{Inodes, merge_inodes, merge_quotas};
use onode_object::{AttributeKind, ObjectDevice, ObjectId};
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
        match of.key.kind {
            AttributeKind::QUOTA => merge_quotas(of.before, of.ours, of.theirs),
            _ => merge_inodes(of.before, of.ours, of.theirs),
        }
    }

    fn was_only_read(&self, before: &[u8], now: &[u8]) -> bool {
        match (Inode::decode(before), Inode::decode(now)) {
            (Some(mut before), Some(now)) => {
                before.accessed = now.accessed;
                before == now
            }
            _ => false,
        }
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

/// Said of a volume whose damage hides what transactions left there.
const UNREADABLE: &str = "damage hides whether a committed transaction is only half in place; none can begin before \
    `onode repair`";
/// What can be done about one that is refused.
const REFUSED: &str = "restore the image from a copy, or try to read it with `-o ro`; --accept-loss gives up \
    what of that transaction is not in place";

/// The device of a volume, with everything in place that was committed; with consent to loss also
/// one on which that cannot be, and then people are told.
pub(crate) fn staged(
    spec: &Spec,
    device: Arc<dyn ObjectDevice>,
    accept_loss: bool,
    notes: &mut Vec<String>,
) -> Result<StagedDevice> {
    let rules = Arc::new(OfFiles { device: Arc::clone(&device), inodes: OnceLock::new() });
    let opened = Staged::open(Arc::clone(&device), rules.clone()).or_else(|error| {
        if error.kind != ErrorKind::Corrupt || !accept_loss {
            return Err(error);
        }
        let staged = Staged::open_giving_up(Arc::clone(&device), rules)?;
        if !staged.is_unreadable() {
            notes.push(format!("what was left of a committed transaction was given up: {error}"));
        }
        Ok((staged, None))
    });
    let (staged, shown) = opened.map_err(|error| {
        // It is left as it was found.
        let _ = device.close();
        let told = volume_error(format!("cannot open {spec}"), &error);
        match error.kind {
            ErrorKind::Corrupt => Error { class: Class::Loss, ..told }.hint(REFUSED),
            _ => told,
        }
    })?;
    if staged.is_unreadable() {
        notes.push(UNREADABLE.into());
    }
    Ok(StagedDevice { staged, shown })
}

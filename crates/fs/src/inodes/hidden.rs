//! Attributes that no listing shows: those by which programs reach what this file system has beyond
//! files. Which there are, and whose business each is.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::inodes::attachment;
use crate::quota::told;
use crate::types::{Caller, InodeNumber};
use crate::volume::explain::WHY;
use crate::volume::hints::Hint;
use crate::volume::label::LABEL;
use crate::volume::placement;
use crate::volume::rewrite::REWRITE;
use crate::volume::scrub::SCRUB;
use crate::volume::size::replace::REPLACE;
use crate::volume::size::{DISK, SIZE};
use crate::volume::tuning::TUNING;
use onode_base::ErrorKind;

impl FileSystem {
    /// The value of an attribute; `None` if it is one like any other.
    pub(crate) fn hidden_xattr(&self, number: InodeNumber, name: &[u8]) -> Option<Result<Vec<u8>>> {
        if let Some(hint) = Hint::of_attribute(name) {
            return Some(self.hint(number, hint).map(String::into_bytes));
        }
        if name == WHY.as_bytes() {
            return Some(self.why_xattr(number));
        }
        if placement::is_ours(name) {
            return Some(self.placement_xattr(number, name));
        }
        if name == SCRUB.as_bytes() {
            return Some(self.scrub_xattr(number));
        }
        if name == LABEL.as_bytes() {
            return Some(self.label_xattr(number));
        }
        if name == TUNING.as_bytes() {
            return Some(self.tuning_xattr(number));
        }
        if name == SIZE.as_bytes() {
            return Some(self.size_xattr(number));
        }
        if name == DISK.as_bytes() {
            return Some(self.disks_xattr(number));
        }
        if name == REPLACE.as_bytes() {
            return Some(self.replace_xattr(number));
        }
        if told::is_ours(name) {
            return Some(self.quota_xattr(number, name));
        }
        attachment::is_ours(name).then(|| self.attachment_xattr(number))
    }

    /// Does what the setting of an attribute asks for; `None` if it is one like any other.
    pub(crate) fn set_hidden_xattr(
        &self,
        caller: &Caller,
        number: InodeNumber,
        name: &[u8],
        value: &[u8],
    ) -> Option<Result<()>> {
        if let Some(hint) = Hint::of_attribute(name) {
            return Some(self.set_hint_xattr(number, hint, value));
        }
        if name == WHY.as_bytes() {
            return Some(Err(Error::of(ErrorKind::NotPermitted, number, "this attribute can only be read")));
        }
        if placement::is_ours(name) {
            return Some(self.set_placement_xattr(number, name, value));
        }
        if name == REWRITE.as_bytes() {
            return Some(self.set_rewrite_xattr(number, value));
        }
        if name == SCRUB.as_bytes() {
            return Some(self.set_scrub_xattr(caller, number, value));
        }
        if name == LABEL.as_bytes() {
            return Some(self.set_label_xattr(caller, number, value));
        }
        if name == TUNING.as_bytes() {
            return Some(self.set_tuning_xattr(caller, number, value));
        }
        if name == SIZE.as_bytes() {
            return Some(self.set_size_xattr(caller, number, value));
        }
        if name == DISK.as_bytes() {
            return Some(self.set_disk_xattr(caller, number, value));
        }
        if name == REPLACE.as_bytes() {
            return Some(self.set_replace_xattr(caller, number, value));
        }
        if told::is_ours(name) {
            return Some(self.set_quota_xattr(caller, number, name, value));
        }
        attachment::is_ours(name).then(|| self.set_attachment_xattr(caller, number, value))
    }

    /// Whoever may write to the top of a volume, `number`, need not be the one who looks after it.
    pub(crate) fn check_owner(&self, caller: &Caller, number: InodeNumber) -> Result<()> {
        if caller.uid == 0 || caller.uid == self.attributes(number)?.uid {
            return Ok(());
        }
        Err(Error::of(ErrorKind::NotPermitted, number, "only root and the owner of the volume may"))
    }
}

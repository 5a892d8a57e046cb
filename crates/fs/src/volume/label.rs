//! The label: the volume's name for people, by which `mount LABEL=NAME` finds it.
//!
//! It is part of the settings on the volume object, and is changed with them (`tuning`). Programs
//! reach it through [`LABEL`], an attribute of the topmost directory that no listing shows.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use crate::volume::{LABEL_BYTES_MAX, VolumeInfo};
use onode_base::ErrorKind;

/// The attribute of the topmost directory that tells the label and changes it.
pub const LABEL: &str = "onode.label";

/// Checks a label.
///
/// # Errors
/// `Invalid` if it is too long or has characters that are no part of a name.
pub fn check_label(label: &str) -> Result<()> {
    if label.len() > LABEL_BYTES_MAX {
        return Err(Error::new(ErrorKind::Invalid, format!("a label has at most {LABEL_BYTES_MAX} bytes")));
    }
    if label.chars().any(|one| one.is_control() || one == '/') {
        return Err(Error::new(ErrorKind::Invalid, "a label has no slashes, line breaks or other control characters"));
    }
    Ok(())
}

impl FileSystem {
    /// The label; empty if there is none.
    ///
    /// # Errors
    /// As [`VolumeInfo::load`].
    pub fn label(&self) -> Result<String> {
        Ok(VolumeInfo::load(self.device.as_ref())?.label)
    }

    pub(crate) fn label_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        self.label().map(String::into_bytes)
    }

    pub(crate) fn set_label_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        self.check_owner(caller, number)?;
        let label = str::from_utf8(value).map_err(|_| Error::new(ErrorKind::Invalid, "a label is text in UTF-8"))?;
        self.set_label(label)
    }
}

pub(crate) fn check_topmost(number: InodeNumber) -> Result<()> {
    if number == InodeNumber::ROOT {
        return Ok(());
    }
    Err(Error::of(ErrorKind::NotPermitted, number, "only the topmost directory has it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormatOptions, Options, XattrFlags, format};
    use onode_base::Timestamp;
    use onode_base::clock::ManualClock;
    use onode_object::ram::RamDevice;
    use std::sync::Arc;

    fn files(device: &Arc<RamDevice>, read_only: bool) -> FileSystem {
        let options = Options { read_only, ..Options::default() };
        FileSystem::mount(device.clone(), Arc::new(ManualClock::at(1)), options).expect("a volume")
    }

    fn volume() -> Arc<RamDevice> {
        let device = Arc::new(RamDevice::new(1 << 20));
        let options = FormatOptions { label: "old".into(), ..FormatOptions::default() };
        format(device.as_ref(), &options, Timestamp::default()).expect("room");
        device
    }

    #[test]
    fn a_label_is_there_at_once_and_after_a_mount() {
        let device = volume();
        let first = files(&device, false);
        assert_eq!(first.label().unwrap(), "old");
        first.set_label("Fotos 2026").unwrap();
        assert_eq!(first.label().unwrap(), "Fotos 2026");
        let settings = first.volume().clone();
        drop(first);
        let again = files(&device, false);
        assert_eq!(again.label().unwrap(), "Fotos 2026");
        assert_eq!(VolumeInfo { label: "old".into(), ..again.volume().clone() }, settings, "nothing else changed");
        again.set_label("").unwrap();
        assert_eq!(again.label().unwrap(), "");
    }

    #[test]
    fn what_is_no_label_is_refused_and_changes_nothing() {
        let device = volume();
        let all = files(&device, false);
        for wrong in ["a/b", "two\nlines", "\u{1b}[31m", &"x".repeat(256)] {
            assert_eq!(all.set_label(wrong).unwrap_err().kind, ErrorKind::Invalid, "{wrong:?}");
        }
        let root = InodeNumber::ROOT;
        let set = |caller: &Caller, number, value: &[u8]| {
            all.set_xattr(caller, number, LABEL.as_bytes(), value, XattrFlags::Any).map_err(|error| error.kind)
        };
        assert_eq!(set(&Caller::root(), root, &[0xff]), Err(ErrorKind::Invalid));
        assert_eq!(set(&Caller { uid: 7, ..Caller::root() }, root, b"mine"), Err(ErrorKind::NotPermitted));
        let other = all.make_directory(&Caller::root(), root, b"d", 0o755).unwrap().inode;
        assert_eq!(set(&Caller::root(), other, b"mine"), Err(ErrorKind::NotPermitted));
        assert_eq!(all.label().unwrap(), "old");
        assert_eq!(set(&Caller::root(), root, b"new"), Ok(()));
        assert_eq!(all.get_xattr(root, LABEL.as_bytes()).unwrap(), b"new");
        drop(all);
        let closed = files(&device, true);
        assert_eq!(closed.set_label("other").unwrap_err().kind, ErrorKind::ReadOnly);
    }
}

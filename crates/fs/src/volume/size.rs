//! The size of a volume: what it has of its medium, and taking up more of it while it is in use.
//!
//! Programs reach it through [`SIZE`], an attribute of the topmost directory that no listing shows.

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use onode_object::powers::{Extent, Grow};

/// The attribute of the topmost directory with four decimal numbers of bytes: what the volume has
/// of its medium, what there is room for now, the fewest with which it would be larger, and the
/// unit of all of them: `1073741824 4294967296 1074790400 131072`. Whoever sets it to a number of
/// bytes has the volume grow to that.
pub const SIZE: &str = "onode.volume-size";

impl FileSystem {
    fn growth(&self) -> Result<&dyn Grow> {
        let why = "a volume on this kind of device does not grow";
        self.device.growth().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    /// What the volume has of its medium, and could have.
    ///
    /// # Errors
    /// `NotSupported` if the device cannot grow, `Media`.
    pub fn extent(&self) -> Result<Extent> {
        Ok(self.growth()?.extent()?)
    }

    /// Has `bytes` of the medium from now on, durably; see [`Grow::grow`].
    ///
    /// # Errors
    /// `NotSupported`, and those of [`Grow::grow`].
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let growth = self.growth()?;
        if self.is_read_only() {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume is read-only"));
        }
        self.heard(growth.grow(bytes))
    }

    pub(crate) fn size_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        let Extent { bytes, most, least, unit } = self.extent()?;
        Ok(format!("{bytes} {most} {least} {unit}").into_bytes())
    }

    pub(crate) fn set_size_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        self.check_owner(caller, number)?;
        let bytes = str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
        let bytes = bytes.ok_or_else(|| Error::of(ErrorKind::Invalid, number, "a size is a number of bytes"))?;
        self.grow(bytes)
    }
}

fn check_topmost(number: InodeNumber) -> Result<()> {
    if number == InodeNumber::ROOT {
        return Ok(());
    }
    Err(ErrorKind::NoAttribute.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormatOptions, Options, XattrFlags, format};
    use onode_base::Timestamp;
    use onode_base::clock::ManualClock;
    use onode_base::sync::Mutex;
    use onode_object::ram::RamDevice;
    use onode_object::{Durability, ObjectDevice, Transaction, forward_device};
    use std::sync::Arc;

    /// A device that says it has grown.
    struct Growing {
        below: RamDevice,
        bytes: Mutex<u64, onode_base::sync::rank::MediumNotes>,
    }

    impl ObjectDevice for Growing {
        fn commit(&self, transaction: Transaction, durability: Durability) -> onode_object::Result<()> {
            self.below.commit(transaction, durability)
        }
        fn growth(&self) -> Option<&dyn Grow> {
            Some(self)
        }
        forward_device! {
            self => self.below;
            info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space, maintain, close
        }
    }

    impl Grow for Growing {
        fn extent(&self) -> onode_object::Result<Extent> {
            Ok(Extent { bytes: *self.bytes.lock(), most: 4096, least: 1536, unit: 512 })
        }
        fn grow(&self, bytes: u64) -> onode_object::Result<()> {
            if bytes > 4096 {
                return Err(onode_object::Error::new(ErrorKind::Invalid, "too much"));
            }
            *self.bytes.lock() = bytes / 512 * 512;
            Ok(())
        }
    }

    #[test]
    fn the_owner_has_a_volume_grow() {
        let device = Arc::new(Growing { below: RamDevice::new(1 << 20), bytes: Mutex::new(1024) });
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).expect("room");
        let all = FileSystem::mount(device, Arc::new(ManualClock::at(1)), Options::default()).expect("a volume");
        let root = InodeNumber::ROOT;
        let set = |caller: &Caller, value: &[u8]| {
            all.set_xattr(caller, root, SIZE.as_bytes(), value, XattrFlags::Any).map_err(|error| error.kind)
        };
        assert_eq!(all.get_xattr(root, SIZE.as_bytes()).unwrap(), b"1024 4096 1536 512");
        assert_eq!(set(&Caller { uid: 7, ..Caller::root() }, b"4096"), Err(ErrorKind::NotPermitted));
        for wrong in [&b"much"[..], b"", b"-1", b"5000", &[0xff]] {
            assert_eq!(set(&Caller::root(), wrong), Err(ErrorKind::Invalid), "{wrong:?}");
        }
        assert_eq!(all.extent().unwrap().bytes, 1024);
        assert_eq!(set(&Caller::root(), b"2100\n"), Ok(()));
        assert_eq!(all.extent().unwrap().bytes, 2048);
        let other = all.make_directory(&Caller::root(), root, b"d", 0o755).unwrap().inode;
        assert_eq!(all.get_xattr(other, SIZE.as_bytes()).unwrap_err().kind, ErrorKind::NoAttribute);
    }

    #[test]
    fn what_does_not_grow_says_so() {
        let device = Arc::new(RamDevice::new(1 << 20));
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).expect("room");
        let all = FileSystem::mount(device, Arc::new(ManualClock::at(1)), Options::default()).expect("a volume");
        assert_eq!(all.extent().unwrap_err().kind, ErrorKind::NotSupported);
        assert_eq!(all.grow(1).unwrap_err().kind, ErrorKind::NotSupported);
    }
}

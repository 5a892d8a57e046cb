//! The size of a volume: what it has of its medium, taking up more of it and giving some of it back
//! while it is in use.
//!
//! Programs reach it through [`SIZE`], an attribute of the topmost directory that no listing shows.

pub mod replace;

use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::types::{Caller, InodeNumber};
use onode_base::ErrorKind;
use onode_object::powers::{Extent, Resize};

/// The attribute of the topmost directory with six decimal numbers of bytes: what the volume has of
/// its medium, what there is room for now, the fewest with which it would be larger, the unit of
/// all of them, about the fewest that have room for what is in it, and what has yet to move before
/// it is smaller: `1073741824 4294967296 1074790400 131072 536870912 0`. Whoever sets it to a
/// number of bytes has the volume grow to that, or begin to shrink; [`SHRINK_FURTHER`] moves some
/// of what is in the way, again and again until the volume has that size, and
/// [`STOP_SHRINKING`] leaves it as large as it is.
pub const SIZE: &str = "onode.volume-size";

/// The attribute of the topmost directory that root sets to the path of an empty disk or file on
/// which the volume shall go on, as it is seen by whoever serves the mount: see
/// [`Resize::take_disk`]. It tells the names of the disks that there are, a line each.
pub const DISK: &str = "onode.volume-disk";

/// What [`SIZE`] is set to for another step of a volume that shrinks.
pub const SHRINK_FURTHER: &str = "shrink";

/// What [`SIZE`] is set to for a volume that is to stay as large as it is.
pub const STOP_SHRINKING: &str = "stay";

impl FileSystem {
    fn resizing(&self) -> Result<&dyn Resize> {
        let why = "a volume on this kind of device does not become larger or smaller";
        self.device.resizing().ok_or_else(|| Error::new(ErrorKind::NotSupported, why))
    }

    fn resizing_writable(&self) -> Result<&dyn Resize> {
        let resizing = self.resizing()?;
        if self.is_read_only() {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume is read-only"));
        }
        Ok(resizing)
    }

    /// What the volume has of its medium, and could have.
    ///
    /// # Errors
    /// `NotSupported` if the device is never larger or smaller, `Media`.
    pub fn extent(&self) -> Result<Extent> {
        Ok(self.resizing()?.extent()?)
    }

    /// Has `bytes` of the medium from now on, durably; see [`Resize::grow`].
    ///
    /// # Errors
    /// `NotSupported`, and those of [`Resize::grow`].
    pub fn grow(&self, bytes: u64) -> Result<()> {
        self.heard(self.resizing_writable()?.grow(bytes))
    }

    /// Goes on on another disk or file, which is taken up by the next [`grow`](Self::grow); see
    /// [`Resize::take_disk`].
    ///
    /// # Errors
    /// Those of [`Resize::take_disk`].
    pub fn take_disk(&self, place: &str) -> Result<()> {
        self.heard(self.resizing_writable()?.take_disk(place))
    }

    /// Begins to shrink to `bytes` of the medium; see [`Resize::begin_shrinking`].
    ///
    /// # Errors
    /// Those of [`Resize::begin_shrinking`]; `NoSpace` also if files were promised more room than
    /// there would be.
    pub fn begin_shrinking(&self, bytes: u64) -> Result<()> {
        let resizing = self.resizing_writable()?;
        self.sync()?;
        // Nobody is promised anything meanwhile.
        let state = &mut *self.lock();
        self.heard(resizing.begin_shrinking(bytes))?;
        let promised = state.promised + state.set_aside_by_others();
        let available = self.device.promisable();
        state.forget_space();
        if promised > available {
            resizing.stop_shrinking()?;
            let why = "files that are being written have no room in a volume of that size";
            return Err(Error::new(ErrorKind::NoSpace, why));
        }
        Ok(())
    }

    /// Moves some of what is in the way of a volume that shrinks; true when it has its new size,
    /// durably. See [`Resize::shrink_some`].
    ///
    /// # Errors
    /// Those of [`Resize::shrink_some`].
    pub fn shrink_some(&self) -> Result<bool> {
        self.heard(self.resizing_writable()?.shrink_some())
    }

    /// The volume stays as large as it is.
    ///
    /// # Errors
    /// Those of [`Resize::stop_shrinking`].
    pub fn stop_shrinking(&self) -> Result<()> {
        self.heard(self.resizing_writable()?.stop_shrinking())
    }

    pub(crate) fn size_xattr(&self, number: InodeNumber) -> Result<Vec<u8>> {
        check_topmost(number)?;
        let Extent { bytes, most, least, unit, fewest, moving } = self.extent()?;
        Ok(format!("{bytes} {most} {least} {unit} {fewest} {moving}").into_bytes())
    }

    pub(crate) fn set_size_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        self.check_owner(caller, number)?;
        let text = str::from_utf8(value).unwrap_or_default().trim();
        match text {
            SHRINK_FURTHER => return self.shrink_some().map(|_| ()),
            STOP_SHRINKING => return self.stop_shrinking(),
            _ => {}
        }
        let wrong = || Error::of(ErrorKind::Invalid, number, "a size is a number of bytes");
        let bytes = text.parse().map_err(|_| wrong())?;
        if bytes < self.extent()?.bytes { self.begin_shrinking(bytes) } else { self.grow(bytes) }
    }

    pub(crate) fn set_disk_xattr(&self, caller: &Caller, number: InodeNumber, value: &[u8]) -> Result<()> {
        check_topmost(number)?;
        check_root(caller, number)?;
        let place = str::from_utf8(value).map_err(|_| Error::of(ErrorKind::Invalid, number, "that is no path"))?;
        self.take_disk(place)
    }
}

/// What is served opens the disk, and may be allowed to open more than who asks.
fn check_root(caller: &Caller, number: InodeNumber) -> Result<()> {
    if caller.is_unlimited() {
        return Ok(());
    }
    Err(Error::of(ErrorKind::NotPermitted, number, "only root may give a volume another disk"))
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

    /// A device that says it has grown or shrunk.
    struct Growing {
        below: RamDevice,
        bytes: Mutex<u64, onode_base::sync::rank::MediumNotes>,
        moving: Mutex<u64, onode_base::sync::rank::MediumNotes>,
    }

    impl ObjectDevice for Growing {
        fn commit(&self, transaction: Transaction, durability: Durability) -> onode_object::Result<()> {
            self.below.commit(transaction, durability)
        }
        fn resizing(&self) -> Option<&dyn Resize> {
            Some(self)
        }
        forward_device! {
            self => self.below;
            info, reserve_ids, sync, read, attribute, attributes, stat, list, extents, space, maintain, close
        }
    }

    impl Resize for Growing {
        fn extent(&self) -> onode_object::Result<Extent> {
            let bytes = *self.bytes.lock();
            let moving = *self.moving.lock();
            Ok(Extent { bytes, most: 4096, least: 1536, unit: 512, fewest: 512, moving })
        }
        fn grow(&self, bytes: u64) -> onode_object::Result<()> {
            if bytes > 4096 {
                return Err(onode_object::Error::new(ErrorKind::Invalid, "too much"));
            }
            *self.bytes.lock() = bytes / 512 * 512;
            Ok(())
        }
        fn begin_shrinking(&self, bytes: u64) -> onode_object::Result<()> {
            let had = *self.bytes.lock();
            *self.moving.lock() = had - bytes;
            Ok(())
        }
        fn shrink_some(&self) -> onode_object::Result<bool> {
            let moving = std::mem::take(&mut *self.moving.lock());
            *self.bytes.lock() -= moving.min(512);
            *self.moving.lock() = moving.saturating_sub(512);
            Ok(moving <= 512)
        }
        fn stop_shrinking(&self) -> onode_object::Result<()> {
            *self.moving.lock() = 0;
            Ok(())
        }
    }

    #[test]
    fn the_owner_has_a_volume_grow_and_shrink() {
        let device =
            Arc::new(Growing { below: RamDevice::new(1 << 20), bytes: Mutex::new(1024), moving: Mutex::new(0) });
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).expect("room");
        let all = FileSystem::mount(device, Arc::new(ManualClock::at(1)), Options::default()).expect("a volume");
        let root = InodeNumber::ROOT;
        let set = |caller: &Caller, value: &[u8]| {
            all.set_xattr(caller, root, SIZE.as_bytes(), value, XattrFlags::Any).map_err(|error| error.kind)
        };
        assert_eq!(all.get_xattr(root, SIZE.as_bytes()).unwrap(), b"1024 4096 1536 512 512 0");
        assert_eq!(set(&Caller { uid: 7, ..Caller::root() }, b"4096"), Err(ErrorKind::NotPermitted));
        for wrong in [&b"much"[..], b"", b"-1", b"5000", &[0xff]] {
            assert_eq!(set(&Caller::root(), wrong), Err(ErrorKind::Invalid), "{wrong:?}");
        }
        assert_eq!(all.extent().unwrap().bytes, 1024);
        assert_eq!(set(&Caller::root(), b"2100\n"), Ok(()));
        assert_eq!(all.extent().unwrap().bytes, 2048);
        let bytes_and_moving = || all.extent().map(|extent| (extent.bytes, extent.moving)).unwrap();
        assert_eq!(set(&Caller::root(), b"1024"), Ok(()));
        assert_eq!(bytes_and_moving(), (2048, 1024));
        assert_eq!(set(&Caller { uid: 7, ..Caller::root() }, b"shrink"), Err(ErrorKind::NotPermitted));
        assert_eq!(set(&Caller::root(), b"shrink"), Ok(()));
        assert_eq!(bytes_and_moving(), (1536, 512));
        assert_eq!(set(&Caller::root(), b"stay"), Ok(()));
        assert_eq!(bytes_and_moving(), (1536, 0));
        let other = all.make_directory(&Caller::root(), root, b"d", 0o755).unwrap().inode;
        assert_eq!(all.get_xattr(other, SIZE.as_bytes()).unwrap_err().kind, ErrorKind::NoAttribute);
    }

    #[test]
    fn what_does_neither_says_so() {
        let device = Arc::new(RamDevice::new(1 << 20));
        format(device.as_ref(), &FormatOptions::default(), Timestamp::default()).expect("room");
        let all = FileSystem::mount(device, Arc::new(ManualClock::at(1)), Options::default()).expect("a volume");
        assert_eq!(all.extent().unwrap_err().kind, ErrorKind::NotSupported);
        assert_eq!(all.grow(1).unwrap_err().kind, ErrorKind::NotSupported);
    }
}

//! Where inodes are: in the onodes of their files, or each in an object of its own.
//!
//! Embedded is what every volume should have (paper 1, section V.D): one object a file. Separate is
//! the other side of that comparison: the inode is the content of a second object, of a fixed size,
//! so that a change of it only ever overwrites and a full volume can still let go of files (N7).

pub mod access;
pub mod acl;
pub mod attachment;
pub mod attributes;
mod hidden;
pub mod inode;
pub mod merge;
pub mod xattr;

use crate::inodes::inode::{INODE_KEY, Inode};
use onode_base::ErrorKind;
use onode_object::validate::REPLACED_BYTES_MAX;
use onode_object::{Hints, ObjectDevice, ObjectId, ObjectKind, Result, Transaction};
use std::ops::Range;

const ROOT: ObjectId = ObjectId(1);
/// The inode object of the root; the object after it is the volume's.
const ROOT_INODE: ObjectId = ObjectId(3);

/// Bytes of an inode object: a length, the inode, zeros. The longest inode has 109.
const OBJECT_BYTES: usize = 128;
const _: () = assert!(OBJECT_BYTES <= REPLACED_BYTES_MAX);

/// Where a volume keeps its inodes; fixed when it is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inodes {
    /// In the onode of the file: an attribute of its object.
    #[default]
    Embedded,
    /// In an object of its own beside that of the file.
    Separate,
}

/// What there is for an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// Bytes that are no inode.
    Damaged,
    /// An inode.
    Sound(Inode),
}

impl Found {
    /// The inode, if there is a sound one.
    #[must_use]
    pub const fn sound(self) -> Option<Inode> {
        match self {
            Self::Sound(inode) => Some(inode),
            Self::Missing | Self::Damaged => None,
        }
    }
}

impl Inodes {
    /// The object with the inode of `file`: the file's own, or the one with the next number.
    #[must_use]
    pub const fn object(self, file: ObjectId) -> ObjectId {
        match self {
            Self::Embedded => file,
            Self::Separate if file.0 == ROOT.0 => ROOT_INODE,
            Self::Separate => ObjectId(file.0 | 1),
        }
    }

    /// The file whose inode that object is for, if it is for nothing else.
    #[must_use]
    pub const fn file_of(self, object: ObjectId) -> Option<ObjectId> {
        match self {
            Self::Separate if object.0 == ROOT_INODE.0 => Some(ROOT),
            // Files have even numbers.
            Self::Separate if object.0 >= ObjectId::FIRST_FREE.0 && object.0 % 2 == 1 => Some(ObjectId(object.0 - 1)),
            Self::Embedded | Self::Separate => None,
        }
    }

    /// Object ids that each new file takes, from a multiple of that on.
    pub(crate) const fn ids(self) -> u64 {
        match self {
            Self::Embedded => 1,
            Self::Separate => 2,
        }
    }

    /// Ids for `count` objects, the first one such that a file can have it.
    ///
    /// # Errors
    /// The device's errors.
    pub(crate) fn reserve(self, device: &dyn ObjectDevice, count: u64) -> Result<Range<u64>> {
        // What a device hands out may begin anywhere.
        let first = device.reserve_ids((count + 1) * self.ids() - 1)?.0.next_multiple_of(self.ids());
        Ok(first..first + count * self.ids())
    }

    /// What the device has for the inode of `file`.
    ///
    /// # Errors
    /// The device's errors.
    pub fn load(self, device: &dyn ObjectDevice, file: ObjectId) -> Result<Found> {
        let bytes = match self {
            Self::Embedded => device.attribute(file, INODE_KEY),
            Self::Separate if self.file_of(file).is_some() => Ok(None),
            Self::Separate => {
                let mut bytes = vec![0; OBJECT_BYTES + 1];
                device.read(self.object(file), 0, &mut bytes).map(|length| {
                    bytes.truncate(length);
                    Some(bytes)
                })
            }
        };
        let bytes = match bytes {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Found::Missing),
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Found::Missing),
            Err(error) => return Err(error),
        };
        let inode = match self {
            Self::Embedded => Inode::decode(&bytes),
            Self::Separate => decode(&bytes),
        };
        Ok(inode.map_or(Found::Damaged, Found::Sound))
    }

    /// Adds a file with its inode.
    pub fn create(self, transaction: &mut Transaction, file: ObjectId, hints: Hints, inode: &Inode) {
        let embed = self == Self::Embedded;
        transaction.create(file, Hints { embed, ..hints });
        if !embed {
            self.create_object(transaction, file);
        }
        self.store(transaction, file, inode);
    }

    /// The inode that an object for it has as its content.
    pub(crate) fn decode_object(content: &[u8]) -> Option<Inode> {
        decode(content)
    }

    fn create_object(self, transaction: &mut Transaction, file: ObjectId) {
        let kind = ObjectKind::Special;
        transaction.create(self.object(file), Hints { kind, locality: Some(file), ..Hints::default() });
    }

    /// Sets the inode of a file that has one.
    pub fn store(self, transaction: &mut Transaction, file: ObjectId, inode: &Inode) {
        match self {
            Self::Embedded => transaction.set_attribute(file, INODE_KEY, inode.encode()),
            Self::Separate => transaction.write(self.object(file), 0, encode(inode)),
        };
    }

    /// Sets the inode of a file whatever there is for one.
    pub(crate) fn restore(
        self,
        device: &dyn ObjectDevice,
        transaction: &mut Transaction,
        file: ObjectId,
        inode: &Inode,
    ) {
        if self == Self::Separate {
            if device.stat(self.object(file)).is_err() {
                self.create_object(transaction, file);
            }
            transaction.truncate(self.object(file), OBJECT_BYTES as u64);
        }
        self.store(transaction, file, inode);
    }

    /// Takes away a file with its inode.
    pub fn remove(self, transaction: &mut Transaction, file: ObjectId) {
        transaction.remove(file);
        if self == Self::Separate {
            transaction.remove(self.object(file));
        }
    }
}

fn encode(inode: &Inode) -> Vec<u8> {
    let inode = inode.encode();
    let mut bytes = vec![inode.len() as u8];
    bytes.extend_from_slice(&inode);
    bytes.resize(OBJECT_BYTES, 0);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Inode> {
    let (&length, rest) = bytes.split_first().filter(|_| bytes.len() == OBJECT_BYTES)?;
    let (inode, padding) = rest.split_at_checked(usize::from(length))?;
    Inode::decode(inode).filter(|_| padding.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::FileType;
    use onode_base::Timestamp;

    #[test]
    fn the_longest_inode_fits_its_object() {
        let far = |seconds| Timestamp { seconds, nanoseconds: 999_999_999 };
        let mut inode = Inode::new(FileType::Directory, 0o7777, far(i64::MIN));
        (inode.uid, inode.gid, inode.links) = (u32::MAX, u32::MAX, u32::MAX);
        (inode.modified, inode.changed, inode.accessed) = (far(0), far(i64::MIN), far(0));
        (inode.parent, inode.entries, inode.has_xattrs) = (u64::MAX, u64::MAX, true);
        inode.tree = u64::MAX;
        assert_eq!(inode.encode().len(), 109);
        let bytes = encode(&inode);
        assert_eq!((bytes.len(), decode(&bytes)), (OBJECT_BYTES, Some(inode)));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None);
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            assert_ne!(decode(&wrong), Some(inode), "byte {at}");
        }
    }

    #[test]
    fn inode_objects_lie_beside_their_files() {
        for file in [1, 64, 66, 1 << 62] {
            let inode = Inodes::Separate.object(ObjectId(file));
            assert_eq!(Inodes::Separate.file_of(inode), Some(ObjectId(file)));
            assert_eq!(Inodes::Separate.file_of(ObjectId(file)), None);
            assert_eq!(Inodes::Embedded.object(ObjectId(file)), ObjectId(file));
            assert_eq!(Inodes::Embedded.file_of(inode), None);
        }
        assert_eq!(Inodes::Separate.file_of(crate::volume::VOLUME), None);
    }
}

//! Settings of a volume that were lost, made anew by what is on the device.
//!
//! Without them no name is found, for they hold the secret of the name hash. The names themselves
//! are all there: under a new secret each is in a slot where a lookup does not find it, which the
//! other repairs mend. What stays lost is the label, the time when the volume was made, and the
//! list of open files without a name, which come to `/lost+found`.

use crate::error::{Error, Result};
use crate::inodes::Inodes;
use crate::inodes::inode::INODE_KEY;
use crate::options::FormatOptions;
use crate::quota::record;
use crate::volume::{MAGIC, VOLUME, VOLUME_KEY, VolumeInfo};
use onode_base::{ErrorKind, Timestamp, varint};
use onode_object::{Durability, Hints, ObjectDevice, ObjectId, ObjectKind, Transaction};

/// Objects that are looked at to find out where the volume kept its inodes.
const OBJECTS_LOOKED_AT: usize = 256;

/// Makes the settings of the volume on `device` anew. If nothing is left of its files, it has none
/// from then on.
///
/// # Errors
/// `Invalid` if they are of a format that this program does not know; the device's errors.
pub(super) fn make_anew(device: &dyn ObjectDevice, now: Timestamp, hash_key: [u8; 16]) -> Result<()> {
    let found = match device.attribute(VOLUME, VOLUME_KEY) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => None,
        Err(error) => return Err(error.into()),
    };
    if found.is_some_and(|bytes| is_newer(&bytes)) {
        return Err(Error::new(ErrorKind::Invalid, "the volume is of a format this program does not know"));
    }
    let objects = device.list(ObjectId(1), OBJECTS_LOOKED_AT)?;
    let is_empty = objects.iter().all(|object| *object == VOLUME);
    let inodes = if is_empty { Inodes::default() } else { kept_inodes(device, &objects)? };
    let options = FormatOptions { uuid: device.info().uuid, hash_key, inodes, ..FormatOptions::default() };
    let mut info = VolumeInfo::new(&options, now);
    let mut transaction = Transaction::new();
    // Limits that are left hold on.
    if record::list(device).is_ok_and(|limits| !limits.is_empty()) {
        info.admit_quotas();
    }
    if device.stat(VOLUME).is_err() {
        transaction.create(VOLUME, Hints { kind: ObjectKind::Volume, embed: true, ..Hints::default() });
    }
    transaction.set_attribute(VOLUME, VOLUME_KEY, info.encode());
    Ok(device.commit(transaction, Durability::Durable)?)
}

/// Whether these are sound settings of a later format.
fn is_newer(bytes: &[u8]) -> bool {
    let version = bytes.strip_prefix(MAGIC.as_slice()).and_then(|mut rest| varint::take(&mut rest));
    version.is_some_and(|version| version > u64::from(crate::volume::FORMAT_VERSION))
}

/// Where the inodes of these objects are.
fn kept_inodes(device: &dyn ObjectDevice, objects: &[ObjectId]) -> Result<Inodes> {
    for object in objects {
        match device.attribute(*object, INODE_KEY) {
            Ok(Some(_)) => return Ok(Inodes::Embedded),
            Ok(None) => {}
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Corrupt) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Inodes::Separate)
}

//! Encryption over any kind of device.
//!
//! Where there are files, the objects that every volume has say how it is encrypted, and each mount
//! begins an epoch, as for people. Runs of objects alone have no such objects: their mounts use one
//! epoch again and again, which is wrong for secrets and right for what a cut may do.
//! Devices beside each other are in [`crate::task::Media::Encrypted`].

use crate::kind::service::Service;
use onode_fs::InodeNumber;
use onode_fs::volume::VOLUME;
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId};
use onode_services::{Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotSettings};
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "encrypted-";

/// The objects that say how a volume is encrypted: that of the volume, and the root directory.
pub(super) const HOLDERS: [ObjectId; 2] = [VOLUME, ObjectId(InodeNumber::ROOT.0)];

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Encrypting;

/// The header of a volume that is to be made.
pub(super) fn header(master: &MasterKey) -> onode_object::Result<KeyHeader> {
    let secret = Secret::key_file(vec![3; 32])?;
    let settings = SlotSettings { id: 0, label: "", cost: Cost::LEAST, salt: [4; 16] };
    Ok(KeyHeader::new(&HOLDERS, master, KeySlot::new(master, &secret, settings)?))
}

impl Service for Encrypting {
    type Over<D: ObjectDevice + 'static> = Encrypted<D>;
    /// Entries of blocks are more than content that small volumes reckon with.
    const SLACK: u64 = 2;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> onode_object::Result<Encrypted<D>> {
        let (master, session) = (MasterKey::new([1; 32]), Session::new([2; 32]));
        // Objects alone, or a file system that is about to be made.
        if device.stat(VOLUME).is_err_and(|error| error.kind == ErrorKind::NotFound) {
            return Encrypted::create(device, header(&master)?, &master, session);
        }
        let header = KeyHeader::load(device.as_ref(), &HOLDERS)?;
        let header = header.ok_or_else(|| Error::new(ErrorKind::Corrupt, "nothing says that it is encrypted"))?;
        Encrypted::open(device, header, &master, session)
    }

    fn inner<D: ObjectDevice + 'static>(over: &Encrypted<D>) -> &D {
        over.inner()
    }
}

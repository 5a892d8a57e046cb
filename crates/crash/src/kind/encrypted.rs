//! Any kind of device with encryption over it, alone or below compression.
//!
//! Where there are files, the objects that every volume has say how it is encrypted, and each mount
//! begins an epoch, as for people. Runs of objects alone have no such objects: their mounts use one
//! epoch again and again, which is wrong for secrets and right for what a cut may do.
//! Devices beside each other are in [`crate::task::Media::Encrypted`].

use crate::files::worth::Worth;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_fs::volume::VOLUME;
use onode_object::powers::Attach;
use onode_object::{Error, ErrorKind, ObjectDevice, ObjectId};
use onode_services::{Cost, Encrypted, KeyHeader, KeySlot, MasterKey, Secret, Session, SlotSettings};
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "encrypted-";

/// The objects that say how a volume is encrypted: that of the volume, and the root directory.
const HOLDERS: [ObjectId; 2] = [VOLUME, ObjectId(1)];

/// A kind whose device is wrapped.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<K>(pub K);

/// The header of a volume that is to be made.
fn header(master: &MasterKey) -> onode_object::Result<KeyHeader> {
    let secret = Secret::key_file(vec![3; 32])?;
    let settings = SlotSettings { id: 0, label: "", cost: Cost::LEAST, salt: [4; 16] };
    Ok(KeyHeader::new(&HOLDERS, master, KeySlot::new(master, &secret, settings)?))
}

impl<K: Kind> Kind for Sealed<K> {
    type Medium = K::Medium;
    type Device = Encrypted<K::Device>;

    fn format(&self, failures: Failures) -> Result<<K::Medium as Medium>::Image, Violation> {
        self.0.format(failures)
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> onode_object::Result<Self::Device> {
        let device = Arc::new(self.0.mount(medium, read_only)?);
        let (master, session) = (MasterKey::new([1; 32]), Session::new([2; 32]));
        // Objects alone, or a file system that is about to be made.
        if device.stat(VOLUME).is_err_and(|error| error.kind == ErrorKind::NotFound) {
            return Encrypted::create(device, header(&master)?, &master, session);
        }
        let header = KeyHeader::load(device.as_ref(), &HOLDERS)?;
        let header = header.ok_or_else(|| Error::new(ErrorKind::Corrupt, "nothing says that it is encrypted"))?;
        Encrypted::open(device, header, &master, session)
    }

    fn verify(&self, device: &Self::Device) -> Result<(), Violation> {
        self.0.verify(device.inner())
    }

    fn note(&self, device: &Self::Device, medium: &K::Medium) -> Result<(), Violation> {
        self.0.note(device.inner(), medium)
    }

    /// Entries of blocks are more than content that small volumes reckon with.
    fn slack_bytes(&self) -> u64 {
        self.0.slack_bytes() * 2
    }

    fn inodes(&self) -> Inodes {
        self.0.inodes()
    }

    fn worth(&self) -> Worth {
        self.0.worth()
    }

    fn part<'a>(&self, device: &'a Self::Device) -> Option<&'a dyn Attach> {
        device.attachment().and(self.0.part(device.inner()))
    }
}

//! Any kind of device with compression over it.
//!
//! Half of the content that runs write can be compressed ([`crate::workload::content`]), so chunks
//! are frames, plain, or one after the other. Devices beside each other are in
//! [`crate::task::Media::Compressed`].

use crate::files::worth::Worth;
use crate::kind::{Failures, Kind};
use crate::medium::Medium;
use crate::violation::Violation;
use onode_fs::Inodes;
use onode_object::powers::Attach;
use onode_object::{Compression, ObjectDevice};
use onode_services::Compressed;
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "compressed-";

/// Content that saves less stays plain. Volumes are small and so is their content: the least there
/// is.
const UNIT_BYTES: usize = 256;

/// A kind whose device is wrapped.
#[derive(Clone, Copy, Debug)]
pub struct Wrapped<K>(pub K);

impl<K: Kind> Kind for Wrapped<K> {
    type Medium = K::Medium;
    type Device = Compressed<K::Device>;

    fn format(&self, failures: Failures) -> Result<<K::Medium as Medium>::Image, Violation> {
        self.0.format(failures)
    }

    fn mount(&self, medium: &K::Medium, read_only: bool) -> onode_object::Result<Self::Device> {
        let device = Arc::new(self.0.mount(medium, read_only)?);
        Ok(Compressed::new(device, Compression::Small).in_units(UNIT_BYTES))
    }

    fn verify(&self, device: &Self::Device) -> Result<(), Violation> {
        self.0.verify(device.inner())
    }

    fn note(&self, device: &Self::Device, medium: &K::Medium) -> Result<(), Violation> {
        self.0.note(device.inner(), medium)
    }

    fn slack_bytes(&self) -> u64 {
        self.0.slack_bytes()
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

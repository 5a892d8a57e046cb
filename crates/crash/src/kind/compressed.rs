//! Compression over any kind of device.
//!
//! Half of the content that runs write can be compressed ([`crate::workload::content`]), so chunks
//! are frames, plain, or one after the other. Devices beside each other are in
//! [`crate::task::Media::Compressed`].

use crate::kind::service::Service;
use onode_object::{Compression, ObjectDevice};
use onode_services::Compressed;
use std::sync::Arc;

/// Names of shapes begin with this.
pub const PREFIX: &str = "compressed-";

/// Content that saves less stays plain. Volumes are small and so is their content: the least there
/// is.
const UNIT_BYTES: usize = 256;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct Compressing;

impl Service for Compressing {
    type Over<D: ObjectDevice + 'static> = Compressed<D>;
    const SLACK: u64 = 1;

    fn wrap<D: ObjectDevice + 'static>(device: Arc<D>) -> onode_object::Result<Compressed<D>> {
        Ok(Compressed::new(device, Compression::Small).in_units(UNIT_BYTES))
    }

    fn inner<D: ObjectDevice + 'static>(over: &Compressed<D>) -> &D {
        over.inner()
    }
}
